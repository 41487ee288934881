//! The columns that a change has beside its own: what it means to the one who follows (`op`), and the step that it belongs to.

use std::{cmp::Ordering, sync::Arc};

use arrow::{
    array::{ArrayRef, BooleanArray, DynComparator, Int64Array, StringArray, make_comparator},
    compute::SortOptions,
    datatypes::{DataType, Field, Schema, SchemaRef},
    record_batch::RecordBatch,
};
use highwater_exec::ChangeBatch;
use highwater_planner::{catalog::SourceKind, dataflow::DataflowPlan};

use crate::{session::SessionResult, sqlstate::SqlError};

/// Name of the column.
const OP: &str = "op";
/// Number of the step that a row belongs to.
const STEP: &str = "step";
/// Whether a row is the last one of its step.
const STEP_ENDS: &str = "step_ends";

/// Turns changes into the rows that a client gets.
pub struct ChangeRows {
    schema: SchemaRef,
    with_step: bool,
    /// For tables: the key columns, by which an update is told from a deletion that an insertion happens to follow.
    key: Option<Vec<usize>>,
}

impl ChangeRows {
    /// For the result of a plan: a stream's rows as they are, a table's with `op` first. With the step, its columns stand before these.
    pub fn new(plan: &DataflowPlan, with_step: bool) -> Self {
        let mut fields: Vec<Arc<Field>> = Vec::new();
        if with_step {
            fields.push(Arc::new(Field::new(STEP, DataType::Int64, true)));
            fields.push(Arc::new(Field::new(STEP_ENDS, DataType::Boolean, false)));
        }
        let key = match plan.kind {
            SourceKind::Stream => None,
            SourceKind::Table => {
                fields.push(Arc::new(Field::new(OP, DataType::Utf8, false)));
                Some(plan.key.clone())
            }
        };
        fields.extend(plan.root().schema.fields().iter().cloned());
        Self {
            schema: Arc::new(Schema::new(fields)),
            with_step,
            key,
        }
    }

    /// Columns of the rows.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The rows of one step.
    pub fn convert(&self, changes: &ChangeBatch) -> SessionResult<RecordBatch> {
        let rows = changes.rows.num_rows();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if self.with_step {
            let step = changes.step.and_then(|step| i64::try_from(step).ok());
            let ends = |row| changes.ends_step && row + 1 == rows;
            columns.push(Arc::new(Int64Array::from(vec![step; rows])));
            columns.push(Arc::new(BooleanArray::from_iter(
                (0..rows).map(|row| Some(ends(row))),
            )));
        }
        if let Some(key) = &self.key {
            let diffs = changes.diffs.clone().unwrap_or_else(|| vec![1; rows]);
            let same = SameKey::new(&changes.rows, key)?;
            let operations: StringArray = operations(&diffs, |row| same.as_next(row))
                .into_iter()
                .map(Some)
                .collect();
            columns.push(Arc::new(operations));
        }
        columns.extend(changes.rows.columns().iter().cloned());
        RecordBatch::try_new(self.schema(), columns).map_err(SqlError::from)
    }
}

/// Names each row's change. `-1` directly followed by `+1` of the same key is an update.
fn operations(diffs: &[i8], same_key_as_next: impl Fn(usize) -> bool) -> Vec<&'static str> {
    let mut operations = Vec::with_capacity(diffs.len());
    while operations.len() < diffs.len() {
        let row = operations.len();
        match diffs[row] {
            ..=-1 if diffs.get(row + 1).is_some_and(|next| *next > 0) && same_key_as_next(row) => {
                operations.extend(["update_before", "update_after"]);
            }
            ..=-1 => operations.push("delete"),
            0.. => operations.push("insert"),
        }
    }
    operations
}

struct SameKey(Vec<DynComparator>);

impl SameKey {
    fn new(rows: &RecordBatch, key: &[usize]) -> SessionResult<Self> {
        let comparators = key
            .iter()
            .map(|&at| make_comparator(rows.column(at), rows.column(at), SortOptions::default()))
            .collect::<Result<_, _>>()
            .map_err(SqlError::from)?;
        Ok(Self(comparators))
    }

    fn as_next(&self, row: usize) -> bool {
        self.0
            .iter()
            .all(|compare| compare(row, row + 1) == Ordering::Equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_one_key_are_updates() {
        let keys = ["a", "b", "b", "c", "d"];
        let diffs = [1, -1, 1, -1, 1];
        let operations = operations(&diffs, |row| keys[row] == keys[row + 1]);
        assert_eq!(
            operations,
            [
                "insert",
                "update_before",
                "update_after",
                "delete",
                "insert"
            ]
        );
    }
}
