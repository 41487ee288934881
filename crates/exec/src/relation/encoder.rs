//! Rows to records.

use arrow::{
    array::{Array, ArrayRef, AsArray},
    buffer::NullBuffer,
    compute,
    datatypes::TimestampMillisecondType,
};
use highwater_formats::{EncodedRecords, Encoder, RecordError, encoder, windowed_key};
use highwater_planner::catalog::Relation;

use super::{RecordLayout, sub_schema};
use crate::{delta::rowtime_type, error::ExecResult};

/// Encodes rows of one relation.
pub struct RelationEncoder {
    layout: RecordLayout,
    key: Option<Box<dyn Encoder>>,
    value: Option<Box<dyn Encoder>>,
}

/// Keys and values of a run of rows.
#[derive(Default)]
pub struct EncodedRows {
    keys: EncodedRecords,
    /// Keys without window bounds, where the record keys have them.
    inner_keys: Option<EncodedRecords>,
    values: EncodedRecords,
    has_keys: bool,
    /// Rows whose only key column is NULL.
    null_keys: Option<NullBuffer>,
    /// Rows that could not be encoded; they have no record.
    pub errors: Vec<RecordError>,
}

impl RelationEncoder {
    /// An encoder for all columns of `relation`.
    pub fn new(relation: &Relation) -> ExecResult<Self> {
        let layout = RecordLayout::new(relation)?;
        let part = |format, columns: &[usize]| -> ExecResult<Option<Box<dyn Encoder>>> {
            if columns.is_empty() {
                return Ok(None);
            }
            Ok(Some(encoder(format, sub_schema(relation, columns)?)?))
        };
        let key = part(&layout.key_format, &layout.key)?;
        let value = part(&layout.value_format, &layout.value)?;
        Ok(Self { layout, key, value })
    }

    /// Encodes rows; `columns` are all columns of the relation in order.
    pub fn encode(&mut self, columns: &[ArrayRef]) -> ExecResult<EncodedRows> {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut encoded = EncodedRows::default();
        if let Some(encoder) = &mut self.key {
            let errors = encoder.encode(&pick(columns, &self.layout.key), &mut encoded.keys)?;
            encoded.errors.extend(errors);
            encoded.has_keys = true;
            if let [only] = self.layout.key[..] {
                // A key of one column that is NULL is no key, however the format writes NULL.
                encoded.null_keys = columns[only].logical_nulls();
            }
        }
        match &mut self.value {
            Some(encoder) => {
                let errors =
                    encoder.encode(&pick(columns, &self.layout.value), &mut encoded.values)?;
                encoded.errors.extend(errors);
            }
            // A row of key columns alone still is a row: an absent value would remove it.
            None => (0..rows).for_each(|_| encoded.values.push_bytes(&[])),
        }
        if let Some(bounds) = self.layout.window {
            let end = bounds.size.is_none().then(|| &columns[bounds.end]);
            encoded.add_window_bounds(&columns[bounds.start], end, rows)?;
        }
        encoded.errors.sort_by_key(|error| error.index);
        encoded.errors.dedup_by_key(|error| error.index);
        Ok(encoded)
    }
}

fn pick(columns: &[ArrayRef], positions: &[usize]) -> Vec<ArrayRef> {
    positions
        .iter()
        .map(|&position| ArrayRef::clone(&columns[position]))
        .collect()
}

impl EncodedRows {
    /// Puts the window's bounds behind each key: the start, or with `ends` both, as sessions have them.
    fn add_window_bounds(
        &mut self,
        starts: &ArrayRef,
        ends: Option<&ArrayRef>,
        rows: usize,
    ) -> ExecResult<()> {
        let millis = |bounds: &ArrayRef| -> ExecResult<_> {
            let bounds = compute::cast(bounds, &rowtime_type())?;
            Ok(bounds.as_primitive::<TimestampMillisecondType>().clone())
        };
        let starts = millis(starts)?;
        let ends = ends.map(millis).transpose()?;
        let mut windowed = EncodedRecords::new();
        let mut key = Vec::new();
        for row in 0..rows {
            key.clear();
            let (inner, start) = (self.keys.get(row).unwrap_or_default(), starts.value(row));
            match &ends {
                Some(ends) => {
                    windowed_key::encode_session_window(inner, start, ends.value(row), &mut key);
                }
                None => windowed_key::encode_time_window(inner, start, &mut key),
            }
            windowed.push_bytes(&key);
        }
        self.inner_keys = Some(std::mem::replace(&mut self.keys, windowed));
        self.has_keys = true;
        Ok(())
    }

    /// The record key of a row.
    pub fn key(&self, row: usize) -> Option<&[u8]> {
        if self.has_keys && !self.is_null_key(row) {
            self.keys.get(row)
        } else {
            None
        }
    }

    fn is_null_key(&self, row: usize) -> bool {
        self.null_keys
            .as_ref()
            .is_some_and(|nulls| nulls.is_null(row))
    }

    /// What places a row: its key without window bounds, so that all windows of a key share a partition.
    pub fn placing_key(&self, row: usize) -> Option<&[u8]> {
        match &self.inner_keys {
            Some(_) if self.is_null_key(row) => None,
            Some(keys) => keys.get(row),
            None => self.key(row),
        }
    }

    /// The record value of a row.
    pub fn value(&self, row: usize) -> Option<&[u8]> {
        self.values.get(row)
    }

    /// Whether the row could be encoded.
    pub fn is_good(&self, row: usize) -> bool {
        self.errors
            .binary_search_by_key(&row, |error| error.index)
            .is_err()
    }
}
