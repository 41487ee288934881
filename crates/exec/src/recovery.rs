//! Bringing a pipeline back: newest whole checkpoint, then the journal's steps behind it.
//!
//! INVARIANT: a recovery that replayed or aborted anything ends with a checkpoint before the first new step, so the journal never holds steps of
//! two lives of a producer's epoch.

use std::{collections::BTreeSet, sync::Arc};

use highwater_planner::catalog::{QueryId, RelationId};
use highwater_storage_log::{Log, Offset};

use crate::{
    checkpoint::{CheckpointStore, Manifest, Restored},
    engine::{EngineOptions, PersistentQuery, QueryState},
    error::{ExecResult, with_causes},
    journal::{EntryKind, Journal, JournalEntry},
    pipeline::{Pipeline, RunningQuery, positions_from, wanted_columns},
    rejects::ProcessingLog,
    shared::Shared,
    state::StateId,
    workers::Workers,
};

/// Topic of the journal of the one pipeline.
pub const JOURNAL_TOPIC: &str = "_highwater_journal";

/// What a replay found in the journal.
struct Replay {
    /// Steps that ran again.
    replayed: u64,
    /// The journal ends with steps that never happened.
    dropped: bool,
}

impl Pipeline {
    /// Recovers a pipeline with the queries of the catalog, in creation order. Queries that no checkpoint knows are backfilled.
    pub fn recover(
        log: Arc<dyn Log>,
        options: EngineOptions,
        shared: Arc<Shared>,
        queries: Vec<PersistentQuery>,
    ) -> ExecResult<Self> {
        let checkpoints = CheckpointStore::open(&options.state_dir, options.state_memory)?;
        let recovered = Self::recover_from(
            checkpoints.clone(),
            Arc::clone(&log),
            options.clone(),
            Arc::clone(&shared),
            queries.clone(),
        );
        match recovered {
            Err(error) if error.is_damage() && !checkpoints.is_suspect() => {
                tracing::error!(
                    error = with_causes(&error),
                    "the state database is damaged; all of it is read now"
                );
                checkpoints.suspect()?;
                Self::recover_from(checkpoints, log, options, shared, queries)
            }
            recovered => recovered,
        }
    }

    fn recover_from(
        checkpoints: CheckpointStore,
        log: Arc<dyn Log>,
        options: EngineOptions,
        shared: Arc<Shared>,
        queries: Vec<PersistentQuery>,
    ) -> ExecResult<Self> {
        let Restored {
            state,
            manifest,
            lost,
        } = checkpoints.restore()?;
        let first_start = manifest.is_none();
        let manifest = manifest.unwrap_or_else(|| Manifest::new(0, Offset(0)));
        let base = state.snapshot();
        let journal = Journal::open(Arc::clone(&log), JOURNAL_TOPIC)?;
        let processing_log =
            ProcessingLog::new(&options.processing_log_topic, &manifest.processing_log);
        let mut pipeline = Self {
            log,
            workers: Workers::new(options.workers),
            memory: shared.memory.holder(),
            options,
            shared,
            checkpoints,
            state,
            base,
            journal,
            sources: Default::default(),
            queries: Vec::new(),
            catching_up: Vec::new(),
            subscriptions: Vec::new(),
            processing_log,
            step: manifest.step,
            pending: None,
            checkpointed_step: manifest.step,
            moment: (0, 0),
            step_began: None,
            moved_without_step: false,
            owes_checkpoint: false,
            owes_aborts: false,
            between_steps: Vec::new(),
            unwritten: Vec::new(),
            holds: Default::default(),
            journaled_writes: Default::default(),
            stored: Default::default(),
            untold: Vec::new(),
        };
        let new_queries = pipeline.restore_queries(&manifest, queries)?;
        pipeline.restore_producers(&manifest)?;
        if let Some(reason) = &lost {
            pipeline.rebuild_lost_state(&manifest, reason);
            pipeline.drop_unread_sources();
        }
        let Replay { replayed, dropped } = pipeline.replay(Offset(manifest.journal))?;
        let aborted = pipeline.settle_producers()?;
        tracing::info!(
            step = pipeline.step,
            checkpoint = manifest.step,
            replayed,
            "state recovered"
        );
        // With `log.fsync = never` a power cut can take the journal from behind a checkpoint. New steps must not stand where it would look
        // for old ones.
        let journal_is_short = pipeline.journal.end()?.0 < manifest.journal;
        let changed = replayed > 0 || dropped || aborted || journal_is_short;
        if first_start || changed || lost.is_some() {
            pipeline.settle_change();
        }
        if !pipeline.owes_checkpoint {
            pipeline.checkpoints.trust()?;
        }
        pipeline.shared.publish(pipeline.current_snapshot());
        pipeline.apply_pauses()?;
        pipeline.resume_rebuilt();
        for query in new_queries {
            if let Err(error) = pipeline.create_query(query.clone()) {
                pipeline.create_failed_query(query, &error)?;
            }
        }
        pipeline.abort_leftovers();
        pipeline.hold_inputs()?;
        pipeline.measure_state();
        pipeline.publish_status();
        Ok(pipeline)
    }

