//! Queries: the streaming clauses by us, the rest by the standard parser.

use std::ops::Range;

use sqlparser::ast as std_ast;
use sqlparser::ast::SetExpr;
use sqlparser::tokenizer::Token;

use super::streaming::{self, Lifted};
use crate::ast::Query;
use crate::cursor::Cursor;
use crate::error::{Span, SqlError};
use crate::standard::{self, Source};

/// The query that all the remaining tokens make up.
pub(super) fn rest(cursor: &mut Cursor) -> Result<Query, SqlError> {
    query(cursor, cursor.index()..cursor.len())
}

/// The query in the parentheses that the cursor is at.
pub(super) fn in_parentheses(cursor: &mut Cursor) -> Result<Query, SqlError> {
    let close = cursor.find_close()?;
    let query = query(cursor, cursor.index() + 1..close)?;
    cursor.expect_token(&Token::RParen)?;
    Ok(query)
}

/// The query that the tokens of `range` make up; leaves the cursor behind them.
fn query(cursor: &mut Cursor, range: Range<usize>) -> Result<Query, SqlError> {
    let behind = range.end;
    let range = strip_parentheses(cursor, range);
    let start = cursor.span_at(range.start);
    let end = cursor.span_at(range.end).start;
    let source = Source {
        places: cursor.places(),
        limits: cursor.limits(),
        end,
    };
    let tokens = cursor.take_tokens(range);
    cursor.rewind(behind);
    let Lifted {
        tokens,
        window,
        partition_by,
        emit,
    } = streaming::lift(source, tokens)?;
    let body = standard::parse_query(source, tokens)?;
    refuse_writes(&body, Span::new(start.start, end))?;
    let partition_by = match partition_by {
        Some(tokens) => standard::parse_expressions(source, tokens)?,
        None => Vec::new(),
    };
    Ok(Query {
        body,
        window,
        partition_by,
        emit,
    })
}

/// The range without parentheses around all of it.
fn strip_parentheses(cursor: &mut Cursor, mut range: Range<usize>) -> Range<usize> {
    loop {
        cursor.rewind(range.start);
        match cursor.find_close() {
            Ok(close) if cursor.at(&Token::LParen) && close + 1 == range.end => {
                range = range.start + 1..close
            }
            _ => return range,
        }
    }
}

/// The standard parser takes INSERT and its like for the body of a query.
fn refuse_writes(query: &std_ast::Query, span: Span) -> Result<(), SqlError> {
    let what = match innermost(&query.body) {
        SetExpr::Insert(_) => "INSERT in a query",
        SetExpr::Update(_) => "UPDATE",
        SetExpr::Delete(_) => "DELETE",
        SetExpr::Merge(_) => "MERGE",
        SetExpr::Select(select) if select.into.is_some() => {
            return Err(SqlError::unsupported("SELECT INTO", span)
                .with_hint("use CREATE TABLE .. AS SELECT .."));
        }
        _ => return Ok(()),
    };
    Err(SqlError::unsupported(what, span))
}

/// The left-most body that is not a set operation or a query in parentheses.
fn innermost(body: &SetExpr) -> &SetExpr {
    match body {
        SetExpr::SetOperation { left, .. } => innermost(left),
        SetExpr::Query(query) => innermost(&query.body),
        other => other,
    }
}
