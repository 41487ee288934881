//! The durable list of steps: what each one read, and the clock and seed it ran with.
//!
//! It is a topic of the log with one partition and one record a step, so it has the log's checksums, group commit and recovery. An entry is
//! appended before its step runs; a step is in the journal or it never happened.
//!
//! ```text
//! version u8 | step u64 | clock i64 (ms) | seed u64 | n u32 | n x (relation u64, partition u32, offset i64)     little-endian
//! ```

use std::sync::Arc;

use highwater_planner::catalog::RelationId;
use highwater_storage_log::{BatchBuilder, Isolation, Log, Offset, TopicConfig, TopicPartition};

use crate::error::{ExecError, ExecResult};

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 1 + 8 + 8 + 8 + 4;
const CUT_BYTES: usize = 8 + 4 + 8;

/// Bytes that a replay reads at a time.
const READ_BYTES: usize = 1 << 20;

/// One step as the journal tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Number of the step.
    pub step: u64,
    /// What stands for now, in milliseconds since the epoch.
    pub clock: i64,
    /// What random functions start from.
    pub seed: u64,
    /// Up to where (exclusive) the step reads each source partition that it reads from.
    pub cut: Vec<(RelationId, u32, Offset)>,
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
        let start = self.log.offsets(&self.partition)?.log_start;
        if start > from {
            return Err(ExecError::Corrupt {
                what: "the journal".into(),
                detail: format!(
                    "it begins at {} but a checkpoint needs it from {}",
                    start.0, from.0
                ),
            });
        }
        let mut entries = Vec::new();
        if self.end()? < from {
            return Ok(entries);
        }
        let mut next = from;
        loop {
            let fetch = self.log.read(
                &self.partition,
                next,
                READ_BYTES,
                Isolation::ReadUncommitted,
            )?;
            if fetch.next_offset <= next {
                return Ok(entries);
            }
            for batch in &fetch.batches {
                for record in batch.records()?.iter() {
                    let record = record?;
                    if record.offset >= from {
                        entries.push(JournalEntry::decode(record.value.unwrap_or_default())?);
                    }
                }
            }
            next = fetch.next_offset;
        }
    }

    /// Lets go of entries that no checkpoint needs.
    pub fn drop_below(&self, offset: Offset) -> ExecResult<()> {
        Ok(self.log.drop_below(&self.partition, offset)?)
    }
}

impl JournalEntry {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + CUT_BYTES * self.cut.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.step.to_le_bytes());
        bytes.extend_from_slice(&self.clock.to_le_bytes());
        bytes.extend_from_slice(&self.seed.to_le_bytes());
        bytes.extend_from_slice(&(self.cut.len() as u32).to_le_bytes());
        for (relation, partition, offset) in &self.cut {
            bytes.extend_from_slice(&relation.0.to_le_bytes());
            bytes.extend_from_slice(&partition.to_le_bytes());
            bytes.extend_from_slice(&offset.0.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> ExecResult<Self> {
        let corrupt = |detail: &str| ExecError::Corrupt {
            what: "a journal entry".into(),
            detail: detail.into(),
        };
        if bytes.first() != Some(&VERSION) {
            return Err(corrupt("it has an unknown version"));
        }
        let mut rest = bytes.get(1..).unwrap_or_default();
        let mut take = |count: usize| -> ExecResult<&[u8]> {
            let (head, tail) = rest
                .split_at_checked(count)
                .ok_or_else(|| corrupt("it ends too early"))?;
            rest = tail;
            Ok(head)
        };
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let half = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap_or_default());
        let (step, clock, seed) = (word(take(8)?), word(take(8)?) as i64, word(take(8)?));
        let count = half(take(4)?);
        let mut cut = Vec::new();
        for _ in 0..count {
            cut.push((
                RelationId(word(take(8)?)),
                half(take(4)?),
                Offset(word(take(8)?) as i64),
            ));
        }
        Ok(Self {
            step,
            clock,
            seed,
            cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_a_round_trip_and_damage_is_an_error() {
        let entry = JournalEntry {
            step: 7,
            clock: -3,
            seed: 99,
            cut: vec![
                (RelationId(1), 0, Offset(10)),
                (RelationId(2), 3, Offset(5)),
            ],
        };
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
