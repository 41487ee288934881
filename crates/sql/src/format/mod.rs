//! Statements back to text.
//!
//! The text is canonical: keywords in upper case, one blank between tokens, properties and options in a fixed form, lengths of time in the
//! largest unit that divides them. It parses to the same statement again, so it can be stored in place of the tree. Standard parts are
//! written by the standard tree; the streaming clauses go back to where ksqlDB has them: `WINDOW` behind FROM, `PARTITION BY` behind
//! GROUP BY, `EMIT` before LIMIT.

mod admin;
mod exact;
mod query;
mod source;
mod write;

use std::fmt::{self, Display, Formatter};

use crate::ast::{SavepointAction, Statement};
use crate::duration::format_duration;
use crate::name::{force_quote_name, is_plain_word, quote_literal, quote_name};

/// A statement as canonical text, without a `;`.
pub fn format_statement(statement: &Statement) -> String {
    statement.to_string()
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::CreateSource(create) => create.fmt(f),
            Self::CreateAs(create) => create.fmt(f),
            Self::CreateType(create) => create.fmt(f),
            Self::Alter(alter) => alter.fmt(f),
            Self::Insert(insert) => insert.fmt(f),
            Self::Copy(copy) => copy.fmt(f),
            Self::Drop(drop) => drop.fmt(f),
            Self::DropType(drop) => drop.fmt(f),
            Self::Terminate(target) => write!(f, "TERMINATE {target}"),
            Self::Pause(target) => write!(f, "PAUSE {target}"),
            Self::Resume(target) => write!(f, "RESUME {target}"),
            Self::Show(show) => show.fmt(f),
            Self::Describe(describe) => describe.fmt(f),
            Self::Explain(explain) => explain.fmt(f),
            Self::Print(print) => print.fmt(f),
            Self::Set {
                name,
                value: Some(value),
            } => write!(f, "SET {} = {}", quote_literal(name), quote_literal(value)),
            Self::Set { name, value: None } => write!(f, "SET {} = DEFAULT", quote_literal(name)),
            Self::Unset(Some(name)) => write!(f, "UNSET {}", quote_literal(name)),
            Self::Unset(None) => write!(f, "RESET ALL"),
            Self::AlterSystem {
                name,
                value: Some(value),
            } => write!(
                f,
                "ALTER SYSTEM {} = {}",
                quote_literal(name),
                quote_literal(value)
            ),
            Self::AlterSystem { name, value: None } => {
                write!(f, "ALTER SYSTEM {} = DEFAULT", quote_literal(name))
            }
            Self::Define { name, value } => {
                write!(f, "DEFINE {} = {}", variable(name), quote_literal(value))
            }
            Self::Undefine(name) => write!(f, "UNDEFINE {}", variable(name)),
            Self::Assert(assert) => assert.fmt(f),
            Self::RunScript(file) => write!(f, "RUN SCRIPT {}", quote_literal(file)),
            Self::Query(query) => query.fmt(f),
            Self::Declare { name, hold, query } => {
                write!(
                    f,
                    "DECLARE {} CURSOR {}FOR {query}",
                    quote_name(name),
                    if *hold { "WITH HOLD " } else { "" }
                )
            }
            Self::Fetch {
                count,
                name,
                timeout,
            } => {
                match count {
                    Some(count) => write!(f, "FETCH {count} FROM {}", quote_name(name))?,
                    None => write!(f, "FETCH ALL FROM {}", quote_name(name))?,
                }
                match timeout {
                    Some(timeout) => write!(
                        f,
                        " WITH (timeout = '{}')",
                        format_duration(*timeout).to_lowercase()
                    ),
                    None => Ok(()),
                }
            }
            Self::Close(name) => write!(f, "CLOSE {}", name_or(name, "ALL")),
            Self::Begin { read_only } => {
                write!(f, "BEGIN{}", if *read_only { " READ ONLY" } else { "" })
            }
            Self::Commit => write!(f, "COMMIT"),
            Self::Rollback => write!(f, "ROLLBACK"),
            Self::Savepoint(action) => action.fmt(f),
            Self::Deallocate(name) => write!(f, "DEALLOCATE {}", name_or(name, "ALL")),
            Self::Discard => write!(f, "DISCARD ALL"),
            Self::Unlisten(name) => write!(f, "UNLISTEN {}", name_or(name, "*")),
            Self::Empty => Ok(()),
        }
    }
}

/// A quoted name, or the word for everything.
fn name_or(name: &Option<String>, everything: &str) -> String {
    name.as_deref()
        .map_or_else(|| everything.to_string(), quote_name)
}

/// Items with commas between them.
fn comma_separated<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::new();
    for item in items {
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(&item.to_string());
    }
    out
}

/// Names in parentheses with a blank in front; nothing for no names.
fn name_list(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!(
        " ({})",
        comma_separated(names.iter().map(|name| quote_name(name)))
    )
}

fn if_exists(given: bool) -> &'static str {
    if given { "IF EXISTS " } else { "" }
}

fn if_not_exists(given: bool) -> &'static str {
    if given { "IF NOT EXISTS " } else { "" }
}

/// A name of DEFINE, which any word can be.
fn variable(name: &str) -> String {
    if is_plain_word(name) {
        name.to_string()
    } else {
        force_quote_name(name)
    }
}

impl Display for SavepointAction {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::Set(name) => write!(f, "SAVEPOINT {}", quote_name(name)),
            Self::Release(name) => write!(f, "RELEASE SAVEPOINT {}", quote_name(name)),
            Self::RollbackTo(name) => write!(f, "ROLLBACK TO SAVEPOINT {}", quote_name(name)),
        }
    }
}
