//! Columns to bytes and back, and bytes from nowhere.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
        Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, ListArray, StringArray,
        StructArray, Time32MillisecondArray, TimestampMillisecondArray,
    },
    buffer::{NullBuffer, OffsetBuffer},
    datatypes::{DataType, Field, Fields, i256},
};
use proptest::{collection::vec, option, prelude::*};

use super::schema;
use crate::{EncodedRecords, FormatSpec, decoder, encoder};

const ROWS: usize = 8;

/// One value of every flat type; a column is made of the same field of many.
#[derive(Debug, Clone)]
struct Row {
    boolean: Option<bool>,
    int: Option<i64>,
    double: Option<f64>,
    text: Option<String>,
    bytes: Option<Vec<u8>>,
    digits: Option<i128>,
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (
        option::of(any::<bool>()),
        option::of(any::<i64>()),
        option::of(any::<f64>()),
        option::of(".{0,12}"),
        option::of(vec(any::<u8>(), 0..12)),
        option::of(-(10i128.pow(20))..10i128.pow(20)),
    );
    let row = row.prop_map(|(boolean, int, double, text, bytes, digits)| Row {
        boolean,
        int,
        double,
        text,
        bytes,
        digits,
    });
    vec(row, ROWS)
}

fn collect<A, T>(rows: &[Row], value: impl Fn(&Row) -> Option<T>) -> ArrayRef
where
    A: FromIterator<Option<T>> + Array + 'static,
{
    Arc::new(rows.iter().map(value).collect::<A>())
}

/// A column of every flat type.
fn flat_columns(rows: &[Row]) -> Vec<ArrayRef> {
    let day = |row: &Row| row.int.map(|value| (value % 1_000_000) as i32);
    let time = |row: &Row| row.int.map(|value| value.rem_euclid(86_400_000) as i32);
    let decimal = |row: &Row| row.digits;
    vec![
        collect::<BooleanArray, _>(rows, |row| row.boolean),
        collect::<Int16Array, _>(rows, |row| row.int.map(|value| value as i16)),
        collect::<Int32Array, _>(rows, |row| row.int.map(|value| value as i32)),
        collect::<Int64Array, _>(rows, |row| row.int),
        collect::<Float32Array, _>(rows, |row| row.double.map(|value| value as f32)),
        collect::<Float64Array, _>(rows, |row| row.double),
        Arc::new(
            rows.iter()
                .map(decimal)
                .collect::<Decimal128Array>()
                .with_precision_and_scale(21, 7)
                .unwrap(),
        ),
        Arc::new(
            rows.iter()
                .map(|row| row.digits.map(i256::from_i128))
                .collect::<Decimal256Array>()
                .with_precision_and_scale(60, 30)
                .unwrap(),
        ),
        collect::<StringArray, _>(rows, |row| row.text.clone()),
        Arc::new(
            rows.iter()
                .map(|row| row.bytes.as_deref())
                .collect::<BinaryArray>(),
        ),
        collect::<Date32Array, _>(rows, day),
        collect::<Time32MillisecondArray, _>(rows, time),
        collect::<TimestampMillisecondArray, _>(rows, |row| row.int),
        Arc::new(
            rows.iter()
                .map(|row| row.int)
                .collect::<TimestampMillisecondArray>()
                .with_timezone("UTC"),
        ),
    ]
}

/// Pairs of rows as lists, and each flat column as the field of a struct.
fn nested_columns(rows: &[Row]) -> Vec<ArrayRef> {
    let flat = flat_columns(rows);
    let offsets =
        OffsetBuffer::from_lengths((0..ROWS).map(|row| if row < ROWS / 2 { 2 } else { 0 }));
    let nulls = NullBuffer::from((0..ROWS).map(|row| row % 3 != 2).collect::<Vec<_>>());
    let mut columns: Vec<ArrayRef> = Vec::new();
    for column in &flat {
        let field = Arc::new(Field::new_list_field(column.data_type().clone(), true));
        columns.push(Arc::new(ListArray::new(
            field,
            offsets.clone(),
            Arc::clone(column),
            Some(nulls.clone()),
        )));
    }
    let fields: Fields = flat
        .iter()
        .enumerate()
        .map(|(index, column)| Field::new(format!("f{index}"), column.data_type().clone(), true))
        .collect();
    columns.push(Arc::new(StructArray::new(fields, flat, Some(nulls))));
    columns
}

