//! One continuous query as a producer: consecutive sequences in each partition, one open transaction a step.
//!
//! A step's batches stay invisible until the step commits, which writes the commit markers. A step that runs again after a crash makes the same
//! batches with the same sequences, so what the log already holds is not appended twice.
//!
//! INVARIANT: between two commits, all that a producer appended belongs to one step (or to one backfill).

use highwater_planner::catalog::QueryId;
use highwater_storage_log::{
    BatchBuilder, EncodedBatch, Log, Offset, ProducerFields, ProducerId, TopicPartition,
};
use serde::{Deserialize, Serialize};

use crate::{error::ExecResult, workers::Workers};

/// Where a producer stands in one partition: part of every checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducerPosition {
    /// Producer epoch.
    pub epoch: i16,
    /// Sequence of the next record.
    pub next_sequence: i32,
}

/// Batches of one step, made while it ran, to be appended once the step before has committed.
#[derive(Debug, Default)]
pub struct StepBatches {
    batches: Vec<(usize, EncodedBatch)>,
}

impl StepBatches {
    /// Whether there is nothing to append.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    fn records(&self) -> usize {
        let records = |(_, batch): &(usize, EncodedBatch)| batch.record_count();
        self.batches.iter().map(records).sum()
    }
}

/// See the module.
pub struct Producer {
    id: ProducerId,
    partitions: Vec<ProducerPartition>,
}

struct ProducerPartition {
    name: TopicPartition,
    position: ProducerPosition,
    /// Appended, not committed.
    open: bool,
    /// What is open is to be aborted, and the log could not do that yet.
    abandoned: bool,
    /// Behind the last record that is appended.
    end: i64,
}

impl ProducerPartition {
    fn append(&mut self, log: &dyn Log, id: ProducerId, batch: &EncodedBatch) -> ExecResult<()> {
        let appended = log.append(&self.name, batch.clone())?;
        self.end = self.end.max(appended.last_offset.0 + 1);
        // A batch that was there already may be committed already; what is open then belongs to a later step.
        self.open |= !appended.duplicate || {
            let state = log.producer(&self.name, id)?;
            let open = state.and_then(|state| state.open_transaction);
            open.is_some_and(|first| first <= appended.last_offset)
        };
        Ok(())
    }
}

impl Producer {
    /// The producer of `query` on all partitions of `topic`, at the given positions; where there is none, at the beginning.
    pub fn new(
        query: QueryId,
        topic: &str,
        partitions: u32,
        positions: &[ProducerPosition],
    ) -> Self {
        let start = ProducerPosition {
            epoch: 0,
            next_sequence: 0,
        };
        let partitions = (0..partitions)
            .map(|partition| ProducerPartition {
                name: TopicPartition::new(topic, partition),
                position: positions.get(partition as usize).copied().unwrap_or(start),
                open: false,
                abandoned: false,
                end: 0,
            })
            .collect();
        Self {
            id: producer_id(query),
            partitions,
        }
    }

    /// Number of partitions.
    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    /// Where it stands, one a partition.
    pub fn positions(&self) -> Vec<ProducerPosition> {
        self.partitions
            .iter()
            .map(|partition| partition.position)
            .collect()
    }

    /// Ends the batches of a step, which have their partitions beside them: gives each its sequence, in order.
    pub fn close(&mut self, batches: Vec<(usize, BatchBuilder)>, workers: Workers) -> StepBatches {
        let records = batches.iter().map(|(_, batch)| batch.len()).sum();
        let numbered: Vec<(usize, BatchBuilder, ProducerFields)> = batches
            .into_iter()
            .map(|(partition, batch)| {
                let position = &mut self.partitions[partition].position;
                let fields = ProducerFields {
                    id: self.id,
                    epoch: position.epoch,
                    base_sequence: position.next_sequence,
                    transactional: true,
                };
                position.next_sequence = advance(position.next_sequence, batch.len());
                (partition, batch, fields)
            })
            .collect();
        let batches = workers.map(records, numbered, |(partition, mut batch, fields)| {
            (partition, batch.finish(Some(fields)))
        });
        StepBatches { batches }
    }

    /// Takes back the sequences of batches that will never be appended: the step that made them failed.
    pub fn take_back(&mut self, batches: &StepBatches) {
        for (partition, batch) in &batches.batches {
            let position = &mut self.partitions[*partition].position;
            position.next_sequence = go_back(position.next_sequence, batch.record_count());
        }
    }

    /// Appends a step's batches, invisible as yet. After an error it can be called again: what was appended is known by its sequence.
    pub fn append(
        &mut self,
        log: &dyn Log,
        batches: &StepBatches,
        workers: Workers,
    ) -> ExecResult<()> {
        let mut by_partition: Vec<Vec<&EncodedBatch>> = vec![Vec::new(); self.partitions.len()];
        for (partition, batch) in &batches.batches {
            by_partition[*partition].push(batch);
        }
        let pieces: Vec<_> = self
            .partitions
            .iter_mut()
            .zip(by_partition)
            .filter(|(_, batches)| !batches.is_empty())
            .collect();
        let id = self.id;
        let done = workers.map(batches.records(), pieces, |(partition, batches)| {
            batches
                .into_iter()
                .try_for_each(|batch| partition.append(log, id, batch))
        });
        done.into_iter().collect()
    }

