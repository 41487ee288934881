//! What PostgreSQL 15 takes and refuses for the same texts and bytes.

use arrow::{
    array::Array,
    datatypes::{IntervalMonthDayNano, TimeUnit},
};

use super::*;
use crate::pgwire::{
    encode::{self, ColumnEncoder},
    types::arrow_type,
};

fn text_in(
    value: &str,
    wire: &Type,
    target: &DataType,
    zone: &str,
) -> Result<ScalarValue, SqlError> {
    parameter(
        Some(value.as_bytes()),
        wire,
        Format::Text,
        target,
        encode::zone(zone),
    )
}

fn text(value: &str, wire: &Type) -> Result<ScalarValue, SqlError> {
    text_in(value, wire, &arrow_type(wire).expect("a known type"), "UTC")
}

fn binary(value: &[u8], wire: &Type) -> Result<ScalarValue, SqlError> {
    parameter(
        Some(value),
        wire,
        Format::Binary,
        &arrow_type(wire).expect("a known type"),
        encode::zone("UTC"),
    )
}

fn code_of(result: Result<ScalarValue, SqlError>) -> &'static str {
    result.expect_err("an error").code
}

#[test]
fn numbers() {
    assert_eq!(text(" 42 ", &Type::INT4), Ok(ScalarValue::Int32(Some(42))));
    assert_eq!(
        text("-32768", &Type::INT2),
        Ok(ScalarValue::Int16(Some(i16::MIN)))
    );
    assert_eq!(
        code_of(text("32768", &Type::INT2)),
        code::NUMERIC_VALUE_OUT_OF_RANGE
    );
    for wrong in ["", "x", "1.5", "1 2", "0x"] {
        let error = text(wrong, &Type::INT4).expect_err(wrong);
        assert_eq!(error.code, code::INVALID_TEXT_REPRESENTATION);
        assert!(
            error
                .message
                .starts_with("invalid input syntax for type integer:"),
            "{}",
            error.message
        );
    }
    assert_eq!(
        text("1e3", &Type::FLOAT8),
        Ok(ScalarValue::Float64(Some(1000.0)))
    );
    assert_eq!(
        text("-inf", &Type::FLOAT8),
        Ok(ScalarValue::Float64(Some(f64::NEG_INFINITY)))
    );
    assert_eq!(
        code_of(text("1e400", &Type::FLOAT8)),
        code::NUMERIC_VALUE_OUT_OF_RANGE
    );
    assert_eq!(
        code_of(text("1e-400", &Type::FLOAT8)),
        code::NUMERIC_VALUE_OUT_OF_RANGE
    );
    assert_eq!(
        text("0e-400", &Type::FLOAT8),
        Ok(ScalarValue::Float64(Some(0.0)))
    );
    assert_eq!(
        code_of(text("1e39", &Type::FLOAT4)),
        code::NUMERIC_VALUE_OUT_OF_RANGE
    );
}

#[test]
fn booleans() {
    for yes in ["t", "TRUE", "tr", "y", "yes", "on", "1"] {
        assert_eq!(text(yes, &Type::BOOL), Ok(ScalarValue::from(true)), "{yes}");
    }
    for no in ["f", "False", "n", "no", "off", "of", "0"] {
        assert_eq!(text(no, &Type::BOOL), Ok(ScalarValue::from(false)), "{no}");
    }
    for wrong in ["", "o", "2", "truth"] {
        assert_eq!(
            code_of(text(wrong, &Type::BOOL)),
            code::INVALID_TEXT_REPRESENTATION,
            "{wrong}"
        );
    }
}

