//! A field's text into its column.

use crate::column::ColumnBuilder;

use super::{bytes, datetime, decimal, decimal::DecimalFault, double, integer};

/// Appends the value that `text` (UTF-8) stands for, or says why it is none of the column's type.
///
/// Numbers are decimal text; BOOLEAN is `true` or `false` in any case; DATE, TIME and TIMESTAMP are a number (days, milliseconds of the day,
/// milliseconds) or ISO 8601 text; BYTES is base64. A failed text may leave a half-written value: the caller truncates the row.
pub(crate) fn push_text(builder: &mut ColumnBuilder, text: &[u8]) -> Result<(), &'static str> {
    match builder {
        ColumnBuilder::Boolean { values, validity } => {
            let value = match text {
                _ if text.eq_ignore_ascii_case(b"true") => true,
                _ if text.eq_ignore_ascii_case(b"false") => false,
                _ => return Err("expected true or false"),
            };
            values.append(value);
            validity.push_valid();
        }
        ColumnBuilder::Int16(column) => column.push(narrow(text, "expected a SMALLINT")?),
        ColumnBuilder::Int32(column) => column.push(narrow(text, "expected an INT")?),
        ColumnBuilder::Int64(column) => column.push(narrow(text, "expected a BIGINT")?),
        ColumnBuilder::Float32(column) => {
            column.push(double::parse(text).ok_or("expected a REAL")? as f32)
        }
        ColumnBuilder::Float64(column) => {
            column.push(double::parse(text).ok_or("expected a DOUBLE")?)
        }
        ColumnBuilder::Decimal128(column, precision, scale) => {
            column.push(decimal::parse(text, *precision, *scale).map_err(decimal_reason)?);
        }
        ColumnBuilder::Decimal256(column, precision, scale) => {
            column.push(decimal::parse(text, *precision, *scale).map_err(decimal_reason)?);
        }
        ColumnBuilder::Date(column) => column.push(date(text)?),
        ColumnBuilder::Time(column) => column.push(time(text)?),
        ColumnBuilder::Timestamp(column) => column.push(timestamp(text)?),
        ColumnBuilder::Utf8(column) => column.push(text),
        ColumnBuilder::Binary(column) => {
            bytes::parse(text, column.buffer()).ok_or("expected BYTES in base64")?;
            column.finish_value();
        }
        ColumnBuilder::List(_) | ColumnBuilder::Map(_) | ColumnBuilder::Struct(_) => {
            return Err("text where a nested value belongs");
        }
        ColumnBuilder::Judged(column) => {
            let judged = push_text(column, text);
            column.truncate(0);
            return judged;
        }
    }
    Ok(())
}

pub(crate) const TIME_RANGE: &str = "expected a TIME within one day";

/// Whether `millis` is a time of day.
pub(crate) fn time_of_day(millis: i64) -> Result<i32, &'static str> {
    match i32::try_from(millis) {
        Ok(value) if (0..datetime::DAY_MS).contains(&millis) => Ok(value),
        _ => Err(TIME_RANGE),
    }
}

pub(crate) fn decimal_reason(fault: DecimalFault) -> &'static str {
    match fault {
        DecimalFault::Syntax => "expected a DECIMAL",
        DecimalFault::Inexact => "a DECIMAL with more digits after the point than the column has",
        DecimalFault::Overflow => "a DECIMAL with more digits than the column has",
    }
}

fn narrow<T: TryFrom<i64>>(text: &[u8], expected: &'static str) -> Result<T, &'static str> {
    integer::parse(text)
        .and_then(|value| T::try_from(value).ok())
        .ok_or(expected)
}

fn date(text: &[u8]) -> Result<i32, &'static str> {
    match integer::parse(text) {
        Some(days) => i32::try_from(days).map_err(|_| "a DATE out of range"),
        None => datetime::parse_date(text).ok_or("expected a DATE: days or an ISO 8601 date"),
    }
}

fn time(text: &[u8]) -> Result<i32, &'static str> {
    match integer::parse(text) {
        Some(millis) => time_of_day(millis),
        None => {
            datetime::parse_time(text).ok_or("expected a TIME: milliseconds or an ISO 8601 time")
        }
    }
}

fn timestamp(text: &[u8]) -> Result<i64, &'static str> {
    integer::parse(text)
        .or_else(|| datetime::parse_instant(text))
        .ok_or("expected a TIMESTAMP: milliseconds or an ISO 8601 date and time")
}
