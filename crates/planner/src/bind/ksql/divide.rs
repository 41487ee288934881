//! The quotient of two decimals, with ksqlDB's precision and scale: p1 - s1 + s2 + max(6, s1 + p2 + 1) and max(6, s1 + p2 + 1).
//!
//! Types end at 38 digits here, where ksqlDB's go on: what is too much is taken off the scale, down to the six digits that every quotient has.
//! A quotient that does not fit, and one by zero, is NULL.

use std::sync::Arc;

use arrow::{
    array::{Array, AsArray, Decimal128Array},
    datatypes::{DataType, Decimal128Type, i256},
};
use datafusion::{
    common::{Result, exec_err, plan_err},
    logical_expr::{
        ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};

/// Digits of a DECIMAL at the most.
const MAX_PRECISION: i32 = 38;
/// Digits behind the point that a quotient has at least.
const MIN_SCALE: i32 = 6;

/// `left / right`, both decimals.
pub(super) fn divide(left: Expr, right: Expr) -> Expr {
    ScalarUDF::new_from_impl(Divide {
        signature: Signature::any(2, Volatility::Immutable),
    })
    .call(vec![left, right])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Divide {
    signature: Signature,
}

fn quotient_type(left: &DataType, right: &DataType) -> Option<(u8, i8)> {
    let (DataType::Decimal128(p1, s1), DataType::Decimal128(p2, s2)) = (left, right) else {
        return None;
    };
    let (p1, s1) = (i32::from(*p1), i32::from(*s1));
    let (p2, s2) = (i32::from(*p2), i32::from(*s2));
    let scale = MIN_SCALE.max(s1 + p2 + 1);
    let precision = p1 - s1 + s2 + scale;
    let surplus = (precision - MAX_PRECISION).max(0);
    let scale = (scale - surplus).max(MIN_SCALE);
    let precision = precision.clamp(scale, MAX_PRECISION);
    Some((u8::try_from(precision).ok()?, i8::try_from(scale).ok()?))
}

impl ScalarUDFImpl for Divide {
    fn name(&self) -> &str {
        "/"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [left, right] => match quotient_type(left, right) {
                Some((precision, scale)) => Ok(DataType::Decimal128(precision, scale)),
                None => plan_err!("only decimals are divided so"),
            },
            _ => plan_err!("a quotient has two sides"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = arrays.as_slice() else {
            return exec_err!("a quotient has two sides");
        };
        let types = quotient_type(left.data_type(), right.data_type());
        let (Some((precision, scale)), DataType::Decimal128(_, s1), DataType::Decimal128(_, s2)) =
            (types, left.data_type(), right.data_type())
        else {
            return exec_err!("only decimals are divided so");
        };
        // left / 10^s1 / (right / 10^s2) * 10^scale
        let shift = u32::try_from(i32::from(scale) - i32::from(*s1) + i32::from(*s2)).unwrap_or(0);
        let (left, right) = (
            left.as_primitive::<Decimal128Type>(),
            right.as_primitive::<Decimal128Type>(),
        );
        let quotients: Decimal128Array = (0..left.len())
            .map(|row| match left.is_valid(row) && right.is_valid(row) {
                true => quotient(left.value(row), right.value(row), shift)
                    .filter(|value| fits(*value, precision)),
                false => None,
            })
            .collect();
        let quotients = quotients.with_precision_and_scale(precision, scale)?;
        Ok(ColumnarValue::Array(Arc::new(quotients)))
    }
}

/// `left * 10^shift / right`, rounded half up; `None` by zero or beyond 128 bits.
fn quotient(left: i128, right: i128, shift: u32) -> Option<i128> {
    if right == 0 {
        return None;
    }
    let factor = i256::from_i128(10).checked_pow(shift)?;
    let numerator = i256::from_i128(left).checked_mul(factor)?;
    let denominator = i256::from_i128(right);
    let quotient = numerator.checked_div(denominator)?;
    let rest = numerator.checked_rem(denominator)?;
    let twice = rest.wrapping_abs().checked_mul(i256::from_i128(2))?;
    let up = twice >= denominator.wrapping_abs();
    let sign = if (left < 0) == (right < 0) { 1 } else { -1 };
    let rounded = match up {
        true => quotient.checked_add(i256::from_i128(sign))?,
        false => quotient,
    };
    rounded.to_i128()
}

fn fits(value: i128, precision: u8) -> bool {
    10_i128
        .checked_pow(u32::from(precision))
        .is_none_or(|limit| value.unsigned_abs() < limit.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_round_half_up_away_from_zero() {
        assert_eq!(quotient(1, 3, 6), Some(333_333));
        assert_eq!(quotient(2, 3, 6), Some(666_667));
        assert_eq!(quotient(-2, 3, 6), Some(-666_667));
        assert_eq!(quotient(1, 0, 6), None);
    }

    #[test]
    fn quotients_have_ksqldb_s_scale_as_far_as_it_goes() {
        let decimal = DataType::Decimal128;
        assert_eq!(quotient_type(&decimal(4, 2), &decimal(4, 2)), Some((11, 7)));
        assert_eq!(
            quotient_type(&decimal(38, 10), &decimal(38, 10)),
            Some((38, 6))
        );
    }
}
