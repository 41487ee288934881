//! Functions of numbers that give DOUBLE, and ABS, SIGN, CEIL, FLOOR. Domain errors are NaN or infinity, as in Java.

use arrow::{
    array::{ArrayRef, ArrowPrimitiveType},
    datatypes::{
        ArrowNativeTypeOp, DataType, Decimal128Type, Decimal256Type, Float64Type, Int32Type,
        Int64Type,
    },
};
use datafusion::common::Result;

use crate::{
    call::{Call, value},
    function::{Category, Function, Overload, Returns},
    scalar::power_of_ten::power_of_ten,
    signature::{Kind, Param, param},
    step_clock,
};

const X_INT: Param = param("x", Kind::Int, "a number");
const X_BIGINT: Param = param("x", Kind::BigInt, "a number");
const X_DECIMAL: Param = param("x", Kind::Decimal, "a number");
const X_DOUBLE: Param = param("x", Kind::Double, "a number");

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "abs",
        Category::Math,
        "The absolute value of a number.",
        &[
            Overload::new(&[X_INT], Kind::Int, abs::<Int32Type>),
            Overload::new(&[X_BIGINT], Kind::BigInt, abs::<Int64Type>),
            Overload::new(&[X_DECIMAL], Kind::Decimal, abs_decimal).returning(Returns::Argument(0)),
            Overload::new(&[X_DOUBLE], Kind::Double, |call| {
                Ok(doubles(call, f64::abs))
            }),
        ],
        &[("abs(-3)", "3"), ("abs(-2.5)", "2.5")],
    )
    .ksql_only(),
    Function::new(
        "sign",
        Category::Math,
        "-1, 0 or 1 for a number below, at or above zero.",
        &[
            Overload::new(&[X_INT], Kind::Int, |call| {
                Ok(signs::<Int32Type>(call, |x| x.signum()))
            }),
            Overload::new(&[X_BIGINT], Kind::Int, |call| {
                Ok(signs::<Int64Type>(call, |x| x.signum() as i32))
            }),
            Overload::new(&[X_DOUBLE], Kind::Int, |call| {
                Ok(signs::<Float64Type>(call, |x| {
                    i32::from(x > 0.0) - i32::from(x < 0.0)
                }))
            }),
        ],
        &[("sign(-7)", "-1"), ("sign(0.0)", "0")],
    ),
    Function::new(
        "ceil",
        Category::Math,
        "The smallest whole number that is not below a number, in the number's own type.",
        &[
            Overload::new(&[X_INT], Kind::Int, |call| call.expanded(0)),
            Overload::new(&[X_BIGINT], Kind::BigInt, |call| call.expanded(0)),
            Overload::new(&[X_DECIMAL], Kind::Decimal, |call| {
                Ok(whole_decimals(call, true))
            })
            .returning(Returns::Argument(0)),
            Overload::new(&[X_DOUBLE], Kind::Double, |call| {
                Ok(doubles(call, f64::ceil))
            }),
        ],
        &[("ceil(1.2e0)", "2e0")],
    )
    .ksql_only(),
    Function::new(
        "floor",
        Category::Math,
        "The largest whole number that is not above a number, in the number's own type.",
        &[
            Overload::new(&[X_INT], Kind::Int, |call| call.expanded(0)),
            Overload::new(&[X_BIGINT], Kind::BigInt, |call| call.expanded(0)),
            Overload::new(&[X_DECIMAL], Kind::Decimal, |call| {
                Ok(whole_decimals(call, false))
            })
            .returning(Returns::Argument(0)),
            Overload::new(&[X_DOUBLE], Kind::Double, |call| {
                Ok(doubles(call, f64::floor))
            }),
        ],
        &[("floor(-1.2e0)", "-2e0")],
    )
    .ksql_only(),
    unary(
        "acos",
        "The inverse cosine, in radians.",
        &[("acos(1)", "0e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::acos))
        })],
    ),
    unary(
        "asin",
        "The inverse sine, in radians.",
        &[("asin(0)", "0e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::asin))
        })],
    ),
    unary(
        "atan",
        "The inverse tangent, in radians.",
        &[("atan(0)", "0e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::atan))
        })],
    ),
    Function::new(
        "atan2",
        Category::Math,
        "The angle in radians of the point (x, y) seen from the origin.",
        &[Overload::new(
            &[
                param("y", Kind::Double, "the ordinate"),
                param("x", Kind::Double, "the abscissa"),
            ],
            Kind::Double,
            |call| Ok(double_pairs(call, f64::atan2)),
        )],
        &[("atan2(0, 1)", "0e0")],
    )
    .ksql_only(),
    unary(
        "cbrt",
        "The cube root.",
        &[("cbrt(27)", "3e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::cbrt))
        })],
    ),
    unary(
        "cos",
        "The cosine of an angle in radians.",
        &[("cos(0)", "1e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::cos))
        })],
    ),
    unary(
        "cosh",
        "The hyperbolic cosine.",
        &[("cosh(0)", "1e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::cosh))
        })],
    ),
    unary(
        "cot",
        "The cotangent of an angle in radians; infinite at 0.",
        &[],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, |x| 1.0 / x.tan()))
        })],
    ),
    unary(
        "degrees",
        "Radians as degrees.",
        &[("degrees(0)", "0e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::to_degrees))
        })],
    ),
    unary(
        "exp",
        "Euler's number to a power.",
        &[("exp(0)", "1e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::exp))
        })],
    ),
    unary(
        "ln",
        "The natural logarithm.",
        &[("ln(1)", "0e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::ln))
        })],
    ),
    Function::new(
        "log",
        Category::Math,
        "The logarithm: natural with one argument, to a base with two.",
        &[
            Overload::new(&[X_DOUBLE], Kind::Double, |call| Ok(doubles(call, f64::ln))),
            Overload::new(
                &[
                    param("base", Kind::Double, "the base, above 0 and not 1"),
                    param("x", Kind::Double, "a number"),
                ],
                Kind::Double,
                |call| Ok(double_pairs(call, logarithm)),
            ),
        ],
        &[("log(1)", "0e0"), ("log(2, 8)", "3e0")],
    )
    .ksql_only(),
    Function::new(
        "pi",
        Category::Math,
        "The number pi.",
        &[Overload::new(&[], Kind::Double, |call| {
            Ok(call.numbers::<Float64Type>(|_| Ok(Some(std::f64::consts::PI))))
        })],
        &[],
    )
    .ksql_only(),
    Function::new(
        "power",
        Category::Math,
        "A number to a power.",
        &[Overload::new(
            &[
                param("base", Kind::Double, "the number"),
                param("exponent", Kind::Double, "the power"),
            ],
            Kind::Double,
            |call| Ok(double_pairs(call, f64::powf)),
        )],
        &[("power(2, 10)", "1024e0")],
    )
    .ksql_only(),
    unary(
        "radians",
        "Degrees as radians.",
        &[("radians(0)", "0e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::to_radians))
        })],
    ),
    Function::new(
        "random",
        Category::Math,
        "A random number from 0 up to, but without, 1.",
        &[Overload::new(&[], Kind::Double, |call| {
            Ok(call.numbers::<Float64Type>(|_| Ok(Some(unit_interval(step_clock::draw())))))
        })],
        &[],
    )
    .ksql_only()
    .reading_step(),
    unary(
        "sin",
        "The sine of an angle in radians.",
        &[("sin(0)", "0e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::sin))
        })],
    ),
    unary(
        "sinh",
        "The hyperbolic sine.",
        &[("sinh(0)", "0e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::sinh))
        })],
    ),
    unary(
        "sqrt",
        "The square root.",
        &[("sqrt(9)", "3e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::sqrt))
        })],
    ),
    unary(
        "tan",
        "The tangent of an angle in radians.",
        &[("tan(0)", "0e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::tan))
        })],
    ),
    unary(
        "tanh",
        "The hyperbolic tangent.",
        &[("tanh(0)", "0e0")],
        &[Overload::new(&[X_DOUBLE], Kind::Double, |call| {
            Ok(doubles(call, f64::tanh))
        })],
    ),
];

