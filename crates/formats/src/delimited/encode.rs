//! Columns to lines.
//!
//! Quotes are minimal, by the rule that ksqlDB's writer has, since peers compare bytes. A field is quoted when
//! - it is the first of its line and begins with anything but an ASCII letter or digit, or is an empty text;
//! - another begins with a character up to `#`, contains the delimiter, a quote or a line end, or ends with a blank.
//!
//! NULL is an empty field without quotes.

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Decimal256Array,
        StringArray,
    },
    buffer::{NullBuffer, ScalarBuffer},
    datatypes::{
        DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type,
        Int32Type, Int64Type, SchemaRef, Time32MillisecondType, TimestampMillisecondType,
    },
};

use crate::{
    EncodedRecords, Encoder,
    error::{FormatError, FormatResult, RecordError},
    run,
    scalar::{bytes, decimal, double, integer, scan},
};

use super::{NAME, check_schema};

/// Encodes lines of one schema.
pub(crate) struct DelimitedEncoder {
    schema: SchemaRef,
    delimiter: u8,
    field: Vec<u8>,
}

impl DelimitedEncoder {
    pub(crate) fn new(schema: SchemaRef, delimiter: u8) -> FormatResult<Self> {
        check_schema(&schema)?;
        run::builders(NAME, &schema)?;
        Ok(Self {
            schema,
            delimiter,
            field: Vec::new(),
        })
    }
}

impl Encoder for DelimitedEncoder {
    fn encode(
        &mut self,
        columns: &[ArrayRef],
        out: &mut EncodedRecords,
    ) -> FormatResult<Vec<RecordError>> {
        let (columns, rows) = run::check_columns(&self.schema, columns)?;
        let writers = columns
            .iter()
            .map(FieldWriter::new)
            .collect::<FormatResult<Vec<_>>>()?;
        for row in 0..rows {
            let line = out.buffer();
            for (index, writer) in writers.iter().enumerate() {
                if index > 0 {
                    line.push(self.delimiter);
                }
                if writer.is_null(row) {
                    continue;
                }
                let start = line.len();
                writer.write(row, line);
                if needs_quotes(&line[start..], index == 0, self.delimiter) {
                    quote(line, start, &mut self.field);
                }
            }
            out.finish_record();
        }
        Ok(Vec::new())
    }
}

/// One column, down-cast once per run.
struct FieldWriter<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
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
}

impl<'a> FieldWriter<'a> {
    fn new(array: &'a ArrayRef) -> FormatResult<Self> {
        let values = match array.data_type() {
            DataType::Boolean => Values::Boolean(array.as_boolean()),
            DataType::Int16 => Values::Int16(array.as_primitive::<Int16Type>().values()),
            DataType::Int32 => Values::Int32(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Values::Int64(array.as_primitive::<Int64Type>().values()),
            DataType::Float32 => Values::Float32(array.as_primitive::<Float32Type>().values()),
            DataType::Float64 => Values::Float64(array.as_primitive::<Float64Type>().values()),
            DataType::Decimal128(..) => Values::Decimal128(array.as_primitive::<Decimal128Type>()),
            DataType::Decimal256(..) => Values::Decimal256(array.as_primitive::<Decimal256Type>()),
            DataType::Date32 => Values::Int32(array.as_primitive::<Date32Type>().values()),
            DataType::Time32(_) => {
                Values::Int32(array.as_primitive::<Time32MillisecondType>().values())
            }
            DataType::Timestamp(..) => {
                Values::Int64(array.as_primitive::<TimestampMillisecondType>().values())
            }
            DataType::Utf8 => Values::Utf8(array.as_string()),
            DataType::Binary => Values::Binary(array.as_binary()),
            other => {
                let reason = format!("format {NAME} has no form for {other}");
                return Err(FormatError::ColumnMismatch { reason });
            }
        };
        Ok(Self {
            nulls: array.nulls(),
            values,
        })
    }

    #[inline]
    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends the text of a value that is not NULL.
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match &self.values {
            Values::Boolean(array) => {
                out.extend_from_slice(if array.value(row) { b"true" } else { b"false" })
            }
            Values::Int16(values) => integer::write(out, values[row]),
            Values::Int32(values) => integer::write(out, values[row]),
            Values::Int64(values) => integer::write(out, values[row]),
            Values::Float32(values) => double::write_f32(out, values[row]),
            Values::Float64(values) => double::write_f64(out, values[row]),
            Values::Decimal128(array) => {
                let mut buffer = itoa::Buffer::new();
                decimal::write(
                    out,
                    buffer.format(array.value(row)).as_bytes(),
                    array.scale(),
                );
            }
            Values::Decimal256(array) => {
                decimal::write(out, array.value(row).to_string().as_bytes(), array.scale())
            }
            Values::Utf8(array) => out.extend_from_slice(array.value(row).as_bytes()),
            Values::Binary(array) => bytes::write(out, array.value(row)),
        }
    }
}

/// Puts the field that begins at `start` of the line in quotes. `field` is room to work in.
fn quote(line: &mut Vec<u8>, start: usize, field: &mut Vec<u8>) {
    field.clear();
    field.extend_from_slice(&line[start..]);
    line.truncate(start);
    line.push(b'"');
    for &byte in &*field {
        if byte == b'"' {
            line.push(b'"');
        }
        line.push(byte);
    }
    line.push(b'"');
}

#[inline]
fn needs_quotes(text: &[u8], first: bool, delimiter: u8) -> bool {
    let (Some(&head), Some(&tail)) = (text.first(), text.last()) else {
        return first;
    };
    let special = |byte| byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r');
    let specials = |word| {
        scan::equal(word, delimiter)
            | scan::equal(word, b'"')
            | scan::equal(word, b'\n')
            | scan::equal(word, b'\r')
    };
    (first && !head.is_ascii_alphanumeric())
        || head <= b'#'
        || tail <= b' '
        || scan::first(text, specials, special) < text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_minimal() {
        for (text, first, quoted) in [
            ("abc", true, false),
            ("-5", true, true),
            ("-5", false, false),
            ("_x", true, true),
            ("", true, true),
            ("", false, false),
            ("é", true, true),
            ("é", false, false),
            ("#1", false, true),
            ("a b", false, false),
            ("a ", false, true),
            (" a", false, true),
            ("a,b", false, true),
            ("a\"b", false, true),
            ("a\nb", false, true),
            ("a;b", false, false),
        ] {
            assert_eq!(
                needs_quotes(text.as_bytes(), first, b','),
                quoted,
                "{text:?} first={first}"
            );
        }
        let mut line = b"a,say \"hi\"".to_vec();
        quote(&mut line, 2, &mut Vec::new());
        assert_eq!(line, b"a,\"say \"\"hi\"\"\"");
    }
}
