//! What came out against what was expected.
//!
//! Topic by topic, number and order count. Values are compared by the types of the columns: doubles within a tolerance, decimals exactly at
//! their column's scale, everything else as it stands. Fields may stand in any order, and their names are upper-cased where they are not equal as written.

use std::fmt::Write;

use arrow::datatypes::DataType;

use crate::{json::Json, layout::Layout, record::TestRecord};

/// Two doubles that differ by less are equal.
const DOUBLE_TOLERANCE: f64 = 1e-6;

/// The first difference between the records of one topic, as lines for people; `None` when there is none.
pub fn difference(
    expected: &[&TestRecord],
    actual: &[TestRecord],
    layout: &Layout,
) -> Option<String> {
    for (position, (expected, actual)) in expected.iter().zip(actual).enumerate() {
        if let Some(part) = record_difference(expected, actual, layout) {
            let mut lines = format!(
                "topic \"{}\", record {}: {part}",
                expected.topic,
                position + 1
            );
            let _ = write!(lines, "\n  - {expected}\n  + {actual}");
            return Some(lines);
        }
    }
    let topic = expected.first().map_or_else(
        || actual.first().map(|record| &record.topic),
        |record| Some(&record.topic),
    )?;
    let counts = format!(
        "topic \"{topic}\": {} records instead of {}",
        actual.len(),
        expected.len()
    );
    if let Some(missing) = expected.get(actual.len()) {
        return Some(format!("{counts}, missing\n  - {missing}"));
    }
    actual
        .get(expected.len())
        .map(|surplus| format!("{counts}, not expected\n  + {surplus}"))
}

/// The part in which two records differ.
fn record_difference(
    expected: &TestRecord,
    actual: &TestRecord,
    layout: &Layout,
) -> Option<&'static str> {
    if !same(&expected.key, &actual.key, layout.key.data_type.as_ref()) {
        return Some("the key differs");
    }
    if expected.window != actual.window && expected.window.is_some() {
        return Some("the window differs");
    }
    if !same(
        &expected.value,
        &actual.value,
        layout.value.data_type.as_ref(),
    ) {
        return Some("the value differs");
    }
    if expected.timestamp.is_some() && expected.timestamp != actual.timestamp {
        return Some("the timestamp differs");
    }
    if expected.headers.is_some() && expected.headers != actual.headers {
        return Some("the headers differ");
    }
    None
}

/// Whether two values are equal for a column of this type.
pub fn same(expected: &Json, actual: &Json, data_type: Option<&DataType>) -> bool {
    let is_decimal = matches!(
        data_type,
        Some(DataType::Decimal128(..) | DataType::Decimal256(..))
    );
    match (expected, actual) {
        // A decimal may be written as a text, with or without the zeros that its scale asks for: its column gives it the scale.
        (Json::Text(expected), Json::Number(actual)) if is_decimal => {
            decimal(expected).is_some_and(|digits| Some(digits) == decimal(actual))
        }
        (Json::Number(expected), Json::Number(actual)) => same_number(expected, actual, data_type),
        (Json::Array(expected), Json::Array(actual)) => {
            let element = match data_type {
                Some(DataType::List(field)) => Some(field.data_type()),
                _ => None,
            };
            expected.len() == actual.len()
                && expected
                    .iter()
                    .zip(actual)
                    .all(|(expected, actual)| same(expected, actual, element))
        }
        (Json::Object(expected), Json::Object(actual)) => same_object(expected, actual, data_type),
        _ => expected == actual,
    }
}

fn same_number(expected: &str, actual: &str, data_type: Option<&DataType>) -> bool {
    if expected == actual {
        return true;
    }
    if let Some(DataType::Decimal128(..) | DataType::Decimal256(..)) = data_type {
        return decimal(expected).is_some_and(|digits| Some(digits) == decimal(actual));
    }
    match (expected.parse::<f64>(), actual.parse::<f64>()) {
        (Ok(expected), Ok(actual)) => {
            expected == actual
                || (expected - actual).abs() < DOUBLE_TOLERANCE
                || (expected.is_nan() && actual.is_nan())
        }
        _ => false,
    }
}

/// A decimal's digits without zeros around them, with its sign and the place of its point; exponents are worked in.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (negative, unsigned) = match mantissa.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, mantissa),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{fraction}");
    let scale = i64::try_from(fraction.len()).ok()? - exponent;
    let digits = digits.trim_start_matches('0');
    let short = digits.trim_end_matches('0');
    let scale = scale - i64::try_from(digits.len() - short.len()).ok()?;
    match short.is_empty() {
        true => Some((false, String::new(), 0)),
        false => Some((negative, short.to_owned(), scale)),
    }
}

fn same_object(
    expected: &[(String, Json)],
    actual: &[(String, Json)],
    data_type: Option<&DataType>,
) -> bool {
    if expected.len() != actual.len() {
        return false;
    }
    expected.iter().all(|(name, expected)| {
        let exact = actual.iter().find(|(other, _)| other == name);
        let found = exact.or_else(|| {
            let upper = name.to_uppercase();
            actual
                .iter()
                .find(|(other, _)| other.to_uppercase() == upper)
        });
        found.is_some_and(|(name, actual)| same(expected, actual, field_type(data_type, name)))
    })
}

fn field_type<'a>(data_type: Option<&'a DataType>, name: &str) -> Option<&'a DataType> {
    match data_type? {
        DataType::Struct(fields) => fields
            .iter()
            .find(|field| field.name() == name)
            .map(|field| field.data_type()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => fields.get(1).map(|field| field.data_type()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(expected: &str, actual: &str, data_type: &DataType) -> bool {
        let json = |text| Json::parse(text).expect("JSON");
        same(&json(expected), &json(actual), Some(data_type))
    }

    #[test]
    fn doubles_have_a_tolerance_and_decimals_have_none() {
        assert!(equal("0.3", "0.30000000000000004", &DataType::Float64));
        assert!(!equal("0.3", "0.3001", &DataType::Float64));
        let decimal = DataType::Decimal128(6, 2);
        assert!(equal("1.50", "1.50", &decimal));
        assert!(equal("1.5E+2", "15E1", &decimal));
        assert!(equal("1.5", "1.50", &decimal));
        assert!(equal("\"01.5\"", "1.50", &decimal));
        assert!(!equal("1.5", "1.51", &decimal));
    }

    #[test]
    fn fields_may_stand_in_any_order_but_none_may_lack() {
        let row = DataType::Struct(Fields::empty());
        assert!(equal(r#"{"a":1,"B":2}"#, r#"{"B":2,"A":1}"#, &row));
        assert!(!equal(r#"{"A":1}"#, r#"{"A":1,"B":null}"#, &row));
        assert!(!equal(r#"{"A":1,"B":null}"#, r#"{"A":1}"#, &row));
    }

    use arrow::datatypes::Fields;
}
