//! A new query catches up with what was there before it, then joins the pipeline at a cut.
//!
//! The catch-up runs between two steps: streams are read from their topics up to where the pipeline stands, tables are read from their
//! current rows. The results go into a table that nobody sees and into one open transaction of the sink, until a checkpoint holds the query;
//! then the transaction is committed and the table published. A crash before that checkpoint leaves a transaction that recovery aborts,
//! and the query is backfilled again.

use std::sync::Arc;

use highwater_planner::catalog::{QueryId, Relation, RelationId};
use highwater_storage_log::{Log, Offset};

use crate::{
    delta::Delta,
    engine::{OffsetReset, PersistentQuery, QueryOutput, QueryState},
    error::{ExecError, ExecResult, with_causes},
    exchange::Exchange,
    operator::Rejected,
    pipeline::{Pipeline, RunningQuery, SourcePositions, wanted_columns},
    query::{QueryGraph, RelationRows},
    source::{SlotRows, TopicSource},
    state::{RowCodec, StateId, TableStore},
    step::TableRows,
};

/// Rows that a catch-up takes at a time.
const CHUNK_ROWS: usize = 65_536;

impl Pipeline {
    /// Adds a query, caught up and visible when this returns. No step may be pending.
    pub fn create_query(&mut self, definition: PersistentQuery) -> ExecResult<()> {
        debug_assert!(
            self.pending.is_none(),
            "queries are added between two steps"
        );
        let id = definition.id;
        let mut query = RunningQuery::new(definition, None, &self.base)?;
        let mut ends = SourcePositions::new();
        for relation in self.topic_relations(&query.graph, Some(&query.definition.output)) {
            let end = self.history_ends(&relation)?;
            let table = matches!(query.definition.output, QueryOutput::SourceTable(_));
            let start = match query.definition.offset_reset {
                OffsetReset::Earliest => self.starts(&relation)?,
                OffsetReset::Latest if table => self.starts(&relation)?,
                OffsetReset::Latest => end.clone(),
            };
            query.origin.insert(relation.id, start);
            self.attach_source(&relation, end.clone(), &query.graph)?;
            ends.insert(relation.id, end);
        }
        if let Some(sink) = &mut query.sink {
            // What an earlier attempt left behind.
            sink.producer_mut().settle(&*self.log)?;
        }
        let origin = query.origin.clone();
        let paused = query.state == QueryState::Paused;
        self.queries.push(query);
        let caught_up = if paused {
            let last = self.queries.len() - 1;
            self.queries[last].stopped_at = Some(origin);
            Ok(())
        } else {
            self.catch_up(
                self.queries.len() - 1,
                &origin,
                &ends,
                Downstream::Unaffected,
            )
        };
        if let Err(error) = caught_up.and_then(|()| self.checkpoint_now()) {
            self.abandon(id)?;
            return Err(error);
        }
        self.publish_between_steps()
    }

    /// Takes back a query whose creation failed.
    fn abandon(&mut self, id: QueryId) -> ExecResult<()> {
        let position = self.query_index(id)?;
        let mut query = self.queries.remove(position);
        if let Some(sink) = &mut query.sink {
            sink.producer_mut().abort(&*self.log)?;
        }
        self.processing_log.producer_mut().abort(&*self.log)?;
        self.drop_unread_sources();
        self.unwritten.retain(|(prefix, _)| !prefix.belongs_to(id));
        self.forget_state(id)?;
        self.checkpoint_change();
        Ok(())
    }

    /// Removes a query between two steps, with its state.
    pub fn drop_query(&mut self, id: QueryId) -> ExecResult<()> {
        let position = self.query_index(id)?;
        if let Some(sink) = &self.queries[position].sink {
            // Nobody can make these records again once the query is gone.
            for (partition, end) in sink.producer().ends(&*self.log)? {
                self.log.sync(&partition, end)?;
            }
        }
        self.queries.remove(position);
        self.drop_unread_sources();
        self.forget_state(id)?;
        self.checkpoint_change();
        self.publish_between_steps()
    }

    /// A checkpoint that could as well come later: without it, a crash replays steps with a query that is gone, whose rejected records were
    /// part of the processing log.
    fn checkpoint_change(&mut self) {
        if let Err(error) = self.checkpoint_now() {
            tracing::warn!(
                error = with_causes(&error),
                "could not write a checkpoint after a query was removed"
            );
        }
    }

