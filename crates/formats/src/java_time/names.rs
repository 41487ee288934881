//! English names in patterns.

use super::field::{Field, TextStyle};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
const AM_PM: [&str; 2] = ["AM", "PM"];
const ERAS: [&str; 2] = ["BC", "AD"];
const FULL_ERAS: [&str; 2] = ["Before Christ", "Anno Domini"];

/// The names of a field in order, and the value of the first.
fn names(field: Field, style: TextStyle) -> (&'static [&'static str], i64) {
    match field {
        Field::Month => (&MONTHS, 1),
        Field::DayOfWeek => (&WEEKDAYS, 1),
        Field::Era if style == TextStyle::Full => (&FULL_ERAS, 0),
        Field::Era => (&ERAS, 0),
        _ => (&AM_PM, 0),
    }
}

/// A name as the style cuts it. All names are ASCII, and the names of months and days have at least three letters.
fn cut(name: &'static str, field: Field, style: TextStyle) -> &'static str {
    match style {
        TextStyle::Short if matches!(field, Field::Month | Field::DayOfWeek) => &name[..3],
        TextStyle::Narrow => &name[..1],
        _ => name,
    }
}

/// The name of a value.
pub(super) fn name_of(field: Field, style: TextStyle, value: i64) -> &'static str {
    let (names, first) = names(field, style);
    let name = usize::try_from(value - first)
        .ok()
        .and_then(|index| names.get(index));
    name.map_or("", |name| cut(name, field, style))
}

/// The value whose name `text` begins with, and the length of that name.
pub(super) fn value_of(field: Field, style: TextStyle, text: &str) -> Option<(i64, usize)> {
    let (names, first) = names(field, style);
    (first..).zip(names).find_map(|(value, name)| {
        let name = cut(name, field, style);
        let head = text.get(..name.len())?;
        head.eq_ignore_ascii_case(name)
            .then_some((value, name.len()))
    })
}
