//! A new query's catch-up beside the running pipeline, on a thread of its own.
//!
//! The thread reads the topics up to about where the steps stand; the little that is left then is done between two steps, where the query joins
//! (`query_changes`). Only queries that read nothing but topics catch up so: the past of a table is its rows at the step of the join.
//!
//! History is one step, cut only where its end would be too large: an operator gives a group's row once and not with each piece that is read.
//!
//! What the query makes stays its own until it joins: its table is in memory, its records are in one open transaction of its sink. A crash
//! leaves a transaction that recovery aborts, and the query catches up again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

use highwater_planner::catalog::{QueryId, RelationId};
use highwater_storage_log::{Log, Offset, TopicPartition};

use crate::{
    backfill::{next_chunk, unique_sources},
    error::{ExecError, ExecResult},
    memory::MemoryHolder,
    operator::Rejected,
    pipeline::{RunningQuery, SourcePositions, wanted_columns},
    pipeline_thread::Event,
    query::{RelationRows, StepPart},
    shared::Shared,
    source::TopicSource,
    state::RocksState,
    step::TableRows,
    workers::Workers,
};

/// Bytes of rejected records that a catch-up keeps in memory; with more, the rest of history is read between two steps, where they can be
/// written.
const KEPT_REJECTED_BYTES: usize = 64 << 20;

/// Rows that are read at a time. Pieces of a step cost little by themselves, and small ones stay in the processor's caches from the log to the
/// sink.
const PIECE_ROWS: usize = 16_384;

/// Rows that a step of history may give at its end: a bound on memory, far above what most queries have groups.
const HELD_ROWS: usize = 1 << 20;

/// Where memory is short, history is cut into smaller steps, but into none with fewer rows than this.
const LEAST_HELD_ROWS: usize = PIECE_ROWS;

/// A query that catches up, or has, and is not part of the steps yet.
pub struct CatchingUp {
    pub(crate) query: RunningQuery,
    /// Up to where it has read.
    pub(crate) reached: SourcePositions,
    /// Whether operators have had their first call.
    pub(crate) started: bool,
    /// Records that could not be decoded.
    pub(crate) undecodable: Vec<(RelationId, Rejected)>,
    /// Rows that could not be evaluated.
    pub(crate) unevaluated: Vec<Rejected>,
    /// Bytes of both.
    rejected_bytes: usize,
    workers: Workers,
    /// What it takes of the memory for state.
    memory: MemoryHolder,
}

/// The pipeline's side of a catch-up.
pub struct CatchUpThread {
    /// The query.
    pub query: QueryId,
    /// Where it began to read: the log keeps what stands behind until it has joined.
    pub reads_from: Vec<(TopicPartition, Offset)>,
    /// Whoever waits for it.
    reply: mpsc::SyncSender<ExecResult<()>>,
    progress: Arc<Progress>,
    thread: JoinHandle<()>,
}

/// Records read of those that were there at the beginning.
#[derive(Default)]
struct Progress {
    read: AtomicU64,
    total: AtomicU64,
}

impl CatchUpThread {
    /// Starts the thread; it sends [`Event::CaughtUp`] when little is left.
    pub fn start(
        mut catching_up: CatchingUp,
        log: Arc<dyn Log>,
        state: RocksState,
        shared: Arc<Shared>,
        tail: i64,
        reply: mpsc::SyncSender<ExecResult<()>>,
    ) -> ExecResult<Self> {
        let query = catching_up.query.definition.id;
        let reads_from = catching_up.reads_from();
        let progress = Arc::new(Progress::default());
        let told = Arc::clone(&progress);
        let thread = thread::Builder::new()
            .name(format!("hw-catch-up-{query}"))
            .spawn(move || {
                let done = catching_up.run(&*log, &state, &shared, &told, tail);
                // ORDER: whoever hears of the end joins this thread, and the state must be free by then.
                drop((log, state));
                shared.send(Event::CaughtUp(Box::new(catching_up), done));
            })
            .map_err(|source| ExecError::Io {
                action: "start",
                path: "catch-up thread".into(),
                source,
            })?;
        Ok(Self {
            query,
            reads_from,
            progress,
            thread,
            reply,
        })
    }

    /// How much of history is read, in whole per cent.
    pub fn per_cent(&self) -> u8 {
        let read = self.progress.read.load(Ordering::Relaxed);
        match self.progress.total.load(Ordering::Relaxed) {
            0 => 0,
            total => (read.min(total) * 100 / total) as u8,
        }
    }

    /// Waits for the thread; answers where the outcome goes.
    pub fn join(self) -> mpsc::SyncSender<ExecResult<()>> {
        if self.thread.join().is_err() {
            tracing::error!(query = %self.query, "a catch-up panicked");
        }
        self.reply
    }
}

impl CatchingUp {
    /// A query that has read nothing yet.
    pub fn new(query: RunningQuery, workers: Workers, memory: MemoryHolder) -> Self {
        Self {
            reached: query.origin.clone(),
            query,
            started: false,
            undecodable: Vec::new(),
            unevaluated: Vec::new(),
            rejected_bytes: 0,
            workers,
            memory,
        }
    }

    fn reads_from(&self) -> Vec<(TopicPartition, Offset)> {
        unique_sources(&self.query.graph)
            .iter()
            .flat_map(|relation| {
                let positions = self.reached.get(&relation.id).into_iter().flatten();
                (0..).zip(positions).map(|(number, from)| {
                    (TopicPartition::new(relation.topic.as_str(), number), *from)
                })
            })
            .collect()
    }

