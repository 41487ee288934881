//! How deep and how long a tree the tokens can make, from the tokens alone.
//!
//! Three things make a tree deep: brackets (and CASE, and types in `<>`), prefixes in a row (`NOT NOT x`, `- - x`), and infixes in a row
//! (`a + b + c`, `a UNION b UNION c`), which are parsed in a loop but give a tree that leans to one side, with what stands first at its
//! bottom. Two depths follow, both counted from above (the result may be more than the truth, never less):
//! - how far a parser *recurses*: brackets, prefixes and CASE that are open at a token;
//! - how far the *tree* reaches below a bracket: the longest run of infixes in it, plus the deepest bracket in that run.

use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::error::SqlError;
use crate::limits::Limits;
use crate::origin::Origin;

/// The levels of expressions that a query is worth: its tree goes through some ten kinds of nodes, and their frames are larger. One level is
/// about 2 KiB of stack when the tree is cloned, which takes the most; a query inside a join is 26 KiB.
const QUERY_WEIGHT: usize = 16;

/// The same for the bracket behind OVER.
const WINDOW_WEIGHT: usize = 4;

/// What is counted inside one pair of brackets. A *run* is what stands between two separators: commas, or keywords of clauses.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    /// Operators of the current run.
    infixes: usize,
    /// Tree below the deepest closed bracket of the current run.
    bracket: usize,
    /// Tree below the deepest finished run.
    finished: usize,
    /// UNION, INTERSECT and EXCEPT.
    set_operators: usize,
    /// Prefixes and dots of the current operand.
    prefixes: usize,
    /// CASE without its END.
    cases: usize,
    /// `<` of types without their `>`.
    angles: usize,
    /// Lambdas in the current run: the body of each reaches to the run's end.
    lambdas: usize,
    /// Something stands here beside brackets that are still open.
    touched: bool,
    /// The brackets are around a query, directly or with more brackets between.
    wraps_query: bool,
    /// A query's SELECT was seen, so that FROM is its clause and not an argument of EXTRACT and the like.
    in_select: bool,
    /// A comma separates tables here.
    in_from: bool,
    /// A comma separates named subqueries here.
    in_with: bool,
    /// The bracket stands behind OVER.
    is_window: bool,
}

impl Level {
    /// Whether a bracket opened here is inside a query.
    fn is_query(&self) -> bool {
        self.in_select || self.in_with || self.wraps_query
    }

    /// What the brackets themselves add to the tree.
    fn weight(&self) -> usize {
        match (self.is_query(), self.is_window) {
            (true, _) => QUERY_WEIGHT,
            (false, true) => WINDOW_WEIGHT,
            (false, false) => 1,
        }
    }

    /// How far a parser recurses within this level.
    fn recursion(&self) -> usize {
        self.prefixes + self.cases + self.angles + self.lambdas
    }

    /// How far the tree of this level reaches, so far.
    fn tree(&self) -> usize {
        self.finished.max(self.infixes + self.bracket) + self.set_operators
    }

    /// An operator between two operands: one more in the run, and what stood in front of its left operand is closed.
    fn infix(&mut self) {
        self.infixes += 1;
        self.prefixes = 0;
    }

    /// The end of a run.
    fn separate(&mut self) {
        self.finished = self.finished.max(self.infixes + self.bracket);
        self.infixes = 0;
        self.bracket = 0;
        self.prefixes = 0;
        self.lambdas = 0;
    }
}

/// The levels that are open at a token.
struct Shape {
    levels: Vec<Level>,
    /// Recursion of all levels but the innermost: kept up to date, so that the whole check is linear.
    outer_recursion: usize,
    /// How many of these levels, the innermost left out, are queries.
    outer_queries: usize,
    /// How many of these levels, the innermost left out, stand behind OVER.
    outer_windows: usize,
    /// Tables, joins, named subqueries and branches of set operations so far, on all levels.
    relations: usize,
}

/// Fails if the tokens pass a limit, else tells how far a parser may recurse over them.
pub(super) fn check(origin: Origin, tokens: &[TokenWithSpan]) -> Result<usize, SqlError> {
    let mut shape = Shape {
        levels: vec![Level::default()],
        outer_recursion: 0,
        outer_queries: 0,
        outer_windows: 0,
        relations: 0,
    };
    let mut deepest = 0;
    let mut previous = None;
    for token in tokens {
        shape.count(&token.token, previous);
        if let Some(what) = shape.excess(origin.limits) {
            return Err(SqlError::TooComplex {
                what,
                span: origin.places.span(token.span),
            });
        }
        deepest = deepest.max(shape.recursion());
        previous = Some(&token.token);
    }
    Ok(deepest)
}

impl Shape {
    fn count(&mut self, token: &Token, previous: Option<&Token>) {
        match token {
            Token::LBracket => {
                // A subscript or `[]` behind a type is a level of the tree like an operator.
                if let Some(level) = self.levels.last_mut() {
                    level.infixes += 1;
                }
                self.open(false);
            }
            Token::LParen => self.open(previous.is_some_and(|previous| is_word(previous, "over"))),
            Token::LBrace => self.open(false),
            Token::RParen | Token::RBracket | Token::RBrace => self.close(),
            _ => {
                if matches!(previous, Some(Token::LParen))
                    && (is_word(token, "select") || is_word(token, "with"))
                {
                    self.mark_wrappers();
                }
                if let Some(level) = self.levels.last_mut() {
                    level.touched = true;
                    self.relations += usize::from(count(level, token, previous));
                }
            }
        }
    }