    /// Stops a query from reading, keeping its place.
    pub fn pause_query(&mut self, id: QueryId) -> ExecResult<()> {
        let position = self.query_index(id)?;
        if self.queries[position].runs() {
            let stopped_at = self.positions_of_query(position);
            let query = &mut self.queries[position];
            query.stopped_at = Some(stopped_at);
            query.state = QueryState::Paused;
            // Without this a crash would replay the query past the place where it was paused.
            self.checkpoint_now()?;
        }
        self.publish_between_steps()
    }

    /// Lets a paused or failed query go on. One that read only streams goes on where it stopped; one over tables, or one whose state a failure
    /// left half changed, is built anew beside its result, and the difference is sent.
    pub fn resume_query(&mut self, id: QueryId) -> ExecResult<()> {
        let position = self.query_index(id)?;
        if self.queries[position].runs() {
            return Ok(());
        }
        let mut ends = SourcePositions::new();
        for relation in self.topic_relations(
            &self.queries[position].graph,
            Some(&self.queries[position].definition.output),
        ) {
            ends.insert(relation.id, self.history_ends(&relation)?);
        }
        let failed = matches!(self.queries[position].state, QueryState::Failed(_));
        let query = &mut self.queries[position];
        let stopped_at = query.stopped_at.take();
        query.state = QueryState::Running;
        let only_streams = stopped_at.as_ref().is_some_and(|stopped_at| {
            query
                .graph
                .plan()
                .sources()
                .all(|source| stopped_at.contains_key(&source.id))
        });
        let keeps_state = query.table.is_some();
        let resumed = match &stopped_at {
            Some(stopped_at) if only_streams && !(failed && keeps_state) => {
                self.catch_up(position, stopped_at, &ends, Downstream::Follows)
            }
            _ => self.rebuild(position, &ends),
        };
        if let Err(error) = resumed.and_then(|()| self.checkpoint_now()) {
            self.give_up_resuming(position, stopped_at, &error)?;
            return Err(error);
        }
        self.publish_between_steps()
    }

    /// Takes back what a failed RESUME appended. The query and those that followed it may be half changed: they stay out of the steps until a
    /// RESUME builds them anew.
    fn give_up_resuming(
        &mut self,
        position: usize,
        stopped_at: Option<SourcePositions>,
        error: &ExecError,
    ) -> ExecResult<()> {
        let reason = with_causes(error);
        for changed in position..self.queries.len() {
            let positions = self.positions_of_query(changed);
            let query = &mut self.queries[changed];
            let open = query
                .sink
                .as_ref()
                .is_some_and(|sink| sink.producer().is_open());
            if changed == position || open {
                query.state = QueryState::Failed(reason.clone());
                query.stopped_at = Some(positions);
            }
            if let Some(sink) = &mut query.sink {
                sink.producer_mut().abort(&*self.log)?;
            }
        }
        if let Some(stopped_at) = stopped_at {
            self.queries[position].stopped_at = Some(stopped_at);
        }
        self.processing_log.producer_mut().abort(&*self.log)
    }

    /// Commits what was appended between two steps, and makes tables and counters visible.
    pub(crate) fn publish_between_steps(&mut self) -> ExecResult<()> {
        self.commit_producers()?;
        self.shared.publish(self.current_snapshot());
        self.publish_status();
        Ok(())
    }

    /// Up to where history goes: the rest reaches the query with the coming steps. What a query writes to its own stream reaches its readers in
    /// memory, so of that all which is committed is history.
    pub(crate) fn history_ends(&self, relation: &Relation) -> ExecResult<Vec<Offset>> {
        match self.sources.get(&relation.id) {
            Some(source) if relation.query.is_none() => Ok(source.positions().to_vec()),
            _ => self.stable_ends(relation),
        }
    }

    /// A reader of a relation's past.
    pub(crate) fn history(
        &self,
        relation: &Arc<Relation>,
        graph: &QueryGraph,
        from: Vec<Offset>,
    ) -> ExecResult<TopicSource> {
        let pipeline_stands = self
            .sources
            .get(&relation.id)
            .map(|source| source.positions().to_vec());
        let mut source = TopicSource::history(Arc::clone(relation), from, pipeline_stands)?;
        source.want(wanted_columns(graph, relation.id))?;
        Ok(source)
    }

