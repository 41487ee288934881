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

use crate::ast::{Describe, SavepointAction, SqlType, Statement};
use crate::duration::format_duration;
use crate::language::IdentifierCase;
use crate::name::{force_quote_name, is_plain_word, quote_literal, quote_name_in};

/// A statement as canonical text, without a `;`, which means the same when it is read with names folded to `case`.
pub fn format_statement(statement: &Statement, case: IdentifierCase) -> String {
    Spelled {
        part: statement,
        case,
    }
    .to_string()
}

/// A part of a statement as it is written for readers who fold names to one case. Names that would fold to others are in quotes.
struct Spelled<'a, T> {
    part: &'a T,
    case: IdentifierCase,
}

impl<'a, T> Spelled<'a, T> {
    /// Another part, for the same readers.
    fn with<U>(&self, part: &'a U) -> Spelled<'a, U> {
        Spelled {
            part,
            case: self.case,
        }
    }

    fn name(&self, name: &str) -> String {
        quote_name_in(name, self.case)
    }

    /// A name, or the word for everything.
    fn name_or(&self, name: &Option<String>, everything: &str) -> String {
        match name {
            Some(name) => self.name(name),
            None => everything.to_string(),
        }
    }

    /// Names in parentheses with a blank in front; nothing for no names.
    fn names(&self, names: &[String]) -> String {
        if names.is_empty() {
            return String::new();
        }
        format!(
            " ({})",
            comma_separated(names.iter().map(|name| self.name(name)))
        )
    }

    /// Parts with commas between them.
    fn list<U>(&self, parts: &'a [U]) -> String
    where
        Spelled<'a, U>: Display,
    {
        comma_separated(parts.iter().map(|part| self.with(part)))
    }
}

/// For readers who fold to lower case.
macro_rules! display_in_lower_case {
    ($($part:ty),+ $(,)?) => {
        $(impl Display for $part {
            fn fmt(&self, f: &mut Formatter) -> fmt::Result {
                let case = IdentifierCase::Lower;
                Spelled { part: self, case }.fmt(f)
            }
        })+
    };
}

display_in_lower_case!(Statement, SqlType, Describe);

impl Display for Spelled<'_, Statement> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self.part {
            Statement::CreateSource(create) => self.with(create).fmt(f),
            Statement::CreateAs(create) => self.with(create).fmt(f),
            Statement::CreateType(create) => self.with(create).fmt(f),
            Statement::Alter(alter) => self.with(alter).fmt(f),
            Statement::Insert(insert) => self.with(insert).fmt(f),
            Statement::Copy(copy) => self.with(copy).fmt(f),
            Statement::Drop(drop) => self.with(drop).fmt(f),
            Statement::DropType(drop) => self.with(drop).fmt(f),
            Statement::Terminate(target) => write!(f, "TERMINATE {}", self.with(target)),
            Statement::Pause(target) => write!(f, "PAUSE {}", self.with(target)),
            Statement::Resume(target) => write!(f, "RESUME {}", self.with(target)),
            Statement::Show(show) => show.fmt(f),
            Statement::Describe(describe) => self.with(describe).fmt(f),
            Statement::Explain(explain) => self.with(explain).fmt(f),
            Statement::Print(print) => print.fmt(f),
            Statement::Set {
                name,
                value: Some(value),
            } => write!(f, "SET {} = {}", quote_literal(name), quote_literal(value)),
            Statement::Set { name, value: None } => {
                write!(f, "SET {} = DEFAULT", quote_literal(name))
            }
            Statement::Unset(Some(name)) => write!(f, "UNSET {}", quote_literal(name)),
            Statement::Unset(None) => write!(f, "RESET ALL"),
            Statement::AlterSystem {
                name,
                value: Some(value),
            } => write!(
                f,
                "ALTER SYSTEM {} = {}",
                quote_literal(name),
                quote_literal(value)
            ),
            Statement::AlterSystem { name, value: None } => {
                write!(f, "ALTER SYSTEM {} = DEFAULT", quote_literal(name))
            }
            Statement::Backup(folder) => write!(f, "BACKUP TO {}", quote_literal(folder)),
            Statement::AlterTopic(alter) => alter.fmt(f),
            Statement::Define { name, value } => {
                write!(f, "DEFINE {} = {}", variable(name), quote_literal(value))
            }
            Statement::Undefine(name) => write!(f, "UNDEFINE {}", variable(name)),
            Statement::Assert(assert) => self.with(assert).fmt(f),
            Statement::RunScript(file) => write!(f, "RUN SCRIPT {}", quote_literal(file)),
            Statement::Query(query) => query.fmt(f),
            Statement::Declare { name, hold, query } => {
                write!(
                    f,
                    "DECLARE {} CURSOR {}FOR {query}",
                    self.name(name),
                    if *hold { "WITH HOLD " } else { "" }
                )
            }
            Statement::Fetch {
                count,
                name,
                timeout,
            } => {
                match count {
                    Some(count) => write!(f, "FETCH {count} FROM {}", self.name(name))?,
                    None => write!(f, "FETCH ALL FROM {}", self.name(name))?,
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
            Statement::Close(name) => write!(f, "CLOSE {}", self.name_or(name, "ALL")),
            Statement::Begin { read_only } => {
                write!(f, "BEGIN{}", if *read_only { " READ ONLY" } else { "" })
            }
            Statement::Commit => write!(f, "COMMIT"),
            Statement::Rollback => write!(f, "ROLLBACK"),
            Statement::Savepoint(action) => self.with(action).fmt(f),
            Statement::Deallocate(name) => write!(f, "DEALLOCATE {}", self.name_or(name, "ALL")),
            Statement::Discard => write!(f, "DISCARD ALL"),
            Statement::Unlisten(name) => write!(f, "UNLISTEN {}", self.name_or(name, "*")),
            Statement::Empty => Ok(()),
        }
    }
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

impl Display for Spelled<'_, SavepointAction> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self.part {
            SavepointAction::Set(name) => write!(f, "SAVEPOINT {}", self.name(name)),
            SavepointAction::Release(name) => write!(f, "RELEASE SAVEPOINT {}", self.name(name)),
            SavepointAction::RollbackTo(name) => {
                write!(f, "ROLLBACK TO SAVEPOINT {}", self.name(name))
            }
        }
    }
}
