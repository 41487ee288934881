//! What a session has: variables, prepared statements, notifications.

use sqlparser::tokenizer::Token;

use super::properties::{accept_number, expect_property_name};
use super::transaction::{self, Modes};
use crate::ast::Statement;
use crate::cursor::Cursor;
use crate::error::SqlError;

/// PostgreSQL's name for what `SET TIME ZONE` sets, in lower case.
pub(super) const TIME_ZONE: &str = "timezone";

/// `SET [SESSION|LOCAL] name = value`, `SET 'name' = 'value'` and PostgreSQL's special spellings.
pub(super) fn set(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("set")?;
    if cursor.accept_words(&["session", "characteristics", "as", "transaction"]) {
        return transaction_modes(
            cursor,
            "default_transaction_isolation",
            "default_transaction_read_only",
        );
    }
    if cursor.accept("transaction") {
        return transaction_modes(cursor, "transaction_isolation", "transaction_read_only");
    }
    for what in ["constraints", "xml"] {
        if cursor.at_words(&[what]) {
            return Err(cursor.unsupported(format!("SET {}", what.to_uppercase())));
        }
    }
    let assigns = |token: Option<&Token>| matches!(token, Some(Token::Eq));
    if matches!(cursor.word(), Some("session" | "local"))
        && !assigns(cursor.peek_at(1))
        && cursor.word_at(1) != Some("to")
    {
        cursor.next();
    }
    if cursor.accept_words(&["time", "zone"]) {
        return Ok(Statement::Set {
            name: TIME_ZONE.to_string(),
            value: expect_time_zone(cursor)?,
        });
    }
    for (words, name) in [
        (&["names"][..], "client_encoding"),
        (&["session", "authorization"][..], "session_authorization"),
        (&["authorization"][..], "session_authorization"),
        (&["role"][..], "role"),
        (&["schema"][..], "search_path"),
    ] {
        let behind = cursor.peek_at(words.len());
        if cursor.at_words(words) && !assigns(behind) && cursor.word_at(words.len()) != Some("to") {
            cursor.accept_words(words);
            return Ok(Statement::Set {
                name: name.to_string(),
                value: expect_value(cursor)?,
            });
        }
    }
    let name = expect_property_name(cursor)?;
    expect_assignment(cursor)?;
    Ok(Statement::Set {
        name,
        value: expect_value(cursor)?,
    })
}

/// `SET TRANSACTION modes`. One statement sets one variable: READ ONLY wins over the isolation level beside it, since every level is
/// served alike while READ ONLY keeps a session from writing.
fn transaction_modes(
    cursor: &mut Cursor,
    isolation: &str,
    read_only: &str,
) -> Result<Statement, SqlError> {
    if cursor.at_words(&["snapshot"]) {
        return Err(cursor.unsupported("SET TRANSACTION SNAPSHOT"));
    }
    let Modes {
        isolation: level,
        read_only: only,
    } = transaction::accept_modes(cursor)?;
    let (name, value) = match (level, only) {
        (_, Some(true)) => (read_only, "on".to_string()),
        (Some(level), _) => (isolation, level.to_string()),
        (None, Some(false)) => (read_only, "off".to_string()),
        (None, None) => return Err(cursor.expected("ISOLATION LEVEL, READ ONLY or READ WRITE")),
    };
    Ok(Statement::Set {
        name: name.to_string(),
        value: Some(value),
    })
}

/// A variable's value as text: one or more words, strings and numbers, separated by commas. `None` is DEFAULT.
fn expect_value(cursor: &mut Cursor) -> Result<Option<String>, SqlError> {
    if cursor.accept("default") {
        return Ok(None);
    }
    let mut value = expect_value_item(cursor)?;
    if cursor.at(&Token::Comma) {
        // The text of a list is itself SQL, so what is not a plain word keeps its quotes.
        value = crate::name::quote_name(&value);
        while cursor.accept_token(&Token::Comma) {
            value.push_str(", ");
            value.push_str(&crate::name::quote_name(&expect_value_item(cursor)?));
        }
    }
    Ok(Some(value))
}

fn expect_value_item(cursor: &mut Cursor) -> Result<String, SqlError> {
    if let Some(text) = cursor.accept_string() {
        return Ok(text);
    }
    if let Some(number) = accept_number(cursor) {
        return Ok(number);
    }
    match cursor.peek() {
        Some(Token::Word(word)) => {
            let text = word.value.clone();
            cursor.next();
            Ok(text)
        }
        _ => Err(cursor.expected("a value")),
    }
}

