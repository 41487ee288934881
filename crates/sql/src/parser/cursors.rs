//! Cursors: DECLARE, FETCH, CLOSE.

use sqlparser::tokenizer::Token;

use super::query;
use crate::ast::Statement;
use crate::cursor::Cursor;
use crate::duration::expect_duration_literal;
use crate::error::SqlError;

/// What a cursor that wants to go back is answered with.
const FORWARD_ONLY: &str = "cursors go forward only";

/// `DECLARE name [INSENSITIVE|ASENSITIVE] [NO SCROLL] CURSOR [WITH|WITHOUT HOLD] FOR query`.
pub(super) fn declare(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("declare")?;
    let name = cursor.expect_name("the name of a cursor")?;
    while !cursor.accept("cursor") {
        if cursor.at_words(&["scroll"]) {
            return Err(cursor.unsupported("SCROLL").with_hint(FORWARD_ONLY));
        }
        if cursor.at_words(&["binary"]) {
            return Err(cursor
                .unsupported("a BINARY cursor")
                .with_hint("the extended protocol asks for binary results"));
        }
        if !cursor.accept_words(&["no", "scroll"])
            && cursor
                .accept_one_of(&["insensitive", "asensitive"])
                .is_none()
        {
            return Err(cursor.expected("CURSOR"));
        }
    }
    let hold = cursor.accept_words(&["with", "hold"]);
    cursor.accept_words(&["without", "hold"]);
    cursor.expect("for")?;
    let query = query::rest(cursor)?;
    Ok(Statement::Declare { name, hold, query })
}

/// `FETCH [NEXT | n | ALL | FORWARD [n | ALL]] [FROM|IN] name [WITH (timeout = '1s')]`.
pub(super) fn fetch(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("fetch")?;
    let count = expect_direction(cursor)?;
    cursor.accept_one_of(&["from", "in"]);
    let name = cursor.expect_name("the name of a cursor")?;
    let mut timeout = None;
    if cursor.accept("with") {
        cursor.expect_token(&Token::LParen)?;
        cursor.expect("timeout")?;
        cursor.accept_token(&Token::Eq);
        timeout = Some(expect_duration_literal(cursor)?);
        cursor.expect_token(&Token::RParen)?;
    }
    Ok(Statement::Fetch {
        count,
        name,
        timeout,
    })
}

/// How many rows; `None` is ALL. A keyword that is the last word is the cursor's name.
fn expect_direction(cursor: &mut Cursor) -> Result<Option<u64>, SqlError> {
    let names_cursor = matches!(cursor.peek_at(1), None | Some(Token::Word(_))) && {
        let next = cursor.word_at(1);
        cursor.peek_at(1).is_none()
            || next == Some("with") && cursor.peek_at(2) == Some(&Token::LParen)
    };
    if names_cursor {
        return Ok(Some(1));
    }
    if let Some(word @ ("backward" | "prior" | "last" | "absolute" | "relative" | "first")) =
        cursor.word()
    {
        let what = format!("FETCH {}", word.to_uppercase());
        return Err(cursor.unsupported(what).with_hint(FORWARD_ONLY));
    }
    if cursor.at(&Token::Minus) {
        return Err(cursor
            .unsupported("FETCH of a negative count")
            .with_hint(FORWARD_ONLY));
    }
    if cursor.accept("next") {
        return Ok(Some(1));
    }
    cursor.accept("forward");
    if cursor.accept("all") {
        return Ok(None);
    }
    match cursor.peek() {
        Some(Token::Number(..)) => cursor.expect_count("a number of rows").map(Some),
        _ => Ok(Some(1)),
    }
}

/// `CLOSE name|ALL`.
pub(super) fn close(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("close")?;
    if cursor.accept("all") {
        return Ok(Statement::Close(None));
    }
    cursor
        .expect_name("the name of a cursor, or ALL")
        .map(|name| Statement::Close(Some(name)))
}
