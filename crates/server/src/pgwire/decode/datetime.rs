//! Dates, times and intervals from text, in the ISO forms that clients send.
//!
//! Taken: `1999-01-08`, `19990108`, `1999/01/08`, each with ` BC`; `04:05`, `04:05:06.789`; both with a blank or `T` between them; a zone as
//! `Z`, `+05:30`, `+0530`, `-8` or a name of the zone database. Forms whose order of day and month depends on a setting are refused.

use arrow::{array::timezone::Tz, datatypes::IntervalMonthDayNano};
use chrono::{DateTime, Duration, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeZone};

use super::shown;
use crate::sqlstate::{SqlError, code};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Why a text is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Syntax,
    Range,
    Zone,
}

type Parsed<T> = Result<T, Fault>;

fn named<T>(parsed: Parsed<T>, text: &str, type_name: &str) -> Result<T, SqlError> {
    parsed.map_err(|fault| match fault {
        Fault::Syntax => SqlError::new(
            code::INVALID_DATETIME_FORMAT,
            format!(
                "invalid input syntax for type {type_name}: \"{}\"",
                shown(text)
            ),
        ),
        Fault::Range => SqlError::new(
            code::DATETIME_FIELD_OVERFLOW,
            format!("date/time field value out of range: \"{}\"", shown(text)),
        ),
        Fault::Zone => SqlError::new(
            code::INVALID_PARAMETER_VALUE,
            format!("time zone not recognized in \"{}\"", shown(text)),
        ),
    })
}

/// Days since 1970-01-01.
pub(super) fn date(text: &str) -> Result<i32, SqlError> {
    let days = moment(text).and_then(|moment| i32::try_from(moment.days).map_err(|_| Fault::Range));
    named(days, text, "date")
}

/// Microseconds of the day.
pub(super) fn time(text: &str) -> Result<i64, SqlError> {
    named(clock(text).map(|(micros, _)| micros), text, "time")
}

/// Microseconds since 1970-01-01; a zone in the text is ignored, as PostgreSQL does.
pub(super) fn timestamp(text: &str) -> Result<i64, SqlError> {
    named(
        moment(text).and_then(|moment| moment.micros()),
        text,
        "timestamp",
    )
}

/// Microseconds since the epoch; a text without a zone is a clock of `zone`.
pub(super) fn timestamptz(text: &str, zone: Tz) -> Result<i64, SqlError> {
    let micros = moment(text).and_then(|moment| {
        let local = moment.micros()?;
        let zone = match moment.zone {
            "" => zone,
            zone => parse_zone(zone)?,
        };
        local_to_utc(local, zone)
    });
    named(micros, text, "timestamp with time zone")
}

/// A date and a time of day, and the text of a zone.
#[derive(Debug, PartialEq, Eq)]
struct Moment<'a> {
    days: i64,
    micros_of_day: i64,
    zone: &'a str,
}

impl Moment<'_> {
    fn micros(&self) -> Parsed<i64> {
        let micros = self
            .days
            .checked_mul(MICROS_PER_DAY)
            .and_then(|micros| micros.checked_add(self.micros_of_day));
        micros.ok_or(Fault::Range)
    }
}

fn moment(text: &str) -> Parsed<Moment<'_>> {
    if text.eq_ignore_ascii_case("epoch") {
        return Ok(Moment {
            days: 0,
            micros_of_day: 0,
            zone: "Z",
        });
    }
    if matches!(
        text.trim_start_matches('-').to_ascii_lowercase().as_str(),
        "infinity" | "inf"
    ) {
        return Err(Fault::Range);
    }
    let (text, before_christ) = match text.get(text.len().saturating_sub(3)..) {
        Some(era) if era.eq_ignore_ascii_case(" bc") => (text[..text.len() - 3].trim_end(), true),
        Some(era) if era.eq_ignore_ascii_case(" ad") => (text[..text.len() - 3].trim_end(), false),
        _ => (text, false),
    };
    let date_end = text
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '-' | '/'))
        .unwrap_or(text.len());
    let days = calendar_date(&text[..date_end], before_christ)?;
    let rest = &text[date_end..];
    let clock_text = rest
        .strip_prefix(['T', 't', ' '])
        .unwrap_or(rest)
        .trim_start();
    if clock_text.is_empty() {
        return Ok(Moment {
            days,
            micros_of_day: 0,
            zone: "",
        });
    }
    if !clock_text.starts_with(|c: char| c.is_ascii_digit()) {
        // A date with a zone only.
        return Ok(Moment {
            days,
            micros_of_day: 0,
            zone: clock_text,
        });
    }
    let (micros_of_day, zone) = clock(clock_text)?;
    Ok(Moment {
        days,
        micros_of_day,
        zone,
    })
}

