//! The engine: what the server talks to.

use std::{
    num::NonZero,
    path::PathBuf,
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use highwater_planner::{
    catalog::{QueryId, Relation},
    dataflow::DataflowPlan,
};
use highwater_storage_log::{
    AppendListener, BatchBuilder, EncodedBatch, Log, Offset, TopicPartition,
};
use parking_lot::Mutex;

use crate::{
    backup::FrozenState,
    error::{ExecError, ExecResult},
    feed::{ChangeReceiver, SubscribeOptions, SubscriptionId},
    operator::StateMemory,
    pipeline_thread::{self, Command, Event},
    shared::Shared,
    snapshot::{Snapshot, SnapshotInner},
    step_times::StepStats,
    subscribe,
    transactions::{Ends, Told, Transactions},
};

/// Settings of the engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Folder for state and checkpoints.
    pub state_dir: PathBuf,
    /// Most rows that one step takes from its sources.
    pub step_max_rows: usize,
    /// Records of history that a new query may still have to read when it joins the steps; while it has more, it catches up beside them.
    pub catch_up_tail: i64,
    /// Threads that share the work of a step, the pipeline's own among them. Results do not depend on it.
    pub workers: NonZero<usize>,
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
    /// Bytes of memory for state: what operators and tables keep, checkpoints under way, and the state database. Results do not depend on it.
    pub state_memory: usize,
    /// How many steps the journal keeps at least, so that push queries can be resumed behind them.
    pub feed_history: i64,
    /// Topic of the processing log; it must exist. Records that cannot be decoded go there as JSON.
    pub processing_log_topic: String,
}

impl EngineOptions {
    /// A tail that is read within a few milliseconds. Push queries use it too.
    pub const CATCH_UP_TAIL: i64 = 20_000;

    /// Memory for state where nothing is known of the machine: room for some million groups.
    pub const STATE_MEMORY: usize = 1 << 30;
    /// Some 150 bytes each: 150 MB of disk at the most, half an hour of a server that makes 500 steps a second without a pause, and months of one
    /// that is idle mostly.
    pub const FEED_HISTORY: i64 = 1_000_000;
}

/// Where a new query begins to read streams. Tables are always read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetReset {
    /// From the first record.
    Earliest,
    /// From the next record.
    Latest,
}

/// What a persistent query makes.
#[derive(Debug, Clone)]
pub enum QueryOutput {
    /// `CREATE STREAM .. AS`: appends to the relation's topic.
    Stream(Arc<Relation>),
    /// `CREATE TABLE .. AS`: keeps the relation's rows and writes its changes to the relation's topic.
    Table(Arc<Relation>),
    /// A declared table: keeps the relation's rows as its topic tells them. The plan is the one source node.
    SourceTable(Arc<Relation>),
}

/// A persistent query as the coordinator hands it over.
#[derive(Debug, Clone)]
pub struct PersistentQuery {
    /// Identity; also names its state and its producer.
    pub id: QueryId,
    /// What it computes.
    pub plan: DataflowPlan,
    /// What it makes.
    pub output: QueryOutput,
    /// Where it begins.
    pub offset_reset: OffsetReset,
    /// Where it begins in these partitions instead: it goes on for another query.
    pub begins_at: Vec<(TopicPartition, Offset)>,
    /// Created or kept paused.
    pub paused: bool,
    /// Which statement of the query this is: OR REPLACE gives it another. What a query keeps belongs to one of them.
    pub revision: u64,
    /// What it made before OR REPLACE: after a crash, that may be what it still keeps.
    pub earlier: Option<EarlierResult>,
}

/// What a query made before it was replaced.
#[derive(Debug, Clone)]
pub struct EarlierResult {
    /// The revision that made it.
    pub revision: u64,
    /// The relation as it was then.
    pub relation: Arc<Relation>,
}

impl PersistentQuery {
    /// Whether it can go on from what a revision of it kept.
    pub(crate) fn can_take_over(&self, revision: u64) -> bool {
        let earlier = self.earlier.as_ref().map(|earlier| earlier.revision);
        self.revision == revision || earlier == Some(revision)
    }
}

/// Whether a query runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryState {
    /// Reading history beside the steps: so many per cent of it are read.
    CatchingUp(u8),
    /// Taking part in every step.
    Running,
    /// Reads nothing until resumed.
    Paused,
    /// Stopped by an error; its state is kept.
    Failed(String),
}

