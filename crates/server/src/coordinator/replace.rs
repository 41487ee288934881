//! `CREATE OR REPLACE`.
//!
//! A stream's query can get another filter and other columns behind those that there are, as long as it remembers nothing of the records
//! that it read: the new query goes on at the record where the old one stood, and what the old one wrote stays. As with ALTER, the
//! stream then is another relation under the same name, and queries that read it before read on what they know.
//!
//! A table is built anew from what its new query reads, whatever that remembers, and what differs is sent: to its topic, to the queries that
//! read it and to whoever watches. It keeps its ids, and with them its readers.
//!
//! The old query pauses first, so that a checkpoint tells where it stands; a stream's positions are part of the record of the change. A crash
//! before the record leaves a pause that the catalog knows nothing of, which recovery ends; one after it leaves a new query that begins
//! at the recorded positions, or a table that recovery builds anew.

use std::sync::Arc;

use highwater_exec::OffsetReset;
use highwater_planner::{
    catalog::{QueryId, Relation, RelationId, SourceKind},
    dataflow::{DataflowPlan, Operator},
};
use highwater_sql::Statement;
use highwater_storage_log::{Offset, TopicPartition};

use super::{Coordinator, Created, recorded_text};
use crate::{
    catalog::{CatalogState, QueryEntry, RelationEntry, command::Command},
    planning::{Planned, Redeclared, StatementStyle},
    sqlstate::{SqlError, code},
};

/// A CREATE OR REPLACE of something that is there.
pub(super) struct Replacing<'a> {
    /// The catalog as it is.
    pub catalog: &'a CatalogState,
    /// What is there.
    pub existing: &'a RelationEntry,
    /// The statement.
    pub statement: &'a Statement,
    /// How it is read.
    pub style: &'a StatementStyle,
    /// Where its query begins to read.
    pub reset: OffsetReset,
}

/// The ids that a CREATE OR REPLACE gives on: those of a table that a query makes.
pub(super) fn replaced_ids(catalog: &CatalogState, name: &str) -> Option<(RelationId, QueryId)> {
    let relation = &catalog.entry(name)?.relation;
    let maker = catalog.maker(relation.id)?;
    let is_table = relation.kind == SourceKind::Table && !maker.is_keeper();
    is_table.then_some((relation.id, maker.id))
}

impl Coordinator {
    /// Takes the place of what is there. `next_id` is the guard's.
    pub(super) fn replace(
        &self,
        replacing: &Replacing<'_>,
        planned: Planned,
        next_id: &mut u64,
    ) -> Result<Created, SqlError> {
        let existing = &replacing.existing.relation;
        let maker = replacing.catalog.maker(existing.id);
        let maker = maker.filter(|query| !query.is_keeper());
        let (Some(old), Some(new)) = (maker, &planned.query) else {
            return replace_declared(existing, &planned.relation);
        };
        let text = recorded_text(
            replacing.statement,
            &planned.relation,
            replacing.style.language,
        );
        if text == replacing.existing.statement {
            return Ok(Created::Replaced);
        }
        check_result(existing, &planned.relation)?;
        if existing.kind == SourceKind::Table {
            check_rebuild(replacing.catalog, existing, old, new)?;
            let revision = *next_id;
            *next_id += 1;
            self.rebuild(replacing, old, planned, text, revision)?;
            return Ok(Created::Replaced);
        }
        check_upgrade(existing, old, new)?;
        *next_id += 2;
        let redeclared = Redeclared::new(replacing.existing, planned, &text, replacing.style);
        self.exchange(replacing, old, redeclared)?;
        Ok(Created::Replaced)
    }

