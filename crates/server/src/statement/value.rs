//! Values on their way into a column: texts and evaluated expressions become what the column's type says.
//!
//! Texts go through PostgreSQL's input functions. Maps and structs, which PostgreSQL does not have in this form, are read as JSON.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Float64Builder, Int32Builder, Int64Builder, StringBuilder, timezone::Tz},
    datatypes::{DataType, Field, Schema},
};
use datafusion::scalar::ScalarValue;
use highwater_planner::{catalog::Column, types::sql_name};

use crate::{
    pgwire::text_value,
    session::SessionResult,
    sqlstate::{SqlError, code},
};

/// Collects the values of one column. The frequent types have builders of their own, since COPY spends most of its time here.
pub struct ColumnBuilder {
    data_type: DataType,
    zone: Tz,
    values: Values,
}

enum Values {
    Text(StringBuilder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float64(Float64Builder),
    Other(Vec<ScalarValue>),
}

impl Values {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Utf8 => Self::Text(StringBuilder::new()),
            DataType::Int32 => Self::Int32(Int32Builder::new()),
            DataType::Int64 => Self::Int64(Int64Builder::new()),
            DataType::Float64 => Self::Float64(Float64Builder::new()),
            _ => Self::Other(Vec::new()),
        }
    }
}

impl ColumnBuilder {
    /// Whether it takes decimals.
    pub fn is_decimal(&self) -> bool {
        self.data_type.is_decimal()
    }

    /// A builder for values of one type; `zone` is where a clock without a zone stands.
    pub fn new(data_type: DataType, zone: Tz) -> Self {
        Self {
            values: Values::new(&data_type),
            data_type,
            zone,
        }
    }

    /// Adds NULL.
    pub fn push_null(&mut self) -> SessionResult<()> {
        match &mut self.values {
            Values::Text(values) => values.append_null(),
            Values::Int32(values) => values.append_null(),
            Values::Int64(values) => values.append_null(),
            Values::Float64(values) => values.append_null(),
            Values::Other(values) => {
                values.push(ScalarValue::try_from(&self.data_type).map_err(SqlError::from)?)
            }
        }
        Ok(())
    }

    /// Adds a value given as text.
    pub fn push_text(&mut self, text: &str) -> SessionResult<()> {
        // Plain spellings are parsed here; the others, errors among them, go the general way.
        match &mut self.values {
            Values::Text(values) => {
                values.append_value(text);
                return Ok(());
            }
            Values::Int32(values) => {
                if let Ok(value) = text.parse() {
                    values.append_value(value);
                    return Ok(());
                }
            }
            Values::Int64(values) => {
                if let Ok(value) = text.parse() {
                    values.append_value(value);
                    return Ok(());
                }
            }
            Values::Float64(_) | Values::Other(_) => {}
        }
        let value = from_text(text, &self.data_type, self.zone)?;
        self.push(value)
    }

    /// Adds the value of an expression or parameter, cast as an assignment casts.
    pub fn push_scalar(&mut self, value: &ScalarValue) -> SessionResult<()> {
        let value = assigned(value, &self.data_type, self.zone)?;
        self.push(value)
    }

    /// Adds a value of exactly the column's type.
    fn push(&mut self, value: ScalarValue) -> SessionResult<()> {
        if value.is_null() {
            return self.push_null();
        }
        match (&mut self.values, value) {
            (Values::Text(values), ScalarValue::Utf8(Some(value))) => values.append_value(value),
            (Values::Int32(values), ScalarValue::Int32(Some(value))) => values.append_value(value),
            (Values::Int64(values), ScalarValue::Int64(Some(value))) => values.append_value(value),
            (Values::Float64(values), ScalarValue::Float64(Some(value))) => {
                values.append_value(value)
            }
            (Values::Other(values), value) => values.push(value),
            (_, value) => {
                return Err(SqlError::internal(format!(
                    "a {} is no {}",
                    value.data_type(),
                    self.data_type
                )));
            }
        }
        Ok(())
    }

    /// The column; the builder is empty then.
    pub fn finish(&mut self) -> SessionResult<ArrayRef> {
        Ok(match &mut self.values {
            Values::Text(values) => Arc::new(values.finish()),
            Values::Int32(values) => Arc::new(values.finish()),
            Values::Int64(values) => Arc::new(values.finish()),
            Values::Float64(values) => Arc::new(values.finish()),
            Values::Other(values) if values.is_empty() => {
                arrow::array::new_empty_array(&self.data_type)
            }
            Values::Other(values) => {
                ScalarValue::iter_to_array(std::mem::take(values)).map_err(SqlError::from)?
            }
        })
    }
}

/// A text as a value of the type.
fn from_text(text: &str, data_type: &DataType, zone: Tz) -> SessionResult<ScalarValue> {
    match data_type {
        DataType::Map(..) | DataType::Struct(_) => from_json(text, data_type),
        DataType::List(item) if item.data_type().is_nested() => from_json(text, data_type),
        _ => text_value(text, data_type, zone),
    }
}

