//! `INSERT INTO`.

use sqlparser::ast::{self as std_ast, SetExpr};
use sqlparser::tokenizer::Token;

use super::properties::accept_properties;
use super::query;
use crate::ast::{Insert, InsertSource, Properties, Query, Statement};
use crate::cursor::Cursor;
use crate::error::SqlError;

/// `INSERT INTO name [(columns)] VALUES (..), ..` or `INSERT INTO name [WITH (..)] [(columns)] query`.
pub(super) fn insert(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("insert")?;
    cursor.expect("into")?;
    let name = cursor.expect_source_name()?;
    let with_at = cursor.span();
    let with = match cursor.at_words(&["with"]) && cursor.peek_at(1) == Some(&Token::LParen) {
        true => accept_properties(cursor)?,
        false => Properties::default(),
    };
    let has_columns = cursor.at(&Token::LParen)
        && !matches!(cursor.word_at(1), Some("select" | "values" | "with"))
        && cursor.peek_at(1) != Some(&Token::LParen);
    let columns = if has_columns {
        expect_columns(cursor)?
    } else {
        Vec::new()
    };
    if cursor.at_words(&["default", "values"]) {
        return Err(cursor
            .unsupported("INSERT with DEFAULT VALUES")
            .with_hint("name the columns and their values"));
    }
    if !matches!(cursor.word(), Some("values" | "select" | "with" | "table"))
        && !cursor.at(&Token::LParen)
    {
        return Err(cursor.expected("VALUES or a query"));
    }
    refuse_suffixes(cursor)?;
    let source = match plain_values(query::rest(cursor)?) {
        Ok(_) if !with.0.is_empty() => {
            return Err(
                SqlError::unsupported("WITH (..) in INSERT .. VALUES", with_at)
                    .with_hint("it is for INSERT INTO .. SELECT"),
            );
        }
        Ok(rows) => InsertSource::Values(rows),
        Err(query) => InsertSource::Query(query),
    };
    Ok(Statement::Insert(Insert {
        name,
        with,
        columns,
        source,
    }))
}

fn expect_columns(cursor: &mut Cursor) -> Result<Vec<String>, SqlError> {
    let start = cursor.index();
    let columns = cursor.expect_name_list("the name of a column")?;
    let mut sorted: Vec<&String> = columns.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            cursor.rewind(start);
            Err(cursor.error(format!("column \"{}\" is named twice", pair[0])))
        }
        None => Ok(columns),
    }
}

/// Names what PostgreSQL allows behind the rows and we do not, where the standard parser would only stumble.
fn refuse_suffixes(cursor: &mut Cursor) -> Result<(), SqlError> {
    let start = cursor.index();
    let mut depth = 0_usize;
    while let Some(token) = cursor.peek() {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ if cursor.at_words(&["on", "conflict"]) => {
                return Err(cursor.unsupported("ON CONFLICT").with_hint(
                    "a row with the same primary key replaces the one before it in any case",
                ));
            }
            _ if cursor.at_words(&["returning"]) => return Err(cursor.unsupported("RETURNING")),
            _ => {}
        }
        cursor.next();
    }
    cursor.rewind(start);
    Ok(())
}

/// The rows of a query that is `VALUES` and nothing else; the query itself if it is more.
fn plain_values(query: Query) -> Result<Vec<Vec<std_ast::Expr>>, Query> {
    let body = &query.body;
    let is_bare = body.with.is_none()
        && body.order_by.is_none()
        && body.limit_clause.is_none()
        && body.fetch.is_none()
        && body.locks.is_empty()
        && body.for_clause.is_none()
        && query.within.is_empty()
        && query.window.is_none()
        && query.partition_by.is_empty()
        && query.emit.is_none();
    if !is_bare || !matches!(*body.body, SetExpr::Values(_)) {
        return Err(query);
    }
    match *query.body.body {
        SetExpr::Values(values) => Ok(values.rows.into_iter().map(|row| row.content).collect()),
        _ => Ok(Vec::new()),
    }
}
