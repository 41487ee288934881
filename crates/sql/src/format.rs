//! Statements back to text.
//!
//! The text is canonical: keywords in upper case, one blank between tokens, properties and options in a fixed form, lengths of time in the
//! largest unit that divides them. It parses to the same statement again, so it can be stored in place of the tree. Standard parts are
//! written by the standard tree; the streaming clauses go back to where ksqlDB has them: `WINDOW` behind FROM, `PARTITION BY` behind
//! GROUP BY, `EMIT` before LIMIT.

use std::fmt::{self, Display, Formatter};

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Value, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::ast::{
    ColumnDef, ColumnRole, Copy, CopyDirection, CopyFormat, CopyOptions, CopyTarget, CreateAs,
    CreateSource, Drop, Emit, Explain, ExplainTarget, Insert, InsertSource, Print, Properties,
    PropertyValue, Query, QueryTarget, SavepointAction, Show, SourceKind, SqlType, Statement,
    Window, WindowKind,
};
use crate::duration::format_duration;
use crate::limits::Limits;
use crate::name::{force_quote_name, is_plain_word, quote_literal, quote_name};
use crate::parser::streaming;
use crate::place::{Place, Places};
use crate::token::Splitter;

/// A statement as canonical text, without a `;`.
pub fn format_statement(statement: &Statement) -> String {
    statement.to_string()
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::CreateSource(create) => create.fmt(f),
            Self::CreateAs(create) => create.fmt(f),
            Self::Insert(insert) => insert.fmt(f),
            Self::Copy(copy) => copy.fmt(f),
            Self::Drop(drop) => drop.fmt(f),
            Self::Terminate(target) => write!(f, "TERMINATE {target}"),
            Self::Pause(target) => write!(f, "PAUSE {target}"),
            Self::Resume(target) => write!(f, "RESUME {target}"),
            Self::Show(show) => show.fmt(f),
            Self::Describe { name, extended } => {
                write!(
                    f,
                    "DESCRIBE {}{}",
                    quote_name(name),
                    if *extended { " EXTENDED" } else { "" }
                )
            }
            Self::Explain(explain) => explain.fmt(f),
            Self::Print(print) => print.fmt(f),
            Self::Set {
                name,
                value: Some(value),
            } => write!(f, "SET {} = {}", quote_literal(name), quote_literal(value)),
            Self::Set { name, value: None } => write!(f, "SET {} = DEFAULT", quote_literal(name)),
            Self::Unset(Some(name)) => write!(f, "UNSET {}", quote_literal(name)),
            Self::Unset(None) => write!(f, "RESET ALL"),
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

impl Display for SourceKind {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Stream => "STREAM",
            Self::Table => "TABLE",
        })
    }
}

/// `CREATE [OR REPLACE] kind [IF NOT EXISTS] name`.
fn create_head(kind: SourceKind, or_replace: bool, if_not_exists: bool, name: &str) -> String {
    let replace = if or_replace { "OR REPLACE " } else { "" };
    let exists = if if_not_exists { "IF NOT EXISTS " } else { "" };
    format!("CREATE {replace}{kind} {exists}{}", quote_name(name))
}

impl Display for CreateSource {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let head = create_head(self.kind, self.or_replace, self.if_not_exists, &self.name);
        write!(
            f,
            "{head} ({}){}",
            comma_separated(&self.columns),
            self.with
        )
    }
}

impl Display for CreateAs {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let head = create_head(self.kind, self.or_replace, self.if_not_exists, &self.name);
        write!(f, "{head}{} AS {}", self.with, self.query)
    }
}

impl Display for ColumnDef {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let role = match self.role {
            ColumnRole::Value => "",
            ColumnRole::Key => " KEY",
            ColumnRole::PrimaryKey => " PRIMARY KEY",
        };
        write!(f, "{} {}{role}", quote_name(&self.name), self.data_type)
    }
}

/// The clause with a blank in front; nothing for no properties.
impl Display for Properties {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let assignments = self.0.iter().map(|(name, value)| {
            let name = if is_plain_word(name) {
                name.clone()
            } else {
                quote_literal(name)
            };
            format!("{name} = {value}")
        });
        write!(f, " WITH ({})", comma_separated(assignments))
    }
}

impl Display for PropertyValue {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::String(text) => f.write_str(&quote_literal(text)),
            Self::Number(number) => f.write_str(number),
            Self::Boolean(true) => f.write_str("TRUE"),
            Self::Boolean(false) => f.write_str("FALSE"),
        }
    }
}

impl Display for SqlType {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "BOOLEAN",
            Self::SmallInt => "SMALLINT",
            Self::Int => "INT",
            Self::BigInt => "BIGINT",
            Self::Real => "REAL",
            Self::Double => "DOUBLE",
            Self::Decimal(precision, scale) => return write!(f, "DECIMAL({precision}, {scale})"),
            Self::String => "STRING",
            Self::Bytes => "BYTES",
            Self::Time => "TIME",
            Self::Date => "DATE",
            Self::Timestamp => "TIMESTAMP",
            Self::TimestampTz => "TIMESTAMPTZ",
            Self::Array(element) => return write!(f, "ARRAY<{element}>"),
            Self::Map(key, value) => return write!(f, "MAP<{key}, {value}>"),
            Self::Struct(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, data_type)| format!("{} {data_type}", quote_name(name)));
                return write!(f, "STRUCT<{}>", comma_separated(fields));
            }
        })
    }
}

