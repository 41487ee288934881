//! How deep and how long a tree the tokens can make, from the tokens alone.
//!
//! Three things make a tree deep: brackets (and CASE, and types in `<>`), prefixes in a row (`NOT NOT x`, `- - x`), and infixes in a row
//! (`a + b + c`, `a UNION b UNION c`), which are parsed in a loop but give a tree that leans to one side. Each is counted from above:
//! the result may be more than the tree's depth, never less.

use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::Source;
use crate::error::{Span, SqlError};
use crate::token::span_of;

/// What is counted inside one pair of brackets.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    /// Operators since the last separator.
    chain: usize,
    /// UNION, INTERSECT and EXCEPT.
    set_operators: usize,
    /// Prefixes and dots since the last separator.
    prefixes: usize,
    /// CASE without its END.
    cases: usize,
    /// `<` of types without their `>`.
    angles: usize,
    /// A query's SELECT was seen, so that FROM is its clause and not an argument of EXTRACT and the like.
    in_select: bool,
    /// A comma separates tables here.
    in_from: bool,
    /// A comma separates named subqueries here.
    in_with: bool,
}

/// Fails if the tokens pass a limit, else tells how deeply a parser may recurse over them.
pub(super) fn check(source: Source, tokens: &[TokenWithSpan]) -> Result<usize, SqlError> {
    let limits = source.limits;
    let mut levels = vec![Level::default()];
    // Sum over all open levels, kept up to date so that the check is linear.
    let mut outer = 0;
    let mut deepest = 0;
    let mut relations = 0;
    let mut previous = None;
    for token in tokens {
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                outer += 1 + levels.last().map_or(0, own_depth);
                levels.push(Level::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace if levels.len() > 1 => {
                levels.pop();
                outer -= 1 + levels.last().map_or(0, own_depth);
            }
            _ => {}
        }
        let Some(level) = levels.last_mut() else {
            continue;
        };
        relations += usize::from(count(level, &token.token, previous));
        let depth = outer + own_depth(level);
        deepest = deepest.max(depth);
        let span = span_of(token.span);
        if depth > limits.depth {
            return Err(too_complex(
                format!("nested deeper than {}", limits.depth),
                span,
            ));
        }
        if level.chain > limits.chain || level.set_operators > limits.chain {
            return Err(too_complex(
                format!("more than {} operators in a row", limits.chain),
                span,
            ));
        }
        if relations > limits.relations {
            return Err(too_complex(
                format!("more than {} tables and subqueries", limits.relations),
                span,
            ));
        }
        previous = Some(&token.token);
    }
    Ok(deepest)
}

fn own_depth(level: &Level) -> usize {
    level.prefixes + level.cases + level.angles
}

fn too_complex(what: String, span: Span) -> SqlError {
    SqlError::TooComplex { what, span }
}

/// Counts one token; true if it brings in a table, a join or a named subquery.
fn count(level: &mut Level, token: &Token, previous: Option<&Token>) -> bool {
    match token {
        Token::Word(Word {
            value,
            quote_style: None,
            ..
        }) => return count_word(level, value, previous),
        Token::Comma => {
            level.chain = 0;
            level.prefixes = 0;
            return level.in_from || level.in_with;
        }
        Token::Lt if previous.is_some_and(opens_type_arguments) => level.angles += 1,
        Token::Gt => {
            level.angles = level.angles.saturating_sub(1);
            level.infix();
        }
        Token::ShiftRight => {
            level.angles = level.angles.saturating_sub(2);
            level.infix();
        }
        Token::Minus | Token::Plus => {
            if previous.is_none_or(|previous| !ends_operand(previous)) {
                level.prefixes += 1;
            } else {
                level.infix();
            }
        }
        Token::Period => level.prefixes += 1,
        // A chain of subscripts is flat, but one of casts or field accesses is a tree that leans.
        Token::LParen
        | Token::RParen
        | Token::LBracket
        | Token::RBracket
        | Token::LBrace
        | Token::RBrace => {}
        Token::Number(..)
        | Token::Word(_)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::HexStringLiteral(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::Placeholder(_) => {}
        Token::Tilde
        | Token::AtSign
        | Token::AtAt
        | Token::AtDashAt
        | Token::Sharp
        | Token::QuestionMarkDash
        | Token::QuestionPipe
        | Token::DoubleExclamationMark
        | Token::PGSquareRoot
        | Token::PGCubeRoot => {
            level.chain += 1;
            level.prefixes += 1;
        }
        _ => level.infix(),
    }
    false
}

impl Level {
    /// An operator between two operands: one more in the chain, and what stood in front of its left operand is closed.
    fn infix(&mut self) {
        self.chain += 1;
        self.prefixes = 0;
    }
}

fn count_word(level: &mut Level, word: &str, previous: Option<&Token>) -> bool {
    level.in_select |= word == "select";
    match word {
        "select" | "where" | "having" | "group" | "order" | "limit" | "on" | "when" | "then"
        | "else" | "values" | "set" => {
            level.chain = 0;
            level.prefixes = 0;
            level.in_from = false;
            level.in_with = false;
        }
        "from"
            if level.in_select
                && !previous.is_some_and(|previous| is_word(previous, "distinct")) =>
        {
            level.chain = 0;
            level.prefixes = 0;
            level.in_from = true;
            return true;
        }
        "join" => {
            level.chain = 0;
            level.prefixes = 0;
            return true;
        }
        "with" if matches!(previous, None | Some(Token::LParen)) => {
            level.in_with = true;
            return true;
        }
        "union" | "intersect" | "except" | "minus" => {
            level.set_operators += 1;
            level.in_from = false;
        }
        "case" => level.cases += 1,
        "end" => level.cases = level.cases.saturating_sub(1),
        "not" | "interval" | "prior" => level.prefixes += 1,
        "and" | "or" | "xor" | "like" | "ilike" | "similar" | "between" => level.infix(),
        "is" | "in" | "collate" | "at" | "notnull" | "isnull" | "regexp" | "rlike" | "overlaps"
        | "div" | "operator" => level.chain += 1,
        _ => {}
    }
    false
}

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value == text)
}

/// Whether a `<` behind this token opens the arguments of a type.
fn opens_type_arguments(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(word.value.as_str(), "array" | "map" | "struct"))
}

/// Whether a sign behind this token is an infix.
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => {
            word.quote_style.is_some()
                || !matches!(
                    word.value.as_str(),
                    "not" | "and" | "or" | "select" | "case" | "when" | "then" | "else"
                )
        }
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => true,
        Token::RParen | Token::RBracket | Token::RBrace => true,
        _ => false,
    }
}