/// A query's counters since the process began.
#[derive(Debug, Clone)]
pub struct QueryStatus {
    /// Identity.
    pub id: QueryId,
    /// Whether it runs.
    pub state: QueryState,
    /// Rows taken from sources.
    pub rows_in: u64,
    /// Rows of change sent to its result.
    pub rows_out: u64,
    /// Rows dropped since their window had closed.
    pub late: u64,
    /// Where a query that does not run stopped reading its topics.
    pub stopped_at: Vec<(TopicPartition, Offset)>,
    /// Per operator, by node: (rows in, rows out, nanoseconds).
    pub operators: Vec<(u64, u64, u64)>,
    /// Per operator, by node: what it keeps in memory. Its groups can be more than those: the others are in the database.
    pub memory: Vec<StateMemory>,
    /// Bytes of rows of its table that are in memory: those of the steps since the last checkpoint.
    pub table_bytes: usize,
    /// Why what it keeps was made anew from the log when the process began: the state database was damaged. `None` if it was not.
    pub rebuilt: Option<String>,
    /// Per operator, by node: about how many bytes its state takes on disk since the last checkpoint; `None` for one that keeps none.
    pub stored: Vec<Option<u64>>,
    /// The same for the rows of its table.
    pub result_stored: Option<u64>,
}

/// A source partition's progress.
#[derive(Debug, Clone)]
pub struct SourceStatus {
    /// Which partition.
    pub partition: TopicPartition,
    /// Next offset to read.
    pub position: Offset,
    /// Records that could not be decoded, since the process began.
    pub rejected: u64,
}

impl QueryOutput {
    /// The relation that it makes or keeps.
    pub fn relation(&self) -> &Arc<Relation> {
        match self {
            Self::Stream(relation) | Self::Table(relation) | Self::SourceTable(relation) => {
                relation
            }
        }
    }
}

