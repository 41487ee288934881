//! Moves rows to the slot of their key: an in-memory shuffle inside the step.
//!
//! The slot is `murmur2(key) % slots` of the encoded key, as Kafka's default partitioner has it: one column in KAFKA format, several as JSON.
//! Rows without a key go to slot 0.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, UInt32Array},
    datatypes::{DataType, SchemaRef},
};
use highwater_formats::{EncodedRecords, Encoder, FormatSpec, encoder};
use highwater_storage_log::partition_for_key;

use crate::{delta::Delta, error::ExecResult};

/// See the module.
pub struct Exchange {
    keys: Vec<usize>,
    slots: u32,
    encoder: Option<Box<dyn Encoder>>,
    encoded: EncodedRecords,
}

impl Exchange {
    /// By the columns `keys` of `input`, over `slots` slots.
    pub fn new(input: &SchemaRef, keys: &[usize], slots: u32) -> ExecResult<Self> {
        let encoder = if keys.is_empty() || slots <= 1 {
            None
        } else {
            let schema: SchemaRef = Arc::new(input.project(keys)?);
            Some(encoder(&key_format(&schema), schema)?)
        };
        Ok(Self {
            keys: keys.to_vec(),
            slots: slots.max(1),
            encoder,
            encoded: EncodedRecords::new(),
        })
    }

    /// Splits a delta by slot, keeping the order of rows.
    pub fn route(&mut self, delta: Delta) -> ExecResult<Vec<(u32, Delta)>> {
        let Some(encoder) = &mut self.encoder else {
            return Ok(vec![(0, delta)]);
        };
        let columns = delta.columns();
        let keys: Vec<ArrayRef> = self
            .keys
            .iter()
            .map(|&column| Arc::clone(&columns[column]))
            .collect();
        self.encoded.clear();
        encoder.encode(&keys, &mut self.encoded)?;

        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); self.slots as usize];
        for row in 0..delta.rows() {
            let slot = self
                .encoded
                .get(row)
                .map_or(0, |key| partition_for_key(key, self.slots));
            rows[slot as usize].push(row as u32);
        }
        let mut routed = Vec::new();
        for (slot, rows) in rows.into_iter().enumerate() {
            if rows.len() == delta.rows() {
                return Ok(vec![(slot as u32, delta)]);
            }
            if !rows.is_empty() {
                routed.push((slot as u32, delta.take(&UInt32Array::from(rows))?));
            }
        }
        Ok(routed)
    }
}

fn key_format(schema: &SchemaRef) -> FormatSpec {
    match schema.fields().as_ref() {
        [field] => match field.data_type() {
            DataType::Int32
            | DataType::Int64
            | DataType::Float64
            | DataType::Utf8
            | DataType::Binary => FormatSpec::Kafka,
            _ => FormatSpec::Json { wrapped: false },
        },
        _ => FormatSpec::Json { wrapped: true },
    }
}
