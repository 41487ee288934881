//! `CREATE STREAM|TABLE`, over a topic or as a query.

use std::collections::HashSet;

use sqlparser::tokenizer::Token;

use super::properties::accept_properties;
use super::types::expect_type;
use super::{query, unsupported};
use crate::ast::{ColumnDef, ColumnRole, CreateAs, CreateSource, SourceKind, Statement};
use crate::cursor::Cursor;
use crate::error::SqlError;

/// `CREATE [OR REPLACE] STREAM|TABLE [IF NOT EXISTS] name [(columns)] [WITH (..)] [AS query]`.
pub(super) fn create(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let start = cursor.index();
    cursor.expect("create")?;
    let or_replace = cursor.accept_words(&["or", "replace"]);
    let Some(kind) = accept_kind(cursor) else {
        cursor.rewind(start);
        return Err(unsupported::statement(cursor));
    };
    let if_not_exists = cursor.accept_words(&["if", "not", "exists"]);
    let name = cursor.expect_source_name()?;
    let columns_at = cursor.span();
    let columns = if cursor.at(&Token::LParen) {
        Some(expect_columns(cursor)?)
    } else {
        None
    };
    let with = accept_properties(cursor)?;
    if !cursor.accept("as") {
        return match columns {
            Some(columns) => {
                cursor.expect_end()?;
                Ok(Statement::CreateSource(CreateSource {
                    kind,
                    or_replace,
                    if_not_exists,
                    name,
                    columns,
                    with,
                }))
            }
            None if cursor.at_end() => {
                Err(cursor.expected("columns in parentheses, or AS and a query"))
            }
            None => Err(cursor.expected("columns in parentheses, WITH or AS")),
        };
    }
    if columns.is_some() {
        return Err(
            SqlError::unsupported("a list of columns beside AS", columns_at)
                .with_hint("the query gives the columns: name them there with AS"),
        );
    }
    let query = query::rest(cursor)?;
    Ok(Statement::CreateAs(CreateAs {
        kind,
        or_replace,
        if_not_exists,
        name,
        with,
        query,
    }))
}

/// Takes STREAM or TABLE.
pub(super) fn accept_kind(cursor: &mut Cursor) -> Option<SourceKind> {
    match cursor.accept_one_of(&["stream", "table"])? {
        "stream" => Some(SourceKind::Stream),
        _ => Some(SourceKind::Table),
    }
}

/// `(name type [KEY | PRIMARY KEY], .. [, PRIMARY KEY (name, ..)])`.
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
            word @ ("headers" | "header" | "default" | "unique" | "check" | "references"
            | "generated" | "collate" | "constraint"),
        ) => {
            let what = format!("{} of a column", word.to_uppercase());
            Err(cursor.unsupported(what))
        }
        Some(_) => Err(cursor.expected("KEY, PRIMARY KEY, \",\" or \")\"")),
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
