//! SHOW and LIST.

use std::sync::Arc;

use highwater_exec::{QueryState, QueryStatus};
use highwater_planner::catalog::{Catalog, Relation, SourceKind};
use highwater_sql::ast::Show;
use highwater_storage_log::TopicPartition;

use super::{functions, rows::SmallResult};
use crate::{
    catalog::builtin::INTERNAL_PREFIX,
    server::Server,
    session::{Rows, Session, SessionResult},
    sqlstate::SqlError,
};

/// Tag of all results of this family.
const TAG: &str = "SHOW";

/// Answers what was asked.
pub fn run(session: &Session, show: &Show) -> SessionResult<Rows> {
    match show {
        Show::Streams { extended: true }
        | Show::Tables { extended: true }
        | Show::Topics { extended: true, .. }
        | Show::Queries { extended: true }
        | Show::Types
        | Show::Variables => Err(SqlError::unsupported(format!("{show} is not supported"))),
        Show::Functions => functions::show(session, TAG),
        Show::Streams { extended: false } => relations(&session.server, SourceKind::Stream),
        Show::Tables { extended: false } => relations(&session.server, SourceKind::Table),
        Show::Topics {
            all,
            extended: false,
        } => topics(&session.server, *all),
        Show::Queries { extended: false } => queries(&session.server),
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

fn topics(server: &Server, all: bool) -> SessionResult<Rows> {
    let topics: Vec<_> = server
        .log
        .topics()
        .into_iter()
        .filter(|topic| all || !topic.name.starts_with(INTERNAL_PREFIX))
        .collect();
    let mut records = Vec::with_capacity(topics.len());
    for topic in &topics {
        let mut count = 0;
        for number in 0..topic.config.partitions {
            let offsets = server
                .log
                .offsets(&TopicPartition::new(Arc::clone(&topic.name), number))?;
            count += offsets.last_stable.0 - offsets.log_start.0;
        }
        records.push(Some(count));
    }
    SmallResult::new(TAG)
        .text("name", topics.iter().map(|topic| topic.name.to_string()))
        .number(
            "partitions",
            topics
                .iter()
                .map(|topic| Some(i64::from(topic.config.partitions))),
        )
        .number("offsets", records)
        .finish()
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

/// A query's state in words.
pub fn state(status: &QueryStatus) -> String {
    match &status.state {
        QueryState::Running => "running".to_owned(),
        QueryState::Paused => "paused".to_owned(),
        QueryState::Failed(reason) => format!("failed: {reason}"),
    }
}
