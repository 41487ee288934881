//! CAST under ksqlDB's rules.
//!
//! Differences from SQL's cast: numbers that leave the range of a whole type wrap around, as Java's do; a text is TRUE when it is a beginning of `true`
//! or `yes`, and FALSE otherwise; texts of numbers, dates and times are Java's; a struct is cast field by field, by name. A value that has no
//! counterpart is NULL, and why is reported.
//!
//! The function takes the type as a NULL of that type: `ksql_cast(value, CAST(NULL AS type))`.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array,
        Int32Array, Int64Array, ListArray, MapArray, StringArray, StringBuilder, StructArray,
        Time32MillisecondArray, TimestampMillisecondArray, new_null_array,
    },
    compute,
    datatypes::{DataType, Decimal128Type, Fields, Float64Type, Int64Type, TimeUnit},
};
use datafusion::{
    common::{Result, exec_err, plan_err},
    logical_expr::{
        ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};

use crate::{
    row_errors::report,
    types::{canonical, sql_name},
    value_text::{is_null, write_value},
};

/// The name that the binder calls it by.
pub const CAST: &str = "ksql_cast";

/// The function.
pub(crate) fn cast_function() -> ScalarUDF {
    ScalarUDF::new_from_impl(Cast {
        signature: Signature::any(2, Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Cast {
    signature: Signature,
}

impl ScalarUDFImpl for Cast {
    fn name(&self) -> &str {
        CAST
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [from, to] = arguments else {
            return plan_err!("a cast takes a value and a type");
        };
        let to = canonical(to);
        match is_possible(&canonical(from), &to) {
            true => Ok(to),
            false => plan_err!(
                "cast of {} to {} is not supported",
                sql_name(from),
                sql_name(&to)
            ),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let to = args.return_field.data_type();
        let Some(value) = args.args.first() else {
            return exec_err!("a cast takes a value and a type");
        };
        let array = value.to_array(rows)?;
        let from = canonical(array.data_type());
        let array = compute::cast(&array, &from)?;
        Ok(ColumnarValue::Array(cast(&array, to)?))
    }
}

fn is_number(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int32 | DataType::Int64 | DataType::Float64 | DataType::Decimal128(..)
    )
}

fn is_possible(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Null, _) => true,
        (from, to) if from == to => true,
        (from, to) if is_number(from) && is_number(to) => true,
        (DataType::Binary, DataType::Utf8) => false,
        (_, DataType::Utf8) => true,
        (DataType::Utf8, to) => {
            is_number(to)
                || matches!(
                    to,
                    DataType::Boolean
                        | DataType::Date32
                        | DataType::Time32(_)
                        | DataType::Timestamp(..)
                        | DataType::Binary
                )
        }
        (DataType::Timestamp(..), DataType::Date32 | DataType::Time32(_))
        | (DataType::Date32, DataType::Timestamp(..)) => true,
        (DataType::List(from), DataType::List(to)) => is_possible(from.data_type(), to.data_type()),
        (DataType::Map(from, _), DataType::Map(to, _)) => {
            match (from.data_type(), to.data_type()) {
                (DataType::Struct(from), DataType::Struct(to)) => from
                    .iter()
                    .zip(to)
                    .all(|(from, to)| is_possible(from.data_type(), to.data_type())),
                _ => false,
            }
        }
        (DataType::Struct(from), DataType::Struct(to)) => to.iter().all(|field| {
            from.find(field.name())
                .is_none_or(|(_, own)| is_possible(own.data_type(), field.data_type()))
        }),
        _ => false,
    }
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = array.data_type();
    Ok(match (from, to) {
        (from, to) if from == to => Arc::clone(array),
        (DataType::Null, to) => new_null_array(to, array.len()),
        (_, DataType::Utf8) => Arc::new(texts(array)),
        (DataType::Utf8, to) => parse(array.as_string(), to)?,
        (DataType::Int64, DataType::Int32) => {
            let values = array.as_primitive::<Int64Type>();
            // Java's narrowing keeps the low bits.
            Arc::new(values.unary::<_, arrow::datatypes::Int32Type>(|value| value as i32))
        }
        (DataType::Float64, DataType::Int32) => {
            let values = array.as_primitive::<Float64Type>();
            Arc::new(values.unary::<_, arrow::datatypes::Int32Type>(|value| value as i32))
        }
        (DataType::Float64, DataType::Int64) => {
            let values = array.as_primitive::<Float64Type>();
            Arc::new(values.unary::<_, Int64Type>(|value| value as i64))
        }
        (DataType::Float64, DataType::Decimal128(precision, scale)) => {
            // Through the text, so that the digits are those that one sees.
            parse_decimals(&texts(array), *precision, *scale)?
        }
        (DataType::Decimal128(_, scale), DataType::Int32 | DataType::Int64) => {
            let divisor = 10_i128.pow(u32::from(scale.unsigned_abs()));
            let values = array.as_primitive::<Decimal128Type>();
            let whole = values.unary::<_, Int64Type>(|value| (value / divisor) as i64);
            let whole: ArrayRef = Arc::new(whole);
            return cast(&whole, to);
        }
        (DataType::List(_), DataType::List(element)) => {
            let lists = array.as_list::<i32>();
            let values = cast(lists.values(), element.data_type())?;
            Arc::new(ListArray::try_new(
                Arc::clone(element),
                lists.offsets().clone(),
                values,
                lists.nulls().cloned(),
            )?)
        }
        (DataType::Map(..), DataType::Map(entries, sorted)) => {
            let maps = array.as_map();
            let DataType::Struct(fields) = entries.data_type() else {
                return exec_err!("a map has no entries");
            };
            let keys = cast(maps.keys(), fields[0].data_type())?;
            let values = cast(maps.values(), fields[1].data_type())?;
            let structs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
            Arc::new(MapArray::try_new(
                Arc::clone(entries),
                maps.offsets().clone(),
                structs,
                maps.nulls().cloned(),
                *sorted,
            )?)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => cast_struct(array, fields)?,
        _ => {
            let made = compute::cast(array, to)?;
            for row in 0..array.len() {
                if array.is_valid(row) && made.is_null(row) {
                    let mut text = String::new();
                    write_value(&mut text, array, row);
                    report(format!("{text} does not fit {}", sql_name(to)));
                }
            }
            made
        }
    })
}

/// Field by field, by name; a field that is not there is NULL.
fn cast_struct(array: &ArrayRef, fields: &Fields) -> Result<ArrayRef> {
    let structs = array.as_struct();
    let columns = fields
        .iter()
        .map(|field| match structs.column_by_name(field.name()) {
            Some(column) => cast(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), structs.len())),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        columns,
        structs.nulls().cloned(),
    )?))
}

fn texts(array: &ArrayRef) -> StringArray {
    let mut texts = StringBuilder::with_capacity(array.len(), array.len() * 8);
    let mut text = String::new();
    for row in 0..array.len() {
        if is_null(array, row) {
            texts.append_null();
            continue;
        }
        text.clear();
        write_nested(&mut text, array, row);
        texts.append_value(&text);
    }
    texts.finish()
}

/// Lists, maps and structs as Java prints them.
fn write_nested(out: &mut String, array: &ArrayRef, row: usize) {
    if is_null(array, row) {
        out.push_str("null");
        return;
    }
    match array.data_type() {
        DataType::List(_) => {
            let elements = array.as_list::<i32>().value(row);
            out.push('[');
            for element in 0..elements.len() {
                out.push_str(if element == 0 { "" } else { ", " });
                write_nested(out, &elements, element);
            }
            out.push(']');
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            out.push('{');
            for entry in 0..entries.len() {
                out.push_str(if entry == 0 { "" } else { ", " });
                write_nested(out, entries.column(0), entry);
                out.push('=');
                write_nested(out, entries.column(1), entry);
            }
            out.push('}');
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            out.push_str("Struct{");
            let mut first = true;
            for (field, column) in fields.iter().zip(columns) {
                // Java's struct leaves out what it does not have.
                if is_null(column, row) {
                    continue;
                }
                out.push_str(if first { "" } else { "," });
                first = false;
                out.push_str(field.name());
                out.push('=');
                write_nested(out, column, row);
            }
            out.push('}');
        }
        _ => write_value(out, array, row),
    }
}

fn parse(texts: &StringArray, to: &DataType) -> Result<ArrayRef> {
    Ok(match to {
        DataType::Boolean => {
            let values: BooleanArray = texts.iter().map(|text| text.map(is_true)).collect();
            Arc::new(values)
        }
        DataType::Int32 => Arc::new(parsed::<Int32Array, _>(texts, to, |text| {
            text.trim().parse::<i32>().ok()
        })),
        DataType::Int64 => Arc::new(parsed::<Int64Array, _>(texts, to, |text| {
            text.trim().parse::<i64>().ok()
        })),
        DataType::Float64 => Arc::new(parsed::<Float64Array, _>(texts, to, |text| {
            let number = text.trim().trim_end_matches(['d', 'D', 'f', 'F']);
            // Rust takes more spellings of what is no number than Java does.
            let spelled = matches!(number, "NaN" | "Infinity" | "-Infinity" | "+Infinity");
            let digits = number.bytes().any(|byte| byte.is_ascii_digit());
            (spelled || digits).then(|| number.parse().ok()).flatten()
        })),
        DataType::Decimal128(precision, scale) => parse_decimals(texts, *precision, *scale)?,
        DataType::Date32 => Arc::new(parsed::<Date32Array, _>(texts, to, |text| {
            moment(text).map(|millis| millis.div_euclid(MILLIS_OF_DAY) as i32)
        })),
        DataType::Time32(TimeUnit::Millisecond) => {
            Arc::new(parsed::<Time32MillisecondArray, _>(texts, to, |text| {
                time_of_day(text).map(|millis| millis as i32)
            }))
        }
        DataType::Timestamp(TimeUnit::Millisecond, None) => {
            Arc::new(parsed::<TimestampMillisecondArray, _>(texts, to, moment))
        }
        DataType::Binary => {
            use base64::{Engine, prelude::BASE64_STANDARD};
            let decoded = texts.iter().map(|text| {
                let text = text?;
                let bytes = BASE64_STANDARD.decode(text).ok();
                if bytes.is_none() {
                    report(format!("'{text}' is not BYTES"));
                }
                bytes
            });
            let decoded: arrow::array::BinaryArray = decoded.collect();
            Arc::new(decoded)
        }
        other => return exec_err!("cast of VARCHAR to {} is not supported", sql_name(other)),
    })
}

/// Parses each text; one that has no value is reported.
fn parsed<A, T>(texts: &StringArray, to: &DataType, parse: impl Fn(&str) -> Option<T>) -> A
where
    A: FromIterator<Option<T>>,
{
    texts
        .iter()
        .map(|text| {
            let text = text?;
            let value = parse(text);
            if value.is_none() {
                report(format!("'{text}' is no {}", sql_name(to)));
            }
            value
        })
        .collect()
}

fn is_true(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    !text.is_empty() && ("true".starts_with(&text) || "yes".starts_with(&text))
}

fn parse_decimals(texts: &StringArray, precision: u8, scale: i8) -> Result<ArrayRef> {
    let to = DataType::Decimal128(precision, scale);
    let values: Decimal128Array = parsed(texts, &to, |text| decimal(text, precision, scale));
    Ok(Arc::new(values.with_precision_and_scale(precision, scale)?))
}

/// The digits of a number at a scale, rounded half up; `None` when it is no number or has too many digits.
fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let text = text.trim();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, unsigned) = match mantissa.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The number is digits * 10^-from; what is asked for is digits * 10^(scale - from).
    let from = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let shift = i32::from(scale).checked_sub(from)?;
    let digits = digits.trim_start_matches('0');
    let value = if shift >= 0 {
        let parsed: i128 = if digits.is_empty() {
            0
        } else {
            digits.parse().ok()?
        };
        parsed.checked_mul(10_i128.checked_pow(shift.unsigned_abs())?)?
    } else {
        let dropped = usize::try_from(shift.unsigned_abs()).ok()?;
        let kept = digits.len().checked_sub(dropped);
        let whole: i128 = match kept {
            Some(kept) if kept > 0 => digits[..kept].parse().ok()?,
            _ => 0,
        };
        let next = kept.and_then(|kept| digits.as_bytes().get(kept)).copied();
        whole + i128::from(next.is_some_and(|next| next >= b'5'))
    };
    let fits = 10_i128
        .checked_pow(u32::from(precision))
        .is_none_or(|limit| value < limit);
    fits.then_some(if negative { -value } else { value })
}

