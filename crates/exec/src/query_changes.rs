//! Changes of the queries between two steps: create, drop, pause, resume, replace.
//!
//! What a new or resumed query appends stays in one open transaction, and its table unseen, until a checkpoint holds the change; then the
//! transaction is committed and the table published. A crash before that checkpoint leaves a transaction that recovery aborts, and the
//! change is made again from the catalog.
//!
//! INVARIANT: the journal tells nothing of such changes, so no step is journaled before a checkpoint holds the last one. A change that ends
//! without its checkpoint leaves the pipeline owing it ([`Pipeline::settle_change`]).

use std::{collections::HashSet, sync::Arc};

use highwater_planner::catalog::{QueryId, Relation, RelationId};
use highwater_storage_log::{Offset, TopicPartition};

use crate::{
    backfill::{Downstream, Past},
    catch_up::{CatchingUp, records_between},
    engine::{OffsetReset, PersistentQuery, QueryOutput, QueryState},
    error::{ExecError, ExecResult, with_causes},
    feed::SubscriptionId,
    operator::Rejected,
    pipeline::{
        Pipeline, RunningQuery, SourcePositions, reads, reads_topic, row_codec, wanted_columns,
    },
    producer::query_of,
    query::QueryGraph,
    rejects::ENGINE_QUERY,
    sink::Sink,
    state::{TableStore, TableVersion},
};

/// What a change of a query may have to take back.
struct BeforeChange {
    /// The revision that made what the query keeps.
    kept_revision: u64,
    /// The table of the query, and those of the queries behind it, which may read it.
    tables: Vec<Option<TableVersion>>,
}

impl Pipeline {
    /// Adds a query, caught up and visible when this returns. No step may be pending.
    pub fn create_query(&mut self, definition: PersistentQuery) -> ExecResult<()> {
        let query = self.new_query(definition)?;
        self.take_in(CatchingUp::new(
            query,
            self.workers,
            self.shared.memory.holder(),
        ))
    }

    /// The same, but a query that has much history to read is handed back, to catch up beside the steps before [`Self::take_in`].
    pub fn begin_query(&mut self, definition: PersistentQuery) -> ExecResult<Option<CatchingUp>> {
        let query = self.new_query(definition)?;
        let ends = self.history_ends_of(&query)?;
        let from_topics = query
            .graph
            .plan()
            .sources()
            .all(|source| ends.contains_key(&source.id));
        let left: i64 = ends
            .iter()
            .map(|(relation, ends)| records_between(&query.origin[relation], ends))
            .sum();
        let catching_up = CatchingUp::new(query, self.workers, self.shared.memory.holder());
        if catching_up.query.runs() && from_topics && left > self.options.catch_up_tail {
            return Ok(Some(catching_up));
        }
        self.take_in(catching_up)?;
        Ok(None)
    }

    fn new_query(&mut self, definition: PersistentQuery) -> ExecResult<RunningQuery> {
        // Whatever an earlier attempt left behind: state that no manifest names, and what was appended.
        self.forget_state(definition.id)?;
        let mut query = RunningQuery::new(definition, None, &self.base, self.workers)?;
        query.origin = self.origin(&query)?;
        if let Some(sink) = &mut query.sink {
            sink.producer_mut().settle(&*self.log)?;
        }
        Ok(query)
    }

    /// Whether the steps stand before what a catch-up has read already: it began before they read the topic, and joins once they have come
    /// that far.
    pub fn stands_before(&self, catching_up: &CatchingUp) -> bool {
        catching_up.reached.iter().any(|(relation, reached)| {
            self.sources.get(relation).is_some_and(|source| {
                source.relation().query.is_none()
                    && records_between(source.positions(), reached) > 0
            })
        })
    }

