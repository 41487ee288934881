//! Dates, times and timestamps as text in Java's patterns, as numbers, and in other zones.

use std::{cell::RefCell, rc::Rc};

use arrow::{
    array::{ArrayRef, StringArray},
    datatypes::{
        Date32Type, Int32Type, Int64Type, Time32MillisecondType, TimestampMillisecondType,
    },
};
use datafusion::common::Result;
use highwater_formats::java_time::{TimePattern, Zone};

use crate::{
    cache::{Kept, compiled},
    call::{Call, Values, value},
    function::{Category, Function, Overload},
    signature::{Kind, Param, param},
    step_clock,
};

thread_local! {
    static PATTERNS: Kept<TimePattern> = RefCell::default();
    static ZONES: Kept<Zone> = RefCell::default();
}

pub(super) const MILLIS_OF_DAY: i64 = 86_400_000;

const DATE: Param = param("date", Kind::Date, "a date");
const TIME: Param = param("time", Kind::Time, "a time of the day");
pub(super) const TIMESTAMP: Param = param("timestamp", Kind::Timestamp, "a timestamp");
const MILLIS: Param = param(
    "millis",
    Kind::BigInt,
    "milliseconds since 1970-01-01T00:00Z",
);
const DAYS: Param = param("days", Kind::Int, "days since 1970-01-01");
const TEXT: Param = param("text", Kind::Text, "the text");
const PATTERN: Param = param(
    "pattern",
    Kind::Text,
    "a pattern of java.time.format.DateTimeFormatter",
);
const ZONE: Param = param(
    "zone",
    Kind::Text,
    "the time zone, such as Europe/Paris or +02:00; UTC without it",
);

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "convert_tz",
        Category::DateTime,
        "What clocks of another time zone show, given what those of one show.",
        &[Overload::new(
            &[
                TIMESTAMP,
                param("from", Kind::Text, "the zone that the timestamp is in"),
                param("to", Kind::Text, "the zone that it goes to"),
            ],
            Kind::Timestamp,
            convert_tz,
        )],
        &[(
            "unix_timestamp(convert_tz(from_unixtime(0), '+00:00', '+02:00'))",
            "7200000",
        )],
    ),
    Function::new(
        "format_date",
        Category::DateTime,
        "A date as text.",
        &[Overload::new(&[DATE, PATTERN], Kind::Text, |call| {
            let (date, form) = (call.date(0), call.text(1));
            Ok(call.texts(|row| {
                let date = value!(date.get(row));
                Ok(Some(pattern(value!(form.get(row)))?.format_date(date)))
            }))
        })],
        &[(
            "format_date(from_days(19000), 'dd/MM/yyyy')",
            "'08/01/2022'",
        )],
    ),
    Function::new(
        "format_time",
        Category::DateTime,
        "A time of the day as text.",
        &[Overload::new(&[TIME, PATTERN], Kind::Text, |call| {
            let (time, form) = (call.time(0), call.text(1));
            Ok(call.texts(|row| {
                let time = value!(time.get(row));
                Ok(Some(time_pattern(value!(form.get(row)))?.format_time(time)))
            }))
        })],
        &[(
            "format_time(parse_time('5:07 PM', 'h:mm a'), 'HH.mm')",
            "'17.07'",
        )],
    ),
    Function::new(
        "format_timestamp",
        Category::DateTime,
        "A timestamp as text.",
        &[
            Overload::new(&[TIMESTAMP, PATTERN], Kind::Text, |call| {
                Ok(format(call, call.timestamp(0)))
            }),
            Overload::new(&[TIMESTAMP, PATTERN, ZONE], Kind::Text, |call| {
                Ok(format(call, call.timestamp(0)))
            }),
        ],
        &[(
            "format_timestamp(from_unixtime(0), 'yyyy-MM-dd HH:mm', '+01:00')",
            "'1970-01-01 01:00'",
        )],
    ),
    Function::new(
        "parse_date",
        Category::DateTime,
        "The date that a text begins with; what follows it is left alone.",
        &[Overload::new(&[TEXT, PATTERN], Kind::Date, |call| {
            Ok(call.numbers::<Date32Type>(|row| {
                let text = value!(call.text(0).get(row));
                date_at_start(text, value!(call.text(1).get(row))).map(Some)
            }))
        })],
        &[("unix_date(parse_date('08/01/2022', 'dd/MM/yyyy'))", "19000")],
    ),
    Function::new(
        "parse_time",
        Category::DateTime,
        "The time of the day in a text.",
        &[Overload::new(&[TEXT, PATTERN], Kind::Time, |call| {
            Ok(call.numbers::<Time32MillisecondType>(|row| {
                let text = value!(call.text(0).get(row));
                let form = pattern(value!(call.text(1).get(row)))?;
                form.parse_time(text)
                    .map(Some)
                    .map_err(|error| error.to_string())
            }))
        })],
        &[(
            "format_time(parse_time('17.07', 'HH.mm'), 'HH:mm')",
            "'17:07'",
        )],
    ),
    Function::new(
        "parse_timestamp",
        Category::DateTime,
        "The timestamp in a text.",
        &[
            Overload::new(
                &[TEXT, PATTERN],
                Kind::Timestamp,
                parse::<TimestampMillisecondType>,
            ),
            Overload::new(
                &[TEXT, PATTERN, ZONE],
                Kind::Timestamp,
                parse::<TimestampMillisecondType>,
            ),
        ],
        &[(
            "unix_timestamp(parse_timestamp('1970-01-02', 'yyyy-MM-dd'))",
            "86400000",
        )],
    ),
    Function::new(
        "from_days",
        Category::DateTime,
        "The date of a number of days since 1970-01-01.",
        &[Overload::new(&[DAYS], Kind::Date, |call| {
            let days = call.int(0);
            Ok(call.numbers::<Date32Type>(|row| Ok(days.get(row))))
        })],
        &[("unix_date(from_days(19000))", "19000")],
    ),
    Function::new(
        "from_unixtime",
        Category::DateTime,
        "The timestamp of milliseconds since 1970-01-01T00:00Z.",
        &[Overload::new(&[MILLIS], Kind::Timestamp, |call| {
            let millis = call.bigint(0);
            Ok(call.numbers::<TimestampMillisecondType>(|row| Ok(millis.get(row))))
        })],
        &[("unix_timestamp(from_unixtime(5))", "5")],
    )
    .ksql_only(),
    Function::new(
        "unix_date",
        Category::DateTime,
        "Days since 1970-01-01: of a date, or of today.",
        &[
            Overload::new(&[], Kind::Int, |call| {
                let days = i32::try_from(step_clock::now_millis().div_euclid(MILLIS_OF_DAY))
                    .unwrap_or(i32::MAX);
                Ok(call.numbers::<Int32Type>(|_| Ok(Some(days))))
            }),
            Overload::new(&[DATE], Kind::Int, |call| {
                let date = call.date(0);
                Ok(call.numbers::<Int32Type>(|row| Ok(date.get(row))))
            }),
        ],
        &[],
    )
    .reading_step(),
    Function::new(
        "unix_timestamp",
        Category::DateTime,
        "Milliseconds since 1970-01-01T00:00Z: of a timestamp, or of now.",
        &[
            Overload::new(&[], Kind::BigInt, |call| {
                let now = step_clock::now_millis();
                Ok(call.numbers::<Int64Type>(|_| Ok(Some(now))))
            }),
            Overload::new(&[TIMESTAMP], Kind::BigInt, |call| {
                let timestamp = call.timestamp(0);
                Ok(call.numbers::<Int64Type>(|row| Ok(timestamp.get(row))))
            }),
        ],
        &[],
    )
    .reading_step(),
    Function::new(
        "datetostring",
        Category::DateTime,
        "Days since 1970-01-01 as text. FORMAT_DATE does it for dates.",
        &[Overload::new(&[DAYS, PATTERN], Kind::Text, |call| {
            let (days, form) = (call.int(0), call.text(1));
            Ok(call.texts(|row| {
                let days = value!(days.get(row));
                Ok(Some(date_pattern(value!(form.get(row)))?.format_date(days)))
            }))
        })],
        &[("datetostring(19000, 'dd/MM/yyyy')", "'08/01/2022'")],
    ),
    Function::new(
        "stringtodate",
        Category::DateTime,
        "The date in a text, as days since 1970-01-01. PARSE_DATE gives a DATE.",
        &[Overload::new(&[TEXT, PATTERN], Kind::Int, |call| {
            Ok(call.numbers::<Int32Type>(|row| {
                let text = value!(call.text(0).get(row));
                parse_date(text, value!(call.text(1).get(row))).map(Some)
            }))
        })],
        &[("stringtodate('08/01/2022', 'dd/MM/yyyy')", "19000")],
    ),
    Function::new(
        "timestamptostring",
        Category::DateTime,
        "Milliseconds since 1970-01-01T00:00Z (or a timestamp) as text. FORMAT_TIMESTAMP does it for timestamps.",
        &[
            Overload::new(&[MILLIS, PATTERN], Kind::Text, |call| {
                Ok(format(call, call.bigint(0)))
            }),
            Overload::new(&[MILLIS, PATTERN, ZONE], Kind::Text, |call| {
                Ok(format(call, call.bigint(0)))
            }),
            Overload::new(&[TIMESTAMP, PATTERN], Kind::Text, |call| {
                Ok(format(call, call.timestamp(0)))
            }),
            Overload::new(&[TIMESTAMP, PATTERN, ZONE], Kind::Text, |call| {
                Ok(format(call, call.timestamp(0)))
            }),
        ],
        &[("timestamptostring(0, 'HH:mm', '+01:00')", "'01:00'")],
    ),
    Function::new(
        "stringtotimestamp",
        Category::DateTime,
        "The timestamp in a text, as milliseconds since 1970-01-01T00:00Z. PARSE_TIMESTAMP gives a TIMESTAMP.",
        &[
            Overload::new(&[TEXT, PATTERN], Kind::BigInt, parse::<Int64Type>),
            Overload::new(&[TEXT, PATTERN, ZONE], Kind::BigInt, parse::<Int64Type>),
        ],
        &[("stringtotimestamp('1970-01-02', 'yyyy-MM-dd')", "86400000")],
    ),
];