const MILLIS_OF_DAY: i64 = 86_400_000;

/// Milliseconds of `2020-01-31T12:30:00.000`, of which any part may be left out from the right; a zone may follow.
fn moment(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    let mut parts = date.split('-');
    let year: i64 = parts.next()?.parse().ok()?;
    let month: i64 = parts.next().map_or(Some(1), |part| part.parse().ok())?;
    let day: i64 = parts.next().map_or(Some(1), |part| part.parse().ok())?;
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (time, offset) = split_offset(time)?;
    let time = if time.is_empty() {
        0
    } else {
        time_of_day(time)?
    };
    Some(days_of(year, month, day) * MILLIS_OF_DAY + time - offset)
}

/// A zone's offset at the end of a time.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(local) = time.strip_suffix(['Z', 'z']) {
        return Some((local, 0));
    }
    let Some(at) = time.find(['+', '-']) else {
        return Some((time, 0));
    };
    let digits: String = time[at + 1..]
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let hhmm: i64 = match digits.len() {
        4 => digits.parse().ok()?,
        _ => return None,
    };
    let offset = (hhmm / 100 * 60 + hhmm % 100) * 60_000;
    let offset = if time[at..].starts_with('-') {
        -offset
    } else {
        offset
    };
    Some((&time[..at], offset))
}

fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.trim().split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next().map_or(Some(0), |part| part.parse().ok())?;
    let seconds = parts.next().unwrap_or("0");
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let seconds: i64 = seconds.parse().ok()?;
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let in_range =
        (0..24).contains(&hours) && (0..60).contains(&minutes) && (0..60).contains(&seconds);
    (in_range && parts.next().is_none())
        .then_some(((hours * 60 + minutes) * 60 + seconds) * 1000 + millis)
}

/// Days since 1970-01-01 of a date in the Gregorian calendar, counted by years that begin in March.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_round_half_up_and_must_fit() {
        assert_eq!(decimal("1.005", 5, 2), Some(101));
        assert_eq!(decimal("-1.005", 5, 2), Some(-101));
        assert_eq!(decimal("1e3", 5, 1), Some(10_000));
        assert_eq!(decimal("0.004", 5, 2), Some(0));
        assert_eq!(decimal("12.3E-2", 5, 2), Some(12));
        assert_eq!(decimal("1000", 5, 2), None);
        assert_eq!(decimal("ten", 5, 2), None);
        assert_eq!(decimal("", 5, 2), None);
    }

    #[test]
    fn texts_are_true_from_their_beginning_on() {
        assert!(is_true("t") && is_true("YES") && is_true("True"));
        assert!(!is_true("truth") && !is_true("") && !is_true("1"));
    }

    #[test]
    fn moments_may_be_cut_off() {
        assert_eq!(moment("1970-01-02"), Some(MILLIS_OF_DAY));
        assert_eq!(moment("1970-01-01T00:00:01.5"), Some(1500));
        assert_eq!(moment("1970-01-01T01:00+0100"), Some(0));
        assert_eq!(moment("2000-03-01"), Some(951_868_800_000));
        assert_eq!(moment("1969-12-31"), Some(-MILLIS_OF_DAY));
        assert_eq!(moment("never"), None);
        assert_eq!(time_of_day("25:00"), None);
    }
}