    /// Lets a query take part in the steps, after what is left of its history. No step may be pending, and no checkpoint under way.
    pub fn take_in(&mut self, catching_up: CatchingUp) -> ExecResult<()> {
        debug_assert!(
            self.pending.is_none(),
            "queries are added between two steps"
        );
        let CatchingUp {
            mut query,
            reached,
            started,
            undecodable,
            unevaluated,
            ..
        } = catching_up;
        let id = query.definition.id;
        // In the order of creation, in which recovery has them too.
        let position = self
            .queries
            .partition_point(|known| known.definition.id < id);
        if !query.runs() {
            query.stopped_at = Some(query.origin.clone());
            self.queries.insert(position, query);
            self.settle_change();
            return self.publish_between_steps();
        }
        let ends = self.history_ends_of(&query)?;
        self.queries.insert(position, query);
        let taken_in = self
            .begin_unseen_step()
            .and_then(|()| self.attach_sources(position, &ends))
            .and_then(|()| self.write_rejected(position, undecodable, unevaluated))
            .and_then(|()| {
                let past = Past::between(&reached, &ends);
                self.catch_up(position, &past, Downstream::Unaffected, !started)
            })
            .and_then(|()| self.checkpoint_now());
        if let Err(error) = taken_in {
            self.abandon(id)?;
            return Err(error);
        }
        self.publish_between_steps()
    }

    /// Puts what a catch-up could not use into the processing log. Records that another reader met before are there already.
    fn write_rejected(
        &mut self,
        position: usize,
        undecodable: Vec<(RelationId, Rejected)>,
        unevaluated: Vec<Rejected>,
    ) -> ExecResult<()> {
        let rejected: Vec<Rejected> = undecodable
            .into_iter()
            .filter(|(relation, _)| !self.has_other_reader(position, *relation))
            .map(|(_, rejected)| rejected)
            .chain(unevaluated)
            .collect();
        let rejected = self.processing_log.encode(&rejected)?;
        self.processing_log.append(&*self.log, &rejected)
    }

    /// Takes back what a query appended that failed while it caught up.
    pub fn give_up_catching_up(&mut self, mut catching_up: CatchingUp) {
        self.abandon_output(catching_up.query.sink.as_mut());
        // If this fails, the state takes room until the next start forgets it.
        if let Err(error) = self.forget_state(catching_up.query.definition.id) {
            tracing::warn!(
                error = with_causes(&error),
                "the state of a query that was not created could not be removed"
            );
        }
    }

    /// Aborts what a query appended between two steps. A log that has no room for that now is asked again ([`Self::abort_leftovers`]).
    fn abandon_output(&mut self, sink: Option<&mut Sink>) {
        if let Some(sink) = sink
            && let Err(error) = sink.producer_mut().abandon(&*self.log)
        {
            tracing::warn!(
                error = with_causes(&error),
                "what a query wrote could not be taken back yet; readers of its topic wait behind it"
            );
            self.owes_aborts = true;
        }
    }

    /// The same for the processing log. If it fails, a later step commits the records, which then stand there though their query does not.
    fn abandon_rejected(&mut self) {
        if let Err(error) = self.processing_log.producer_mut().abandon(&*self.log) {
            tracing::warn!(
                error = with_causes(&error),
                "the processing log keeps records of a query that was not created"
            );
        }
    }

    /// Aborts the transactions that no step will end: those of queries that do not run, and of queries that are not there, whose creation a
    /// crash or a full disk cut off. Each would hold back the readers of its topic for good.
    pub fn abort_leftovers(&mut self) {
        self.owes_aborts = false;
        for query in self.queries.iter_mut().filter(|query| !query.runs()) {
            if let Some(sink) = &mut query.sink {
                self.owes_aborts |= sink.producer_mut().abandon(&*self.log).is_err();
            }
        }
        for topic in self.log.topics() {
            for number in 0..topic.config.partitions {
                let partition = TopicPartition::new(Arc::clone(&topic.name), number);
                self.owes_aborts |= self.abort_strays(&partition).is_err();
            }
        }
    }

