//! Dates, times and intervals as PostgreSQL writes them in the ISO style.
//!
//! Everything is microseconds or days in 64 bits, and calendar dates come from arithmetic that holds for every `i64` day count in range of
//! the types here, so no value is refused as text. The binary forms count from 2000-01-01 and can overflow.

use arrow::{array::timezone::Tz, datatypes::TimeUnit};
use bytes::{BufMut, BytesMut};
use chrono::{DateTime, Offset, TimeZone};

use super::{
    Unencodable,
    number::{write_integer, write_signed},
};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// Days from 1970-01-01 to 2000-01-01.
const POSTGRES_EPOCH_DAYS: i64 = 10_957;

/// A count of `unit` in microseconds; `None` when that overflows.
pub(super) fn to_micros(value: i64, unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Second => value.checked_mul(MICROS_PER_SECOND),
        TimeUnit::Millisecond => value.checked_mul(1_000),
        TimeUnit::Microsecond => Some(value),
        TimeUnit::Nanosecond => Some(value.div_euclid(1_000)),
    }
}

/// A moment as days since 1970-01-01 and microseconds of the day; it cannot overflow.
pub(super) fn to_days_and_micros(value: i64, unit: TimeUnit) -> (i64, i64) {
    let (per_day, micros): (i64, fn(i64) -> i64) = match unit {
        TimeUnit::Second => (86_400, |seconds| seconds * MICROS_PER_SECOND),
        TimeUnit::Millisecond => (86_400_000, |millis| millis * 1_000),
        TimeUnit::Microsecond => (MICROS_PER_DAY, |micros| micros),
        TimeUnit::Nanosecond => (MICROS_PER_DAY * 1_000, |nanos| nanos / 1_000),
    };
    (value.div_euclid(per_day), micros(value.rem_euclid(per_day)))
}

/// Writes `1999-01-08`, or `0044-03-15 BC`; the second part goes behind a time if there is one.
fn write_calendar_date(days: i64, out: &mut BytesMut) -> &'static str {
    let (year, month, day) = civil_from_days(days);
    let (year, era) = if year > 0 {
        (year, "")
    } else {
        (1 - year, " BC")
    };
    write_padded(year.unsigned_abs(), 4, out);
    out.put_u8(b'-');
    write_padded(month, 2, out);
    out.put_u8(b'-');
    write_padded(day, 2, out);
    era
}

/// Writes a date.
pub(super) fn write_date(days: i64, out: &mut BytesMut) {
    let era = write_calendar_date(days, out);
    out.put_slice(era.as_bytes());
}

/// Writes `04:05:06.789`, with as many digits behind the point as are not zero.
pub(super) fn write_time(micros: i64, out: &mut BytesMut) {
    let seconds = micros.div_euclid(MICROS_PER_SECOND).unsigned_abs();
    write_padded(seconds / 3_600, 2, out);
    out.put_u8(b':');
    write_padded(seconds / 60 % 60, 2, out);
    out.put_u8(b':');
    write_padded(seconds % 60, 2, out);
    write_fraction(micros.rem_euclid(MICROS_PER_SECOND).unsigned_abs(), out);
}

fn write_fraction(micros: u64, out: &mut BytesMut) {
    if micros == 0 {
        return;
    }
    out.put_u8(b'.');
    let start = out.len();
    write_padded(micros, 6, out);
    let zeros = out[start..]
        .iter()
        .rev()
        .take_while(|digit| **digit == b'0')
        .count();
    out.truncate(out.len() - zeros);
}

/// Writes a timestamp; `separator` is a blank, or `T` in JSON.
pub(super) fn write_timestamp(value: i64, unit: TimeUnit, separator: u8, out: &mut BytesMut) {
    let (days, micros) = to_days_and_micros(value, unit);
    let era = write_calendar_date(days, out);
    out.put_u8(separator);
    write_time(micros, out);
    out.put_slice(era.as_bytes());
}

/// Writes a timestamp as a clock in `zone` shows it, with the zone's offset at that moment.
pub(super) fn write_timestamptz(
    value: i64,
    unit: TimeUnit,
    zone: Tz,
    separator: u8,
    out: &mut BytesMut,
) {
    let (mut days, mut micros) = to_days_and_micros(value, unit);
    let offset = offset_seconds(days, micros, zone);
    micros += i64::from(offset) * MICROS_PER_SECOND;
    days += micros.div_euclid(MICROS_PER_DAY);
    micros = micros.rem_euclid(MICROS_PER_DAY);
    let era = write_calendar_date(days, out);
    out.put_u8(separator);
    write_time(micros, out);
    write_offset(offset, separator == b'T', out);
    out.put_slice(era.as_bytes());
}

