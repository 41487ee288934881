//! ROUND and TRUNC.
//!
//! ROUND goes to the nearest number and, half-way between two, to the larger one, as Java's `Math.round` does: `round(-1.5)` is -1. A DOUBLE is
//! rounded as its shortest decimal text, so `round(1.005e0, 2)` is 1.01. With one argument a DOUBLE gives a BIGINT and a DECIMAL a DECIMAL without
//! places; with the number of places the type stays. Places below zero round in front of the point.

use arrow::{
    array::{ArrayRef, ArrowPrimitiveType},
    compute::cast,
    datatypes::{
        ArrowNativeTypeOp, DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type,
    },
};
use datafusion::common::{Result, internal_err};

use crate::{
    call::{Call, Row, value},
    function::{Category, Function, Overload, Returns},
    scalar::power_of_ten::power_of_ten,
    signature::{Kind, Param, param},
    types::{decimal, decimal_digits},
};

const X_BIGINT: Param = param("x", Kind::BigInt, "a number");
const X_DECIMAL: Param = param("x", Kind::Decimal, "a number");
const X_DOUBLE: Param = param("x", Kind::Double, "a number");
const PLACES: Param = param(
    "places",
    Kind::Int,
    "places behind the point to keep; in front of it when below zero",
);

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "round",
        Category::Math,
        "The nearest number without places, or with the given ones; half-way between two, the larger one.",
        &[
            Overload::new(&[X_BIGINT], Kind::BigInt, |call| call.expanded(0)),
            Overload::new(&[X_DECIMAL], Kind::Decimal, |call| decimals(call, Mode::Nearest))
                .returning(Returns::Computed(without_places, Kind::Decimal)),
            Overload::new(&[X_DOUBLE], Kind::BigInt, |call| {
                Ok(whole_doubles(call, |x| {
                    // Adding a half first would carry 0.49999999999999994 over.
                    let down = x.floor();
                    if x - down >= 0.5 { down + 1.0 } else { down }
                }))
            }),
            Overload::new(&[X_DECIMAL, PLACES], Kind::Decimal, |call| decimals(call, Mode::Nearest))
                .returning(Returns::Argument(0)),
            Overload::new(&[X_DOUBLE, PLACES], Kind::Double, |call| Ok(doubles(call, Mode::Nearest))),
        ],
        &[("round(-1.5e0)", "-1"), ("round(2.345e0, 2)", "2.35e0"), ("round(1234e0, -2)", "1200e0")],
    )
    .ksql_only(),
    Function::new(
        "trunc",
        Category::Math,
        "A number without its places, or with only the given ones.",
        &[
            Overload::new(&[X_BIGINT], Kind::BigInt, |call| call.expanded(0)),
            Overload::new(&[X_DECIMAL], Kind::Decimal, |call| decimals(call, Mode::TowardZero))
                .returning(Returns::Computed(without_places, Kind::Decimal)),
            Overload::new(&[X_DOUBLE], Kind::BigInt, |call| Ok(whole_doubles(call, f64::trunc))),
            Overload::new(&[X_DECIMAL, PLACES], Kind::Decimal, |call| decimals(call, Mode::TowardZero))
                .returning(Returns::Argument(0)),
            Overload::new(&[X_DOUBLE, PLACES], Kind::Double, |call| Ok(doubles(call, Mode::TowardZero))),
        ],
        &[("trunc(-1.7e0)", "-1"), ("trunc(2.349e0, 2)", "2.34e0")],
    )
    .ksql_only(),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Nearest,
    TowardZero,
}

/// The type of a decimal without places.
fn without_places(types: &[DataType]) -> Option<DataType> {
    let (precision, scale) = decimal_digits(types.first()?)?;
    decimal(precision.saturating_sub(scale.unsigned_abs()), 0)
}

fn whole_doubles(call: &Call, whole: impl Fn(f64) -> f64) -> ArrayRef {
    let x = call.double(0);
    call.numbers::<Int64Type>(|row| {
        let whole = whole(value!(x.get(row)));
        // The cast is Java's: what a BIGINT cannot hold becomes its nearest value, NaN becomes 0.
        Ok(Some(whole as i64))
    })
}

fn doubles(call: &Call, mode: Mode) -> ArrayRef {
    let (x, places) = (call.double(0), call.int(1));
    call.numbers::<Float64Type>(|row| {
        Ok(Some(round_double(
            value!(x.get(row)),
            value!(places.get(row)),
            mode,
        )))
    })
}

