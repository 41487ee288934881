//! What must hold for any bytes at all: the entries of the fuzz targets in `fuzz/` and of the seeded mutation test.
//!
//! The first byte of an input chooses how the rest is read: the columns, the bare form of JSON, the delimiter. The rest is cut into records
//! at each byte 0x1E, which no valid text needs.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef},
    datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit},
};

use crate::{
    Decoded, EncodedRecords, FormatSpec, decoder, encoder, java_time::TimePattern,
    projected_decoder, windowed_key,
};

/// Ends a record of an input.
const RECORD_SEPARATOR: u8 = 0x1e;
/// Longest reason of a record that cannot be decoded: it goes to the processing log, whatever the record holds.
const MAX_REASON: usize = 1_000;

/// Decodes `data` as JSON.
///
/// # Panics
///
/// If the decoder breaks a promise: see [`check`].
pub fn json(data: &[u8]) {
    let Some((choice, records)) = data.split_first() else {
        return;
    };
    match choice % 3 {
        0 => check(&FormatSpec::Json { wrapped: true }, &columns(true), records),
        1 => check(
            &FormatSpec::Json { wrapped: true },
            &columns(false),
            records,
        ),
        _ => check(
            &FormatSpec::Json { wrapped: false },
            &one(choice / 3),
            records,
        ),
    }
}

/// Decodes `data` as DELIMITED.
///
/// # Panics
///
/// If the decoder breaks a promise: see [`check`].
pub fn delimited(data: &[u8]) {
    let Some((choice, records)) = data.split_first() else {
        return;
    };
    let delimiter = [b',', b'|', b'\t', b' '][usize::from(choice & 3)];
    check(
        &FormatSpec::Delimited { delimiter },
        &columns(false),
        records,
    );
}

/// Decodes `data` as KAFKA, and as a windowed key.
///
/// # Panics
///
/// If the decoder breaks a promise: see [`check`].
pub fn kafka(data: &[u8]) {
    let Some((choice, records)) = data.split_first() else {
        return;
    };
    let types = [
        DataType::Int32,
        DataType::Int64,
        DataType::Float64,
        DataType::Utf8,
        DataType::Binary,
    ];
    let schema = schema([types[usize::from(*choice) % types.len()].clone()]);
    check(&FormatSpec::Kafka, &schema, records);
    let mut again = Vec::new();
    if let Some((key, start)) = windowed_key::decode_time_window(records) {
        windowed_key::encode_time_window(key, start, &mut again);
        assert_eq!(again, records, "time window");
    }
    again.clear();
    if let Some((key, start, end)) = windowed_key::decode_session_window(records) {
        windowed_key::encode_session_window(key, start, end, &mut again);
        assert_eq!(again, records, "session window");
    }
}

/// Takes `data` for a date pattern, a text that it reads and a moment that it writes.
///
/// # Panics
///
/// If a pattern that was compiled cannot be used on any text or moment.
pub fn time_pattern(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == RECORD_SEPARATOR);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (pattern, input, moment) = (text(), text(), text());
    let Ok(pattern) = TimePattern::compile(&pattern) else {
        return;
    };
    let _ = pattern.parse(&input);
    let _ = pattern.parse_start(&input);
    let _ = pattern.parse_date(&input);
    let _ = pattern.parse_time(&input);
    let moment = moment.bytes().fold(0i64, |moment, byte| {
        moment.wrapping_mul(257).wrapping_add(i64::from(byte))
    });
    for moment in [moment, i64::MIN, i64::MAX] {
        let _ = pattern.format(moment);
    }
}

/// One column of every type; without nesting, those that DELIMITED knows.
fn columns(nested: bool) -> SchemaRef {
    let mut types = vec![
        DataType::Boolean,
        DataType::Int32,
        DataType::Int64,
        DataType::Float64,
        DataType::Utf8,
        DataType::Binary,
        DataType::Decimal128(12, 3),
        DataType::Date32,
        DataType::Time32(TimeUnit::Millisecond),
        DataType::Timestamp(TimeUnit::Millisecond, None),
    ];
    if nested {
        types.extend(nested_types());
    }
    schema(types)
}

fn nested_types() -> [DataType; 3] {
    let fields = Fields::from(vec![
        Field::new("c1", DataType::Int32, true),
        Field::new("c2", DataType::Utf8, true),
    ]);
    let structure = DataType::Struct(fields);
    let list = DataType::List(Arc::new(Field::new_list_field(structure.clone(), true)));
    let entry = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Int64, true),
    ]);
    let entries = Field::new("entries", DataType::Struct(entry), false);
    let map = DataType::Map(Arc::new(entries), false);
    [structure, list, map]
}

