//! Numbers: rounding, domains, every numeric type.

use datafusion::arrow::array::{
    Decimal128Array, Decimal256Array, Float64Array, Int32Array, Int64Array,
};
use datafusion::arrow::datatypes::i256;

use crate::harness::{check, column, over};

#[test]
fn one_number() {
    check(&[
        ("abs(arrow_cast(-3, 'Int32'))", "3"),
        ("abs(NULL::double)", "NULL"),
        ("abs(arrow_cast(-9223372036854775808, 'Int64'))", "NULL"),
        ("sign(-2.5)", "-1"),
        ("sign(arrow_cast(7, 'Int32'))", "1"),
        ("sign(arrow_cast('NaN', 'Float64'))", "0"),
        ("ceil(-1.5)", "-1.0"),
        ("floor(7)", "7"),
        ("sqrt(-1)", "NaN"),
        ("ln(0)", "-inf"),
        ("ln(-1)", "NaN"),
        ("acos(2)", "NaN"),
        ("log(0, 13)", "NaN"),
        ("log(1, 13)", "NaN"),
        ("log(-2, 13)", "NaN"),
        ("log(15, 0)", "-inf"),
        ("cot(0)", "inf"),
        ("power(2, NULL)", "NULL"),
        ("atan2(0, -3)", "3.141592653589793"),
        ("pi()", "3.141592653589793"),
        ("degrees(pi())", "180.0"),
        ("radians(180)", "3.141592653589793"),
    ]);
}

#[test]
fn rounding_goes_up_from_the_middle() {
    let doubles = Float64Array::from(vec![
        Some(1.5),
        Some(-1.5),
        Some(-1.7),
        Some(2.4),
        None,
        Some(0.49999999999999994),
    ]);
    let round = |expression: &str| over(vec![column("x", doubles.clone())], expression);
    assert_eq!(round("round(x)"), ["2", "-1", "-2", "2", "NULL", "0"]);
    assert_eq!(
        round("round(x, 0)"),
        ["2.0", "-1.0", "-2.0", "2.0", "NULL", "0.0"]
    );
    assert_eq!(round("trunc(x)"), ["1", "-1", "-1", "2", "NULL", "0"]);
    assert_eq!(
        round("trunc(x, 1)"),
        ["1.5", "-1.5", "-1.7", "2.4", "NULL", "0.4"]
    );
    check(&[
        ("round(7)", "7"),
        ("round(1250e0, -2)", "1300.0"),
        ("round(12345.678e0, NULL)", "NULL"),
    ]);
}

#[test]
fn decimals_keep_their_places() {
    let narrow = Decimal128Array::from(vec![Some(12_345), Some(-12_345), Some(99_999), None])
        .with_precision_and_scale(5, 2)
        .unwrap();
    let over_narrow = |expression: &str| over(vec![column("x", narrow.clone())], expression);
    assert_eq!(
        over_narrow("abs(x)"),
        ["123.45", "123.45", "999.99", "NULL"]
    );
    assert_eq!(
        over_narrow("ceil(x)"),
        ["124.00", "-123.00", "NULL", "NULL"],
        "1000.00 does not fit"
    );
    assert_eq!(
        over_narrow("floor(x)"),
        ["123.00", "-124.00", "999.00", "NULL"]
    );
    assert_eq!(over_narrow("round(x)"), ["123", "-123", "NULL", "NULL"]);
    assert_eq!(
        over_narrow("round(x, 1)"),
        ["123.50", "-123.40", "NULL", "NULL"],
        "half-way goes to the larger number"
    );
    assert_eq!(
        over_narrow("round(x, -1)"),
        ["120.00", "-120.00", "NULL", "NULL"]
    );
    assert_eq!(over_narrow("trunc(x)"), ["123", "-123", "999", "NULL"]);
    assert_eq!(
        over_narrow("trunc(x, 1)"),
        ["123.40", "-123.40", "999.90", "NULL"]
    );
    assert_eq!(
        over_narrow("arrow_typeof(round(x))"),
        ["Decimal128(3, 0)"; 4]
    );

    let wide = Decimal256Array::from(vec![i256::from_string(
        "123456789012345678901234567890123456789055",
    )])
    .with_precision_and_scale(45, 2)
    .unwrap();
    let over_wide = |expression: &str| over(vec![column("x", wide.clone())], expression);
    assert_eq!(
        over_wide("round(x, 1)"),
        ["1234567890123456789012345678901234567890.60"]
    );
    assert_eq!(
        over_wide("floor(x)"),
        ["1234567890123456789012345678901234567890.00"]
    );
    let wide_places = Decimal256Array::from(vec![i256::from_string(
        "1250000000000000000000000000000000000000",
    )])
    .with_precision_and_scale(40, 38)
    .unwrap();
    assert_eq!(
        over(vec![column("x", wide_places)], "round(x)"),
        ["13"],
        "a wide decimal with a narrow whole part"
    );
}

#[test]
fn numbers_of_two_types_meet() {
    let columns = || {
        vec![
            column("i", Int32Array::from(vec![Some(5), None, Some(1)])),
            column("b", Int64Array::from(vec![Some(3), Some(4), None])),
            column("d", Float64Array::from(vec![Some(4.5), None, None])),
        ]
    };
    assert_eq!(over(columns(), "greatest(i, b, d)"), ["5.0", "4.0", "1.0"]);
    assert_eq!(over(columns(), "least(i, b)"), ["3", "4", "1"]);
    assert_eq!(over(columns(), "coalesce(d, i, b)"), ["4.5", "4.0", "1.0"]);
    assert_eq!(over(columns(), "ifnull(i, b)"), ["5", "4", "1"]);
    assert_eq!(over(columns(), "nullif(i, 5)"), ["NULL", "NULL", "1"]);
    assert_eq!(over(columns(), "as_value(i)"), ["5", "NULL", "1"]);
}

#[test]
fn choices_of_other_types() {
    check(&[
        ("greatest('pear', NULL, 'apple')", "pear"),
        ("least(from_days(3), '1970-01-03')", "1970-01-03"),
        (
            "greatest(to_bytes('a', 'utf8'), to_bytes('b', 'utf8'))",
            "62",
        ),
        ("coalesce(NULL, ARRAY[1])", "[1]"),
        ("nullif(NULL, 'x')", "NULL"),
        ("nullif('y', NULL)", "y"),
    ]);
}

#[test]
fn distances() {
    check(&[
        (
            "round(geo_distance(37.4133, -122.1162, 51.5257, -0.1122), 0)",
            "8635.0",
        ),
        (
            "round(geo_distance(37.4133, -122.1162, 51.5257, -0.1122, 'miles'), 0)",
            "5366.0",
        ),
        ("geo_distance(10, 20, 10, 20, NULL)", "0.0"),
        ("geo_distance(91, 20, 10, 20)", "NULL"),
        ("geo_distance(10, 181, 10, 20)", "NULL"),
        ("geo_distance(10, 20, 10, 20, 'ly')", "NULL"),
        ("geo_distance(NULL, 20, 10, 20)", "NULL"),
    ]);
}
