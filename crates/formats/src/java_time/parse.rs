//! Text to fields, fields to an instant.

use super::{
    civil::{self, DAY_MS, Date},
    field::{Field, Item, Number, Sign},
    names, offset,
    zone::Zone,
};

/// A text that does not follow its pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at position {at} of \"{text}\"")]
pub struct TextMismatch {
    /// Byte in the text.
    pub at: usize,
    /// What is wrong there.
    pub reason: &'static str,
    /// The text, cut to a length that fits a message.
    pub text: String,
}

/// Bytes of a text that an error message repeats.
const SHOWN_TEXT: usize = 64;

/// Years that can be turned into milliseconds at all.
const MAX_YEAR: i64 = 292_278_994;

const NANOS_PER_MILLI: i64 = 1_000_000;
const DEFAULT_YEAR: i64 = 1970;
/// The year that a 29th of February without a year falls in.
const DEFAULT_LEAP_YEAR: i64 = 1972;

/// What was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    text: String,
    values: [Option<i64>; FIELD_COUNT],
    offset: Option<i64>,
    zone: Option<Zone>,
}

const FIELD_COUNT: usize = 17;

/// Reads a whole text.
pub(super) fn parse(items: &[Item], text: &str) -> Result<Fields, TextMismatch> {
    let (fields, end) = read(items, text)?;
    if end < text.len() {
        return Err(fields.mismatch(end, "text after the end of the pattern"));
    }
    Ok(fields)
}

/// Reads the start of a text.
pub(super) fn parse_start(items: &[Item], text: &str) -> Result<Fields, TextMismatch> {
    Ok(read(items, text)?.0)
}

/// Reads what the pattern describes, and tells where it ends.
fn read(items: &[Item], text: &str) -> Result<(Fields, usize), TextMismatch> {
    let mut fields = Fields {
        text: shown(text),
        ..Fields::default()
    };
    let end = read_items(items, text, 0, &mut fields)?;
    Ok((fields, end))
}

