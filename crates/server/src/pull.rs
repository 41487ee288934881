//! Pull queries: DataFusion over one snapshot.
//!
//! A pull query sees every table at one committed step and every stream from its start up to the offsets which that step had read (or, for
//! a stream that no query reads, up to its end when the query began). It runs on the pull workers; dropping its rows ends it.

mod catalog;
mod hw_catalog;
mod key_range;
mod names;
mod rewrite;
mod scan;
mod stream;
mod table;

use std::sync::Arc;

use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use datafusion::{
    error::Result as DataFusionResult,
    execution::{SessionState, TaskContext},
    logical_expr::LogicalPlan,
    physical_plan::{
        ExecutionPlan, display::DisplayableExecutionPlan, displayable, execute_stream,
    },
    scalar::ScalarValue,
    sql::parser::Statement as DataFusionStatement,
};
use futures::StreamExt;
use highwater_exec::{Engine, Snapshot};
use highwater_storage_log::Log;
use sqlparser::ast as std_ast;
use tokio::sync::mpsc;

use crate::{
    catalog::CatalogState,
    session::{Inferred, RowStream, SessionResult, value_of},
    sqlstate::SqlError,
    worker::Workers,
};

pub use catalog::{DATABASE, SCHEMA};
use names::OutputNames;

/// Batches that wait between a worker and a slow client: enough to overlap both, few enough to bound memory.
const WAITING_BATCHES: usize = 2;

/// What pull queries of one moment read.
#[derive(Clone)]
pub struct PullContext {
    /// The step.
    pub snapshot: Snapshot,
    /// Names.
    pub catalog: Arc<CatalogState>,
    /// Streams.
    pub log: Arc<dyn Log>,
    /// What `hw_catalog` tells of.
    pub engine: Arc<Engine>,
    /// Functions and settings of the session; its catalog is replaced.
    pub state: SessionState,
}

/// A pull query that is bound to a snapshot.
pub struct PullQuery {
    state: SessionState,
    plan: LogicalPlan,
    names: OutputNames,
}

impl PullContext {
    /// Binds a query.
    pub async fn bind(self, mut query: Box<std_ast::Query>) -> DataFusionResult<PullQuery> {
        rewrite::unqualify_functions(&mut query);
        let names = OutputNames::assign(&mut query);
        let mut state = self.state;
        let databases = catalog::databases(self.snapshot, self.catalog, self.log, self.engine);
        state.register_catalog_list(databases);
        let statement = DataFusionStatement::Statement(Box::new(std_ast::Statement::Query(query)));
        let plan = state.statement_to_plan(statement).await?;
        Ok(PullQuery { state, plan, names })
    }
}

impl PullQuery {
    /// Types of `$1`, `$2`, .. as far as the query tells them.
    pub fn parameters(&self) -> DataFusionResult<Inferred> {
        let types = self.plan.get_parameter_types()?;
        let number = |name: &str| {
            name.strip_prefix('$')
                .and_then(|number| number.parse().ok())
        };
        Ok(types
            .into_iter()
            .filter_map(|(name, data_type)| Some((number(&name)?, data_type)))
            .collect())
    }

    /// Puts values in the place of `$1`, `$2`, ..
    pub fn with_parameters(self, values: Vec<ScalarValue>) -> SessionResult<Self> {
        if let Some((number, _)) = self.parameters()?.last_key_value() {
            value_of(*number, &values)?;
        }
        if values.is_empty() {
            return Ok(self);
        }
        Ok(Self {
            plan: self.plan.with_param_values(values)?,
            ..self
        })
    }

    /// Columns that running the query will give: type coercion has its say.
    pub fn optimized_schema(&self) -> DataFusionResult<SchemaRef> {
        let optimized = self.state.optimize(&self.plan)?;
        Ok(self.names.restore(optimized.schema().inner()))
    }

    /// Plans the query.
    pub async fn plan(self) -> DataFusionResult<ReadyQuery> {
        let plan = self.state.create_physical_plan(&self.plan).await?;
        Ok(ReadyQuery {
            plan,
            names: self.names,
            tasks: self.state.task_ctx(),
        })
    }
}

/// A pull query that is planned.
pub struct ReadyQuery {
    plan: Arc<dyn ExecutionPlan>,
    names: OutputNames,
    tasks: Arc<TaskContext>,
}

impl ReadyQuery {
    /// Columns of the result.
    pub fn schema(&self) -> SchemaRef {
        self.names.restore(&self.plan.schema())
    }

    /// The plan as text, one operator a line, the result first.
    pub fn explain(&self) -> Vec<String> {
        displayable(self.plan.as_ref())
            .indent(false)
            .to_string()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Runs the query to its end for its counters: the plan as text with them.
    pub async fn explain_analyze(&self) -> DataFusionResult<Vec<String>> {
        let mut rows = execute_stream(Arc::clone(&self.plan), Arc::clone(&self.tasks))?;
        while let Some(batch) = rows.next().await {
            batch?;
        }
        let display = DisplayableExecutionPlan::with_metrics(self.plan.as_ref())
            .indent(false)
            .to_string();
        Ok(display.lines().map(str::to_owned).collect())
    }

    /// Runs on the workers; rows come as they are made.
    pub fn run(self, workers: &Workers) -> RowStream {
        let (sender, mut receiver) = mpsc::channel::<SessionResult<RecordBatch>>(WAITING_BATCHES);
        let task = workers.spawn(async move {
            if let Err(error) = self.send_rows(&sender).await {
                // A closed channel means that nobody waits for the error either.
                let _ = sender.send(Err(SqlError::from(error))).await;
            }
        });
        Box::pin(owning(task, move |context| receiver.poll_recv(context)))
    }

    async fn send_rows(
        self,
        sender: &mpsc::Sender<SessionResult<RecordBatch>>,
    ) -> DataFusionResult<()> {
        let mut rows = execute_stream(self.plan, self.tasks)?;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 && sender.send(Ok(batch)).await.is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// A stream that keeps `owner` alive until it is dropped.
fn owning<O, T>(
    owner: O,
    mut poll: impl FnMut(&mut std::task::Context<'_>) -> std::task::Poll<Option<T>>,
) -> impl futures::Stream<Item = T> {
    futures::stream::poll_fn(move |context| {
        let _keeps_the_task_running = &owner;
        poll(context)
    })
}
