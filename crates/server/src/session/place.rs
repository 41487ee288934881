//! Where a name that an error is about stands in the script.
//!
//! The statement tree keeps positions of expressions but not of every name; an error about a name says it in quotes, and the statement's
//! own tokens tell where it stands.

use highwater_sql::char_position;
use sqlparser::{
    dialect::PostgreSqlDialect,
    tokenizer::{Token, Tokenizer, Word},
};

use super::{SentScript, SourceStatement};
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

/// The error with its place in the text that the client sent. An error without a place gets that of the name which its message quotes.
pub fn locate(error: SqlError, source: &SourceStatement) -> SqlError {
    let located = locate_name(error, source);
    match &source.sent {
        Some(sent) => as_sent(located, &source.script, sent),
        None => located,
    }
}

/// Turns a position in `script`, in which variables have been replaced, to one in what the client sent.
pub fn as_sent(mut error: SqlError, script: &str, sent: &SentScript) -> SqlError {
    error.position = error.position.map(|position| {
        let before = script.char_indices().nth(position.saturating_sub(1));
        let offset = before.map_or(script.len(), |(offset, _)| offset);
        char_position(&sent.text, sent.substituted.origin(offset))
    });
    error
}

fn locate_name(error: SqlError, source: &SourceStatement) -> SqlError {
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
    use highwater_sql::{Definitions, Language, Limits, substitute};

    use super::*;

    #[test]
    fn positions_are_those_of_the_sent_text() {
        let text = "SELECT ${ä}, x FROM ${t} y";
        let mut definitions = Definitions::default();
        definitions.define("ä", "something_long").expect("fits");
        definitions.define("t", "s").expect("fits");
        let substituted = substitute(text, &definitions, Language::KSQL, &Limits::default())
            .expect("within limits")
            .expect("changed");
        let script = substituted.text.clone();
        let sent = SentScript {
            text: text.to_owned(),
            substituted,
        };
        for name in ["SELECT", "x", "FROM", "y"] {
            let position = |text: &str| char_position(text, text.rfind(name).expect("there"));
            let error = SqlError::new(code::SYNTAX_ERROR, "").with_position(position(&script));
            let sent = as_sent(error, &script, &sent);
            assert_eq!(sent.position, Some(position(text)), "{name}");
        }
        let value = script.find("long").expect("there");
        let error =
            SqlError::new(code::SYNTAX_ERROR, "").with_position(char_position(&script, value));
        assert_eq!(as_sent(error, &script, &sent).position, Some(8));
    }

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
