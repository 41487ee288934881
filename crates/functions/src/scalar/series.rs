//! GENERATE_SERIES.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray},
    buffer::{NullBuffer, OffsetBuffer},
    datatypes::{Int32Type, Int64Type},
};
use datafusion::common::Result;

use crate::{
    call::{Call, Row, settle, value},
    scalar::array::element_field,
    signature::{Kind, Param, param},
};

/// The longest series of a row.
const MAX_ELEMENTS: usize = 1 << 20;

pub(super) const FROM_INT: Param = param("from", Kind::Int, "the first number");
pub(super) const TO_INT: Param = param("to", Kind::Int, "the last number, if the steps meet it");
pub(super) const FROM: Param = param("from", Kind::BigInt, "the first number");
pub(super) const TO: Param = param("to", Kind::BigInt, "the last number, if the steps meet it");
pub(super) const STEP: Param = param("step", Kind::Int, "from one number to the next; not 0");

/// Series of INT.
pub(super) fn ints(call: &Call) -> Result<ArrayRef> {
    let (from, to) = (call.int(0), call.int(1));
    lists::<Int32Type>(call, |row| {
        Ok(Some((
            i64::from(value!(from.get(row))),
            i64::from(value!(to.get(row))),
        )))
    })
}

/// Series of BIGINT.
pub(super) fn bigints(call: &Call) -> Result<ArrayRef> {
    let (from, to) = (call.bigint(0), call.bigint(1));
    lists::<Int64Type>(call, |row| {
        Ok(Some((value!(from.get(row)), value!(to.get(row)))))
    })
}

fn lists<T: ArrowPrimitiveType>(
    call: &Call,
    ends: impl Fn(usize) -> Row<(i64, i64)>,
) -> Result<ArrayRef>
where
    T::Native: TryFrom<i64>,
{
    let step = (call.count() > 2).then(|| call.int(2));
    let mut values: Vec<T::Native> = Vec::new();
    let mut lengths = Vec::with_capacity(call.rows());
    let mut valid = Vec::with_capacity(call.rows());
    for row in 0..call.rows() {
        let series = || -> Row<Vec<i64>> {
            let (from, to) = value!(ends(row)?);
            let step = match &step {
                Some(step) => i64::from(value!(step.get(row))),
                None if from > to => -1,
                None => 1,
            };
            numbers(from, to, step).map(Some)
        };
        let series = settle(series());
        valid.push(series.is_some());
        let series = series.unwrap_or_default();
        lengths.push(series.len());
        values.extend(
            series
                .into_iter()
                .filter_map(|number| T::Native::try_from(number).ok()),
        );
    }
    Ok(Arc::new(ListArray::try_new(
        element_field(call.return_type())?,
        OffsetBuffer::from_lengths(lengths),
        Arc::new(PrimitiveArray::<T>::from_iter_values(values)),
        Some(NullBuffer::from(valid)),
    )?))
}

fn numbers(from: i64, to: i64, step: i64) -> Result<Vec<i64>, String> {
    if step == 0 {
        return Err("the step of a series is 0".to_owned());
    }
    if (step > 0) != (from <= to) && from != to {
        return Err(format!("steps of {step} never lead from {from} to {to}"));
    }
    let distance = from.abs_diff(to) / step.unsigned_abs();
    if usize::try_from(distance).map_or(true, |distance| distance >= MAX_ELEMENTS) {
        return Err(format!("a series of more than {MAX_ELEMENTS} numbers"));
    }
    let next = |number: &i64| number.checked_add(step);
    Ok(std::iter::successors(Some(from), next)
        .take_while(|number| {
            if step > 0 {
                *number <= to
            } else {
                *number >= to
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn series_end_where_they_must() {
        assert_eq!(numbers(1, 4, 2), Ok(vec![1, 3]));
        assert_eq!(numbers(4, 1, -3), Ok(vec![4, 1]));
        assert_eq!(numbers(4, 4, -3), Ok(vec![4]));
        assert_eq!(
            numbers(i64::MAX - 1, i64::MAX, 1),
            Ok(vec![i64::MAX - 1, i64::MAX])
        );
        assert!(numbers(1, 4, 0).is_err());
        assert!(numbers(1, 4, -1).is_err());
        assert!(numbers(i64::MIN, i64::MAX, 1).is_err());
    }
}