fn shown(text: &str) -> String {
    let end = (0..=SHOWN_TEXT.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    text[..end].to_owned()
}

/// Reads items from `at` on and gives where they end.
fn read_items(
    items: &[Item],
    text: &str,
    mut at: usize,
    fields: &mut Fields,
) -> Result<usize, TextMismatch> {
    for item in items {
        at = read_item(item, text, at, fields)?;
    }
    Ok(at)
}

fn read_item(
    item: &Item,
    text: &str,
    at: usize,
    fields: &mut Fields,
) -> Result<usize, TextMismatch> {
    let rest = &text[at..];
    match item {
        Item::Literal(literal) => match rest.get(..literal.len()) {
            Some(head) if head.eq_ignore_ascii_case(literal) => Ok(at + literal.len()),
            _ => Err(fields.mismatch(at, "not the text of the pattern")),
        },
        Item::Number(number) => {
            let (value, len) = read_number(rest, number)
                .ok_or_else(|| fields.mismatch(at, "not a number of the pattern's width"))?;
            fields.set(number.field, value, at)?;
            Ok(at + len)
        }
        Item::ShortYear { .. } => {
            let value =
                digits(rest, 2).ok_or_else(|| fields.mismatch(at, "not a year of two digits"))?;
            fields.set(Field::Year, 2000 + value, at)?;
            Ok(at + 2)
        }
        Item::Fraction { digits: count } => {
            let value = digits(rest, *count)
                .ok_or_else(|| fields.mismatch(at, "not a fraction of the pattern's width"))?;
            let missing = u32::try_from(9 - *count).unwrap_or(0);
            fields.set(Field::Nano, value * 10i64.pow(missing), at)?;
            Ok(at + count)
        }
        Item::Text { field, style } => {
            let (value, len) = names::value_of(*field, *style, rest)
                .ok_or_else(|| fields.mismatch(at, "not a name of the pattern"))?;
            fields.set(*field, value, at)?;
            Ok(at + len)
        }
        Item::Offset(style) => {
            let (seconds, len) = offset::parse(rest, style)
                .ok_or_else(|| fields.mismatch(at, "not an offset of the pattern's form"))?;
            fields.offset = Some(seconds);
            Ok(at + len)
        }
        Item::LocalizedOffset { full } => {
            let (seconds, len) = offset::parse_localized(rest, *full)
                .ok_or_else(|| fields.mismatch(at, "not an offset from GMT"))?;
            fields.offset = Some(seconds);
            Ok(at + len)
        }
        Item::ZoneName | Item::ZoneId => {
            let (zone, len) =
                Zone::prefix_of(rest).ok_or_else(|| fields.mismatch(at, "not a time zone"))?;
            fields.zone = Some(zone);
            Ok(at + len)
        }
        Item::Optional(items) => {
            let mut inside = fields.clone();
            match read_items(items, text, at, &mut inside) {
                Ok(end) => {
                    *fields = inside;
                    Ok(end)
                }
                Err(_) => Ok(at),
            }
        }
    }
}

/// Reads a number with its sign: value and length.
fn read_number(text: &str, number: &Number) -> Option<(i64, usize)> {
    let sign = text
        .bytes()
        .next()
        .filter(|byte| matches!(byte, b'+' | b'-'));
    let sign_len = usize::from(sign.is_some());
    match (number.sign, sign) {
        (Sign::Never, Some(_)) | (Sign::Normal, Some(b'+')) => return None,
        _ => {}
    }
    let available = text[sign_len..]
        .bytes()
        .take(number.max + number.reserved)
        .take_while(u8::is_ascii_digit)
        .count();
    let len = if number.reserved > 0 {
        available.saturating_sub(number.reserved).max(number.min)
    } else {
        available
    };
    if len < number.min || len > available || len > number.max {
        return None;
    }
    if number.sign == Sign::ExceedsPad {
        match sign {
            Some(b'+') if len <= number.min => return None,
            None if len > number.min => return None,
            _ => {}
        }
    }
    let value: i64 = text[sign_len..sign_len + len].parse().ok()?;
    Some((
        if sign == Some(b'-') { -value } else { value },
        sign_len + len,
    ))
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let digits = text.get(..count)?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())
        .flatten()
}

impl Fields {
    fn mismatch(&self, at: usize, reason: &'static str) -> TextMismatch {
        TextMismatch {
            at,
            reason,
            text: self.text.clone(),
        }
    }

    fn get(&self, field: Field) -> Option<i64> {
        self.values[field as usize]
    }

    /// Takes a value that is within the field's range and does not contradict an earlier one.
    fn set(&mut self, field: Field, value: i64, at: usize) -> Result<(), TextMismatch> {
        let range = match field {
            Field::Era | Field::AmPm => 0..=1,
            Field::Year => -MAX_YEAR..=MAX_YEAR,
            Field::YearOfEra => 1..=MAX_YEAR,
            Field::Month => 1..=12,
            Field::Day => 1..=31,
            Field::DayOfYear => 1..=366,
            Field::DayOfWeek => 1..=7,
            Field::Hour => 0..=23,
            Field::ClockHour => 1..=24,
            Field::HourOfAmPm => 0..=11,
            Field::ClockHourOfAmPm => 1..=12,
            Field::Minute | Field::Second => 0..=59,
            Field::Nano => 0..=999_999_999,
            Field::MilliOfDay => 0..=DAY_MS - 1,
            Field::NanoOfDay => 0..=DAY_MS * NANOS_PER_MILLI - 1,
        };
        if !range.contains(&value) {
            return Err(self.mismatch(at, "a value out of range"));
        }
        let slot = &mut self.values[field as usize];
        if slot.is_some_and(|earlier| earlier != value) {
            return Err(self.mismatch(at, "a value that contradicts an earlier one"));
        }
        *slot = Some(value);
        Ok(())
    }