    /// Lets a new query go on for an old one.
    fn exchange(
        &self,
        replacing: &Replacing<'_>,
        old: &Arc<QueryEntry>,
        mut redeclared: Redeclared,
    ) -> Result<(), SqlError> {
        let Some(new) = &mut redeclared.query else {
            return Err(SqlError::internal("a query takes the place of a query"));
        };
        self.engine.pause_query(old.id)?;
        let resume = || match old.paused {
            true => Ok(()),
            false => self.engine.resume_query(old.id),
        };
        new.paused = old.paused;
        new.begins_at = self.stopped_at(old.id);
        let relation = redeclared.entry.relation.id.0;
        let recorded = self.record(&Command::Replace {
            replaced: replacing.existing.relation.id.0,
            statement: redeclared.entry.statement.clone(),
            language: replacing.style.language.into(),
            settings: replacing.style.defaults.to_settings(),
            relation,
            query: new.id.0,
            positions: new.begins_at.iter().map(recorded_position).collect(),
        });
        if let Err(error) = recorded {
            resume()?;
            return Err(error);
        }
        // ORDER: recorded, then running, then visible.
        if let Err(error) = self.engine.create_query(new.to_persistent()) {
            self.record(&Command::UndoChange { relation })?;
            resume()?;
            return Err(error.into());
        }
        self.engine.drop_query(old.id)?;
        let mut changed = replacing.catalog.clone();
        changed.remove_query(old.id);
        redeclared.put_into(&mut changed);
        self.publish(changed);
        Ok(())
    }

    /// Builds a table anew by another query.
    fn rebuild(
        &self,
        replacing: &Replacing<'_>,
        old: &QueryEntry,
        planned: Planned,
        text: String,
        revision: u64,
    ) -> Result<(), SqlError> {
        let (entry, style) = (replacing.existing, replacing.style);
        let rebuilt = Redeclared::rebuilt(entry, old, planned, &text, style, revision);
        let Some(new) = &rebuilt.query else {
            return Err(SqlError::internal("a query takes the place of a query"));
        };
        let new = new.to_persistent();
        self.engine.pause_query(old.id)?;
        let recorded = self.record(&Command::ReplaceTable {
            relation: entry.relation.id.0,
            statement: text,
            language: style.language.into(),
            settings: style.defaults.to_settings(),
            beginning: replacing.reset.into(),
            revision,
        });
        if let Err(error) = recorded {
            self.engine.resume_query(old.id)?;
            return Err(error);
        }
        // ORDER: recorded, then running, then visible.
        if let Err(error) = self.engine.replace_query(new) {
            self.record(&Command::UndoChange { relation: revision })?;
            self.engine.resume_query(old.id)?;
            return Err(error.into());
        }
        let mut changed = replacing.catalog.clone();
        rebuilt.put_into(&mut changed);
        self.publish(changed);
        Ok(())
    }

    /// Where a paused query stands.
    fn stopped_at(&self, query: QueryId) -> Vec<(TopicPartition, Offset)> {
        self.engine
            .queries()
            .into_iter()
            .find(|status| status.id == query)
            .map(|status| status.stopped_at)
            .unwrap_or_default()
    }
}

fn recorded_position((partition, offset): &(TopicPartition, Offset)) -> (String, u32, i64) {
    let topic = partition.topic.to_string();
    (topic, partition.partition.0, offset.0)
}

/// A declared source is replaced where that changes nothing.
fn replace_declared(existing: &Relation, planned: &Relation) -> Result<Created, SqlError> {
    let renumbered = Relation {
        id: existing.id,
        query: existing.query,
        ..planned.clone()
    };
    if renumbered == *existing && existing.query.is_none() && !existing.read_only {
        return Ok(Created::Replaced);
    }
    let refused = format!(
        "OR REPLACE cannot change \"{}\", which is declared and not made by a query",
        existing.name
    );
    let kind = super::kind_name(existing.kind).to_uppercase();
    Err(SqlError::unsupported(refused).with_hint(format!(
        "ALTER {kind} .. ADD COLUMN adds columns; for other changes, drop it and create it again"
    )))
}

