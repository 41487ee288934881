//! The durable list of steps: what each one read, and the clock and seed it ran with.
//!
//! It is a topic of the log with one partition and one record a step, so it has the log's checksums, group commit and recovery. An entry is
//! appended before its step runs; a step is in the journal or it never happened.
//!
//! Between the steps stand *marks*: where all that is read and written stands after a step. A replay passes them over. They are what a push query is
//! resumed from (`resume`): an entry tells only what moved.
//!
//! ```text
//! version u8 | step u64 | clock i64 (ms) | seed u64 | n u32 | n x (relation u64, partition u32, offset i64)     little-endian
//! version 2 goes on:  kind u8 (0 step, 1 mark) | n u32 | n x (relation u64, partition u32, offset i64)
//! ```

use std::sync::Arc;

use highwater_planner::catalog::RelationId;
use highwater_storage_log::{BatchBuilder, Isolation, Log, Offset, TopicConfig, TopicPartition};

use crate::error::{ExecError, ExecResult};

const VERSION: u8 = 2;
/// What had a version before there were marks.
const STEPS_ONLY: u8 = 1;
const STEP: u8 = 0;
const MARK: u8 = 1;
const HEADER_BYTES: usize = 1 + 8 + 8 + 8 + 4;
const CUT_BYTES: usize = 8 + 4 + 8;

/// Bytes that a replay reads at a time.
const READ_BYTES: usize = 1 << 20;

/// Offsets of partitions of relations.
pub type Offsets = Vec<(RelationId, u32, Offset)>;

/// One record of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Whether it is a step.
    pub kind: EntryKind,
    /// Number of the step.
    pub step: u64,
    /// What stands for now, in milliseconds since the epoch.
    pub clock: i64,
    /// What random functions start from.
    pub seed: u64,
    /// Up to where (exclusive) the step reads each source partition that it reads from. Of a mark: where all sources stand.
    pub cut: Offsets,
    /// Up to where (exclusive) queries had written their streams before the step, where that has changed. Of a mark: all of them after its step.
    pub written: Offsets,
}

/// What a record of the journal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A step that runs.
    Step,
    /// Where everything stands after the step.
    Mark,
}

/// See the module.
pub struct Journal {
    log: Arc<dyn Log>,
    partition: TopicPartition,
}

impl Journal {
    /// Opens the journal, or makes it.
    pub fn open(log: Arc<dyn Log>, topic: &str) -> ExecResult<Self> {
        if log.topic(topic).is_none() {
            log.create_topic(topic, TopicConfig::with_partitions(1))?;
        }
        Ok(Self {
            log,
            partition: TopicPartition::new(topic, 0),
        })
    }

    /// Appends an entry; answers up to where the journal has to be synced for it.
    pub fn append(&self, entry: &JournalEntry) -> ExecResult<Offset> {
        let mut builder = BatchBuilder::new();
        builder.push(entry.clock, None, Some(&entry.encode()), &[]);
        let appended = self.log.append(&self.partition, builder.finish(None))?;
        Ok(Offset(appended.last_offset.0 + 1))
    }

    /// The topic partition it is.
    pub fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// Where the next entry will stand.
    pub fn end(&self) -> ExecResult<Offset> {
        Ok(self.log.offsets(&self.partition)?.log_end)
    }

    /// The entries from an offset on.
    pub fn read_from(&self, from: Offset) -> ExecResult<Vec<JournalEntry>> {
        let start = self.start()?;
        if start > from {
            return Err(ExecError::Corrupt {
                what: "the journal".into(),
                detail: format!(
                    "it begins at {} but a checkpoint needs it from {}",
                    start.0, from.0
                ),
            });
        }
        self.read_between(from, self.end()?)
    }

    /// All entries from `from` on and below `to`.
    pub fn read_between(&self, from: Offset, to: Offset) -> ExecResult<Vec<JournalEntry>> {
        let mut entries = Vec::new();
        let mut next = from;
        while next < to {
            let (read, behind) = self.read(next, to)?;
            entries.extend(read);
            if behind == next {
                break;
            }
            next = behind;
        }
        Ok(entries)
    }

    /// Where the oldest entry stands.
    pub fn start(&self) -> ExecResult<Offset> {
        Ok(self.log.offsets(&self.partition)?.log_start)
    }

    /// Some entries from `from` on and below `to`, and where to go on; the same place again when there are none.
    pub fn read(&self, from: Offset, to: Offset) -> ExecResult<(Vec<JournalEntry>, Offset)> {
        self.read_bytes(from, to, READ_BYTES)
    }

    /// The entry at an offset, or the first behind it.
    pub fn entry_at(&self, at: Offset) -> ExecResult<Option<JournalEntry>> {
        let (read, _) = self.read_bytes(at, Offset(i64::MAX), 1)?;
        Ok(read.into_iter().next())
    }

