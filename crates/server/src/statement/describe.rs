//! DESCRIBE.

use highwater_planner::{
    catalog::{Catalog, Column, Relation, SourceKind},
    dataflow::WindowShape,
    types::sql_name,
};

use highwater_sql::Describe;

use super::{functions, topics, unknown_relation};
use crate::{
    catalog::{CatalogState, RelationEntry},
    server::Server,
    session::{Rows, Session, SessionResult},
    small_result::SmallResult,
};

/// Tag of all forms.
const TAG: &str = "DESCRIBE";

/// Answers what was asked.
pub fn run(session: &Session, describe: &Describe) -> SessionResult<Rows> {
    match describe {
        Describe::Source { name, extended } => source(session, name, *extended),
        Describe::Sources { kind, extended } => sources(session, *kind, *extended),
        Describe::Function(name) => functions::describe(session, name, TAG),
    }
}

/// The columns of a stream or table; extended, everything else about it too.
fn source(session: &Session, name: &str, extended: bool) -> SessionResult<Rows> {
    let catalog = session.server.coordinator.catalog();
    let entry = catalog.entry(name).ok_or_else(|| unknown_relation(name))?;
    if extended {
        let facts = facts(&session.server, &catalog, entry)?;
        return SmallResult::new(TAG)
            .text("property", facts.iter().map(|(name, _)| name.clone()))
            .text("value", facts.iter().map(|(_, value)| value.clone()))
            .finish();
    }
    let relation = &entry.relation;
    let each = || relation.columns.iter();
    SmallResult::new(TAG)
        .text("column", each().map(|column| column.name.clone()))
        .text("type", each().map(|column| sql_name(&column.data_type)))
        .text("key", each().map(|column| role(relation, column)))
        .finish()
}

/// The same of every stream or of every table, with its name in front.
pub(super) fn sources(session: &Session, kind: SourceKind, extended: bool) -> SessionResult<Rows> {
    let catalog = session.server.coordinator.catalog();
    let relations = catalog.relations();
    let entries: Vec<&RelationEntry> = relations
        .iter()
        .filter(|relation| relation.kind == kind)
        .filter_map(|relation| catalog.entry(&relation.name))
        .collect();
    if extended {
        let mut facts: Vec<(&str, (String, String))> = Vec::new();
        for entry in &entries {
            let name = entry.relation.name.as_str();
            let about = self::facts(&session.server, &catalog, entry)?;
            facts.extend(about.into_iter().map(|fact| (name, fact)));
        }
        return SmallResult::new(TAG)
            .text("name", facts.iter().map(|(name, _)| *name))
            .text("property", facts.iter().map(|(_, (name, _))| name.clone()))
            .text("value", facts.iter().map(|(_, (_, value))| value.clone()))
            .finish();
    }
    let columns: Vec<(&Relation, &Column)> = entries
        .iter()
        .map(|entry| entry.relation.as_ref())
        .flat_map(|relation| {
            relation
                .columns
                .iter()
                .map(move |column| (relation, column))
        })
        .collect();
    let each = || columns.iter();
    SmallResult::new(TAG)
        .text("name", each().map(|(relation, _)| relation.name.clone()))
        .text("column", each().map(|(_, column)| column.name.clone()))
        .text(
            "type",
            each().map(|(_, column)| sql_name(&column.data_type)),
        )
        .text(
            "key",
            each().map(|(relation, column)| role(relation, column)),
        )
        .finish()
}

/// Everything about a stream or table, by name and value.
fn facts(
    server: &Server,
    catalog: &CatalogState,
    entry: &RelationEntry,
) -> SessionResult<Vec<(String, String)>> {
    let relation = &entry.relation;
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
    let offsets = topics::records(server.log.as_ref(), &relation.topic)?;
    fact("offsets", offsets.to_string());
    // Both are known of what queries read.
    if let Some(unread) = topics::unread(server, &relation.topic)? {
        fact("unread", unread.to_string());
        let sources = server.engine.sources();
        let rejected: u64 = sources
            .iter()
            .filter(|source| source.partition.topic.as_ref() == relation.topic)
            .map(|source| source.rejected)
            .sum();
        fact("rejected", rejected.to_string());
    }
    let makers = catalog
        .makers(relation.id)
        .filter(|query| !query.is_keeper());
    let statuses = server.engine.queries();
    for query in makers.chain(catalog.inserters(relation.id)) {
        fact("written by", query.name.clone());
        if let Some(status) = statuses.iter().find(|status| status.id == query.id) {
            fact("rows written", status.rows_out.to_string());
        }
    }
    for query in catalog.readers(relation.id) {
        fact("read by", query.name.clone());
    }
    fact("statement", entry.statement.clone());
    Ok(facts)
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
        WindowShape::Session { gap } => format!("session, gap {gap:?}"),
        WindowShape::Tumbling { size } => format!("tumbling, size {size:?}"),
        WindowShape::Hopping { size, advance } => {
            format!("hopping, size {size:?}, advance {advance:?}")
        }
    }
}
