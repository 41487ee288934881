//! What a partition remembers of its producers: epochs, sequences, open and aborted transactions. Pure bookkeeping, no I/O.
//!
//! INVARIANT: the table is a function of the batches of the partition in offset order (and of what was forgotten on purpose), so a restart that
//! reads the same batches arrives at the same table.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use crate::{
    batch::{BatchHeader, BatchView, ControlKind, ControlMarker, ProducerFields, next_sequence},
    error::{LogError, LogResult},
    log::{Offset, ProducerId, ProducerState, TopicPartition},
};

/// Batches per producer whose offsets are at hand for a repeat. Kafka keeps five, since clients have up to five requests in flight.
const RECENT_BATCHES: usize = 5;

/// A transaction that was aborted: what read-committed readers leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AbortedTransaction {
    pub(crate) producer: i64,
    pub(crate) first_offset: i64,
    /// Offset of the abort marker.
    pub(crate) last_offset: i64,
    /// Last stable offset right after the abort. It never falls from one entry to the next, and no transaction that ends later begins below it.
    pub(crate) last_stable_offset: i64,
}

/// Sequences and offsets of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchPosition {
    pub(crate) base_sequence: i32,
    pub(crate) last_sequence: i32,
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
}

/// One producer as the partition knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProducerEntry {
    pub(crate) epoch: i16,
    /// Newest batches of this epoch, oldest first. Empty when a marker began the epoch.
    pub(crate) recent: VecDeque<BatchPosition>,
    pub(crate) open_transaction: Option<i64>,
    pub(crate) coordinator_epoch: i32,
    pub(crate) last_timestamp: i64,
    /// Offset of its newest batch or marker: who has been silent longest.
    pub(crate) last_seen: i64,
}

impl ProducerEntry {
    pub(crate) fn last_sequence(&self) -> i32 {
        self.recent.back().map_or(-1, |batch| batch.last_sequence)
    }
}

/// Answer to "may this batch be appended?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Yes.
    New,
    /// It is there already, at these offsets.
    Duplicate(Offset, Offset),
    /// It is there already, too long ago to know where.
    OldDuplicate,
}

/// All producers of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProducerTable {
    producers: HashMap<i64, ProducerEntry>,
    /// Open transactions by first offset.
    open: BTreeSet<(i64, i64)>,
}

impl ProducerTable {
    pub(crate) fn get(&self, producer: ProducerId) -> Option<&ProducerEntry> {
        self.producers.get(&producer.0)
    }

