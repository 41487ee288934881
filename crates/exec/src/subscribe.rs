//! How a push query comes into the pipeline: history first, on a thread of its own, then the changes of the steps.
//!
//! A reader of history waits for a slow client; the pipeline never does. So the catch-up thread reads the topics until little is missing, and
//! only the rest is done between two steps, where the push query joins.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use highwater_planner::{catalog::SourceKind, dataflow::DataflowPlan};
use highwater_storage_log::{Log, Offset, TopicPartition};

use crate::{
    backfill::{CHUNK_ROWS, Chunk, next_chunk, unique_sources},
    catch_up::{records_between, settled_ends},
    engine::EngineOptions,
    error::{ExecError, ExecResult},
    feed::{ChangeBatch, ChangeReceiver, FeedClosed, SubscribeOptions, SubscriptionId},
    pipeline::{Pipeline, SourcePositions, Subscription, wanted_columns},
    pipeline_thread::Event,
    query::{QueryGraph, RelationRows, StepPart},
    shared::Shared,
    source::TopicSource,
    step::change_batch,
    workers::Workers,
};

/// How long a catch-up waits before it offers again to a reader that was full.
const FULL_READER_PAUSE: Duration = Duration::from_millis(1);

/// A push query that has caught up nearly and wants to join.
pub struct Joining {
    id: SubscriptionId,
    graph: QueryGraph,
    receiver: Box<dyn ChangeReceiver>,
    /// Where its reading of history stands; `None` when it wants only what comes.
    history: Option<SourcePositions>,
    started: bool,
    /// Told when it has joined, or cannot: it is dropped unused then.
    joined: Option<mpsc::SyncSender<()>>,
}

/// Starts a push query.
pub fn start(
    log: Arc<dyn Log>,
    shared: Arc<Shared>,
    plan: DataflowPlan,
    options: SubscribeOptions,
    receiver: Box<dyn ChangeReceiver>,
) -> ExecResult<SubscriptionId> {
    let id = SubscriptionId(shared.next_subscription());
    let graph = QueryGraph::new(plan, None, Workers::ONE)?;
    let mut joining = Joining {
        id,
        graph,
        receiver,
        history: None,
        started: false,
        joined: None,
    };
    if !options.from_beginning {
        // What is written after the answer must reach the reader, so there is none before it has joined.
        let (joined, has_joined) = mpsc::sync_channel(1);
        joining.joined = Some(joined);
        join(&shared, joining)?;
        let _ = has_joined.recv();
        return match shared.stopped() {
            Some(reason) => Err(ExecError::Stopped(reason)),
            None => Ok(id),
        };
    }
    thread::Builder::new()
        .name(format!("hw-feed-{}", id.0))
        .spawn(move || match joining.catch_up(&*log, &shared) {
            Ok(true) => {
                // The engine has stopped if it does not take it; the receiver is dropped with it, which its reader sees.
                let _ = join(&shared, joining);
            }
            Ok(false) => {}
            Err(error) => joining.receiver.closed(crate::error::with_causes(&error)),
        })
        .map_err(|source| ExecError::Io {
            action: "start",
            path: "catch-up thread".into(),
            source,
        })?;
    Ok(id)
}

fn join(shared: &Shared, joining: Joining) -> ExecResult<()> {
    if shared.send(Event::Join(Box::new(joining))) {
        Ok(())
    } else {
        Err(ExecError::Stopped(shared.stopped().unwrap_or_default()))
    }
}

impl Joining {
    /// Reads history until little is missing; false when the reader has gone.
    fn catch_up(&mut self, log: &dyn Log, shared: &Shared) -> ExecResult<bool> {
        let mut sources: Vec<TopicSource> = Vec::new();
        for relation in unique_sources(&self.graph)
            .into_iter()
            .filter(|relation| relation.kind == SourceKind::Stream)
        {
            let starts = (0..relation.partitions)
                .map(|partition| {
                    Ok(log
                        .offsets(&TopicPartition::new(relation.topic.as_str(), partition))?
                        .log_start)
                })
                .collect::<ExecResult<Vec<Offset>>>()?;
            let mut source = TopicSource::history(Arc::clone(&relation), starts, None)?;
            source.want(wanted_columns(&self.graph, relation.id))?;
            sources.push(source);
        }
        loop {
            let mut missing = 0;
            for source in &mut sources {
                let ends = settled_ends(log, shared, source)?;
                missing += records_between(source.positions(), &ends);
                while let Some(chunk) = next_chunk(source, log, &ends, CHUNK_ROWS, Workers::ONE)? {
                    let relation = source.relation().id;
                    if !self.run(0, RelationRows::from([(relation, chunk.rows)]), true)? {
                        return Ok(false);
                    }
                }
            }
            if missing <= EngineOptions::CATCH_UP_TAIL {
                break;
            }
        }
        self.history = Some(
            sources
                .iter()
                .map(|source| (source.relation().id, source.positions().to_vec()))
                .collect(),
        );
        Ok(true)
    }

