//! DELIMITED.

use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array,
        Int64Array, StringArray, Time32MillisecondArray, TimestampMillisecondArray,
    },
    datatypes::{DataType, Field, TimeUnit},
};

use super::{decode, display, encode, schema, texts};
use crate::{FormatError, FormatSpec, decoder, projected_decoder};

const COMMA: FormatSpec = FormatSpec::Delimited { delimiter: b',' };

#[test]
fn every_flat_type_is_read() {
    let columns = [
        ("flag", DataType::Boolean, "true", "true"),
        ("small", DataType::Int16, "-5", "-5"),
        ("int", DataType::Int32, "17", "17"),
        (
            "big",
            DataType::Int64,
            "9007199254740993",
            "9007199254740993",
        ),
        ("real", DataType::Float32, "1.5", "1.5"),
        ("double", DataType::Float64, "1e3", "1000.0"),
        ("dec", DataType::Decimal128(6, 4), "1.25", "1.2500"),
        (
            "wide",
            DataType::Decimal256(40, 2),
            "12345678901234567890123456789012345678.5",
            "12345678901234567890123456789012345678.50",
        ),
        ("text", DataType::Utf8, "\"a, b\"", "a, b"),
        ("bytes", DataType::Binary, "AQID", "010203"),
        ("day", DataType::Date32, "4", "1970-01-05"),
        (
            "time",
            DataType::Time32(TimeUnit::Millisecond),
            "4000",
            "00:00:04",
        ),
        (
            "ts",
            DataType::Timestamp(TimeUnit::Millisecond, None),
            "10",
            "1970-01-01T00:00:00.010",
        ),
    ];
    let schema = schema(
        &columns
            .clone()
            .map(|(name, data_type, ..)| (name, data_type)),
    );
    let line = columns.clone().map(|(_, _, text, _)| text).join(",");
    let decoded = decode(&COMMA, &schema, &[&line, &",".repeat(columns.len() - 1)]);
    assert_eq!(decoded.errors, []);
    for ((name, _, _, expected), column) in columns.iter().zip(&decoded.columns) {
        assert_eq!(display(column), [*expected, "-"], "{name}");
    }
}

#[test]
fn every_flat_type_is_written() {
    let columns: Vec<(ArrayRef, &str)> = vec![
        (Arc::new(BooleanArray::from(vec![Some(true), None])), "true"),
        (Arc::new(Int64Array::from(vec![Some(-5), None])), "-5"),
        (Arc::new(Float64Array::from(vec![Some(1e7), None])), "1.0E7"),
        (
            Arc::new(
                Decimal128Array::from(vec![Some(-5), None])
                    .with_precision_and_scale(6, 4)
                    .unwrap(),
            ),
            "-0.0005",
        ),
        (
            Arc::new(StringArray::from(vec![Some("say \"hi\""), None])),
            "\"say \"\"hi\"\"\"",
        ),
        (
            Arc::new(BinaryArray::from(vec![Some(&b"!"[..]), None])),
            "IQ==",
        ),
        (Arc::new(Date32Array::from(vec![Some(30), None])), "30"),
        (
            Arc::new(Time32MillisecondArray::from(vec![Some(10), None])),
            "10",
        ),
        (
            Arc::new(TimestampMillisecondArray::from(vec![Some(-1), None])),
            "-1",
        ),
    ];
    let fields: Vec<_> = columns
        .iter()
        .map(|(column, _)| ("c", column.data_type().clone()))
        .collect();
    let line = columns
        .iter()
        .map(|(_, text)| *text)
        .collect::<Vec<_>>()
        .join(",");
    let arrays: Vec<_> = columns.into_iter().map(|(column, _)| column).collect();
    assert_eq!(
        encode(&COMMA, &schema(&fields), &arrays),
        [Some(line), Some(",,,,,,,,".to_owned())]
    );
}

#[test]
fn the_first_field_has_its_own_rule_for_quotes() {
    let schema = schema(&[("a", DataType::Utf8), ("b", DataType::Utf8)]);
    let values: ArrayRef = Arc::new(StringArray::from(vec![
        Some("-5"),
        Some(""),
        None,
        Some("a|b"),
    ]));
    assert_eq!(
        encode(
            &FormatSpec::Delimited { delimiter: b'|' },
            &schema,
            &[Arc::clone(&values), values]
        )
        .into_iter()
        .flatten()
        .collect::<Vec<_>>(),
        ["\"-5\"|-5", "\"\"|", "|", "\"a|b\"|\"a|b\""]
    );
}

#[test]
fn wrong_lines_are_record_errors() {
    let schema = schema(&[("a", DataType::Int32), ("b", DataType::Utf8)]);
    let decoded = decode(
        &COMMA,
        &schema,
        &[
            "1,x", "1", "1,x,y", "one,x", "2,\"x", "", "3,y\n", "4,y\n5,z",
        ],
    );
    let errors: Vec<_> = decoded
        .errors
        .iter()
        .map(|error| (error.index, error.reason.as_str()))
        .collect();
    assert_eq!(
        errors,
        [
            (1, "expected 2 fields, got 1"),
            (2, "expected 2 fields, got 3"),
            (3, "field \"a\": expected an INT"),
            (4, "a quoted field without its closing quote"),
            (5, "expected 2 fields, got an empty line"),
            (7, "more than one line in one record"),
        ]
    );
    assert_eq!(
        display(&decoded.columns[0]),
        ["1", "-", "-", "-", "-", "-", "3", "-"]
    );
    assert_eq!(
        texts(&decoded, 1),
        [Some("x"), None, None, None, None, None, Some("y"), None]
    );
}

#[test]
fn a_projection_keeps_the_positions() {
    let schema = schema(&[
        ("a", DataType::Int32),
        ("b", DataType::Utf8),
        ("c", DataType::Int32),
    ]);
    let mut decoder = projected_decoder(&COMMA, schema, &[2]).unwrap();
    let decoded = decoder
        .decode(&[Some(&b"not a number,x,7"[..]), Some(b"1,7")])
        .unwrap();
    assert_eq!(display(&decoded.columns[0]), ["7", "-"]);
    assert_eq!((decoded.columns.len(), decoded.errors.len()), (1, 1));
}

#[test]
fn nested_columns_are_refused() {
    let item = Arc::new(Field::new_list_field(DataType::Int32, true));
    let nested = schema(&[("a", DataType::List(item))]);
    assert!(matches!(
        decoder(&COMMA, nested),
        Err(FormatError::UnsupportedType { .. })
    ));
    assert!(decoder(&COMMA, schema(&[])).is_err());
}