    fn run(
        &mut self,
        log: &dyn Log,
        state: &RocksState,
        shared: &Shared,
        progress: &Progress,
        tail: i64,
    ) -> ExecResult<()> {
        let mut sources: Vec<TopicSource> = Vec::new();
        for relation in unique_sources(&self.query.graph) {
            let from = self.reached.get(&relation.id).cloned().unwrap_or_default();
            let mut source = TopicSource::history(Arc::clone(&relation), from, None, None)?;
            source.want(wanted_columns(&self.query.graph, relation.id))?;
            sources.push(source);
        }
        loop {
            let mut missing = 0;
            for source in &mut sources {
                let ends = settled_ends(log, shared, source)?;
                let left = records_between(source.positions(), &ends);
                missing += left;
                progress.total.fetch_max(
                    progress.read.load(Ordering::Relaxed) + left as u64,
                    Ordering::Relaxed,
                );
                self.read_up_to(source, &ends, log, state, shared, progress)?;
            }
            if missing <= tail || self.keeps_too_much() {
                return self.write_state(state);
            }
        }
    }

    /// Puts what the query keeps into the database beside the steps, so that the checkpoint of its join has little left to write. Nobody reads it
    /// there before, and a recovery forgets state of queries that its checkpoint does not name.
    fn write_state(&mut self, state: &RocksState) -> ExecResult<()> {
        self.query.write_operators(state)?;
        if let Some(table) = &mut self.query.table {
            state.write_runs(table.prefix(), &table.freeze())?;
            table.checkpointed(state.snapshot());
        }
        Ok(())
    }

    fn keeps_too_much(&self) -> bool {
        self.rejected_bytes > KEPT_REJECTED_BYTES
    }

    fn read_up_to(
        &mut self,
        source: &mut TopicSource,
        ends: &[Offset],
        log: &dyn Log,
        state: &RocksState,
        shared: &Shared,
        progress: &Progress,
    ) -> ExecResult<()> {
        let relation = Arc::clone(source.relation());
        while !self.keeps_too_much() {
            if shared.is_stopping() {
                return Err(ExecError::Stopped("the query was catching up".into()));
            }
            let before = source.positions().to_vec();
            let Some(mut chunk) = next_chunk(source, log, ends, PIECE_ROWS, self.workers)? else {
                break;
            };
            let bad = std::mem::take(&mut chunk.rejected);
            self.rejected_bytes += bad.iter().map(Rejected::bytes).sum::<usize>();
            self.undecodable
                .extend(bad.into_iter().map(|rejected| (relation.id, rejected)));
            let mut rows = RelationRows::new();
            let mut table_rows = TableRows::new();
            chunk.into_rows(relation.id, &mut rows, &mut table_rows);
            self.run_part(StepPart::More, &rows, &table_rows, log, state)?;
            let is_short = self.query.is_short_of(&mut self.memory);
            let held = self.query.graph.held();
            if held >= HELD_ROWS || is_short && held >= LEAST_HELD_ROWS {
                self.end_step(log, state)?;
                if self.query.is_short_of(&mut self.memory) {
                    self.write_state(state)?;
                    self.query.is_short_of(&mut self.memory);
                }
            }
            self.reached
                .insert(relation.id, source.positions().to_vec());
            let read = records_between(&before, source.positions());
            progress.read.fetch_add(read as u64, Ordering::Relaxed);
        }
        self.end_step(log, state)
    }

    fn end_step(&mut self, log: &dyn Log, state: &RocksState) -> ExecResult<()> {
        if !self.query.graph.is_in_step() {
            return Ok(());
        }
        let (rows, table_rows) = (RelationRows::new(), TableRows::new());
        self.run_part(StepPart::Last, &rows, &table_rows, log, state)
    }

    fn run_part(
        &mut self,
        part: StepPart,
        rows: &RelationRows,
        table_rows: &TableRows,
        log: &dyn Log,
        state: &RocksState,
    ) -> ExecResult<()> {
        let first = !std::mem::replace(&mut self.started, true);
        let evaluated = self.unevaluated.len();
        let (batches, _) =
            self.query
                .run_part(first, part, rows, table_rows, state, &mut self.unevaluated)?;
        self.rejected_bytes += self.unevaluated[evaluated..]
            .iter()
            .map(Rejected::bytes)
            .sum::<usize>();
        if let Some(sink) = &mut self.query.sink {
            sink.append(log, &batches)?;
        }
        Ok(())
    }
}

/// Records between two sets of positions.
pub fn records_between(from: &[Offset], to: &[Offset]) -> i64 {
    from.iter()
        .zip(to)
        .map(|(from, to)| (to.0 - from.0).max(0))
        .sum()
}

/// Up to where history is settled: where the steps stand, if they read the topic. What lies behind comes with the steps.
pub fn settled_ends(
    log: &dyn Log,
    shared: &Shared,
    source: &TopicSource,
) -> ExecResult<Vec<Offset>> {
    let relation = source.relation();
    // What a query writes to its own stream reaches readers in memory, so of that all which is committed is history.
    if relation.query.is_none() {
        let positions = shared.snapshot().source_positions(&relation.topic);
        if positions.len() == source.partitions().len() {
            return Ok(positions
                .into_iter()
                .map(|(_, position)| Offset(position))
                .collect());
        }
    }
    source
        .partitions()
        .iter()
        .map(|partition| Ok(log.offsets(partition)?.last_stable))
        .collect()
}
