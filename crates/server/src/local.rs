//! A server without sockets, in the process of whoever wants one: statements, queries and catalog are the real ones, the log is given.
//!
//! This is what tools run pipelines with. Everything that changes goes through a [`LocalSession`], exactly as a client's statements do;
//! records go in and out through the log.
//!
//! INVARIANT: after [`LocalServer::settle`] every record that was in the log when it was called has gone through all queries, and so has
//! everything that the queries made of it.

use std::{
    num::NonZeroUsize,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use highwater_exec::{EngineOptions, ExecError, ExecResult, QueryState};
use highwater_planner::catalog::{Catalog, Relation};
use highwater_storage_log::{Log, Offset, TopicPartition};

use crate::{
    append_signal::AppendSignal,
    catalog::builtin::PROCESSING_LOG_TOPIC,
    config::Settings,
    coordinator::Coordinator,
    error::ServerError,
    planning::Planner,
    pull::DATABASE,
    server::Server,
    session::{Session, StartupParameters},
    sqlstate::SqlError,
    worker::Workers,
};

/// No checkpoint is due before a local server ends, unless a statement needs one.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Settings of a local server.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// Folder for the state of queries; the caller removes it afterwards.
    pub state_folder: PathBuf,
    /// Partitions of a topic that a statement makes without saying how many.
    pub default_partitions: u32,
    /// Most rows that one step takes; 1 gives every change a record of its own.
    pub step_max_rows: usize,
}

/// See the module. Calls block.
pub struct LocalServer {
    server: Arc<Server>,
}

/// A session on a [`LocalServer`].
pub struct LocalSession {
    session: Session,
}

/// A query that an error has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedQuery {
    /// What statements call it.
    pub name: String,
    /// Why it stopped.
    pub reason: String,
}

impl LocalServer {
    /// Starts on `log`, with whatever its command topic tells of.
    pub fn open(log: Arc<dyn Log>, options: &LocalOptions) -> Result<Self, ServerError> {
        let settings = Settings {
            data: Some(options.state_folder.clone()),
            default_partitions: Some(options.default_partitions),
            ..Settings::default()
        };
        let config = settings.validate()?;
        let appended = Arc::new(AppendSignal::new());
        log.add_listener(Arc::clone(&appended) as _);
        let engine_options = EngineOptions {
            catch_up_tail: EngineOptions::CATCH_UP_TAIL,
            state_dir: options.state_folder.clone(),
            step_max_rows: options.step_max_rows,
            workers: NonZeroUsize::MIN,
            checkpoint_interval: CHECKPOINT_INTERVAL,
            state_memory: EngineOptions::STATE_MEMORY,
            feed_history: EngineOptions::FEED_HISTORY,
            processing_log_topic: PROCESSING_LOG_TOPIC.to_owned(),
        };
        let planner = Planner::new(config.default_partitions);
        let coordinator = Coordinator::open(Arc::clone(&log), planner, engine_options)?;
        let server = Server {
            engine: coordinator.engine(),
            workers: Workers::start(1)?,
            config,
            log,
            embedded: None,
            coordinator,
            appended,
        };
        Ok(Self {
            server: Arc::new(server),
        })
    }

    /// Begins a session with these settings, as `SET` would make them.
    pub async fn session(&self, settings: Vec<(String, String)>) -> Result<LocalSession, SqlError> {
        let startup = StartupParameters {
            user: DATABASE.to_owned(),
            database: DATABASE.to_owned(),
            backend_pid: 0,
            settings,
        };
        let session = Session::start(Arc::clone(&self.server), startup).await?;
        Ok(LocalSession { session })
    }

    /// The streams and tables that there are.
    pub fn relations(&self) -> Vec<Arc<Relation>> {
        self.server.coordinator.catalog().relations()
    }

    /// The topics.
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.server.log
    }

    /// The last committed step.
    pub fn step(&self) -> u64 {
        self.server.engine.snapshot().step()
    }

    /// Waits until all queries have read everything, including what they write for each other.
    pub fn settle(&self, timeout: Duration) -> ExecResult<()> {
        let deadline = Instant::now() + timeout;
        let mut ends = self.ends()?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            self.server.engine.snapshot_covering(&ends, left)?;
            // What one query wrote may be another's input, by way of a topic.
            let after = self.ends()?;
            if after == ends {
                return Ok(());
            }
            ends = after;
        }
    }

    /// The queries that do not run any more since an error stopped them.
    pub fn stopped_queries(&self) -> Vec<StoppedQuery> {
        let catalog = self.server.coordinator.catalog();
        let statuses = self.server.engine.queries();
        statuses
            .into_iter()
            .filter_map(|status| match status.state {
                QueryState::Failed(reason) => Some(StoppedQuery {
                    name: catalog.query_name(status.id),
                    reason,
                }),
                QueryState::Running | QueryState::Paused | QueryState::CatchingUp(_) => None,
            })
            .collect()
    }

    /// Stops the queries.
    pub fn stop(&self) -> Result<(), ServerError> {
        Ok(self.server.coordinator.stop()?)
    }

    fn ends(&self) -> ExecResult<Vec<(TopicPartition, Offset)>> {
        let log = &self.server.log;
        let mut ends = Vec::new();
        for topic in log.topics() {
            for number in 0..topic.config.partitions {
                let partition = TopicPartition::new(Arc::clone(&topic.name), number);
                let end = log.offsets(&partition).map_err(ExecError::from)?.log_end;
                ends.push((partition, end));
            }
        }
        Ok(ends)
    }
}

impl LocalSession {
    /// Runs the statements of a text in order, up to the first that fails. Rows of queries are not looked at.
    pub async fn run(&mut self, sql: &str) -> Result<(), SqlError> {
        for statement in self.session.parse(sql)? {
            self.session.run(statement).await?;
        }
        Ok(())
    }
}
