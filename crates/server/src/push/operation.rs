//! The `op` column: what a row of change means to the one who follows.

use std::{cmp::Ordering, sync::Arc};

use arrow::{
    array::{ArrayRef, DynComparator, StringArray, make_comparator},
    compute::SortOptions,
    datatypes::{DataType, Field, Schema, SchemaRef},
    record_batch::RecordBatch,
};
use highwater_exec::ChangeBatch;
use highwater_planner::{catalog::SourceKind, dataflow::DataflowPlan};

use crate::{session::SessionResult, sqlstate::SqlError};

/// Name of the column.
const OP: &str = "op";

/// Turns changes into the rows that a client gets.
pub struct ChangeRows {
    schema: SchemaRef,
    /// For tables: the key columns, by which an update is told from a deletion that an insertion happens to follow.
    key: Option<Vec<usize>>,
}

impl ChangeRows {
    /// For the result of a plan: a stream's rows as they are, a table's with `op` first.
    pub fn new(plan: &DataflowPlan) -> Self {
        let columns = &plan.root().schema;
        match plan.kind {
            SourceKind::Stream => Self {
                schema: Arc::clone(columns),
                key: None,
            },
            SourceKind::Table => {
                let op = Arc::new(Field::new(OP, DataType::Utf8, false));
                let fields: Vec<Arc<Field>> = std::iter::once(op)
                    .chain(columns.fields().iter().cloned())
                    .collect();
                Self {
                    schema: Arc::new(Schema::new(fields)),
                    key: Some(plan.key.clone()),
                }
            }
        }
    }

    /// Columns of the rows.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The rows of one step.
    pub fn convert(&self, changes: &ChangeBatch) -> SessionResult<RecordBatch> {
        let columns = changes.rows.columns();
        let columns: Vec<ArrayRef> = match &self.key {
            None => columns.to_vec(),
            Some(key) => {
                let diffs = changes
                    .diffs
                    .clone()
                    .unwrap_or_else(|| vec![1; changes.rows.num_rows()]);
                let same = SameKey::new(&changes.rows, key)?;
                let operations: StringArray = operations(&diffs, |row| same.as_next(row))
                    .into_iter()
                    .map(Some)
                    .collect();
                std::iter::once(Arc::new(operations) as ArrayRef)
                    .chain(columns.iter().cloned())
                    .collect()
            }
        };
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
