//! Statements that write records: INSERT and COPY.

use sqlparser::ast as std_ast;

use super::{Properties, Query};

/// `INSERT INTO name (columns) VALUES ..` or `INSERT INTO name [WITH (..)] query`.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// Target.
    pub name: String,
    /// `WITH (query_id = ..)` of a query; none with VALUES.
    pub with: Properties,
    /// Named columns; empty for all in order.
    pub columns: Vec<String>,
    /// Rows, or a query.
    pub source: InsertSource,
}

/// What an INSERT writes.
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// `VALUES (..), (..)`.
    Values(Vec<Vec<std_ast::Expr>>),
    /// `INSERT INTO .. SELECT ..`: a second persistent query into a stream.
    Query(Query),
}

/// `COPY`.
#[derive(Debug, Clone, PartialEq)]
pub struct Copy {
    /// What is copied.
    pub target: CopyTarget,
    /// Direction.
    pub direction: CopyDirection,
    /// Options.
    pub options: CopyOptions,
}

/// What is copied.
#[derive(Debug, Clone, PartialEq)]
pub enum CopyTarget {
    /// `COPY name (columns)`.
    Relation {
        /// Stream or table.
        name: String,
        /// Named columns; empty for all in order.
        columns: Vec<String>,
    },
    /// `COPY (query)`.
    Query(Query),
}

/// Where COPY reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyDirection {
    /// FROM STDIN.
    FromStdin,
    /// TO STDOUT.
    ToStdout,
}

/// COPY's options, in both of PostgreSQL's spellings (`WITH (FORMAT csv, ..)` and `CSV HEADER`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOptions {
    /// Text or CSV.
    pub format: CopyFormat,
    /// A first line of names: skipped on the way in, written on the way out.
    pub header: bool,
    /// Field separator; default tab for text, comma for CSV.
    pub delimiter: u8,
    /// What stands for NULL; default `\N` for text, empty for CSV.
    pub null: String,
    /// CSV quote.
    pub quote: u8,
    /// CSV escape.
    pub escape: u8,
}

/// COPY's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFormat {
    /// PostgreSQL's text format.
    Text,
    /// CSV.
    Csv,
}
