//! Statements that show, explain, print and assert, and the ones that steer running queries.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use super::exact::exact;
use super::source::declaration;
use super::{Spelled, comma_separated};
use crate::ast::{Assert, Describe, Explain, ExplainTarget, Print, QueryTarget, Show};
use crate::duration::format_duration;
use crate::name::{force_quote_name, is_plain_word, quote_literal};

impl Display for Spelled<'_, QueryTarget> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self.part {
            QueryTarget::Id(id) => f.write_str(&self.name(id)),
            QueryTarget::All => f.write_str("ALL"),
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

impl Display for Spelled<'_, Describe> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self.part {
            Describe::Source {
                name,
                extended: more,
            } => {
                // `STREAMS` and `TABLES` mean something else here.
                let taken = ["streams", "tables"];
                let name = match taken.iter().any(|word| name.eq_ignore_ascii_case(word)) {
                    true => force_quote_name(name),
                    false => self.name(name),
                };
                write!(f, "DESCRIBE {name}{}", extended(*more))
            }
            Describe::Sources {
                kind,
                extended: more,
            } => write!(f, "DESCRIBE {kind}S{}", extended(*more)),
            Describe::Function(name) if is_plain_word(name) => {
                write!(f, "DESCRIBE FUNCTION {name}")
            }
            Describe::Function(name) => write!(f, "DESCRIBE FUNCTION {}", force_quote_name(name)),
        }
    }
}

impl Display for Spelled<'_, Explain> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(if self.part.analyze {
            "EXPLAIN ANALYZE "
        } else {
            "EXPLAIN "
        })?;
        match &self.part.target {
            ExplainTarget::Statement(statement) => self.with(&**statement).fmt(f),
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

impl Display for Spelled<'_, Assert> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self.part {
            Assert::Topic {
                name,
                with,
                exists,
                timeout,
            } => {
                let name = quote_literal(name);
                write!(f, "ASSERT {}TOPIC {name}{with}", unless(*exists))?;
                fmt_timeout(*timeout, f)
            }
            Assert::Schema {
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
            Assert::Values {
                name,
                columns,
                values,
            } => write!(
                f,
                "ASSERT VALUES {}{} VALUES ({})",
                self.name(name),
                self.names(columns),
                comma_separated(exact(values).iter())
            ),
            Assert::NullValues { name, columns, key } => write!(
                f,
                "ASSERT NULL VALUES {}{} KEY ({})",
                self.name(name),
                self.names(columns),
                comma_separated(exact(key).iter())
            ),
            Assert::Source(source) => {
                let declaration = declaration(&self.with(source));
                write!(f, "ASSERT {} {declaration}", source.kind)
            }
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
