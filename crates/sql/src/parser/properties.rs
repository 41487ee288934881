//! `WITH (name = literal, ..)`.

use std::collections::HashSet;

use sqlparser::tokenizer::Token;

use crate::ast::{Properties, PropertyValue};
use crate::cursor::Cursor;
use crate::error::SqlError;

/// Takes a WITH clause if one is there.
pub(super) fn accept_properties(cursor: &mut Cursor) -> Result<Properties, SqlError> {
    let mut properties = Properties::default();
    if !cursor.accept("with") {
        return Ok(properties);
    }
    let mut names = HashSet::new();
    cursor.expect_token(&Token::LParen)?;
    if cursor.accept_token(&Token::RParen) {
        return Ok(properties);
    }
    loop {
        let start = cursor.index();
        let name = expect_property_name(cursor)?;
        if !names.insert(name.clone()) {
            cursor.rewind(start);
            return Err(cursor.error("this property is given twice"));
        }
        cursor.expect_token(&Token::Eq)?;
        properties.0.push((name, expect_property_value(cursor)?));
        if !cursor.accept_token(&Token::Comma) {
            break;
        }
    }
    cursor.expect_token(&Token::RParen)?;
    Ok(properties)
}

/// A property's or variable's name in lower case: words joined by dots, or a string.
pub(super) fn expect_property_name(cursor: &mut Cursor) -> Result<String, SqlError> {
    let what = "the name of a property";
    if let Some(text) = cursor.accept_string() {
        return Ok(text.to_lowercase());
    }
    // Any word will do: TIMESTAMP, FORMAT and the like are property names.
    let mut name = cursor.expect_word(what)?;
    while cursor.accept_token(&Token::Period) {
        name.push('.');
        name.push_str(&cursor.expect_word(what)?);
    }
    Ok(name.to_lowercase())
}

/// A literal: `'text'`, a number with or without a sign, TRUE or FALSE.
pub(super) fn expect_property_value(cursor: &mut Cursor) -> Result<PropertyValue, SqlError> {
    if let Some(text) = cursor.accept_string() {
        return Ok(PropertyValue::String(text));
    }
    if let Some(word) = cursor.accept_one_of(&["true", "false"]) {
        return Ok(PropertyValue::Boolean(word == "true"));
    }
    match accept_number(cursor) {
        Some(number) => Ok(PropertyValue::Number(number)),
        None => Err(cursor.expected("a text in single quotes, a number, TRUE or FALSE")),
    }
}

/// Takes a number, as written, with its sign.
pub(super) fn accept_number(cursor: &mut Cursor) -> Option<String> {
    let negative = cursor.at(&Token::Minus);
    let signed = negative || cursor.at(&Token::Plus);
    match cursor.peek_at(usize::from(signed)) {
        Some(Token::Number(digits, _)) => {
            let number = format!("{}{digits}", if negative { "-" } else { "" });
            cursor.rewind(cursor.index() + usize::from(signed) + 1);
            Some(number)
        }
        _ => None,
    }
}
