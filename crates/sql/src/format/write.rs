//! INSERT and COPY.

use std::fmt::{self, Display, Formatter};

use sqlparser::ast::Expr;

use super::exact::exact;
use super::{Spelled, comma_separated};
use crate::ast::{Copy, CopyDirection, CopyFormat, CopyOptions, CopyTarget, Insert, InsertSource};
use crate::name::quote_literal;

impl Display for Spelled<'_, Insert> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "INSERT INTO {}{}{} ",
            self.name(&self.part.name),
            self.part.with,
            self.names(&self.part.columns)
        )?;
        match &self.part.source {
            InsertSource::Values(rows) => {
                let rows = exact(rows);
                let rows = rows
                    .iter()
                    .map(|row: &Vec<Expr>| format!("({})", comma_separated(row)));
                write!(f, "VALUES {}", comma_separated(rows))
            }
            InsertSource::Query(query) => query.fmt(f),
        }
    }
}

impl Display for Spelled<'_, Copy> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match &self.part.target {
            CopyTarget::Relation { name, columns } => {
                write!(f, "COPY {}{}", self.name(name), self.names(columns))?
            }
            CopyTarget::Query(query) => write!(f, "COPY ({query})")?,
        }
        f.write_str(match self.part.direction {
            CopyDirection::FromStdin => " FROM STDIN",
            CopyDirection::ToStdout => " TO STDOUT",
        })?;
        self.part.options.fmt(f)
    }
}

/// The clause with a blank in front, with every option, since the defaults differ from format to format.
impl Display for CopyOptions {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let character = |byte: u8| quote_literal(&char::from(byte).to_string());
        let (delimiter, null) = (character(self.delimiter), quote_literal(&self.null));
        let header = if self.header { "TRUE" } else { "FALSE" };
        match self.format {
            CopyFormat::Text => write!(
                f,
                " WITH (FORMAT TEXT, HEADER {header}, DELIMITER {delimiter}, NULL {null})"
            ),
            CopyFormat::Csv => {
                let (quote, escape) = (character(self.quote), character(self.escape));
                write!(
                    f,
                    " WITH (FORMAT CSV, HEADER {header}, DELIMITER {delimiter}, NULL {null}, QUOTE {quote}, ESCAPE {escape})"
                )
            }
        }
    }
}
