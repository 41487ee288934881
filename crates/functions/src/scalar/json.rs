//! Functions of JSON in text. Text that is no JSON gives NULL (FALSE where a BOOLEAN is asked for).

use std::{cell::RefCell, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, ListBuilder, StringBuilder},
    datatypes::{DataType, Float64Type, Int32Type, Int64Type},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use datafusion::common::Result;

use crate::{
    cache::{Kept, compiled},
    call::{Call, Row, settle, value},
    function::{Category, Function, Overload},
    json::{Json, Path, put, read, write, write_string},
    scalar::{array::element_field, map::map_array, text::count},
    signature::{Kind, Param, param},
    value_text::{is_null, write_value},
};

thread_local! {
    static PATHS: Kept<Path> = RefCell::default();
}

const JSON: Param = param("json", Kind::Text, "text with JSON in it");

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "extractjsonfield",
        Category::Json,
        "What stands at a path in JSON: a string without its quotes, anything else as JSON.",
        &[Overload::new(
            &[
                JSON,
                param("path", Kind::Text, "the path, such as $.a.b[0]"),
            ],
            Kind::Text,
            extract,
        )],
        &[("extractjsonfield('{\"a\": [\"x\", 2]}', '$.a[0]')", "'x'")],
    ),
    Function::new(
        "is_json_string",
        Category::Json,
        "Whether a text is JSON.",
        &[Overload::new(&[JSON], Kind::Boolean, |call| {
            let text = call.text(0);
            Ok(call.booleans(|row| Ok(Some(text.get(row).is_some_and(|text| read(text).is_ok())))))
        })],
        &[
            ("is_json_string('[1]')", "TRUE"),
            ("is_json_string('[1')", "FALSE"),
        ],
    ),
    Function::new(
        "json_array_contains",
        Category::Json,
        "Whether a JSON array has an element that equals a value of the same type.",
        &[
            Overload::new(
                &[JSON, param("value", Kind::Text, "a text")],
                Kind::Boolean,
                contains,
            ),
            Overload::new(
                &[JSON, param("value", Kind::Boolean, "a boolean")],
                Kind::Boolean,
                contains,
            ),
            Overload::new(
                &[JSON, param("value", Kind::Int, "a number")],
                Kind::Boolean,
                contains,
            ),
            Overload::new(
                &[JSON, param("value", Kind::BigInt, "a number")],
                Kind::Boolean,
                contains,
            ),
            Overload::new(
                &[JSON, param("value", Kind::Double, "a number")],
                Kind::Boolean,
                contains,
            ),
        ],
        &[("json_array_contains('[1, \"a\"]', 'a')", "TRUE")],
    ),
    Function::new(
        "json_array_length",
        Category::Json,
        "The number of elements of a JSON array; NULL for anything else.",
        &[Overload::new(&[JSON], Kind::Int, |call| {
            let text = call.text(0);
            Ok(
                call.numbers::<Int32Type>(|row| match read(value!(text.get(row)))? {
                    Json::Array(items) => Ok(Some(count(items.len()))),
                    _ => Ok(None),
                }),
            )
        })],
        &[("json_array_length('[1, 2]')", "2")],
    ),
    Function::new(
        "json_concat",
        Category::Json,
        "Objects merged into one object; otherwise the elements of arrays and all other values as one array.",
        &[Overload::new(&[JSON], Kind::Text, concatenate).variadic()],
        &[
            (
                "json_concat('{\"a\": 1}', '{\"b\": 2}')",
                "'{\"a\":1,\"b\":2}'",
            ),
            ("json_concat('[1]', '2')", "'[1,2]'"),
        ],
    ),
    Function::new(
        "json_items",
        Category::Json,
        "The elements of a JSON array, each as JSON.",
        &[Overload::new(&[JSON], Kind::Array(&Kind::Text), |call| {
            text_lists(call, |json| match json {
                Json::Array(items) => Some(
                    items
                        .iter()
                        .map(|item| {
                            let mut out = String::new();
                            write(&mut out, item);
                            out
                        })
                        .collect(),
                ),
                _ => None,
            })
        })],
        &[("json_items('[1, {\"a\": 2}]')", "ARRAY['1', '{\"a\":2}']")],
    ),
    Function::new(
        "json_keys",
        Category::Json,
        "The keys of a JSON object.",
        &[Overload::new(&[JSON], Kind::Array(&Kind::Text), |call| {
            text_lists(call, |json| match json {
                Json::Object(fields) => Some(
                    fields
                        .iter()
                        .map(|(key, _)| key.clone().into_owned())
                        .collect(),
                ),
                _ => None,
            })
        })],
        &[("json_keys('{\"a\": 1, \"b\": 2}')", "ARRAY['a', 'b']")],
    ),
    Function::new(
        "json_records",
        Category::Json,
        "The fields of a JSON object: strings without their quotes, all else as JSON.",
        &[Overload::new(
            &[JSON],
            Kind::Map(&Kind::Text, &Kind::Text),
            records,
        )],
        &[(
            "map_values(json_records('{\"a\": \"x\", \"b\": [1]}'))",
            "ARRAY['x', '[1]']",
        )],
    ),
    Function::new(
        "to_json_string",
        Category::Json,
        "A value of any type as JSON.",
        &[Overload::new(
            &[param("value", Kind::Any, "the value")],
            Kind::Text,
            |call| {
                let arg = call.arg(0);
                Ok(call.write_texts(|row, out| {
                    write_json(out, &arg.array, if arg.constant { 0 } else { row });
                    Ok(Some(()))
                }))
            },
        )],
        &[("to_json_string(ARRAY['a', NULL])", "'[\"a\",null]'")],
    ),
];

