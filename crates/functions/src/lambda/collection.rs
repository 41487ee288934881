//! The elements of all rows of an array or map column, side by side.

use std::ops::Range;

use arrow::{
    array::{Array, ArrayRef, AsArray, UInt32Array},
    compute::{take, take_arrays},
    datatypes::DataType,
};
use datafusion::{
    common::{Result, internal_err},
    logical_expr::LambdaArgument,
};

use crate::{
    call::{in_use, range_of},
    scalar::array::index,
};

/// See the module. NULL rows have no elements.
pub(super) struct Collection {
    /// The elements, or the keys and the values.
    pub items: Vec<ArrayRef>,
    /// Where each row's elements are; `None` for NULL.
    pub ranges: Vec<Option<Range<usize>>>,
    /// The row of each element.
    rows: UInt32Array,
}

impl Collection {
    /// Takes an array or map column apart.
    pub fn new(array: &ArrayRef) -> Result<Self> {
        let (items, offsets) = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                (vec![list.values().clone()], list.value_offsets())
            }
            DataType::Map(_, _) => {
                let map = array.as_map();
                (
                    vec![map.keys().clone(), map.values().clone()],
                    map.value_offsets(),
                )
            }
            other => return internal_err!("{other} has no elements"),
        };
        let items: Vec<ArrayRef> = items.iter().map(|item| in_use(item, offsets)).collect();
        let mut ranges = Vec::with_capacity(array.len());
        let mut rows = Vec::new();
        let mut kept = Vec::new();
        let mut dense = true;
        for row in 0..array.len() {
            let range = range_of(offsets, row);
            if array.is_null(row) {
                dense &= range.is_empty();
                ranges.push(None);
                continue;
            }
            let start = rows.len();
            rows.extend(std::iter::repeat_n(index(row), range.len()));
            kept.extend(range.map(index));
            ranges.push(Some(start..rows.len()));
        }
        let items = if dense {
            items
        } else {
            let kept = UInt32Array::from(kept);
            items
                .iter()
                .map(|item| Ok(take(item, &kept, None)?))
                .collect::<Result<_>>()?
        };
        Ok(Self {
            items,
            ranges,
            rows: UInt32Array::from(rows),
        })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The body of a lambda over all elements.
    pub fn apply(&self, lambda: &LambdaArgument) -> Result<ArrayRef> {
        evaluate(lambda, &self.items, &self.rows)
    }
}

/// The body of a lambda over columns of parameters; `rows` tells the outer row of each, for captured columns.
pub(super) fn evaluate(
    lambda: &LambdaArgument,
    parameters: &[ArrayRef],
    rows: &UInt32Array,
) -> Result<ArrayRef> {
    let columns: Vec<_> = parameters
        .iter()
        .map(|column| move || Ok(column.clone()))
        .collect();
    let columns: Vec<&dyn Fn() -> Result<ArrayRef>> =
        columns.iter().map(|column| column as _).collect();
    lambda
        .evaluate(&columns, |captured| Ok(take_arrays(captured, rows, None)?))?
        .into_array(rows.len())
}
