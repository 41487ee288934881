//! Schema `hw_catalog`: the server about itself, as tables. What they say was true a moment ago; each query asks once.
//!
//! Whoever folds names to upper case finds the same tables with upper-case columns under `HW_CATALOG`.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use arrow::{
    datatypes::{Field, Schema},
    record_batch::RecordBatch,
};
use datafusion::{
    catalog::{MemTable, SchemaProvider, TableProvider},
    error::{DataFusionError, Result},
};
use highwater_exec::{Engine, QueryState, QueryStatus, Snapshot};
use highwater_planner::{
    catalog::{QueryId, SourceKind},
    explain_dataflow,
};
use highwater_storage_log::{Log, TopicPartition};

use crate::{
    catalog::{CatalogState, QueryEntry, QueryRole},
    session::SessionResult,
    small_result::SmallResult,
};

/// Name of the schema.
pub const HW_CATALOG: &str = "hw_catalog";

/// Names of the tables.
const TABLES: [&str; 5] = ["operators", "pipelines", "queries", "sources", "state"];

/// The only pipeline that there is.
const PIPELINE: &str = "main";

/// The schema, as one query sees it.
pub struct HwCatalog {
    /// Folded to upper case.
    pub upper: bool,
    /// Names and statements.
    pub catalog: Arc<CatalogState>,
    /// Counters.
    pub engine: Arc<Engine>,
    /// Sizes of tables.
    pub snapshot: Snapshot,
    /// Ends of partitions.
    pub log: Arc<dyn Log>,
}

impl fmt::Debug for HwCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HwCatalog").finish_non_exhaustive()
    }
}

impl HwCatalog {
    fn rows(&self, table: &str) -> Option<SessionResult<RecordBatch>> {
        match table {
            "operators" => Some(self.operators()),
            "pipelines" => Some(self.pipelines()),
            "queries" => Some(self.queries()),
            "sources" => Some(self.sources()),
            "state" => Some(self.state()),
            _ => None,
        }
    }

    /// Queries with their counters; one that is on its way into the engine or out of it has none.
    fn with_status(&self) -> Vec<(Arc<QueryEntry>, Option<QueryStatus>)> {
        let statuses = self.engine.queries().into_iter();
        let mut statuses: HashMap<QueryId, QueryStatus> =
            statuses.map(|status| (status.id, status)).collect();
        self.catalog
            .queries()
            .map(|query| (Arc::clone(query), statuses.remove(&query.id)))
            .collect()
    }

    fn queries(&self) -> SessionResult<RecordBatch> {
        let all = self.with_status();
        let each = || all.iter();
        let count = |of: fn(&QueryStatus) -> u64| {
            each().map(move |(_, status)| status.as_ref().map(|status| of(status) as i64))
        };
        let state =
            |status: &Option<QueryStatus>| status.as_ref().map(|status| &status.state).cloned();
        SmallResult::new("SELECT")
            .text("id", each().map(|(query, _)| query.name.as_str()))
            .text("kind", each().map(|(query, _)| kind(query)))
            .text(
                "state",
                each().map(|(_, status)| word(state(status).as_ref())),
            )
            .number(
                "progress",
                each().map(|(_, status)| match state(status) {
                    Some(QueryState::CatchingUp(per_cent)) => Some(i64::from(per_cent)),
                    _ => None,
                }),
            )
            .optional_text(
                "failure",
                each().map(|(_, status)| match state(status) {
                    Some(QueryState::Failed(reason)) => Some(reason),
                    _ => None,
                }),
            )
            .optional_text(
                "rebuilt",
                each().map(|(_, status)| status.as_ref().and_then(|status| status.rebuilt.clone())),
            )
            .text(
                "sink",
                each().map(|(query, _)| query.relation.name.as_str()),
            )
            .text(
                "topic",
                each().map(|(query, _)| query.relation.topic.as_str()),
            )
            .number("rows_in", count(|status| status.rows_in))
            .number("rows_out", count(|status| status.rows_out))
            .number("late", count(|status| status.late))
            .number(
                "table_rows",
                each().map(|(query, _)| {
                    let table = self.snapshot.table(query.relation.id)?;
                    table.estimated_rows().map(|rows| rows as i64)
                }),
            )
            .text(
                "statement",
                each().map(|(query, _)| query.statement.as_str()),
            )
            .batch()
    }