    fn abort_strays(&self, partition: &TopicPartition) -> ExecResult<()> {
        for (producer, epoch) in self.log.open_transactions(partition)? {
            if query_of(producer).is_some_and(|query| !self.knows(query)) {
                tracing::info!(%partition, producer = producer.0, "aborting what a query left behind that is not there");
                self.log
                    .end_transaction(partition, producer, epoch, false)?;
            }
        }
        Ok(())
    }

    /// Whether a query takes part in the steps, or will: the engine itself counts as one.
    fn knows(&self, id: QueryId) -> bool {
        id == ENGINE_QUERY
            || self.queries.iter().any(|query| query.definition.id == id)
            || self.catching_up.iter().any(|thread| thread.query == id)
    }

    /// Takes in a query that could not be created when the pipeline came back: it fails instead of the pipeline, and RESUME tries again.
    pub fn create_failed_query(
        &mut self,
        definition: PersistentQuery,
        error: &ExecError,
    ) -> ExecResult<()> {
        let mut query = RunningQuery::new(definition, None, &self.base, self.workers)?;
        let reason = with_causes(error);
        tracing::error!(query = %query.definition.id, reason, "query could not be started");
        query.origin = self.origin(&query)?;
        query.stopped_at = Some(query.origin.clone());
        query.state = QueryState::Failed(reason);
        let id = query.definition.id;
        let position = self
            .queries
            .partition_point(|known| known.definition.id < id);
        self.queries.insert(position, query);
        self.settle_change();
        self.publish_between_steps()
    }

    /// Where a new query begins to read its topics.
    fn origin(&self, query: &RunningQuery) -> ExecResult<SourcePositions> {
        let output = &query.definition.output;
        let table = matches!(output, QueryOutput::SourceTable(_));
        self.topic_relations(&query.graph, Some(output))
            .into_iter()
            .map(|relation| {
                let mut start = match query.definition.offset_reset {
                    OffsetReset::Latest if !table => self.history_ends(&relation)?,
                    OffsetReset::Earliest | OffsetReset::Latest => self.starts(&relation)?,
                };
                for (partition, offset) in &query.definition.begins_at {
                    let number = partition.partition.0 as usize;
                    if partition.topic.as_ref() == relation.topic && number < start.len() {
                        let first = self.log.offsets(partition)?.log_start;
                        start[number] = first.max(*offset);
                    }
                }
                Ok((relation.id, start))
            })
            .collect()
    }

    /// Up to where a query catches up by itself, before the steps bring the rest.
    fn history_ends_of(&self, query: &RunningQuery) -> ExecResult<SourcePositions> {
        self.topic_relations(&query.graph, Some(&query.definition.output))
            .into_iter()
            .map(|relation| Ok((relation.id, self.history_ends(&relation)?)))
            .collect()
    }

    /// Takes back a query whose creation failed.
    fn abandon(&mut self, id: QueryId) -> ExecResult<()> {
        let position = self.query_index(id)?;
        let mut query = self.queries.remove(position);
        self.drop_unread_sources();
        // ORDER: before anything that can fail, since no checkpoint may hold state of a query that it does not name.
        self.unwritten.retain(|(prefix, _)| !prefix.belongs_to(id));
        self.forget_state(id)?;
        self.abandon_output(query.sink.as_mut());
        self.abandon_rejected();
        self.settle_change();
        Ok(())
    }

    /// Removes a query between two steps, with its state.
    pub fn drop_query(&mut self, id: QueryId) -> ExecResult<()> {
        let position = self.query_index(id)?;
        // The last step's entry does not tell what the step made, and the next one will not know the query any more.
        self.mark_journal()?;
        if let Some(sink) = &self.queries[position].sink {
            // Nobody can make these records again once the query is gone.
            for (partition, end) in sink.producer().ends(&*self.log)? {
                self.log.sync(&partition, end)?;
            }
        }
        self.queries.remove(position);
        self.drop_unread_sources();
        self.unwritten.retain(|(prefix, _)| !prefix.belongs_to(id));
        self.forget_state(id)?;
        self.settle_change();
        self.publish_between_steps()
    }

