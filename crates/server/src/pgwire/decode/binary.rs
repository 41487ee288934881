//! PostgreSQL's receive functions.

use arrow::datatypes::IntervalMonthDayNano;
use datafusion::scalar::ScalarValue;
use pgwire::api::Type;

use super::{array, invalid_binary, numeric, text, unknown_type};
use crate::{
    pgwire::{message::utf8, types::element_of},
    sqlstate::{SqlError, code},
};

/// Microseconds from 1970-01-01 to 2000-01-01.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;
/// Days from 1970-01-01 to 2000-01-01.
const POSTGRES_EPOCH_DAYS: i32 = 10_957;

/// Reads a value from its binary form.
pub(super) fn value(bytes: &[u8], wire: &Type) -> Result<ScalarValue, SqlError> {
    Ok(match *wire {
        Type::BOOL => ScalarValue::from(u8::from_be_bytes(fixed(bytes, wire)?) != 0),
        Type::INT2 => ScalarValue::Int16(Some(i16::from_be_bytes(fixed(bytes, wire)?))),
        Type::INT4 => ScalarValue::Int32(Some(i32::from_be_bytes(fixed(bytes, wire)?))),
        Type::INT8 => ScalarValue::Int64(Some(i64::from_be_bytes(fixed(bytes, wire)?))),
        Type::OID => ScalarValue::Int64(Some(i64::from(u32::from_be_bytes(fixed(bytes, wire)?)))),
        Type::FLOAT4 => ScalarValue::Float32(Some(f32::from_be_bytes(fixed(bytes, wire)?))),
        Type::FLOAT8 => ScalarValue::Float64(Some(f64::from_be_bytes(fixed(bytes, wire)?))),
        Type::NUMERIC => ScalarValue::Utf8(Some(numeric::from_binary(bytes)?)),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::CHAR => {
            ScalarValue::from(utf8(bytes)?)
        }
        Type::JSON => ScalarValue::from(text::json(utf8(bytes)?, wire)?),
        Type::JSONB => ScalarValue::from(text::json(utf8(versioned(bytes, wire)?)?, wire)?),
        Type::UUID => ScalarValue::from(uuid(fixed(bytes, wire)?).as_str()),
        Type::BYTEA => ScalarValue::Binary(Some(bytes.to_vec())),
        Type::DATE => ScalarValue::Date32(Some(days(i32::from_be_bytes(fixed(bytes, wire)?))?)),
        Type::TIME => {
            ScalarValue::Time64Microsecond(Some(time(i64::from_be_bytes(fixed(bytes, wire)?))?))
        }
        Type::TIMESTAMP => ScalarValue::TimestampMicrosecond(
            Some(micros(i64::from_be_bytes(fixed(bytes, wire)?))?),
            None,
        ),
        Type::TIMESTAMPTZ => {
            let micros = micros(i64::from_be_bytes(fixed(bytes, wire)?))?;
            ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into()))
        }
        Type::INTERVAL => ScalarValue::IntervalMonthDayNano(Some(interval(fixed(bytes, wire)?)?)),
        _ => match element_of(wire) {
            Some(element) => array::from_binary(bytes, wire, &element)?,
            None => return Err(unknown_type(wire)),
        },
    })
}

/// A value of exactly this many bytes.
fn fixed<const N: usize>(bytes: &[u8], wire: &Type) -> Result<[u8; N], SqlError> {
    bytes.try_into().map_err(|_| invalid_binary(wire))
}

/// JSONB's text behind its version byte.
fn versioned<'a>(bytes: &'a [u8], wire: &Type) -> Result<&'a [u8], SqlError> {
    match bytes {
        [1, text @ ..] => Ok(text),
        _ => Err(invalid_binary(wire)),
    }
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

fn beyond(what: &str) -> SqlError {
    SqlError::new(
        code::DATETIME_FIELD_OVERFLOW,
        format!("{what} out of range"),
    )
}

/// The smallest and largest numbers stand for infinity, which Arrow's dates lack.
fn days(days: i32) -> Result<i32, SqlError> {
    let finite = days != i32::MIN && days != i32::MAX;
    days.checked_add(POSTGRES_EPOCH_DAYS)
        .filter(|_| finite)
        .ok_or_else(|| beyond("date"))
}

fn micros(micros: i64) -> Result<i64, SqlError> {
    let finite = micros != i64::MIN && micros != i64::MAX;
    micros
        .checked_add(POSTGRES_EPOCH_MICROS)
        .filter(|_| finite)
        .ok_or_else(|| beyond("timestamp"))
}

fn time(micros: i64) -> Result<i64, SqlError> {
    if (0..=86_400_000_000).contains(&micros) {
        Ok(micros)
    } else {
        Err(beyond("time"))
    }
}

fn interval(bytes: [u8; 16]) -> Result<IntervalMonthDayNano, SqlError> {
    let value = u128::from_be_bytes(bytes);
    let (micros, days, months) = ((value >> 64) as i64, (value >> 32) as i32, value as i32);
    let nanos = micros
        .checked_mul(1_000)
        .ok_or_else(|| beyond("interval"))?;
    Ok(IntervalMonthDayNano::new(months, days, nanos))
}
