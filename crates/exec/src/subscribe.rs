//! How a push query comes into the pipeline: history first, on a thread of its own, then the changes of the steps.
//!
//! A reader of history waits for a slow client; the pipeline never does. So the catch-up thread reads the topics until little is missing, and
//! only the rest is done between two steps, where the push query joins.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use highwater_functions::StepClock;
use highwater_planner::{catalog::SourceKind, dataflow::DataflowPlan};
use highwater_storage_log::{Log, Offset, TopicPartition};

use crate::{
    backfill::{CHUNK_ROWS, Chunk, next_chunk, unique_sources},
    catch_up::{records_between, settled_ends},
    engine::EngineOptions,
    error::{ExecError, ExecResult},
    feed::{ChangeBatch, ChangeReceiver, FeedClosed, FeedStart, SubscribeOptions, SubscriptionId},
    pipeline::{Pipeline, SourcePositions, Subscription, wanted_columns},
    pipeline_thread::Event,
    query::{QueryGraph, RelationRows, StepPart},
    resume::{Resumption, check_resumable, settled_journal},
    shared::Shared,
    source::TopicSource,
    step::change_batch,
    workers::Workers,
};

/// Entries of the journal that a push query which is resumed may still have to follow when it joins.
const RESUME_TAIL: i64 = 1_000;

/// How long a catch-up waits before it offers again to a reader that was full.
const FULL_READER_PAUSE: Duration = Duration::from_millis(1);