    fn operators(&self) -> SessionResult<RecordBatch> {
        let mut all = Vec::new();
        for (query, status) in self.with_status() {
            let counters = status.map(|status| status.operators).unwrap_or_default();
            let lines = explain_dataflow(&query.plan, None);
            for (node, (line, counters)) in (0..).zip(lines.into_iter().zip(counters)) {
                all.push((query.name.clone(), node, line, counters));
            }
        }
        let each = || all.iter();
        SmallResult::new("SELECT")
            .text("query", each().map(|(query, ..)| query.as_str()))
            .number("node", each().map(|(_, node, ..)| Some(*node)))
            .text("operator", each().map(|(_, _, line, _)| line.as_str()))
            .number(
                "rows_in",
                each().map(|(.., counters)| Some(counters.0 as i64)),
            )
            .number(
                "rows_out",
                each().map(|(.., counters)| Some(counters.1 as i64)),
            )
            .real(
                "busy_ms",
                each().map(|(.., counters)| Some(counters.2 as f64 / 1e6)),
            )
            .batch()
    }

    /// What each query keeps: the state of its operators, and the rows of its table.
    fn state(&self) -> SessionResult<RecordBatch> {
        let mut all = Vec::new();
        for (query, status) in self.with_status() {
            let lines = explain_dataflow(&query.plan, None).into_iter();
            let kept = status
                .iter()
                .flat_map(|status| status.stored.iter().zip(&status.memory));
            for (node, (line, (stored, memory))) in (0..).zip(lines.zip(kept)) {
                if stored.is_some() {
                    all.push(Kept {
                        query: query.name.clone(),
                        node: Some(node),
                        what: line,
                        rows: None,
                        stored: *stored,
                        groups: Some(memory.groups),
                        memory: Some(memory.bytes),
                    });
                }
            }
            if let Some(table) = self.snapshot.table(query.relation.id)
                && query.role != QueryRole::Inserter
            {
                all.push(Kept {
                    query: query.name.clone(),
                    node: None,
                    what: format!("table {}", query.relation.name),
                    rows: table.estimated_rows().map(|rows| rows as i64),
                    stored: status.as_ref().and_then(|status| status.result_stored),
                    groups: None,
                    memory: status.as_ref().map(|status| status.table_bytes),
                });
            }
        }
        let each = || all.iter();
        SmallResult::new("SELECT")
            .text("query", each().map(|kept| kept.query.as_str()))
            .number("node", each().map(|kept| kept.node))
            .text("what", each().map(|kept| kept.what.as_str()))
            .number("rows", each().map(|kept| kept.rows))
            .number(
                "stored_bytes",
                each().map(|kept| kept.stored.map(|bytes| bytes as i64)),
            )
            .number(
                "groups_in_memory",
                each().map(|kept| kept.groups.map(|groups| groups as i64)),
            )
            .number(
                "memory_bytes",
                each().map(|kept| kept.memory.map(|bytes| bytes as i64)),
            )
            .batch()
    }

    /// How far the snapshot's step has read, so that a query which looks at rows and positions sees both at one step.
    fn sources(&self) -> SessionResult<RecordBatch> {
        let all: Vec<_> = self
            .engine
            .sources()
            .into_iter()
            .map(|source| {
                let TopicPartition { topic, partition } = &source.partition;
                let read = self.snapshot.source_positions(topic);
                let read = read.iter().find(|(number, _)| *number == partition.0);
                let position = read.map_or(source.position.0, |(_, offset)| *offset);
                let end = self.log.offsets(&source.partition).ok();
                (source, position, end.map(|offsets| offsets.last_stable.0))
            })
            .collect();
        let each = || all.iter();
        SmallResult::new("SELECT")
            .text(
                "topic",
                each().map(|(source, ..)| source.partition.topic.to_string()),
            )
            .number(
                "partition",
                each().map(|(source, ..)| Some(i64::from(source.partition.partition.0))),
            )
            .number("position", each().map(|(_, position, _)| Some(*position)))
            .number("last_stable_offset", each().map(|(.., end)| *end))
            .number(
                "lag",
                each().map(|(_, position, end)| end.map(|end| (end - position).max(0))),
            )
            .number(
                "rejected",
                each().map(|(source, ..)| Some(source.rejected as i64)),
            )
            .batch()
    }

