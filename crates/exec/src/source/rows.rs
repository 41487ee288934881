//! Rows of a relation as its readers get them.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Int32Array, Int64Array},
    datatypes::SchemaRef,
};

use crate::{
    delta::Delta,
    error::{ExecError, ExecResult},
};

/// Rows of one slot of a relation in one step.
#[derive(Debug, Clone)]
pub struct SlotRows {
    /// Slot; the partition for rows that come from a topic.
    pub slot: u32,
    /// By position in the relation; `None` where no reader asked for it.
    pub columns: Vec<Option<ArrayRef>>,
    /// Event times.
    pub rowtime: ArrayRef,
    /// Offsets, for rows that come from a topic.
    pub offsets: Option<Arc<[i64]>>,
    /// +1 or -1 per row, see [`Delta`]; `None` for all +1.
    pub diffs: Option<Arc<[i8]>>,
    /// Headers that the rows of a stream hand on.
    pub headers: Option<ArrayRef>,
}

impl SlotRows {
    /// What a query wrote to a relation, for the queries that read it.
    pub fn from_delta(slot: u32, delta: &Delta) -> Self {
        Self {
            slot,
            columns: delta.columns().iter().cloned().map(Some).collect(),
            rowtime: Arc::clone(delta.rowtime()),
            offsets: None,
            diffs: delta.shared_diffs(),
            headers: delta.headers().cloned(),
        }
    }
}

/// The columns of a source node: positions in the relation, then the pseudo columns. With `marks` the diffs come along.
pub fn source_delta(
    rows: &SlotRows,
    projection: &[usize],
    schema: &SchemaRef,
    marks: bool,
) -> ExecResult<Delta> {
    let declared = rows.columns.len();
    let count = rows.rowtime.len();
    let columns = projection
        .iter()
        .map(|&column| -> ExecResult<ArrayRef> {
            match column.checked_sub(declared) {
                None => rows.columns[column].clone().ok_or_else(|| {
                    ExecError::Internal("a source lacks a column that its reader wants".into())
                }),
                Some(0) => Ok(Arc::clone(&rows.rowtime)),
                Some(1) => Ok(Arc::new(Int32Array::from_value(rows.slot as i32, count))),
                Some(_) => Ok(match &rows.offsets {
                    Some(offsets) => Arc::new(Int64Array::from(offsets.to_vec())),
                    None => arrow::array::new_null_array(&arrow::datatypes::DataType::Int64, count),
                }),
            }
        })
        .collect::<ExecResult<Vec<_>>>()?;
    let delta = Delta::from_columns(
        schema,
        columns,
        Arc::clone(&rows.rowtime),
        rows.diffs.clone().filter(|_| marks),
    )?;
    Ok(delta.with_headers(rows.headers.clone()))
}