/// The running engine. Calls block the calling thread; none of them may be made from an I/O thread.
pub struct Engine {
    log: Arc<dyn Log>,
    shared: Arc<Shared>,
    transactions: Transactions,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Recovers the state of `queries`, which stand in creation order, and starts to run them.
    pub fn open(
        log: Arc<dyn Log>,
        options: EngineOptions,
        queries: Vec<PersistentQuery>,
    ) -> ExecResult<Arc<Self>> {
        let (sender, events) = mpsc::channel();
        let shared = Arc::new(Shared::new(sender, options.state_memory));
        log.add_listener(Arc::clone(&shared) as Arc<dyn AppendListener>);
        // ORDER: before anybody reads, so that what the last process left open holds nobody back.
        let transactions = Transactions::start(Arc::clone(&log), Arc::clone(&shared))?;
        let thread = pipeline_thread::start(
            Arc::clone(&log),
            options,
            queries,
            Arc::clone(&shared),
            events,
        )?;
        Ok(Arc::new(Self {
            log,
            shared,
            transactions,
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// Adds a query and returns when it has caught up with its sources and its first result is visible.
    pub fn create_query(&self, query: PersistentQuery) -> ExecResult<()> {
        self.command(Command::Create(Box::new(query)))
    }

    /// Removes a query between two steps, with its state. Its topic stays.
    pub fn drop_query(&self, id: QueryId) -> ExecResult<()> {
        self.command(Command::Drop(id))
    }

    /// Gives a query that does not run another plan for the table that it keeps: the table is built anew, and its readers get the difference.
    /// The query runs when this returns; after an error it is what it was, and failed.
    pub fn replace_query(&self, query: PersistentQuery) -> ExecResult<()> {
        self.command(Command::Replace(Box::new(query)))
    }

    /// Stops a query from reading, keeping its place.
    pub fn pause_query(&self, id: QueryId) -> ExecResult<()> {
        self.command(Command::Pause(id))
    }

    /// Lets a paused or failed query go on: it catches up with what it missed before this returns.
    pub fn resume_query(&self, id: QueryId) -> ExecResult<()> {
        self.command(Command::Resume(id))
    }

    fn command(&self, command: Command) -> ExecResult<()> {
        let (reply, done) = mpsc::sync_channel(1);
        let stopped = || {
            ExecError::Stopped(
                self.shared
                    .stopped()
                    .unwrap_or_else(|| "it is shutting down".into()),
            )
        };
        if !self.shared.send(Event::Command(command, reply)) {
            return Err(stopped());
        }
        done.recv().unwrap_or_else(|_| Err(stopped()))
    }

    /// State and counters of all queries, at most a moment old.
    pub fn queries(&self) -> Vec<QueryStatus> {
        self.shared.status().0
    }

    /// Progress of all source partitions, at most a moment old.
    pub fn sources(&self) -> Vec<SourceStatus> {
        self.shared.status().1
    }

    /// How often steps commit and how long they take.
    pub fn steps(&self) -> StepStats {
        self.shared.step_stats()
    }

    /// Why the engine has stopped, if it has: readers keep the last snapshot then, and no step runs any more.
    pub fn stopped(&self) -> Option<String> {
        self.shared.stopped()
    }

    /// The last committed step.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// The first committed step that covers all records below the given offsets (exclusive) in the partitions that queries read; partitions
    /// nobody reads are ignored. Waits at most `timeout`.
    pub fn snapshot_covering(
        &self,
        written: &[(TopicPartition, Offset)],
        timeout: Duration,
    ) -> ExecResult<Snapshot> {
        self.shared.wait_covering(written, timeout)
    }

    /// Starts a push query. It gets the changes of the steps after the one it joined at, unless `options` say otherwise.
    pub fn subscribe(
        &self,
        plan: DataflowPlan,
        options: SubscribeOptions,
        receiver: Box<dyn ChangeReceiver>,
    ) -> ExecResult<SubscriptionId> {
        subscribe::start(
            Arc::clone(&self.log),
            Arc::clone(&self.shared),
            plan,
            options,
            receiver,
        )
    }

    /// Ends a push query; unknown ids are ignored.
    pub fn unsubscribe(&self, id: SubscriptionId) {
        self.shared.send(Event::Unsubscribe(id));
    }

    /// Appends batches, to several partitions perhaps, of which a crash at any moment leaves all or none and which one step reads together. Returns
    /// where they end, before they are visible; `told` hears when they are on disk and visible. An error leaves nothing.
    pub fn append_atomically(
        &self,
        batches: Vec<(TopicPartition, BatchBuilder)>,
        told: Told,
    ) -> ExecResult<Ends> {
        self.transactions.append(batches, told)
    }

    /// Appends a group of batches that one step shall read together. Returns the end offset (exclusive) of each. The caller still has to
    /// [`Log::sync`] before it acknowledges.
    ///
    /// An error leaves what was appended before it, as does a crash; nobody has been told then that the group is stored.
    pub fn append_together(
        &self,
        batches: Vec<(TopicPartition, EncodedBatch)>,
    ) -> ExecResult<Ends> {
        let _all_or_none = self.shared.groups.begin();
        let mut group = Vec::with_capacity(batches.len());
        for (partition, batch) in batches {
            let appended = self.log.append(&partition, batch)?;
            group.push((
                partition,
                appended.base_offset,
                Offset(appended.last_offset.0 + 1),
            ));
        }
        let ends = group
            .iter()
            .map(|(partition, _, end)| (partition.clone(), *end))
            .collect();
        if group.len() > 1
            && group
                .iter()
                .any(|(partition, ..)| self.shared.is_watched(&partition.topic))
        {
            self.shared.groups.note(group);
        }
        Ok(ends)
    }

    /// Holds the state of the last step for a backup, and calls `note` while no step runs and nothing that is appended together is half appended:
    /// what the log holds at that moment, together with the state, is all that is needed to go on.
    pub fn freeze<T: Send + 'static>(
        &self,
        note: impl FnOnce() -> T + Send + 'static,
    ) -> ExecResult<(FrozenState, T)> {
        let (frozen, is_frozen) = mpsc::sync_channel(1);
        self.command(Command::Freeze(Box::new(move |state| {
            let _ = frozen.send((state, note()));
        })))?;
        is_frozen
            .recv()
            .map_err(|_| ExecError::Internal("the engine froze nothing".into()))
    }

    /// Lets queries that catch up give up, so that whoever waits for one does not hold up a stop.
    pub fn begin_stop(&self) {
        self.shared.begin_stop();
    }

    /// Commits what has run, writes a checkpoint and stops. Later calls answer [`ExecError::Stopped`].
    pub fn stop(&self) -> ExecResult<()> {
        let Some(thread) = self.thread.lock().take() else {
            return Ok(());
        };
        self.shared.begin_stop();
        self.transactions.stop();
        let stopped = self.command(Command::Stop);
        if thread.join().is_err() {
            return Err(ExecError::Internal("the pipeline thread panicked".into()));
        }
        // The last snapshot holds the state database open; whoever starts again wants its folder.
        self.shared.publish(SnapshotInner::default());
        stopped
    }
}