/// A push query that has caught up nearly and wants to join.
pub struct Joining {
    id: SubscriptionId,
    graph: QueryGraph,
    receiver: Box<dyn ChangeReceiver>,
    /// Where its reading of history stands; `None` when it wants only what comes.
    history: Option<SourcePositions>,
    /// Its way back to where the pipeline stands; `None` when it does not go on behind a step.
    resumption: Option<Resumption>,
    started: bool,
    with_steps: bool,
    /// What waits to be given: it may be the last of its step. Only where the reader wants to know.
    held: Option<ChangeBatch>,
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
    let resumption = match options.start {
        FeedStart::After(step) => Some(resumption(&log, &shared, &graph, step)?),
        FeedStart::Next | FeedStart::History => None,
    };
    let mut joining = Joining {
        id,
        graph,
        receiver,
        history: None,
        resumption,
        started: false,
        with_steps: options.with_steps,
        held: None,
        joined: None,
    };
    if options.start == FeedStart::Next {
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
        .spawn(move || match joining.come_closer(&*log, &shared) {
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

/// Finds where a push query goes on.
fn resumption(
    log: &Arc<dyn Log>,
    shared: &Shared,
    graph: &QueryGraph,
    after: u64,
) -> ExecResult<Resumption> {
    check_resumable(graph.plan())?;
    let journal = settled_journal(shared)?;
    if after > journal.step {
        return Err(ExecError::StepAhead {
            step: after,
            last: journal.step,
        });
    }
    Resumption::find(log, graph, after, journal.end)
}

fn join(shared: &Shared, joining: Joining) -> ExecResult<()> {
    if shared.send(Event::Join(Box::new(joining))) {
        Ok(())
    } else {
        Err(ExecError::Stopped(shared.stopped().unwrap_or_default()))
    }
}

impl Joining {
    /// Gives what was before it joins; false when the reader has gone.
    fn come_closer(&mut self, log: &dyn Log, shared: &Shared) -> ExecResult<bool> {
        if self.resumption.is_none() {
            return self.catch_up(log, shared);
        }
        loop {
            let (given, entries) = match self.resume(log, true)? {
                Some(records) => (records, self.follow_journal(shared)?),
                None => return Ok(false),
            };
            if given <= EngineOptions::CATCH_UP_TAIL && entries <= RESUME_TAIL {
                return Ok(true);
            }
        }
    }

    /// Looks how much further the journal goes; answers by how many entries.
    fn follow_journal(&mut self, shared: &Shared) -> ExecResult<i64> {
        let end = settled_journal(shared)?.end;
        Ok(self.resumption.as_mut().map_or(0, |resumption| {
            resumption.go_on_to(end);
            resumption.entries_left()
        }))
    }

    /// Gives the steps behind the one it is resumed behind, as far as the journal is known; answers how many records they read, or `None` when the
    /// reader has gone.
    fn resume(&mut self, log: &dyn Log, wait: bool) -> ExecResult<Option<i64>> {
        let Some(mut resumption) = self.resumption.take() else {
            return Ok(Some(0));
        };
        let mut records = 0;
        while resumption.next_step()? {
            let step = resumption.step;
            let (clock, seed) = resumption.moment;
            let _clock = StepClock::enter(clock, seed);
            for part in resumption.parts() {
                records += records_between(part.source.positions(), &part.ends);
                let relation = part.source.relation().id;
                while let Some(chunk) =
                    next_chunk(&mut part.source, log, &part.ends, CHUNK_ROWS, Workers::ONE)?
                {
                    let rows = RelationRows::from([(relation, chunk.rows)]);
                    if !self.run(Some(step), rows, wait)? {
                        return Ok(None);
                    }
                }
                if records_between(part.source.positions(), &part.ends) > 0 {
                    return Err(ExecError::Internal(format!(
                        "what step {step} had read of \"{}\" cannot be read again",
                        part.source.relation().topic
                    )));
                }
            }
            if !self.end_step(step, wait) {
                return Ok(None);
            }
        }
        self.resumption = Some(resumption);
        Ok(Some(records))
    }

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
            let mut source = TopicSource::history(Arc::clone(&relation), starts, None, None)?;
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
                    if !self.run(None, RelationRows::from([(relation, chunk.rows)]), true)? {
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

    /// Runs a piece of a step, or of history, and offers what follows from it; false when the reader has gone. With `wait`, a full reader is waited
    /// for.
    fn run(&mut self, step: Option<u64>, rows: RelationRows, wait: bool) -> ExecResult<bool> {
        let first = !std::mem::replace(&mut self.started, true);
        let changes = self
            .graph
            .run(first, StepPart::Last, &rows, None, &mut Vec::new())?;
        let is_stream = self.graph.plan().kind == SourceKind::Stream;
        let changes = changes
            .into_iter()
            .map(|(_, delta)| if is_stream { delta.valued() } else { Ok(delta) })
            .collect::<ExecResult<Vec<_>>>()?;
        let Some(mut batch) = change_batch(step.unwrap_or_default(), &changes)? else {
            return Ok(true);
        };
        batch.step = step;
        batch.ends_step = false;
        let ready = match self.with_steps {
            true => self.held.replace(batch),
            false => Some(batch),
        };
        Ok(ready.is_none_or(|batch| self.offer(batch, wait)))
    }

    /// The step is complete: the last of what was given of it says so. False when the reader has gone.
    fn end_step(&mut self, step: u64, wait: bool) -> bool {
        let Some(mut last) = self.held.take() else {
            return true;
        };
        last.step = Some(step);
        last.ends_step = true;
        self.offer(last, wait)
    }

    fn offer(&mut self, batch: ChangeBatch, wait: bool) -> bool {
        loop {
            match self.receiver.offer(batch.clone()) {
                Ok(()) => return true,
                Err(FeedClosed::Gone) => return false,
                Err(FeedClosed::Full) if wait => thread::sleep(FULL_READER_PAUSE),
                Err(FeedClosed::Full) => {
                    self.receiver
                        .closed("the reader was too slow to take the rows it begins with".into());
                    return false;
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
        if joining.resumption.is_some() {
            return self.join_resumed(joining);
        }
        let relations = self.topic_relations(&joining.graph, None);
        for relation in &relations {
            let ends = self.history_ends(relation)?;
            let wanted = wanted_columns(&joining.graph, relation.id);
            self.attach_source(relation, ends, wanted)?;
        }
        let told = self.tell_attached()?;
        let step = told.then_some(self.step);
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
                        let rows = RelationRows::from([(relation.id, rows)]);
                        if !joining.run(step, rows, false)? {
                            return Ok(false);
                        }
                    }
                }
                None => {
                    let rows = self.table_rows(&relation)?;
                    if !joining.run(step, RelationRows::from([(relation.id, rows)]), false)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(match step {
            Some(step) => joining.end_step(step, false),
            None => {
                let held = joining.held.take();
                held.is_none_or(|last| joining.offer(last, false))
            }
        })
    }

    /// Gives what is left up to the last step. A topic that nobody reads is read from there on by the steps.
    fn join_resumed(&mut self, joining: &mut Joining) -> ExecResult<bool> {
        let end = self.mark_journal()?.end;
        if let Some(resumption) = &mut joining.resumption {
            resumption.go_on_to(end);
        }
        if joining.resume(&*self.log, false)?.is_none() {
            return Ok(false);
        }
        let Some(resumption) = joining.resumption.take() else {
            return Ok(true);
        };
        for (relation, reached) in resumption.reached() {
            let read = self.sources.get(&relation.id);
            // What a query writes to its own stream is passed over without a step.
            if relation.query.is_none() && read.is_some_and(|read| read.positions() != reached) {
                return Err(ExecError::Internal(format!(
                    "the journal and the steps differ on where \"{}\" stands",
                    relation.topic
                )));
            }
            let wanted = wanted_columns(&joining.graph, relation.id);
            self.attach_source(relation, reached.to_vec(), wanted)?;
        }
        // Where reading goes on the journal tells already.
        self.untold.clear();
        Ok(true)
    }
}