    /// Counts the brackets that hold nothing but the query which starts here: each pair is a query of its own in the tree.
    fn mark_wrappers(&mut self) {
        for level in self.levels.iter_mut().rev().skip(1) {
            if level.touched || level.wraps_query {
                break;
            }
            level.wraps_query = true;
            self.outer_queries += 1;
        }
    }

    fn open(&mut self, is_window: bool) {
        if let Some(level) = self.levels.last() {
            self.outer_recursion += 1 + level.recursion();
            self.outer_queries += usize::from(level.is_query());
            self.outer_windows += usize::from(level.is_window);
        }
        self.levels.push(Level {
            is_window,
            ..Level::default()
        });
    }

    /// A bracket that closes nothing is left for the parser to find.
    fn close(&mut self) {
        if self.levels.len() < 2 {
            return;
        }
        let closed = self
            .levels
            .pop()
            .map_or(0, |level| level.tree() + level.weight());
        if let Some(level) = self.levels.last_mut() {
            self.outer_recursion -= 1 + level.recursion();
            self.outer_queries -= usize::from(level.is_query());
            self.outer_windows -= usize::from(level.is_window);
            level.bracket = level.bracket.max(closed);
            level.touched = true;
        }
    }

    fn recursion(&self) -> usize {
        self.outer_recursion + self.levels.last().map_or(0, Level::recursion)
    }

    /// The limit that is passed, if one is.
    fn excess(&self, limits: &Limits) -> Option<String> {
        let level = self.levels.last()?;
        if self.recursion() > limits.depth {
            return Some(format!("nested deeper than {}", limits.depth));
        }
        let queries = self.outer_queries + usize::from(level.is_query());
        let windows = self.outer_windows + usize::from(level.is_window);
        let above = self.recursion() + queries * QUERY_WEIGHT + windows * WINDOW_WEIGHT;
        if above + level.tree() > limits.tree {
            return Some(format!(
                "more than {} operators in a row or inside each other",
                limits.tree
            ));
        }
        if queries > limits.subqueries {
            return Some(format!(
                "more than {} queries inside each other",
                limits.subqueries
            ));
        }
        (self.relations > limits.relations)
            .then(|| format!("more than {} tables and subqueries", limits.relations))
    }
}

/// Counts one token that is no bracket; true if it brings in a table, a join, a named subquery or a branch of a set operation.
fn count(level: &mut Level, token: &Token, previous: Option<&Token>) -> bool {
    match token {
        Token::Word(Word {
            value,
            quote_style: None,
            ..
        }) => return count_word(level, value, previous),
        Token::Comma => {
            level.separate();
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
        Token::RArrow => {
            level.infix();
            level.lambdas += 1;
        }
        Token::Minus | Token::Plus if previous.is_some_and(ends_operand) => level.infix(),
        Token::Minus | Token::Plus | Token::Period => level.prefixes += 1,
        Token::Tilde | Token::AtSign | Token::PGSquareRoot | Token::PGCubeRoot => {
            level.infixes += 1;
            level.prefixes += 1;
        }
        Token::Word(_)
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::HexStringLiteral(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::Placeholder(_) => {}
        _ => level.infix(),
    }
    false
}

fn count_word(level: &mut Level, word: &str, previous: Option<&Token>) -> bool {
    match word {
        "select" => {
            level.separate();
            (level.in_select, level.in_from, level.in_with) = (true, false, false);
        }
        "where" | "having" | "group" | "order" | "limit" | "values" => {
            level.separate();
            level.in_from = false;
        }
        "on" | "when" | "then" | "else" => level.separate(),
        "from"
            if level.in_select
                && !previous.is_some_and(|previous| is_word(previous, "distinct")) =>
        {
            level.separate();
            level.in_from = true;
            return true;
        }
        "join" => {
            level.separate();
            return true;
        }
        "with" if matches!(previous, None | Some(Token::LParen)) => {
            level.in_with = true;
            return true;
        }
        "union" | "intersect" | "except" | "minus" => {
            level.set_operators += 1;
            level.in_from = false;
            return true;
        }
        "case" => level.cases += 1,
        "end" => level.cases = level.cases.saturating_sub(1),
        "not" | "interval" | "prior" => level.prefixes += 1,
        "and" | "or" | "xor" | "like" | "ilike" | "similar" | "between" => level.infix(),
        "is" | "in" | "collate" | "at" | "notnull" | "isnull" | "regexp" | "rlike" | "overlaps"
        | "div" | "operator" | "array" => {
            level.infixes += 1;
        }
        _ => {}
    }
    false
}

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value == text)
}

/// Whether a `<` behind this token opens the arguments of a type.
fn opens_type_arguments(token: &Token) -> bool {
    ["array", "map", "struct"]
        .iter()
        .any(|name| is_word(token, name))
}

/// Whether a sign behind this token is an infix.
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => {
            let starts_operand = [
                "not", "and", "or", "select", "case", "when", "then", "else", "between", "in",
                "like", "by", "where", "on",
            ];
            word.quote_style.is_some() || !starts_operand.contains(&word.value.as_str())
        }
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => true,
        Token::RParen | Token::RBracket | Token::RBrace => true,
        _ => false,
    }
}
