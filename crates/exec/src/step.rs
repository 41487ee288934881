//! The heart: cut, journal, run, append, commit.
//!
//! 1. **Cut**: what has arrived in each source partition, up to the row budget, is what the step reads.
//! 2. **Journal**: the cut is appended to the journal; the log tells when it and the inputs are on disk.
//! 3. **Run**: the changes go through all queries once, in topological order. Tables get their new runs, sinks their encoded batches.
//! 4. **Append**: once the step before has committed, the sinks' batches go to the log, invisible as yet.
//! 5. **Commit**: once journal and inputs are on disk, sinks become visible, the snapshot advances, push queries get their changes.
//!
//! ORDER: a step appends only after its predecessor's commit, so a producer never has two steps in one transaction.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use arrow::{array::AsArray, datatypes::TimestampMillisecondType, record_batch::RecordBatch};
use highwater_functions::StepClock;
use highwater_planner::{
    catalog::{RelationId, SourceKind},
    dataflow::WindowShape,
};
use highwater_storage_log::{Offset, TopicPartition};

use crate::{
    cut::Cut,
    delta::Delta,
    engine::{PersistentQuery, QueryOutput, QueryState},
    error::{ExecError, ExecResult, with_causes},
    feed::{ChangeBatch, FeedClosed, SubscriptionId},
    journal::{EntryKind, JournalEntry, Offsets},
    operator::Rejected,
    pipeline::{Pipeline, RunningQuery},
    producer::StepBatches,
    query::{RelationRows, SlotDelta, StepPart},
    snapshot::SnapshotInner,
    source::{Fetched, SlotRows, upsert},
    state::RocksState,
};

/// A step that ran and is not committed yet.
pub struct PendingStep {
    /// Its number.
    pub step: u64,
    /// When it was journaled; a replay is not timed.
    began: Option<Instant>,
    snapshot: SnapshotInner,
    feeds: Vec<(SubscriptionId, ChangeBatch)>,
}

/// What a step made, before it is appended.
pub struct StepOutput {
    /// Sink batches by position of the query.
    batches: Vec<(usize, StepBatches)>,
    rejected: StepBatches,
    feeds: Vec<(SubscriptionId, ChangeBatch)>,
}

/// Records a table source read, with the rows that remove their key.
pub type TableRows = HashMap<RelationId, Vec<(SlotRows, Vec<bool>)>>;

