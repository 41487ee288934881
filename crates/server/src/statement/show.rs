//! SHOW and LIST.

use std::sync::Arc;

use highwater_exec::{OffsetReset, QueryState, QueryStatus};
use highwater_planner::{
    catalog::{Catalog, Relation, SourceKind},
    explain_dataflow,
};
use highwater_sql::ast::Show;

use super::{describe, functions, topics};
use crate::{
    server::Server,
    session::{Rows, Session, SessionResult},
    small_result::SmallResult,
};

/// Tag of all results of this family.
const TAG: &str = "SHOW";

/// Answers what was asked.
pub fn run(session: &Session, show: &Show) -> SessionResult<Rows> {
    match show {
        Show::Streams { extended: true } => describe::sources(session, SourceKind::Stream, true),
        Show::Tables { extended: true } => describe::sources(session, SourceKind::Table, true),
        Show::Queries { extended: true } => query_facts(&session.server),
        Show::Functions => functions::show(session, TAG),
        Show::Streams { extended: false } => relations(&session.server, SourceKind::Stream),
        Show::Tables { extended: false } => relations(&session.server, SourceKind::Table),
        Show::Topics { all, extended } => topics::show(&session.server, *all, *extended, TAG),
        Show::Queries { extended: false } => queries(&session.server),
        Show::Types => {
            let catalog = session.server.coordinator.catalog();
            SmallResult::new(TAG)
                .text("name", catalog.types().map(|(name, _)| name))
                .text(
                    "type",
                    catalog.types().map(|(_, data_type)| data_type.to_string()),
                )
                .finish()
        }
        Show::Variables => {
            let all: Vec<_> = session.definitions.iter().collect();
            SmallResult::new(TAG)
                .text("name", all.iter().map(|(name, _)| *name))
                .text("value", all.iter().map(|(_, value)| *value))
                .finish()
        }
        Show::Variable(name) => {
            let (name, value) = session.variables.show(name)?;
            SmallResult::new(TAG).text(name, [value]).finish()
        }
        Show::All => {
            let all: Vec<_> = session.variables.show_all().collect();
            SmallResult::new(TAG)
                .text("name", all.iter().map(|(name, _, _)| *name))
                .text("setting", all.iter().map(|(_, value, _)| value.clone()))
                .text("description", all.iter().map(|(_, _, about)| *about))
                .finish()
        }
    }
}

fn relations(server: &Server, kind: SourceKind) -> SessionResult<Rows> {
    let relations: Vec<Arc<Relation>> = server
        .coordinator
        .catalog()
        .relations()
        .into_iter()
        .filter(|relation| relation.kind == kind)
        .collect();
    let each = || relations.iter();
    let result = SmallResult::new(TAG)
        .text("name", each().map(|relation| relation.name.clone()))
        .text("topic", each().map(|relation| relation.topic.clone()))
        .text(
            "key_format",
            each().map(|relation| relation.key_format.name.clone()),
        )
        .text(
            "value_format",
            each().map(|relation| relation.value_format.name.clone()),
        );
    match kind {
        SourceKind::Stream => result.finish(),
        SourceKind::Table => result
            .text(
                "windowed",
                each().map(|relation| {
                    if relation.window.is_some() {
                        "yes"
                    } else {
                        "no"
                    }
                }),
            )
            .finish(),
    }
}

fn queries(server: &Server) -> SessionResult<Rows> {
    let catalog = server.coordinator.catalog();
    let statuses = server.engine.queries();
    let status_of = |id| {
        statuses
            .iter()
            .find(|status: &&QueryStatus| status.id == id)
    };
    let queries: Vec<_> = catalog
        .queries()
        .filter(|query| !query.is_keeper())
        .collect();
    let each = || queries.iter();
    let count = |of: fn(&QueryStatus) -> u64| {
        each()
            .map(|query| status_of(query.id).map(|status| of(status) as i64))
            .collect::<Vec<_>>()
    };
    SmallResult::new(TAG)
        .text("id", each().map(|query| query.name.clone()))
        .text(
            "state",
            each().map(|query| status_of(query.id).map_or_else(|| "stopped".to_owned(), state)),
        )
        .text("sink", each().map(|query| query.relation.name.clone()))
        .text("topic", each().map(|query| query.relation.topic.clone()))
        .number("rows_in", count(|status| status.rows_in))
        .number("rows_out", count(|status| status.rows_out))
        .number("late", count(|status| status.late))
        .text("statement", each().map(|query| query.statement.clone()))
        .finish()
}

/// Everything about each query, by name and value.
fn query_facts(server: &Server) -> SessionResult<Rows> {
    let catalog = server.coordinator.catalog();
    let statuses = server.engine.queries();
    let mut facts: Vec<(String, &str, String)> = Vec::new();
    for query in catalog.queries().filter(|query| !query.is_keeper()) {
        let mut fact = |name, value| facts.push((query.name.clone(), name, value));
        let status = statuses.iter().find(|status| status.id == query.id);
        fact("state", status.map_or_else(|| "stopped".to_owned(), state));
        let mut sources: Vec<&str> = query
            .plan
            .sources()
            .map(|source| source.name.as_str())
            .collect();
        sources.dedup();
        for source in sources {
            fact("reads", source.to_owned());
        }
        fact("writes", query.relation.name.clone());
        fact("topic", query.relation.topic.clone());
        let begins = match query.offset_reset {
            OffsetReset::Earliest => "earliest",
            OffsetReset::Latest => "latest",
        };
        fact("auto.offset.reset", begins.to_owned());
        if let Some(status) = status {
            fact("rows in", status.rows_in.to_string());
            fact("rows out", status.rows_out.to_string());
            fact("late", status.late.to_string());
        }
        fact("statement", query.statement.clone());
        for line in explain_dataflow(&query.plan, Some(&query.relation)) {
            fact("plan", line);
        }
    }
    SmallResult::new(TAG)
        .text("id", facts.iter().map(|(id, ..)| id.clone()))
        .text("property", facts.iter().map(|(_, name, _)| *name))
        .text("value", facts.iter().map(|(.., value)| value.clone()))
        .finish()
}

/// A query's state in words.
pub fn state(status: &QueryStatus) -> String {
    match &status.state {
        QueryState::CatchingUp(per_cent) => format!("catching up: {per_cent} %"),
        QueryState::Running => "running".to_owned(),
        QueryState::Paused => "paused".to_owned(),
        QueryState::Failed(reason) => format!("failed: {reason}"),
    }
}
