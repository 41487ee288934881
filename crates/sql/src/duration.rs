//! Lengths of time: `10 SECONDS` in a window, `'1s'` in an option. The unit of everything is the millisecond.

use std::time::Duration;

use sqlparser::tokenizer::Token;

use crate::cursor::Cursor;
use crate::error::SqlError;

/// Units from the longest to the shortest: the name, other spellings, milliseconds.
const UNITS: &[(&str, &[&str], u64)] = &[
    ("DAYS", &["day", "days", "d"], 24 * 60 * 60 * 1000),
    ("HOURS", &["hour", "hours", "h"], 60 * 60 * 1000),
    ("MINUTES", &["minute", "minutes", "min", "m"], 60 * 1000),
    ("SECONDS", &["second", "seconds", "sec", "s"], 1000),
    ("MILLISECONDS", &["millisecond", "milliseconds", "ms"], 1),
];

/// What a wrong unit is answered with.
const UNIT_NAMES: &str = "a unit of time: DAYS, HOURS, MINUTES, SECONDS or MILLISECONDS";

/// The longest length, in milliseconds: timestamps are signed 64-bit milliseconds, so nothing longer can be added to one.
const MAX_MILLIS: u64 = i64::MAX as u64;

/// Milliseconds in `unit`.
fn unit_millis(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    UNITS
        .iter()
        .find(|(_, names, _)| names.contains(&unit.as_str()))
        .map(|(_, _, millis)| *millis)
}

/// `count` units, unless that is too long.
fn checked(count: u64, unit: u64) -> Option<Duration> {
    count
        .checked_mul(unit)
        .filter(|millis| *millis <= MAX_MILLIS)
        .map(Duration::from_millis)
}

/// Takes `n unit`, as in a window clause.
pub(crate) fn expect_duration(cursor: &mut Cursor) -> Result<Duration, SqlError> {
    let start = cursor.index();
    let count = cursor.expect_count("a whole number of units of time")?;
    let unit = cursor
        .word()
        .and_then(unit_millis)
        .ok_or_else(|| cursor.expected(UNIT_NAMES))?;
    cursor.next();
    checked(count, unit).ok_or_else(|| {
        cursor.rewind(start);
        cursor.error("this length of time is out of range")
    })
}

/// Takes `n unit` with n above zero.
pub(crate) fn expect_positive_duration(cursor: &mut Cursor) -> Result<Duration, SqlError> {
    let start = cursor.index();
    let duration = expect_duration(cursor)?;
    if duration.is_zero() {
        cursor.rewind(start);
        return Err(cursor.error("this length of time must be positive"));
    }
    Ok(duration)
}

/// Takes an option's value: `'1s'`, `'500 ms'`, `'1 hour 30 minutes'`, or milliseconds as a number.
pub(crate) fn expect_duration_literal(cursor: &mut Cursor) -> Result<Duration, SqlError> {
    if let Some(Token::Number(..)) = cursor.peek() {
        let millis = cursor.expect_count("a whole number of milliseconds")?;
        return Ok(Duration::from_millis(millis.min(MAX_MILLIS)));
    }
    let start = cursor.index();
    let text = cursor.expect_string("a length of time such as '1s' or '500 ms'")?;
    parse_duration(&text).ok_or_else(|| {
        cursor.rewind(start);
        cursor.expected("a length of time such as '1s' or '500 ms'")
    })
}

/// A length of time in words: one or more of `number unit`, where the number may have a fraction down to the millisecond.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (count, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let behind = behind.trim_start();
        let (unit, behind) = behind.split_at(
            behind
                .find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(behind.len()),
        );
        total = total.checked_add(scaled(count, unit_millis(unit)?)?)?;
        rest = behind.trim_start();
    }
    (total.as_millis() <= u128::from(MAX_MILLIS)).then_some(total)
}

/// `count` (digits, perhaps with a fraction) units, if that is whole milliseconds.
fn scaled(count: &str, unit: u64) -> Option<Duration> {
    let (whole, fraction) = count.split_once('.').unwrap_or((count, ""));
    let whole = checked(whole.parse().ok()?, unit)?;
    if fraction.is_empty() {
        return (!count.ends_with('.')).then_some(whole);
    }
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = fraction.parse::<u64>().ok()?.checked_mul(unit)?;
    part.is_multiple_of(scale)
        .then(|| whole + Duration::from_millis(part / scale))
}

/// The shortest `n UNITS` that is exactly `duration`, down to the millisecond.
pub(crate) fn format_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    for (name, _, unit) in UNITS {
        let unit = u128::from(*unit);
        if millis > 0 && millis.is_multiple_of(unit) {
            return format!("{} {name}", millis / unit);
        }
    }
    "0 MILLISECONDS".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_to_durations() {
        for (text, millis) in [
            ("1s", 1000),
            ("500ms", 500),
            (" 2 minutes ", 120_000),
            ("1 hour 30 min", 5_400_000),
            ("1.5s", 1500),
            ("0.001 seconds", 1),
            ("1 DAY", 86_400_000),
            ("0s", 0),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in [
            "",
            "1",
            "s",
            "1x",
            "-1s",
            "1.s",
            "1..5s",
            "0.0001s",
            "99999999999999999999 days",
            "9223372036854775808ms",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn durations_to_words() {
        for (millis, text) in [
            (0, "0 MILLISECONDS"),
            (1500, "1500 MILLISECONDS"),
            (60_000, "1 MINUTES"),
            (7_200_000, "2 HOURS"),
            (86_400_000, "1 DAYS"),
        ] {
            assert_eq!(format_duration(Duration::from_millis(millis)), text);
        }
    }
}
