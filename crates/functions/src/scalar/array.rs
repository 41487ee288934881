//! Functions of one array.

use std::{cmp::Ordering, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, DynComparator, ListArray, UInt32Array, make_comparator},
    buffer::{NullBuffer, OffsetBuffer},
    compute::{SortOptions, take},
    datatypes::{DataType, FieldRef, Int32Type},
};
use datafusion::common::{Result, exec_err, internal_datafusion_err};

use crate::{
    call::{Call, Lists, Row, settle, value},
    function::{Category, Function, Overload, Returns},
    scalar::{series, text::count},
    signature::{Kind, Param, param},
    types::element_type,
    value_text::write_value,
};

pub(super) const ARRAY: Param = param("array", Kind::Array(&Kind::T), "the array");
const VALUE: Param = param("value", Kind::T, "the value");

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "array_contains",
        Category::Array,
        "Whether an array has an element that equals a value; NULL equals NULL here. FALSE when the array is NULL.",
        &[Overload::new(&[ARRAY, VALUE], Kind::Boolean, |call| {
            let (list, same) = (call.list(0), equality(call, 0, 1)?);
            Ok(call.booleans(|row| {
                Ok(Some(list.get(row).is_some_and(|mut range| range.any(|element| same(element, row)))))
            }))
        })],
        &[("array_contains(ARRAY[1, 2], 2)", "TRUE")],
    )
    .ksql_only(),
    Function::new(
        "array_join",
        Category::Array,
        "The elements of an array as one text; without a delimiter, commas stand between.",
        &[
            Overload::new(&[ARRAY], Kind::Text, join),
            Overload::new(&[ARRAY, param("delimiter", Kind::Text, "what stands between; NULL is nothing")], Kind::Text, join),
        ],
        &[("array_join(ARRAY[1, 2], '-')", "'1-2'")],
    )
    .ksql_only(),
    Function::new(
        "array_length",
        Category::Array,
        "The number of elements.",
        &[Overload::new(&[ARRAY], Kind::Int, |call| {
            let list = call.list(0);
            Ok(call.numbers::<Int32Type>(|row| Ok(list.get(row).map(|range| count(range.len())))))
        })],
        &[("array_length(ARRAY['a', 'b'])", "2")],
    )
    .ksql_only(),
    Function::new(
        "array_max",
        Category::Array,
        "The largest element; NULL elements count for nothing.",
        &[Overload::new(&[ARRAY], Kind::T, |call| extreme(call, Ordering::Greater))],
        &[("array_max(ARRAY[2, NULL, 7])", "7")],
    )
    .ksql_only(),
    Function::new(
        "array_min",
        Category::Array,
        "The smallest element; NULL elements count for nothing.",
        &[Overload::new(&[ARRAY], Kind::T, |call| extreme(call, Ordering::Less))],
        &[("array_min(ARRAY[2, NULL, 7])", "2")],
    )
    .ksql_only(),
    Function::new(
        "array_remove",
        Category::Array,
        "An array without the elements that equal a value.",
        &[Overload::new(&[ARRAY, VALUE], Kind::Array(&Kind::T), |call| {
            let (list, same) = (call.list(0), equality(call, 0, 1)?);
            rebuild(call, list.elements(), |row, kept| {
                kept.extend(value!(list.get(row)).filter(|element| !same(*element, row)).map(index));
                Ok(Some(()))
            })
        })],
        &[("array_remove(ARRAY[1, 2, 1], 1)", "ARRAY[2]")],
    )
    .ksql_only(),
    Function::new(
        "array_sort",
        Category::Array,
        "The elements in ascending or descending order, NULL ones last. NULL for any other order.",
        &[
            Overload::new(&[ARRAY], Kind::Array(&Kind::T), sort),
            Overload::new(
                &[ARRAY, param("order", Kind::Text, "'ASC' or 'DESC'")],
                Kind::Array(&Kind::T),
                sort,
            ),
        ],
        &[("array_sort(ARRAY[2, 3, 1], 'DESC')", "ARRAY[3, 2, 1]")],
    )
    .ksql_only(),
    Function::new(
        "generate_series",
        Category::Array,
        "The numbers from one to another, both included; counting down when the first is larger.",
        &[
            Overload::new(&[series::FROM_INT, series::TO_INT], Kind::Array(&Kind::Int), series::ints),
            Overload::new(&[series::FROM_INT, series::TO_INT, series::STEP], Kind::Array(&Kind::Int), series::ints),
            Overload::new(&[series::FROM, series::TO], Kind::Array(&Kind::BigInt), series::bigints),
            Overload::new(&[series::FROM, series::TO, series::STEP], Kind::Array(&Kind::BigInt), series::bigints),
        ],
        &[("generate_series(1, 7, 3)", "ARRAY[1, 4, 7]")],
    )
    .ksql_only(),
    Function::new(
        "slice",
        Category::Array,
        "A part of an array; NULL when it does not lie inside of the array.",
        &[Overload::new(
            &[
                ARRAY,
                param("from", Kind::Int, "position of its first element, from 1; NULL is the first"),
                param("to", Kind::Int, "position of its last element; NULL is the last"),
            ],
            Kind::Array(&Kind::T),
            slice,
        )
        .returning(Returns::Argument(0))],
        &[("slice(ARRAY['a', 'b', 'c'], 2, 3)", "ARRAY['b', 'c']")],
    ),
];

/// An element's number as Arrow's `take` wants it; offsets of lists have 31 bits.
pub(crate) fn index(element: usize) -> u32 {
    u32::try_from(element).unwrap_or(u32::MAX)
}

