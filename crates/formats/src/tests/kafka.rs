//! KAFKA and NONE.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, BinaryArray, Float64Array, Int32Array, Int64Array, StringArray},
    datatypes::DataType,
};

use super::schema;
use crate::{EncodedRecords, FormatError, FormatSpec, decoder, encoder, projected_decoder};

#[test]
fn values_are_kafka_s_bytes() {
    let cases: Vec<(ArrayRef, Vec<u8>)> = vec![
        (
            Arc::new(Int32Array::from(vec![Some(-2), None])),
            vec![255, 255, 255, 254],
        ),
        (
            Arc::new(Int64Array::from(vec![Some(258), None])),
            vec![0, 0, 0, 0, 0, 0, 1, 2],
        ),
        (
            Arc::new(Float64Array::from(vec![Some(1.0), None])),
            vec![0x3f, 0xf0, 0, 0, 0, 0, 0, 0],
        ),
        (
            Arc::new(StringArray::from(vec![Some("é"), None])),
            vec![0xc3, 0xa9],
        ),
        (
            Arc::new(BinaryArray::from(vec![Some(&[0u8, 255][..]), None])),
            vec![0, 255],
        ),
    ];
    for (column, bytes) in cases {
        let schema = schema(&[("v", column.data_type().clone())]);
        let mut out = EncodedRecords::new();
        encoder(&FormatSpec::Kafka, Arc::clone(&schema))
            .unwrap()
            .encode(&[Arc::clone(&column)], &mut out)
            .unwrap();
        assert_eq!(out.iter().collect::<Vec<_>>(), [Some(&bytes[..]), None]);

        let records: Vec<_> = out.iter().collect();
        let decoded = decoder(&FormatSpec::Kafka, schema)
            .unwrap()
            .decode(&records)
            .unwrap();
        assert_eq!(decoded.errors, []);
        assert_eq!(&decoded.columns[0], &column);
    }
}

#[test]
fn wrong_bytes_are_record_errors() {
    let schema = schema(&[("v", DataType::Int64)]);
    let records = [Some(&b"1234567"[..]), Some(b"12345678"), Some(b""), None];
    let decoded = decoder(&FormatSpec::Kafka, schema)
        .unwrap()
        .decode(&records)
        .unwrap();
    let errors: Vec<_> = decoded
        .errors
        .iter()
        .map(|error| (error.index, error.reason.as_str()))
        .collect();
    assert_eq!(
        errors,
        [
            (0, "field \"v\": expected 8 bytes, got 7"),
            (2, "field \"v\": expected 8 bytes, got 0")
        ]
    );
    assert_eq!(decoded.columns[0].null_count(), 3);

    let text = super::schema(&[("v", DataType::Utf8)]);
    let decoded = decoder(&FormatSpec::Kafka, text)
        .unwrap()
        .decode(&[Some(&[b'a', 0xff][..])])
        .unwrap();
    assert_eq!(decoded.errors[0].reason, "field \"v\": not UTF-8 at byte 1");
}

#[test]
fn only_one_flat_column_fits() {
    let two = schema(&[("a", DataType::Int32), ("b", DataType::Int32)]);
    assert!(matches!(
        decoder(&FormatSpec::Kafka, two),
        Err(FormatError::ColumnCount { actual: 2, .. })
    ));
    let boolean = schema(&[("a", DataType::Boolean)]);
    assert!(matches!(
        encoder(&FormatSpec::Kafka, boolean),
        Err(FormatError::UnsupportedType { .. })
    ));
}

#[test]
fn a_column_nobody_reads_is_not_built() {
    let schema = schema(&[("v", DataType::Int64)]);
    let decoded = projected_decoder(&FormatSpec::Kafka, schema, &[])
        .unwrap()
        .decode(&[Some(&b"12345678"[..])])
        .unwrap();
    assert!(decoded.columns.is_empty());
}

#[test]
fn none_has_no_columns_and_no_bytes() {
    let empty = schema(&[]);
    let decoded = decoder(&FormatSpec::None, Arc::clone(&empty))
        .unwrap()
        .decode(&[Some(&b"ignored"[..]), None])
        .unwrap();
    assert!(decoded.columns.is_empty() && decoded.errors.is_empty());
    assert!(encoder(&FormatSpec::None, empty).is_ok());
    assert!(decoder(&FormatSpec::None, schema(&[("k", DataType::Utf8)])).is_err());
}
