//! Names, texts, types, properties and lengths of time.

use std::time::Duration;

use highwater_sql::{Properties, PropertyValue, SqlType};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Names: plain, quoted, and words that mean something to the grammar.
pub fn name() -> BoxedStrategy<String> {
    let words = [
        "a",
        "flights",
        "emit",
        "window",
        "changes",
        "final",
        "tumbling",
        "partition",
        "stream",
        "table",
        "key",
        "all",
        "select",
        "from",
        "with",
        "values",
        "extended",
        "query",
        "cursor",
        "next",
        "forward",
        "topics",
        "timeout",
        "delete",
        "topic",
        "if",
        "analyze",
        "Mixed Case",
        "ünïcode",
        "1digit",
        "dot.ted",
        "quo\"te",
        "semi;colon",
        "line\nbreak",
        "--",
        "/*",
        "$tag$",
        "user",
        "end",
        "prepare",
    ];
    prop_oneof![3 => select(words.map(str::to_string).to_vec()), 1 => "[a-zA-Z_][a-zA-Z0-9_]{0,8}"]
        .boxed()
}

/// Texts for literals, rich in what literals escape.
pub fn text() -> BoxedStrategy<String> {
    vec(
        select(vec![
            "'", "\"", "\\", "''", "a", "ö", ";", "--", "$$", "\n", "\t", " ", "%", "/*", "",
        ]),
        0..6,
    )
    .prop_map(|parts| parts.concat())
    .boxed()
}

/// Lower-case names of variables and properties.
pub fn property_name() -> BoxedStrategy<String> {
    prop_oneof![
        "[a-z_][a-z0-9_]{0,8}",
        "[a-z]{1,4}\\.[a-z]{1,4}(\\.[a-z]{1,4})?",
        Just("select".to_string()),
        Just("it's".to_string())
    ]
    .boxed()
}

pub fn duration(low: u64) -> impl Strategy<Value = Duration> {
    prop_oneof![
        low..100_000,
        (low.max(1)..100).prop_map(|n| n * 1000),
        (low.max(1)..100).prop_map(|n| n * 3_600_000)
    ]
    .prop_map(Duration::from_millis)
}

pub fn sql_type() -> BoxedStrategy<SqlType> {
    let simple = vec![
        SqlType::Boolean,
        SqlType::SmallInt,
        SqlType::Int,
        SqlType::BigInt,
        SqlType::Real,
        SqlType::Double,
        SqlType::String,
        SqlType::Bytes,
        SqlType::Time,
        SqlType::Date,
        SqlType::Timestamp,
        SqlType::TimestampTz,
    ];
    let decimal = (1_u8..=76)
        .prop_flat_map(|precision| (Just(precision), 0..=i8::try_from(precision).unwrap()));
    let leaf = prop_oneof![
        select(simple),
        decimal.prop_map(|(precision, scale)| SqlType::Decimal(precision, scale)),
        name().prop_map(SqlType::Named),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|element| SqlType::Array(Box::new(element))),
            (inner.clone(), inner.clone())
                .prop_map(|(key, value)| SqlType::Map(Box::new(key), Box::new(value))),
            vec((name(), inner), 1..4)
                .prop_map(|fields| SqlType::Struct(
                    without_repeats(fields, |(name, _)| name.clone())
                )),
        ]
    })
    .boxed()
}

/// The items whose key did not come before.
pub fn without_repeats<T>(items: Vec<T>, key: impl Fn(&T) -> String) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    items
        .into_iter()
        .filter(|item| seen.insert(key(item)))
        .collect()
}

pub fn properties() -> impl Strategy<Value = Properties> {
    let value = prop_oneof![
        text().prop_map(PropertyValue::String),
        "-?[0-9]{1,9}(\\.[0-9]{1,3})?".prop_map(PropertyValue::Number),
        any::<bool>().prop_map(PropertyValue::Boolean),
    ];
    vec((property_name(), value), 0..4)
        .prop_map(|items| Properties(without_repeats(items, |(name, _)| name.clone())))
}
