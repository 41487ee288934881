//! `SHOW` and `LIST`.

use super::properties::expect_property_name;
use super::session::TIME_ZONE;
use crate::ast::{Show, Statement};
use crate::cursor::Cursor;
use crate::error::SqlError;

/// `SHOW|LIST STREAMS|TABLES|[ALL] TOPICS|QUERIES|PROPERTIES|ALL`, `SHOW variable`.
pub(super) fn show(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let verb = cursor.expect_one_of(&["show", "list"])?;
    let start = cursor.span();
    let show = if cursor.accept("streams") {
        Show::Streams
    } else if cursor.accept("tables") {
        Show::Tables
    } else if cursor.accept("queries") {
        Show::Queries
    } else if cursor.accept("topics") {
        Show::Topics { all: false }
    } else if cursor.accept_words(&["all", "topics"]) {
        Show::Topics { all: true }
    } else if cursor.accept_one_of(&["all", "properties"]).is_some() {
        Show::All
    } else if let Some(list) = cursor.accept_one_of(&[
        "functions",
        "types",
        "variables",
        "connectors",
        "databases",
        "schemas",
    ]) {
        return Err(SqlError::unsupported(
            format!("SHOW {}", list.to_uppercase()),
            start,
        ));
    } else if verb == "list" {
        return Err(cursor.expected("STREAMS, TABLES, TOPICS, QUERIES or PROPERTIES"));
    } else {
        Show::Variable(expect_variable(cursor)?)
    };
    if cursor.at_words(&["extended"]) {
        return Err(cursor
            .unsupported("EXTENDED in SHOW")
            .with_hint("use DESCRIBE name EXTENDED"));
    }
    Ok(Statement::Show(show))
}

/// A variable's name, under the name PostgreSQL has for those with a spelling of their own.
fn expect_variable(cursor: &mut Cursor) -> Result<String, SqlError> {
    for (words, name) in [
        (&["time", "zone"][..], TIME_ZONE),
        (
            &["transaction", "isolation", "level"][..],
            "transaction_isolation",
        ),
        (&["session", "authorization"][..], "session_authorization"),
    ] {
        if cursor.accept_words(words) {
            return Ok(name.to_string());
        }
    }
    expect_property_name(cursor)
}
