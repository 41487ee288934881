//! Whole formats: examples per format, round trips for every type, and random bytes.

mod delimited;
mod json;
mod kafka;
mod round_trip;

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray},
    datatypes::{DataType, Field, Schema, SchemaRef},
    util::display::{ArrayFormatter, FormatOptions},
};

use crate::{Decoded, EncodedRecords, FormatSpec, decoder, encoder};

/// A schema of nullable columns.
fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(
        columns
            .iter()
            .map(|(name, data_type)| Field::new(*name, data_type.clone(), true))
            .collect::<Vec<_>>(),
    ))
}

fn decode(spec: &FormatSpec, schema: &SchemaRef, records: &[&str]) -> Decoded {
    let records: Vec<_> = records
        .iter()
        .map(|record| Some(record.as_bytes()))
        .collect();
    decoder(spec, Arc::clone(schema))
        .unwrap()
        .decode(&records)
        .unwrap()
}

/// Encodes rows; absent records are `None`.
fn encode(spec: &FormatSpec, schema: &SchemaRef, columns: &[ArrayRef]) -> Vec<Option<String>> {
    let mut out = EncodedRecords::new();
    let errors = encoder(spec, Arc::clone(schema))
        .unwrap()
        .encode(columns, &mut out)
        .unwrap();
    assert_eq!(errors, []);
    out.iter()
        .map(|record| record.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()))
        .collect()
}

/// A column's values as Arrow displays them; NULL is `-`.
fn display(column: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::default().with_null("-");
    let formatter = ArrayFormatter::try_new(column, &options).unwrap();
    (0..column.len())
        .map(|row| formatter.value(row).to_string())
        .collect()
}

/// The text column at `index`, `None` for NULL.
fn texts(decoded: &Decoded, index: usize) -> Vec<Option<&str>> {
    decoded.columns[index].as_string::<i32>().iter().collect()
}
