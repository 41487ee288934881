//! Handing the standard parts (queries, expressions, rows) to the standard parser.
//!
//! INVARIANT: no list of tokens reaches the standard parser before [`shape::check`] has bounded how deep it recurses and how deep a tree
//! it makes, and none is parsed with less stack than that may need. The standard parser can grow its stack by itself (its feature
//! `recursive-protection`), but not on every path, and by less than an unoptimized build takes. Dropping, cloning and comparing a tree
//! recurse on the caller's stack: the bounds keep them within one megabyte in an optimized build, three in others.

mod shape;

use sqlparser::ast as std_ast;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::HighwaterDialect;
use crate::error::{Span, SqlError};
use crate::limits::Limits;
use crate::token::span_of;

/// Nesting up to which the caller's own stack is enough: for some 300 kilobytes in an optimized build, a megabyte in others.
const SHALLOW_DEPTH: usize = if cfg!(debug_assertions) { 3 } else { 12 };

/// What the standard parser's own counter allows for one level of ours: a subquery costs it up to three.
const COUNTS_PER_LEVEL: usize = 3;

/// Counts it may take beyond nesting.
const COUNTS_BASE: usize = 24;

/// Stack for one of the counter's levels; unoptimized builds need about half of it.
const STACK_PER_COUNT: usize = 128 * 1024;

/// Where the tokens given to the standard parser came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    /// The script that spans are about.
    pub script: &'a str,
    /// The bounds to keep to.
    pub limits: &'a Limits,
    /// Where an error at the end of the tokens points to.
    pub end: usize,
}

/// Parses a query.
pub(crate) fn parse_query(
    source: Source,
    tokens: Vec<TokenWithSpan>,
) -> Result<Box<std_ast::Query>, SqlError> {
    parse_all(source, tokens, |parser| parser.parse_query())
}

/// Parses expressions separated by commas.
pub(crate) fn parse_expressions(
    source: Source,
    tokens: Vec<TokenWithSpan>,
) -> Result<Vec<std_ast::Expr>, SqlError> {
    parse_all(source, tokens, |parser| {
        parser.parse_comma_separated(Parser::parse_expr)
    })
}

/// Runs `parse` over all of `tokens`.
fn parse_all<T: Send>(
    source: Source,
    tokens: Vec<TokenWithSpan>,
    parse: impl FnOnce(&mut Parser) -> Result<T, ParserError> + Send,
) -> Result<T, SqlError> {
    let depth = shape::check(source, &tokens)?;
    let counts = depth * COUNTS_PER_LEVEL + COUNTS_BASE;
    if depth <= SHALLOW_DEPTH {
        return run(source, tokens, counts, parse);
    }
    // A thread of its own is the one portable way to have a larger stack.
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .name("sql-parse".to_string())
            .stack_size(counts * STACK_PER_COUNT)
            .spawn_scoped(scope, move || run(source, tokens, counts, parse));
        match worker.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Err(SqlError::TooComplex {
                what: "no thread is left to parse it on".to_string(),
                span: Span::new(source.end, source.end),
            }),
        }
    })
}

/// Runs `parse` over all of `tokens` on this stack.
fn run<T>(
    source: Source,
    tokens: Vec<TokenWithSpan>,
    counts: usize,
    parse: impl FnOnce(&mut Parser) -> Result<T, ParserError>,
) -> Result<T, SqlError> {
    let count = tokens.len();
    let dialect = HighwaterDialect::for_tokens(count);
    let start = tokens
        .first()
        .map_or(source.end, |token| span_of(token.span).start);
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(counts)
        .with_tokens_with_locations(tokens);
    let result = parse(&mut parser);
    if dialect.is_exhausted() {
        return Err(SqlError::TooComplex {
            what: "nested alternatives take too long to parse".to_string(),
            span: Span::new(start, source.end),
        });
    }
    let value = result.map_err(|error| convert(source, &parser, count, start, error))?;
    let next = parser.peek_token_ref();
    if next.token != Token::EOF {
        return Err(SqlError::syntax(
            source.script,
            span_of(next.span),
            "expected the end of the statement",
        ));
    }
    Ok(value)
}

/// The standard parser's error in our terms. It tells the place in its message only.
fn convert(
    source: Source,
    parser: &Parser,
    count: usize,
    start: usize,
    error: ParserError,
) -> SqlError {
    let message = match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
        ParserError::RecursionLimitExceeded => {
            return SqlError::TooComplex {
                what: "nested too deeply".to_string(),
                span: Span::new(start, source.end),
            };
        }
    };
    let (message, offset) = split_location(&message);
    let span = match offset {
        Some(offset) => token_at(parser, count, offset),
        None if message.ends_with("found: EOF") => Span::new(source.end, source.end),
        None => token_at(parser, count, start),
    };
    SqlError::syntax(source.script, span, reword(message))
}

/// The place of the token that starts at byte `offset`, among the parser's `count` tokens.
fn token_at(parser: &Parser, count: usize, offset: usize) -> Span {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if span_of(parser.token_at(middle).span).start < offset {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if low < count {
        span_of(parser.token_at(low).span)
    } else {
        Span::new(offset, offset)
    }
}

/// Cuts ` at Line: 1, Column: n` off a message; the column is an offset plus one, as the tokens have it.
fn split_location(message: &str) -> (&str, Option<usize>) {
    let Some((text, place)) = message.rsplit_once(" at Line: ") else {
        return (message, None);
    };
    let column = place
        .rsplit_once("Column: ")
        .and_then(|(_, column)| column.trim().parse::<usize>().ok());
    match column {
        Some(column) if column > 0 => (text, Some(column - 1)),
        _ => (text, None),
    }
}

/// `Expected: an expression, found: FROM` to `expected an expression`, since our errors name the token themselves.
fn reword(message: &str) -> String {
    if message.starts_with("No infix parser for token") {
        // The rest is the token as the standard parser's programmers see it.
        return "unexpected operator".to_string();
    }
    match message.strip_prefix("Expected: ") {
        Some(rest) => format!(
            "expected {}",
            rest.rsplit_once(", found: ").map_or(rest, |(what, _)| what)
        ),
        None => message.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_reworded_and_located() {
        assert_eq!(
            split_location("Expected: x, found: y at Line: 1, Column: 5"),
            ("Expected: x, found: y", Some(4))
        );
        assert_eq!(split_location("no place"), ("no place", None));
        assert_eq!(reword("Expected: x, found: y"), "expected x");
        assert_eq!(
            reword("Expected: a, found: b, found: EOF"),
            "expected a, found: b"
        );
        assert_eq!(reword("duplicate alias a"), "duplicate alias a");
    }
}
