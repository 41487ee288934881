//! Lifting the streaming clauses out of a query's tokens.
//!
//! `WINDOW kind (..)`, `PARTITION BY ..` and `EMIT ..` of the outermost SELECT may stand anywhere behind its FROM, and `WITHIN ..` behind
//! the right side of a join; what is left is standard SQL. A clause is told from a name by its neighbours: `EMIT` by the word behind it and
//! by not standing where an operand or a table is due, `WINDOW` by the kind and the bracket behind it, `PARTITION BY` by not being inside
//! `OVER (..)` or `WINDOW w AS (..)`, `WITHIN` by the number or bracket behind it.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::windows;
use crate::ast::{Changes, ChangesStart, Emit, Window, Within};
use crate::error::SqlError;
use crate::origin::Origin;

/// A query's tokens without the streaming clauses, and those clauses.
#[derive(Debug)]
pub(super) struct Lifted {
    pub tokens: Vec<TokenWithSpan>,
    pub within: Vec<Within>,
    pub window: Option<Window>,
    pub partition_by: Option<Vec<TokenWithSpan>>,
    pub emit: Option<Emit>,
}

/// Streaming clauses of one query at the most: as many sources as one join ever has, and a few.
const MAX_CLAUSES: usize = 256;

/// Takes the streaming clauses out of `tokens`.
pub(super) fn lift(origin: Origin, tokens: Vec<TokenWithSpan>) -> Result<Lifted, SqlError> {
    let clauses = find(origin, &tokens)?;
    let mut lifted = Lifted {
        tokens: Vec::with_capacity(tokens.len()),
        within: Vec::new(),
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
            Clause::Within(join) => lifted.within.push(windows::within(origin, taken, join)?),
            Clause::Window => lifted.window = Some(windows::window(origin, taken)?),
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
    /// Of the join with this number.
    Within(usize),
    Window,
    PartitionBy,
    Emit(Emit),
}

impl Clause {
    fn name(self) -> &'static str {
        match self {
            Self::Within(_) => "WITHIN",
            Self::Window => "WINDOW",
            Self::PartitionBy => "PARTITION BY",
            Self::Emit(_) => "EMIT",
        }
    }

    /// Whether the `other` clause of the same query says the same as this one.
    fn repeats(self, other: Self) -> bool {
        match (self, other) {
            (Self::Within(join), Self::Within(other)) => join == other,
            _ => std::mem::discriminant(&self) == std::mem::discriminant(&other),
        }
    }
}

/// Where the streaming clauses stand, in order.
fn find(origin: Origin, tokens: &[TokenWithSpan]) -> Result<Vec<(Clause, Range<usize>)>, SqlError> {
    let mut found: Vec<(Clause, Range<usize>)> = Vec::new();
    let mut depth = 0_usize;
    let mut seen_from = false;
    let mut set_operator = false;
    let mut joins = 0_usize;
    let mut at = 0;
    while at < tokens.len() {
        let span = || origin.places.span(tokens[at].span);
        refuse_clause_as_table(origin, tokens, at)?;
        match &tokens[at].token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            Token::Word(_) if depth == 0 && is_from(tokens, at) => seen_from = true,
            Token::Word(_)
                if depth == 0 && is_any(tokens, at, &["union", "intersect", "except"]) =>
            {
                set_operator = true
            }
            Token::Word(_) if depth == 0 && is_any(tokens, at, &["join"]) => joins += 1,
            _ => {}
        }
        let Some(mut clause) = clause_at(tokens, at, joins) else {
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
        if found.iter().any(|(other, _)| clause.repeats(*other)) {
            return Err(SqlError::syntax(
                origin.places.script,
                span(),
                format!("{} is given twice", clause.name()),
            ));
        }
        let end = match clause {
            Clause::Within(_) => end_of_within(origin, tokens, at + 1)?,
            Clause::Window => expect_close(origin, tokens, at + 2)? + 1,
            Clause::PartitionBy => end_of_list(tokens, at + 2),
            Clause::Emit(Emit::Final) => at + 2,
            Clause::Emit(Emit::Changes(_)) => {
                let (changes, end) = changes(origin, tokens, at + 2)?;
                clause = Clause::Emit(Emit::Changes(changes));
                end
            }
        };
        if found.len() == MAX_CLAUSES {
            return Err(SqlError::TooComplex {
                what: format!("more than {MAX_CLAUSES} joins with WITHIN"),
                span: span(),
            });
        }
        found.push((clause, at..end));
        at = end;
    }
    let in_branch = found
        .iter()
        .find(|(clause, _)| set_operator && !matches!(clause, Clause::Emit(_)));
    if let Some((clause, range)) = in_branch {
        let what = format!("{} beside UNION, INTERSECT or EXCEPT", clause.name());
        return Err(
            SqlError::unsupported(what, origin.places.span(tokens[range.start].span))
                .with_hint("make each branch a table of its own with CREATE TABLE .. AS"),
        );
    }
    Ok(found)
}

