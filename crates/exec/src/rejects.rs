//! The processing log: records and rows that could not be used, as a stream that anyone can query.
//!
//! It is written with the step that met them, in the same transaction as the step's results, so every rejected record stands there once.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use highwater_planner::catalog::QueryId;
use highwater_storage_log::{BatchBuilder, Log};
use serde::Serialize;

use crate::{
    error::{ExecError, ExecResult},
    operator::Rejected,
    producer::{Producer, ProducerPosition, StepBatches},
    workers::Workers,
};

/// The query number under which the engine itself appends; queries are numbered from 1.
pub const ENGINE_QUERY: QueryId = QueryId(0);

/// Bytes of a rejected record's key and value that are kept.
const KEPT_BYTES: usize = 64 << 10;

/// See the module.
pub struct ProcessingLog {
    producer: Producer,
}

/// Bytes of a reason that are kept; it may quote the value.
const KEPT_REASON_BYTES: usize = 4 << 10;

/// One record of the processing log, as JSON.
#[derive(Serialize)]
struct Entry<'a> {
    source: &'a str,
    topic: Option<&'a str>,
    partition: Option<u32>,
    offset: Option<i64>,
    reason: &'a str,
    key: Option<String>,
    value: Option<String>,
}

impl ProcessingLog {
    /// Appends to partition 0 of `topic`.
    pub fn new(topic: &str, positions: &[ProducerPosition]) -> Self {
        Self {
            producer: Producer::new(ENGINE_QUERY, topic, 1, positions),
        }
    }

    /// The producer that appends.
    pub fn producer(&self) -> &Producer {
        &self.producer
    }

    /// The producer that appends.
    pub fn producer_mut(&mut self) -> &mut Producer {
        &mut self.producer
    }

    /// Appends what a step rejected, invisible as yet; see [`Producer::append`].
    pub fn append(&mut self, log: &dyn Log, rejected: &StepBatches) -> ExecResult<()> {
        self.producer.append(log, rejected, Workers::ONE)
    }

    /// Encodes what a step rejected.
    pub fn encode(&mut self, rejected: &[Rejected]) -> ExecResult<StepBatches> {
        let mut batches = Vec::new();
        let mut builder = BatchBuilder::new();
        for record in rejected {
            let bytes = |bytes: &Option<Vec<u8>>| {
                bytes
                    .as_ref()
                    .map(|bytes| BASE64_STANDARD.encode(&bytes[..bytes.len().min(KEPT_BYTES)]))
            };
            let position = record.position.as_ref();
            let entry = Entry {
                source: &record.source,
                topic: position.map(|(partition, _)| &*partition.topic),
                partition: position.map(|(partition, _)| partition.partition.0),
                offset: position.map(|(_, offset)| *offset),
                reason: start_of(&record.reason, KEPT_REASON_BYTES),
                key: bytes(&record.key),
                value: bytes(&record.value),
            };
            let json = serde_json::to_vec(&entry).map_err(|error| {
                ExecError::Internal(format!("could not write a processing log entry: {error}"))
            })?;
            builder.push(record.timestamp, None, Some(&json), &[]);
            if builder.byte_len() >= KEPT_BYTES {
                batches.push((0, builder.split_off()));
            }
        }
        if !builder.is_empty() {
            batches.push((0, builder));
        }
        Ok(self.producer.close(batches, Workers::ONE))
    }
}

/// The first bytes of a text, cut between two characters.
fn start_of(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