/// The field of the elements of a list type.
pub(crate) fn element_field(list: &DataType) -> Result<FieldRef> {
    match list {
        DataType::List(field) => Ok(Arc::clone(field)),
        other => Err(internal_datafusion_err!("{other} is no list")),
    }
}

/// A list column whose rows take elements from `elements`; `choose` appends the numbers of a row's elements.
pub(super) fn rebuild(
    call: &Call,
    elements: &ArrayRef,
    mut choose: impl FnMut(usize, &mut Vec<u32>) -> Row<()>,
) -> Result<ArrayRef> {
    let mut chosen: Vec<u32> = Vec::new();
    let mut lengths = Vec::with_capacity(call.rows());
    let mut valid = Vec::with_capacity(call.rows());
    for row in 0..call.rows() {
        let before = chosen.len();
        let kept = settle(choose(row, &mut chosen)).is_some();
        if !kept {
            chosen.truncate(before);
        }
        valid.push(kept);
        lengths.push(chosen.len() - before);
    }
    let values = take(elements, &UInt32Array::from(chosen), None)?;
    Ok(Arc::new(ListArray::try_new(
        element_field(call.return_type())?,
        OffsetBuffer::from_lengths(lengths),
        values,
        Some(NullBuffer::from(valid)),
    )?))
}

/// Compares elements of two lists, NULL as the largest.
pub(super) fn comparator(
    left: &ArrayRef,
    right: &ArrayRef,
    descending: bool,
) -> Result<DynComparator> {
    Ok(make_comparator(
        left,
        right,
        SortOptions {
            descending,
            nulls_first: false,
        },
    )?)
}

/// Whether an element (by number) of a list argument equals the value of another argument in a row.
fn equality(call: &Call, list: usize, value: usize) -> Result<impl Fn(usize, usize) -> bool> {
    let constant = call.arg(value).constant;
    let compare = comparator(call.list(list).elements(), &call.arg(value).array, false)?;
    Ok(move |element, row| compare(element, if constant { 0 } else { row }).is_eq())
}

/// Types that have an order.
fn check_ordered(name: &str, list: &ArrayRef) -> Result<()> {
    match element_type(list.data_type()) {
        Some(DataType::Struct(_) | DataType::Map(_, _) | DataType::List(_)) => {
            exec_err!("{name} needs elements that have an order")
        }
        _ => Ok(()),
    }
}

fn extreme(call: &Call, wanted: Ordering) -> Result<ArrayRef> {
    check_ordered("array_max and array_min", &call.arg(0).array)?;
    let list = call.list(0);
    let elements = list.elements();
    let compare = comparator(elements, elements, false)?;
    let found: UInt32Array = (0..call.rows())
        .map(|row| {
            let best = list
                .get(row)?
                .filter(|element| elements.is_valid(*element))
                .reduce(|best, next| match compare(next, best) == wanted {
                    true => next,
                    false => best,
                })?;
            Some(index(best))
        })
        .collect();
    Ok(take(elements, &found, None)?)
}

fn sort(call: &Call) -> Result<ArrayRef> {
    check_ordered("array_sort", &call.arg(0).array)?;
    let list = call.list(0);
    let order = (call.count() > 1).then(|| call.text(1));
    let ascending = comparator(list.elements(), list.elements(), false)?;
    let descending = comparator(list.elements(), list.elements(), true)?;
    rebuild(call, list.elements(), |row, sorted| {
        let range = value!(list.get(row));
        let down = match &order {
            None => false,
            Some(order) => value!(is_descending(value!(order.get(row)))),
        };
        let start = sorted.len();
        sorted.extend(range.map(index));
        let compare = if down { &descending } else { &ascending };
        sorted[start..].sort_by(|left, right| compare(*left as usize, *right as usize));
        Ok(Some(()))
    })
}

fn is_descending(order: &str) -> Option<bool> {
    let is = |names: [&str; 2]| names.iter().any(|name| order.eq_ignore_ascii_case(name));
    if is(["ASC", "ASCENDING"]) {
        Some(false)
    } else {
        is(["DESC", "DESCENDING"]).then_some(true)
    }
}

fn slice(call: &Call) -> Result<ArrayRef> {
    let (list, from, to): (Lists<'_>, _, _) = (call.list(0), call.int(1), call.int(2));
    rebuild(call, list.elements(), |row, kept| {
        let range = value!(list.get(row));
        let start = i64::from(from.get(row).unwrap_or(1)) - 1;
        let end = match to.get(row) {
            Some(to) => i64::from(to),
            None => i64::try_from(range.len()).unwrap_or(i64::MAX),
        };
        let (start, end) = (
            value!(usize::try_from(start).ok()),
            value!(usize::try_from(end).ok()),
        );
        if start > end || end > range.len() {
            return Ok(None);
        }
        kept.extend((range.start + start..range.start + end).map(index));
        Ok(Some(()))
    })
}

fn join(call: &Call) -> Result<ArrayRef> {
    let list = call.list(0);
    let elements = list.elements();
    if matches!(
        elements.data_type(),
        DataType::Struct(_) | DataType::Map(_, _) | DataType::List(_) | DataType::Binary
    ) {
        return exec_err!("array_join needs elements that are texts, numbers or booleans");
    }
    let delimiter = (call.count() > 1).then(|| call.text(1));
    Ok(call.write_texts(|row, out| {
        let range = value!(list.get(row));
        let delimiter = match &delimiter {
            None => ",",
            Some(delimiter) => delimiter.get(row).unwrap_or(""),
        };
        for (position, element) in range.enumerate() {
            if position > 0 {
                out.push_str(delimiter);
            }
            write_value(out, elements, element);
        }
        Ok(Some(()))
    }))
}
