//! Queries: the standard tree's own text, with the streaming clauses put back to where ksqlDB has them.

use std::fmt::{self, Display, Formatter};

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::comma_separated;
use super::exact::exact;
use crate::ast::{ChangesStart, Emit, Query, Window, WindowKind, Within};
use crate::duration::format_duration;
use crate::language::Language;
use crate::limits::Limits;
use crate::parser::streaming;
use crate::place::{Place, Places};
use crate::token::Splitter;

impl Display for Window {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self.kind {
            WindowKind::Tumbling { size } => {
                write!(f, "WINDOW TUMBLING (SIZE {}", format_duration(size))?
            }
            WindowKind::Hopping { size, advance } => {
                write!(
                    f,
                    "WINDOW HOPPING (SIZE {}, ADVANCE BY {}",
                    format_duration(size),
                    format_duration(advance)
                )?;
            }
            WindowKind::Session { gap } => write!(f, "WINDOW SESSION ({}", format_duration(gap))?,
        }
        if let Some(retention) = self.retention {
            write!(f, ", RETENTION {}", format_duration(retention))?;
        }
        if let Some(grace) = self.grace {
            write!(f, ", GRACE PERIOD {}", format_duration(grace))?;
        }
        f.write_str(")")
    }
}

impl Display for Emit {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Self::Changes(changes) = self else {
            return f.write_str("EMIT FINAL");
        };
        let snapshot = changes.start == ChangesStart::Snapshot;
        f.write_str("EMIT CHANGES")?;
        f.write_str(match (snapshot, changes.with_step) {
            (true, true) => " WITH SNAPSHOT, STEP",
            (true, false) => " WITH SNAPSHOT",
            (false, true) => " WITH STEP",
            (false, false) => "",
        })?;
        match changes.start {
            ChangesStart::After(step) => write!(f, " AFTER STEP {step}"),
            ChangesStart::Setting | ChangesStart::Snapshot => Ok(()),
        }
    }
}

impl Display for Within {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let (before, after) = (format_duration(self.before), format_duration(self.after));
        if before == after {
            write!(f, "WITHIN {before}")?;
        } else {
            write!(f, "WITHIN ({before}, {after})")?;
        }
        match self.grace {
            Some(grace) => write!(f, " GRACE PERIOD {}", format_duration(grace)),
            None => Ok(()),
        }
    }
}

/// Clauses before which `EMIT` goes.
const BEHIND_EMIT: &[&str] = &["limit", "offset", "fetch", "for"];
/// Clauses before which `PARTITION BY` goes.
const BEHIND_PARTITION_BY: &[&str] = &[
    "having", "window", "order", "limit", "offset", "fetch", "for",
];
/// Clauses before which `WINDOW` goes.
const BEHIND_WINDOW: &[&str] = &[
    "where", "group", "having", "window", "order", "limit", "offset", "fetch", "for",
];
/// What `WITHIN` goes before.
const BEHIND_WITHIN: &[&str] = &["on", "using"];

impl Display for Query {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let body = exact(&self.body).to_string();
        let clauses = self.clauses();
        if clauses.is_empty() {
            return f.write_str(&body);
        }
        let tokens = tokens_of(&body);
        let mut places = ClausePlaces::new(&body, &tokens);
        let mut written = 0;
        for Clause { join, behind, text } in clauses {
            let at = places.next(join, behind);
            f.write_str(&body[written..at])?;
            f.write_str(if at == body.len() { " " } else { "" })?;
            f.write_str(&text)?;
            f.write_str(if at == body.len() { "" } else { " " })?;
            written = at;
        }
        f.write_str(&body[written..])
    }
}

/// A streaming clause, and where it goes.
struct Clause {
    /// Behind the join with this number.
    join: Option<usize>,
    /// Before the first of these words.
    behind: &'static [&'static str],
    text: String,
}

impl Query {
    /// The streaming clauses in the order they are written in.
    fn clauses(&self) -> Vec<Clause> {
        let mut clauses: Vec<Clause> = Vec::new();
        clauses.extend(self.within.iter().map(|within| Clause {
            join: Some(within.join),
            behind: BEHIND_WITHIN,
            text: within.to_string(),
        }));
        clauses.extend(self.window.iter().map(|window| Clause {
            join: None,
            behind: BEHIND_WINDOW,
            text: window.to_string(),
        }));
        if !self.partition_by.is_empty() {
            let list = exact(&self.partition_by);
            clauses.push(Clause {
                join: None,
                behind: BEHIND_PARTITION_BY,
                text: format!("PARTITION BY {}", comma_separated(list.iter())),
            });
        }
        clauses.extend(self.emit.iter().map(|emit| Clause {
            join: None,
            behind: BEHIND_EMIT,
            text: emit.to_string(),
        }));
        clauses
    }
}

/// The tokens of a text that the standard tree wrote. If it cannot be read, there are none, and the clauses go to its end.
///
/// ksqlDB's dialect reads the names of both dialects as one token each.
fn tokens_of(body: &str) -> Vec<TokenWithSpan> {
    let limits = Limits::none();
    let statement = Splitter::new(body, Language::KSQL, &limits).next_statement();
    statement
        .ok()
        .flatten()
        .map_or_else(Vec::new, |statement| statement.tokens)
}

/// A walk over a query's text to where its clauses go. They are asked for in the order of the text, so one walk finds them all.
struct ClausePlaces<'a> {
    tokens: &'a [TokenWithSpan],
    /// The next token to look at.
    index: usize,
    depth: usize,
    seen_from: bool,
    /// Joins of the outermost SELECT that are passed.
    joins: usize,
    places: Places<'a>,
}

impl<'a> ClausePlaces<'a> {
    fn new(body: &'a str, tokens: &'a [TokenWithSpan]) -> Self {
        Self {
            tokens,
            index: 0,
            depth: 0,
            seen_from: false,
            joins: 0,
            places: Places {
                script: body,
                start: Place::start(),
            },
        }
    }

    /// Where the first of the clauses `behind` starts in the outermost SELECT, behind the join with the given number; or the end of the text.
    fn next(&mut self, join: Option<usize>, behind: &[&str]) -> usize {
        let joins_before = join.map_or(0, |join| join + 1);
        while let Some(token) = self.tokens.get(self.index) {
            match token.token {
                Token::LParen | Token::LBracket | Token::LBrace => self.depth += 1,
                Token::RParen | Token::RBracket | Token::RBrace => {
                    self.depth = self.depth.saturating_sub(1)
                }
                Token::Word(_) if self.depth == 0 && !self.seen_from => {
                    self.seen_from = streaming::is_from(self.tokens, self.index)
                }
                Token::Word(_)
                    if self.depth == 0
                        && self.joins >= joins_before
                        && streaming::is_any(self.tokens, self.index, behind)
                        && !streaming::operand_is_due(self.tokens, self.index) =>
                {
                    self.places.start = self.places.place(token.span.start);
                    return self.places.start.offset;
                }
                Token::Word(_) if self.depth == 0 => {
                    self.joins += usize::from(streaming::is_any(self.tokens, self.index, &["join"]))
                }
                _ => {}
            }
            self.index += 1;
        }
        self.places.script.len()
    }
}
