//! Highwater's SQL: text to statements and back.
//!
//! [`parse_script`] turns a text into [`ParsedStatement`]s; each holds a [`Statement`] and the text it was made from. [`format_statement`]
//! (and [`Statement`]'s `Display`) writes a statement so that it parses to the same statement again; that text is what is kept of DDL.
//! Queries and expressions are trees of the `sqlparser` crate, with the streaming clauses beside them in [`ast::Query`].
//!
//! A text is read in a [`Language`]: a dialect, and the case that names without quotes fold to. All names in a tree are folded already.
//!
//! The crate knows no catalog and does no I/O. Text comes from anyone: every function here ends in bounded time, stack and memory
//! whatever it is given (see [`Limits`]), and fails with an [`SqlError`] that tells where.

pub mod ast;
mod cursor;
mod definitions;
mod dialect;
mod duration;
mod error;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod language;
mod limits;
mod name;
mod origin;
mod parser;
mod place;
mod scan;
mod standard;
mod standard_type;
mod token;
mod type_names;

pub use ast::{
    Alter, AlterTopic, Assert, Changes, ChangesStart, ColumnDef, ColumnRole, Copy, CopyDirection,
    CopyFormat, CopyOptions, CopyTarget, CreateAs, CreateSource, CreateType, Describe, Drop,
    DropType, Emit, Explain, ExplainTarget, Insert, InsertSource, Print, Properties, PropertyValue,
    Query, QueryTarget, SavepointAction, Show, SourceKind, SqlType, Statement, Window, WindowKind,
    Within,
};
pub use definitions::{Definitions, Substituted, substitute};
pub use duration::parse_duration;
pub use error::{Span, SqlError, char_position};
pub use format::format_statement;
pub use language::{Dialect, IdentifierCase, Language, UnknownLanguage};
pub use limits::Limits;
pub use name::{quote_literal, quote_name, quote_name_in};
pub use parser::{
    ParsedStatement, parse_script, parse_script_in, parse_script_within, parse_statement,
    parse_statement_in, parse_type,
};
pub use scan::statement_is_complete;
pub use sqlparser;
pub use standard_type::sql_type_of;
pub use type_names::{TypeNames, expand_types};
