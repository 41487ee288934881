//! A batch of changes: what flows between operators.
//!
//! The batch's last column is the hidden event time of each row, `Timestamp(Millisecond)`, never NULL. `diffs` says whether a row is added
//! (+1) or taken back (-1). A stream only adds; there, -1 marks a row whose record has no value: projections pass it on, so that a copy of a
//! stream is a whole one, and whatever needs the row's columns leaves it out ([`Delta::valued`]).
//!
//! INVARIANT: `diffs`, when present, is as long as the batch, and an updated row of a table is its -1 directly followed by its +1.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, BooleanArray, TimestampMillisecondArray, UInt32Array},
    compute,
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
    record_batch::{RecordBatch, RecordBatchOptions},
};

use crate::error::{ExecError, ExecResult};

/// Name of the hidden event-time column; no identifier can collide with it.
const HIDDEN_ROWTIME: &str = "\u{1}rowtime";

/// Changes with the same columns.
#[derive(Debug, Clone)]
pub struct Delta {
    batch: RecordBatch,
    diffs: Option<Arc<[i8]>>,
    /// What each row of a stream hands on of its record's headers; `None` when no row has any.
    headers: Option<ArrayRef>,
}

impl Delta {
    /// Puts a batch (event time last) and its diffs together.
    pub fn new(batch: RecordBatch, diffs: Option<Arc<[i8]>>) -> Self {
        debug_assert!(
            diffs
                .as_ref()
                .is_none_or(|diffs| diffs.len() == batch.num_rows()),
            "one diff per row"
        );
        Self {
            batch,
            diffs,
            headers: None,
        }
    }

    /// The same rows with these headers.
    pub fn with_headers(self, headers: Option<ArrayRef>) -> Self {
        debug_assert!(
            headers
                .as_ref()
                .is_none_or(|headers| headers.len() == self.rows()),
            "one list of headers per row"
        );
        Self { headers, ..self }
    }

    /// The headers of each row, if any row has some.
    pub fn headers(&self) -> Option<&ArrayRef> {
        self.headers.as_ref()
    }

    /// Puts columns and event times together under `schema`, which is without the hidden column.
    pub fn from_columns(
        schema: &SchemaRef,
        mut columns: Vec<ArrayRef>,
        rowtime: ArrayRef,
        diffs: Option<Arc<[i8]>>,
    ) -> ExecResult<Self> {
        let rows = rowtime.len();
        columns.push(rowtime);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(with_rowtime(schema), columns, &options)?;
        Ok(Self::new(batch, diffs))
    }

    /// Number of changes.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The batch, event time last.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// +1 or -1 per row; `None` when every row is added.
    pub fn diffs(&self) -> Option<&[i8]> {
        self.diffs.as_deref()
    }

    /// Shared form of [`Delta::diffs`].
    pub fn shared_diffs(&self) -> Option<Arc<[i8]>> {
        self.diffs.clone()
    }

    /// The visible columns.
    pub fn columns(&self) -> &[ArrayRef] {
        let columns = self.batch.columns();
        &columns[..columns.len() - 1]
    }

    /// Event times.
    pub fn rowtime(&self) -> &ArrayRef {
        self.batch
            .columns()
            .last()
            .expect("a delta always carries its event time")
    }

    /// Event times in milliseconds.
    pub fn rowtime_millis(&self) -> ExecResult<&[i64]> {
        let times = self
            .rowtime()
            .as_any()
            .downcast_ref::<TimestampMillisecondArray>()
            .ok_or_else(|| {
                ExecError::Internal("event time has another type than milliseconds".into())
            })?;
        Ok(times.values())
    }

    /// Part of the rows, without copying them.
    pub fn slice(&self, from: usize, rows: usize) -> Self {
        Self {
            batch: self.batch.slice(from, rows),
            diffs: self
                .diffs
                .as_ref()
                .map(|diffs| Arc::from(&diffs[from..from + rows])),
            headers: self
                .headers
                .as_ref()
                .map(|headers| headers.slice(from, rows)),
        }
    }