#[test]
fn numerics_go_to_the_wanted_scale() {
    let target = DataType::Decimal128(12, 4);
    for (value, expected) in [
        ("12.5", 125_000),
        ("-1.25e2", -1_250_000),
        ("1E-3", 10),
        (".5", 5_000),
        ("5.", 50_000),
        ("0012", 120_000),
    ] {
        let read = text_in(value, &Type::NUMERIC, &target, "UTC");
        assert_eq!(
            read,
            Ok(ScalarValue::Decimal128(Some(expected), 12, 4)),
            "{value}"
        );
    }
    for wrong in ["", ".", "-", "1e", "1e+", "1.2.3", "--1", "1,5"] {
        assert_eq!(
            code_of(text(wrong, &Type::NUMERIC)),
            code::INVALID_TEXT_REPRESENTATION,
            "{wrong}"
        );
    }
    for beyond in ["NaN", "Infinity", "1e2000", "1e-2000", "1e99999999999"] {
        assert_eq!(
            code_of(text(beyond, &Type::NUMERIC)),
            code::NUMERIC_VALUE_OUT_OF_RANGE,
            "{beyond}"
        );
    }
    assert_eq!(
        text_in("7", &Type::NUMERIC, &DataType::UInt64, "UTC"),
        Ok(ScalarValue::UInt64(Some(7)))
    );
    assert!(text_in("123456789.0", &Type::NUMERIC, &target, "UTC").is_err());
}

#[test]
fn dates_and_times() {
    for iso in ["2013-01-01", "20130101", "2013/1/1", "2013-01-01 BC"] {
        let expected = if iso.ends_with("BC") {
            -1_454_396
        } else {
            15_706
        };
        assert_eq!(
            text(iso, &Type::DATE),
            Ok(ScalarValue::Date32(Some(expected))),
            "{iso}"
        );
    }
    assert_eq!(
        code_of(text("2013-02-30", &Type::DATE)),
        code::DATETIME_FIELD_OVERFLOW
    );
    for wrong in ["", "1/8/1999", "yesterdayish", "2013-01", "2013-01-01-01"] {
        assert_eq!(
            code_of(text(wrong, &Type::DATE)),
            code::INVALID_DATETIME_FORMAT,
            "{wrong}"
        );
    }
    assert_eq!(
        text("04:05:06.789", &Type::TIME),
        Ok(ScalarValue::Time64Microsecond(Some(14_706_789_000)))
    );
    assert_eq!(
        code_of(text("25:00", &Type::TIME)),
        code::DATETIME_FIELD_OVERFLOW
    );

    let micros = 1_357_017_300_123_456;
    for form in [
        "2013-01-01 05:15:00.123456",
        "2013-01-01T05:15:00.1234561Z",
        "20130101 05:15:00.123456+05:30",
    ] {
        let expected = ScalarValue::TimestampMicrosecond(Some(micros), None);
        assert_eq!(text(form, &Type::TIMESTAMP), Ok(expected), "{form}");
    }
    let millis = DataType::Timestamp(TimeUnit::Millisecond, None);
    assert_eq!(
        text_in(
            "2013-01-01 05:15:00.123456",
            &Type::TIMESTAMP,
            &millis,
            "UTC"
        ),
        Ok(ScalarValue::TimestampMillisecond(
            Some(micros / 1_000),
            None
        ))
    );
    assert_eq!(
        code_of(text("infinity", &Type::TIMESTAMP)),
        code::DATETIME_FIELD_OVERFLOW
    );
}

#[test]
fn a_clock_without_a_zone_is_the_sessions() {
    let target = arrow_type(&Type::TIMESTAMPTZ).expect("a known type");
    let read = |value: &str, zone: &str| match text_in(value, &Type::TIMESTAMPTZ, &target, zone) {
        Ok(ScalarValue::TimestampMicrosecond(Some(micros), _)) => micros / 1_000_000,
        other => panic!("{value}: {other:?}"),
    };
    let midnight = 1_356_998_400;
    assert_eq!(read("2013-01-01 00:00:00", "UTC"), midnight);
    assert_eq!(read("2013-01-01 05:30:00", "Asia/Kolkata"), midnight);
    for other in ["+05:30", "+0530", " Asia/Kolkata"] {
        assert_eq!(
            read(&format!("2013-01-01 05:30:00{other}"), "America/New_York"),
            midnight,
            "{other}"
        );
    }
    assert_eq!(read("2012-12-31 16:00:00-8", "UTC"), midnight);
    // Skipped by the change to summer time, and shown twice by the change back.
    assert_eq!(
        read("2013-03-10 02:30:00", "America/New_York"),
        read("2013-03-10 07:30:00Z", "UTC")
    );
    assert_eq!(
        read("2013-11-03 01:30:00", "America/New_York"),
        read("2013-11-03 06:30:00Z", "UTC")
    );
    let error = text_in(
        "2013-01-01 00:00:00 Mars/Olympus",
        &Type::TIMESTAMPTZ,
        &target,
        "UTC",
    );
    assert_eq!(code_of(error), code::INVALID_PARAMETER_VALUE);
}