/// The zone's distance from UTC; zero for moments so far away that the zone database has no calendar for them.
fn offset_seconds(days: i64, micros: i64, zone: Tz) -> i32 {
    let seconds = days
        .checked_mul(86_400)
        .and_then(|seconds| seconds.checked_add(micros / MICROS_PER_SECOND));
    let moment = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    moment.map_or(0, |moment| {
        zone.offset_from_utc_datetime(&moment.naive_utc())
            .fix()
            .local_minus_utc()
    })
}

/// Writes `+05:30`, and the minutes only when there are some (always in JSON).
fn write_offset(seconds: i32, always_minutes: bool, out: &mut BytesMut) {
    out.put_u8(if seconds < 0 { b'-' } else { b'+' });
    let seconds = u64::from(seconds.unsigned_abs());
    write_padded(seconds / 3_600, 2, out);
    if always_minutes || seconds % 3_600 != 0 {
        out.put_u8(b':');
        write_padded(seconds / 60 % 60, 2, out);
    }
    if seconds % 60 != 0 {
        out.put_u8(b':');
        write_padded(seconds % 60, 2, out);
    }
}

/// Writes `1 year 2 mons -3 days 04:05:06.789`.
pub(super) fn write_interval(months: i32, days: i32, nanos: i64, out: &mut BytesMut) {
    write_interval_parts(months, days, nanos / 1_000, out);
}

/// Writes an interval of microseconds.
pub(super) fn write_micros_interval(micros: i64, out: &mut BytesMut) {
    write_interval_parts(0, 0, micros, out);
}

fn write_interval_parts(months: i32, days: i32, micros: i64, out: &mut BytesMut) {
    let start = out.len();
    let mut before_negative = false;
    let parts = [
        (i64::from(months / 12), "year"),
        (i64::from(months % 12), "mon"),
        (i64::from(days), "day"),
    ];
    for (count, unit) in parts.into_iter().filter(|(count, _)| *count != 0) {
        if out.len() > start {
            out.put_u8(b' ');
        }
        if count > 0 && before_negative {
            out.put_u8(b'+');
        }
        write_signed(count, out);
        out.put_u8(b' ');
        out.put_slice(unit.as_bytes());
        if count != 1 {
            out.put_u8(b's');
        }
        before_negative = count < 0;
    }
    if micros != 0 || out.len() == start {
        if out.len() > start {
            out.put_u8(b' ');
        }
        if micros < 0 {
            out.put_u8(b'-');
        } else if before_negative {
            out.put_u8(b'+');
        }
        let micros = micros.unsigned_abs();
        let seconds = micros / MICROS_PER_SECOND.unsigned_abs();
        write_padded(seconds / 3_600, 2, out);
        out.put_u8(b':');
        write_padded(seconds / 60 % 60, 2, out);
        out.put_u8(b':');
        write_padded(seconds % 60, 2, out);
        write_fraction(micros % MICROS_PER_SECOND.unsigned_abs(), out);
    }
}

/// Days since 2000-01-01 in 32 bits.
pub(super) fn postgres_days(days: i64) -> Result<i32, Unencodable> {
    days.checked_sub(POSTGRES_EPOCH_DAYS)
        .and_then(|days| days.try_into().ok())
        .ok_or(Unencodable::DateTime)
}

/// Microseconds since 2000-01-01. The two largest values mean infinity and are refused with everything beyond them.
pub(super) fn postgres_micros(value: i64, unit: TimeUnit) -> Result<i64, Unencodable> {
    let micros = to_micros(value, unit)
        .and_then(|micros| micros.checked_sub(POSTGRES_EPOCH_DAYS * MICROS_PER_DAY));
    micros
        .filter(|micros| *micros != i64::MAX && *micros != i64::MIN)
        .ok_or(Unencodable::DateTime)
}

/// Writes a number with at least `width` digits.
fn write_padded(value: u64, width: usize, out: &mut BytesMut) {
    let start = out.len();
    write_integer(value, false, out);
    let missing = width.saturating_sub(out.len() - start);
    if missing > 0 {
        out.truncate(start);
        out.put_bytes(b'0', missing);
        write_integer(value, false, out);
    }
}

/// Year (0 is 1 BC), month and day of a day count since 1970-01-01, in the proleptic Gregorian calendar.
///
/// Eras of 400 years repeat exactly; within one, years are counted from 1 March, so that the leap day is a year's last.
fn civil_from_days(days: i64) -> (i64, u64, u64) {
    const DAYS_PER_ERA: i64 = 146_097;
    const DAYS_TO_1970: i64 = 719_468;
    let from_year_zero = i128::from(days) + i128::from(DAYS_TO_1970);
    let era = from_year_zero.div_euclid(i128::from(DAYS_PER_ERA)) as i64;
    let day_of_era = from_year_zero.rem_euclid(i128::from(DAYS_PER_ERA)) as u64;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era as i64 + era * 400 + i64::from(month <= 2);
    (year, month, day)
}