    /// Runs a piece of history and offers what follows from it; false when the reader has gone. With `wait`, a full reader is waited for.
    fn run(&mut self, step: u64, rows: RelationRows, wait: bool) -> ExecResult<bool> {
        let first = !std::mem::replace(&mut self.started, true);
        let changes = self
            .graph
            .run(first, StepPart::Last, &rows, None, &mut Vec::new())?;
        let is_stream = self.graph.plan().kind == SourceKind::Stream;
        let changes = changes
            .into_iter()
            .map(|(_, delta)| if is_stream { delta.valued() } else { Ok(delta) })
            .collect::<ExecResult<Vec<_>>>()?;
        let Some(batch) = change_batch(step, &changes)? else {
            return Ok(true);
        };
        self.offer(batch, wait)
    }

    fn offer(&mut self, batch: ChangeBatch, wait: bool) -> ExecResult<bool> {
        loop {
            match self.receiver.offer(batch.clone()) {
                Ok(()) => return Ok(true),
                Err(FeedClosed::Gone) => return Ok(false),
                Err(FeedClosed::Full) if wait => thread::sleep(FULL_READER_PAUSE),
                Err(FeedClosed::Full) => {
                    self.receiver
                        .closed("the reader was too slow to take the rows it begins with".into());
                    return Ok(false);
                }
            }
        }
    }
}

impl Pipeline {
    /// Takes a push query in between two steps: it gets what is left of history now, and the changes of every later step.
    pub fn join(&mut self, mut joining: Joining) -> ExecResult<()> {
        match self.join_inner(&mut joining) {
            Ok(true) => {
                let Joining {
                    id,
                    graph,
                    receiver,
                    started,
                    joined,
                    ..
                } = joining;
                self.subscriptions.push(Subscription {
                    id,
                    graph,
                    receiver,
                    started,
                });
                if let Some(joined) = joined {
                    // Whoever asked may have gone.
                    let _ = joined.send(());
                }
            }
            Ok(false) => {}
            Err(error) => joining.receiver.closed(crate::error::with_causes(&error)),
        }
        self.drop_unread_sources();
        Ok(())
    }

    fn join_inner(&mut self, joining: &mut Joining) -> ExecResult<bool> {
        let relations = self.topic_relations(&joining.graph, None);
        for relation in &relations {
            let ends = self.history_ends(relation)?;
            let wanted = wanted_columns(&joining.graph, relation.id);
            self.attach_source(relation, ends, wanted)?;
        }
        let Some(mut history) = joining.history.take() else {
            // An aggregate over a table has to know the rows that will be taken back, though its reader asked only for what comes.
            if joining.graph.is_stateful() {
                for relation in unique_sources(&joining.graph) {
                    if relation.kind == SourceKind::Table {
                        let rows = RelationRows::from([(relation.id, self.table_rows(&relation)?)]);
                        let first = !std::mem::replace(&mut joining.started, true);
                        joining
                            .graph
                            .run(first, StepPart::Last, &rows, None, &mut Vec::new())?;
                    }
                }
            }
            return Ok(true);
        };
        for relation in unique_sources(&joining.graph) {
            match history.remove(&relation.id) {
                Some(from) => {
                    let ends = self.history_ends(&relation)?;
                    let mut source = self.history(&relation, &joining.graph, from)?;
                    while let Some(Chunk { rows, .. }) =
                        next_chunk(&mut source, &*self.log, &ends, CHUNK_ROWS, Workers::ONE)?
                    {
                        if !joining.run(
                            self.step,
                            RelationRows::from([(relation.id, rows)]),
                            false,
                        )? {
                            return Ok(false);
                        }
                    }
                }
                None => {
                    let rows = self.table_rows(&relation)?;
                    if !joining.run(self.step, RelationRows::from([(relation.id, rows)]), false)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}
