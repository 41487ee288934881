//! EXPLAIN.

use std::{collections::BTreeSet, sync::Arc};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use highwater_exec::{OffsetReset, QueryStatus};
use highwater_planner::{
    catalog::{Catalog, QueryId, RelationId},
    explain_dataflow,
};
use highwater_sql::{
    Statement,
    ast::{Explain, ExplainTarget, Query},
};

use super::{query::pull_context, show::state, write::relation};
use crate::{
    catalog::{QueryEntry, QueryRole},
    coordinator::unknown_query,
    planning::Planned,
    server::Server,
    session::{Rows, Session, SessionResult},
    size_text::size_text,
    small_result::SmallResult,
    sqlstate::SqlError,
};

/// Name of the only column, as PostgreSQL has it.
const COLUMN: &str = "QUERY PLAN";

/// Columns of the result.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(COLUMN, DataType::Utf8, true)]))
}

/// Prints a plan, one operator a line.
pub async fn run(
    session: &mut Session,
    explain: &Explain,
    script: &Arc<str>,
) -> SessionResult<Rows> {
    let lines = match &explain.target {
        ExplainTarget::Query(name) => query(session, name, explain.analyze)?,
        ExplainTarget::Statement(statement) => match statement.as_ref() {
            Statement::Query(query) if query.emit.is_none() => {
                pull(session, query, explain.analyze, script).await?
            }
            _ if explain.analyze => {
                return Err(SqlError::unsupported("EXPLAIN ANALYZE of a continuous query that is not running is not supported")
                    .with_hint("EXPLAIN ANALYZE takes a pull query, the id of a running query, or the name of what it makes"));
            }
            Statement::Query(query) => push(session, query, script)?,
            statement @ (Statement::CreateSource(_) | Statement::CreateAs(_)) => {
                create(session, statement, script)?
            }
            Statement::Insert(insert) => {
                let relation = relation(&session.server, &insert.name)?;
                vec![format!(
                    "Insert: {}, topic={}, partitions={}",
                    relation.name, relation.topic, relation.partitions
                )]
            }
            _ => {
                return Err(SqlError::unsupported(
                    "EXPLAIN of this statement is not supported",
                ));
            }
        },
    };
    SmallResult::new("EXPLAIN").text(COLUMN, lines).finish()
}

/// The plan of a query by its id, or by the name of what it makes or keeps.
fn query(session: &Session, name: &str, analyze: bool) -> SessionResult<Vec<String>> {
    let catalog = session.server.coordinator.catalog();
    let made = || catalog.maker(catalog.relation(name)?.id);
    let query = catalog
        .query(name)
        .or_else(made)
        .ok_or_else(|| unknown_query(&catalog, name))?;
    let sink = (!query.is_keeper()).then_some(query.relation.as_ref());
    let mut lines = explain_dataflow(&query.plan, sink);
    if !analyze {
        return Ok(lines);
    }
    let engine = &session.server.engine;
    let Some(status) = engine
        .queries()
        .into_iter()
        .find(|status| status.id == query.id)
    else {
        return Err(SqlError::internal(format!(
            "the engine does not know query {}",
            query.name
        )));
    };
    for (node, (line, counters)) in lines.iter_mut().zip(&status.operators).enumerate() {
        let (rows_in, rows_out, nanos) = counters;
        line.push_str(&format!(
            " (rows in {rows_in}, rows out {rows_out}, time {:.3} ms",
            *nanos as f64 / 1e6
        ));
        if let Some(stored) = status.stored.get(node).copied().flatten() {
            line.push_str(&format!(", state {} on disk", size_text(stored)));
        }
        line.push(')');
    }
    lines.push(format!(
        "State: {}, rows in {}, rows out {}, late {}",
        state(&status),
        status.rows_in,
        status.rows_out,
        status.late
    ));
    lines.extend(in_memory(&status));
    let snapshot = engine.snapshot();
    if let Some(table) = snapshot.table(query.relation.id)
        && query.role != QueryRole::Inserter
    {
        let rows = table.estimated_rows().unwrap_or_default();
        let stored = size_text(status.result_stored.unwrap_or_default());
        let memory = size_text(status.table_bytes as u64);
        lines.push(format!(
            "Table: rows {rows}, {stored} on disk, {memory} in memory"
        ));
    }
    lines.extend(reads(&session.server, query));
    Ok(lines)
}

