//! Arrays of one dimension from text and from their binary form.

use arrow::{array::timezone::Tz, datatypes::DataType};
use datafusion::scalar::ScalarValue;
use pgwire::api::Type;

use super::{binary, invalid_binary, text};
use crate::{
    pgwire::types::arrow_type,
    sqlstate::{SqlError, code},
};

/// Reads `{1,NULL,"a b"}`.
pub(super) fn from_text(literal: &str, element: &Type, zone: Tz) -> Result<ScalarValue, SqlError> {
    let malformed = |detail: &str| {
        SqlError::new(
            code::INVALID_TEXT_REPRESENTATION,
            format!("malformed array literal: \"{}\"", super::shown(literal)),
        )
        .with_detail(detail)
    };
    let inner = literal
        .trim()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let mut rest = inner
        .ok_or_else(|| malformed("it must begin with \"{\" and end with \"}\""))?
        .trim_start();
    let mut values = Vec::new();
    while !rest.is_empty() {
        let (item, after) = next_item(rest).map_err(malformed)?;
        values.push(match item {
            Item::Null => null_of(element)?,
            Item::Text(item) => text::value(&item, element, zone)?,
        });
        rest = match after.strip_prefix(',') {
            Some(after) if after.trim().is_empty() => {
                return Err(malformed("an element is missing behind the last \",\""));
            }
            Some(after) => after.trim_start(),
            None if after.is_empty() => "",
            None => return Err(malformed("elements must be separated by \",\"")),
        };
    }
    list(values, element)
}

enum Item {
    Null,
    Text(String),
}

/// The first element, and what follows it and its blanks.
fn next_item(text: &str) -> Result<(Item, &str), &'static str> {
    if let Some(quoted) = text.strip_prefix('"') {
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => return Ok((Item::Text(value), quoted[at + 1..].trim_start())),
                '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                other => value.push(other),
            }
        }
        return Err("a quoted element has no end");
    }
    let mut value = String::new();
    let mut escaped_any = false;
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((at, character)) = characters.next() {
        match character {
            ',' => {
                end = at;
                break;
            }
            '{' | '}' => return Err("arrays of more than one dimension are not supported"),
            '"' => return Err("a quote is within an element"),
            '\\' => {
                escaped_any = true;
                value.extend(characters.next().map(|(_, escaped)| escaped));
            }
            other => value.push(other),
        }
    }
    let value = value.trim_end();
    match value {
        "" => Err("an element is empty"),
        null if !escaped_any && null.eq_ignore_ascii_case("null") => Ok((Item::Null, &text[end..])),
        value => Ok((Item::Text(value.to_owned()), &text[end..])),
    }
}

/// Reads the binary form: see the encoder for its layout.
pub(super) fn from_binary(
    bytes: &[u8],
    wire: &Type,
    element: &Type,
) -> Result<ScalarValue, SqlError> {
    let invalid = || invalid_binary(wire);
    let mut rest = bytes;
    let mut int = || {
        let (first, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        Some(i32::from_be_bytes(*first))
    };
    let dimensions = int().ok_or_else(invalid)?;
    let _has_nulls = int().ok_or_else(invalid)?;
    let element_type = int().ok_or_else(invalid)?.cast_unsigned();
    if element_type != element.oid() {
        let message = format!(
            "binary array has elements of type {element_type}, not {}",
            element.oid()
        );
        return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
    }
    let count = match dimensions {
        0 => 0,
        1 => {
            let count = int().ok_or_else(invalid)?;
            let _first_index = int().ok_or_else(invalid)?;
            usize::try_from(count).map_err(|_| invalid())?
        }
        2.. => {
            return Err(SqlError::unsupported(
                "arrays of more than one dimension are not supported",
            ));
        }
        _ => return Err(invalid()),
    };
    // Each element has at least its length.
    if count > rest.len() / size_of::<i32>() {
        return Err(invalid());
    }
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(invalid)?;
        let length = i32::from_be_bytes(*length);
        if length == -1 {
            values.push(null_of(element)?);
            rest = after;
            continue;
        }
        let length = usize::try_from(length).map_err(|_| invalid())?;
        let (value, after) = after.split_at_checked(length).ok_or_else(invalid)?;
        values.push(binary::value(value, element)?);
        rest = after;
    }
    if rest.is_empty() {
        list(values, element)
    } else {
        Err(invalid())
    }
}

fn null_of(element: &Type) -> Result<ScalarValue, SqlError> {
    let arrow = natural_type(element)?;
    Ok(ScalarValue::try_from(&arrow)?)
}

fn list(values: Vec<ScalarValue>, element: &Type) -> Result<ScalarValue, SqlError> {
    Ok(ScalarValue::List(ScalarValue::new_list(
        &values,
        &natural_type(element)?,
        true,
    )))
}

/// The type that elements are read in; decimals are text until their scale is known.
fn natural_type(element: &Type) -> Result<DataType, SqlError> {
    match *element {
        Type::NUMERIC => Ok(DataType::Utf8),
        _ => arrow_type(element).ok_or_else(|| super::unknown_type(element)),
    }
}