#[test]
fn intervals() {
    const SECOND: i64 = 1_000_000_000;
    let cases = [
        ("1 week 2.5 days", (0, 9, 43_200 * SECOND)),
        ("1.5 hours", (0, 0, 5_400 * SECOND)),
        ("@ 1 minute 2 secs ago", (0, 0, -62 * SECOND)),
        ("P1Y2M3DT4H5M6.5S", (14, 3, 14_706 * SECOND + SECOND / 2)),
        ("1:30", (0, 0, 5_400 * SECOND)),
        ("3", (0, 0, 3 * SECOND)),
        ("1 year 3:00", (12, 0, 10_800 * SECOND)),
        ("-1.5 seconds", (0, 0, -SECOND * 3 / 2)),
        ("1.5 years", (18, 0, 0)),
        (
            "1 year 2 mons -3 days 04:05:06.789",
            (14, -3, 14_706_789_000_000),
        ),
        ("10s", (0, 0, 10 * SECOND)),
    ];
    for (value, (months, days, nanos)) in cases {
        let expected =
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanos)));
        assert_eq!(text(value, &Type::INTERVAL), Ok(expected), "{value}");
    }
    for wrong in ["", "1 parsec", "P", "P1H", "PT", "1 2 3 x"] {
        assert_eq!(
            code_of(text(wrong, &Type::INTERVAL)),
            code::INVALID_DATETIME_FORMAT,
            "{wrong}"
        );
    }
    assert_eq!(
        code_of(text("99999999999 years", &Type::INTERVAL)),
        code::DATETIME_FIELD_OVERFLOW
    );
}

#[test]
fn bytes_json_and_uuids() {
    let bytes = |bytes: &[u8]| Ok(ScalarValue::Binary(Some(bytes.to_vec())));
    assert_eq!(text("\\xDEad be", &Type::BYTEA), bytes(b"\xde\xad\xbe"));
    assert_eq!(text("a\\\\b\\001", &Type::BYTEA), bytes(b"a\\b\x01"));
    for wrong in ["\\x1", "\\xzz", "a\\b", "\\400"] {
        assert_eq!(
            code_of(text(wrong, &Type::BYTEA)),
            code::INVALID_TEXT_REPRESENTATION,
            "{wrong}"
        );
    }
    assert_eq!(
        text("{\"a\": 1}", &Type::JSONB),
        Ok(ScalarValue::from("{\"a\": 1}"))
    );
    assert_eq!(binary(b"\x01{}", &Type::JSONB), Ok(ScalarValue::from("{}")));
    assert_eq!(
        code_of(binary(b"\x02{}", &Type::JSONB)),
        code::INVALID_BINARY_REPRESENTATION
    );
    assert_eq!(
        code_of(text("{", &Type::JSON)),
        code::INVALID_TEXT_REPRESENTATION
    );
    assert_eq!(
        binary(&[0x12; 16], &Type::UUID),
        Ok(ScalarValue::from("12121212-1212-1212-1212-121212121212"))
    );
    assert_eq!(
        code_of(text_in("\u{fffd}", &Type::INT4, &DataType::Int32, "UTC")),
        code::INVALID_TEXT_REPRESENTATION
    );
    let not_text = parameter(
        Some(b"\xff"),
        &Type::TEXT,
        Format::Text,
        &DataType::Utf8,
        encode::zone("UTC"),
    );
    assert_eq!(code_of(not_text), code::CHARACTER_NOT_IN_REPERTOIRE);
}

#[test]
fn a_null_has_the_wanted_type() {
    let null = parameter(
        None,
        &Type::TEXT,
        Format::Text,
        &DataType::Int64,
        encode::zone("UTC"),
    );
    assert_eq!(null, Ok(ScalarValue::Int64(None)));
}

