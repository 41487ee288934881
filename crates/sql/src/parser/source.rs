//! Statements about one source, topic or query by its name: DROP, DESCRIBE, PRINT, TERMINATE, PAUSE, RESUME.

use sqlparser::tokenizer::Token;

use super::create::accept_kind;
use super::unsupported;
use crate::ast::{Describe, Drop, DropType, Print, QueryTarget, SourceKind, Statement};
use crate::cursor::Cursor;
use crate::error::SqlError;

/// `DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC]`, `DROP TYPE [IF EXISTS] name`.
pub(super) fn drop(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let start = cursor.index();
    cursor.expect("drop")?;
    if cursor.accept("type") {
        return Ok(Statement::DropType(DropType {
            if_exists: cursor.accept_words(&["if", "exists"]),
            name: cursor.expect_name("the name of a type")?,
        }));
    }
    let Some(kind) = accept_kind(cursor) else {
        cursor.rewind(start);
        return Err(unsupported::statement(cursor));
    };
    let if_exists = cursor.accept_words(&["if", "exists"]);
    let name = cursor.expect_source_name()?;
    if cursor.at(&Token::Comma) {
        return Err(cursor
            .unsupported("DROP of several names")
            .with_hint("drop them one by one"));
    }
    let delete_topic = cursor.accept_words(&["delete", "topic"]);
    if cursor.at_words(&["cascade"]) {
        return Err(cursor
            .unsupported("CASCADE")
            .with_hint("terminate the queries that read it, then drop it"));
    }
    cursor.accept("restrict");
    Ok(Statement::Drop(Drop {
        kind,
        if_exists,
        name,
        delete_topic,
    }))
}

/// `DESCRIBE [STREAM|TABLE] name [EXTENDED]`, `DESCRIBE STREAMS|TABLES [EXTENDED]`, `DESCRIBE FUNCTION name`.
pub(super) fn describe(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect_one_of(&["describe", "desc"])?;
    // `DESCRIBE stream EXTENDED` is about a source called "stream", and so for the other words.
    let names_more = matches!(cursor.peek_at(1), Some(Token::Word(_)))
        && (cursor.word_at(1) != Some("extended") || cursor.peek_at(2).is_some());
    if names_more && cursor.accept("function") {
        let name = cursor.expect_word("the name of a function")?;
        return Ok(Statement::Describe(Describe::Function(name.to_lowercase())));
    }
    if names_more && cursor.at_words(&["connector"]) {
        return Err(cursor.unsupported("DESCRIBE CONNECTOR"));
    }
    for (word, kind) in [
        ("streams", SourceKind::Stream),
        ("tables", SourceKind::Table),
    ] {
        if cursor.accept(word) {
            let extended = cursor.accept("extended");
            return Ok(Statement::Describe(Describe::Sources { kind, extended }));
        }
    }
    if names_more {
        accept_kind(cursor);
    }
    let name = cursor.expect_source_name()?;
    let extended = cursor.accept("extended");
    Ok(Statement::Describe(Describe::Source { name, extended }))
}

/// `PRINT topic [FROM BEGINNING] [INTERVAL|SAMPLE n] [LIMIT n]`.
pub(super) fn print(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("print")?;
    let topic = expect_topic(cursor)?;
    let from_beginning = cursor.accept_words(&["from", "beginning"]);
    let mut interval = None;
    let mut limit = None;
    loop {
        if interval.is_none() && cursor.accept_one_of(&["interval", "sample"]).is_some() {
            interval = Some(expect_positive(cursor)?);
        } else if limit.is_none() && cursor.accept("limit") {
            limit = Some(expect_positive(cursor)?);
        } else {
            break;
        }
    }
    Ok(Statement::Print(Print {
        topic,
        from_beginning,
        interval,
        limit,
    }))
}

fn expect_positive(cursor: &mut Cursor) -> Result<u64, SqlError> {
    let start = cursor.index();
    let count = cursor.expect_count("a positive whole number")?;
    if count == 0 {
        cursor.rewind(start);
        return Err(cursor.expected("a positive whole number"));
    }
    Ok(count)
}

/// A topic's name exactly as written, since topics are not folded: in quotes of any kind, or words, digits, `.`, `-` and `_` without a
/// blank between them.
pub(super) fn expect_topic(cursor: &mut Cursor) -> Result<String, SqlError> {
    if let Some(topic) = cursor.accept_string() {
        return if topic.is_empty() {
            Err(cursor.expected("the name of a topic"))
        } else {
            Ok(topic)
        };
    }
    if let Some(Token::Word(word)) = cursor.peek()
        && word.quote_style.is_some()
    {
        return cursor.expect_name("the name of a topic");
    }
    let start = cursor.index();
    let is_part = |token: Option<&Token>| {
        matches!(
            token,
            Some(Token::Word(_) | Token::Number(..) | Token::Period | Token::Minus)
        )
    };
    while is_part(cursor.peek()) && (cursor.index() == start || cursor.is_glued()) {
        cursor.next();
    }
    if start == cursor.index() {
        return Err(cursor.expected("the name of a topic"));
    }
    Ok(cursor.text(start..cursor.index()).to_string())
}

/// `TERMINATE|PAUSE|RESUME [QUERY] id|ALL`.
pub(super) fn query_control(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let verb = cursor.expect_one_of(&["terminate", "pause", "resume"])?;
    if cursor.word_at(0) == Some("query") && cursor.peek_at(1).is_some() {
        cursor.accept("query");
    }
    let target = if cursor.accept("all") {
        QueryTarget::All
    } else {
        QueryTarget::Id(match cursor.accept_string() {
            Some(id) => id,
            None => cursor.expect_name("the id of a query, or ALL")?,
        })
    };
    Ok(match verb {
        "terminate" => Statement::Terminate(target),
        "pause" => Statement::Pause(target),
        _ => Statement::Resume(target),
    })
}