    pub(crate) fn state(&self, producer: ProducerId) -> Option<ProducerState> {
        self.get(producer).map(|entry| ProducerState {
            epoch: entry.epoch,
            last_sequence: entry.last_sequence(),
            open_transaction: entry.open_transaction.map(Offset),
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &ProducerEntry)> {
        self.producers.iter().map(|(id, entry)| (*id, entry))
    }

    pub(crate) fn insert(&mut self, producer: i64, entry: ProducerEntry) {
        if let Some(first) = entry.open_transaction {
            self.open.insert((first, producer));
        }
        self.producers.insert(producer, entry);
    }

    /// Last offsets of the newest batch and of the newest marker of each.
    pub(crate) fn newest_offsets(&self) -> HashSet<i64> {
        self.producers
            .values()
            .flat_map(|entry| {
                let batch = entry.recent.back().map(|batch| batch.last_offset);
                batch.into_iter().chain([entry.last_seen])
            })
            .collect()
    }

    /// First offset of the oldest open transaction.
    pub(crate) fn first_open_offset(&self) -> Option<i64> {
        self.open.first().map(|(offset, _)| *offset)
    }

    /// Who has an open transaction, the oldest first, with the producer's epoch.
    pub(crate) fn open_transactions(&self) -> Vec<(ProducerId, i16)> {
        let open = self.open.iter();
        open.filter_map(|(_, id)| Some((ProducerId(*id), self.producers.get(id)?.epoch)))
            .collect()
    }

    /// Decides about a batch of `producer` with `records` records, without changing anything.
    pub(crate) fn admit(
        &self,
        partition: &TopicPartition,
        producer: ProducerFields,
        records: i32,
    ) -> LogResult<Admission> {
        let Some(entry) = self.get(producer.id) else {
            // As in Kafka: retention may have taken what was known, so any first sequence is fine.
            return Ok(Admission::New);
        };
        self.check_epoch(partition, producer.id, producer.epoch)?;
        let out_of_order = |expected| LogError::OutOfOrderSequence {
            partition: partition.clone(),
            producer: producer.id,
            sequence: producer.base_sequence,
            expected,
        };
        if producer.epoch > entry.epoch {
            if producer.base_sequence != 0 {
                return Err(out_of_order(0));
            }
        } else {
            let expected = next_sequence(entry.last_sequence(), 1);
            if producer.base_sequence != expected {
                return entry
                    .repeat_of(producer.base_sequence, records)
                    .ok_or_else(|| out_of_order(expected));
            }
        }
        match entry.open_transaction {
            Some(since) if !producer.transactional => Err(LogError::TransactionOpen {
                partition: partition.clone(),
                producer: producer.id,
                since: Offset(since),
            }),
            _ => Ok(Admission::New),
        }
    }

    /// Fails when a newer epoch of the producer is known.
    pub(crate) fn check_epoch(
        &self,
        partition: &TopicPartition,
        producer: ProducerId,
        epoch: i16,
    ) -> LogResult<()> {
        match self.get(producer) {
            Some(entry) if epoch < entry.epoch => Err(LogError::ProducerFenced {
                partition: partition.clone(),
                producer,
                epoch,
                current: entry.epoch,
            }),
            _ => Ok(()),
        }
    }

    /// Learns from a batch that was found in the log. Answers with the transaction if it was a marker that aborted one.
    pub(crate) fn apply(&mut self, batch: &BatchView) -> LogResult<Option<AbortedTransaction>> {
        if !batch.is_control() {
            self.apply_records(batch.header());
            return Ok(None);
        }
        Ok(batch
            .control()?
            .and_then(|marker| self.apply_marker(batch.header(), marker)))
    }

    /// Learns from a batch of records that was appended or found.
    pub(crate) fn apply_records(&mut self, header: &BatchHeader) {
        let Some(producer) = header.producer() else {
            return;
        };
        let entry = self.entry_at_epoch(producer.id, producer.epoch, header);
        if entry.recent.len() == RECENT_BATCHES {
            entry.recent.pop_front();
        }
        entry.recent.push_back(BatchPosition::of(header));
        if producer.transactional && entry.open_transaction.is_none() {
            entry.open_transaction = Some(header.base_offset);
            self.open.insert((header.base_offset, producer.id.0));
        }
    }

    /// Learns from a marker. Answers with the transaction if it was aborted.
    pub(crate) fn apply_marker(
        &mut self,
        header: &BatchHeader,
        marker: ControlMarker,
    ) -> Option<AbortedTransaction> {
        let producer = header.producer()?;
        let entry = self.entry_at_epoch(producer.id, producer.epoch, header);
        entry.coordinator_epoch = marker.coordinator_epoch;
        let first_offset = entry.open_transaction.take()?;
        self.open.remove(&(first_offset, producer.id.0));
        (marker.kind == ControlKind::Abort).then(|| AbortedTransaction {
            producer: producer.id.0,
            first_offset,
            last_offset: header.last_offset(),
            last_stable_offset: self.first_open_offset().unwrap_or(header.last_offset() + 1),
        })
    }

    fn entry_at_epoch(
        &mut self,
        producer: ProducerId,
        epoch: i16,
        header: &BatchHeader,
    ) -> &mut ProducerEntry {
        let entry = self
            .producers
            .entry(producer.0)
            .or_insert_with(|| ProducerEntry {
                epoch,
                recent: VecDeque::new(),
                open_transaction: None,
                coordinator_epoch: -1,
                last_timestamp: header.max_timestamp,
                last_seen: header.base_offset,
            });
        if epoch > entry.epoch {
            entry.epoch = epoch;
            entry.recent.clear();
        }
        entry.last_timestamp = header.max_timestamp;
        entry.last_seen = header.last_offset();
        entry
    }

    /// Forgets the producers that have been silent longest once there are more than `limit`: an eighth of them, so that this is rare. Those
    /// with an open transaction and continuous queries stay.
    pub(crate) fn forget_beyond(&mut self, limit: usize) {
        if self.producers.len() <= limit {
            return;
        }
        let mut silent: Vec<_> = self
            .producers
            .iter()
            .filter(|(id, entry)| {
                **id < ProducerId::ENGINE_BASE && entry.open_transaction.is_none()
            })
            .map(|(id, entry)| (entry.last_seen, *id))
            .collect();
        silent.sort_unstable();
        let surplus = self.producers.len() - limit + limit / 8;
        for (_, id) in silent.into_iter().take(surplus) {
            self.producers.remove(&id);
        }
    }
}

impl ProducerEntry {
    /// Whether a batch that is not the next one repeats earlier records. `None` when it lies ahead, or partly behind and partly ahead.
    fn repeat_of(&self, base_sequence: i32, records: i32) -> Option<Admission> {
        if self.recent.is_empty() {
            return None;
        }
        let last_sequence = next_sequence(base_sequence, records - 1);
        if !is_behind_or_at(base_sequence, self.last_sequence())
            || !is_behind_or_at(last_sequence, self.last_sequence())
        {
            return None;
        }
        Some(
            match (self.offset_of(base_sequence), self.offset_of(last_sequence)) {
                (Some(base), Some(last)) => Admission::Duplicate(base, last),
                _ => Admission::OldDuplicate,
            },
        )
    }

    fn offset_of(&self, sequence: i32) -> Option<Offset> {
        self.recent
            .iter()
            .find_map(|batch| batch.offset_of(sequence))
    }
}

impl BatchPosition {
    pub(crate) fn of(header: &BatchHeader) -> Self {
        Self {
            base_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
        }
    }

    /// The batch of `offset_delta + 1` records that ends there.
    pub(crate) fn ending_at(last_sequence: i32, last_offset: i64, offset_delta: i32) -> Self {
        Self {
            base_sequence: next_sequence(last_sequence, offset_delta.wrapping_neg()),
            last_sequence,
            base_offset: last_offset - i64::from(offset_delta),
            last_offset,
        }
    }

    pub(crate) fn offset_delta(&self) -> i32 {
        // A batch holds at most `i32::MAX` records.
        i32::try_from(self.last_offset - self.base_offset).unwrap_or(i32::MAX)
    }

    /// Offset of the record with that sequence: both count up by one from record to record.
    pub(crate) fn offset_of(&self, sequence: i32) -> Option<Offset> {
        let delta = i64::from(sequence.wrapping_sub(self.base_sequence) & i32::MAX);
        (delta <= self.last_offset - self.base_offset).then_some(Offset(self.base_offset + delta))
    }
}

/// Sequences wrap, so "behind" is the half of the circle that ends at `newest`.
fn is_behind_or_at(sequence: i32, newest: i32) -> bool {
    newest.wrapping_sub(sequence) & i32::MAX <= i32::MAX / 2
}

#[cfg(test)]
mod tests;
