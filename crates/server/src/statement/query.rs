//! SELECT: pull queries here, push queries in [`crate::push`].

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use highwater_sql::ast::Query;

use super::Described;
use crate::{
    pull::{PullContext, PullQuery},
    push::{self, Audience},
    session::{Inferred, Rows, Session, SessionResult, placeholders, substitute},
    sqlstate::SqlError,
};

/// Runs a query for a client that waits for its rows.
pub async fn run(
    session: &mut Session,
    query: &Query,
    parameters: Vec<ScalarValue>,
    script: &Arc<str>,
) -> SessionResult<Rows> {
    rows(session, query, parameters, script, Audience::Direct).await
}

/// Runs a query whose rows go to `audience`.
pub async fn rows(
    session: &mut Session,
    query: &Query,
    parameters: Vec<ScalarValue>,
    script: &Arc<str>,
    audience: Audience,
) -> SessionResult<Rows> {
    if query.emit.is_some() {
        let query = with_values(query, &parameters)?;
        return push::run(session, &query, script, audience).await;
    }
    let context = pull_context(session).await?;
    let query = session.server.coordinator.planner().rewrite_pull(
        query,
        &session.variables.style(),
        script,
        context.catalog.as_ref(),
    )?;
    let script = Arc::clone(script);
    let server = Arc::clone(&session.server);
    let ready = server
        .workers
        .run(async move {
            let bound = context
                .bind(query)
                .await
                .map_err(|error| SqlError::from_datafusion(&error, &script))?;
            let bound = bound.with_parameters(parameters)?;
            bound
                .plan()
                .await
                .map_err(|error| SqlError::from_datafusion(&error, &script))
        })
        .await?;
    Ok(Rows {
        schema: ready.schema(),
        stream: ready.run(&server.workers),
        tag: "SELECT",
        endless: false,
    })
}

/// What a pull query of this session reads now.
pub async fn pull_context(session: &mut Session) -> SessionResult<PullContext> {
    // Before the snapshot: every table of this catalog is in any snapshot taken later.
    let catalog = session.server.coordinator.catalog();
    let snapshot = session.snapshot().await?;
    let log = Arc::clone(&session.server.log);
    Ok(PullContext {
        snapshot,
        catalog,
        log,
        engine: Arc::clone(&session.server.engine),
        state: session.state(),
    })
}

/// Tells parameters and columns.
pub async fn describe(
    session: &mut Session,
    query: &Query,
    declared: &[Option<DataType>],
    script: &Arc<str>,
) -> SessionResult<Described> {
    if query.emit.is_some() {
        let mut parameters = query_placeholders(query);
        for (number, inferred) in &mut parameters {
            *inferred = number
                .checked_sub(1)
                .and_then(|at| declared.get(at))
                .cloned()
                .flatten();
        }
        let nulls = nulls(&parameters)?;
        let query = with_values(query, &nulls)?;
        let schema = push::schema(session, &query, script)?;
        return Ok(Described {
            parameters,
            schema: Some(schema),
        });
    }
    let catalog = session.server.coordinator.catalog();
    let context = PullContext {
        snapshot: session.server.engine.snapshot(),
        log: Arc::clone(&session.server.log),
        engine: Arc::clone(&session.server.engine),
        state: session.state(),
        catalog,
    };
    let query = session.server.coordinator.planner().rewrite_pull(
        query,
        &session.variables.style(),
        script,
        context.catalog.as_ref(),
    )?;
    let (script, declared) = (Arc::clone(script), declared.to_vec());
    let server = Arc::clone(&session.server);
    server
        .workers
        .run(async move {
            let located = |error| SqlError::from_datafusion(&error, &script);
            let bound: PullQuery = context.bind(query).await.map_err(located)?;
            let mut parameters = bound.parameters().map_err(located)?;
            for (number, inferred) in &mut parameters {
                let declared = number
                    .checked_sub(1)
                    .and_then(|at| declared.get(at))
                    .cloned()
                    .flatten();
                *inferred = declared.or_else(|| inferred.take());
            }
            let bound = bound.with_parameters(nulls(&parameters)?)?;
            let schema = bound.optimized_schema().map_err(located)?;
            Ok(Described {
                parameters,
                schema: Some(schema),
            })
        })
        .await
}

/// NULLs of the types that parameters have, to plan with before there are values.
fn nulls(parameters: &Inferred) -> SessionResult<Vec<ScalarValue>> {
    let highest = parameters.keys().next_back().copied().unwrap_or(0);
    (1..=highest)
        .map(|number| {
            let data_type = parameters
                .get(&number)
                .cloned()
                .flatten()
                .unwrap_or(DataType::Utf8);
            ScalarValue::try_from(&data_type).map_err(SqlError::from)
        })
        .collect()
}

fn query_placeholders(query: &Query) -> Inferred {
    let mut found = placeholders(query.body.as_ref());
    for expr in &query.partition_by {
        found.extend(placeholders(expr));
    }
    found
}

/// The query with values in the place of its placeholders.
fn with_values(query: &Query, values: &[ScalarValue]) -> SessionResult<Query> {
    let mut query = query.clone();
    substitute(query.body.as_mut(), values)?;
    for expr in &mut query.partition_by {
        substitute(expr, values)?;
    }
    Ok(query)
}
