//! `SHOW` and `LIST`.

use super::properties::expect_property_name;
use super::session::TIME_ZONE;
use crate::ast::{Show, Statement};
use crate::cursor::Cursor;
use crate::error::SqlError;

/// `SHOW|LIST STREAMS|TABLES|[ALL] TOPICS|QUERIES [EXTENDED]`, `SHOW|LIST FUNCTIONS|TYPES|VARIABLES|PROPERTIES|ALL`, `SHOW variable`.
pub(super) fn show(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let verb = cursor.expect_one_of(&["show", "list"])?;
    let start = cursor.span();
    if let Some(show) = accept_list(cursor) {
        return Ok(Statement::Show(show));
    }
    if let Some(list) = cursor.accept_one_of(&["connectors", "connector", "databases", "schemas"]) {
        let what = format!("SHOW {}", list.to_uppercase());
        return Err(SqlError::unsupported(what, start));
    }
    let of_kind = matches!(cursor.word(), Some("source" | "sink"));
    if of_kind && cursor.word_at(1) == Some("connectors") {
        return Err(cursor.unsupported("SHOW CONNECTORS"));
    }
    if verb == "list" {
        return Err(cursor.expected(
            "STREAMS, TABLES, TOPICS, QUERIES, FUNCTIONS, TYPES, VARIABLES or PROPERTIES",
        ));
    }
    Ok(Statement::Show(Show::Variable(expect_variable(cursor)?)))
}

/// Takes what is listed, if that is not a single variable.
fn accept_list(cursor: &mut Cursor) -> Option<Show> {
    let all = cursor.at_words(&["all", "topics"]);
    if all {
        cursor.accept("all");
    }
    let list = cursor.accept_one_of(&[
        "streams",
        "tables",
        "queries",
        "topics",
        "functions",
        "types",
        "variables",
        "all",
        "properties",
    ])?;
    let mut extended = || cursor.accept("extended");
    Some(match list {
        "streams" => Show::Streams {
            extended: extended(),
        },
        "tables" => Show::Tables {
            extended: extended(),
        },
        "queries" => Show::Queries {
            extended: extended(),
        },
        "topics" => Show::Topics {
            all,
            extended: extended(),
        },
        "functions" => Show::Functions,
        "types" => Show::Types,
        "variables" => Show::Variables,
        _ => Show::All,
    })
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
