//! Dates, times and instants as ISO 8601 text.
//!
//! Read: `YYYY-MM-DD`, then optionally `T` or a blank, `hh[:mm[:ss[.fraction]]]`, and a zone `Z`, `±hh`, `±hhmm` or `±hh:mm`; without a zone it is
//! UTC. Fractions are cut to milliseconds. A leap second (`:60`) is refused.

use crate::java_time::civil::{Date, days_in_month, days_of};

/// Milliseconds of a day.
pub(crate) const DAY_MS: i64 = 86_400_000;

/// Days since the epoch, from `YYYY-MM-DD`.
pub(crate) fn parse_date(text: &[u8]) -> Option<i32> {
    let (days, rest) = date(text)?;
    rest.is_empty().then_some(days)
}

/// Milliseconds of the day, from `hh:mm[:ss[.fraction]]`.
pub(crate) fn parse_time(text: &[u8]) -> Option<i32> {
    let (millis, rest) = time(text)?;
    // A bare number is not a time of day.
    (rest.is_empty() && text.contains(&b':'))
        .then(|| i32::try_from(millis).ok())
        .flatten()
}

/// Milliseconds since the epoch, from a date and optionally a time and a zone.
pub(crate) fn parse_instant(text: &[u8]) -> Option<i64> {
    let (days, rest) = date(text)?;
    let midnight = i64::from(days) * DAY_MS;
    match rest {
        [] => Some(midnight),
        [b'T' | b't' | b' ', rest @ ..] => {
            let (millis, rest) = time(rest)?;
            Some(midnight + millis - zone_offset_ms(rest)?)
        }
        _ => None,
    }
}

/// Days since the epoch of a calendar date; the year has four digits.
fn days_from_civil(year: u32, month: u32, day: u32) -> Option<i32> {
    let date = Date {
        year: year.into(),
        month: month.into(),
        day: day.into(),
    };
    let exists = (1..=12).contains(&date.month)
        && (1..=days_in_month(date.year, date.month)).contains(&date.day);
    exists.then(|| i32::try_from(days_of(date)).ok()).flatten()
}

fn date(text: &[u8]) -> Option<(i32, &[u8])> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix(b"-")?, 2)?;
    let (day, rest) = digits(rest.strip_prefix(b"-")?, 2)?;
    let days = days_from_civil(year, month, day)?;
    Some((days, rest))
}

fn time(text: &[u8]) -> Option<(i64, &[u8])> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = match rest {
        [b':', rest @ ..] => digits(rest, 2)?,
        _ => (0, rest),
    };
    let (second, rest) = match rest {
        [b':', rest @ ..] => digits(rest, 2)?,
        _ => (0, rest),
    };
    let (millis, rest) = match rest {
        [b'.' | b',', rest @ ..] => fraction(rest)?,
        _ => (0, rest),
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    Some((seconds * 1000 + millis, rest))
}

/// Digits after the point, as milliseconds.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let len = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    if len == 0 {
        return None;
    }
    let (digits, rest) = text.split_at(len);
    let millis = (0..3).fold(0, |sum, place| {
        sum * 10 + digits.get(place).map_or(0, |byte| i64::from(byte - b'0'))
    });
    Some((millis, rest))
}

/// The offset east of UTC at the end of a text.
fn zone_offset_ms(text: &[u8]) -> Option<i64> {
    let (sign, rest) = match text {
        [] | [b'Z' | b'z'] => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = digits(rest, 2)?;
    let (minutes, rest) = match rest {
        [] => (0, rest),
        [b':', rest @ ..] => digits(rest, 2)?,
        _ => digits(rest, 2)?,
    };
    if !rest.is_empty() || hours > 18 || minutes > 59 {
        return None;
    }
    Some(sign * (i64::from(hours) * 3_600_000 + i64::from(minutes) * 60_000))
}

/// Exactly `count` digits.
fn digits(text: &[u8], count: usize) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(count)?;
    let mut value = 0;
    for byte in digits {
        value = value * 10 + char::from(*byte).to_digit(10)?;
    }
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("1970-01-01T00:00:00.010", Some(10)),
            ("1970-01-02T00:00Z", Some(DAY_MS)),
            ("2020-01-01T10:00:00+02:00", Some(1_577_865_600_000)),
            ("2020-01-01 10:00:00.123456-0030", Some(1_577_874_600_123)),
            ("1969-12-31T23:59:59.999", Some(-1)),
            ("2020-02-30", None),
            ("2020-01-01T24:00", None),
            ("2020-01-01T10:00 Europe", None),
            ("2020-1-1", None),
            ("", None),
        ] {
            assert_eq!(parse_instant(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn dates_and_times() {
        assert_eq!(parse_date(b"1970-01-05"), Some(4));
        assert_eq!(parse_date(b"0001-01-01"), Some(-719_162));
        assert_eq!(parse_date(b"1970-01-05T00:00"), None);
        assert_eq!(parse_time(b"00:00:04"), Some(4000));
        assert_eq!(parse_time(b"23:59:59.9999"), Some(86_399_999));
        assert_eq!(parse_time(b"12"), None);
        assert_eq!(parse_time(b"25:00"), None);
    }
}