    /// Stops a query from reading, keeping its place.
    pub fn pause_query(&mut self, id: QueryId) -> ExecResult<()> {
        let position = self.query_index(id)?;
        if self.queries[position].runs() {
            self.pass_over_what_it_has(position)?;
            self.note_where_it_stops(position, &[]);
            self.queries[position].state = QueryState::Paused;
            self.drop_unread_sources();
            self.settle_change();
        }
        self.publish_between_steps()
    }

    /// Moves the sources of a query past what other queries wrote there, which it got in memory, where nothing else stands among it: then another
    /// query can go on for it.
    fn pass_over_what_it_has(&mut self, position: usize) -> ExecResult<()> {
        for (relation, written) in self.own_records_of(position) {
            let Some(source) = self.sources.get_mut(&relation) else {
                continue;
            };
            for (partition, end) in written.into_iter().enumerate() {
                if let Some(part) = source.fetch_exactly(&*self.log, partition, end)?
                    && source.has_nothing_new(&part)
                {
                    source.skip(&part);
                }
            }
        }
        Ok(())
    }

    /// Notes how far a query has read that stops. `before` is where the cut of a step began that it does not take part in any more.
    pub(crate) fn note_where_it_stops(
        &mut self,
        position: usize,
        before: &[(RelationId, usize, Offset)],
    ) {
        let mut positions = self.positions_of_query(position);
        for (relation, partition, from) in before {
            if let Some(offsets) = positions.get_mut(relation) {
                offsets[*partition] = *from;
            }
        }
        let has_own = self.own_records_of(position);
        let query = &mut self.queries[position];
        query.stopped_at = Some(positions);
        query.has_own = has_own;
    }

    /// For the streams among a query's sources that other queries make: up to where those have written them. The query got that in memory,
    /// so the positions of its sources may lie before it.
    fn own_records_of(&self, position: usize) -> SourcePositions {
        let query = &self.queries[position];
        self.topic_relations(&query.graph, Some(&query.definition.output))
            .into_iter()
            .filter_map(|relation| Some((relation.id, self.own_records(&relation)?)))
            .collect()
    }

    /// Up to where (exclusive) the query that makes a stream has written it.
    pub(crate) fn own_records(&self, relation: &Relation) -> Option<Vec<Offset>> {
        let maker = self.query_index(relation.query?).ok()?;
        let sink = self.queries[maker].sink.as_ref()?;
        Some(sink.producer().appended().map(Offset).collect())
    }

    /// Lets a paused or failed query go on. One that read only streams goes on where it stopped; one over tables, one that was replaced, or one
    /// whose state a failure left half changed, is built anew beside its result, and the difference is sent.
    pub fn resume_query(&mut self, id: QueryId) -> ExecResult<()> {
        let position = self.query_index(id)?;
        if self.queries[position].runs() {
            return Ok(());
        }
        let replaced = self.queries[position].is_replaced();
        if replaced {
            self.queries[position].origin = self.origin(&self.queries[position])?;
        }
        let before = BeforeChange {
            kept_revision: self.queries[position].kept_revision,
            tables: self.tables_from(position),
        };
        let ends = self.history_ends_of(&self.queries[position])?;
        let query = &mut self.queries[position];
        if let Some(sink) = &mut query.sink {
            // What a failed RESUME could not take back.
            sink.producer_mut().abandon(&*self.log)?;
        }
        let failed = matches!(query.state, QueryState::Failed(_));
        let stopped_at = query.stopped_at.take();
        query.state = QueryState::Running;
        query.has_lost_state = false;
        let only_streams = stopped_at.as_ref().is_some_and(|stopped_at| {
            query
                .graph
                .plan()
                .sources()
                .all(|source| stopped_at.contains_key(&source.id))
        });
        let keeps_state = query.table.is_some();
        let mut resumed = self
            .begin_unseen_step()
            .and_then(|()| self.attach_sources(position, &ends));
        if resumed.is_ok() {
            resumed = match &stopped_at {
                Some(stopped_at) if only_streams && !replaced && !(failed && keeps_state) => {
                    let has_own = std::mem::take(&mut self.queries[position].has_own);
                    let past = Past {
                        own_from: Some(&has_own),
                        ..Past::between(stopped_at, &ends)
                    };
                    let caught_up = self.catch_up(position, &past, Downstream::Follows, true);
                    self.queries[position].has_own = has_own;
                    caught_up
                }
                _ => self.rebuild(position, &ends),
            };
        }
        // While it runs, the positions of the steps are its own.
        let has_own = std::mem::take(&mut self.queries[position].has_own);
        if let Err(error) = resumed.and_then(|()| self.checkpoint_now()) {
            self.queries[position].has_own = has_own;
            self.give_up_resuming(position, stopped_at, before, &error)?;
            return Err(error);
        }
        self.publish_between_steps()
    }

