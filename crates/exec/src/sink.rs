//! Records out: a query's changes as records of its sink topic.
//!
//! A stream's rows become records as they are. Of a table's changes the topic tells what each key's row is now: the new row, or a tombstone.

use std::sync::Arc;

use highwater_planner::catalog::{QueryId, Relation, SourceKind};
use highwater_storage_log::{BatchBuilder, Log, partition_for_key};

use crate::{
    delta::Delta,
    error::ExecResult,
    operator::Rejected,
    producer::{Producer, ProducerPosition, StepBatches},
    query::SlotDelta,
    relation::{RelationEncoder, headers},
    workers::{Pool, Workers},
};

/// Bytes after which a batch is closed, well below the log's limit.
const BATCH_BYTES: usize = 256 << 10;

/// Rows that are encoded at a time: what they become stays in the processor's cache until it is in its batch.
const ENCODED_ROWS: usize = 4_096;

/// A longer record is rejected: the log takes batches of 16 MiB at the most.
const MAX_RECORD_BYTES: usize = 8 << 20;

/// See the module.
pub struct Sink {
    relation: Arc<Relation>,
    encoders: Pool<RelationEncoder>,
    producer: Producer,
    workers: Workers,
}

/// What the rows of one slot become.
#[derive(Default)]
struct SlotRecords {
    /// Batches by partition, in the order in which they were filled.
    batches: Vec<(usize, BatchBuilder)>,
    rejected: Vec<Rejected>,
}

impl Sink {
    /// The sink of `query` at the given positions, one a partition.
    pub fn new(
        query: QueryId,
        relation: Arc<Relation>,
        positions: &[ProducerPosition],
        workers: Workers,
    ) -> ExecResult<Self> {
        let encoders = Pool::new(RelationEncoder::new(&relation)?);
        let producer = Producer::new(query, &relation.topic, relation.partitions, positions);
        Ok(Self {
            relation,
            encoders,
            producer,
            workers,
        })
    }

    /// From now on rows of another relation with the same topic are written, by the same producer.
    pub fn set_relation(&mut self, relation: Arc<Relation>) -> ExecResult<()> {
        self.encoders = Pool::new(RelationEncoder::new(&relation)?);
        self.relation = relation;
        Ok(())
    }

    /// The producer that appends.
    pub fn producer(&self) -> &Producer {
        &self.producer
    }

    /// The producer that appends.
    pub fn producer_mut(&mut self) -> &mut Producer {
        &mut self.producer
    }

    /// Appends a step's batches, invisible as yet; see [`Producer::append`].
    pub fn append(&mut self, log: &dyn Log, batches: &StepBatches) -> ExecResult<()> {
        self.producer.append(log, batches, self.workers)
    }

    /// Encodes a step's changes, which stand in the order of their slots. Rows without a key stay in their slot's partition. A row is removed by a
    /// later record than the one that made it: its tombstone is as late as `latest`, the last event time that the step read, if that is known.
    pub fn encode(
        &mut self,
        changes: &[SlotDelta],
        latest: Option<i64>,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<StepBatches> {
        let rows = changes.iter().map(|(_, delta)| delta.rows()).sum();
        let slots: Vec<&[SlotDelta]> = changes
            .chunk_by(|(slot, _), (next, _)| slot == next)
            .collect();
        let this = &*self;
        let encoded = self.workers.map(rows, slots, |changes| {
            this.encoders.with(
                || RelationEncoder::new(&this.relation),
                |encoder| this.encode_slot(encoder, changes, latest),
            )?
        });
        let mut batches = Vec::new();
        for records in encoded {
            let records = records?;
            batches.extend(records.batches);
            rejected.extend(records.rejected);
        }
        Ok(self.producer.close(batches, self.workers))
    }

    fn encode_slot(
        &self,
        encoder: &mut RelationEncoder,
        changes: &[SlotDelta],
        latest: Option<i64>,
    ) -> ExecResult<SlotRecords> {
        let mut out = SlotRecords::default();
        let mut builders: Vec<BatchBuilder> = Vec::new();
        builders.resize_with(self.producer.partition_count(), BatchBuilder::new);
        for (slot, delta) in changes {
            let mut from = 0;
            while from < delta.rows() {
                let rows = delta.whole_changes(from, ENCODED_ROWS);
                let piece = delta.slice(from, rows);
                self.encode_piece(encoder, *slot, &piece, latest, &mut builders, &mut out)?;
                from += rows;
            }
        }
        let rest = builders.into_iter().enumerate();
        out.batches
            .extend(rest.filter(|(_, batch)| !batch.is_empty()));
        Ok(out)
    }

    fn encode_piece(
        &self,
        encoder: &mut RelationEncoder,
        slot: u32,
        delta: &Delta,
        latest: Option<i64>,
        builders: &mut [BatchBuilder],
        out: &mut SlotRecords,
    ) -> ExecResult<()> {
        let is_table = self.relation.kind == SourceKind::Table;
        let diffs = delta.diffs();
        let rows = encoder.encode(delta.columns())?;
        let times = delta.rowtime_millis()?;
        for error in &rows.errors {
            let key = rows.key(error.index);
            out.rejected
                .push(self.rejected(error.reason.clone(), key, times[error.index]));
        }
        let count = builders.len() as u32;
        for (row, &time) in times.iter().enumerate() {
            let removed = diffs.is_some_and(|diffs| diffs[row] < 0);
            // A row that is replaced is told by the row that replaces it.
            let replaced = is_table
                && removed
                && diffs
                    .and_then(|diffs| diffs.get(row + 1))
                    .is_some_and(|&next| next > 0)
                && rows.key(row) == rows.key(row + 1);
            if replaced || !rows.is_good(row) {
                continue;
            }
            let partition = rows
                .placing_key(row)
                .map_or(slot % count, |key| partition_for_key(key, count))
                as usize;
            let key = rows.key(row);
            let value = if removed { None } else { rows.value(row) };
            let bytes = key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len);
            if bytes > MAX_RECORD_BYTES {
                let reason = format!("the record has {bytes} bytes, more than {MAX_RECORD_BYTES}");
                out.rejected.push(self.rejected(reason, key, time));
                continue;
            }
            let time = match latest.filter(|_| removed && is_table) {
                Some(latest) => time.max(latest),
                None => time,
            };
            let builder = &mut builders[partition];
            match delta.headers() {
                None => builder.push(time, key, value, &[]),
                Some(headers) => {
                    let headers = headers::of_row(headers, row);
                    let headers: Vec<(&str, Option<&[u8]>)> = headers
                        .iter()
                        .map(|(name, value)| (name.as_str(), value.as_deref()))
                        .collect();
                    builder.push(time, key, value, &headers);
                }
            }
            if builder.byte_len() >= BATCH_BYTES {
                out.batches.push((partition, builder.split_off()));
            }
        }
        Ok(())
    }

    fn rejected(&self, reason: String, key: Option<&[u8]>, timestamp: i64) -> Rejected {
        Rejected {
            source: self.relation.name.clone(),
            position: None,
            reason,
            key: key.map(<[u8]>::to_vec),
            value: None,
            timestamp,
        }
    }
}