/// What each operator that keeps state has in memory, on lines of their own: those of the plan are long enough.
fn in_memory(status: &QueryStatus) -> impl Iterator<Item = String> {
    let operators = status.stored.iter().zip(&status.memory).enumerate();
    operators
        .filter(|(_, (stored, _))| stored.is_some())
        .map(|(node, (_, memory))| {
            let bytes = size_text(memory.bytes as u64);
            format!("Memory: n{node} groups {}, {bytes}", memory.groups)
        })
}

/// How far each partition is read that a query reads by itself; what it reads of other queries it gets in the same step.
fn reads(server: &Server, query: &QueryEntry) -> Vec<String> {
    let sources = server.engine.sources();
    let topics: BTreeSet<&str> = query
        .plan
        .sources()
        .map(|relation| relation.topic.as_str())
        .collect();
    let read = sources
        .iter()
        .filter(|source| topics.contains(&*source.partition.topic));
    read.map(|source| {
        let end = server.log.offsets(&source.partition).ok();
        let behind = end.map(|end| (end.last_stable.0 - source.position.0).max(0));
        format!(
            "Reads: {} up to {}, {} behind, {} rejected",
            source.partition,
            source.position.0,
            behind.map_or_else(|| "?".to_owned(), |behind| behind.to_string()),
            source.rejected
        )
    })
    .collect()
}

async fn pull(
    session: &mut Session,
    query: &Query,
    analyze: bool,
    script: &Arc<str>,
) -> SessionResult<Vec<String>> {
    let context = pull_context(session).await?;
    let query = session.server.coordinator.planner().rewrite_pull(
        query,
        &session.variables.style(),
        script,
        context.catalog.as_ref(),
    )?;
    let script = Arc::clone(script);
    session
        .server
        .workers
        .run(async move {
            let located = |error| SqlError::from_datafusion(&error, &script);
            let ready = context
                .bind(query)
                .await
                .map_err(located)?
                .plan()
                .await
                .map_err(located)?;
            match analyze {
                true => ready.explain_analyze().await.map_err(located),
                false => Ok(ready.explain()),
            }
        })
        .await
}

fn push(session: &Session, query: &Query, script: &str) -> SessionResult<Vec<String>> {
    let coordinator = &session.server.coordinator;
    let plan = coordinator.planner().plan_push(
        query,
        &session.variables.style(),
        script,
        coordinator.catalog().as_ref(),
    )?;
    let mut lines = explain_dataflow(&plan.plan, None);
    if let Some(limit) = plan.limit {
        lines.push(format!("Limit: {limit}"));
    }
    Ok(lines)
}

/// Plans as CREATE would, under ids that are never given out.
fn create(session: &Session, statement: &Statement, script: &str) -> SessionResult<Vec<String>> {
    let coordinator = &session.server.coordinator;
    let catalog = coordinator.catalog();
    let (relation, query) = (RelationId(0), QueryId(0));
    let reset = session
        .variables
        .offset_reset()
        .unwrap_or(OffsetReset::Earliest);
    let Planned { relation, query } = coordinator.planner().plan_create(
        statement,
        &session.variables.style(),
        script,
        catalog.as_ref(),
        relation,
        query,
        reset,
    )?;
    Ok(match query {
        Some(query) => {
            let sink = (!query.is_keeper()).then_some(relation.as_ref());
            explain_dataflow(&query.plan, sink)
        }
        None => {
            let declared = format!(
                "Declare: stream {}, topic={}, partitions={}, key_format={}, value_format={}",
                relation.name,
                relation.topic,
                relation.partitions,
                relation.key_format.name,
                relation.value_format.name
            );
            vec![declared]
        }
    })
}
