//! Moves rows to the slot of their key: an in-memory shuffle inside the step.
//!
//! The slot is `murmur2(key) % slots` of the encoded key, as Kafka's default partitioner has it. Rows without a key go to slot 0.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, UInt32Array},
    datatypes::{Field, Schema, SchemaRef},
};
use highwater_formats::{EncodedRecords, Encoder, FormatSpec, encoder};
use highwater_planner::catalog::{FormatName, Relation};
use highwater_storage_log::partition_for_key;

use crate::{
    delta::Delta,
    error::ExecResult,
    relation::{key_format_spec, placing_columns},
    workers::Pool,
};

/// See the module.
pub struct Exchange {
    keys: Vec<usize>,
    slots: u32,
    placing: Option<Placing>,
}

/// How keys become bytes.
struct Placing {
    format: FormatSpec,
    schema: SchemaRef,
    encoders: Pool<KeyEncoder>,
}

struct KeyEncoder {
    encoder: Box<dyn Encoder>,
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
        let placing = if keys.is_empty() || slots <= 1 {
            None
        } else {
            let fields: Vec<Field> = keys
                .iter()
                .zip(names)
                .map(|(&column, name)| input.field(column).clone().with_name(name))
                .collect();
            let format = key_format_spec(format, keys.len())?;
            let schema: SchemaRef = Arc::new(Schema::new(fields));
            Some(Placing {
                encoders: Pool::new(KeyEncoder::new(&format, &schema)?),
                format,
                schema,
            })
        };
        Ok(Self {
            keys: keys.to_vec(),
            slots: slots.max(1),
            placing,
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
    pub fn route(&self, delta: Delta) -> ExecResult<Vec<(u32, Delta)>> {
        let Some(placing) = &self.placing else {
            return Ok(vec![(0, delta)]);
        };
        let rows = placing.encoders.with(
            || KeyEncoder::new(&placing.format, &placing.schema),
            |encoder| self.rows_by_slot(&delta, encoder),
        )??;
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

    fn rows_by_slot(&self, delta: &Delta, encoder: &mut KeyEncoder) -> ExecResult<Vec<Vec<u32>>> {
        let columns = delta.columns();
        let keys: Vec<ArrayRef> = self
            .keys
            .iter()
            .map(|&column| Arc::clone(&columns[column]))
            .collect();
        let KeyEncoder { encoder, encoded } = encoder;
        encoded.clear();
        encoder.encode(&keys, encoded)?;
        let share = delta.rows() / self.slots as usize;
        let mut rows: Vec<Vec<u32>> = Vec::new();
        rows.resize_with(self.slots as usize, || {
            Vec::with_capacity(share + share / 8)
        });
        for row in 0..delta.rows() {
            let slot = encoded
                .get(row)
                .map_or(0, |key| partition_for_key(key, self.slots));
            rows[slot as usize].push(row as u32);
        }
        Ok(rows)
    }
}

impl KeyEncoder {
    fn new(format: &FormatSpec, schema: &SchemaRef) -> ExecResult<Self> {
        Ok(Self {
            encoder: encoder(format, Arc::clone(schema))?,
            encoded: EncodedRecords::new(),
        })
    }
}
