//! Statements that show, explain, print and assert, and the ones that steer running queries.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use super::exact::exact;
use super::source::declaration;
use super::{comma_separated, name_list};
use crate::ast::{Assert, Describe, Explain, ExplainTarget, Print, QueryTarget, Show};
use crate::duration::format_duration;
use crate::name::{force_quote_name, is_plain_word, quote_literal, quote_name};

impl Display for QueryTarget {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::Id(id) => f.write_str(&quote_name(id)),
            Self::All => f.write_str("ALL"),
        }
    }
}

/// The word with a blank in front.
fn extended(on: bool) -> &'static str {
    if on { " EXTENDED" } else { "" }
}

impl Display for Show {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let (list, more) = match self {
            Self::Streams { extended } => ("STREAMS", *extended),
            Self::Tables { extended } => ("TABLES", *extended),
            Self::Queries { extended } => ("QUERIES", *extended),
            Self::Topics {
                all: false,
                extended,
            } => ("TOPICS", *extended),
            Self::Topics {
                all: true,
                extended,
            } => ("ALL TOPICS", *extended),
            Self::Functions => ("FUNCTIONS", false),
            Self::Types => ("TYPES", false),
            Self::Variables => ("VARIABLES", false),
            Self::All => ("ALL", false),
            Self::Variable(name) => return write!(f, "SHOW {}", quote_literal(name)),
        };
        write!(f, "SHOW {list}{}", extended(more))
    }
}

impl Display for Describe {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::Source {
                name,
                extended: more,
            } => write!(f, "DESCRIBE {}{}", source_name(name), extended(*more)),
            Self::Sources {
                kind,
                extended: more,
            } => write!(f, "DESCRIBE {kind}S{}", extended(*more)),
            Self::Function(name) if is_plain_word(name) => write!(f, "DESCRIBE FUNCTION {name}"),
            Self::Function(name) => write!(f, "DESCRIBE FUNCTION {}", force_quote_name(name)),
        }
    }
}

/// A source's name where `STREAMS` and `TABLES` mean something else.
fn source_name(name: &str) -> String {
    match name {
        "streams" | "tables" => force_quote_name(name),
        _ => quote_name(name),
    }
}

impl Display for Explain {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(if self.analyze {
            "EXPLAIN ANALYZE "
        } else {
            "EXPLAIN "
        })?;
        match &self.target {
            ExplainTarget::Statement(statement) => statement.fmt(f),
            ExplainTarget::Query(id) => f.write_str(&force_quote_name(id)),
        }
    }
}

impl Display for Print {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "PRINT {}", force_quote_name(&self.topic))?;
        if self.from_beginning {
            f.write_str(" FROM BEGINNING")?;
        }
        if let Some(interval) = self.interval {
            write!(f, " INTERVAL {interval}")?;
        }
        match self.limit {
            Some(limit) => write!(f, " LIMIT {limit}"),
            None => Ok(()),
        }
    }
}

impl Display for Assert {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::Topic {
                name,
                with,
                exists,
                timeout,
            } => {
                let name = quote_literal(name);
                write!(f, "ASSERT {}TOPIC {name}{with}", unless(*exists))?;
                fmt_timeout(*timeout, f)
            }
            Self::Schema {
                subject,
                id,
                exists,
                timeout,
            } => {
                write!(f, "ASSERT {}SCHEMA", unless(*exists))?;
                if let Some(subject) = subject {
                    write!(f, " SUBJECT {}", quote_literal(subject))?;
                }
                if let Some(id) = id {
                    write!(f, " ID {id}")?;
                }
                fmt_timeout(*timeout, f)
            }
            Self::Values {
                name,
                columns,
                values,
            } => write!(
                f,
                "ASSERT VALUES {}{} VALUES ({})",
                quote_name(name),
                name_list(columns),
                comma_separated(exact(values).iter())
            ),
            Self::NullValues { name, columns, key } => write!(
                f,
                "ASSERT NULL VALUES {}{} KEY ({})",
                quote_name(name),
                name_list(columns),
                comma_separated(exact(key).iter())
            ),
            Self::Source(source) => write!(f, "ASSERT {} {}", source.kind, declaration(source)),
        }
    }
}

fn unless(exists: bool) -> &'static str {
    if exists { "" } else { "NOT EXISTS " }
}

fn fmt_timeout(timeout: Option<Duration>, f: &mut Formatter) -> fmt::Result {
    match timeout {
        Some(timeout) => write!(f, " TIMEOUT {}", format_duration(timeout)),
        None => Ok(()),
    }
}
