//! Makes a row of each element of one or more lists, taken in step.
//!
//! A row makes as many rows as its longest list has elements; a shorter list ends with NULLs. No list with an element, no row.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, UInt32Array},
    compute,
    datatypes::SchemaRef,
};
use highwater_planner::dataflow::UnnestColumn;

use crate::{
    delta::Delta,
    error::{ExecError, ExecResult},
    operator::{Operator, StepContext},
};

/// See the module.
pub struct Unnest {
    columns: Vec<UnnestColumn>,
    schema: SchemaRef,
}

impl Unnest {
    /// `schema` is the output's; `columns` tells where each of its columns comes from.
    pub fn new(columns: Vec<UnnestColumn>, schema: SchemaRef) -> Self {
        Self { columns, schema }
    }
}

/// A list column: where each row's elements stand.
struct Lists<'a> {
    offsets: &'a [i32],
    column: &'a ArrayRef,
}

impl Lists<'_> {
    fn length(&self, row: usize) -> usize {
        match self.column.is_null(row) {
            true => 0,
            false => (self.offsets[row + 1] - self.offsets[row]) as usize,
        }
    }
}

impl Operator for Unnest {
    fn apply(
        &mut self,
        _input: usize,
        delta: Delta,
        _context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        let inputs = delta.columns();
        let mut lists = Vec::new();
        for column in &self.columns {
            if let UnnestColumn::Elements(from) = column {
                let list = inputs[*from].as_list_opt::<i32>().ok_or_else(|| {
                    ExecError::Internal(format!("UNNEST got {}", inputs[*from].data_type()))
                })?;
                lists.push(Lists {
                    offsets: list.value_offsets(),
                    column: &inputs[*from],
                });
            }
        }
        let mut rows: Vec<u32> = Vec::new();
        let mut elements: Vec<Vec<Option<u32>>> = vec![Vec::new(); lists.len()];
        for row in 0..delta.rows() {
            let longest = lists.iter().map(|list| list.length(row)).max().unwrap_or(0);
            rows.resize(rows.len() + longest, row as u32);
            for (list, elements) in lists.iter().zip(&mut elements) {
                let length = list.length(row);
                let first = list.offsets[row] as usize;
                elements.extend((0..longest).map(|at| (at < length).then(|| (first + at) as u32)));
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let rows = UInt32Array::from(rows);
        let repeated = delta.take(&rows)?;
        let mut elements = elements.into_iter();
        let columns = self
            .columns
            .iter()
            .map(|column| match column {
                UnnestColumn::Repeated(from) => Ok(Arc::clone(&repeated.columns()[*from])),
                UnnestColumn::Elements(from) => {
                    let values = inputs[*from].as_list::<i32>().values();
                    let indices = UInt32Array::from(elements.next().unwrap_or_default());
                    Ok(compute::take(values, &indices, None)?)
                }
            })
            .collect::<ExecResult<Vec<ArrayRef>>>()?;
        output.push(
            Delta::from_columns(
                &self.schema,
                columns,
                Arc::clone(repeated.rowtime()),
                repeated.shared_diffs(),
            )?
            .with_headers(repeated.headers().cloned()),
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{Int32Array, ListArray, StringArray},
        datatypes::{DataType, Field, Int32Type, Schema},
    };

    use super::*;
    use crate::delta::rowtime_array;

    #[test]
    fn lists_are_taken_in_step_and_empty_ones_make_no_row() {
        let list = |rows: Vec<Option<Vec<Option<i32>>>>| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
        };
        let first = list(vec![Some(vec![Some(1), Some(2)]), Some(vec![]), None]);
        let second = list(vec![Some(vec![Some(7)]), None, Some(vec![Some(8)])]);
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let input = Arc::new(Schema::new(vec![
            Field::new("name", DataType::Utf8, true),
            Field::new("first", first.data_type().clone(), true),
            Field::new("second", second.data_type().clone(), true),
        ]));
        let delta = Delta::from_columns(
            &input,
            vec![names, first, second],
            rowtime_array(vec![10, 20, 30]),
            None,
        )
        .expect("columns fit");
        let schema = Arc::new(Schema::new(vec![
            Field::new("name", DataType::Utf8, true),
            Field::new("one", DataType::Int32, true),
            Field::new("two", DataType::Int32, true),
        ]));
        let columns = vec![
            UnnestColumn::Repeated(0),
            UnnestColumn::Elements(1),
            UnnestColumn::Elements(2),
        ];
        let mut output = Vec::new();
        let mut context = StepContext {
            state: None,
            late: &mut 0,
            rejected: &mut Vec::new(),
        };
        Unnest::new(columns, schema)
            .apply(0, delta, &mut context, &mut output)
            .expect("runs");
        let made = &output[0];
        assert_eq!(
            made.columns()[0].as_ref(),
            &StringArray::from(vec!["a", "a", "c"])
        );
        let one = Int32Array::from(vec![Some(1), Some(2), None]);
        assert_eq!(made.columns()[1].as_ref(), &one);
        let two = Int32Array::from(vec![Some(7), None, Some(8)]);
        assert_eq!(made.columns()[2].as_ref(), &two);
        assert_eq!(made.rowtime_millis().expect("times"), [10, 10, 30]);
    }
}
