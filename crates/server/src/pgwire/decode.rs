//! Parameter values of the client to [`ScalarValue`]s.
//!
//! A value is first read as the PostgreSQL type it was declared with (or, undeclared, the one its inferred type is sent as), by that type's
//! own input rules, and then cast to the type that the statement wants. Errors name the parameter's type and the text: `22P02` for a text
//! that is no value of the type, `22003` for one beyond it, `22P03` for wrong bytes.

mod array;
mod binary;
mod datetime;
mod numeric;
mod text;

use arrow::{array::timezone::Tz, datatypes::DataType};
use datafusion::scalar::ScalarValue;
use pgwire::api::Type;

use super::{encode::Format, message::utf8, types::display_name};
use crate::sqlstate::{SqlError, code};

/// Reads one value. `zone` is the session's: where a clock without a zone stands.
pub(super) fn parameter(
    value: Option<&[u8]>,
    wire: &Type,
    format: Format,
    target: &DataType,
    zone: Tz,
) -> Result<ScalarValue, SqlError> {
    let Some(bytes) = value else {
        return Ok(ScalarValue::try_from(target)?);
    };
    let natural = match format {
        Format::Text => text::value(utf8(bytes)?, wire, zone)?,
        Format::Binary => binary::value(bytes, wire)?,
    };
    if natural.data_type() == *target {
        return Ok(natural);
    }
    natural
        .cast_to(target)
        .map_err(|error| cast_error(&natural, target, SqlError::from(error)))
}

/// Reads a text as a value of a type by PostgreSQL's input rules: what COPY and string literals hold.
pub(crate) fn text_value(
    text: &str,
    data_type: &DataType,
    zone: Tz,
) -> Result<ScalarValue, SqlError> {
    let wire = super::types::wire_type(data_type);
    parameter(Some(text.as_bytes()), &wire, Format::Text, data_type, zone)
}

/// A failed cast that says which value it was about.
fn cast_error(value: &ScalarValue, target: &DataType, cause: SqlError) -> SqlError {
    let wanted = super::types::wire_type(target);
    let message = format!("value {value} cannot be used as {}", display_name(&wanted));
    SqlError::new(cause.code, message).with_detail(cause.message)
}

/// A text that is no value of the type.
fn invalid_text(text: &str, wire: &Type) -> SqlError {
    let message = format!(
        "invalid input syntax for type {}: \"{}\"",
        display_name(wire),
        shown(text)
    );
    SqlError::new(code::INVALID_TEXT_REPRESENTATION, message)
}

/// A number beyond its type.
fn out_of_range(text: &str, wire: &Type) -> SqlError {
    let message = format!(
        "value \"{}\" is out of range for type {}",
        shown(text),
        display_name(wire)
    );
    SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// Bytes that are no value of the type.
fn invalid_binary(wire: &Type) -> SqlError {
    let message = format!(
        "incorrect binary data format for type {}",
        display_name(wire)
    );
    SqlError::new(code::INVALID_BINARY_REPRESENTATION, message)
}

fn unknown_type(wire: &Type) -> SqlError {
    SqlError::unsupported(format!(
        "parameters of type {} are not supported",
        display_name(wire)
    ))
}

/// The beginning of a text, enough to recognise it.
fn shown(text: &str) -> String {
    const MOST: usize = 64;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