/// A JSON text as a map, a struct or a list of them.
fn from_json(text: &str, data_type: &DataType) -> SessionResult<ScalarValue> {
    let invalid = |detail: String| {
        let message = format!(
            "invalid input syntax for type {}: \"{text}\"",
            sql_name(data_type)
        );
        SqlError::new(code::INVALID_TEXT_REPRESENTATION, message)
            .with_detail(detail)
            .with_hint("write JSON, or use the expressions MAP(..), STRUCT(..) and ARRAY[..]")
    };
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map_err(|error| invalid(error.to_string()))?;
    let schema = Arc::new(Schema::new(vec![Field::new(
        "value",
        data_type.clone(),
        true,
    )]));
    let mut decoder = arrow::json::ReaderBuilder::new(schema)
        .build_decoder()
        .map_err(SqlError::from)?;
    decoder
        .decode(format!("{{\"value\":{text}}}").as_bytes())
        .map_err(|error| invalid(error.to_string()))?;
    let batch = decoder
        .flush()
        .map_err(|error| invalid(error.to_string()))?;
    let batch = batch.ok_or_else(|| invalid("it holds no value".to_owned()))?;
    ScalarValue::try_from_array(batch.column(0), 0).map_err(SqlError::from)
}

/// A value cast to the type of the column it is assigned to.
fn assigned(value: &ScalarValue, data_type: &DataType, zone: Tz) -> SessionResult<ScalarValue> {
    if value.is_null() {
        return ScalarValue::try_from(data_type).map_err(SqlError::from);
    }
    if value.data_type() == *data_type {
        return Ok(value.clone());
    }
    if let Some(Some(text)) = value.try_as_str() {
        return from_text(text, data_type, zone);
    }
    if !assignable(&value.data_type(), data_type) {
        return Err(SqlError::new(
            code::DATATYPE_MISMATCH,
            format!(
                "an expression of type {} cannot be assigned to {}",
                sql_name(&value.data_type()),
                sql_name(data_type)
            ),
        )
        .with_hint("write a CAST that says what is meant"));
    }
    if let (ScalarValue::Float64(Some(number)), true) = (value, data_type.is_integer()) {
        // PostgreSQL rounds where Arrow cuts off.
        return cast(
            &ScalarValue::Float64(Some(number.round_ties_even())),
            data_type,
        );
    }
    cast(value, data_type)
}

fn assignable(from: &DataType, to: &DataType) -> bool {
    let same_class = |class: fn(&DataType) -> bool| class(from) && class(to);
    to.is_string()
        || same_class(DataType::is_numeric)
        || same_class(DataType::is_temporal)
        || same_class(DataType::is_nested)
        || same_class(is_binary)
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

fn cast(value: &ScalarValue, data_type: &DataType) -> SessionResult<ScalarValue> {
    value.cast_to(data_type).map_err(|error| {
        let cause = SqlError::from(error);
        let message = format!(
            "value {value} is out of range for type {}",
            sql_name(data_type)
        );
        SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message).with_detail(cause.message)
    })
}

/// An error about a value, with the column it was meant for.
pub fn in_column(error: SqlError, column: &Column) -> SqlError {
    let place = format!(
        "column \"{}\" of type {}",
        column.name,
        sql_name(&column.data_type)
    );
    let detail = match &error.detail {
        Some(detail) => format!("{place}: {detail}"),
        None => place,
    };
    error.with_detail(detail)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray, Int16Array};

    use super::*;

    fn utc() -> Tz {
        "UTC".parse().expect("a zone")
    }

    fn column(data_type: DataType, texts: &[&str]) -> ArrayRef {
        let mut builder = ColumnBuilder::new(data_type, utc());
        for text in texts {
            builder.push_text(text).expect("a value");
        }
        builder.push_null().expect("NULL");
        builder.finish().expect("a column")
    }

    #[test]
    fn texts_take_the_column_type() {
        let integers = column(DataType::Int16, &["1", " -7 "]);
        assert_eq!(
            integers.as_ref(),
            &Int16Array::from(vec![Some(1), Some(-7), None]) as &dyn Array
        );
        let json = column(
            DataType::Struct(vec![Field::new("a", DataType::Int32, true)].into()),
            &["{\"a\": 3}"],
        );
        assert_eq!(
            json.as_struct()
                .column(0)
                .as_primitive::<arrow::datatypes::Int32Type>()
                .value(0),
            3
        );
    }

    #[test]
    fn wrong_texts_have_postgres_codes() {
        for (data_type, text, code) in [
            (DataType::Int64, "abc", "22P02"),
            (DataType::Int64, "99999999999999999999", "22003"),
            (DataType::Boolean, "maybe", "22P02"),
            (DataType::Date32, "2013-13-01", "22008"),
        ] {
            let error = ColumnBuilder::new(data_type, utc())
                .push_text(text)
                .expect_err(text);
            assert_eq!(error.code, code, "{text}: {error}");
        }
    }

    #[test]
    fn numbers_are_rounded_and_bounded() {
        let mut builder = ColumnBuilder::new(DataType::Int32, utc());
        builder
            .push_scalar(&ScalarValue::Float64(Some(2.5)))
            .expect("rounds");
        builder
            .push_scalar(&ScalarValue::Int64(Some(7)))
            .expect("fits");
        let error = builder
            .push_scalar(&ScalarValue::Int64(Some(1 << 40)))
            .expect_err("too large");
        assert_eq!(error.code, "22003");
        let error = builder
            .push_scalar(&ScalarValue::Boolean(Some(true)))
            .expect_err("no number");
        assert_eq!(error.code, "42804");
        let column = builder.finish().expect("a column");
        assert_eq!(
            column
                .as_primitive::<arrow::datatypes::Int32Type>()
                .values(),
            &[2, 7]
        );
    }
}