    /// Days since the epoch; what is missing comes from 1970-01-01.
    pub(super) fn days(&self) -> Result<i32, TextMismatch> {
        i32::try_from(self.local_days()?).map_err(|_| self.mismatch(0, "a date out of range"))
    }

    /// Milliseconds of the day; what is missing is zero.
    pub(super) fn time_of_day(&self) -> Result<i32, TextMismatch> {
        i32::try_from(self.local_time()).map_err(|_| self.mismatch(0, "a time out of range"))
    }

    /// Milliseconds since the epoch; in `zone` unless an offset or a zone was read.
    pub(super) fn instant(&self, zone: &Zone) -> Result<i64, TextMismatch> {
        let local = self
            .local_days()?
            .checked_mul(DAY_MS)
            .and_then(|midnight| midnight.checked_add(self.local_time()));
        let instant = local.and_then(|local| match (self.offset, &self.zone) {
            (Some(seconds), _) => local.checked_sub(seconds * 1000),
            (None, read) => read.as_ref().unwrap_or(zone).instant_of(local),
        });
        instant.ok_or_else(|| self.mismatch(0, "a time out of range"))
    }

    fn local_days(&self) -> Result<i64, TextMismatch> {
        let year = self.year();
        let days = if let (Some(day_of_year), None, None) = (
            self.get(Field::DayOfYear),
            self.get(Field::Month),
            self.get(Field::Day),
        ) {
            let year = year.unwrap_or(DEFAULT_YEAR);
            if day_of_year == 366 && !civil::is_leap(year) {
                return Err(self.mismatch(0, "day 366 of a year that has 365"));
            }
            civil::days_of(Date {
                year,
                month: 1,
                day: 1,
            }) + day_of_year
                - 1
        } else {
            let month = self.get(Field::Month).unwrap_or(1);
            let day = self.get(Field::Day).unwrap_or(1);
            let default_year = if (month, day) == (2, 29) {
                DEFAULT_LEAP_YEAR
            } else {
                DEFAULT_YEAR
            };
            let year = year.unwrap_or(default_year);
            // A day that the month does not have becomes its last one, as Java's smart resolver does.
            civil::days_of(Date {
                year,
                month,
                day: day.min(civil::days_in_month(year, month)),
            })
        };
        match self.get(Field::DayOfWeek) {
            Some(day) if day != civil::day_of_week(days) => {
                Err(self.mismatch(0, "a day of the week that is not the date's"))
            }
            _ => Ok(days),
        }
    }

    fn year(&self) -> Option<i64> {
        let of_era = self.get(Field::YearOfEra);
        self.get(Field::Year)
            .or(if self.get(Field::Era) == Some(0) {
                of_era.map(|year| 1 - year)
            } else {
                of_era
            })
    }

    fn local_time(&self) -> i64 {
        if let Some(millis) = self.get(Field::MilliOfDay) {
            return millis;
        }
        if let Some(nanos) = self.get(Field::NanoOfDay) {
            return nanos / NANOS_PER_MILLI;
        }
        let minute = self.get(Field::Minute).unwrap_or(0);
        let second = self.get(Field::Second).unwrap_or(0);
        let nano = self.get(Field::Nano).unwrap_or(0);
        ((self.hour() * 60 + minute) * 60 + second) * 1000 + nano / NANOS_PER_MILLI
    }

    fn hour(&self) -> i64 {
        if let Some(hour) = self.get(Field::Hour) {
            return hour;
        }
        if let Some(hour) = self.get(Field::ClockHour) {
            return hour % 24;
        }
        let hour = self
            .get(Field::HourOfAmPm)
            .or(self.get(Field::ClockHourOfAmPm).map(|hour| hour % 12));
        hour.unwrap_or(0) + 12 * self.get(Field::AmPm).unwrap_or(0)
    }
}
