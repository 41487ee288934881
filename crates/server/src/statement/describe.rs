//! DESCRIBE.

use highwater_planner::{
    catalog::{Column, Relation, SourceKind},
    dataflow::WindowShape,
    types::sql_name,
};

use highwater_sql::Describe;

use super::{functions, rows::SmallResult, unknown_relation};
use crate::{
    session::{Rows, Session, SessionResult},
    sqlstate::SqlError,
};

/// Tag of both forms.
const TAG: &str = "DESCRIBE";

/// Answers what was asked.
pub fn run(session: &Session, describe: &Describe) -> SessionResult<Rows> {
    match describe {
        Describe::Source { name, extended } => source(session, name, *extended),
        Describe::Function(name) => functions::describe(session, name, TAG),
        Describe::Sources { .. } => Err(SqlError::unsupported(format!(
            "{describe} is not supported"
        ))),
    }
}

/// The columns of a stream or table; extended, everything else about it too.
fn source(session: &Session, name: &str, extended: bool) -> SessionResult<Rows> {
    let catalog = session.server.coordinator.catalog();
    let entry = catalog.entry(name).ok_or_else(|| unknown_relation(name))?;
    let relation = &entry.relation;
    if !extended {
        let each = || relation.columns.iter();
        return SmallResult::new(TAG)
            .text("column", each().map(|column| column.name.clone()))
            .text("type", each().map(|column| sql_name(&column.data_type)))
            .text("key", each().map(|column| role(relation, column)))
            .finish();
    }
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("name", relation.name.clone());
    fact("kind", kind(relation).to_owned());
    for column in &relation.columns {
        let role = role(relation, column);
        let role = if role.is_empty() {
            String::new()
        } else {
            format!(" {role}")
        };
        fact(
            &format!("column {}", column.name),
            format!("{}{role}", sql_name(&column.data_type)),
        );
    }
    fact("topic", relation.topic.clone());
    fact("partitions", relation.partitions.to_string());
    fact("key_format", relation.key_format.name.clone());
    fact("value_format", relation.value_format.name.clone());
    if let Some(time) = &relation.timestamp {
        let format = time
            .format
            .as_ref()
            .map(|format| format!(" in format {format}"))
            .unwrap_or_default();
        fact("timestamp", format!("{}{format}", time.column));
    }
    if let Some(window) = &relation.window {
        fact("window", window_text(&window.shape));
        fact("grace", format!("{:?}", window.grace));
        fact(
            "retention",
            window
                .retention
                .map_or_else(|| "for ever".to_owned(), |time| format!("{time:?}")),
        );
    }
    if let Some(query) = relation.query {
        fact("written by", catalog.query_name(query));
    }
    for reader in catalog.readers(relation.id) {
        fact("read by", reader.name.clone());
    }
    fact("statement", entry.statement.clone());
    SmallResult::new(TAG)
        .text("property", facts.iter().map(|(name, _)| name.clone()))
        .text("value", facts.iter().map(|(_, value)| value.clone()))
        .finish()
}

fn kind(relation: &Relation) -> &'static str {
    match relation.kind {
        SourceKind::Stream => "stream",
        SourceKind::Table => "table",
    }
}

fn role(relation: &Relation, column: &Column) -> &'static str {
    match (column.key, relation.kind) {
        (false, _) => "",
        (true, SourceKind::Stream) => "KEY",
        (true, SourceKind::Table) => "PRIMARY KEY",
    }
}

fn window_text(shape: &WindowShape) -> String {
    match shape {
        WindowShape::Tumbling { size } => format!("tumbling, size {size:?}"),
        WindowShape::Hopping { size, advance } => {
            format!("hopping, size {size:?}, advance {advance:?}")
        }
    }
}
