//! The event time of a row, taken from one of its columns.
//!
//! `TIMESTAMP = 'column'` names a BIGINT (milliseconds), a TIMESTAMP, or a STRING that `TIMESTAMP_FORMAT` describes. A row whose column is NULL,
//! negative or not of the format has no event time: that is a record error, and the caller decides what becomes of the row.

use arrow::{
    array::{Array, ArrayRef, AsArray, PrimitiveArray},
    datatypes::{ArrowPrimitiveType, DataType, Int64Type, TimeUnit, TimestampMillisecondType},
};

use crate::{
    error::{FormatError, FormatResult, RecordError},
    java_time::TimePattern,
};

/// Takes event times from a column.
#[derive(Debug, Clone)]
pub struct TimestampExtractor {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Bigint,
    Timestamp,
    Text(TimePattern),
}

impl TimestampExtractor {
    /// For a column of `data_type`; `pattern` is needed for text and refused for the others.
    pub fn new(data_type: &DataType, pattern: Option<&str>) -> FormatResult<Self> {
        let refused = |hint| {
            Err(FormatError::TimestampColumn {
                data_type: data_type.to_string(),
                hint,
            })
        };
        let kind = match (data_type, pattern) {
            (DataType::Int64, None) => Kind::Bigint,
            (DataType::Timestamp(TimeUnit::Millisecond, _), None) => Kind::Timestamp,
            (DataType::Utf8, Some(pattern)) => Kind::Text(TimePattern::compile(pattern)?),
            (DataType::Utf8, None) => return refused(" (a STRING needs TIMESTAMP_FORMAT)"),
            (DataType::Int64 | DataType::Timestamp(..), Some(_)) => {
                return refused(" (TIMESTAMP_FORMAT is for STRING only)");
            }
            _ => return refused(""),
        };
        Ok(Self { kind })
    }

    /// The event time of each row. A row without one keeps its `fallback` (the record's own time) and is reported.
    pub fn extract(&self, column: &ArrayRef, fallback: &[i64]) -> (Vec<i64>, Vec<RecordError>) {
        let mut times = Vec::with_capacity(column.len());
        let mut errors = Vec::new();
        let mut take = |index: usize, time: Result<i64, String>| match time {
            Ok(time) if time >= 0 => times.push(time),
            bad => {
                let reason = bad.map_or_else(
                    |reason| reason,
                    |time| format!("a negative event time: {time}"),
                );
                times.push(fallback.get(index).copied().unwrap_or(0));
                errors.push(RecordError { index, reason });
            }
        };
        match (&self.kind, column.data_type()) {
            (Kind::Bigint, DataType::Int64) => {
                numbers(column.as_primitive::<Int64Type>(), &mut take)
            }
            (Kind::Timestamp, DataType::Timestamp(TimeUnit::Millisecond, _)) => {
                numbers(column.as_primitive::<TimestampMillisecondType>(), &mut take);
            }
            (Kind::Text(pattern), DataType::Utf8) => {
                for (index, text) in column.as_string::<i32>().iter().enumerate() {
                    take(
                        index,
                        text.ok_or_else(null_time).and_then(|text| {
                            pattern.parse(text).map_err(|error| error.to_string())
                        }),
                    );
                }
            }
            (_, other) => {
                for index in 0..column.len() {
                    take(index, Err(format!("an event time column of type {other}")));
                }
            }
        }
        (times, errors)
    }
}

fn numbers<T: ArrowPrimitiveType<Native = i64>>(
    column: &PrimitiveArray<T>,
    take: &mut impl FnMut(usize, Result<i64, String>),
) {
    for (index, time) in column.iter().enumerate() {
        take(index, time.ok_or_else(null_time));
    }
}

fn null_time() -> String {
    "the event time is NULL".to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray, TimestampMillisecondArray};

    use super::*;

    fn extract(column: ArrayRef, pattern: Option<&str>) -> (Vec<i64>, Vec<(usize, String)>) {
        let extractor = TimestampExtractor::new(column.data_type(), pattern).unwrap();
        let (times, errors) = extractor.extract(&column, &[7, 8, 9]);
        (
            times,
            errors
                .into_iter()
                .map(|error| (error.index, error.reason))
                .collect(),
        )
    }

    #[test]
    fn each_type() {
        let null = (1, "the event time is NULL".to_owned());
        let negative = (2, "a negative event time: -1".to_owned());
        let numbers = Arc::new(Int64Array::from(vec![Some(5), None, Some(-1)]));
        assert_eq!(
            extract(numbers, None),
            (vec![5, 8, 9], vec![null.clone(), negative.clone()])
        );
        let instants = Arc::new(
            TimestampMillisecondArray::from(vec![Some(5), None, Some(-1)]).with_timezone("UTC"),
        );
        assert_eq!(
            extract(instants, None),
            (vec![5, 8, 9], vec![null.clone(), negative])
        );
        let texts = Arc::new(StringArray::from(vec![
            Some("1970-01-02"),
            None,
            Some("soon"),
        ]));
        let mismatch = (
            2,
            "not a number of the pattern's width at position 0 of \"soon\"".to_owned(),
        );
        assert_eq!(
            extract(texts, Some("yyyy-MM-dd")),
            (vec![86_400_000, 8, 9], vec![null, mismatch])
        );
    }

    #[test]
    fn columns_that_cannot_give_a_time() {
        for (data_type, pattern) in [
            (DataType::Utf8, None),
            (DataType::Int64, Some("yyyy")),
            (DataType::Int32, None),
            (DataType::Boolean, None),
            (DataType::Utf8, Some("yyyy-'")),
        ] {
            assert!(
                TimestampExtractor::new(&data_type, pattern).is_err(),
                "{data_type} {pattern:?}"
            );
        }
    }
}