/// The streaming clause that starts at token `at`, behind so many joins.
fn clause_at(tokens: &[TokenWithSpan], at: usize, joins: usize) -> Option<Clause> {
    let measures = matches!(
        tokens.get(at + 1).map(|token| &token.token),
        Some(Token::Number(..) | Token::LParen)
    );
    if is_any(tokens, at, &["within"]) && measures && !operand_is_due(tokens, at) {
        return Some(Clause::Within(joins.saturating_sub(1)));
    }
    if is_any(tokens, at, &["emit"]) && !operand_is_due(tokens, at) {
        if is_any(tokens, at + 1, &["changes"]) {
            return Some(Clause::Emit(Emit::Changes(Changes::default())));
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

/// What stands behind `EMIT CHANGES`: `WITH SNAPSHOT`, `WITH STEP` or both in one list, and `AFTER STEP n`. Answers where it ends, too.
fn changes(
    origin: Origin,
    tokens: &[TokenWithSpan],
    start: usize,
) -> Result<(Changes, usize), SqlError> {
    let mut changes = Changes::default();
    let mut at = start;
    loop {
        let listed =
            at > start && matches!(tokens.get(at), Some(token) if token.token == Token::Comma);
        let first = is_any(tokens, at, &["with"]);
        if (first || listed) && is_any(tokens, at + 1, &["snapshot", "step"]) {
            let repeated = match is_any(tokens, at + 1, &["step"]) {
                true => std::mem::replace(&mut changes.with_step, true),
                false => set_start(&mut changes, ChangesStart::Snapshot),
            };
            refuse_repetition(origin, tokens, at + 1, repeated)?;
            at += 2;
        } else if is_any(tokens, at, &["after"]) {
            let step = step_number(origin, tokens, at)?;
            let repeated = set_start(&mut changes, ChangesStart::After(step));
            refuse_repetition(origin, tokens, at, repeated)?;
            at += 3;
        } else {
            return Ok((changes, at));
        }
    }
}

/// Sets with which change a query begins; answers whether something else did so before.
fn set_start(changes: &mut Changes, start: ChangesStart) -> bool {
    std::mem::replace(&mut changes.start, start) != ChangesStart::Setting
}

fn refuse_repetition(
    origin: Origin,
    tokens: &[TokenWithSpan],
    at: usize,
    repeated: bool,
) -> Result<(), SqlError> {
    if !repeated {
        return Ok(());
    }
    let span = origin.places.span(tokens[at].span);
    Err(SqlError::syntax(
        origin.places.script,
        span,
        "EMIT CHANGES takes SNAPSHOT or AFTER STEP once, and STEP once",
    ))
}

/// The number of `AFTER STEP n`, whose first word stands at `at`.
fn step_number(origin: Origin, tokens: &[TokenWithSpan], at: usize) -> Result<u64, SqlError> {
    let number = match tokens.get(at + 2).map(|token| &token.token) {
        Some(Token::Number(digits, _)) if is_any(tokens, at + 1, &["step"]) => {
            digits.parse().ok().filter(|step| *step <= i64::MAX as u64)
        }
        _ => None,
    };
    number.ok_or_else(|| {
        let last = (at + 2).min(tokens.len() - 1);
        SqlError::syntax(
            origin.places.script,
            origin.places.span(tokens[last].span),
            "expected AFTER STEP and the number of a step",
        )
    })
}

/// Whether the token at `at` stands where a table, a name or an operand must come, so that it cannot begin a clause.
pub(crate) fn operand_is_due(tokens: &[TokenWithSpan], at: usize) -> bool {
    // A star that stands where an operand is due is a wildcard and needs nothing behind it; any other multiplies what comes next.
    let stars = tokens[..at]
        .iter()
        .rev()
        .take_while(|token| token.token == Token::Mul)
        .count();
    let before_stars = at - stars;
    let multiplies = stars % 2 == 1;
    let Some(previous) = before_stars
        .checked_sub(1)
        .map(|before| &tokens[before].token)
    else {
        return !multiplies;
    };
    let due = match previous {
        Token::Word(Word {
            quote_style: Some(_),
            ..
        }) => false,
        Token::Word(_) => is_any(
            tokens,
            before_stars - 1,
            &[
                "all", "and", "as", "between", "by", "case", "distinct", "else", "from", "having",
                "in", "is", "join", "like", "not", "on", "or", "select", "then", "when", "where",
            ],
        ),
        Token::RParen | Token::RBracket | Token::RBrace => false,
        Token::Number(..) | Token::Placeholder(_) => false,
        Token::SingleQuotedString(_) => false,
        _ => true,
    };
    due != multiplies
}

/// The standard parser takes any word for a table's name, so `FROM WHERE ..` would ask for a table called "where".
fn refuse_clause_as_table(
    origin: Origin,
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
            origin.places.script,
            origin.places.span(tokens[at + 1].span),
            "expected a table",
        ));
    }
    Ok(())
}

/// Where `n unit` or `(n unit, n unit)`, with `GRACE PERIOD n unit` behind it, ends.
fn end_of_within(
    origin: Origin,
    tokens: &[TokenWithSpan],
    start: usize,
) -> Result<usize, SqlError> {
    let end = match tokens.get(start).map(|token| &token.token) {
        Some(Token::LParen) => expect_close(origin, tokens, start)? + 1,
        _ => start + 2,
    };
    let has_grace = is_any(tokens, end, &["grace"]) && is_any(tokens, end + 1, &["period"]);
    Ok(tokens.len().min(if has_grace { end + 4 } else { end }))
}

/// The index of the bracket that closes the one at `open`, which must be there.
fn expect_close(origin: Origin, tokens: &[TokenWithSpan], open: usize) -> Result<usize, SqlError> {
    close_of(tokens, open).ok_or_else(|| {
        let span = origin.places.span(tokens[open].span);
        SqlError::syntax(origin.places.script, span, "this bracket is never closed")
    })
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
                if is_any(tokens, index, ends)
                    || named_window
                    || clause_at(tokens, index, 0).is_some()
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
