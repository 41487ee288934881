//! Windows: of an aggregation (`WINDOW ..`) and of a join (`WITHIN ..`).

use std::time::Duration;

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::ast::{Window, WindowKind, Within};
use crate::cursor::Cursor;
use crate::duration::{expect_duration, expect_positive_duration};
use crate::error::{Span, SqlError};
use crate::origin::Origin;

/// `WITHIN n unit` or `WITHIN (n unit, n unit)`, and `GRACE PERIOD n unit` behind it; it belongs to the join with this number.
pub(super) fn within(
    origin: Origin,
    tokens: Vec<TokenWithSpan>,
    join: usize,
) -> Result<Within, SqlError> {
    let mut cursor = cursor_over(origin, tokens);
    cursor.expect("within")?;
    let (before, after) = if cursor.accept_token(&Token::LParen) {
        let before = expect_duration(&mut cursor)?;
        cursor.expect_token(&Token::Comma)?;
        let after = expect_duration(&mut cursor)?;
        cursor.expect_token(&Token::RParen)?;
        (before, after)
    } else {
        let both = expect_duration(&mut cursor)?;
        (both, both)
    };
    let grace = match cursor.accept_words(&["grace", "period"]) {
        true => Some(expect_duration(&mut cursor)?),
        false => None,
    };
    cursor.expect_end()?;
    Ok(Within {
        join,
        before,
        after,
        grace,
    })
}

/// A cursor whose errors at the end are about the last token, since other tokens follow in the script.
fn cursor_over<'a>(origin: Origin<'a>, tokens: Vec<TokenWithSpan>) -> Cursor<'a> {
    let end = tokens
        .last()
        .map_or(origin.end, |token| origin.places.span(token.span).start);
    Cursor::new(Origin { end, ..origin }, tokens)
}

/// `WINDOW TUMBLING (SIZE n unit)`, `HOPPING (SIZE n unit, ADVANCE BY n unit)` or `SESSION (n unit)`, each with
/// `RETENTION n unit` and `GRACE PERIOD n unit` behind.
pub(super) fn window(origin: Origin, tokens: Vec<TokenWithSpan>) -> Result<Window, SqlError> {
    let mut cursor = cursor_over(origin, tokens);
    cursor.expect("window")?;
    let kind = cursor.expect_one_of(&["tumbling", "hopping", "session"])?;
    cursor.expect_token(&Token::LParen)?;
    let kind = match kind {
        "tumbling" => WindowKind::Tumbling {
            size: expect_size(&mut cursor)?,
        },
        "hopping" => expect_hopping(&mut cursor)?,
        _ => WindowKind::Session {
            gap: expect_positive_duration(&mut cursor)?,
        },
    };
    let mut window = Window {
        kind,
        retention: None,
        grace: None,
    };
    while cursor.accept_token(&Token::Comma) {
        let start = cursor.span();
        let repeated = if cursor.accept("retention") {
            window
                .retention
                .replace(expect_positive_duration(&mut cursor)?)
        } else if cursor.accept_words(&["grace", "period"]) {
            window.grace.replace(expect_duration(&mut cursor)?)
        } else {
            return Err(cursor.expected("RETENTION or GRACE PERIOD"));
        };
        if repeated.is_some() {
            return Err(SqlError::syntax(
                cursor.script(),
                start,
                "this part of the window is given twice",
            ));
        }
    }
    cursor.expect_token(&Token::RParen)?;
    cursor.expect_end()?;
    Ok(window)
}

fn expect_size(cursor: &mut Cursor) -> Result<Duration, SqlError> {
    cursor.expect("size")?;
    expect_positive_duration(cursor)
}

/// The inside of `HOPPING (..)`: every record must fall into a window, so the advance is at most the size.
fn expect_hopping(cursor: &mut Cursor) -> Result<WindowKind, SqlError> {
    let size = expect_size(cursor)?;
    cursor.expect_token(&Token::Comma)?;
    let start = cursor.span();
    if !cursor.accept_words(&["advance", "by"]) {
        return Err(cursor.expected("ADVANCE BY"));
    }
    let advance = expect_positive_duration(cursor)?;
    if advance > size {
        let span = Span::new(start.start, start.end);
        return Err(SqlError::syntax(
            cursor.script(),
            span,
            "the advance of a window must not be longer than its size",
        ));
    }
    Ok(WindowKind::Hopping { size, advance })
}
