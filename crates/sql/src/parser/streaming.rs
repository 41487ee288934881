//! Lifting the streaming clauses out of a query's tokens.
//!
//! `WINDOW kind (..)`, `PARTITION BY ..` and `EMIT ..` of the outermost SELECT may stand anywhere behind its FROM; what is left is
//! standard SQL. A clause is told from a name by its neighbours: `EMIT` by the word behind it and by not standing where an operand or a
//! table is due, `WINDOW` by the kind and the bracket behind it, `PARTITION BY` by not being inside `OVER (..)` or `WINDOW w AS (..)`.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::ast::{Emit, Window, WindowKind};
use crate::cursor::Cursor;
use crate::duration::{expect_duration, expect_positive_duration};
use crate::error::{Span, SqlError};
use crate::standard::Source;

/// A query's tokens without the streaming clauses, and those clauses.
#[derive(Debug)]
pub(super) struct Lifted {
    pub tokens: Vec<TokenWithSpan>,
    pub window: Option<Window>,
    pub partition_by: Option<Vec<TokenWithSpan>>,
    pub emit: Option<Emit>,
}

/// Takes the streaming clauses out of `tokens`.
pub(super) fn lift(source: Source, tokens: Vec<TokenWithSpan>) -> Result<Lifted, SqlError> {
    let clauses = find(source, &tokens)?;
    let mut lifted = Lifted {
        tokens: Vec::with_capacity(tokens.len()),
        window: None,
        partition_by: None,
        emit: None,
    };
    let mut tokens = tokens.into_iter();
    let mut at = 0;
    for (clause, range) in clauses {
        lifted.tokens.extend(tokens.by_ref().take(range.start - at));
        let taken: Vec<TokenWithSpan> = tokens.by_ref().take(range.len()).collect();
        at = range.end;
        match clause {
            Clause::Window => lifted.window = Some(parse_window(source, taken)?),
            Clause::PartitionBy => lifted.partition_by = Some(taken.into_iter().skip(2).collect()),
            Clause::Emit(emit) => lifted.emit = Some(emit),
        }
    }
    lifted.tokens.extend(tokens);
    Ok(lifted)
}

/// A streaming clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clause {
    Window,
    PartitionBy,
    Emit(Emit),
}

impl Clause {
    fn name(self) -> &'static str {
        match self {
            Self::Window => "WINDOW",
            Self::PartitionBy => "PARTITION BY",
            Self::Emit(_) => "EMIT",
        }
    }

    /// Whether this clause can be told from `other` by its keyword.
    fn is_same_kind(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// Where the streaming clauses stand, in order.
fn find(source: Source, tokens: &[TokenWithSpan]) -> Result<Vec<(Clause, Range<usize>)>, SqlError> {
    let mut found: Vec<(Clause, Range<usize>)> = Vec::new();
    let mut depth = 0_usize;
    let mut seen_from = false;
    let mut set_operator = false;
    let mut at = 0;
    while at < tokens.len() {
        let span = || source.places.span(tokens[at].span);
        refuse_clause_as_table(source, tokens, at)?;
        match &tokens[at].token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            Token::Word(_) if depth == 0 && is_from(tokens, at) => seen_from = true,
            Token::Word(_)
                if depth == 0 && is_any(tokens, at, &["union", "intersect", "except"]) =>
            {
                set_operator = true
            }
            Token::Word(_) => refuse_join_window(source, tokens, at)?,
            Token::CustomBinaryOperator(operator) if operator == "->*" => {
                return Err(SqlError::unsupported("\"->*\"", span())
                    .with_hint("name the fields of the struct"));
            }
            _ => {}
        }
        let Some(clause) = clause_at(tokens, at) else {
            at += 1;
            continue;
        };
        if clause == Clause::PartitionBy && (depth > 0 || !seen_from) {
            at += 1;
            continue;
        }
        if depth > 0 {
            return Err(
                SqlError::unsupported(format!("{} in a subquery", clause.name()), span())
                    .with_hint("make the inner query a table of its own with CREATE TABLE .. AS"),
            );
        }
        if found.iter().any(|(other, _)| other.is_same_kind(clause)) {
            return Err(SqlError::syntax(
                source.places.script,
                span(),
                format!("{} is given twice", clause.name()),
            ));
        }
        let end = match clause {
            Clause::Window => {
                close_of(tokens, at + 2).ok_or_else(|| {
                    SqlError::syntax(
                        source.places.script,
                        source.places.span(tokens[at + 2].span),
                        "this bracket is never closed",
                    )
                })? + 1
            }
            Clause::PartitionBy => end_of_list(tokens, at + 2),
            Clause::Emit(_) => at + 2,
        };
        found.push((clause, at..end));
        at = end;
    }
    let in_branch = found
        .iter()
        .find(|(clause, _)| set_operator && !matches!(clause, Clause::Emit(_)));
    if let Some((clause, range)) = in_branch {
        let what = format!("{} beside UNION, INTERSECT or EXCEPT", clause.name());
        return Err(
            SqlError::unsupported(what, source.places.span(tokens[range.start].span))
                .with_hint("make each branch a table of its own with CREATE TABLE .. AS"),
        );
    }
    Ok(found)
}