impl Pipeline {
    /// Writes the next step into the journal; answers what has to be on disk before it may commit.
    pub fn journal_step(&mut self, cut: &Cut) -> ExecResult<Vec<(TopicPartition, Offset)>> {
        // What only push queries read is in it, too: they are resumed from it.
        let mut read: Offsets = cut
            .fetched
            .iter()
            .map(|(relation, part)| (*relation, part.partition as u32, part.to))
            .collect();
        let untold = self.take_untold(&read);
        read.extend(untold);
        self.step_began = Some(Instant::now());
        let mut waits = Vec::with_capacity(cut.fetched.len() + 1);
        let clock = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_millis() as i64);
        let step = self.step + 1;
        self.moment = (clock, seed(step, clock));
        let written = self.newly_written();
        let end = self.append_to_journal(&JournalEntry {
            kind: EntryKind::Step,
            step,
            clock,
            seed: self.moment.1,
            cut: read,
            written,
        })?;
        waits.push((self.journal.partition().clone(), end));
        for (relation, part) in &cut.fetched {
            waits.push((
                self.source(*relation)?.partitions()[part.partition].clone(),
                part.to,
            ));
        }
        Ok(waits)
    }

    /// Runs the next step over `cut`.
    pub fn run_step(&mut self, cut: Cut) -> ExecResult<StepOutput> {
        self.step += 1;
        let _clock = StepClock::enter(self.moment.0, self.moment.1);
        let mut rejected = Vec::new();
        let mut rows = RelationRows::new();
        let mut table_rows = TableRows::new();
        let before: Vec<(RelationId, usize, Offset)> = cut
            .fetched
            .iter()
            .map(|(relation, part)| (*relation, part.partition, part.from))
            .collect();
        let mut by_relation: Vec<(RelationId, Vec<Fetched>)> = Vec::new();
        for (relation, part) in cut.fetched {
            match by_relation.last_mut() {
                Some((last, parts)) if *last == relation => parts.push(part),
                _ => by_relation.push((relation, vec![part])),
            }
        }
        let workers = self.workers;
        let mut unreadable = Vec::new();
        for (relation, parts) in by_relation {
            // A source that lost its readers since the cut.
            if !self.sources.contains_key(&relation) {
                continue;
            }
            // A replay does not read what only push queries read, so it cannot be in the processing log either.
            let mut unjournaled = Vec::new();
            let bad = if self.is_durable_source(relation) {
                &mut rejected
            } else {
                &mut unjournaled
            };
            let decoded = match self.source_mut(relation)?.decode(parts, workers, bad) {
                Ok(decoded) => decoded,
                Err(error) => {
                    unreadable.push((relation, error));
                    continue;
                }
            };
            for (slot_rows, tombstones) in decoded {
                match tombstones {
                    Some(tombstones) => table_rows
                        .entry(relation)
                        .or_default()
                        .push((slot_rows, tombstones)),
                    None => rows.entry(relation).or_default().push(slot_rows),
                }
            }
        }
        for (relation, error) in unreadable {
            rows.remove(&relation);
            table_rows.remove(&relation);
            self.fail_readers(relation, &before, &error);
        }
        let mut batches = Vec::new();
        let mut failed = false;
        for position in 0..self.queries.len() {
            if !self.queries[position].runs() {
                continue;
            }
            let ran = self.run_query(position, false, &mut rows, &table_rows, &mut rejected);
            match ran {
                Ok(made) if made.is_empty() => {}
                Ok(made) => batches.push((position, made)),
                Err(error) => {
                    failed = true;
                    self.fail_query(position, &before, &error);
                }
            }
        }
        if failed {
            self.drop_unread_sources();
        }
        let feeds = self.run_subscriptions(&rows);
        let rejected = self.processing_log.encode(&rejected)?;
        Ok(StepOutput {
            batches,
            rejected,
            feeds,
        })
    }

    /// Runs one query over what its sources changed, and tells its readers what it changed.
    pub(crate) fn run_query(
        &mut self,
        position: usize,
        first: bool,
        rows: &mut RelationRows,
        table_rows: &TableRows,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<StepBatches> {
        let query = &mut self.queries[position];
        let (batches, changes) = query.run(first, rows, table_rows, &self.state, rejected)?;
        let relation = query.definition.output.relation();
        // What an INSERT adds to a stream reaches the stream's readers by its topic, as what users insert does.
        let makes_relation = relation.query == Some(query.definition.id)
            || matches!(query.definition.output, QueryOutput::SourceTable(_));
        if makes_relation && !changes.is_empty() {
            rows.entry(relation.id).or_default().extend(
                changes
                    .iter()
                    .map(|(slot, delta)| SlotRows::from_delta(*slot, delta)),
            );
        }
        Ok(batches)
    }

    /// Takes a query that cannot go on out of the steps, as of before this one, whose cut began at `before`. RESUME goes on from there, or
    /// builds its table anew.
    pub(crate) fn fail_query(
        &mut self,
        position: usize,
        before: &[(RelationId, usize, Offset)],
        error: &ExecError,
    ) {
        let reason = with_causes(error);
        self.checkpoints.note_damage(error);
        self.note_where_it_stops(position, before);
        let query = &mut self.queries[position];
        tracing::error!(query = %query.definition.id, reason, "query failed");
        query.has_lost_state |= error.is_damage();
        query.state = QueryState::Failed(reason);
    }

    pub(crate) fn run_subscriptions(
        &mut self,
        rows: &RelationRows,
    ) -> Vec<(SubscriptionId, ChangeBatch)> {
        let mut feeds = Vec::new();
        let mut failed = Vec::new();
        for subscription in &mut self.subscriptions {
            let touched = subscription
                .graph
                .plan()
                .sources()
                .any(|source| rows.contains_key(&source.id));
            if !touched && subscription.started {
                continue;
            }
            let first = !std::mem::replace(&mut subscription.started, true);
            // What a push query cannot evaluate is shown to its reader as NULL; the processing log is for what is kept.
            let mut rejected = Vec::new();
            let changes = subscription
                .graph
                .run(first, StepPart::Last, rows, None, &mut rejected)
                .and_then(|changes| {
                    let is_stream = subscription.graph.plan().kind == SourceKind::Stream;
                    let changes = changes
                        .into_iter()
                        .map(|(_, delta)| if is_stream { delta.valued() } else { Ok(delta) })
                        .collect::<ExecResult<Vec<Delta>>>()?;
                    change_batch(self.step, &changes)
                });
            match changes {
                Ok(Some(batch)) => feeds.push((subscription.id, batch)),
                Ok(None) => {}
                Err(error) => failed.push((subscription.id, with_causes(&error))),
            }
        }
        for (id, reason) in failed {
            self.end_subscription(id, reason);
        }
        feeds
    }

    /// Appends what a step made. Its predecessor must have committed.
    pub fn append_step(&mut self, output: StepOutput) -> ExecResult<()> {
        debug_assert!(
            self.pending.is_none(),
            "a step appends only after its predecessor's commit"
        );
        let (log, shared) = (&*self.log, &self.shared);
        for (position, batches) in &output.batches {
            if let Some(sink) = &mut self.queries[*position].sink {
                shared.until_there_is_room(|| sink.append(log, batches))?;
            }
        }
        let processing_log = &mut self.processing_log;
        shared.until_there_is_room(|| processing_log.append(log, &output.rejected))?;
        self.pending = Some(PendingStep {
            step: self.step,
            began: self.step_began.take(),
            snapshot: self.current_snapshot(),
            feeds: output.feeds,
        });
        Ok(())
    }

    /// Makes the pending step visible: its journal entry and inputs are on disk.
    pub fn commit_step(&mut self) -> ExecResult<()> {
        let Some(pending) = self.pending.take() else {
            return Ok(());
        };
        self.commit_producers()?;
        self.shared.publish(pending.snapshot);
        if let Some(began) = pending.began {
            self.shared.note_step(began);
        }
        self.deliver(pending.step, pending.feeds);
        Ok(())
    }

    /// Makes visible what all producers appended, and aborts what a change of the queries could not take back.
    pub(crate) fn commit_producers(&mut self) -> ExecResult<()> {
        let (log, shared) = (&*self.log, &self.shared);
        let mut aborted = false;
        for sink in self
            .queries
            .iter_mut()
            .filter_map(|query| query.sink.as_mut())
        {
            aborted |= shared.until_there_is_room(|| sink.producer_mut().commit(log))?;
        }
        let processing_log = self.processing_log.producer_mut();
        aborted |= shared.until_there_is_room(|| processing_log.commit(log))?;
        self.owes_checkpoint |= aborted;
        Ok(())
    }

    /// Hands changes to their readers, and ends those that do not keep up.
    pub(crate) fn deliver(&mut self, step: u64, feeds: Vec<(SubscriptionId, ChangeBatch)>) {
        for (id, changes) in feeds {
            let Some(subscription) = self
                .subscriptions
                .iter_mut()
                .find(|subscription| subscription.id == id)
            else {
                continue;
            };
            match subscription.receiver.offer(changes) {
                Ok(()) => {}
                Err(FeedClosed::Gone) => self.end_subscription(id, "the reader has gone".into()),
                Err(FeedClosed::Full) => {
                    let reason = format!(
                        "the reader was too slow: it did not take the changes of step {step}"
                    );
                    self.end_subscription(id, reason);
                }
            }
        }
    }

    /// Ends a push query and tells its reader why.
    pub fn end_subscription(&mut self, id: SubscriptionId, reason: String) {
        if let Some(position) = self
            .subscriptions
            .iter()
            .position(|subscription| subscription.id == id)
        {
            let mut subscription = self.subscriptions.remove(position);
            subscription.receiver.closed(reason);
            self.drop_unread_sources();
        }
    }

    pub(crate) fn source(&self, relation: RelationId) -> ExecResult<&crate::source::TopicSource> {
        self.sources
            .get(&relation)
            .ok_or_else(|| missing_source(relation))
    }

    pub(crate) fn source_mut(
        &mut self,
        relation: RelationId,
    ) -> ExecResult<&mut crate::source::TopicSource> {
        self.sources
            .get_mut(&relation)
            .ok_or_else(|| missing_source(relation))
    }
}