    /// Runs a query over the history of its sources: streams from `from` up to `to`, tables as they are.
    fn catch_up(
        &mut self,
        position: usize,
        from: &SourcePositions,
        to: &SourcePositions,
        downstream: Downstream,
    ) -> ExecResult<()> {
        let mut first = true;
        let sources: Vec<Arc<Relation>> = unique_sources(&self.queries[position].graph);
        for relation in sources {
            if let (Some(from), Some(to)) = (from.get(&relation.id), to.get(&relation.id)) {
                let mut history =
                    self.history(&relation, &self.queries[position].graph, from.clone())?;
                while let Some(chunk) = next_chunk(&mut history, &*self.log, to)? {
                    self.run_chunk(position, first, &relation, chunk, downstream)?;
                    first = false;
                }
            } else {
                for rows in self.table_rows(&relation)? {
                    let chunk = Chunk {
                        rows: vec![rows],
                        tombstones: Vec::new(),
                        rejected: Vec::new(),
                    };
                    self.run_chunk(position, first, &relation, chunk, downstream)?;
                    first = false;
                }
            }
        }
        if first && let Some(relation) = unique_sources(&self.queries[position].graph).first() {
            // No history at all: a query may still have a row (a count of nothing is 0).
            self.run_chunk(position, true, relation, Chunk::default(), downstream)?;
        }
        Ok(())
    }

    fn run_chunk(
        &mut self,
        position: usize,
        first: bool,
        relation: &Arc<Relation>,
        chunk: Chunk,
        downstream: Downstream,
    ) -> ExecResult<()> {
        let mut rows = RelationRows::new();
        let mut table_rows = TableRows::new();
        let mut rejected = chunk.rejected;
        if chunk.tombstones.is_empty() {
            rows.insert(relation.id, chunk.rows);
        } else {
            table_rows.insert(
                relation.id,
                chunk.rows.into_iter().zip(chunk.tombstones).collect(),
            );
        }
        // A source's bad records were put into the processing log by its first reader, if it has one besides this query.
        if self.has_other_reader(position, relation.id) {
            rejected.clear();
        }
        let batches = self.run_query(position, first, &mut rows, &table_rows, &mut rejected)?;
        self.append_now(position, batches)?;
        if downstream == Downstream::Follows {
            let output = self.queries[position].definition.output.relation().id;
            let changed = rows.remove(&output).unwrap_or_default();
            self.run_downstream(
                position,
                RelationRows::from([(output, changed)]),
                &mut rejected,
            )?;
        }
        let rejected = self.processing_log.encode(&rejected)?;
        self.processing_log
            .producer_mut()
            .append(&*self.log, &rejected)
    }

