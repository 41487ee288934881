//! PostgreSQL's input functions.

use arrow::array::timezone::Tz;
use datafusion::scalar::ScalarValue;
use pgwire::api::Type;

use super::{array, datetime, invalid_text, numeric, out_of_range, unknown_type};
use crate::{pgwire::types::element_of, sqlstate::SqlError};

/// Reads a value from text; `zone` is where a clock without a zone stands.
pub(super) fn value(text: &str, wire: &Type, zone: Tz) -> Result<ScalarValue, SqlError> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    Ok(match *wire {
        Type::BOOL => ScalarValue::from(boolean(trimmed).ok_or_else(|| invalid_text(text, wire))?),
        Type::INT2 => ScalarValue::Int16(Some(integer(trimmed, wire)?)),
        Type::INT4 => ScalarValue::Int32(Some(integer(trimmed, wire)?)),
        Type::INT8 => ScalarValue::Int64(Some(integer(trimmed, wire)?)),
        Type::OID => ScalarValue::Int64(Some(i64::from(integer::<u32>(trimmed, wire)?))),
        Type::FLOAT4 => ScalarValue::Float32(Some(float4(trimmed, wire)?)),
        Type::FLOAT8 => ScalarValue::Float64(Some(float8(trimmed, wire)?)),
        Type::NUMERIC => ScalarValue::Utf8(Some(numeric::from_text(trimmed)?)),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::CHAR | Type::UUID => {
            ScalarValue::from(text)
        }
        Type::JSON | Type::JSONB => ScalarValue::from(json(text, wire)?),
        Type::BYTEA => ScalarValue::Binary(Some(bytea(text, wire)?)),
        Type::DATE => ScalarValue::Date32(Some(datetime::date(trimmed)?)),
        Type::TIME => ScalarValue::Time64Microsecond(Some(datetime::time(trimmed)?)),
        Type::TIMESTAMP => {
            ScalarValue::TimestampMicrosecond(Some(datetime::timestamp(trimmed)?), None)
        }
        Type::TIMESTAMPTZ => ScalarValue::TimestampMicrosecond(
            Some(datetime::timestamptz(trimmed, zone)?),
            Some("UTC".into()),
        ),
        Type::INTERVAL => ScalarValue::IntervalMonthDayNano(Some(datetime::interval(trimmed)?)),
        _ => match element_of(wire) {
            Some(element) => array::from_text(text, &element, zone)?,
            None => return Err(unknown_type(wire)),
        },
    })
}

/// The words PostgreSQL takes, each also by a prefix that is unambiguous.
fn boolean(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let is_prefix_of = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if text == "1" || is_prefix_of("true", 1) || is_prefix_of("yes", 1) || is_prefix_of("on", 2) {
        Some(true)
    } else if text == "0"
        || is_prefix_of("false", 1)
        || is_prefix_of("no", 1)
        || is_prefix_of("off", 2)
    {
        Some(false)
    } else {
        None
    }
}

fn integer<T: std::str::FromStr<Err = std::num::ParseIntError>>(
    text: &str,
    wire: &Type,
) -> Result<T, SqlError> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse()
        .map_err(|error: std::num::ParseIntError| match error.kind() {
            PosOverflow | NegOverflow => out_of_range(text, wire),
            _ => invalid_text(text, wire),
        })
}

/// The words for values that are not finite; Rust's own parser takes more of them than PostgreSQL.
fn not_finite(text: &str) -> Option<f64> {
    let (sign, word) = match text.strip_prefix('-') {
        Some(word) => (-1.0, word),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    match word.to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "infinity" | "inf" => Some(sign * f64::INFINITY),
        _ => None,
    }
}

fn float8(text: &str, wire: &Type) -> Result<f64, SqlError> {
    if let Some(value) = not_finite(text) {
        return Ok(value);
    }
    let value: f64 = text.parse().map_err(|_| invalid_text(text, wire))?;
    let vanished = value == 0.0 && has_nonzero_digit(text);
    if value.is_finite() && !vanished {
        Ok(value)
    } else {
        Err(out_of_range(text, wire))
    }
}

fn float4(text: &str, wire: &Type) -> Result<f32, SqlError> {
    if let Some(value) = not_finite(text) {
        return Ok(value as f32);
    }
    let value: f32 = text.parse().map_err(|_| invalid_text(text, wire))?;
    let vanished = value == 0.0 && has_nonzero_digit(text);
    if value.is_finite() && !vanished {
        Ok(value)
    } else {
        Err(out_of_range(text, wire))
    }
}

/// Whether the digits before an exponent say that the number is not zero.
fn has_nonzero_digit(text: &str) -> bool {
    text.bytes()
        .take_while(|byte| !matches!(byte, b'e' | b'E'))
        .any(|byte| (b'1'..=b'9').contains(&byte))
}

pub(super) fn json<'a>(text: &'a str, wire: &Type) -> Result<&'a str, SqlError> {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(text),
        Err(error) => Err(invalid_text(text, wire).with_detail(error.to_string())),
    }
}

/// `\x` and hexadecimal digits (blanks between bytes), or text with `\\` and `\ooo`.
fn bytea(text: &str, wire: &Type) -> Result<Vec<u8>, SqlError> {
    let bytes = match text.strip_prefix("\\x") {
        Some(digits) => hex(digits),
        None => escaped(text.as_bytes()),
    };
    bytes.ok_or_else(|| invalid_text(text, wire))
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = digits
        .chars()
        .filter(|c| !c.is_ascii_whitespace())
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits?;
    (digits.len() % 2 == 0).then(|| {
        digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    })
}

fn escaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                after
            }
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    after @ ..,
                ],
            ) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            (b'\\', _) => return None,
            (other, after) => {
                out.push(*other);
                after
            }
        };
    }
    Some(out)
}