/// A function of one DOUBLE; DataFusion has one of the same name.
const fn unary(
    name: &'static str,
    description: &'static str,
    examples: &'static [(&'static str, &'static str)],
    overloads: &'static [Overload],
) -> Function {
    Function::new(name, Category::Math, description, overloads, examples).ksql_only()
}

fn doubles(call: &Call, compute: impl Fn(f64) -> f64) -> ArrayRef {
    let x = call.double(0);
    call.numbers::<Float64Type>(|row| Ok(x.get(row).map(&compute)))
}

fn double_pairs(call: &Call, compute: impl Fn(f64, f64) -> f64) -> ArrayRef {
    let (left, right) = (call.double(0), call.double(1));
    call.numbers::<Float64Type>(|row| {
        Ok(Some(compute(value!(left.get(row)), value!(right.get(row)))))
    })
}

/// The logarithm of `x` to `base`, NaN where there is none.
fn logarithm(base: f64, x: f64) -> f64 {
    if base <= 0.0 || base == 1.0 {
        return f64::NAN;
    }
    x.ln() / base.ln()
}

/// The upper 53 bits as a fraction.
fn unit_interval(bits: u64) -> f64 {
    const FRACTION_BITS: u32 = 53;
    (bits >> (u64::BITS - FRACTION_BITS)) as f64 / (1u64 << FRACTION_BITS) as f64
}

