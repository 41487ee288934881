//! Offsets from UTC as text.

use super::field::{OffsetStyle, Part};

/// The largest offset that Java knows, in hours.
const MAX_HOURS: i64 = 18;

/// Appends an offset in seconds.
pub(super) fn write(out: &mut String, seconds: i64, style: &OffsetStyle) {
    let size = seconds.abs();
    let (hours, minutes, rest) = (size / 3600, size / 60 % 60, size % 60);
    let visible = hours != 0
        || minutes != 0 && style.minutes != Part::Never
        || rest != 0 && style.seconds != Part::Never;
    if !visible {
        out.push_str(style.zero);
        return;
    }
    out.push(if seconds < 0 { '-' } else { '+' });
    out.push_str(&format!("{hours:02}"));
    let colon = if style.colon { ":" } else { "" };
    let with_seconds = style.seconds == Part::IfNotZero && rest != 0;
    if style.minutes == Part::Always || minutes != 0 || with_seconds {
        out.push_str(&format!("{colon}{minutes:02}"));
    }
    if with_seconds {
        out.push_str(&format!("{colon}{rest:02}"));
    }
}

/// Appends `GMT` with the offset, if any.
pub(super) fn write_localized(out: &mut String, seconds: i64, full: bool) {
    out.push_str("GMT");
    if seconds == 0 {
        return;
    }
    let size = seconds.abs();
    let (hours, minutes, rest) = (size / 3600, size / 60 % 60, size % 60);
    out.push(if seconds < 0 { '-' } else { '+' });
    out.push_str(&if full {
        format!("{hours:02}:{minutes:02}")
    } else {
        hours.to_string()
    });
    if !full && (minutes != 0 || rest != 0) {
        out.push_str(&format!(":{minutes:02}"));
    }
    if rest != 0 {
        out.push_str(&format!(":{rest:02}"));
    }
}

/// Reads an offset at the start of `text`: seconds and length.
pub(super) fn parse(text: &str, style: &OffsetStyle) -> Option<(i64, usize)> {
    if let Some(parsed) = parse_signed(text, style) {
        return Some(parsed);
    }
    let zero = text.get(..style.zero.len())?;
    zero.eq_ignore_ascii_case(style.zero)
        .then_some((0, style.zero.len()))
}

fn parse_signed(text: &str, style: &OffsetStyle) -> Option<(i64, usize)> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = two_digits(text, 1)?;
    let mut end = 3;
    let mut part = |wanted: Part| -> Option<i64> {
        if wanted == Part::Never {
            return Some(0);
        }
        let colon = usize::from(style.colon);
        let found = (colon == 0 || text.as_bytes().get(end) == Some(&b':'))
            .then(|| two_digits(text, end + colon))
            .flatten();
        match found {
            Some(value) => {
                end += colon + 2;
                Some(value)
            }
            None if wanted == Part::IfNotZero => Some(0),
            None => None,
        }
    };
    let minutes = part(style.minutes)?;
    let seconds = part(style.seconds)?;
    if hours > MAX_HOURS || minutes > 59 || seconds > 59 {
        return None;
    }
    Some((sign * (hours * 3600 + minutes * 60 + seconds), end))
}

/// Reads `GMT`, then an offset if there is one.
pub(super) fn parse_localized(text: &str, full: bool) -> Option<(i64, usize)> {
    let head = text.get(..3)?;
    if !head.eq_ignore_ascii_case("GMT") {
        return None;
    }
    let rest = &text[3..];
    let sign = match rest.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Some((0, 3)),
    };
    let hour_digits = if full || two_digits(rest, 1).is_some() {
        2
    } else {
        1
    };
    let hours: i64 = rest.get(1..1 + hour_digits)?.parse().ok()?;
    let mut end = 1 + hour_digits;
    let mut minutes = 0;
    if rest.as_bytes().get(end) == Some(&b':') {
        minutes = two_digits(rest, end + 1)?;
        end += 3;
    } else if full {
        return None;
    }
    (hours <= MAX_HOURS && minutes <= 59).then_some((sign * (hours * 3600 + minutes * 60), 3 + end))
}

fn two_digits(text: &str, at: usize) -> Option<i64> {
    let digits = text.as_bytes().get(at..at + 2)?;
    digits.iter().try_fold(0, |value, digit| {
        digit
            .is_ascii_digit()
            .then(|| value * 10 + i64::from(digit - b'0'))
    })
}
