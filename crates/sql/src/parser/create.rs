//! `CREATE STREAM|TABLE`, over a topic or as a query; `CREATE TYPE`; `ALTER STREAM|TABLE|TOPIC`.

use std::collections::HashSet;

use sqlparser::tokenizer::Token;

use super::properties::{accept_properties, expect_property_name, expect_property_value};
use super::types::expect_type;
use super::{query, session, source, unsupported};
use crate::ast::{
    Alter, AlterTopic, ColumnDef, ColumnRole, CreateAs, CreateSource, CreateType, PropertyValue,
    SourceKind, SqlType, Statement,
};
use crate::cursor::Cursor;
use crate::error::SqlError;

/// What stands in front of the name of a stream or table.
pub(super) struct Head {
    kind: SourceKind,
    or_replace: bool,
    read_only: bool,
    if_not_exists: bool,
}

impl Head {
    /// A declaration that is compared, not made.
    pub(super) fn of_assertion(kind: SourceKind) -> Self {
        Self {
            kind,
            or_replace: false,
            read_only: false,
            if_not_exists: false,
        }
    }
}

/// `CREATE [OR REPLACE] [SOURCE] STREAM|TABLE [IF NOT EXISTS] name [(columns)] [WITH (..)] [AS query]`, `CREATE TYPE ..`.
pub(super) fn create(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let start = cursor.index();
    cursor.expect("create")?;
    if cursor.accept("type") {
        return create_type(cursor);
    }
    let or_replace = cursor.accept_words(&["or", "replace"]);
    let read_only = cursor.accept("source");
    let Some(kind) = accept_kind(cursor) else {
        cursor.rewind(start);
        return Err(unsupported::statement(cursor));
    };
    let head = Head {
        kind,
        or_replace,
        read_only,
        if_not_exists: cursor.accept_words(&["if", "not", "exists"]),
    };
    let columns_at = cursor.span();
    let source = expect_source(cursor, head)?;
    if !cursor.accept("as") {
        if source.columns.is_empty() && source.with.0.is_empty() {
            return Err(match cursor.at_end() {
                true => cursor.expected("columns in parentheses, or AS and a query"),
                false => cursor.expected("columns in parentheses, WITH or AS"),
            });
        }
        cursor.expect_end()?;
        return Ok(Statement::CreateSource(source));
    }
    if !source.columns.is_empty() {
        return Err(
            SqlError::unsupported("a list of columns beside AS", columns_at)
                .with_hint("the query gives the columns: name them there with AS"),
        );
    }
    if read_only {
        return Err(
            SqlError::unsupported("SOURCE beside AS", cursor.span()).with_hint("leave out SOURCE")
        );
    }
    let query = query::rest(cursor)?;
    Ok(Statement::CreateAs(CreateAs {
        kind,
        or_replace,
        if_not_exists: source.if_not_exists,
        name: source.name,
        with: source.with,
        query,
    }))
}

/// `name [(columns)] [WITH (..)]`.
pub(super) fn expect_source(cursor: &mut Cursor, head: Head) -> Result<CreateSource, SqlError> {
    let name = cursor.expect_source_name()?;
    let columns = match cursor.at(&Token::LParen) {
        true => expect_columns(cursor)?,
        false => Vec::new(),
    };
    Ok(CreateSource {
        kind: head.kind,
        or_replace: head.or_replace,
        read_only: head.read_only,
        if_not_exists: head.if_not_exists,
        name,
        columns,
        with: accept_properties(cursor)?,
    })
}

/// `CREATE TYPE [IF NOT EXISTS] name AS type`, behind `TYPE`.
fn create_type(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let if_not_exists = cursor.accept_words(&["if", "not", "exists"]);
    let name = cursor.expect_name("the name of a type")?;
    cursor.expect("as")?;
    if let Some(what @ ("enum" | "range")) = cursor.word() {
        let what = format!("CREATE TYPE AS {}", what.to_uppercase());
        return Err(cursor.unsupported(what).with_hint("use STRING"));
    }
    if cursor.at(&Token::LParen) {
        return Err(cursor
            .expected("a type")
            .with_hint("write STRUCT<name type, ..>"));
    }
    Ok(Statement::CreateType(CreateType {
        if_not_exists,
        name,
        data_type: expect_type(cursor)?,
    }))
}

/// `ALTER STREAM|TABLE name ADD [COLUMN] name type, ..`, `ALTER SYSTEM ..`, `ALTER TOPIC ..`.
pub(super) fn alter(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let start = cursor.index();
    cursor.expect("alter")?;
    if cursor.accept("system") {
        return session::alter_system(cursor);
    }
    if cursor.accept("topic") {
        return alter_topic(cursor);
    }
    let Some(kind) = accept_kind(cursor) else {
        cursor.rewind(start);
        return Err(unsupported::statement(cursor));
    };
    let name = cursor.expect_source_name()?;
    let mut columns: Vec<(String, SqlType)> = Vec::new();
    let mut names = HashSet::new();
    loop {
        if let Some(verb @ ("drop" | "rename" | "alter" | "owner" | "set")) = cursor.word() {
            let what = format!("ALTER {kind} .. {}", verb.to_uppercase());
            return Err(cursor
                .unsupported(what)
                .with_hint("the one change is ADD COLUMN"));
        }
        cursor.expect("add")?;
        cursor.accept("column");
        let start = cursor.index();
        let column = cursor.expect_name("the name of a column")?;
        if !names.insert(column.clone()) {
            cursor.rewind(start);
            return Err(cursor.error("this column is added twice"));
        }
        columns.push((column, expect_type(cursor)?));
        if !cursor.accept_token(&Token::Comma) {
            break;
        }
    }
    Ok(Statement::Alter(Alter {
        kind,
        name,
        columns,
    }))
}

