//! Values as text: what ARRAY_JOIN and TO_JSON_STRING write of numbers, dates and times.

use std::fmt::Write as _;

use arrow::{
    array::{Array, ArrayRef, AsArray},
    datatypes::{
        DataType, Date32Type, Decimal128Type, Decimal256Type, Float64Type, Int32Type, Int64Type,
        Time32MillisecondType, TimestampMillisecondType,
    },
};
use highwater_formats::{
    java_text::{write_decimal, write_double},
    java_time::Zone,
};

use crate::scalar::datetime::pattern;

/// Appends a value that is no list, map or struct: NULL as `null`, numbers as Java prints them, dates and times in ISO form.
pub(crate) fn write_value(out: &mut String, array: &ArrayRef, row: usize) {
    if is_null(array, row) {
        out.push_str("null");
        return;
    }
    // Writing to a String cannot fail.
    match array.data_type() {
        DataType::Boolean => {
            let _ = write!(out, "{}", array.as_boolean().value(row));
        }
        DataType::Int32 => {
            let _ = write!(out, "{}", array.as_primitive::<Int32Type>().value(row));
        }
        DataType::Int64 => {
            let _ = write!(out, "{}", array.as_primitive::<Int64Type>().value(row));
        }
        DataType::Float64 => write_double(out, array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => {
            let unscaled = array
                .as_primitive::<Decimal128Type>()
                .value(row)
                .to_string();
            write_decimal(out, &unscaled, *scale);
        }
        DataType::Decimal256(_, scale) => {
            let unscaled = array
                .as_primitive::<Decimal256Type>()
                .value(row)
                .to_string();
            write_decimal(out, &unscaled, *scale);
        }
        DataType::Utf8 => out.push_str(array.as_string::<i32>().value(row)),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().value(row);
            write_time(out, "yyyy-MM-dd", i64::from(days) * MILLIS_OF_DAY);
        }
        DataType::Time32(_) => {
            let millis = array.as_primitive::<Time32MillisecondType>().value(row);
            // Java leaves a fraction out where there is none.
            let form = if millis % 1000 == 0 {
                "HH:mm:ss"
            } else {
                "HH:mm:ss.SSS"
            };
            write_time(out, form, i64::from(millis));
        }
        DataType::Timestamp(_, _) => {
            let millis = array.as_primitive::<TimestampMillisecondType>().value(row);
            write_time(out, "yyyy-MM-dd'T'HH:mm:ss.SSS", millis);
        }
        _ => {}
    }
}

const MILLIS_OF_DAY: i64 = 86_400_000;

/// Whether a value is NULL; a column of type NULL says of none that it is.
pub(crate) fn is_null(array: &ArrayRef, row: usize) -> bool {
    *array.data_type() == DataType::Null || array.is_null(row)
}

/// Appends an instant in a form of ours.
fn write_time(out: &mut String, form: &str, millis: i64) {
    if let Ok(pattern) = pattern(form) {
        out.push_str(&pattern.format_in(millis, &Zone::UTC));
    }
}