/// A single column, of a type by number.
fn one(number: u8) -> SchemaRef {
    let types = columns(true);
    let chosen = types.field(usize::from(number) % types.fields().len());
    schema([chosen.data_type().clone()])
}

fn schema(types: impl IntoIterator<Item = DataType>) -> SchemaRef {
    let fields: Vec<Field> = types
        .into_iter()
        .enumerate()
        .map(|(position, data_type)| Field::new(format!("c{position}"), data_type, true))
        .collect();
    Arc::new(Schema::new(fields))
}

/// Decodes records of any bytes.
///
/// # Panics
///
/// If a decoder fails as a whole, gives columns of another length, reports a record wrongly or at length, lets one record change another,
/// or if what it decoded cannot be encoded to something that decodes to the same; and if a decoder of fewer columns gives others.
fn check(spec: &FormatSpec, schema: &SchemaRef, data: &[u8]) {
    let records: Vec<Option<&[u8]>> = data
        .split(|byte| *byte == RECORD_SEPARATOR)
        .map(Some)
        .chain([None])
        .collect();
    let decoded = decode(spec, schema, &records);
    for (index, record) in records.iter().enumerate() {
        let alone = decode(spec, schema, &[*record]);
        let failed = decoded.errors.iter().any(|error| error.index == index);
        assert_eq!(failed, !alone.errors.is_empty(), "record {index}");
        for (column, alone) in decoded.columns.iter().zip(&alone.columns) {
            assert_eq!(&column.slice(index, 1), alone, "record {index}");
        }
    }
    check_projection(spec, schema, &records, &decoded);
    check_encoding(spec, schema, &decoded.columns);
}

fn decode(spec: &FormatSpec, schema: &SchemaRef, records: &[Option<&[u8]>]) -> Decoded {
    let mut decoder = decoder(spec, Arc::clone(schema)).expect("the format has these types");
    let decoded = decoder.decode(records).expect("records fail one by one");
    assert_eq!(decoded.columns.len(), schema.fields().len());
    for (column, field) in decoded.columns.iter().zip(schema.fields()) {
        assert_eq!(column.len(), records.len());
        assert_eq!(column.data_type(), field.data_type());
    }
    let mut next = 0;
    for error in &decoded.errors {
        assert!(error.index >= next && error.index < records.len());
        next = error.index + 1;
        assert!(error.reason.len() <= MAX_REASON, "{}", error.reason);
        assert!(
            decoded
                .columns
                .iter()
                .all(|column| column.is_null(error.index))
        );
    }
    decoded
}

/// A decoder of some columns gives what a decoder of all gives, of records that are sound as a whole.
fn check_projection(
    spec: &FormatSpec,
    schema: &SchemaRef,
    records: &[Option<&[u8]>],
    whole: &Decoded,
) {
    let every_second: Vec<usize> = (0..schema.fields().len()).step_by(2).collect();
    let mut decoder = projected_decoder(spec, Arc::clone(schema), &every_second)
        .expect("the format has these types");
    let part = decoder.decode(records).expect("records fail one by one");
    for row in 0..records.len() {
        if whole.errors.iter().any(|error| error.index == row) {
            continue;
        }
        for (column, position) in part.columns.iter().zip(&every_second) {
            let expected = whole.columns[*position].slice(row, 1);
            assert_eq!(&column.slice(row, 1), &expected, "record {row}");
        }
    }
}

/// Writing rows, reading them and writing them again gives the same bytes.
fn check_encoding(spec: &FormatSpec, schema: &SchemaRef, columns: &[ArrayRef]) {
    let written = encode(spec, schema, columns);
    let records: Vec<Option<&[u8]>> = written.iter().collect();
    let read = decode(spec, schema, &records);
    assert!(read.errors.is_empty(), "{:?}", read.errors);
    let again = encode(spec, schema, &read.columns);
    let text = |records: &EncodedRecords| -> Vec<Option<String>> {
        let lossy = |record: &[u8]| String::from_utf8_lossy(record).into_owned();
        records.iter().map(|record| record.map(lossy)).collect()
    };
    assert_eq!(text(&written), text(&again));
}

fn encode(spec: &FormatSpec, schema: &SchemaRef, columns: &[ArrayRef]) -> EncodedRecords {
    let mut encoder = encoder(spec, Arc::clone(schema)).expect("the format has these types");
    let mut out = EncodedRecords::new();
    encoder
        .encode(columns, &mut out)
        .expect("rows fail one by one");
    out
}
