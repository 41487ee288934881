//! Headers of records as columns, and back.
//!
//! A column of headers is no part of key or value: it tells what the record carries beside them. `HEADERS` has all of a record's headers, in order;
//! `HEADER('name')` has the value of the last one of that name. The headers that a stream's row hands on to the records made of it have the
//! same form as a `HEADERS` column.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, BinaryBuilder, ListArray, StringBuilder, StructArray},
    buffer::OffsetBuffer,
    datatypes::{DataType, Field, FieldRef, Fields},
};
use highwater_planner::catalog::HeaderColumn;
use highwater_storage_log::RecordRef;

use crate::error::{ExecError, ExecResult};

/// All headers of each record; `None` when no record has one.
pub fn carried(records: &[RecordRef<'_>]) -> ExecResult<Option<ArrayRef>> {
    let any = records
        .iter()
        .any(|record| record.headers().next().is_some());
    match any {
        true => Ok(Some(all(records)?)),
        false => Ok(None),
    }
}

/// The values of a column of headers, of the column's type.
pub fn column(
    records: &[RecordRef<'_>],
    which: &HeaderColumn,
    data_type: &DataType,
) -> ExecResult<ArrayRef> {
    match which {
        HeaderColumn::All => {
            let DataType::List(element) = data_type else {
                return Err(ExecError::Internal("a column of headers is no list".into()));
            };
            let DataType::Struct(fields) = element.data_type() else {
                return Err(ExecError::Internal("headers are no structs".into()));
            };
            all_as(records, Arc::clone(element), fields.clone())
        }
        HeaderColumn::Named(name) => {
            let mut values = BinaryBuilder::new();
            for record in records {
                let mut last = None;
                for header in record.headers() {
                    let (key, value) = header?;
                    if key == name.as_bytes() {
                        last = value;
                    }
                }
                values.append_option(last);
            }
            Ok(Arc::new(values.finish()))
        }
    }
}

fn all(records: &[RecordRef<'_>]) -> ExecResult<ArrayRef> {
    let fields = Fields::from(vec![
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Binary, true),
    ]);
    let element = Field::new("item", DataType::Struct(fields.clone()), true);
    all_as(records, Arc::new(element), fields)
}

/// All headers of each record, as lists of `element`, whose `fields` are a text and bytes.
fn all_as(records: &[RecordRef<'_>], element: FieldRef, fields: Fields) -> ExecResult<ArrayRef> {
    let (mut keys, mut values) = (StringBuilder::new(), BinaryBuilder::new());
    let mut lengths = Vec::with_capacity(records.len());
    for record in records {
        let mut length = 0;
        for header in record.headers() {
            let (key, value) = header?;
            keys.append_value(String::from_utf8_lossy(key));
            values.append_option(value);
            length += 1;
        }
        lengths.push(length);
    }
    let headers = StructArray::try_new(
        fields,
        vec![Arc::new(keys.finish()), Arc::new(values.finish())],
        None,
    )?;
    Ok(Arc::new(ListArray::try_new(
        element,
        OffsetBuffer::from_lengths(lengths),
        Arc::new(headers),
        None,
    )?))
}

/// The headers that row `row` of [`carried`] headers hands on.
pub fn of_row(headers: &ArrayRef, row: usize) -> Vec<(String, Option<Vec<u8>>)> {
    let Some(lists) = headers
        .as_list_opt::<i32>()
        .filter(|lists| lists.is_valid(row))
    else {
        return Vec::new();
    };
    let headers = lists.value(row);
    let headers = headers.as_struct();
    let (keys, values) = (
        headers.column(0).as_string::<i32>(),
        headers.column(1).as_binary::<i32>(),
    );
    (0..headers.len())
        .map(|at| {
            let value = values.is_valid(at).then(|| values.value(at).to_vec());
            (keys.value(at).to_owned(), value)
        })
        .collect()
}
