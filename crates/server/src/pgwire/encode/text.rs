//! Text encoders: what PostgreSQL's output functions write.

use arrow::{
    array::{Array, ArrayRef, AsArray, timezone::Tz},
    datatypes::{
        DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type,
        Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType,
        TimeUnit,
    },
};
use bytes::{BufMut, BytesMut};

use super::{Cell, Unencodable, datetime, json, list, number};
use crate::{pgwire::types::is_json, sqlstate::SqlError};

/// The text encoder of a column in one of the types that `plain` leaves.
pub(super) fn cell(array: &ArrayRef, zone: Tz) -> Result<Cell, SqlError> {
    Ok(match array.data_type() {
        DataType::Null => Box::new(|_, _| Ok(())),
        DataType::Boolean => {
            let array = array.as_boolean().clone();
            always(move |row, out| out.put_u8(if array.value(row) { b't' } else { b'f' }))
        }
        DataType::Int16 => {
            let values = array.as_primitive::<Int16Type>().values().clone();
            always(move |row, out| number::write_signed(i64::from(values[row]), out))
        }
        DataType::Int32 => {
            let values = array.as_primitive::<Int32Type>().values().clone();
            always(move |row, out| number::write_signed(i64::from(values[row]), out))
        }
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>().values().clone();
            always(move |row, out| number::write_signed(values[row], out))
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values().clone();
            always(move |row, out| number::write_f32(values[row], out))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values().clone();
            always(move |row, out| number::write_f64(values[row], out))
        }
        DataType::Decimal128(_, scale) => {
            let (values, scale) = (
                array.as_primitive::<Decimal128Type>().values().clone(),
                *scale,
            );
            always(move |row, out| number::Digits::from(values[row]).write_text(scale, out))
        }
        DataType::Decimal256(_, scale) => {
            let (values, scale) = (
                array.as_primitive::<Decimal256Type>().values().clone(),
                *scale,
            );
            always(move |row, out| number::Digits::from(values[row]).write_text(scale, out))
        }
        DataType::Utf8 => {
            let array = array.as_string::<i32>().clone();
            always(move |row, out| out.put_slice(array.value(row).as_bytes()))
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>().clone();
            always(move |row, out| write_hex(array.value(row), out))
        }
        DataType::Date32 => {
            let values = array.as_primitive::<Date32Type>().values().clone();
            always(move |row, out| datetime::write_date(i64::from(values[row]), out))
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let values = array
                .as_primitive::<Time64MicrosecondType>()
                .values()
                .clone();
            always(move |row, out| datetime::write_time(values[row], out))
        }
        DataType::Timestamp(unit, in_zone) => {
            let (values, unit) = (timestamps(array, *unit), *unit);
            if in_zone.is_some() {
                always(move |row, out| {
                    datetime::write_timestamptz(values[row], unit, zone, b' ', out)
                })
            } else {
                always(move |row, out| datetime::write_timestamp(values[row], unit, b' ', out))
            }
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array
                .as_primitive::<IntervalMonthDayNanoType>()
                .values()
                .clone();
            always(move |row, out| {
                let value = values[row];
                datetime::write_interval(value.months, value.days, value.nanoseconds, out);
            })
        }
        DataType::Duration(unit) => {
            let (values, unit) = (durations(array, *unit), *unit);
            Box::new(move |row, out| {
                let micros = datetime::to_micros(values[row], unit).ok_or(Unencodable::DateTime)?;
                datetime::write_micros_interval(micros, out);
                Ok(())
            })
        }
        DataType::List(_) if !is_json(array.data_type()) => {
            list::text(array.as_list::<i32>(), zone)?
        }
        DataType::List(_) | DataType::Struct(_) | DataType::Map(..) => json::cell(array, zone)?,
        other => {
            return Err(SqlError::unsupported(format!(
                "columns of type {other} cannot be sent"
            )));
        }
    })
}

/// An encoder that cannot fail.
fn always(write: impl Fn(usize, &mut BytesMut) + Send + 'static) -> Cell {
    Box::new(move |row, out| {
        write(row, out);
        Ok(())
    })
}

/// The counts behind a timestamp column of any unit.
pub(super) fn timestamps(array: &ArrayRef, unit: TimeUnit) -> arrow::buffer::ScalarBuffer<i64> {
    use arrow::datatypes::{
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType,
    };
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().values().clone(),
        TimeUnit::Millisecond => array
            .as_primitive::<TimestampMillisecondType>()
            .values()
            .clone(),
        TimeUnit::Microsecond => array
            .as_primitive::<TimestampMicrosecondType>()
            .values()
            .clone(),
        TimeUnit::Nanosecond => array
            .as_primitive::<TimestampNanosecondType>()
            .values()
            .clone(),
    }
}

/// The counts behind a duration column of any unit.
pub(super) fn durations(array: &ArrayRef, unit: TimeUnit) -> arrow::buffer::ScalarBuffer<i64> {
    use arrow::datatypes::{
        DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
        DurationSecondType,
    };
    match unit {
        TimeUnit::Second => array.as_primitive::<DurationSecondType>().values().clone(),
        TimeUnit::Millisecond => array
            .as_primitive::<DurationMillisecondType>()
            .values()
            .clone(),
        TimeUnit::Microsecond => array
            .as_primitive::<DurationMicrosecondType>()
            .values()
            .clone(),
        TimeUnit::Nanosecond => array
            .as_primitive::<DurationNanosecondType>()
            .values()
            .clone(),
    }
}

/// Writes `\x` and two hexadecimal digits a byte.
pub(super) fn write_hex(bytes: &[u8], out: &mut BytesMut) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 + 2 * bytes.len());
    out.put_slice(b"\\x");
    for byte in bytes {
        out.put_u8(HEX[usize::from(byte >> 4)]);
        out.put_u8(HEX[usize::from(byte & 15)]);
    }
}