    /// Some number of rows from `from` on, about `wanted`, that do not end between the -1 and the +1 of an updated row.
    pub fn whole_changes(&self, from: usize, wanted: usize) -> usize {
        let end = from.saturating_add(wanted);
        if end >= self.rows() {
            return self.rows() - from;
        }
        let splits = self
            .diffs()
            .is_some_and(|diffs| diffs[end - 1] < 0 && diffs[end] > 0);
        wanted + usize::from(splits)
    }

    /// The rows at `indices`, in that order.
    pub fn take(&self, indices: &UInt32Array) -> ExecResult<Self> {
        let batch = compute::take_record_batch(&self.batch, indices)?;
        let diffs = self.diffs.as_ref().map(|diffs| {
            indices
                .values()
                .iter()
                .map(|&index| diffs[index as usize])
                .collect::<Arc<[i8]>>()
        });
        let taken = |headers: &ArrayRef| compute::take(headers, indices, None);
        let headers = self.headers.as_ref().map(taken).transpose()?;
        Ok(Self::new(batch, diffs).with_headers(headers))
    }

    /// The rows for which `keep` is TRUE.
    pub fn filter(&self, keep: &BooleanArray) -> ExecResult<Self> {
        let batch = compute::filter_record_batch(&self.batch, keep)?;
        let diffs = self.diffs.as_ref().map(|diffs| {
            diffs
                .iter()
                .enumerate()
                .filter(|(row, _)| keep.is_valid(*row) && keep.value(*row))
                .map(|(_, &diff)| diff)
                .collect::<Arc<[i8]>>()
        });
        let kept = |headers: &ArrayRef| compute::filter(headers, keep);
        let headers = self.headers.as_ref().map(kept).transpose()?;
        Ok(Self::new(batch, diffs).with_headers(headers))
    }

    /// The rows of a stream that have a value.
    pub fn valued(self) -> ExecResult<Self> {
        let Some(diffs) = &self.diffs else {
            return Ok(self);
        };
        let keep: BooleanArray = diffs.iter().map(|&diff| Some(diff > 0)).collect();
        let valued = self.filter(&keep)?;
        Ok(Self {
            diffs: None,
            ..valued
        })
    }

    /// Joins deltas of one schema, in order.
    pub fn concat(deltas: &[Delta]) -> ExecResult<Option<Self>> {
        let Some(first) = deltas.first() else {
            return Ok(None);
        };
        if deltas.len() == 1 {
            return Ok(Some(first.clone()));
        }
        let schema = first.batch.schema();
        let batch = compute::concat_batches(&schema, deltas.iter().map(|delta| &delta.batch))?;
        let diffs = deltas.iter().any(|delta| delta.diffs.is_some()).then(|| {
            deltas
                .iter()
                .flat_map(|delta| match &delta.diffs {
                    Some(diffs) => diffs.to_vec(),
                    None => vec![1; delta.rows()],
                })
                .collect::<Arc<[i8]>>()
        });
        Ok(Some(Self::new(batch, diffs)))
    }
}

/// Type of the hidden event-time column.
pub fn rowtime_type() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, None)
}

/// `schema` with the hidden event time behind its columns.
pub fn with_rowtime(schema: &SchemaRef) -> SchemaRef {
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().map(nullable).collect();
    fields.push(Arc::new(Field::new(HIDDEN_ROWTIME, rowtime_type(), false)));
    Arc::new(Schema::new(fields))
}

/// Operators fill NULLs where an expression fails, so no column may promise to have none.
fn nullable(field: &Arc<Field>) -> Arc<Field> {
    if field.is_nullable() {
        Arc::clone(field)
    } else {
        Arc::new(field.as_ref().clone().with_nullable(true))
    }
}

/// Event times as a column.
pub fn rowtime_array(millis: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampMillisecondArray::from(millis))
}
