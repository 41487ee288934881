//! Time zones: a fixed offset, or a region with its rules.

use chrono::{DateTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{OffsetName, Tz};

use crate::error::{FormatError, FormatResult};

use super::{
    field::{OffsetStyle, Part},
    offset,
};

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone(Rules);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// Seconds east of UTC.
    Fixed(i32),
    Region(Tz),
}

/// Short names that stand for a region; which one is a convention, and this is Java's for English.
const SHORT_NAMES: [(&str, Tz); 26] = [
    ("PST", Tz::America__Los_Angeles),
    ("PDT", Tz::America__Los_Angeles),
    ("MST", Tz::America__Denver),
    ("MDT", Tz::America__Denver),
    ("CST", Tz::America__Chicago),
    ("CDT", Tz::America__Chicago),
    ("EST", Tz::America__New_York),
    ("EDT", Tz::America__New_York),
    ("AKST", Tz::America__Anchorage),
    ("AKDT", Tz::America__Anchorage),
    ("HST", Tz::Pacific__Honolulu),
    ("BRT", Tz::America__Sao_Paulo),
    ("BST", Tz::Europe__London),
    ("WET", Tz::Europe__Lisbon),
    ("WEST", Tz::Europe__Lisbon),
    ("CET", Tz::Europe__Paris),
    ("CEST", Tz::Europe__Paris),
    ("EET", Tz::Europe__Bucharest),
    ("EEST", Tz::Europe__Bucharest),
    ("MSK", Tz::Europe__Moscow),
    ("IST", Tz::Asia__Kolkata),
    ("SGT", Tz::Asia__Singapore),
    ("JST", Tz::Asia__Tokyo),
    ("AEST", Tz::Australia__Sydney),
    ("AEDT", Tz::Australia__Sydney),
    ("NZST", Tz::Pacific__Auckland),
];

/// How ids spell an offset.
const ID_OFFSET: OffsetStyle = OffsetStyle {
    minutes: Part::IfNotZero,
    seconds: Part::IfNotZero,
    colon: true,
    zero: "Z",
};

/// Far enough back to be in front of a change of the clocks, and not in front of the one before.
const ONE_DAY_MS: i64 = 86_400_000;

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(Rules::Region(Tz::UTC));

    /// Reads a region's id (`Europe/Paris`), `Z`, an offset (`+01:00`, `+0100`, `+1`), or one of the two behind `UTC`, `GMT` or `UT`.
    pub fn parse(name: &str) -> FormatResult<Self> {
        Self::find(name.trim()).ok_or_else(|| FormatError::UnknownZone {
            name: name.to_owned(),
        })
    }

    /// A fixed offset in seconds east of UTC.
    pub(super) fn fixed(seconds: i64) -> Self {
        Self(Rules::Fixed(i32::try_from(seconds).unwrap_or(0)))
    }

    fn find(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("Z") {
            return Some(Self::UTC);
        }
        if name.starts_with(['+', '-']) {
            return fixed_offset(name).map(Self::fixed);
        }
        for prefix in ["UTC", "GMT", "UT"] {
            if let Some(rest) = strip_prefix_ignore_case(name, prefix) {
                match rest.as_bytes().first() {
                    None => return Some(Self::UTC),
                    Some(b'+' | b'-') => return fixed_offset(rest).map(Self::fixed),
                    Some(_) => {}
                }
            }
        }
        let region = name.parse::<Tz>().ok().or_else(|| any_case(name));
        region
            .or_else(|| short_name(name))
            .map(|tz| Self(Rules::Region(tz)))
    }

    /// The zone whose name or id `text` begins with, and how long it is. The longest run of name characters that is a zone wins.
    pub(super) fn prefix_of(text: &str) -> Option<(Self, usize)> {
        let is_name = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'+' | b'-' | b':')
        };
        let run = text
            .bytes()
            .take_while(|&byte| is_name(byte))
            .take(MAX_NAME)
            .count();
        (1..=run)
            .rev()
            .find_map(|len| Self::find(&text[..len]).map(|zone| (zone, len)))
    }

    /// Seconds east of UTC at an instant.
    pub fn offset_at(&self, millis: i64) -> i64 {
        match self.0 {
            Rules::Fixed(seconds) => i64::from(seconds),
            Rules::Region(tz) => match DateTime::from_timestamp_millis(millis) {
                Some(instant) => i64::from(
                    tz.offset_from_utc_datetime(&instant.naive_utc())
                        .fix()
                        .local_minus_utc(),
                ),
                // Beyond chrono's calendar (a quarter of a million years) no rule is known.
                None => 0,
            },
        }
    }

    /// The instant of a local time. Where clocks were set back, the first of the two; where they were set forward, the time is moved along.
    pub fn instant_of(&self, local_millis: i64) -> Option<i64> {
        let offset = match self.0 {
            Rules::Fixed(seconds) => i64::from(seconds),
            Rules::Region(tz) => match local_datetime(local_millis) {
                None => 0,
                Some(local) => match tz.offset_from_local_datetime(&local).earliest() {
                    Some(offset) => i64::from(offset.fix().local_minus_utc()),
                    None => self.offset_at(local_millis.saturating_sub(ONE_DAY_MS)),
                },
            },
        };
        local_millis.checked_sub(offset * 1000)
    }

    /// The short name at an instant.
    pub(super) fn short_name_at(&self, millis: i64) -> String {
        if let Rules::Region(tz) = self.0
            && let Some(instant) = DateTime::from_timestamp_millis(millis)
            && let Some(name) = tz
                .offset_from_utc_datetime(&instant.naive_utc())
                .abbreviation()
        {
            return name.to_owned();
        }
        self.id()
    }

    /// The id.
    pub fn id(&self) -> String {
        match self.0 {
            Rules::Region(tz) => tz.name().to_owned(),
            Rules::Fixed(seconds) => {
                let mut out = String::new();
                let style = OffsetStyle {
                    minutes: Part::Always,
                    ..ID_OFFSET
                };
                offset::write(&mut out, i64::from(seconds), &style);
                out
            }
        }
    }
}

/// Longest name that is tried; ids are shorter.
const MAX_NAME: usize = 48;

/// A region by its id in any case.
fn any_case(name: &str) -> Option<Tz> {
    chrono_tz::TZ_VARIANTS
        .iter()
        .find(|tz| tz.name().eq_ignore_ascii_case(name))
        .copied()
}

fn short_name(name: &str) -> Option<Tz> {
    SHORT_NAMES
        .iter()
        .find(|(short, _)| short.eq_ignore_ascii_case(name))
        .map(|(_, tz)| *tz)
}

fn strip_prefix_ignore_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| &text[prefix.len()..])
}

/// Reads a whole text as an offset: `+h`, `+hh`, `+hhmm`, `+hh:mm`, with seconds or without.
fn fixed_offset(text: &str) -> Option<i64> {
    let padded = match text.as_bytes() {
        [sign, hour] => format!("{}0{}", char::from(*sign), char::from(*hour)),
        _ => text.to_owned(),
    };
    let styles = [
        ID_OFFSET,
        OffsetStyle {
            colon: false,
            ..ID_OFFSET
        },
    ];
    styles.iter().find_map(|style| {
        offset::parse(&padded, style)
            .filter(|(_, len)| *len == padded.len())
            .map(|(seconds, _)| seconds)
    })
}

fn local_datetime(millis: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_millis(millis).map(|instant| instant.naive_utc())
}
