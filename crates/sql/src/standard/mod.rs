//! Handing the standard parts (queries, expressions, rows) to the standard parser.
//!
//! INVARIANT: no list of tokens reaches the standard parser before [`shape::check`] has bounded how deep it recurses and how deep a tree
//! it makes, and none is parsed with less stack than that may need. The standard parser can grow its stack by itself (its feature
//! `recursive-protection`), but not on every path, and by less than an unoptimized build takes. Dropping, cloning and comparing a tree
//! recurse on the caller's stack: the bounds keep them within one megabyte in an optimized build, three in others.

mod cast_types;
mod shape;

use sqlparser::ast as std_ast;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::dialect::HighwaterDialect;
use crate::error::{Span, SqlError};
use crate::language::IdentifierCase;
use crate::origin::Origin;

/// Nesting up to which the caller's own stack is enough: for some 300 kilobytes in an optimized build, a megabyte in others.
const SHALLOW_DEPTH: usize = if cfg!(debug_assertions) { 3 } else { 12 };

/// What the standard parser's own counter allows for one level of ours: a subquery costs it up to three.
const COUNTS_PER_LEVEL: usize = 3;

/// Counts it may take beyond nesting.
const COUNTS_BASE: usize = 24;

/// Stack for one of the counter's levels; unoptimized builds need about half of it.
const STACK_PER_COUNT: usize = 128 * 1024;

/// Parses a query.
pub(crate) fn parse_query(
    origin: Origin,
    tokens: Vec<TokenWithSpan>,
) -> Result<Box<std_ast::Query>, SqlError> {
    parse_all(origin, tokens, |parser| parser.parse_query())
}

/// Parses expressions separated by commas.
pub(crate) fn parse_expressions(
    origin: Origin,
    tokens: Vec<TokenWithSpan>,
) -> Result<Vec<std_ast::Expr>, SqlError> {
    parse_all(origin, tokens, |parser| {
        parser.parse_comma_separated(Parser::parse_expr)
    })
}

/// Runs `parse` over all of `tokens`.
fn parse_all<T: Send>(
    origin: Origin,
    tokens: Vec<TokenWithSpan>,
    parse: impl FnOnce(&mut Parser) -> Result<T, ParserError> + Send,
) -> Result<T, SqlError> {
    let mut tokens = cast_types::rewrite(tokens);
    let depth = shape::check(origin, &tokens)?;
    fold_names(origin, &mut tokens);
    let counts = depth * COUNTS_PER_LEVEL + COUNTS_BASE;
    if depth <= SHALLOW_DEPTH {
        return run(origin, tokens, counts, parse);
    }
    // A thread of its own is the one portable way to have a larger stack.
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .name("sql-parse".to_string())
            .stack_size(counts * STACK_PER_COUNT)
            .spawn_scoped(scope, move || run(origin, tokens, counts, parse));
        match worker.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Err(SqlError::TooComplex {
                what: "no thread is left to parse it on".to_string(),
                span: Span::new(origin.end, origin.end),
            }),
        }
    })
}

/// Turns the words, which are in lower case, to the case of names. The standard parser knows keywords by their number, so keywords that
/// are turned along do no harm.
fn fold_names(origin: Origin, tokens: &mut [TokenWithSpan]) {
    if origin.language.identifier_case == IdentifierCase::Lower {
        return;
    }
    for token in tokens {
        if let Token::Word(word) = &mut token.token
            && word.quote_style.is_none()
        {
            word.value = origin.language.identifier_case.fold(&word.value);
        }
    }
}

/// Runs `parse` over all of `tokens` on this stack.
fn run<T>(
    origin: Origin,
    tokens: Vec<TokenWithSpan>,
    counts: usize,
    parse: impl FnOnce(&mut Parser) -> Result<T, ParserError>,
) -> Result<T, SqlError> {
    let count = tokens.len();
    let dialect = HighwaterDialect::new(origin.language.dialect, count);
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(counts)
        .with_tokens_with_locations(tokens);
    let result = parse(&mut parser);
    if dialect.is_exhausted() {
        return Err(SqlError::TooComplex {
            what: "nested alternatives take too long to parse".to_string(),
            span: whole(origin, &parser),
        });
    }
    let value = result.map_err(|error| convert(origin, &parser, count, error))?;
    let next = parser.peek_token_ref();
    if next.token != Token::EOF {
        return Err(SqlError::syntax(
            origin.places.script,
            origin.places.span(next.span),
            "expected the end of the statement",
        ));
    }
    Ok(value)
}

/// The bytes of all the parser's tokens.
fn whole(origin: Origin, parser: &Parser) -> Span {
    let start = origin.places.offset(parser.token_at(0).span.start);
    Span::new(start.min(origin.end), origin.end)
}

/// The standard parser's error in our terms. It tells the place in its message only.
fn convert(origin: Origin, parser: &Parser, count: usize, error: ParserError) -> SqlError {
    let message = match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
        ParserError::RecursionLimitExceeded => {
            let what = "nested too deeply".to_string();
            return SqlError::TooComplex {
                what,
                span: whole(origin, parser),
            };
        }
    };
    let (message, location) = split_location(&message);
    let token = match location {
        Some(location) => index_of(parser, count, location),
        None if message.ends_with("found: EOF") => count,
        None => 0,
    };
    let span = if token < count {
        origin.places.span(parser.token_at(token).span)
    } else {
        Span::new(origin.end, origin.end)
    };
    SqlError::syntax(origin.places.script, span, reword(message))
}

/// The index of the token that starts at `location`, among the parser's `count` tokens.
fn index_of(parser: &Parser, count: usize, location: Location) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if parser.token_at(middle).span.start < location {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Cuts ` at Line: n, Column: n` off a message.
fn split_location(message: &str) -> (&str, Option<Location>) {
    let Some((text, place)) = message.rsplit_once(" at Line: ") else {
        return (message, None);
    };
    let location = place.split_once(", Column: ").and_then(|(line, column)| {
        Some(Location::new(
            line.trim().parse().ok()?,
            column.trim().parse().ok()?,
        ))
    });
    (text, location)
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
            ("Expected: x, found: y", Some(Location::new(1, 5)))
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