impl Display for Insert {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "INSERT INTO {}{} ",
            quote_name(&self.name),
            name_list(&self.columns)
        )?;
        match &self.source {
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

impl Display for Copy {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match &self.target {
            CopyTarget::Relation { name, columns } => {
                write!(f, "COPY {}{}", quote_name(name), name_list(columns))?
            }
            CopyTarget::Query(query) => write!(f, "COPY ({query})")?,
        }
        f.write_str(match self.direction {
            CopyDirection::FromStdin => " FROM STDIN",
            CopyDirection::ToStdout => " TO STDOUT",
        })?;
        self.options.fmt(f)
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

impl Display for Drop {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let exists = if self.if_exists { "IF EXISTS " } else { "" };
        let topic = if self.delete_topic {
            " DELETE TOPIC"
        } else {
            ""
        };
        write!(
            f,
            "DROP {} {exists}{}{topic}",
            self.kind,
            quote_name(&self.name)
        )
    }
}

impl Display for QueryTarget {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::Id(id) => f.write_str(&quote_name(id)),
            Self::All => f.write_str("ALL"),
        }
    }
}

impl Display for Show {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Streams => "SHOW STREAMS",
            Self::Tables => "SHOW TABLES",
            Self::Topics { all: false } => "SHOW TOPICS",
            Self::Topics { all: true } => "SHOW ALL TOPICS",
            Self::Queries => "SHOW QUERIES",
            Self::Variable(name) => return write!(f, "SHOW {}", quote_literal(name)),
            Self::All => "SHOW ALL",
        })
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

impl Display for SavepointAction {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::Set(name) => write!(f, "SAVEPOINT {}", quote_name(name)),
            Self::Release(name) => write!(f, "RELEASE SAVEPOINT {}", quote_name(name)),
            Self::RollbackTo(name) => write!(f, "ROLLBACK TO SAVEPOINT {}", quote_name(name)),
        }
    }
}

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
        f.write_str(match self {
            Self::Changes => "EMIT CHANGES",
            Self::Final => "EMIT FINAL",
        })
    }
}

/// A standard tree that prints exactly. The standard tree takes two quotes side by side in a literal's text for one that is escaped
/// already and prints `it''s` for what should be `its''`, so a literal with quotes is replaced by its finished text.
fn exact<T: Visit + VisitMut + Clone>(tree: &T) -> Cow<'_, T> {
    if tree.visit(&mut FindQuotes).is_continue() {
        return Cow::Borrowed(tree);
    }
    let mut exact = tree.clone();
    let ControlFlow::Continue(()) = VisitMut::visit(&mut exact, &mut FinishQuotes);
    Cow::Owned(exact)
}

/// Stops at the first literal with a quote in its text.
struct FindQuotes;

impl Visitor for FindQuotes {
    type Break = ();

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        match &value.value {
            Value::SingleQuotedString(text) if text.contains('\'') => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Replaces literals by their finished text, which a placeholder prints as it is.
struct FinishQuotes;

impl VisitorMut for FinishQuotes {
    type Break = Infallible;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Infallible> {
        if let Value::SingleQuotedString(text) = &value.value {
            value.value = Value::Placeholder(quote_literal(text));
        }
        ControlFlow::Continue(())
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

impl Display for Query {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let body = exact(&self.body).to_string();
        let mut clauses: Vec<(&[&str], String)> = Vec::new();
        if let Some(window) = self.window {
            clauses.push((BEHIND_WINDOW, window.to_string()));
        }
        if !self.partition_by.is_empty() {
            clauses.push((
                BEHIND_PARTITION_BY,
                format!(
                    "PARTITION BY {}",
                    comma_separated(exact(&self.partition_by).iter())
                ),
            ));
        }
        if let Some(emit) = self.emit {
            clauses.push((BEHIND_EMIT, emit.to_string()));
        }
        if clauses.is_empty() {
            return f.write_str(&body);
        }
        let tokens = tokens_of(&body);
        let mut written = 0;
        for (behind, clause) in clauses {
            let at = clause_start(&body, &tokens, behind).max(written);
            f.write_str(&body[written..at])?;
            f.write_str(if at == body.len() { " " } else { "" })?;
            f.write_str(&clause)?;
            f.write_str(if at == body.len() { "" } else { " " })?;
            written = at;
        }
        f.write_str(&body[written..])
    }
}

/// The tokens of a text that the standard tree wrote. If it cannot be read, there are none, and the clauses go to its end.
fn tokens_of(body: &str) -> Vec<TokenWithSpan> {
    let limits = Limits::none();
    let statement = Splitter::new(body, &limits).next_statement();
    statement
        .ok()
        .flatten()
        .map_or_else(Vec::new, |statement| statement.tokens)
}

/// Where the first of the clauses `behind` starts in a query's outermost SELECT, or the end of the text.
fn clause_start(body: &str, tokens: &[TokenWithSpan], behind: &[&str]) -> usize {
    let mut depth = 0_usize;
    let mut seen_from = false;
    for (index, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            Token::Word(_) if depth == 0 && !seen_from => {
                seen_from = streaming::is_from(tokens, index)
            }
            Token::Word(_)
                if depth == 0
                    && streaming::is_any(tokens, index, behind)
                    && !streaming::operand_is_due(tokens, index) =>
            {
                let start = Place::start();
                return Places {
                    script: body,
                    start,
                }
                .offset(token.span.start);
            }
            _ => {}
        }
    }
    body.len()
}