/// A compiled pattern.
pub(crate) fn pattern(form: &str) -> Result<Rc<TimePattern>, String> {
    compiled(&PATTERNS, form, |form| {
        TimePattern::compile(form).map_err(|error| error.to_string())
    })
}

/// A pattern for dates.
fn date_pattern(form: &str) -> Result<Rc<TimePattern>, String> {
    let pattern = pattern(form)?;
    match pattern.has_time() {
        true => Err(format!("pattern \"{form}\" asks a date for its time")),
        false => Ok(pattern),
    }
}

/// A pattern for times of the day.
fn time_pattern(form: &str) -> Result<Rc<TimePattern>, String> {
    let pattern = pattern(form)?;
    match pattern.has_date() {
        true => Err(format!(
            "pattern \"{form}\" asks a time of the day for its date"
        )),
        false => Ok(pattern),
    }
}

fn zone(name: &str) -> Result<Rc<Zone>, String> {
    compiled(&ZONES, name, |name| {
        Zone::parse(name).map_err(|error| error.to_string())
    })
}

/// The zone that the third argument names.
struct ZoneArg<'a>(Option<Values<'a, StringArray>>);

impl<'a> ZoneArg<'a> {
    fn new(call: &'a Call) -> Self {
        Self((call.count() > 2).then(|| call.text(2)))
    }

