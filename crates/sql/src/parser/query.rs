//! Queries: the streaming clauses by us, the rest by the standard parser.

use std::ops::Range;

use sqlparser::ast as std_ast;
use sqlparser::ast::SetExpr;
use sqlparser::tokenizer::Token;

use super::streaming::{self, Lifted};
use crate::ast::Query;
use crate::cursor::Cursor;
use crate::error::{Span, SqlError};
use crate::standard;

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

/// The expressions in the parentheses that the cursor is at, separated by commas.
pub(super) fn expressions_in_parentheses(
    cursor: &mut Cursor,
) -> Result<Vec<std_ast::Expr>, SqlError> {
    let close = cursor.find_close()?;
    let origin = cursor.origin(cursor.span_at(close).start);
    let tokens = cursor.take_tokens(cursor.index() + 1..close);
    cursor.rewind(close);
    cursor.expect_token(&Token::RParen)?;
    standard::parse_expressions(origin, tokens)
}

/// The query that the tokens of `range` make up; leaves the cursor behind them.
fn query(cursor: &mut Cursor, range: Range<usize>) -> Result<Query, SqlError> {
    let behind = range.end;
    let range = strip_parentheses(cursor, range);
    let start = cursor.span_at(range.start);
    let end = cursor.span_at(range.end).start;
    let origin = cursor.origin(end);
    let tokens = cursor.take_tokens(range);
    cursor.rewind(behind);
    let Lifted {
        tokens,
        within,
        window,
        partition_by,
        emit,
    } = streaming::lift(origin, tokens)?;
    let body = standard::parse_query(origin, tokens)?;
    refuse_writes(&body, Span::new(start.start, end))?;
    let partition_by = match partition_by {
        Some(tokens) => flatten(standard::parse_expressions(origin, tokens)?),
        None => Vec::new(),
    };
    Ok(Query {
        body,
        within,
        window,
        partition_by,
        emit,
    })
}

/// `(a, b)` in brackets, however many, is the same list as without.
fn flatten(mut list: Vec<std_ast::Expr>) -> Vec<std_ast::Expr> {
    loop {
        match <[std_ast::Expr; 1]>::try_from(list) {
            Ok([std_ast::Expr::Tuple(items)]) => return items,
            Ok([std_ast::Expr::Nested(item)]) => list = vec![*item],
            Ok(only) => return only.into(),
            Err(list) => return list,
        }
    }
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