    fn pipelines(&self) -> SessionResult<RecordBatch> {
        let stopped = self.engine.stopped();
        let queries = self.engine.queries();
        let running = queries
            .iter()
            .filter(|status| status.state == QueryState::Running);
        let late: u64 = queries.iter().map(|status| status.late).sum();
        let rejected: u64 = self
            .engine
            .sources()
            .iter()
            .map(|source| source.rejected)
            .sum();
        let steps = self.engine.steps();
        let millis = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        SmallResult::new("SELECT")
            .text("id", [PIPELINE])
            .text(
                "state",
                [if stopped.is_some() {
                    "stopped"
                } else {
                    "running"
                }],
            )
            .optional_text("failure", [stopped])
            .number("step", [i64::try_from(self.engine.snapshot().step()).ok()])
            .number("queries", [i64::try_from(running.count()).ok()])
            .number("steps", [i64::try_from(steps.count).ok()])
            .real("steps_per_second", [Some(steps.per_second)])
            .real("step_ms_median", [millis(steps.median)])
            .real("step_ms_p99", [millis(steps.p99)])
            .number("late", [i64::try_from(late).ok()])
            .number("rejected", [i64::try_from(rejected).ok()])
            .batch()
    }
}

/// Something that a query keeps.
struct Kept {
    query: String,
    /// The operator; `None` for the query's table.
    node: Option<i64>,
    what: String,
    /// Of a table.
    rows: Option<i64>,
    /// About, on disk.
    stored: Option<u64>,
    /// Groups of an operator that are in memory.
    groups: Option<usize>,
    /// About, in memory.
    memory: Option<usize>,
}

fn kind(query: &QueryEntry) -> &'static str {
    match (query.role, query.relation.kind) {
        (QueryRole::Keeper, _) => "declared table",
        (QueryRole::Inserter, _) => "insert",
        (QueryRole::Maker, SourceKind::Stream) => "stream",
        (QueryRole::Maker, SourceKind::Table) => "table",
    }
}

fn word(state: Option<&QueryState>) -> &'static str {
    match state {
        None => "stopped",
        Some(QueryState::CatchingUp(_)) => "catching up",
        Some(QueryState::Running) => "running",
        Some(QueryState::Paused) => "paused",
        Some(QueryState::Failed(_)) => "failed",
    }
}

/// The same rows under upper-case names.
fn to_upper_case(rows: &RecordBatch) -> Result<RecordBatch> {
    let upper = |field: &Arc<Field>| {
        let name = field.name().to_uppercase();
        field.as_ref().clone().with_name(name)
    };
    let fields: Vec<Field> = rows.schema().fields().iter().map(upper).collect();
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        rows.columns().to_vec(),
    )?)
}

#[async_trait::async_trait]
impl SchemaProvider for HwCatalog {
    fn table_names(&self) -> Vec<String> {
        TABLES.map(str::to_owned).to_vec()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let folded = match self.upper {
            true => name.to_lowercase(),
            false => name.to_owned(),
        };
        let Some(rows) = self.rows(&folded) else {
            return Ok(None);
        };
        let mut rows = rows.map_err(|error| DataFusionError::External(Box::new(error)))?;
        if self.upper {
            rows = to_upper_case(&rows)?;
        }
        let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
        Ok(Some(Arc::new(table)))
    }

    fn table_exist(&self, name: &str) -> bool {
        TABLES.iter().any(|table| match self.upper {
            true => table.eq_ignore_ascii_case(name),
            false => *table == name,
        })
    }
}