fn calendar_date(text: &str, before_christ: bool) -> Parsed<i64> {
    let parts: Vec<&str> = text.split(['-', '/']).collect();
    let (year, month, day) = match parts[..] {
        [year, month, day] if year.len() >= 4 => (year, month, day),
        [compact] if compact.len() == 8 && compact.is_ascii() => {
            (&compact[..4], &compact[4..6], &compact[6..])
        }
        _ => return Err(Fault::Syntax),
    };
    let number = |digits: &str| digits.parse::<u32>().map_err(|_| Fault::Syntax);
    let year = i32::try_from(number(year)?).map_err(|_| Fault::Range)?;
    let year = match (before_christ, year) {
        (_, 0) => return Err(Fault::Range),
        (true, year) => 1 - year,
        (false, year) => year,
    };
    let date = NaiveDate::from_ymd_opt(year, number(month)?, number(day)?).ok_or(Fault::Range)?;
    Ok(date.signed_duration_since(NaiveDate::default()).num_days())
}

/// A time of day, and what stands behind it.
fn clock(text: &str) -> Parsed<(i64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.'))
        .unwrap_or(text.len());
    let (clock, zone) = (&text[..end], text[end..].trim());
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let parts: Vec<&str> = clock.split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes] if fraction.is_empty() => (hours, minutes, "0"),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Err(Fault::Syntax),
    };
    let number = |digits: &str| {
        if digits.len() > 2 {
            Err(Fault::Syntax)
        } else {
            digits.parse::<i64>().map_err(|_| Fault::Syntax)
        }
    };
    let (hours, minutes, seconds) = (number(hours)?, number(minutes)?, number(seconds)?);
    let micros =
        ((hours * 60 + minutes) * 60 + seconds) * MICROS_PER_SECOND + fraction_micros(fraction)?;
    // A leap second and 24:00:00 are the next minute's or day's first instant.
    if minutes > 59 || seconds > 60 || micros > MICROS_PER_DAY {
        return Err(Fault::Range);
    }
    Ok((micros, zone))
}

/// Digits behind a point as microseconds, rounded.
fn fraction_micros(digits: &str) -> Parsed<i64> {
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(Fault::Syntax);
    }
    let micros = digits
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(6)
        .fold(0, |micros, digit| micros * 10 + i64::from(digit - b'0'));
    let round_up = digits.as_bytes().get(6).is_some_and(|digit| *digit >= b'5');
    Ok(micros + i64::from(round_up))
}

/// `Z`, `+05:30`, `+0530`, `-8`, `UTC`, `Europe/Paris`.
fn parse_zone(text: &str) -> Parsed<Tz> {
    if matches!(
        text.to_ascii_lowercase().as_str(),
        "z" | "zulu" | "utc" | "gmt"
    ) {
        return "+00:00".parse().map_err(|_| Fault::Zone);
    }
    let Some(digits) = text.strip_prefix(['+', '-']) else {
        return text.parse().map_err(|_| Fault::Zone);
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let number = |digits: &str| digits.parse::<u8>().map_err(|_| Fault::Zone);
    format!(
        "{}{:02}:{:02}",
        &text[..1],
        number(hours)?,
        number(minutes)?
    )
    .parse()
    .map_err(|_| Fault::Zone)
}

/// The moment when a clock of `zone` shows these microseconds. Of two such moments the second (standard time); of none (the hour that a change to summer
/// time skips), the one that a clock which was not changed would show.
fn local_to_utc(local_micros: i64, zone: Tz) -> Parsed<i64> {
    let local: NaiveDateTime = DateTime::from_timestamp_micros(local_micros)
        .ok_or(Fault::Range)?
        .naive_utc();
    let offset = match zone.offset_from_local_datetime(&local) {
        MappedLocalTime::Single(offset) | MappedLocalTime::Ambiguous(_, offset) => offset,
        MappedLocalTime::None => {
            let before = local
                .checked_sub_signed(Duration::hours(3))
                .ok_or(Fault::Range)?;
            zone.offset_from_utc_datetime(&before)
        }
    };
    local_micros
        .checked_sub(i64::from(offset.fix().local_minus_utc()) * MICROS_PER_SECOND)
        .ok_or(Fault::Range)
}

/// Reads `1 year 2 mons -3 days 04:05:06.789`, `1.5 hours ago` and `P1Y2M3DT4H5M6S`.
pub(super) fn interval(text: &str) -> Result<IntervalMonthDayNano, SqlError> {
    let parsed = match text.strip_prefix('P') {
        Some(designators) => iso_interval(designators),
        None => word_interval(text),
    };
    let value = parsed.and_then(|parts| {
        let months = i32::try_from(parts.months).map_err(|_| Fault::Range)?;
        let days = i32::try_from(parts.days).map_err(|_| Fault::Range)?;
        let nanos = parts.micros.checked_mul(1_000).ok_or(Fault::Range)?;
        Ok(IntervalMonthDayNano::new(months, days, nanos))
    });
    named(value, text, "interval")
}

#[derive(Debug, Default)]
struct IntervalParts {
    months: i64,
    days: i64,
    micros: i64,
}

/// What one of a unit is.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Months(i64),
    Days(i64),
    Micros(i64),
}