    /// Puts the sinks where they stood at the checkpoint, and commits what it holds.
    fn restore_producers(&mut self, manifest: &Manifest) -> ExecResult<()> {
        let written = positions_from(&manifest.written);
        for query in &mut self.queries {
            let relation = query.definition.output.relation();
            let ends = match relation.query == Some(query.definition.id) {
                true => written.get(&relation.id),
                false => None,
            };
            if let Some(sink) = &mut query.sink {
                sink.producer_mut()
                    .stood_at(ends.map_or(&[], Vec::as_slice));
                sink.producer().commit_checkpointed(&*self.log)?;
            }
        }
        Ok(())
    }

    /// Wires up the queries that the checkpoint knows, forgets state of those that are gone, and answers the ones that are new.
    fn restore_queries(
        &mut self,
        manifest: &Manifest,
        queries: Vec<PersistentQuery>,
    ) -> ExecResult<Vec<PersistentQuery>> {
        let wanted: BTreeSet<u64> = queries.iter().map(|query| query.id.0).collect();
        let known: BTreeSet<u64> = manifest.queries.iter().map(|query| query.query).collect();
        for stored in self.state.queries()? {
            // One that was catching up when the checkpoint was written may have state in it without being named.
            if !wanted.contains(&stored.0) || !known.contains(&stored.0) {
                self.forget_state(stored)?;
            }
        }
        let mut new = Vec::new();
        for definition in queries {
            let Some(known) = manifest
                .queries
                .iter()
                .find(|query| query.query == definition.id.0)
            else {
                new.push(definition);
                continue;
            };
            if !definition.can_take_over(known.revision) {
                tracing::error!(query = %definition.id, "the checkpoint holds another version of the query; it is made anew");
                self.forget_state(definition.id)?;
                new.push(definition);
                continue;
            }
            let query = RunningQuery::new(definition, Some(known), &self.base, self.workers)?;
            if !query.runs() {
                // It knows by itself where it stopped.
                self.queries.push(query);
                continue;
            }
            for relation in self.topic_relations(&query.graph, Some(&query.definition.output)) {
                let positions = manifest
                    .sources
                    .iter()
                    .find(|source| source.relation == relation.id.0)
                    .map(|source| source.positions.iter().copied().map(Offset).collect());
                let positions: Option<Vec<Offset>> = positions;
                let positions = match positions {
                    Some(positions) => positions,
                    // Only when a checkpoint was damaged by hand: read on from the end rather than count twice.
                    None => self.stable_ends(&relation)?,
                };
                let wanted = wanted_columns(&query.graph, relation.id);
                self.attach_source(&relation, positions, wanted)?;
            }
            self.queries.push(query);
        }
        Ok(new)
    }

    /// Queries were replayed as the checkpoint knew them. A PAUSE, RESUME or OR REPLACE that a crash cut off takes effect now.
    fn apply_pauses(&mut self) -> ExecResult<()> {
        let changed: Vec<(QueryId, bool)> = self
            .queries
            .iter()
            .filter_map(|query| match (&query.state, query.definition.paused) {
                (QueryState::Running, true) => Some((query.definition.id, true)),
                (QueryState::Paused, false) => Some((query.definition.id, false)),
                (QueryState::Failed(_), false) if query.is_replaced() => {
                    Some((query.definition.id, false))
                }
                _ => None,
            })
            .collect();
        for (id, paused) in changed {
            if paused {
                self.pause_query(id)?;
            } else if let Err(error) = self.resume_query(id) {
                tracing::error!(query = %id, error = with_causes(&error), "query could not be resumed");
            }
        }
        Ok(())
    }

