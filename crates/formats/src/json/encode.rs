//! Columns to records.
//!
//! Columns are down-cast once per run, and each field's name is kept as the bytes that stand before its value, so the row loop appends
//! bytes and decides nothing but NULL.

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Decimal256Array,
        ListArray, MapArray, StringArray, StructArray,
    },
    buffer::{NullBuffer, ScalarBuffer},
    datatypes::{
        DataType, Date32Type, Decimal128Type, Decimal256Type, Fields, Float32Type, Float64Type,
        Int16Type, Int32Type, Int64Type, SchemaRef, Time32MillisecondType,
        TimestampMillisecondType,
    },
};

use crate::{
    EncodedRecords, Encoder,
    error::{FormatError, FormatResult, RecordError},
    run,
    scalar::{bytes, decimal, double, integer},
};

use super::{builders, string::plain_run};

/// Encodes JSON records of one schema.
pub(crate) struct JsonEncoder {
    schema: SchemaRef,
    bare: bool,
}

impl JsonEncoder {
    /// Encodes the columns of `schema`; a record is the bare value of the only one when `bare`.
    pub(crate) fn new(schema: SchemaRef, bare: bool) -> FormatResult<Self> {
        builders(&schema)?;
        Ok(Self { schema, bare })
    }
}

impl Encoder for JsonEncoder {
    fn encode(
        &mut self,
        columns: &[ArrayRef],
        out: &mut EncodedRecords,
    ) -> FormatResult<Vec<RecordError>> {
        let (columns, rows) = run::check_columns(&self.schema, columns)?;
        if self.bare {
            if let [column] = columns.as_slice() {
                encode_bare(&Value::new(column)?, rows, out);
            }
            return Ok(Vec::new());
        }
        let object = Object::new(self.schema.fields(), &columns)?;
        for row in 0..rows {
            object.write(row, out.buffer());
            out.finish_record();
        }
        Ok(Vec::new())
    }
}

fn encode_bare(value: &Value<'_>, rows: usize, out: &mut EncodedRecords) {
    for row in 0..rows {
        if value.is_null(row) {
            out.push_absent();
        } else {
            value.write(row, out.buffer());
            out.finish_record();
        }
    }
}

/// An object: each field's value with the bytes that stand before it.
struct Object<'a> {
    fields: Vec<(Vec<u8>, Value<'a>)>,
}

impl<'a> Object<'a> {
    fn new(fields: &Fields, columns: &'a [ArrayRef]) -> FormatResult<Self> {
        let fields = fields
            .iter()
            .zip(columns)
            .enumerate()
            .map(|(index, (field, column))| {
                let mut before = vec![if index == 0 { b'{' } else { b',' }];
                write_string(&mut before, field.name().as_bytes());
                before.push(b':');
                Ok((before, Value::new(column)?))
            });
        Ok(Self {
            fields: fields.collect::<FormatResult<_>>()?,
        })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if self.fields.is_empty() {
            out.push(b'{');
        }
        for (before, value) in &self.fields {
            out.extend_from_slice(before);
            value.write_or_null(row, out);
        }
        out.push(b'}');
    }
}