    /// The tables of a query and of those that may read it, as they are.
    fn tables_from(&self, position: usize) -> Vec<Option<TableVersion>> {
        self.queries[position..]
            .iter()
            .map(|query| query.table.as_ref().map(TableStore::version))
            .collect()
    }

    /// Gives a query that does not run another plan for the table that it keeps, and lets it go on: it is built anew, and what differs is sent. If
    /// that fails, it is what it was, and failed.
    pub fn replace_query(&mut self, definition: PersistentQuery) -> ExecResult<()> {
        let (id, revision) = (definition.id, definition.revision);
        let position = self.query_index(id)?;
        let graph = QueryGraph::new(definition.plan.clone(), Some(id), self.workers)?;
        let query = &mut self.queries[position];
        let (Some(table), Some(sink)) = (&mut query.table, &mut query.sink) else {
            return Err(ExecError::Unsupported(
                "only a query that makes a table can get another plan".into(),
            ));
        };
        if query.state == QueryState::Running {
            return Err(ExecError::Internal("a query that runs is replaced".into()));
        }
        let new_codec = Arc::new(row_codec(&definition, query.kept_revision)?);
        sink.set_relation(Arc::clone(definition.output.relation()))?;
        let old_codec = Arc::clone(table.codec());
        table.set_codec(new_codec);
        let old_graph = std::mem::replace(&mut query.graph, graph);
        let old = std::mem::replace(&mut query.definition, definition);
        tracing::info!(query = %id, revision, "a query gets another plan");
        let Err(error) = self.resume_query(id) else {
            return Ok(());
        };
        let query = &mut self.queries[position];
        if let (Some(table), Some(sink)) = (&mut query.table, &mut query.sink) {
            table.set_codec(old_codec);
            sink.set_relation(Arc::clone(old.output.relation()))?;
        }
        query.definition = old;
        query.graph = old_graph;
        self.settle_change();
        Err(error)
    }

    /// Takes back what a failed RESUME did. The tables are again what their topics tell; what operators keep may be half changed, so the query and
    /// those that followed it stay out of the steps until a RESUME builds them anew.
    fn give_up_resuming(
        &mut self,
        position: usize,
        stopped_at: Option<SourcePositions>,
        before: BeforeChange,
        error: &ExecError,
    ) -> ExecResult<()> {
        let reason = with_causes(error);
        self.checkpoints.note_damage(error);
        let mut changed_relations = Vec::new();
        for changed in position..self.queries.len() {
            let query = &self.queries[changed];
            let follows = changed == position
                || query.runs()
                    && changed_relations
                        .iter()
                        .any(|&relation| reads(&query.graph, relation));
            if !follows {
                continue;
            }
            changed_relations.push(query.definition.output.relation().id);
            if changed != position || stopped_at.is_none() {
                self.note_where_it_stops(changed, &[]);
            }
            let query = &mut self.queries[changed];
            query.state = QueryState::Failed(reason.clone());
            let mut sink = query.sink.take();
            self.abandon_output(sink.as_mut());
            let query = &mut self.queries[changed];
            query.sink = sink;
            let table = before.tables[changed - position].as_ref();
            if let (Some(table), Some(before)) = (&mut query.table, table) {
                table.restore(before)?;
            }
        }
        self.queries[position].kept_revision = before.kept_revision;
        if stopped_at.is_some() {
            self.queries[position].stopped_at = stopped_at;
        }
        self.abandon_rejected();
        self.end_followers(&changed_relations, &reason);
        self.drop_unread_sources();
        self.settle_change();
        self.publish_between_steps()
    }

