//! What a compiled pattern is made of.

/// One part of a pattern, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// Text as it is.
    Literal(String),
    Number(Number),
    /// A year in two digits, 2000 to 2099. `reserved` as in [`Number`].
    ShortYear {
        reserved: usize,
    },
    /// The first digits of the nanosecond.
    Fraction {
        digits: usize,
    },
    Text {
        field: Field,
        style: TextStyle,
    },
    Offset(OffsetStyle),
    /// `GMT`, `GMT+8` or, when full, `GMT+08:00`.
    LocalizedOffset {
        full: bool,
    },
    /// A zone's short name, like `CET`.
    ZoneName,
    /// A zone's id, like `Europe/Paris`.
    ZoneId,
    Optional(Vec<Item>),
}

/// A number of `min` to `max` digits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    pub(super) field: Field,
    pub(super) min: usize,
    pub(super) max: usize,
    pub(super) sign: Sign,
    /// Digits that belong to the numbers that follow without a separator.
    pub(super) reserved: usize,
}

/// When a number has a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Minus when negative.
    Normal,
    Never,
    /// Minus when negative, plus when there are more than `min` digits.
    ExceedsPad,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Era,
    Year,
    YearOfEra,
    Month,
    Day,
    DayOfYear,
    DayOfWeek,
    AmPm,
    Hour,
    /// 1 to 24.
    ClockHour,
    /// 0 to 11.
    HourOfAmPm,
    /// 1 to 12.
    ClockHourOfAmPm,
    Minute,
    Second,
    Nano,
    MilliOfDay,
    NanoOfDay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextStyle {
    Short,
    Full,
    Narrow,
}

/// How an offset from UTC is spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OffsetStyle {
    pub(super) minutes: Part,
    pub(super) seconds: Part,
    pub(super) colon: bool,
    /// What stands for no offset.
    pub(super) zero: &'static str,
}

/// Whether a part of an offset is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Never,
    IfNotZero,
    Always,
}

impl Item {
    /// Whether it is about the time of day.
    pub(super) fn is_time(&self) -> bool {
        match self {
            Self::Number(Number { field, .. }) | Self::Text { field, .. } => !field.is_date(),
            Self::Fraction { .. } => true,
            Self::Optional(items) => items.iter().any(Self::is_time),
            _ => false,
        }
    }

    /// Whether it is about the date.
    pub(super) fn is_date(&self) -> bool {
        match self {
            Self::Number(Number { field, .. }) | Self::Text { field, .. } => field.is_date(),
            Self::ShortYear { .. } => true,
            Self::Optional(items) => items.iter().any(Self::is_date),
            _ => false,
        }
    }

    /// The digits of a number that always has the same width.
    pub(super) fn fixed_width(&self) -> Option<usize> {
        match self {
            Self::Number(number) if number.min == number.max && number.sign == Sign::Never => {
                Some(number.max)
            }
            Self::ShortYear { .. } => Some(2),
            Self::Fraction { digits } => Some(*digits),
            _ => None,
        }
    }
}

impl Field {
    fn is_date(self) -> bool {
        matches!(
            self,
            Self::Era
                | Self::Year
                | Self::YearOfEra
                | Self::Month
                | Self::Day
                | Self::DayOfYear
                | Self::DayOfWeek
        )
    }
}
