//! Records out: a query's changes as records of its sink topic.
//!
//! A stream's rows become records as they are. Of a table's changes the topic tells what each key's row is now: the new row, or a tombstone.

use std::sync::Arc;

use highwater_planner::catalog::{QueryId, Relation, SourceKind};
use highwater_storage_log::{BatchBuilder, partition_for_key};

use crate::{
    error::ExecResult,
    operator::Rejected,
    producer::{Producer, ProducerPosition, StepBatches},
    query::SlotDelta,
    relation::{RelationEncoder, headers},
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
    encoder: RelationEncoder,
    producer: Producer,
}

impl Sink {
    /// The sink of `query` at the given positions, one a partition.
    pub fn new(
        query: QueryId,
        relation: Arc<Relation>,
        positions: &[ProducerPosition],
    ) -> ExecResult<Self> {
        let encoder = RelationEncoder::new(&relation)?;
        let producer = Producer::new(query, &relation.topic, relation.partitions, positions);
        Ok(Self {
            relation,
            encoder,
            producer,
        })
    }

    /// From now on rows of another relation with the same topic are written, by the same producer.
    pub fn set_relation(&mut self, relation: Arc<Relation>) -> ExecResult<()> {
        self.encoder = RelationEncoder::new(&relation)?;
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

    /// Encodes a step's changes. Rows without a key stay in their slot's partition. A row is removed by a later record than the one that made it:
    /// its tombstone is as late as `latest`, the last event time that the step read, if that is known.
    pub fn encode(
        &mut self,
        changes: &[SlotDelta],
        latest: Option<i64>,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<StepBatches> {
        let mut out = StepBatches::default();
        match self.encode_into(changes, latest, rejected, &mut out) {
            Ok(()) => Ok(out),
            Err(error) => {
                self.producer.take_back(&out);
                Err(error)
            }
        }
    }

    fn encode_into(
        &mut self,
        changes: &[SlotDelta],
        latest: Option<i64>,
        rejected: &mut Vec<Rejected>,
        out: &mut StepBatches,
    ) -> ExecResult<()> {
        let mut builders: Vec<Option<BatchBuilder>> = Vec::new();
        builders.resize_with(self.producer.partition_count(), || None);
        let pieces = changes.iter().flat_map(|(slot, delta)| {
            let mut from = 0;
            std::iter::from_fn(move || {
                let rows = delta.whole_changes(from, ENCODED_ROWS);
                let piece = (rows > 0).then(|| delta.slice(from, rows));
                from += rows;
                piece.map(|piece| (slot, piece))
            })
        });
        for (slot, delta) in pieces {
            let is_table = self.relation.kind == SourceKind::Table;
            let diffs = delta.diffs();
            let rows = self.encoder.encode(delta.columns())?;
            let times = delta.rowtime_millis()?;
            for error in &rows.errors {
                rejected.push(Rejected {
                    source: self.relation.name.clone(),
                    position: None,
                    reason: error.reason.clone(),
                    key: rows.key(error.index).map(<[u8]>::to_vec),
                    value: None,
                    timestamp: times[error.index],
                });
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
                    .map_or(*slot % count, |key| partition_for_key(key, count))
                    as usize;
                let value = if removed { None } else { rows.value(row) };
                let bytes = rows.key(row).map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len);
                if bytes > MAX_RECORD_BYTES {
                    rejected.push(Rejected {
                        source: self.relation.name.clone(),
                        position: None,
                        reason: format!(
                            "the record has {bytes} bytes, more than {MAX_RECORD_BYTES}"
                        ),
                        key: rows.key(row).map(<[u8]>::to_vec),
                        value: None,
                        timestamp: time,
                    });
                    continue;
                }
                let time = match latest.filter(|_| removed && is_table) {
                    Some(latest) => time.max(latest),
                    None => time,
                };
                let builder = builders[partition].get_or_insert_with(BatchBuilder::new);
                let headers = delta
                    .headers()
                    .map(|headers| headers::of_row(headers, row))
                    .unwrap_or_default();
                let headers: Vec<(&str, Option<&[u8]>)> = headers
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_deref()))
                    .collect();
                builder.push(time, rows.key(row), value, &headers);
                if builder.byte_len() >= BATCH_BYTES {
                    self.producer.close(partition, builder, out);
                }
            }
        }
        for (partition, builder) in builders.iter_mut().enumerate() {
            if let Some(builder) = builder.as_mut().filter(|builder| !builder.is_empty()) {
                self.producer.close(partition, builder, out);
            }
        }
        Ok(())
    }
}