#[test]
fn arrays() {
    let read = |value: &str, wire: &Type| text(value, wire).map(|list| list.to_string());
    assert_eq!(
        read("{1,NULL, 3 }", &Type::INT4_ARRAY).as_deref(),
        Ok("[1, , 3]")
    );
    assert_eq!(read("{}", &Type::INT8_ARRAY).as_deref(), Ok("[]"));
    assert_eq!(
        read(r#"{r, "a,b" ,"NULL","q\"",e\,f}"#, &Type::TEXT_ARRAY).as_deref(),
        Ok(r#"[r, a,b, NULL, q", e,f]"#)
    );
    for wrong in [
        "1,2",
        "{1,2",
        "{1,}",
        "{,1}",
        "{1 2,\"3\"4}",
        "{\"a}",
        "{{1},{2}}",
    ] {
        assert_eq!(
            code_of(text(wrong, &Type::INT4_ARRAY)),
            code::INVALID_TEXT_REPRESENTATION,
            "{wrong}"
        );
    }
}

/// Every type comes back from its own binary form, whatever bytes are cut off it in between.
#[test]
fn binary_values_read_back_and_truncations_are_errors() {
    let values = [
        (Type::BOOL, "t"),
        (Type::INT2, "-7"),
        (Type::INT4, "7"),
        (Type::INT8, "-9223372036854775808"),
        (Type::FLOAT4, "1.5"),
        (Type::FLOAT8, "-0.1"),
        (Type::NUMERIC, "-12345678.000000000900000000"),
        (Type::DATE, "2013-01-01"),
        (Type::TIME, "04:05:06.789"),
        (Type::TIMESTAMP, "2013-01-01 05:15:00.123456"),
        (Type::TIMESTAMPTZ, "1999-12-31 23:59:59+00"),
        (Type::INTERVAL, "1 year -3 days 04:05:06.789"),
        (Type::INT4_ARRAY, "{1,NULL,-3}"),
        (Type::TEXT_ARRAY, "{a,NULL,\"\"}"),
        (Type::NUMERIC_ARRAY, "{1.5,-2}"),
    ];
    for (wire, literal) in values {
        let value = text(literal, &wire).unwrap_or_else(|error| panic!("{wire}: {error}"));
        let array = value.to_array().expect("an array of one");
        let encoder =
            ColumnEncoder::new(&array, Format::Binary, encode::zone("UTC")).expect("an encoder");
        let mut bytes = bytes::BytesMut::new();
        assert!(!array.is_null(0));
        encoder.write(0, &mut bytes).expect("a value in range");
        assert_eq!(binary(&bytes, &wire).as_ref(), Ok(&value), "{wire}");
        for length in 0..bytes.len() {
            assert!(
                binary(&bytes[..length], &wire).is_err(),
                "{wire} cut to {length}"
            );
        }
    }
}

/// A generator of its own, so that a failure names its seed.
fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Small numbers are likelier to pass for lengths and counts.
        if state & 1 == 0 {
            (state >> 32) as u8 & 3
        } else {
            (state >> 32) as u8
        }
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn random_bytes_are_never_a_panic() {
    let types = [
        Type::BOOL,
        Type::INT4,
        Type::NUMERIC,
        Type::TEXT,
        Type::BYTEA,
        Type::DATE,
        Type::TIME,
        Type::TIMESTAMP,
        Type::TIMESTAMPTZ,
        Type::INTERVAL,
        Type::JSON,
        Type::JSONB,
        Type::UUID,
        Type::INT4_ARRAY,
        Type::NUMERIC_ARRAY,
        Type::TIMESTAMPTZ_ARRAY,
    ];
    let zone = encode::zone("America/New_York");
    for seed in 0..2_000 {
        let bytes = random_bytes(seed, (seed % 41) as usize);
        for wire in &types {
            let target = arrow_type(wire).expect("a known type");
            for format in [Format::Binary, Format::Text] {
                // Any answer but a panic is right.
                let _ = parameter(Some(&bytes), wire, format, &target, zone);
            }
        }
    }
}
