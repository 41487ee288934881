//! CUBE_EXPLODE as a function from an array to an array; an unnest operator makes rows of it. EXPLODE is the unnest operator itself.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, ListArray, UInt32Array},
    buffer::{NullBuffer, OffsetBuffer},
    compute::take,
};
use datafusion::common::Result;

use crate::{
    call::{Call, settle, value},
    function::{Category, Function, Overload},
    scalar::array::{element_field, index},
    signature::{Kind, param},
};

/// The most elements that have all their variants: twenty make a million.
const MAX_ELEMENTS: u32 = 16;

/// The name under which the array function is registered.
pub const CUBE: &str = "cube_variants";

pub(crate) static FUNCTIONS: &[Function] = &[Function::new(
    CUBE,
    Category::Table,
    "All variants of an array in which some elements are NULL, from all NULL to the array itself.",
    &[Overload::new(
        &[param("array", Kind::Array(&Kind::T), "the array")],
        Kind::Array(&Kind::Array(&Kind::T)),
        variants,
    )],
    &[("array_length(cube_variants(ARRAY[1, 2]))", "4")],
)];

fn variants(call: &Call) -> Result<ArrayRef> {
    let list = call.list(0);
    let elements = list.elements();
    let mut chosen: Vec<Option<u32>> = Vec::new();
    let (mut inner, mut outer, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..call.rows() {
        let row_variants = || {
            let range = value!(list.get(row));
            // Only elements that are not NULL have two variants; the first of them changes last.
            let present: Vec<usize> = range
                .clone()
                .filter(|element| elements.is_valid(*element))
                .collect();
            match u32::try_from(present.len()) {
                Ok(count) if count <= MAX_ELEMENTS => Ok(Some((range, present, count))),
                _ => Err(format!(
                    "cube_explode takes at most {MAX_ELEMENTS} elements"
                )),
            }
        };
        let Some((range, present, count)) = settle(row_variants()) else {
            outer.push(0);
            valid.push(false);
            continue;
        };
        for variant in 0..1usize << count {
            chosen.extend(range.clone().map(|element| {
                let place = present.iter().rev().position(|own| *own == element)?;
                (variant >> place & 1 == 1).then(|| index(element))
            }));
            inner.push(range.len());
        }
        outer.push(1 << count);
        valid.push(true);
    }
    let values = take(elements, &UInt32Array::from(chosen), None)?;
    let outer_field = element_field(call.return_type())?;
    let inner_list = ListArray::try_new(
        element_field(outer_field.data_type())?,
        OffsetBuffer::from_lengths(inner),
        values,
        None,
    )?;
    Ok(Arc::new(ListArray::try_new(
        outer_field,
        OffsetBuffer::from_lengths(outer),
        Arc::new(inner_list),
        Some(NullBuffer::from(valid)),
    )?))
}
