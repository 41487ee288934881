//! `ASSERT`, in all its forms.

use sqlparser::ast as std_ast;
use sqlparser::tokenizer::Token;

use super::create::{self, accept_kind};
use super::properties::accept_properties;
use super::{query, source};
use crate::ast::{Assert, Statement};
use crate::cursor::Cursor;
use crate::duration::expect_duration;
use crate::error::SqlError;

/// `ASSERT [NOT EXISTS] TOPIC|SCHEMA ..`, `ASSERT VALUES ..`, `ASSERT NULL VALUES ..`, `ASSERT STREAM|TABLE ..`.
pub(super) fn assert(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("assert")?;
    let exists = !cursor.accept_words(&["not", "exists"]);
    let assert = if cursor.accept("topic") {
        topic(cursor, exists)?
    } else if cursor.accept("schema") {
        schema(cursor, exists)?
    } else if !exists {
        return Err(cursor.expected("TOPIC or SCHEMA"));
    } else if cursor.accept("values") {
        let (name, columns) = expect_target(cursor)?;
        cursor.expect("values")?;
        let values = expect_row(cursor)?;
        Assert::Values {
            name,
            columns,
            values,
        }
    } else if cursor.accept_words(&["null", "values"]) {
        let (name, columns) = expect_target(cursor)?;
        cursor.expect("key")?;
        let key = expect_row(cursor)?;
        Assert::NullValues { name, columns, key }
    } else if let Some(kind) = accept_kind(cursor) {
        let head = create::Head::of_assertion(kind);
        Assert::Source(create::expect_source(cursor, head)?)
    } else {
        return Err(cursor.expected("TOPIC, SCHEMA, VALUES, NULL VALUES, STREAM or TABLE"));
    };
    Ok(Statement::Assert(assert))
}

/// `name [WITH (..)] [TIMEOUT n unit]`.
fn topic(cursor: &mut Cursor, exists: bool) -> Result<Assert, SqlError> {
    Ok(Assert::Topic {
        name: source::expect_topic(cursor)?,
        with: accept_properties(cursor)?,
        exists,
        timeout: accept_timeout(cursor)?,
    })
}

/// `[SUBJECT s] [ID n] [TIMEOUT n unit]`.
fn schema(cursor: &mut Cursor, exists: bool) -> Result<Assert, SqlError> {
    let subject = match cursor.accept("subject") {
        true => Some(source::expect_topic(cursor)?),
        false => None,
    };
    let id = match cursor.accept("id") {
        true => Some(cursor.expect_count("the number of a schema")?),
        false => None,
    };
    if subject.is_none() && id.is_none() {
        return Err(cursor.expected("SUBJECT or ID"));
    }
    Ok(Assert::Schema {
        subject,
        id,
        exists,
        timeout: accept_timeout(cursor)?,
    })
}

fn accept_timeout(cursor: &mut Cursor) -> Result<Option<std::time::Duration>, SqlError> {
    match cursor.accept("timeout") {
        true => expect_duration(cursor).map(Some),
        false => Ok(None),
    }
}

/// `name [(columns)]`.
fn expect_target(cursor: &mut Cursor) -> Result<(String, Vec<String>), SqlError> {
    let name = cursor.expect_source_name()?;
    let columns = match cursor.at(&Token::LParen) {
        true => cursor.expect_name_list("the name of a column")?,
        false => Vec::new(),
    };
    Ok((name, columns))
}

/// `(value, ..)`.
fn expect_row(cursor: &mut Cursor) -> Result<Vec<std_ast::Expr>, SqlError> {
    if !cursor.at(&Token::LParen) {
        return Err(cursor.expected("values in parentheses"));
    }
    query::expressions_in_parentheses(cursor)
}