/// The streaming clause that starts at token `at`.
fn clause_at(tokens: &[TokenWithSpan], at: usize) -> Option<Clause> {
    if is_any(tokens, at, &["emit"]) && !operand_is_due(tokens, at) {
        if is_any(tokens, at + 1, &["changes"]) {
            return Some(Clause::Emit(Emit::Changes));
        }
        if is_any(tokens, at + 1, &["final"]) {
            return Some(Clause::Emit(Emit::Final));
        }
    }
    let opens = matches!(tokens.get(at + 2), Some(token) if token.token == Token::LParen);
    if is_any(tokens, at, &["window"])
        && is_any(tokens, at + 1, &["tumbling", "hopping", "session"])
        && opens
        && !operand_is_due(tokens, at)
    {
        return Some(Clause::Window);
    }
    (is_any(tokens, at, &["partition"]) && is_any(tokens, at + 1, &["by"]))
        .then_some(Clause::PartitionBy)
}

/// Whether the token at `at` stands where a table, a name or an operand must come, so that it cannot begin a clause.
pub(crate) fn operand_is_due(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Some(previous) = at.checked_sub(1).map(|before| &tokens[before].token) else {
        return true;
    };
    match previous {
        Token::Word(Word {
            quote_style: Some(_),
            ..
        }) => false,
        Token::Word(_) => is_any(
            tokens,
            at - 1,
            &[
                "all", "and", "as", "between", "by", "case", "distinct", "else", "from", "having",
                "in", "is", "join", "like", "not", "on", "or", "select", "then", "when", "where",
            ],
        ),
        Token::RParen | Token::RBracket | Token::RBrace => false,
        Token::Number(..) | Token::Placeholder(_) | Token::Mul => false,
        Token::SingleQuotedString(_) => false,
        _ => true,
    }
}

/// The standard parser takes any word for a table's name, so `FROM WHERE ..` would ask for a table called "where".
fn refuse_clause_as_table(
    source: Source,
    tokens: &[TokenWithSpan],
    at: usize,
) -> Result<(), SqlError> {
    let clauses = &[
        "where",
        "group",
        "having",
        "order",
        "limit",
        "on",
        "join",
        "from",
        "union",
        "intersect",
        "except",
        "using",
    ];
    if is_any(tokens, at, &["from", "join"]) && is_any(tokens, at + 1, clauses) {
        return Err(SqlError::syntax(
            source.places.script,
            source.places.span(tokens[at + 1].span),
            "expected a table",
        ));
    }
    Ok(())
}

/// `JOIN t WITHIN 1 HOUR ON ..` is ksqlDB's; `WITHIN GROUP (..)` is standard.
fn refuse_join_window(source: Source, tokens: &[TokenWithSpan], at: usize) -> Result<(), SqlError> {
    let measures = matches!(
        tokens.get(at + 1).map(|token| &token.token),
        Some(Token::Number(..) | Token::LParen)
    );
    if is_any(tokens, at, &["within"]) && measures && !operand_is_due(tokens, at) {
        return Err(SqlError::unsupported(
            "WITHIN in a join",
            source.places.span(tokens[at].span),
        ));
    }
    Ok(())
}

