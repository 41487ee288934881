//! Moves rows to the slot of their key: an in-memory shuffle inside the step.
//!
//! The slot is `murmur2(key) % slots` of the encoded key, as Kafka's default partitioner has it. Rows without a key go to slot 0.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, UInt32Array},
    datatypes::{Field, Schema, SchemaRef},
};
use highwater_formats::{EncodedRecords, Encoder, encoder};
use highwater_planner::catalog::{FormatName, Relation};
use highwater_storage_log::partition_for_key;

use crate::{
    delta::Delta,
    error::ExecResult,
    relation::{key_format_spec, placing_columns},
};

/// See the module.
pub struct Exchange {
    keys: Vec<usize>,
    slots: u32,
    encoder: Option<Box<dyn Encoder>>,
    encoded: EncodedRecords,
}

impl Exchange {
    /// By the columns `keys` of `input`, encoded in `format` under `names`, over `slots` slots.
    pub fn new(
        input: &SchemaRef,
        keys: &[usize],
        names: &[String],
        format: &FormatName,
        slots: u32,
    ) -> ExecResult<Self> {
        let encoder = if keys.is_empty() || slots <= 1 {
            None
        } else {
            let fields: Vec<Field> = keys
                .iter()
                .zip(names)
                .map(|(&column, name)| input.field(column).clone().with_name(name))
                .collect();
            Some(encoder(
                &key_format_spec(format, keys.len())?,
                Arc::new(Schema::new(fields)),
            )?)
        };
        Ok(Self {
            keys: keys.to_vec(),
            slots: slots.max(1),
            encoder,
            encoded: EncodedRecords::new(),
        })
    }

    /// Places rows of a relation as its topic does.
    pub fn of_relation(relation: &Relation) -> ExecResult<Self> {
        let keys = placing_columns(relation);
        let names: Vec<String> = keys
            .iter()
            .map(|&column| relation.columns[column].name.clone())
            .collect();
        Self::new(
            &relation.schema(),
            &keys,
            &names,
            &relation.key_format,
            relation.partitions,
        )
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