/// One column, down-cast.
struct Value<'a> {
    nulls: Option<&'a NullBuffer>,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Boolean(&'a BooleanArray),
    Int16(&'a ScalarBuffer<i16>),
    Int32(&'a ScalarBuffer<i32>),
    Int64(&'a ScalarBuffer<i64>),
    Float32(&'a ScalarBuffer<f32>),
    Float64(&'a ScalarBuffer<f64>),
    Decimal128(&'a Decimal128Array),
    Decimal256(&'a Decimal256Array),
    Utf8(&'a StringArray),
    Binary(&'a BinaryArray),
    List(&'a ListArray, Box<Value<'a>>),
    Map(&'a MapArray, &'a StringArray, Box<Value<'a>>),
    Struct(Object<'a>),
}

impl<'a> Value<'a> {
    fn new(array: &'a ArrayRef) -> FormatResult<Self> {
        let kind = match array.data_type() {
            DataType::Boolean => Kind::Boolean(array.as_boolean()),
            DataType::Int16 => Kind::Int16(array.as_primitive::<Int16Type>().values()),
            DataType::Int32 => Kind::Int32(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Kind::Int64(array.as_primitive::<Int64Type>().values()),
            DataType::Float32 => Kind::Float32(array.as_primitive::<Float32Type>().values()),
            DataType::Float64 => Kind::Float64(array.as_primitive::<Float64Type>().values()),
            DataType::Decimal128(..) => Kind::Decimal128(array.as_primitive::<Decimal128Type>()),
            DataType::Decimal256(..) => Kind::Decimal256(array.as_primitive::<Decimal256Type>()),
            DataType::Date32 => Kind::Int32(array.as_primitive::<Date32Type>().values()),
            DataType::Time32(_) => {
                Kind::Int32(array.as_primitive::<Time32MillisecondType>().values())
            }
            DataType::Timestamp(..) => {
                Kind::Int64(array.as_primitive::<TimestampMillisecondType>().values())
            }
            DataType::Utf8 => Kind::Utf8(array.as_string()),
            DataType::Binary => Kind::Binary(array.as_binary()),
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Kind::List(list, Box::new(Self::new(list.values())?))
            }
            DataType::Map(..) => {
                let map = array.as_map();
                Kind::Map(
                    map,
                    map.keys().as_string(),
                    Box::new(Self::new(map.values())?),
                )
            }
            DataType::Struct(fields) => {
                let array: &StructArray = array.as_struct();
                Kind::Struct(Object::new(fields, array.columns())?)
            }
            other => {
                return Err(FormatError::ColumnMismatch {
                    reason: format!("JSON has no form for {other}"),
                });
            }
        };
        Ok(Self {
            nulls: array.nulls(),
            kind,
        })
    }

    #[inline]
    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    #[inline]
    fn write_or_null(&self, row: usize, out: &mut Vec<u8>) {
        if self.is_null(row) {
            out.extend_from_slice(b"null");
        } else {
            self.write(row, out);
        }
    }

    /// Appends a value that is not NULL.
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match &self.kind {
            Kind::Boolean(array) => {
                out.extend_from_slice(if array.value(row) { b"true" } else { b"false" })
            }
            Kind::Int16(values) => integer::write(out, values[row]),
            Kind::Int32(values) => integer::write(out, values[row]),
            Kind::Int64(values) => integer::write(out, values[row]),
            Kind::Float32(values) => write_float(out, values[row].is_finite(), |out| {
                double::write_f32(out, values[row])
            }),
            Kind::Float64(values) => write_float(out, values[row].is_finite(), |out| {
                double::write_f64(out, values[row])
            }),
            Kind::Decimal128(array) => {
                let mut buffer = itoa::Buffer::new();
                decimal::write(
                    out,
                    buffer.format(array.value(row)).as_bytes(),
                    array.scale(),
                );
            }
            Kind::Decimal256(array) => {
                decimal::write(out, array.value(row).to_string().as_bytes(), array.scale())
            }
            Kind::Utf8(array) => write_string(out, array.value(row).as_bytes()),
            Kind::Binary(array) => {
                out.push(b'"');
                bytes::write(out, array.value(row));
                out.push(b'"');
            }
            Kind::List(list, element) => write_list(list, element, row, out),
            Kind::Map(map, keys, value) => write_map(map, keys, value, row, out),
            Kind::Struct(object) => object.write(row, out),
        }
    }
}

/// JSON has no number that is not finite, so those are text.
fn write_float(out: &mut Vec<u8>, finite: bool, write: impl FnOnce(&mut Vec<u8>)) {
    if finite {
        write(out);
    } else {
        out.push(b'"');
        write(out);
        out.push(b'"');
    }
}

fn write_list(list: &ListArray, element: &Value<'_>, row: usize, out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, at) in range(list.value_offsets(), row).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        element.write_or_null(at, out);
    }
    out.push(b']');
}

fn write_map(map: &MapArray, keys: &StringArray, value: &Value<'_>, row: usize, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, at) in range(map.value_offsets(), row).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, keys.value(at).as_bytes());
        out.push(b':');
        value.write_or_null(at, out);
    }
    out.push(b'}');
}

/// The children of `row`. Arrow checks offsets when an array is made: they are never negative.
fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let at = |index: usize| usize::try_from(offsets[index]).unwrap_or(0);
    at(row)..at(row + 1)
}

/// Appends a string with its quotes, escaping what JSON demands and nothing else.
pub(super) fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_run(rest));
        out.extend_from_slice(plain);
        let Some((&byte, behind)) = special.split_first() else {
            break;
        };
        write_escape(out, byte);
        rest = behind;
    }
    out.push(b'"');
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        8 => b'b',
        12 => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_minimally() {
        let mut out = Vec::new();
        write_string(
            &mut out,
            "a\"b\\c/\u{8}\u{c}\n\r\t\u{1f}\u{7f}é€😀".as_bytes(),
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u001F\u{7f}é€😀\""
        );
    }
}