    fn get(&self, row: usize) -> Result<Option<Zone>, String> {
        match &self.0 {
            None => Ok(Some(Zone::UTC)),
            Some(zones) => Ok(Some(*zone(value!(zones.get(row)))?)),
        }
    }
}

/// The date that a text begins with, as Java's `SimpleDateFormat` reads it. A time of the day would be lost, so it is refused.
fn date_at_start(text: &str, form: &str) -> Result<i32, String> {
    let millis = pattern(form)?
        .parse_start(text)
        .map_err(|error| error.to_string())?;
    if millis.rem_euclid(MILLIS_OF_DAY) != 0 {
        return Err(format!("\"{text}\" has a time of the day beside its date"));
    }
    i32::try_from(millis.div_euclid(MILLIS_OF_DAY)).map_err(|_| "a date out of range".to_owned())
}

/// The text may tell more than its date.
fn parse_date(text: &str, form: &str) -> Result<i32, String> {
    pattern(form)?
        .parse_date(text)
        .map_err(|error| error.to_string())
}

fn format<T>(call: &Call, instants: Values<'_, arrow::array::PrimitiveArray<T>>) -> ArrayRef
where
    T: arrow::array::ArrowPrimitiveType<Native = i64>,
{
    let (form, zones) = (call.text(1), ZoneArg::new(call));
    call.texts(|row| {
        let (millis, form) = (value!(instants.get(row)), value!(form.get(row)));
        let zone = value!(zones.get(row)?);
        Ok(Some(pattern(form)?.format_in(millis, &zone)))
    })
}

fn parse<T>(call: &Call) -> Result<ArrayRef>
where
    T: arrow::array::ArrowPrimitiveType<Native = i64>,
{
    let (text, form, zones) = (call.text(0), call.text(1), ZoneArg::new(call));
    Ok(call.numbers::<T>(|row| {
        let (text, form) = (value!(text.get(row)), value!(form.get(row)));
        let zone = value!(zones.get(row)?);
        pattern(form)?
            .parse_in(text, &zone)
            .map(Some)
            .map_err(|error| error.to_string())
    }))
}

fn convert_tz(call: &Call) -> Result<ArrayRef> {
    let (timestamp, from, to) = (call.timestamp(0), call.text(1), call.text(2));
    Ok(call.numbers::<TimestampMillisecondType>(|row| {
        let timestamp = value!(timestamp.get(row));
        let (from, to) = (zone(value!(from.get(row)))?, zone(value!(to.get(row)))?);
        let shifted = from
            .instant_of(timestamp)
            .and_then(|instant| instant.checked_add(to.offset_at(instant) * 1000));
        match shifted {
            Some(shifted) => Ok(Some(shifted)),
            None => Err("a timestamp out of range".to_owned()),
        }
    }))
}
