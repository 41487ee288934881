//! Arrow columns to PostgreSQL values.
//!
//! For each column of a batch one encoder is chosen by its type; after that a cell costs one indirect call and no look at types. Encoders
//! own their arrays (a reference count each), so they outlive the batch they were made from. A cell is written straight into the output
//! buffer; a row is one DataRow message:
//!
//! ```text
//! 'D' | i32 length | i16 columns | per column: i32 length (-1 for NULL), bytes
//! ```
//!
//! A value that PostgreSQL cannot hold (a timestamp of the year 10^6 in binary) fails its row with [`Unencodable`]; the buffer is then as
//! it was before the row.

mod binary;
mod datetime;
mod json;
mod list;
mod number;
mod text;

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, timezone::Tz},
    buffer::NullBuffer,
    compute::cast,
    datatypes::{DataType, Field, IntervalUnit, TimeUnit},
    record_batch::RecordBatch,
};
use bytes::{BufMut, BytesMut};
use pgwire::messages::data::{FieldDescription, RowDescription};

use super::types::{type_modifier, type_size, wire_type};
use crate::sqlstate::{SqlError, code};

/// A value without a PostgreSQL form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unencodable {
    /// Beyond the range of PostgreSQL's dates and times.
    DateTime,
    /// A NUMERIC beyond its binary form.
    Numeric,
    /// A value or a row longer than a message may be.
    TooLarge,
}

impl From<Unencodable> for SqlError {
    fn from(unencodable: Unencodable) -> Self {
        match unencodable {
            Unencodable::DateTime => {
                Self::new(code::DATETIME_FIELD_OVERFLOW, "date or time out of range")
                    .with_hint("cast it to text, or ask for text results")
            }
            Unencodable::Numeric => Self::new(
                code::NUMERIC_VALUE_OUT_OF_RANGE,
                "numeric value out of range",
            ),
            Unencodable::TooLarge => Self::new(
                code::PROGRAM_LIMIT_EXCEEDED,
                "a row is longer than the 1 GiB that a message may have",
            ),
        }
    }
}

/// Whether a column goes out as text or as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// What PostgreSQL's output functions write.
    Text,
    /// What PostgreSQL's send functions write.
    Binary,
}

impl Format {
    /// The protocol's number.
    pub(super) fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }
}

/// Longest message: PostgreSQL's own bound for one allocation, which clients share.
const MAX_ROW_BYTES: usize = (1 << 30) - 1;

/// Writes one cell's value, without length or NULL. It must not be called for a NULL.
type Cell = Box<dyn Fn(usize, &mut BytesMut) -> Result<(), Unencodable> + Send>;

/// Writes the cells of one column.
pub(super) struct ColumnEncoder {
    nulls: Option<NullBuffer>,
    cell: Cell,
}

impl ColumnEncoder {
    /// Chooses the encoder of a column. `zone` is how TIMESTAMPTZ is shown.
    pub(super) fn new(array: &ArrayRef, format: Format, zone: Tz) -> Result<Self, SqlError> {
        let array = plain(array)?;
        let cell = match format {
            Format::Text => text::cell(&array, zone)?,
            Format::Binary => binary::cell(&array, zone)?,
        };
        Ok(Self {
            nulls: array.logical_nulls(),
            cell,
        })
    }

    /// Whether the row's value is NULL.
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Writes the row's value, which is not NULL.
    pub(super) fn write(&self, row: usize, out: &mut BytesMut) -> Result<(), Unencodable> {
        (self.cell)(row, out)
    }

    /// Writes length and value, or -1 for NULL.
    fn write_sized(&self, row: usize, out: &mut BytesMut) -> Result<(), Unencodable> {
        if self.is_null(row) {
            out.put_i32(-1);
            return Ok(());
        }
        let start = out.len();
        out.put_i32(0);
        self.write(row, out)?;
        set_length(out, start, start + size_of::<i32>())
    }
}

/// Writes the DataRow messages of one batch.
pub(super) struct RowEncoder {
    columns: Vec<ColumnEncoder>,
}

impl RowEncoder {
    /// Chooses the encoders; `formats` has one per column.
    pub(super) fn new(batch: &RecordBatch, formats: &[Format], zone: Tz) -> Result<Self, SqlError> {
        let columns = batch.columns().iter().zip(formats);
        let columns = columns
            .map(|(array, format)| ColumnEncoder::new(array, *format, zone))
            .collect::<Result<_, _>>()?;
        Ok(Self { columns })
    }

    /// Writes one row, or nothing if it cannot be written.
    pub(super) fn write(&self, row: usize, out: &mut BytesMut) -> Result<(), Unencodable> {
        let start = out.len();
        let written = self.write_fields(row, out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn write_fields(&self, row: usize, out: &mut BytesMut) -> Result<(), Unencodable> {
        out.put_u8(b'D');
        let start = out.len();
        out.put_i32(0);
        // INVARIANT: a result has at most 1664 columns; see `row_description`.
        out.put_i16(self.columns.len() as i16);
        for column in &self.columns {
            column.write_sized(row, out)?;
        }
        set_length(out, start, start)
    }
}

/// Writes the distance from `from` to the end at `at`.
fn set_length(out: &mut BytesMut, at: usize, from: usize) -> Result<(), Unencodable> {
    let length = out.len() - from;
    if length > MAX_ROW_BYTES {
        return Err(Unencodable::TooLarge);
    }
    out[at..at + size_of::<i32>()].copy_from_slice(&(length as i32).to_be_bytes());
    Ok(())
}

/// PostgreSQL's bound on the columns of a result.
const MAX_COLUMNS: usize = 1664;

/// The message that describes a result's columns.
pub(super) fn row_description(
    fields: &[Arc<Field>],
    formats: &[Format],
) -> Result<RowDescription, SqlError> {
    if fields.len() > MAX_COLUMNS {
        let message = format!("a result can have at most {MAX_COLUMNS} columns");
        return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let columns = fields.iter().zip(formats).map(|(field, format)| {
        let wire = wire_type(field.data_type());
        let name = field.name().replace('\0', "");
        FieldDescription::new(
            name,
            0,
            0,
            wire.oid(),
            type_size(&wire),
            type_modifier(field.data_type()),
            format.code(),
        )
    });
    Ok(RowDescription::new(columns.collect()))
}

/// The session's zone by its name, which the session has validated; UTC for a name that Arrow does not know.
pub(super) fn zone(name: &str) -> Tz {
    name.parse().unwrap_or_else(|_| utc())
}

fn utc() -> Tz {
    "+00:00".parse().expect("a fixed offset is a zone")
}

/// The column in one of the types that have an encoder: dictionaries and runs unpacked, unsigned integers widened, list kinds unified.
fn plain(array: &ArrayRef) -> Result<ArrayRef, SqlError> {
    let target = match array.data_type() {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Float16 => DataType::Float32,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Time64(TimeUnit::Nanosecond) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime) => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => DataType::List(Arc::clone(field)),
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        _ => return Ok(Arc::clone(array)),
    };
    plain(&cast(array, &target)?)
}

#[cfg(test)]
mod tests;