    /// Makes what was appended visible. What was abandoned is aborted instead; true if something was, see [`Self::abandon`].
    pub fn commit(&mut self, log: &dyn Log) -> ExecResult<bool> {
        if self.partitions.iter().any(|partition| partition.abandoned) {
            self.abandon(log)?;
            return Ok(true);
        }
        for partition in self
            .partitions
            .iter_mut()
            .filter(|partition| partition.open)
        {
            log.end_transaction(&partition.name, self.id, partition.position.epoch, true)?;
            partition.open = false;
        }
        Ok(false)
    }

    /// Takes back what was appended between two steps, and goes on with a new epoch where that left a gap in the sequences. A checkpoint has
    /// to hold the new epoch before the next step is journaled. After an error it can be called again, and nothing of it is ever committed.
    pub fn abandon(&mut self, log: &dyn Log) -> ExecResult<()> {
        for partition in &mut self.partitions {
            partition.abandoned |= partition.open;
        }
        self.abort(log)?;
        self.settle(log)?;
        Ok(())
    }

    fn abort(&mut self, log: &dyn Log) -> ExecResult<()> {
        for partition in self
            .partitions
            .iter_mut()
            .filter(|partition| partition.open)
        {
            log.end_transaction(&partition.name, self.id, partition.position.epoch, false)?;
            partition.open = false;
        }
        Ok(())
    }

    /// Tells where it stood at a checkpoint, before a replay appends on: what [`Self::appended`] answers until then.
    pub fn stood_at(&mut self, ends: &[Offset]) {
        for (partition, end) in self.partitions.iter_mut().zip(ends) {
            partition.end = end.0;
        }
    }

    /// Up to where (exclusive) each partition holds what was appended so far. Once that is committed, it is what readers of the topic see at
    /// this step.
    pub fn appended(&self) -> impl Iterator<Item = i64> {
        self.partitions.iter().map(|partition| partition.end)
    }

    /// Up to where each partition must be on disk before a checkpoint may rely on it.
    pub fn ends(&self, log: &dyn Log) -> ExecResult<Vec<(TopicPartition, Offset)>> {
        self.partitions
            .iter()
            .map(|partition| {
                Ok((
                    partition.name.clone(),
                    log.offsets(&partition.name)?.log_end,
                ))
            })
            .collect()
    }

    /// Before a replay: commits what a checkpoint holds and nothing has followed. A change of the queries is committed after its checkpoint, and where a
    /// power cut took that, the steps behind it would go into the same transaction, one offset before where the journal tells.
    pub fn commit_checkpointed(&self, log: &dyn Log) -> ExecResult<()> {
        for partition in &self.partitions {
            let Some(state) = log.producer(&partition.name, self.id)? else {
                continue;
            };
            let is_last = state.epoch == partition.position.epoch
                && advance(state.last_sequence, 1) == partition.position.next_sequence;
            if is_last && state.open_transaction.is_some() {
                log.end_transaction(&partition.name, self.id, state.epoch, true)?;
            }
        }
        Ok(())
    }

    /// After a replay: what the last journaled step appended is committed; what comes from a step that is not in the journal is aborted, and
    /// the producer goes on with a new epoch. Answers whether anything was aborted.
    pub fn settle(&mut self, log: &dyn Log) -> ExecResult<bool> {
        let mut aborted = false;
        for partition in &mut self.partitions {
            partition.open = false;
            partition.abandoned = false;
            partition.end = log.offsets(&partition.name)?.log_end.0;
            let Some(state) = log.producer(&partition.name, self.id)? else {
                continue;
            };
            let known = state.epoch == partition.position.epoch
                && advance(state.last_sequence, 1) == partition.position.next_sequence;
            if state.open_transaction.is_some() {
                log.end_transaction(&partition.name, self.id, state.epoch, known)?;
            }
            if !known {
                partition.position = ProducerPosition {
                    epoch: state.epoch.wrapping_add(1).max(0),
                    next_sequence: 0,
                };
                aborted = true;
            }
        }
        Ok(aborted)
    }
}

/// The producer that a query appends as.
pub fn producer_id(query: QueryId) -> ProducerId {
    ProducerId(ProducerId::ENGINE_BASE + query.0 as i64)
}

/// The query that appends as a producer; `None` for a producer that is no query's.
pub fn query_of(producer: ProducerId) -> Option<QueryId> {
    let number = producer.0.checked_sub(ProducerId::ENGINE_BASE)?;
    u64::try_from(number).ok().map(QueryId)
}

/// Sequences wrap to 0 behind the highest one, as Kafka's do.
pub fn advance(sequence: i32, records: usize) -> i32 {
    let next = i64::from(sequence) + records as i64;
    (next % (i64::from(i32::MAX) + 1)) as i32
}

/// The inverse of [`advance`].
fn go_back(sequence: i32, records: usize) -> i32 {
    let before = i64::from(sequence) - records as i64;
    before.rem_euclid(i64::from(i32::MAX) + 1) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_and_go_back_the_same_way() {
        assert_eq!(advance(i32::MAX - 1, 3), 1);
        for (sequence, records) in [(0, 1), (7, 7), (i32::MAX, 2), (i32::MAX - 1, 100_000)] {
            assert_eq!(go_back(advance(sequence, records), records), sequence);
        }
    }
}