/// The index of the bracket that closes the one at `open`.
fn close_of(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// Where a list of expressions ends: at the next clause of the same SELECT.
fn end_of_list(tokens: &[TokenWithSpan], start: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(start) {
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            Token::Word(_) if depth == 0 => {
                let ends = &[
                    "where",
                    "group",
                    "having",
                    "order",
                    "limit",
                    "offset",
                    "fetch",
                    "union",
                    "intersect",
                    "except",
                    "for",
                ];
                let named_window =
                    is_any(tokens, index, &["window"]) && is_any(tokens, index + 2, &["as"]);
                if is_any(tokens, index, ends) || named_window || clause_at(tokens, index).is_some()
                {
                    return index;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Whether the token at `at` is the FROM of a query, and not that of `IS DISTINCT FROM`.
pub(crate) fn is_from(tokens: &[TokenWithSpan], at: usize) -> bool {
    is_any(tokens, at, &["from"]) && !(at > 0 && is_any(tokens, at - 1, &["distinct"]))
}

/// Whether the token at `at` is one of these words, without quotes.
pub(crate) fn is_any(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(Word {
            value,
            quote_style: None,
            ..
        })) => words.contains(&value.as_str()),
        _ => false,
    }
}

/// `WINDOW TUMBLING (SIZE n unit)`, `HOPPING (SIZE n unit, ADVANCE BY n unit)` or `SESSION (n unit)`, each with
/// `RETENTION n unit` and `GRACE PERIOD n unit` behind.
fn parse_window(source: Source, tokens: Vec<TokenWithSpan>) -> Result<Window, SqlError> {
    let end = tokens
        .last()
        .map_or(source.end, |token| source.places.span(token.span).start);
    let mut cursor = Cursor::new(source.places, source.limits, tokens, end);
    cursor.expect("window")?;
    let kind = cursor.expect_one_of(&["tumbling", "hopping", "session"])?;
    cursor.expect_token(&Token::LParen)?;
    let kind = match kind {
        "tumbling" => WindowKind::Tumbling {
            size: expect_size(&mut cursor)?,
        },
        "hopping" => expect_hopping(&mut cursor)?,
        _ => WindowKind::Session {
            gap: expect_positive_duration(&mut cursor)?,
        },
    };
    let mut window = Window {
        kind,
        retention: None,
        grace: None,
    };
    while cursor.accept_token(&Token::Comma) {
        let start = cursor.span();
        let repeated = if cursor.accept("retention") {
            window
                .retention
                .replace(expect_positive_duration(&mut cursor)?)
        } else if cursor.accept_words(&["grace", "period"]) {
            window.grace.replace(expect_duration(&mut cursor)?)
        } else {
            return Err(cursor.expected("RETENTION or GRACE PERIOD"));
        };
        if repeated.is_some() {
            return Err(SqlError::syntax(
                source.places.script,
                start,
                "this part of the window is given twice",
            ));
        }
    }
    cursor.expect_token(&Token::RParen)?;
    cursor.expect_end()?;
    Ok(window)
}

fn expect_size(cursor: &mut Cursor) -> Result<std::time::Duration, SqlError> {
    cursor.expect("size")?;
    expect_positive_duration(cursor)
}

/// The inside of `HOPPING (..)`: every record must fall into a window, so the advance is at most the size.
fn expect_hopping(cursor: &mut Cursor) -> Result<WindowKind, SqlError> {
    let size = expect_size(cursor)?;
    cursor.expect_token(&Token::Comma)?;
    let start = cursor.span();
    if !cursor.accept_words(&["advance", "by"]) {
        return Err(cursor.expected("ADVANCE BY"));
    }
    let advance = expect_positive_duration(cursor)?;
    if advance > size {
        let span = Span::new(start.start, start.end);
        return Err(SqlError::syntax(
            cursor.script(),
            span,
            "the advance of a window must not be longer than its size",
        ));
    }
    Ok(WindowKind::Hopping { size, advance })
}