/// A value as text: a string without its quotes, all else as JSON.
fn write_plain(out: &mut String, json: &Json) {
    match json {
        Json::Text(text) => out.push_str(text),
        other => write(out, other),
    }
}

fn extract(call: &Call) -> Result<ArrayRef> {
    let (text, path) = (call.text(0), call.text(1));
    Ok(call.write_texts(|row, out| {
        let (text, path) = (value!(text.get(row)), value!(path.get(row)));
        let path = compiled(&PATHS, path, Path::compile)?;
        let json = read(text)?;
        write_plain(out, value!(path.find(&json)));
        Ok(Some(()))
    }))
}

fn contains(call: &Call) -> Result<ArrayRef> {
    let text = call.text(0);
    let wanted = &call.arg(1).array;
    let constant = call.arg(1).constant;
    Ok(call.booleans(|row| {
        let Some(Json::Array(items)) = text.get(row).and_then(|text| read(text).ok()) else {
            return Ok(Some(false));
        };
        let row = if constant { 0 } else { row };
        Ok(Some(items.iter().any(|item| equals(item, wanted, row))))
    }))
}

/// Whether a JSON value equals an SQL value of a plain type.
fn equals(item: &Json, array: &ArrayRef, row: usize) -> bool {
    if array.is_null(row) {
        return *item == Json::Null;
    }
    match (item, array.data_type()) {
        (Json::Text(text), DataType::Utf8) => text == array.as_string::<i32>().value(row),
        (Json::Boolean(value), DataType::Boolean) => *value == array.as_boolean().value(row),
        (Json::Number(digits), DataType::Int32) => {
            digits.parse() == Ok(array.as_primitive::<Int32Type>().value(row))
        }
        (Json::Number(digits), DataType::Int64) => {
            digits.parse() == Ok(array.as_primitive::<Int64Type>().value(row))
        }
        (Json::Number(digits), DataType::Float64) => {
            digits.parse() == Ok(array.as_primitive::<Float64Type>().value(row))
        }
        _ => false,
    }
}

fn concatenate(call: &Call) -> Result<ArrayRef> {
    let texts = call.texts_from(0);
    Ok(call.write_texts(|row, out| {
        let mut values = Vec::with_capacity(texts.len());
        for text in &texts {
            values.push(read(value!(text.get(row)))?);
        }
        let objects = values.iter().all(|value| matches!(value, Json::Object(_)));
        let (mut fields, mut items) = (Vec::new(), Vec::new());
        for value in values {
            match value {
                Json::Object(more) if objects => {
                    for (key, value) in more {
                        put(&mut fields, key, value);
                    }
                }
                Json::Array(more) => items.extend(more),
                other => items.push(other),
            }
        }
        let all = if objects {
            Json::Object(fields)
        } else {
            Json::Array(items)
        };
        write(out, &all);
        Ok(Some(()))
    }))
}