impl IntervalParts {
    /// Adds a signed decimal count of a unit; a fraction goes to the next smaller one.
    fn add(&mut self, count: &str, unit: Unit) -> Parsed<()> {
        let (negative, digits) = match count.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, count.strip_prefix('+').unwrap_or(count)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let whole: i64 = if whole.is_empty() && !fraction.is_empty() {
            0
        } else {
            whole.parse().map_err(|_| Fault::Syntax)?
        };
        let millionths = fraction_micros(fraction)?;
        let sign = if negative { -1 } else { 1 };
        let add = |total: &mut i64, size: i64, count: i64| {
            let added = size
                .checked_mul(count * sign)
                .and_then(|amount| total.checked_add(amount));
            added.map(|sum| *total = sum).ok_or(Fault::Range)
        };
        match unit {
            Unit::Months(size) => {
                let (months, rest) = (size * millionths / 1_000_000, size * millionths % 1_000_000);
                add(&mut self.months, size, whole)?;
                add(&mut self.months, 1, months)?;
                add(&mut self.days, 1, rest * DAYS_PER_MONTH / 1_000_000)
            }
            Unit::Days(size) => {
                add(&mut self.days, size, whole)?;
                add(&mut self.micros, size * 86_400, millionths)
            }
            Unit::Micros(size) => {
                add(&mut self.micros, size, whole)?;
                self.micros = self
                    .micros
                    .checked_add(sign * (size / 1_000 * millionths / 1_000))
                    .ok_or(Fault::Range)?;
                Ok(())
            }
        }
    }
}

/// What PostgreSQL takes for the fraction of a month.
const DAYS_PER_MONTH: i64 = 30;
const HOUR: i64 = 3_600 * MICROS_PER_SECOND;
const MINUTE: i64 = 60 * MICROS_PER_SECOND;

fn unit(word: &str) -> Option<Unit> {
    let lower = word.to_ascii_lowercase();
    Some(match lower.as_str() {
        "millennium" | "millennia" => Unit::Months(12_000),
        "century" | "centuries" => Unit::Months(1_200),
        "decade" | "decades" => Unit::Months(120),
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Months(12),
        "mon" | "mons" | "month" | "months" => Unit::Months(1),
        "w" | "week" | "weeks" => Unit::Days(7),
        "d" | "day" | "days" => Unit::Days(1),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Micros(HOUR),
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Micros(MINUTE),
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Micros(MICROS_PER_SECOND),
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Unit::Micros(1_000),
        "us" | "usec" | "usecs" | "microsecond" | "microseconds" => Unit::Micros(1),
        _ => return None,
    })
}

fn word_interval(text: &str) -> Parsed<IntervalParts> {
    let mut parts = IntervalParts::default();
    let mut words = text
        .trim_start_matches('@')
        .split_ascii_whitespace()
        .peekable();
    if words.peek().is_none() {
        return Err(Fault::Syntax);
    }
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("ago") && words.peek().is_none() {
            return Ok(IntervalParts {
                months: -parts.months,
                days: -parts.days,
                micros: -parts.micros,
            });
        }
        if word.contains(':') {
            let (sign, digits) = match word.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, word.strip_prefix('+').unwrap_or(word)),
            };
            parts.micros = parts
                .micros
                .checked_add(sign * interval_clock(digits)?)
                .ok_or(Fault::Range)?;
            continue;
        }
        let digits_end = word
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(word.len());
        let (count, attached) = word.split_at(digits_end);
        let unit_word = match attached {
            "" => words
                .next_if(|next| unit(next).is_some())
                .unwrap_or("seconds"),
            attached => attached,
        };
        parts.add(count, unit(unit_word).ok_or(Fault::Syntax)?)?;
    }
    Ok(parts)
}

/// `04:05` or `123:05:06.789`.
fn interval_clock(text: &str) -> Parsed<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut micros = 0_i64;
    let mut sizes = [HOUR, MINUTE, MICROS_PER_SECOND].into_iter();
    for digits in clock.split(':') {
        let size = sizes.next().ok_or(Fault::Syntax)?;
        let count: u32 = digits.parse().map_err(|_| Fault::Syntax)?;
        let added = size
            .checked_mul(i64::from(count))
            .and_then(|amount| micros.checked_add(amount));
        micros = added.ok_or(Fault::Range)?;
    }
    Ok(micros + fraction_micros(fraction)?)
}

fn iso_interval(designators: &str) -> Parsed<IntervalParts> {
    let mut parts = IntervalParts::default();
    let (date, time) = designators.split_once('T').unwrap_or((designators, ""));
    if designators.is_empty() || designators.ends_with('T') {
        return Err(Fault::Syntax);
    }
    for (text, in_time) in [(date, false), (time, true)] {
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest
                .find(|c: char| c.is_ascii_alphabetic())
                .ok_or(Fault::Syntax)?;
            let unit = match (&rest[end..=end], in_time) {
                ("Y", false) => Unit::Months(12),
                ("M", false) => Unit::Months(1),
                ("W", false) => Unit::Days(7),
                ("D", false) => Unit::Days(1),
                ("H", true) => Unit::Micros(HOUR),
                ("M", true) => Unit::Micros(MINUTE),
                ("S", true) => Unit::Micros(MICROS_PER_SECOND),
                _ => return Err(Fault::Syntax),
            };
            parts.add(&rest[..end], unit)?;
            rest = &rest[end + 1..];
        }
    }
    Ok(parts)
}