    /// Lets the readers of a query follow what it did between two steps.
    fn run_downstream(
        &mut self,
        position: usize,
        mut rows: RelationRows,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<()> {
        for reader in position + 1..self.queries.len() {
            if self.queries[reader].runs() {
                let batches =
                    self.run_query(reader, false, &mut rows, &TableRows::new(), rejected)?;
                self.append_now(reader, batches)?;
            }
        }
        let feeds = self.run_subscriptions(&rows);
        self.deliver(self.step, feeds);
        Ok(())
    }

    fn append_now(
        &mut self,
        position: usize,
        batches: crate::producer::StepBatches,
    ) -> ExecResult<()> {
        match &mut self.queries[position].sink {
            Some(sink) => sink.producer_mut().append(&*self.log, &batches),
            None => Ok(()),
        }
    }

    fn has_other_reader(&self, position: usize, relation: RelationId) -> bool {
        self.queries.iter().enumerate().any(|(other, query)| {
            other != position
                && query
                    .graph
                    .plan()
                    .sources()
                    .any(|source| source.id == relation)
        })
    }

    /// The rows of a kept table as additions.
    pub(crate) fn table_rows(&self, relation: &Relation) -> ExecResult<Vec<SlotRows>> {
        let keeper = self
            .keeper(relation.id)
            .and_then(|query| query.table.as_ref())
            .ok_or_else(|| {
                ExecError::Internal(format!("table \"{}\" is kept by no query", relation.name))
            })?;
        let mut exchange = Exchange::of_relation(relation)?;
        let mut rows = Vec::new();
        for batch in keeper.version().scan(None)? {
            let placed = exchange.route(Delta::new(batch?, None))?;
            rows.extend(
                placed
                    .iter()
                    .map(|(slot, delta)| SlotRows::from_delta(*slot, delta)),
            );
        }
        Ok(rows)
    }

    /// Builds a query anew from its origin and sends the difference between its old and its new result.
    fn rebuild(&mut self, position: usize, ends: &SourcePositions) -> ExecResult<()> {
        let definition = self.queries[position].definition.clone();
        let relation = Arc::clone(definition.output.relation());
        let Some(old) = self.queries[position].table.take() else {
            return Err(ExecError::Unsupported(
                "a stream over a table cannot be resumed; drop and create it again".into(),
            ));
        };
        self.forget_operator_state(definition.id)?;
        self.queries[position].graph =
            QueryGraph::new(definition.plan.clone(), Some(definition.id))?;
        let codec = Arc::new(RowCodec::new(&relation.schema(), &relation.key_columns())?);
        let fresh = TableStore::new(
            Arc::clone(&codec),
            StateId::result(definition.id).slot(0),
            None,
            0,
        );
        self.queries[position].table = Some(fresh);
        let sink = self.queries[position].sink.take();
        let origin = self.queries[position].origin.clone();
        let built = self.catch_up(position, &origin, ends, Downstream::Unaffected);
        let fresh = self.queries[position].table.replace(old);
        self.queries[position].sink = sink;
        built?;
        let fresh =
            fresh.ok_or_else(|| ExecError::Internal("a rebuilt query lost its table".into()))?;
        self.send_difference(position, &fresh)
    }

    /// Changes a query's table into `fresh`, and sends the changes.
    fn send_difference(&mut self, position: usize, fresh: &TableStore) -> ExecResult<()> {
        let query = &mut self.queries[position];
        let schema = query.definition.output.relation().schema();
        let table = query
            .table
            .as_mut()
            .ok_or_else(|| ExecError::Internal("a table query has no table".into()))?;
        let removed = crate::state::difference(&table.version(), &fresh.version(), -1)?;
        let added = crate::state::difference(&fresh.version(), &table.version(), 1)?;
        let mut changes: Vec<(u32, Delta)> = Vec::new();
        for delta in removed.into_iter().chain(added) {
            changes.extend(query.placing.route(delta)?);
        }
        if changes.is_empty() {
            return Ok(());
        }
        debug_assert_eq!(
            changes[0].1.columns().len(),
            schema.fields().len(),
            "a table's rows have its columns"
        );
        table.apply(&changes.iter().map(|(_, delta)| delta).collect::<Vec<_>>())?;
        let mut rejected: Vec<Rejected> = Vec::new();
        if let Some(sink) = &mut query.sink {
            let batches = sink.encode(&changes, &mut rejected)?;
            sink.producer_mut().append(&*self.log, &batches)?;
        }
        let output = query.definition.output.relation().id;
        let changed = changes
            .iter()
            .map(|(slot, delta)| SlotRows::from_delta(*slot, delta))
            .collect();
        self.run_downstream(
            position,
            RelationRows::from([(output, changed)]),
            &mut rejected,
        )?;
        let rejected = self.processing_log.encode(&rejected)?;
        self.processing_log
            .producer_mut()
            .append(&*self.log, &rejected)
    }

    fn forget_operator_state(&self, query: QueryId) -> ExecResult<()> {
        let (from, _) = StateId::query_range(query);
        self.state
            .delete_range(&from, StateId::result(query).slot(0).bytes())
    }
}

/// Whether the readers of a query take part in its catch-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Downstream {
    /// They follow each change.
    Follows,
    /// It has none yet, or they get the difference at the end.
    Unaffected,
}

/// A piece of history.
#[derive(Default)]
pub struct Chunk {
    /// Rows by partition.
    pub rows: Vec<SlotRows>,
    /// For tables, which rows remove their key.
    pub tombstones: Vec<Vec<bool>>,
    /// Records that could not be decoded.
    pub rejected: Vec<Rejected>,
}

/// The next piece of a relation's past below `to`; `None` when all is read.
pub fn next_chunk(
    history: &mut TopicSource,
    log: &dyn Log,
    to: &[Offset],
) -> ExecResult<Option<Chunk>> {
    let mut chunk = Chunk::default();
    let mut read = false;
    for (partition, limit) in to.iter().enumerate() {
        let Some(fetched) = history.fetch(log, partition, *limit, CHUNK_ROWS / to.len().max(1))?
        else {
            continue;
        };
        read = true;
        if let Some((rows, tombstones)) = history.decode(fetched, &mut chunk.rejected)? {
            chunk.rows.push(rows);
            chunk.tombstones.extend(tombstones);
        }
    }
    Ok(read.then_some(chunk))
}

/// The relations of a graph, each once.
pub fn unique_sources(graph: &QueryGraph) -> Vec<Arc<Relation>> {
    let mut sources: Vec<Arc<Relation>> = graph.plan().sources().cloned().collect();
    sources.sort_by_key(|relation| relation.id);
    sources.dedup_by_key(|relation| relation.id);
    sources
}