    /// Ends the push queries over relations whose changes were taken back after they had run over them.
    fn end_followers(&mut self, changed: &[RelationId], reason: &str) {
        self.between_steps.clear();
        let followers: Vec<SubscriptionId> = self
            .subscriptions
            .iter()
            .filter(|subscription| changed.iter().any(|&id| reads(&subscription.graph, id)))
            .map(|subscription| subscription.id)
            .collect();
        for id in followers {
            self.end_subscription(id, format!("a query that it reads has failed: {reason}"));
        }
    }

    /// Takes the queries and push queries that read a relation's topic out of the steps, since it cannot be read; the others go on. `before` is
    /// where the running step's cut began.
    pub fn fail_readers(
        &mut self,
        relation: RelationId,
        before: &[(RelationId, usize, Offset)],
        error: &ExecError,
    ) {
        for position in 0..self.queries.len() {
            let query = &self.queries[position];
            if query.runs() && reads_topic(&query.graph, Some(&query.definition.output), relation) {
                self.fail_query(position, before, error);
            }
        }
        let readers: Vec<SubscriptionId> = self
            .subscriptions
            .iter()
            .filter(|subscription| reads_topic(&subscription.graph, None, relation))
            .map(|subscription| subscription.id)
            .collect();
        for id in readers {
            self.end_subscription(id, with_causes(error));
        }
        self.drop_unread_sources();
    }

    /// Writes the checkpoint that a change of the queries needs, or leaves it owing: then no step is journaled before it could be written.
    pub fn settle_change(&mut self) {
        self.owes_checkpoint = true;
        if let Err(error) = self.checkpoint_now() {
            tracing::error!(
                error = with_causes(&error),
                "could not write a checkpoint after the queries have changed; the queries wait until it can be written"
            );
            self.checkpoints.note_damage(&error);
        }
    }

    /// Commits what was appended between two steps, makes tables and counters visible, and hands push queries what they are owed.
    pub(crate) fn publish_between_steps(&mut self) -> ExecResult<()> {
        self.commit_producers()?;
        self.shared.publish(self.current_snapshot());
        self.publish_status();
        let mut feeds = std::mem::take(&mut self.between_steps);
        let mut ended: HashSet<SubscriptionId> = HashSet::new();
        for (id, changes) in feeds.iter_mut().rev() {
            changes.ends_step = ended.insert(*id);
        }
        self.deliver(self.step, feeds);
        Ok(())
    }

    /// Lets the steps read what a query reads, from `ends` where they did not read it before.
    fn attach_sources(&mut self, position: usize, ends: &SourcePositions) -> ExecResult<()> {
        let query = &self.queries[position];
        let wanted: Vec<_> = self
            .topic_relations(&query.graph, Some(&query.definition.output))
            .into_iter()
            .map(|relation| {
                let columns: Vec<usize> = wanted_columns(&query.graph, relation.id).collect();
                (relation, columns)
            })
            .collect();
        for (relation, columns) in wanted {
            let end = ends.get(&relation.id).cloned().unwrap_or_default();
            self.attach_source(&relation, end, columns.into_iter())?;
        }
        Ok(())
    }
}