impl RunningQuery {
    /// Runs the query over what its sources changed, keeps its result and encodes it. Answers the batches, and what the result changed.
    pub(crate) fn run(
        &mut self,
        first: bool,
        rows: &RelationRows,
        table_rows: &TableRows,
        state: &RocksState,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<(StepBatches, Vec<SlotDelta>)> {
        self.run_part(first, StepPart::Last, rows, table_rows, state, rejected)
    }

    /// The same for a part of a step's rows. A step of several parts is ended by one that may have no rows.
    pub(crate) fn run_part(
        &mut self,
        first: bool,
        part: StepPart,
        rows: &RelationRows,
        table_rows: &TableRows,
        state: &RocksState,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<(StepBatches, Vec<SlotDelta>)> {
        let relation = Arc::clone(self.definition.output.relation());
        let before = rejected.len();
        let changes: Vec<SlotDelta> = match &self.definition.output {
            QueryOutput::SourceTable(_) => {
                let mut changes = Vec::new();
                for (slot_rows, tombstones) in table_rows.get(&relation.id).into_iter().flatten() {
                    self.rows_in += tombstones.len() as u64;
                    let table = table_of(self)?;
                    // Partition by partition: two partitions never hold the same key.
                    if let Some(delta) = upsert(slot_rows, tombstones, &relation.schema(), table)? {
                        // By key, whatever partition a producer chose: a key's history and its changes meet in one slot.
                        changes.extend(self.placing.route(delta)?);
                    }
                }
                changes
            }
            QueryOutput::Stream(_) | QueryOutput::Table(_) => {
                let reads: u64 = self
                    .graph
                    .plan()
                    .sources()
                    .filter_map(|source| rows.get(&source.id))
                    .flatten()
                    .map(|slot_rows| slot_rows.rowtime.len() as u64)
                    .sum();
                if reads == 0 && !first && !self.graph.is_in_step() {
                    return Ok(Default::default());
                }
                self.rows_in += reads;
                self.graph.run(first, part, rows, Some(state), rejected)?
            }
        };
        for failure in &mut rejected[before..] {
            if failure.source.is_empty() {
                failure.source.clone_from(&relation.name);
            }
        }
        let latest_read = self
            .latest_read
            .max(latest_time(&self.definition, rows, table_rows));
        self.latest_read = latest_read.filter(|_| part == StepPart::More);
        if changes.is_empty() {
            return Ok(Default::default());
        }
        let latest = match relation.window.map(|window| window.shape) {
            // What merges a session ends it: its row goes at its own end.
            Some(WindowShape::Session { .. }) => None,
            _ => latest_read,
        };
        self.rows_out += changes
            .iter()
            .map(|(_, delta)| delta.rows() as u64)
            .sum::<u64>();
        let batches = match &mut self.sink {
            Some(sink) => sink.encode(&changes, latest, rejected)?,
            None => StepBatches::default(),
        };
        if let Some(table) = &mut self.table {
            let deltas: Vec<&Delta> = changes.iter().map(|(_, delta)| delta).collect();
            if let Err(error) = table.apply(&deltas, self.workers) {
                if let Some(sink) = &mut self.sink {
                    sink.producer_mut().take_back(&batches);
                }
                return Err(error);
            }
        }
        Ok((batches, changes))
    }
}

fn missing_source(relation: RelationId) -> ExecError {
    ExecError::Internal(format!("relation {} has no source", relation.0))
}

/// The last event time among what a query reads in a step.
fn latest_time(
    definition: &PersistentQuery,
    rows: &RelationRows,
    table_rows: &TableRows,
) -> Option<i64> {
    let read = |slot_rows: &SlotRows| {
        slot_rows
            .rowtime
            .as_primitive_opt::<TimestampMillisecondType>()
            .and_then(|times| times.values().iter().max().copied())
    };
    let from_queries = definition
        .plan
        .sources()
        .filter_map(|source| rows.get(&source.id))
        .flatten()
        .filter_map(read);
    let from_topics = definition
        .plan
        .sources()
        .filter_map(|source| table_rows.get(&source.id))
        .flatten()
        .filter_map(|(slot_rows, _)| read(slot_rows));
    from_queries.chain(from_topics).max()
}

fn table_of(query: &RunningQuery) -> ExecResult<&crate::state::TableStore> {
    query
        .table
        .as_ref()
        .ok_or_else(|| ExecError::Internal("a table query has no table".into()))
}

/// A step's seed: fixed by what the journal holds, different from step to step (the finaliser of SplitMix64).
fn seed(step: u64, clock: i64) -> u64 {
    let mut bits = step ^ (clock as u64).rotate_left(32);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A step's changes of a push query, without the hidden event time.
pub fn change_batch(step: u64, changes: &[Delta]) -> ExecResult<Option<ChangeBatch>> {
    let Some(delta) = Delta::concat(changes)? else {
        return Ok(None);
    };
    if delta.rows() == 0 {
        return Ok(None);
    }
    let visible: Vec<usize> = (0..delta.columns().len()).collect();
    let rows: RecordBatch = delta.batch().project(&visible)?;
    Ok(Some(ChangeBatch {
        step: Some(step),
        ends_step: true,
        rows,
        diffs: delta.diffs().map(<[i8]>::to_vec),
    }))
}
