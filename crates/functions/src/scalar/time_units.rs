//! Adding to dates and times, and subtracting from them.
//!
//! The unit is written bare in SQL, `DATEADD(DAYS, 3, date)`; the planner makes a text of it. Times of the day go round the clock; a date
//! moves by whole days, rounded down.

use arrow::{
    array::{ArrayRef, ArrowPrimitiveType},
    datatypes::{Date32Type, Time32MillisecondType, TimestampMillisecondType},
};

use crate::{
    call::{Call, value},
    function::{Category, Function, Overload},
    scalar::datetime::MILLIS_OF_DAY,
    signature::{Kind, Param, param},
};

/// The functions whose first argument is a unit.
pub const UNIT_FUNCTIONS: [&str; 6] = [
    "dateadd",
    "datesub",
    "timeadd",
    "timesub",
    "timestampadd",
    "timestampsub",
];

/// The units, as they are written.
pub const TIME_UNITS: [&str; 14] = [
    "MICROSECOND",
    "MICROSECONDS",
    "NANOSECOND",
    "NANOSECONDS",
    "MILLISECOND",
    "MILLISECONDS",
    "SECOND",
    "SECONDS",
    "MINUTE",
    "MINUTES",
    "HOUR",
    "HOURS",
    "DAY",
    "DAYS",
];

const UNIT: Param = param(
    "unit",
    Kind::Text,
    "MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS",
);
const COUNT: Param = param("count", Kind::Int, "how many of them");
const DATE: Param = param("date", Kind::Date, "a date");
const TIME: Param = param("time", Kind::Time, "a time of the day");
const TIMESTAMP: Param = param("timestamp", Kind::Timestamp, "a timestamp");

pub(super) static FUNCTIONS: &[Function] = &[
    moving(
        "dateadd",
        "A date that lies behind another.",
        &[("unix_date(dateadd('DAYS', 3, from_days(10)))", "13")],
        &[Overload::new(&[UNIT, COUNT, DATE], Kind::Date, |call| {
            Ok(dates(call, 1))
        })],
    ),
    moving(
        "datesub",
        "A date that lies in front of another.",
        &[("unix_date(datesub('DAYS', 3, from_days(10)))", "7")],
        &[Overload::new(&[UNIT, COUNT, DATE], Kind::Date, |call| {
            Ok(dates(call, -1))
        })],
    ),
    moving(
        "timeadd",
        "A time of the day that lies behind another.",
        &[(
            "format_time(timeadd('HOURS', 3, parse_time('23', 'HH')), 'HH')",
            "'02'",
        )],
        &[Overload::new(&[UNIT, COUNT, TIME], Kind::Time, |call| {
            Ok(times(call, 1))
        })],
    ),
    moving(
        "timesub",
        "A time of the day that lies in front of another.",
        &[(
            "format_time(timesub('HOURS', 3, parse_time('02', 'HH')), 'HH')",
            "'23'",
        )],
        &[Overload::new(&[UNIT, COUNT, TIME], Kind::Time, |call| {
            Ok(times(call, -1))
        })],
    ),
    moving(
        "timestampadd",
        "A timestamp that lies behind another.",
        &[(
            "unix_timestamp(timestampadd('SECONDS', 2, from_unixtime(5)))",
            "2005",
        )],
        &[Overload::new(
            &[UNIT, COUNT, TIMESTAMP],
            Kind::Timestamp,
            |call| Ok(timestamps(call, 1)),
        )],
    ),
    moving(
        "timestampsub",
        "A timestamp that lies in front of another.",
        &[(
            "unix_timestamp(timestampsub('SECONDS', 2, from_unixtime(2005)))",
            "5",
        )],
        &[Overload::new(
            &[UNIT, COUNT, TIMESTAMP],
            Kind::Timestamp,
            |call| Ok(timestamps(call, -1)),
        )],
    ),
];

const fn moving(
    name: &'static str,
    description: &'static str,
    examples: &'static [(&'static str, &'static str)],
    overloads: &'static [Overload],
) -> Function {
    Function::new(name, Category::DateTime, description, overloads, examples)
}

/// Milliseconds of so many units.
fn millis(unit: &str, count: i64) -> Result<i64, String> {
    /// Nanoseconds and microseconds in a millisecond.
    const FRACTIONS: [(&str, i64); 2] = [("NANOSECOND", 1_000_000), ("MICROSECOND", 1000)];
    const MULTIPLES: [(&str, i64); 5] = [
        ("MILLISECOND", 1),
        ("SECOND", 1000),
        ("MINUTE", 60_000),
        ("HOUR", 3_600_000),
        ("DAY", MILLIS_OF_DAY),
    ];
    let upper = unit.trim().to_ascii_uppercase();
    let singular = upper.strip_suffix('S').unwrap_or(&upper);
    let size = |table: &[(&str, i64)]| {
        table
            .iter()
            .find(|(name, _)| *name == singular)
            .map(|(_, size)| *size)
    };
    if let Some(size) = size(&FRACTIONS) {
        return Ok(count / size);
    }
    match size(&MULTIPLES) {
        Some(size) => count
            .checked_mul(size)
            .ok_or_else(|| format!("{count} {unit} are too many")),
        None => Err(format!("\"{unit}\" is no unit of time")),
    }
}

/// Moves the values of the third argument.
fn moved<T: ArrowPrimitiveType>(
    call: &Call,
    sign: i64,
    step: impl Fn(T::Native, i64) -> Option<T::Native>,
) -> ArrayRef {
    let (unit, count, start) = (call.text(0), call.int(1), call.primitive::<T>(2));
    call.numbers::<T>(|row| {
        let (unit, count) = (value!(unit.get(row)), value!(count.get(row)));
        let start = value!(start.get(row));
        let distance = millis(unit, i64::from(count))?.checked_mul(sign);
        match distance.and_then(|distance| step(start, distance)) {
            Some(end) => Ok(Some(end)),
            None => Err("the result is out of range".to_owned()),
        }
    })
}

fn dates(call: &Call, sign: i64) -> ArrayRef {
    moved::<Date32Type>(call, sign, |days, distance| {
        let end = i64::from(days) * MILLIS_OF_DAY + distance;
        i32::try_from(end.div_euclid(MILLIS_OF_DAY)).ok()
    })
}

fn times(call: &Call, sign: i64) -> ArrayRef {
    moved::<Time32MillisecondType>(call, sign, |time, distance| {
        let end = i64::from(time).checked_add(distance)?;
        i32::try_from(end.rem_euclid(MILLIS_OF_DAY)).ok()
    })
}

fn timestamps(call: &Call, sign: i64) -> ArrayRef {
    moved::<TimestampMillisecondType>(call, sign, i64::checked_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_known() {
        for unit in TIME_UNITS {
            assert!(millis(unit, 1).is_ok(), "{unit}");
        }
        assert_eq!(millis("hours", 2), Ok(7_200_000));
        assert_eq!(millis("NANOSECONDS", 2_500_000), Ok(2));
        assert!(millis("WEEKS", 1).is_err());
        assert!(millis("DAYS", i64::MAX).is_err());
    }
}