    /// Runs the journal's steps from `from` on; answers how many.
    fn replay(&mut self, from: Offset) -> ExecResult<Replay> {
        let mut replay = Replay {
            replayed: 0,
            dropped: false,
        };
        let entries = self.journal.read_from(from)?.into_iter();
        for entry in entries.filter(|entry| entry.kind == EntryKind::Step) {
            if !self.inputs_survived(&entry) {
                // The step never committed: its inputs had to be on disk first. Nor did any step behind it.
                tracing::warn!(
                    step = entry.step,
                    "the journal's last steps lost their inputs and never happened"
                );
                replay.dropped = true;
                break;
            }
            self.step = entry.step - 1;
            self.moment = (entry.clock, entry.seed);
            let cut = self.journaled_cut(&entry);
            let output = self.run_step(cut)?;
            self.append_step(output)?;
            self.commit_step()?;
            self.keep_to_budget(0);
            replay.replayed += 1;
        }
        Ok(replay)
    }

    /// Whether all that a step read is still there. The readers of a topic that cannot be read fail.
    fn inputs_survived(&mut self, entry: &JournalEntry) -> bool {
        for (relation, partition, to) in &entry.cut {
            let Some(source) = self.sources.get(relation) else {
                continue;
            };
            match self.log.offsets(&source.partitions()[*partition as usize]) {
                Ok(offsets) if offsets.last_stable < *to => return false,
                Ok(_) => {}
                Err(error) => self.fail_readers(*relation, &[], &error.into()),
            }
        }
        true
    }

    fn settle_producers(&mut self) -> ExecResult<bool> {
        let mut aborted = self.processing_log.producer_mut().settle(&*self.log)?;
        for query in &mut self.queries {
            if let Some(sink) = &mut query.sink {
                aborted |= sink.producer_mut().settle(&*self.log)?;
            }
        }
        Ok(aborted)
    }

    /// Writes a checkpoint that marks a change of the queries, or the end of a recovery, and waits for it. No step may be pending.
    pub fn checkpoint_now(&mut self) -> ExecResult<()> {
        let mut work = self.checkpoint_work(true)?;
        self.checkpoint_more(&mut work, usize::MAX);
        match self.checkpoints.write(&*self.log, &self.state, &work) {
            Ok(done) => {
                self.owes_checkpoint = false;
                self.finish_checkpoint(done)
            }
            Err(error) => {
                self.unwritten = work.changes;
                Err(error)
            }
        }
    }

    /// Takes over a finished checkpoint: tables read from it, the journal lets go of what lies behind.
    pub fn finish_checkpoint(&mut self, done: crate::checkpoint::CheckpointDone) -> ExecResult<()> {
        self.base = Arc::clone(&done.base);
        self.checkpointed_step = done.step;
        self.stored = done.stored;
        for query in &mut self.queries {
            query.graph.checkpointed();
            if let Some(table) = &mut query.table {
                table.checkpointed(Arc::clone(&done.base));
            }
        }
        let history = self.journal.end()?.0 - self.options.feed_history;
        let keep = history.min(done.journal_keep.0);
        self.journal.drop_below(Offset(keep.max(0)))?;
        self.hold_inputs()
    }

    /// Removes all state of a query from the database.
    pub fn forget_state(&self, query: QueryId) -> ExecResult<()> {
        let (from, to) = StateId::query_range(query);
        self.state.delete_range(&from, &to)
    }

    /// Where the sources of a query stand.
    pub fn positions_of_query(&self, position: usize) -> crate::pipeline::SourcePositions {
        let query = &self.queries[position];
        self.topic_relations(&query.graph, Some(&query.definition.output))
            .into_iter()
            .filter_map(|relation| {
                let id: RelationId = relation.id;
                self.sources
                    .get(&id)
                    .map(|source| (id, source.positions().to_vec()))
            })
            .collect()
    }
}