fn through(spec: &FormatSpec, columns: &[ArrayRef]) -> Vec<ArrayRef> {
    let names: Vec<String> = (0..columns.len())
        .map(|index| format!("c{index}"))
        .collect();
    let fields: Vec<_> = names
        .iter()
        .zip(columns)
        .map(|(name, column)| (name.as_str(), column.data_type().clone()))
        .collect();
    let schema = schema(&fields);
    let mut out = EncodedRecords::new();
    let errors = encoder(spec, Arc::clone(&schema))
        .unwrap()
        .encode(columns, &mut out)
        .unwrap();
    assert_eq!(errors, []);
    assert_eq!(out.len(), columns[0].len());
    let records: Vec<_> = out.iter().collect();
    let decoded = decoder(spec, schema).unwrap().decode(&records).unwrap();
    assert_eq!(decoded.errors, []);
    decoded.columns
}

/// Arrow compares NaNs as unequal in arrays; their text is what must agree.
fn assert_same(left: &[ArrayRef], right: &[ArrayRef]) {
    for (left, right) in left.iter().zip(right) {
        assert_eq!(left.data_type(), right.data_type());
        assert_eq!(super::display(left), super::display(right));
    }
}

/// Empty text is NULL in DELIMITED; everything else survives.
fn without_empty(rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    for row in &mut rows {
        row.text = row.text.take().filter(|text| !text.is_empty());
        row.bytes = row.bytes.take().filter(|bytes| !bytes.is_empty());
    }
    rows
}

proptest! {
    #[test]
    fn json_flat(rows in rows()) {
        let columns = flat_columns(&rows);
        assert_same(&columns, &through(&FormatSpec::Json { wrapped: true }, &columns));
    }

    #[test]
    fn json_nested(rows in rows()) {
        let columns = nested_columns(&rows);
        assert_same(&columns, &through(&FormatSpec::Json { wrapped: true }, &columns));
    }

    #[test]
    fn json_bare(rows in rows()) {
        for column in flat_columns(&rows).into_iter().chain(nested_columns(&rows)) {
            let columns = [column];
            assert_same(&columns, &through(&FormatSpec::Json { wrapped: false }, &columns));
        }
    }

    #[test]
    fn delimited(rows in rows(), delimiter in prop::sample::select(b",;|\t ".to_vec())) {
        let columns = flat_columns(&without_empty(&rows));
        assert_same(&columns, &through(&FormatSpec::Delimited { delimiter }, &columns));
    }

    #[test]
    fn kafka(rows in rows()) {
        let kafka = |column: &ArrayRef| {
            matches!(column.data_type(), DataType::Int32 | DataType::Int64 | DataType::Float64 | DataType::Utf8 | DataType::Binary)
        };
        for column in flat_columns(&rows).into_iter().filter(kafka) {
            let columns = [column];
            assert_same(&columns, &through(&FormatSpec::Kafka, &columns));
        }
    }

    /// Bytes that look a little like records: no panic, one row each, and a bad one is NULL everywhere.
    #[test]
    fn random_bytes_are_harmless(records in vec(r#"([{}\[\],:"\\ a-c0-9.eE+\-\n]|null|true|"c[0-9]":|\\u|\\ud83d|\PC){0,24}"#, 0..8), raw in vec(any::<u8>(), 0..40)) {
        let rows: Vec<Row> = Vec::new();
        let mut fields: Vec<(String, DataType)> = Vec::new();
        for (index, column) in flat_columns(&rows).iter().enumerate() {
            fields.push((format!("c{index}"), column.data_type().clone()));
        }
        let mut inputs: Vec<Option<&[u8]>> = records.iter().map(|record| Some(record.as_bytes())).collect();
        inputs.push(Some(&raw));
        for spec in [FormatSpec::Json { wrapped: true }, FormatSpec::Json { wrapped: false }, FormatSpec::Delimited { delimiter: b',' }, FormatSpec::Kafka] {
            for field in &fields {
                let Ok(mut decoder) = decoder(&spec, schema(&[(field.0.as_str(), field.1.clone())])) else { continue };
                let decoded = decoder.decode(&inputs).unwrap();
                prop_assert_eq!(decoded.columns[0].len(), inputs.len());
                for error in &decoded.errors {
                    prop_assert!(decoded.columns[0].is_null(error.index));
                }
            }
        }
    }
}
