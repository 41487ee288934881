//! Push queries: a change feed as rows.
//!
//! The engine offers each committed step's changes without waiting. What waits for a slow reader is bounded in bytes; beyond the bound the
//! reader loses its subscription with 53400 and knows that it has missed something. Dropping the rows ends the subscription.

mod feed;
mod operation;

use std::sync::Arc;

use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use highwater_exec::{
    Engine, FeedStart, OffsetReset, SubscribeOptions, SubscriptionId, is_resumable,
};
use highwater_planner::PushPlan;
use highwater_sql::{Changes, ChangesStart, Emit, ast::Query};

use crate::{
    session::{Notice, RowStream, Rows, Session, SessionResult, blocking},
    sqlstate::code,
};
use feed::{Feed, FeedReader};
use operation::ChangeRows;

/// Who gets the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The client that sent the SELECT: psql shows nothing before the end then, and is told so.
    Direct,
    /// A cursor or COPY, which show rows as they come.
    Piecewise,
}

/// Starts a push query.
pub async fn run(
    session: &mut Session,
    query: &Query,
    script: &Arc<str>,
    audience: Audience,
) -> SessionResult<Rows> {
    let plan = plan(session, query, script)?;
    let limit = plan.limit;
    if audience == Audience::Direct
        && limit.is_none()
        && session.variables.application_name() == "psql"
    {
        session.notice(how_to_watch());
    }
    let clauses = clauses(query);
    let rows = ChangeRows::new(&plan.plan, clauses.with_step);
    let schema = rows.schema();
    // Following the changes is what a push query is for, so it begins with the next one unless told otherwise.
    let start = match (clauses.start, session.variables.offset_reset()) {
        (ChangesStart::After(step), _) => FeedStart::After(step),
        (ChangesStart::Snapshot, _) | (ChangesStart::Setting, Some(OffsetReset::Earliest)) => {
            FeedStart::History
        }
        (ChangesStart::Setting, _) => FeedStart::Next,
    };
    let options = SubscribeOptions {
        start,
        with_steps: clauses.with_step,
    };
    let resumable = is_resumable(&plan.plan);
    let (feed, reader) = feed::bounded(session.server.config.push_buffer_bytes, resumable);
    let engine = Arc::clone(&session.server.engine);
    let subscription = blocking(move || Subscription::start(engine, plan, options, feed)).await??;
    let stream = changes(subscription, reader, rows, limit);
    Ok(Rows {
        schema,
        stream,
        tag: "SELECT",
        endless: true,
    })
}

/// Columns of a push query.
pub fn schema(session: &Session, query: &Query, script: &Arc<str>) -> SessionResult<SchemaRef> {
    let plan = plan(session, query, script)?.plan;
    Ok(ChangeRows::new(&plan, clauses(query).with_step).schema())
}

fn clauses(query: &Query) -> Changes {
    match query.emit {
        Some(Emit::Changes(changes)) => changes,
        Some(Emit::Final) | None => Changes::default(),
    }
}

fn plan(session: &Session, query: &Query, script: &str) -> SessionResult<PushPlan> {
    let coordinator = &session.server.coordinator;
    coordinator.planner().plan_push(
        query,
        &session.variables.style(),
        script,
        coordinator.catalog().as_ref(),
    )
}

fn how_to_watch() -> Notice {
    Notice {
        severity: "NOTICE",
        code: code::SUCCESSFUL_COMPLETION,
        message: "this query does not end, and psql shows the rows of a SELECT when it ends".to_owned(),
        hint: Some(
            "To watch rows as they come, press Ctrl-C and run COPY (SELECT .. EMIT CHANGES) TO STDOUT, or \\set FETCH_COUNT 1 first; \
             add LIMIT n for a query that ends."
                .to_owned(),
        ),
    }
}

/// A running push query; dropping it ends the query.
struct Subscription {
    engine: Arc<Engine>,
    id: SubscriptionId,
}

impl Subscription {
    fn start(
        engine: Arc<Engine>,
        plan: PushPlan,
        options: SubscribeOptions,
        feed: Feed,
    ) -> SessionResult<Self> {
        let id = engine.subscribe(plan.plan, options, Box::new(feed))?;
        Ok(Self { engine, id })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.engine.unsubscribe(self.id);
    }
}

fn changes(
    subscription: Subscription,
    reader: FeedReader,
    rows: ChangeRows,
    limit: Option<u64>,
) -> RowStream {
    let left = limit.unwrap_or(u64::MAX);
    Box::pin(futures::stream::unfold(
        (subscription, reader, rows, left),
        |(subscription, mut reader, rows, left)| async move {
            if left == 0 {
                return None;
            }
            let batch = match reader.next().await? {
                Ok(changes) => rows.convert(&changes),
                Err(error) => Err(error),
            };
            let (batch, left) = match batch {
                Ok(batch) => limited(batch, left),
                Err(error) => (Err(error), 0),
            };
            Some((batch, (subscription, reader, rows, left)))
        },
    ))
}

fn limited(batch: RecordBatch, left: u64) -> (SessionResult<RecordBatch>, u64) {
    let rows = batch
        .num_rows()
        .min(usize::try_from(left).unwrap_or(usize::MAX));
    (Ok(batch.slice(0, rows)), left - rows as u64)
}
