//! Arrays as sets: each element once, in the order in which it came first.
//!
//! Elements are compared by their row encoding, which works for elements of any type. Entries of maps are compared in their order.

use std::collections::HashSet;

use arrow::{
    array::{Array, ArrayRef},
    compute::concat,
    row::{RowConverter, Rows, SortField},
};
use datafusion::common::Result;

use crate::{
    call::{Call, value},
    function::{Category, Function, Overload},
    scalar::array::{ARRAY, index, rebuild},
    signature::{Kind, Param, param},
};

const OTHER: Param = param("other", Kind::Array(&Kind::T), "another array");

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "array_concat",
        Category::Array,
        "The elements of an array, then those of another. A NULL array counts for nothing, unless both are NULL.",
        &[Overload::new(&[ARRAY, OTHER], Kind::Array(&Kind::T), append)],
        &[("array_concat(ARRAY[1, 2], ARRAY[2])", "ARRAY[1, 2, 2]")],
    )
    .ksql_only(),
    Function::new(
        "array_distinct",
        Category::Array,
        "Every element once.",
        &[Overload::new(&[ARRAY], Kind::Array(&Kind::T), |call| {
            let list = call.list(0);
            let encoded = encode(list.elements())?;
            rebuild(call, list.elements(), |row, kept| {
                let range = value!(list.get(row));
                let mut seen = HashSet::with_capacity(range.len());
                kept.extend(range.filter(|element| seen.insert(encoded.row(*element))).map(index));
                Ok(Some(()))
            })
        })],
        &[("array_distinct(ARRAY[1, 2, 1])", "ARRAY[1, 2]")],
    )
    .ksql_only(),
    Function::new(
        "array_except",
        Category::Array,
        "Every element that another array does not have, once.",
        &[Overload::new(&[ARRAY, OTHER], Kind::Array(&Kind::T), |call| keep(call, false))],
        &[("array_except(ARRAY[1, 2, 1, 3], ARRAY[2])", "ARRAY[1, 3]")],
    )
    .ksql_only(),
    Function::new(
        "array_intersect",
        Category::Array,
        "Every element that another array has too, once.",
        &[Overload::new(&[ARRAY, OTHER], Kind::Array(&Kind::T), |call| keep(call, true))],
        &[("array_intersect(ARRAY[1, 2, 1], ARRAY[1, 5])", "ARRAY[1]")],
    )
    .ksql_only(),
    Function::new(
        "array_union",
        Category::Array,
        "Every element of two arrays, once.",
        &[Overload::new(&[ARRAY, OTHER], Kind::Array(&Kind::T), union)],
        &[("array_union(ARRAY[1, 2], ARRAY[2, 3])", "ARRAY[1, 2, 3]")],
    )
    .ksql_only(),
];

/// The elements of the first list argument, and behind them those of the second.
fn both(call: &Call) -> Result<(ArrayRef, usize)> {
    let (left, right) = (call.list(0), call.list(1));
    let all = concat(&[left.elements().as_ref(), right.elements().as_ref()])?;
    Ok((all, left.elements().len()))
}

fn encode(elements: &ArrayRef) -> Result<Rows> {
    let converter = RowConverter::new(vec![SortField::new(elements.data_type().clone())])?;
    Ok(converter.convert_columns(std::slice::from_ref(elements))?)
}

fn append(call: &Call) -> Result<ArrayRef> {
    let (left, right) = (call.list(0), call.list(1));
    let (all, behind) = both(call)?;
    rebuild(call, &all, |row, kept| {
        let (left, right) = (left.get(row), right.get(row));
        if left.is_none() && right.is_none() {
            return Ok(None);
        }
        kept.extend(left.into_iter().flatten().map(index));
        kept.extend(
            right
                .into_iter()
                .flatten()
                .map(|element| index(element + behind)),
        );
        Ok(Some(()))
    })
}

fn union(call: &Call) -> Result<ArrayRef> {
    let (left, right) = (call.list(0), call.list(1));
    let (all, behind) = both(call)?;
    let encoded = encode(&all)?;
    rebuild(call, &all, |row, kept| {
        let (left, right) = (value!(left.get(row)), value!(right.get(row)));
        let mut seen = HashSet::with_capacity(left.len() + right.len());
        let elements = left.chain(right.map(|element| element + behind));
        kept.extend(
            elements
                .filter(|element| seen.insert(encoded.row(*element)))
                .map(index),
        );
        Ok(Some(()))
    })
}

/// Elements of the first list that are in the second, or that are not.
fn keep(call: &Call, wanted: bool) -> Result<ArrayRef> {
    let (left, right) = (call.list(0), call.list(1));
    let (all, behind) = both(call)?;
    let encoded = encode(&all)?;
    rebuild(call, &all, |row, kept| {
        let (left, right) = (value!(left.get(row)), value!(right.get(row)));
        let others: HashSet<_> = right.map(|element| encoded.row(element + behind)).collect();
        let mut seen = HashSet::with_capacity(left.len());
        let chosen = left.filter(|element| {
            let element = encoded.row(*element);
            others.contains(&element) == wanted && seen.insert(element)
        });
        kept.extend(chosen.map(index));
        Ok(Some(()))
    })
}