/// `'Europe/Berlin'`, `UTC`, `LOCAL`, `DEFAULT`, hours as a number, or `INTERVAL '+01:00' HOUR TO MINUTE`.
fn expect_time_zone(cursor: &mut Cursor) -> Result<Option<String>, SqlError> {
    if cursor.accept_one_of(&["local", "default"]).is_some() {
        return Ok(None);
    }
    if cursor.accept("interval") {
        let offset = cursor.expect_string("an offset such as '+01:00'")?;
        cursor.accept_words(&["hour", "to", "minute"]);
        return Ok(Some(offset));
    }
    expect_value_item(cursor).map(Some)
}

/// `UNSET 'name'`, `RESET name`, `RESET ALL`.
pub(super) fn unset(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let verb = cursor.expect_one_of(&["unset", "reset"])?;
    if verb == "reset" && cursor.accept("all") {
        return Ok(Statement::Unset(None));
    }
    if cursor.accept_words(&["time", "zone"]) {
        return Ok(Statement::Unset(Some(TIME_ZONE.to_string())));
    }
    if cursor.accept_words(&["session", "authorization"]) {
        return Ok(Statement::Unset(Some("session_authorization".to_string())));
    }
    Ok(Statement::Unset(Some(expect_property_name(cursor)?)))
}

/// `ALTER SYSTEM [SET] name = value`, behind `SYSTEM`.
pub(super) fn alter_system(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    if cursor.accept("reset") {
        return Ok(Statement::AlterSystem {
            name: expect_property_name(cursor)?,
            value: None,
        });
    }
    cursor.accept("set");
    let name = expect_property_name(cursor)?;
    expect_assignment(cursor)?;
    Ok(Statement::AlterSystem {
        name,
        value: expect_value(cursor)?,
    })
}

/// `DEFINE name = 'value'`.
pub(super) fn define(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("define")?;
    let name = cursor.expect_word("the name of a variable")?.to_lowercase();
    cursor.expect_token(&Token::Eq)?;
    let value = cursor.expect_string("a text in single quotes")?;
    Ok(Statement::Define { name, value })
}

/// `UNDEFINE name`.
pub(super) fn undefine(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("undefine")?;
    let name = cursor.expect_word("the name of a variable")?;
    Ok(Statement::Undefine(name.to_lowercase()))
}

/// `RUN SCRIPT 'file'`.
pub(super) fn run_script(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("run")?;
    cursor.expect("script")?;
    let file = cursor.expect_string("the name of a file in single quotes")?;
    Ok(Statement::RunScript(file))
}

/// `BACKUP TO 'folder'`.
pub(super) fn backup(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("backup")?;
    cursor.expect("to")?;
    let folder = cursor.expect_string("the name of a folder in single quotes")?;
    Ok(Statement::Backup(folder))
}

/// `=` or TO.
fn expect_assignment(cursor: &mut Cursor) -> Result<(), SqlError> {
    match cursor.accept_token(&Token::Eq) || cursor.accept("to") {
        true => Ok(()),
        false => Err(cursor.expected("\"=\" or TO")),
    }
}

/// `DEALLOCATE [PREPARE] name|ALL`.
pub(super) fn deallocate(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("deallocate")?;
    if cursor.at_words(&["prepare"]) && cursor.peek_at(1).is_some() {
        cursor.next();
    }
    if cursor.accept("all") {
        return Ok(Statement::Deallocate(None));
    }
    cursor
        .expect_name("the name of a prepared statement, or ALL")
        .map(|name| Statement::Deallocate(Some(name)))
}

/// `DISCARD ALL`.
pub(super) fn discard(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("discard")?;
    if let Some(what @ ("plans" | "sequences" | "temp" | "temporary")) = cursor.word() {
        let what = format!("DISCARD {}", what.to_uppercase());
        return Err(cursor.unsupported(what));
    }
    cursor.expect("all")?;
    Ok(Statement::Discard)
}

/// `UNLISTEN name|*`.
pub(super) fn unlisten(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("unlisten")?;
    if cursor.accept_token(&Token::Mul) {
        return Ok(Statement::Unlisten(None));
    }
    cursor
        .expect_name("the name of a channel, or *")
        .map(|name| Statement::Unlisten(Some(name)))
}