fn text_lists(call: &Call, parts: impl Fn(&Json) -> Option<Vec<String>>) -> Result<ArrayRef> {
    let text = call.text(0);
    build_text_lists(call, |row| Ok(parts(&read(value!(text.get(row)))?)))
}

/// A column of lists of text.
pub(super) fn build_text_lists<S: AsRef<str>>(
    call: &Call,
    mut row_parts: impl FnMut(usize) -> Row<Vec<S>>,
) -> Result<ArrayRef> {
    let mut builder =
        ListBuilder::new(StringBuilder::new()).with_field(element_field(call.return_type())?);
    for row in 0..call.rows() {
        match settle(row_parts(row)) {
            Some(parts) => {
                parts
                    .iter()
                    .for_each(|part| builder.values().append_value(part));
                builder.append(true);
            }
            None => builder.append(false),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// A column of maps from text to text.
pub(super) fn build_text_maps<K: AsRef<str>, V: AsRef<str>>(
    call: &Call,
    mut row_entries: impl FnMut(usize) -> Row<Vec<(K, V)>>,
) -> Result<ArrayRef> {
    let (mut keys, mut values) = (StringBuilder::new(), StringBuilder::new());
    let (mut lengths, mut valid) = (Vec::new(), Vec::new());
    for row in 0..call.rows() {
        let entries = settle(row_entries(row));
        valid.push(entries.is_some());
        let entries = entries.unwrap_or_default();
        lengths.push(entries.len());
        for (key, value) in entries {
            keys.append_value(key);
            values.append_value(value);
        }
    }
    map_array(
        call.return_type(),
        Arc::new(keys.finish()),
        Arc::new(values.finish()),
        lengths,
        valid,
    )
}

fn records(call: &Call) -> Result<ArrayRef> {
    let text = call.text(0);
    build_text_maps(call, |row| match read(value!(text.get(row)))? {
        Json::Object(fields) => Ok(Some(
            fields
                .into_iter()
                .map(|(key, value)| {
                    let mut out = String::new();
                    write_plain(&mut out, &value);
                    (key, out)
                })
                .collect(),
        )),
        _ => Ok(None),
    })
}

/// Appends a value of any type as JSON.
fn write_json(out: &mut String, array: &ArrayRef, row: usize) {
    if is_null(array, row) {
        out.push_str("null");
        return;
    }
    match array.data_type() {
        DataType::Boolean
        | DataType::Int32
        | DataType::Int64
        | DataType::Decimal128(_, _)
        | DataType::Decimal256(_, _) => {
            write_value(out, array, row);
        }
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            // JSON has no number for infinity; Jackson writes a string.
            if value.is_finite() {
                write_value(out, array, row);
            } else {
                out.push('"');
                write_value(out, array, row);
                out.push('"');
            }
        }
        DataType::Utf8 => write_string(out, array.as_string::<i32>().value(row)),
        DataType::Binary => {
            out.push('"');
            BASE64_STANDARD.encode_string(array.as_binary::<i32>().value(row), out);
            out.push('"');
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            write_items(out, '[', ']', items.len(), |out, item| {
                write_json(out, &items, item)
            });
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            write_items(out, '{', '}', entries.len(), |out, entry| {
                let mut key = String::new();
                write_value(&mut key, keys, entry);
                write_string(out, &key);
                out.push(':');
                write_json(out, values, entry);
            });
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            write_items(out, '{', '}', columns.len(), |out, column| {
                write_string(out, fields[column].name());
                out.push(':');
                write_json(out, &columns[column], row);
            });
        }
        _ => {
            out.push('"');
            write_value(out, array, row);
            out.push('"');
        }
    }
}

fn write_items(
    out: &mut String,
    open: char,
    close: char,
    count: usize,
    mut write_item: impl FnMut(&mut String, usize),
) {
    out.push(open);
    for item in 0..count {
        if item > 0 {
            out.push(',');
        }
        write_item(out, item);
    }
    out.push(close);
}
