//! Statements that are SQL, but not ours: they are named, with what to use in their place.

use crate::cursor::Cursor;
use crate::error::SqlError;

/// Verbs that name a statement on their own, and a hint.
const VERBS: &[(&str, &str)] = &[
    ("analyze", ""),
    ("attach", ""),
    ("call", ""),
    ("checkpoint", "checkpoints are taken by the engine"),
    ("cluster", ""),
    ("delete", ""),
    ("do", ""),
    ("execute", "prepare statements by the extended protocol"),
    ("grant", ""),
    ("import", ""),
    ("listen", "subscribe to changes with SELECT .. EMIT CHANGES"),
    ("load", ""),
    ("lock", ""),
    (
        "merge",
        "a row with the same primary key replaces the one before it",
    ),
    ("move", "cursors go forward only"),
    ("notify", ""),
    ("pragma", ""),
    ("prepare", "prepare statements by the extended protocol"),
    ("reassign", ""),
    ("reindex", ""),
    ("replace", ""),
    ("revoke", ""),
    ("truncate", ""),
    ("update", "insert a row with the same primary key"),
    ("use", ""),
    ("vacuum", ""),
];

/// Verbs that name a statement together with the kind of object behind them.
const VERBS_WITH_OBJECT: &[&str] = &["alter", "comment", "create", "drop", "refresh", "security"];

/// Words between such a verb and the object, which are not part of the name.
const MODIFIERS: &[&str] = &[
    "or",
    "replace",
    "global",
    "local",
    "temp",
    "temporary",
    "unlogged",
    "unique",
    "recursive",
    "on",
    "trusted",
    "procedural",
    "if",
];

/// The error for a statement that is not ours: unsupported if it begins with a known verb, else a syntax error.
pub(super) fn statement(cursor: &Cursor) -> SqlError {
    let Some(verb) = cursor.word() else {
        return cursor.expected("a statement");
    };
    if VERBS_WITH_OBJECT.contains(&verb) {
        return with_object(cursor, verb);
    }
    match VERBS.iter().find(|(name, _)| *name == verb) {
        Some((_, "")) => cursor.unsupported(verb.to_uppercase()),
        Some((_, hint)) => cursor.unsupported(verb.to_uppercase()).with_hint(hint),
        None => cursor.expected("a statement"),
    }
}

/// `CREATE INDEX`, `DROP MATERIALIZED VIEW`, `CREATE TEMP TABLE` and the like.
fn with_object(cursor: &Cursor, verb: &str) -> SqlError {
    let mut ahead = 1;
    let mut temporary = false;
    while let Some(word) = cursor
        .word_at(ahead)
        .filter(|word| MODIFIERS.contains(word))
    {
        temporary |= word.starts_with("temp") || word == "unlogged";
        ahead += 1;
    }
    let object = match cursor.word_at(ahead) {
        Some("materialized") => "materialized view",
        Some("foreign") => "foreign table",
        Some(source @ ("source" | "sink")) => match cursor.word_at(ahead + 1) {
            Some("connector") => "connector",
            _ => source,
        },
        Some(object) => object,
        None => return cursor.expected("a statement"),
    };
    let what = if temporary {
        format!("{verb} temporary {object}")
    } else {
        format!("{verb} {object}")
    };
    let error = cursor.unsupported(what.to_uppercase());
    match (verb, object) {
        ("create", "view" | "materialized view") => {
            error.with_hint("use CREATE TABLE .. AS or CREATE STREAM .. AS")
        }
        ("drop", "view" | "materialized view") => error.with_hint("use DROP TABLE or DROP STREAM"),
        ("refresh", "materialized view") => {
            error.with_hint("tables are kept up to date by themselves")
        }
        ("create", "table" | "stream") if temporary => error.with_hint("leave out TEMPORARY"),
        _ => error,
    }
}