fn refused(existing: &Relation, reason: String) -> Result<(), SqlError> {
    let name = &existing.name;
    Err(SqlError::new(
        code::FEATURE_NOT_SUPPORTED,
        format!("OR REPLACE cannot change \"{name}\" like this: {reason}"),
    )
    .with_hint(format!(
        "drop \"{name}\" and create it again; that reads its sources from their beginning"
    )))
}

/// Whether a stream's query can go on for another.
fn check_upgrade(existing: &Relation, old: &QueryEntry, new: &QueryEntry) -> Result<(), SqlError> {
    let refused = |reason| refused(existing, reason);
    for (query, whose) in [(old, "the old"), (new, "the new")] {
        if let Some(memory) = remembers(&query.plan) {
            return refused(format!(
                "{whose} query {memory}, so it cannot go on where another stood"
            ));
        }
    }
    if sources(&old.plan) != sources(&new.plan) {
        return refused(format!(
            "it reads {}, and has to go on reading {}",
            sources(&new.plan).join(", "),
            sources(&old.plan).join(", ")
        ));
    }
    Ok(())
}

/// Whether a table can be built anew by another query: one that reads only what was there before the table, so no two tables ever wait for each
/// other.
fn check_rebuild(
    catalog: &CatalogState,
    existing: &Relation,
    old: &QueryEntry,
    new: &QueryEntry,
) -> Result<(), SqlError> {
    if old.paused {
        let name = &existing.name;
        return Err(SqlError::new(
            code::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "cannot replace \"{name}\": its query {} is paused",
                old.name
            ),
        )
        .with_hint(format!("RESUME {} first", old.name)));
    }
    let younger = new.plan.sources().find(|source| {
        let maker = catalog.maker(source.id);
        maker.is_some_and(|maker| maker.id > old.id)
    });
    match younger {
        Some(source) => refused(
            existing,
            format!("it would read \"{}\", which was made after it", source.name),
        ),
        None => Ok(()),
    }
}

/// Whether the columns and the topic of a relation can become those of another.
fn check_result(existing: &Relation, planned: &Relation) -> Result<(), SqlError> {
    let refused = |reason| refused(existing, reason);
    if planned.kind != existing.kind {
        return refused("a stream stays a stream, and a table a table".to_owned());
    }
    for (position, column) in existing.columns.iter().enumerate() {
        match planned.columns.get(position) {
            Some(same) if same == column => {}
            _ => {
                return refused(format!(
                    "column \"{}\" must stay at its place with its type; new ones come last",
                    column.name
                ));
            }
        }
    }
    if let Some(changed) = changed_property(existing, planned) {
        return refused(format!("its {changed} cannot change"));
    }
    let added = &planned.columns[existing.columns.len()..];
    match added.iter().find(|column| column.key) {
        Some(key) => refused(format!(
            "column \"{}\" cannot become part of the key",
            key.name
        )),
        None => Ok(()),
    }
}

/// What a query keeps of the records that it has read.
fn remembers(plan: &DataflowPlan) -> Option<&'static str> {
    plan.nodes.iter().find_map(|node| match node.operator {
        Operator::Aggregate { .. } | Operator::SessionAggregate { .. } => Some("groups rows"),
        Operator::Join { .. } => Some("joins"),
        _ if node.changing => Some("reads a table"),
        _ => None,
    })
}

/// The names of what a query reads, each once, in order.
fn sources(plan: &DataflowPlan) -> Vec<&str> {
    let mut names: Vec<&str> = plan.sources().map(|source| source.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn changed_property(existing: &Relation, planned: &Relation) -> Option<&'static str> {
    if planned.topic != existing.topic {
        Some("topic")
    } else if planned.partitions != existing.partitions {
        Some("number of partitions")
    } else if planned.key_format != existing.key_format {
        Some("key format")
    } else if planned.value_format != existing.value_format {
        Some("value format")
    } else if planned.timestamp != existing.timestamp {
        Some("timestamp column")
    } else if planned.window.map(|window| window.shape)
        != existing.window.map(|window| window.shape)
    {
        Some("window")
    } else {
        None
    }
}
