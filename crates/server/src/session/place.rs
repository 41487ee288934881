//! Where a name that an error is about stands in the script.
//!
//! The statement tree keeps positions of expressions but not of every name; an error about a name says it in quotes, and the statement's
//! own tokens tell where it stands.

use sqlparser::{
    dialect::PostgreSqlDialect,
    tokenizer::{Token, Tokenizer, Word},
};

use super::SourceStatement;
use crate::sqlstate::{SqlError, code};

/// The classes of error that are about a name in the statement.
const ABOUT_NAMES: &[&str] = &[
    code::UNDEFINED_TABLE,
    code::UNDEFINED_COLUMN,
    code::UNDEFINED_FUNCTION,
    code::UNDEFINED_OBJECT,
    code::DUPLICATE_TABLE,
    code::DUPLICATE_COLUMN,
    code::WRONG_OBJECT_TYPE,
    code::INVALID_CURSOR_NAME,
];

/// Adds the place of the name that the error's message quotes, if the error has no place yet.
pub fn locate(error: SqlError, source: &SourceStatement) -> SqlError {
    if error.position.is_some() || !ABOUT_NAMES.contains(&error.code) {
        return error;
    }
    let Some(name) = quoted(&error.message) else {
        return error;
    };
    let name = name.rsplit('.').next().unwrap_or(name);
    match position(&source.script, source.parsed.span.start, name) {
        Some(position) => error.with_position(position),
        None => error,
    }
}

fn quoted(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once('"')?;
    rest.split_once('"').map(|(name, _)| name)
}

/// The first token of the statement that begins at byte `start` which is this name; in characters from 1.
fn position(script: &str, start: usize, name: &str) -> Option<usize> {
    let before = script.get(..start)?;
    let statement = script.get(start..)?;
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, statement)
        .tokenize_with_location()
        .ok()?;
    let token = tokens.iter().find(|token| match &token.token {
        Token::Word(Word {
            value,
            quote_style: None,
            ..
        }) => value.eq_ignore_ascii_case(name),
        Token::Word(Word { value, .. }) | Token::SingleQuotedString(value) => value == name,
        _ => false,
    })?;
    let located = SqlError::new(code::UNDEFINED_OBJECT, "").with_line_and_column(
        statement,
        token.span.start.line,
        token.span.start.column,
    );
    located
        .position
        .map(|position| position + before.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_whole_tokens() {
        let script = "SELECT 'é';\nINSERT INTO sales (k,\n  colour) VALUES ('colour')";
        let start = script.find("INSERT").expect("in the script");
        let found = position(script, start, "colour").expect("found");
        assert_eq!(
            script.chars().skip(found - 1).take(6).collect::<String>(),
            "colour"
        );
        assert_eq!(script.chars().nth(found), Some('o'));
        assert_eq!(position(script, start, "sale"), None);
        assert_eq!(quoted("column \"a\" of relation \"b\""), Some("a"));
    }
}