/// Rounds the shortest decimal text of a double.
fn round_double(x: f64, places: i32, mode: Mode) -> f64 {
    /// Digits that the shortest text of a double has at most.
    const DIGITS: i32 = 17;
    if !x.is_finite() || x == 0.0 {
        return x;
    }
    // `d.ddddde±n`, the fewest digits that read back as the same number.
    let text = format!("{:e}", x.abs());
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return x;
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return x;
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    // How many digits stay in front of the cut.
    let kept = exponent.saturating_add(1).saturating_add(places);
    let count = i32::try_from(digits.len()).unwrap_or(DIGITS);
    if kept >= count {
        return x;
    }
    if kept < 0 {
        return 0.0f64.copysign(if mode == Mode::TowardZero { x } else { 1.0 });
    }
    let at = usize::try_from(kept).unwrap_or(0);
    let (front, behind) = digits.split_at(at);
    let head: i128 = front.parse().unwrap_or(0);
    let up = mode == Mode::Nearest && {
        let first = behind.as_bytes().first().copied().unwrap_or(b'0');
        let exact_half = first == b'5' && behind.bytes().skip(1).all(|digit| digit == b'0');
        // Half-way goes to the larger number, which is away from zero for positive ones only.
        if exact_half { x > 0.0 } else { first >= b'5' }
    };
    let rounded = format!("{}e{}", head + i128::from(up), -places);
    let size: f64 = rounded.parse().unwrap_or(f64::NAN);
    if size == 0.0 { 0.0 } else { size.copysign(x) }
}

fn decimals(call: &Call, mode: Mode) -> Result<ArrayRef> {
    let data_type = call.return_type();
    match (call.arg(0).array.data_type(), data_type) {
        (DataType::Decimal128(_, from), DataType::Decimal128(precision, to)) => Ok(
            round_decimals::<Decimal128Type>(call, *from, (*precision, *to), mode),
        ),
        (DataType::Decimal256(_, from), DataType::Decimal256(precision, to)) => Ok(
            round_decimals::<Decimal256Type>(call, *from, (*precision, *to), mode),
        ),
        // A wide decimal whose whole part is narrow: rounded wide, then cast.
        (DataType::Decimal256(_, from), DataType::Decimal128(precision, to)) => {
            let wide = DataType::Decimal256(*precision, *to);
            let rounded = call.with_return_type(&wide, |wide_call| {
                round_decimals::<Decimal256Type>(wide_call, *from, (*precision, *to), mode)
            });
            Ok(cast(&rounded, data_type)?)
        }
        (other, _) => internal_err!("{other} is no decimal"),
    }
}

/// Rounds decimals of `from` places and gives them `to` places. Without a second argument all places go.
fn round_decimals<T: ArrowPrimitiveType>(
    call: &Call,
    from: i8,
    (precision, to): (u8, i8),
    mode: Mode,
) -> ArrayRef
where
    T::Native: ArrowNativeTypeOp,
{
    let x = call.primitive::<T>(0);
    let places = (call.count() > 1).then(|| call.int(1));
    let limit = power_of_ten::<T::Native>(u32::from(precision));
    call.numbers::<T>(|row| {
        let x = value!(x.get(row));
        let places = match &places {
            Some(places) => value!(places.get(row)),
            None => 0,
        };
        let rounded = round_decimal(x, from, to, places, mode)?;
        match (rounded, limit) {
            (Some(rounded), Some(limit))
                if rounded.is_ge(limit) || rounded.is_le(limit.neg_wrapping()) =>
            {
                Err(format!(
                    "the result does not fit DECIMAL({precision}, {to})"
                ))
            }
            (rounded, _) => Ok(rounded),
        }
    })
}

fn round_decimal<N: ArrowNativeTypeOp>(x: N, from: i8, to: i8, places: i32, mode: Mode) -> Row<N> {
    let dropped = i32::from(from).saturating_sub(places);
    let rounded = match u32::try_from(dropped) {
        // Fewer places are there than are wanted.
        Err(_) | Ok(0) => x,
        Ok(dropped) => match power_of_ten::<N>(dropped) {
            // The cut is in front of every digit that the type can have.
            None => N::ZERO,
            Some(unit) => {
                let rest = x.mod_wrapping(unit);
                let toward_zero = x.sub_wrapping(rest);
                let half = unit.div_wrapping(N::ONE.add_wrapping(N::ONE));
                let (up, down) = (rest.is_ge(half), rest.is_lt(half.neg_wrapping()));
                if mode == Mode::Nearest && up {
                    toward_zero
                        .add_checked(unit)
                        .map_err(|error| error.to_string())?
                } else if mode == Mode::Nearest && down {
                    toward_zero
                        .sub_checked(unit)
                        .map_err(|error| error.to_string())?
                } else {
                    toward_zero
                }
            }
        },
    };
    match u32::try_from(i32::from(from) - i32::from(to)) {
        Ok(0) | Err(_) => Ok(Some(rounded)),
        Ok(shift) => Ok(power_of_ten::<N>(shift).map(|unit| rounded.div_wrapping(unit))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_round_as_their_text() {
        let nearest = |x, places| round_double(x, places, Mode::Nearest);
        assert_eq!(nearest(1.005, 2), 1.01);
        assert_eq!(nearest(-1.5, 0), -1.0);
        assert_eq!(nearest(-1.51, 0), -2.0);
        assert_eq!(nearest(9.99, 1), 10.0);
        assert_eq!(nearest(0.4, 0), 0.0);
        assert_eq!(nearest(0.5, 0), 1.0);
        assert_eq!(nearest(12345.678, -1), 12350.0);
        assert_eq!(nearest(4.0, -1), 0.0);
        assert_eq!(nearest(6.0, -1), 10.0);
        assert_eq!(nearest(1e300, 400), 1e300);
        assert!(nearest(f64::NAN, 2).is_nan());
        assert_eq!(round_double(-1.79, 1, Mode::TowardZero), -1.7);
    }
}