/// `name SET (setting = value, ..)` or `name RESET (setting, ..)`, as PostgreSQL changes what a table is stored by.
fn alter_topic(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let topic = source::expect_topic(cursor)?;
    let resets = cursor.accept("reset");
    if !resets {
        cursor.expect("set")?;
    }
    let mut changes = Vec::new();
    let mut names = HashSet::new();
    cursor.expect_token(&Token::LParen)?;
    loop {
        let start = cursor.index();
        let name = expect_property_name(cursor)?;
        if !names.insert(name.clone()) {
            cursor.rewind(start);
            return Err(cursor.error("this setting is given twice"));
        }
        let value = match resets {
            true => None,
            false => {
                cursor.expect_token(&Token::Eq)?;
                match cursor.accept("default") {
                    true => None,
                    false => Some(property_text(expect_property_value(cursor)?)),
                }
            }
        };
        changes.push((name, value));
        if !cursor.accept_token(&Token::Comma) {
            break;
        }
    }
    cursor.expect_token(&Token::RParen)?;
    Ok(Statement::AlterTopic(AlterTopic { topic, changes }))
}

fn property_text(value: PropertyValue) -> String {
    match value {
        PropertyValue::String(text) | PropertyValue::Number(text) => text,
        PropertyValue::Boolean(value) => value.to_string(),
    }
}

/// Takes STREAM or TABLE.
pub(super) fn accept_kind(cursor: &mut Cursor) -> Option<SourceKind> {
    match cursor.accept_one_of(&["stream", "table"])? {
        "stream" => Some(SourceKind::Stream),
        _ => Some(SourceKind::Table),
    }
}

/// `(name type [KEY | PRIMARY KEY | HEADERS | HEADER('key')], .. [, PRIMARY KEY (name, ..)])`.
fn expect_columns(cursor: &mut Cursor) -> Result<Vec<ColumnDef>, SqlError> {
    let mut columns: Vec<ColumnDef> = Vec::new();
    let mut names = HashSet::new();
    cursor.expect_token(&Token::LParen)?;
    loop {
        if cursor.at_words(&["primary", "key"]) && cursor.peek_at(2) == Some(&Token::LParen) {
            mark_primary_key(cursor, &mut columns)?;
        } else {
            let start = cursor.index();
            let column = expect_column(cursor)?;
            if !names.insert(column.name.clone()) {
                cursor.rewind(start);
                return Err(cursor.error("this column is declared twice"));
            }
            columns.push(column);
        }
        if !cursor.accept_token(&Token::Comma) {
            break;
        }
    }
    cursor.expect_token(&Token::RParen)?;
    Ok(columns)
}

fn expect_column(cursor: &mut Cursor) -> Result<ColumnDef, SqlError> {
    let name = cursor.expect_name("the name of a column")?;
    let data_type = expect_type(cursor)?;
    let role = if cursor.accept_words(&["primary", "key"]) {
        ColumnRole::PrimaryKey
    } else if cursor.accept("key") {
        ColumnRole::Key
    } else if cursor.accept("headers") {
        ColumnRole::Headers
    } else if cursor.accept("header") {
        cursor.expect_token(&Token::LParen)?;
        let key = cursor.expect_string("the key of a header in single quotes")?;
        cursor.expect_token(&Token::RParen)?;
        ColumnRole::Header(key)
    } else {
        ColumnRole::Value
    };
    match cursor.word() {
        None => Ok(ColumnDef {
            name,
            data_type,
            role,
        }),
        Some("not" | "null") => Err(cursor
            .unsupported("NULL and NOT NULL of a column")
            .with_hint("every value column can be NULL")),
        Some(
            word @ ("default" | "unique" | "check" | "references" | "generated" | "collate"
            | "constraint"),
        ) => {
            let what = format!("{} of a column", word.to_uppercase());
            Err(cursor.unsupported(what))
        }
        Some(_) => Err(cursor.expected("KEY, PRIMARY KEY, HEADERS, \",\" or \")\"")),
    }
}

/// PostgreSQL's `PRIMARY KEY (a, b)` behind the columns.
fn mark_primary_key(cursor: &mut Cursor, columns: &mut [ColumnDef]) -> Result<(), SqlError> {
    let start = cursor.index();
    if columns
        .iter()
        .any(|column| column.role == ColumnRole::PrimaryKey)
    {
        return Err(cursor.error("the primary key is declared twice"));
    }
    cursor.accept_words(&["primary", "key"]);
    let names: HashSet<String> = cursor
        .expect_name_list("the name of a column")?
        .into_iter()
        .collect();
    let mut found = 0;
    for column in columns
        .iter_mut()
        .filter(|column| names.contains(&column.name))
    {
        column.role = ColumnRole::PrimaryKey;
        found += 1;
    }
    if found < names.len() {
        cursor.rewind(start);
        return Err(cursor.error("the primary key names a column that is not declared before it"));
    }
    Ok(())
}