    fn read_bytes(
        &self,
        from: Offset,
        to: Offset,
        bytes: usize,
    ) -> ExecResult<(Vec<JournalEntry>, Offset)> {
        let fetch = self
            .log
            .read(&self.partition, from, bytes, Isolation::ReadUncommitted)?;
        let mut entries = Vec::new();
        for batch in &fetch.batches {
            for record in batch.records()?.iter() {
                let record = record?;
                if record.offset >= from && record.offset < to {
                    entries.push(JournalEntry::decode(record.value.unwrap_or_default())?);
                }
            }
        }
        Ok((entries, fetch.next_offset.min(to).max(from)))
    }

    /// Lets go of entries that no checkpoint needs.
    pub fn drop_below(&self, offset: Offset) -> ExecResult<()> {
        Ok(self.log.drop_below(&self.partition, offset)?)
    }
}

impl JournalEntry {
    /// Whether this one, which stands behind the `other`, tells that the other never happened: its number is given again.
    pub fn supersedes(&self, other: &Self) -> bool {
        match self.kind {
            EntryKind::Step => other.step >= self.step,
            EntryKind::Mark => other.step > self.step,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let offsets = self.cut.len() + self.written.len();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + CUT_BYTES * offsets + 1 + 4);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.step.to_le_bytes());
        bytes.extend_from_slice(&self.clock.to_le_bytes());
        bytes.extend_from_slice(&self.seed.to_le_bytes());
        put_offsets(&self.cut, &mut bytes);
        bytes.push(match self.kind {
            EntryKind::Step => STEP,
            EntryKind::Mark => MARK,
        });
        put_offsets(&self.written, &mut bytes);
        bytes
    }

    fn decode(bytes: &[u8]) -> ExecResult<Self> {
        let mut fields = Fields(bytes);
        let version = fields.byte()?;
        if !matches!(version, VERSION | STEPS_ONLY) {
            return Err(corrupt("it has an unknown version"));
        }
        let mut entry = Self {
            kind: EntryKind::Step,
            step: fields.word()?,
            clock: fields.word()? as i64,
            seed: fields.word()?,
            cut: fields.offsets()?,
            written: Offsets::new(),
        };
        if version == VERSION {
            entry.kind = match fields.byte()? {
                STEP => EntryKind::Step,
                MARK => EntryKind::Mark,
                _ => return Err(corrupt("it is of an unknown kind")),
            };
            entry.written = fields.offsets()?;
        }
        Ok(entry)
    }
}

fn put_offsets(offsets: &Offsets, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(offsets.len() as u32).to_le_bytes());
    for (relation, partition, offset) in offsets {
        bytes.extend_from_slice(&relation.0.to_le_bytes());
        bytes.extend_from_slice(&partition.to_le_bytes());
        bytes.extend_from_slice(&offset.0.to_le_bytes());
    }
}

/// What is left to decode of an entry.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> ExecResult<[u8; N]> {
        let (head, rest) = self
            .0
            .split_first_chunk()
            .ok_or_else(|| corrupt("it ends too early"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn byte(&mut self) -> ExecResult<u8> {
        Ok(u8::from_le_bytes(self.take()?))
    }

    fn half(&mut self) -> ExecResult<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn word(&mut self) -> ExecResult<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn offsets(&mut self) -> ExecResult<Offsets> {
        let count = self.half()?;
        let mut offsets = Offsets::new();
        for _ in 0..count {
            let relation = RelationId(self.word()?);
            offsets.push((relation, self.half()?, Offset(self.word()? as i64)));
        }
        Ok(offsets)
    }
}

fn corrupt(detail: &str) -> ExecError {
    ExecError::Corrupt {
        what: "a journal entry".into(),
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: EntryKind) -> JournalEntry {
        JournalEntry {
            kind,
            step: 7,
            clock: -3,
            seed: 99,
            cut: vec![
                (RelationId(1), 0, Offset(10)),
                (RelationId(2), 3, Offset(5)),
            ],
            written: vec![(RelationId(4), 1, Offset(12))],
        }
    }

    #[test]
    fn entries_survive_a_round_trip_and_damage_is_an_error() {
        for entry in [entry(EntryKind::Step), entry(EntryKind::Mark)] {
            let bytes = entry.encode();
            assert_eq!(JournalEntry::decode(&bytes).unwrap(), entry);
            for length in 0..bytes.len() {
                assert!(
                    JournalEntry::decode(&bytes[..length]).is_err(),
                    "cut at {length}"
                );
            }
        }
    }

    #[test]
    fn an_entry_from_before_there_were_marks_is_a_step() {
        let now = JournalEntry {
            written: Offsets::new(),
            ..entry(EntryKind::Step)
        };
        let mut before = now.encode();
        before.truncate(before.len() - 1 - 4);
        before[0] = STEPS_ONLY;
        assert_eq!(JournalEntry::decode(&before).unwrap(), now);
    }
}
