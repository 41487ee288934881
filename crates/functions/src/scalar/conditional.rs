//! COALESCE, IFNULL, NULLIF, GREATEST, LEAST, and AS_VALUE.

use std::{cmp::Ordering, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, BooleanArray},
    compute::{interleave, is_null, kernels::zip::zip, nullif},
};
use datafusion::common::Result;

use crate::{
    call::Call,
    function::{Category, Function, Overload},
    scalar::array::comparator,
    signature::{Kind, Param, param},
};

const VALUES: Param = param("values", Kind::T, "the values");

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "coalesce",
        Category::Conditional,
        "The first of the values that is not NULL.",
        &[Overload::new(&[VALUES], Kind::T, coalesce).variadic()],
        &[("coalesce(NULL, 2, 3)", "2")],
    )
    .ksql_only(),
    Function::new(
        "ifnull",
        Category::Conditional,
        "A value, or another one where it is NULL.",
        &[Overload::new(
            &[
                param("value", Kind::T, "a value"),
                param("other", Kind::T, "what takes the place of NULL"),
            ],
            Kind::T,
            coalesce,
        )],
        &[("ifnull(NULL, 'none')", "'none'")],
    )
    .ksql_only(),
    Function::new(
        "nullif",
        Category::Conditional,
        "A value, or NULL where it equals another.",
        &[Overload::new(
            &[
                param("value", Kind::T, "a value"),
                param("other", Kind::T, "what becomes NULL"),
            ],
            Kind::T,
            null_if,
        )],
        &[("nullif('-', '-')", "NULL")],
    )
    .ksql_only(),
    Function::new(
        "greatest",
        Category::Conditional,
        "The largest of the values; NULL ones count for nothing.",
        &[Overload::new(&[VALUES], Kind::T, |call| extreme(call, Ordering::Greater)).variadic()],
        &[("greatest(3, NULL, 5)", "5")],
    )
    .ksql_only(),
    Function::new(
        "least",
        Category::Conditional,
        "The smallest of the values; NULL ones count for nothing.",
        &[Overload::new(&[VALUES], Kind::T, |call| extreme(call, Ordering::Less)).variadic()],
        &[("least(3, NULL, 5)", "3")],
    )
    .ksql_only(),
    Function::new(
        "as_value",
        Category::Key,
        "A copy of a key column that is stored in the record's value.",
        &[Overload::new(
            &[param("column", Kind::T, "a key column")],
            Kind::T,
            |call| call.expanded(0),
        )],
        &[("as_value(7)", "7")],
    ),
];

fn coalesce(call: &Call) -> Result<ArrayRef> {
    let mut result = call.expanded(0)?;
    for position in 1..call.count() {
        if result.null_count() == 0 {
            break;
        }
        let missing = is_null(&result)?;
        result = zip(&missing, &call.expanded(position)?, &result)?;
    }
    Ok(result)
}

fn null_if(call: &Call) -> Result<ArrayRef> {
    let (value, other) = (call.expanded(0)?, call.expanded(1)?);
    let compare = comparator(&value, &other, false)?;
    let same: BooleanArray = (0..call.rows())
        .map(|row| Some(value.is_valid(row) && compare(row, row).is_eq()))
        .collect();
    Ok(nullif(&value, &same)?)
}

fn extreme(call: &Call, wanted: Ordering) -> Result<ArrayRef> {
    let columns = (0..call.count())
        .map(|position| call.expanded(position))
        .collect::<Result<Vec<ArrayRef>>>()?;
    let mut chosen: Vec<(usize, usize)> = (0..call.rows()).map(|row| (0, row)).collect();
    for (position, column) in columns.iter().enumerate().skip(1) {
        // The comparators of this column with each earlier one, since any of them may hold a row's best value.
        let compare = columns[..position]
            .iter()
            .map(|earlier| comparator(column, earlier, false))
            .collect::<Result<Vec<_>>>()?;
        for (row, best) in chosen.iter_mut().enumerate() {
            let better = column.is_valid(row)
                && (columns[best.0].is_null(row) || compare[best.0](row, row) == wanted);
            if better {
                *best = (position, row);
            }
        }
    }
    let columns: Vec<&dyn Array> = columns.iter().map(Arc::as_ref).collect();
    Ok(interleave(&columns, &chosen)?)
}
