//! Java's `DateTimeFormatter` patterns: the language in which statements describe time as text.
//!
//! A [`TimePattern`] is compiled once and then reads text to an instant or writes an instant as text, with the widths, signs and defaults that Java
//! has. What a text leaves out is taken from 1970-01-01T00:00 in the zone that the caller gives; a zone or offset in the text wins over it.
//!
//! | letters | meaning |
//! |---|---|
//! | `G` | era: AD, BC |
//! | `u` `y` | year, year of the era; `yy` is 2000 to 2099 |
//! | `M` `L` | month: `M` 1, `MM` 01, `MMM` Jan, `MMMM` January, `MMMMM` J (written only) |
//! | `d` `D` | day of the month, day of the year |
//! | `E` | day of the week: `E` to `EEE` Mon, `EEEE` Monday |
//! | `a` | AM, PM |
//! | `H` `k` `h` `K` | hour: 0-23, 1-24, 1-12, 0-11 |
//! | `m` `s` `S` `n` | minute, second, fraction of a second (one digit a letter), nanosecond |
//! | `A` `N` | milliseconds, nanoseconds of the day |
//! | `X` `x` `Z` `O` | offset from UTC in its many spellings; `X` writes UTC as `Z` |
//! | `z` `VV` | zone: short name, id |
//! | `'text'` `''` | text as it is, one quote |
//! | `[ ]` | a part that a text may leave out |
//!
//! Not there: week-based years and weeks (`Y w W e c F`), quarters (`Q q`), day periods (`B`), full zone names (`zzzz v`), padding (`p`). They are
//! refused with their position. Text is read without regard to case; names are English.

pub(crate) mod civil;
mod compile;
mod field;
mod format;
mod names;
mod offset;
mod parse;
mod zone;

#[cfg(test)]
mod tests;

pub use parse::TextMismatch;
pub use zone::Zone;

use crate::error::FormatResult;
use field::Item;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct TimePattern {
    source: String,
    items: Vec<Item>,
}

impl TimePattern {
    /// Compiles a pattern; the error says where it cannot be understood.
    pub fn compile(pattern: &str) -> FormatResult<Self> {
        Ok(Self {
            source: pattern.to_owned(),
            items: compile::compile(pattern)?,
        })
    }

    /// The pattern as it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Reads milliseconds since the epoch; UTC unless the text says otherwise.
    pub fn parse(&self, text: &str) -> Result<i64, TextMismatch> {
        self.parse_in(text, &Zone::UTC)
    }

    /// Reads milliseconds since the epoch; in `zone` unless the text says otherwise.
    pub fn parse_in(&self, text: &str, zone: &Zone) -> Result<i64, TextMismatch> {
        parse::parse(&self.items, text)?.instant(zone)
    }

    /// Reads milliseconds since the epoch from the start of a text, as Java's older `SimpleDateFormat` does: what follows is left alone.
    pub fn parse_start(&self, text: &str) -> Result<i64, TextMismatch> {
        parse::parse_start(&self.items, text)?.instant(&Zone::UTC)
    }

    /// Reads a date: days since the epoch. A time or zone in the text is read and left out.
    pub fn parse_date(&self, text: &str) -> Result<i32, TextMismatch> {
        parse::parse(&self.items, text)?.days()
    }

    /// Reads a time of day in milliseconds. A date or zone in the text is read and left out.
    pub fn parse_time(&self, text: &str) -> Result<i32, TextMismatch> {
        parse::parse(&self.items, text)?.time_of_day()
    }

    /// Writes an instant as UTC.
    pub fn format(&self, millis: i64) -> String {
        self.format_in(millis, &Zone::UTC)
    }

    /// Writes an instant as `zone` shows it.
    pub fn format_in(&self, millis: i64, zone: &Zone) -> String {
        format::format(&self.items, millis, zone)
    }

    /// Writes a date (days since the epoch).
    pub fn format_date(&self, days: i32) -> String {
        self.format(i64::from(days) * civil::DAY_MS)
    }

    /// Writes a time of day in milliseconds.
    pub fn format_time(&self, millis: i32) -> String {
        self.format(i64::from(millis))
    }

    /// Whether the pattern has a letter about the time of day.
    pub fn has_time(&self) -> bool {
        self.items.iter().any(Item::is_time)
    }

    /// Whether the pattern has a letter about the date.
    pub fn has_date(&self) -> bool {
        self.items.iter().any(Item::is_date)
    }
}
