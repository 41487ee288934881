//! A declared table: each record replaces the row of its key, a record without a value removes it.
//!
//! The topic says only what a row is now; what it was is looked up in the kept table, so that readers get -1 old, +1 new. Within a step only
//! the last record of a key counts.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{ArrayRef, UInt32Array},
    compute,
    datatypes::SchemaRef,
};

use super::SlotRows;
use crate::{
    delta::Delta,
    error::{ExecError, ExecResult},
    state::TableStore,
};

/// Turns records of one partition into changes of `table`. `schema` is the relation's.
pub fn upsert(
    rows: &SlotRows,
    tombstones: &[bool],
    schema: &SchemaRef,
    table: &TableStore,
) -> ExecResult<Option<Delta>> {
    let columns = rows
        .columns
        .iter()
        .map(|column| {
            column
                .clone()
                .ok_or_else(|| ExecError::Internal("a table source lacks a column".into()))
        })
        .collect::<ExecResult<Vec<ArrayRef>>>()?;
    let Some(keys) = table.codec().keys(&columns)? else {
        return Err(ExecError::Internal("a declared table has no key".into()));
    };
    let mut last: BTreeMap<&[u8], usize> = BTreeMap::new();
    for (row, key) in keys.iter().enumerate() {
        last.insert(key.data(), row);
    }

    let mut old_rows: Vec<(&[u8], Vec<u8>)> = Vec::new();
    let mut new_rows: Vec<u32> = Vec::new();
    // Where each change comes from: (0, position among the old rows) or (1, position among the new ones).
    let mut sides: Vec<(usize, usize)> = Vec::new();
    let mut diffs: Vec<i8> = Vec::new();
    for (key, row) in last {
        if let Some(value) = table.get(key)? {
            sides.push((0, old_rows.len()));
            diffs.push(-1);
            old_rows.push((key, value));
        }
        if !tombstones[row] {
            sides.push((1, new_rows.len()));
            diffs.push(1);
            new_rows.push(row as u32);
        }
    }
    if sides.is_empty() {
        return Ok(None);
    }
    let old = table
        .codec()
        .decode(old_rows.iter().map(|(key, value)| (*key, value.as_slice())))?;
    let new_rows = UInt32Array::from(new_rows);
    let mut changed = Vec::with_capacity(columns.len() + 1);
    for (position, column) in columns.iter().chain([&rows.rowtime]).enumerate() {
        let new = compute::take(column, &new_rows, None)?;
        changed.push(compute::interleave(
            &[old.column(position).as_ref(), new.as_ref()],
            &sides,
        )?);
    }
    let rowtime = changed
        .pop()
        .ok_or_else(|| ExecError::Internal("a table row has no event time".into()))?;
    let diffs = diffs.contains(&-1).then(|| Arc::from(diffs));
    Delta::from_columns(schema, changed, rowtime, diffs).map(Some)
}
