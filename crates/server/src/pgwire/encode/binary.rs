//! Binary encoders: what PostgreSQL's send functions write, all numbers big-endian.

use arrow::{
    array::{Array, ArrayRef, AsArray, timezone::Tz},
    datatypes::{
        DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type,
        Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType,
        TimeUnit,
    },
};
use bytes::{BufMut, BytesMut};

use super::{
    Cell, Unencodable, datetime, list, number,
    text::{self, durations, timestamps},
};
use crate::{pgwire::types::is_json, sqlstate::SqlError};

/// The binary encoder of a column in one of the types that `plain` leaves. `zone` is for timestamps within JSON.
pub(super) fn cell(array: &ArrayRef, zone: Tz) -> Result<Cell, SqlError> {
    Ok(match array.data_type() {
        DataType::Boolean => {
            let array = array.as_boolean().clone();
            Box::new(move |row, out| put(out, &[u8::from(array.value(row))]))
        }
        DataType::Int16 => {
            let values = array.as_primitive::<Int16Type>().values().clone();
            Box::new(move |row, out| put(out, &values[row].to_be_bytes()))
        }
        DataType::Int32 => {
            let values = array.as_primitive::<Int32Type>().values().clone();
            Box::new(move |row, out| put(out, &values[row].to_be_bytes()))
        }
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>().values().clone();
            Box::new(move |row, out| put(out, &values[row].to_be_bytes()))
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values().clone();
            Box::new(move |row, out| put(out, &values[row].to_be_bytes()))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values().clone();
            Box::new(move |row, out| put(out, &values[row].to_be_bytes()))
        }
        DataType::Decimal128(_, scale) => {
            let (values, scale) = (
                array.as_primitive::<Decimal128Type>().values().clone(),
                *scale,
            );
            Box::new(move |row, out| number::Digits::from(values[row]).write_binary(scale, out))
        }
        DataType::Decimal256(_, scale) => {
            let (values, scale) = (
                array.as_primitive::<Decimal256Type>().values().clone(),
                *scale,
            );
            Box::new(move |row, out| number::Digits::from(values[row]).write_binary(scale, out))
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>().clone();
            Box::new(move |row, out| put(out, array.value(row)))
        }
        DataType::Date32 => {
            let values = array.as_primitive::<Date32Type>().values().clone();
            Box::new(move |row, out| {
                put(
                    out,
                    &datetime::postgres_days(i64::from(values[row]))?.to_be_bytes(),
                )
            })
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let values = array
                .as_primitive::<Time64MicrosecondType>()
                .values()
                .clone();
            Box::new(move |row, out| put(out, &values[row].to_be_bytes()))
        }
        DataType::Timestamp(unit, _) => {
            let (values, unit) = (timestamps(array, *unit), *unit);
            Box::new(move |row, out| {
                put(
                    out,
                    &datetime::postgres_micros(values[row], unit)?.to_be_bytes(),
                )
            })
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array
                .as_primitive::<IntervalMonthDayNanoType>()
                .values()
                .clone();
            Box::new(move |row, out| {
                let value = values[row];
                put_interval(value.months, value.days, value.nanoseconds / 1_000, out);
                Ok(())
            })
        }
        DataType::Duration(unit) => {
            let (values, unit) = (durations(array, *unit), *unit);
            Box::new(move |row, out| {
                let micros = datetime::to_micros(values[row], unit).ok_or(Unencodable::DateTime)?;
                put_interval(0, 0, micros, out);
                Ok(())
            })
        }
        DataType::List(_) if !is_json(array.data_type()) => {
            list::binary(array.as_list::<i32>(), zone)?
        }
        // Text and JSON have the same bytes in both formats.
        _ => text::cell(array, zone)?,
    })
}

fn put(out: &mut BytesMut, bytes: &[u8]) -> Result<(), Unencodable> {
    out.put_slice(bytes);
    Ok(())
}

fn put_interval(months: i32, days: i32, micros: i64, out: &mut BytesMut) {
    out.put_i64(micros);
    out.put_i32(days);
    out.put_i32(months);
}