fn abs<T: ArrowPrimitiveType>(call: &Call) -> Result<ArrayRef> {
    let x = call.primitive::<T>(0);
    Ok(call.numbers::<T>(|row| {
        let x = value!(x.get(row));
        if x.is_ge(T::Native::ZERO) {
            return Ok(Some(x));
        }
        match x.neg_checked() {
            Ok(positive) => Ok(Some(positive)),
            Err(_) => Err("the absolute value does not fit the type".to_owned()),
        }
    }))
}

fn abs_decimal(call: &Call) -> Result<ArrayRef> {
    match call.return_type() {
        DataType::Decimal256(_, _) => abs::<Decimal256Type>(call),
        _ => abs::<Decimal128Type>(call),
    }
}

fn signs<T: ArrowPrimitiveType>(call: &Call, sign: impl Fn(T::Native) -> i32) -> ArrayRef {
    let x = call.primitive::<T>(0);
    call.numbers::<Int32Type>(|row| Ok(x.get(row).map(&sign)))
}

fn whole_decimals(call: &Call, up: bool) -> ArrayRef {
    match call.return_type() {
        DataType::Decimal256(precision, scale) => {
            whole::<Decimal256Type>(call, *precision, *scale, up)
        }
        DataType::Decimal128(precision, scale) => {
            whole::<Decimal128Type>(call, *precision, *scale, up)
        }
        other => arrow::array::new_null_array(other, call.rows()),
    }
}

/// Decimals of `scale` places up or down to the next whole number.
fn whole<T: ArrowPrimitiveType>(call: &Call, precision: u8, scale: i8, up: bool) -> ArrayRef
where
    T::Native: ArrowNativeTypeOp,
{
    let x = call.primitive::<T>(0);
    let unit = power_of_ten::<T::Native>(u32::try_from(scale).unwrap_or(0));
    let limit = power_of_ten::<T::Native>(u32::from(precision));
    call.numbers::<T>(|row| {
        let x = value!(x.get(row));
        let unit = value!(unit);
        let rest = x.mod_wrapping(unit);
        let toward_zero = x.sub_wrapping(rest);
        let away = match up {
            true => rest.is_gt(T::Native::ZERO).then_some(unit),
            false => rest.is_lt(T::Native::ZERO).then_some(unit.neg_wrapping()),
        };
        let result = away.map_or(toward_zero, |step| toward_zero.add_wrapping(step));
        let too_large =
            limit.is_some_and(|limit| result.is_ge(limit) || result.is_le(limit.neg_wrapping()));
        match too_large {
            true => Err(format!(
                "the result does not fit DECIMAL({precision}, {scale})"
            )),
            false => Ok(Some(result)),
        }
    })
}
