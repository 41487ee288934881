//! A query catches up with what was there before it, then joins the pipeline at a cut.
//!
//! What is large is read beside the running steps (`catch_up`); here is what runs between two steps: streams are read from their topics up to where the pipeline stands, tables are read from their
//! current rows. The results go into a table that nobody sees and into one open transaction of the sink, until a checkpoint holds the query
//! (`query_changes`).

use std::sync::Arc;

use highwater_planner::catalog::{QueryId, Relation, RelationId};
use highwater_storage_log::{Log, Offset};

use crate::{
    delta::Delta,
    error::{ExecError, ExecResult},
    exchange::Exchange,
    operator::Rejected,
    pipeline::{Pipeline, SourcePositions, wanted_columns},
    query::{QueryGraph, RelationRows},
    source::{SlotRows, TopicSource},
    state::{RowCodec, StateId, TableStore},
    step::TableRows,
    workers::Workers,
};

/// Rows that a catch-up takes at a time.
pub const CHUNK_ROWS: usize = 65_536;

impl Pipeline {
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
        let steps = self.steps_stand(relation.id);
        let mut source = TopicSource::history(Arc::clone(relation), from, steps, None)?;
        source.want(wanted_columns(graph, relation.id))?;
        Ok(source)
    }

    fn steps_stand(&self, relation: RelationId) -> Option<Vec<Offset>> {
        let source = self.sources.get(&relation);
        source.map(|source| source.positions().to_vec())
    }

    /// Runs a query over the history of its sources: streams as far as `past` says, tables as they are. `first` says that it has not run yet.
    pub fn catch_up(
        &mut self,
        position: usize,
        past: &Past,
        downstream: Downstream,
        mut first: bool,
    ) -> ExecResult<()> {
        let sources: Vec<Arc<Relation>> = unique_sources(&self.queries[position].graph);
        for relation in sources {
            let id = relation.id;
            if let (Some(from), Some(to)) = (past.from.get(&id), past.to.get(&id)) {
                let steps = match past.steps {
                    Some(steps) => steps.get(&id).cloned(),
                    None => self.steps_stand(id),
                };
                let own_from = past.own_from.and_then(|own_from| own_from.get(&id));
                let mut history = TopicSource::history(
                    Arc::clone(&relation),
                    from.clone(),
                    steps,
                    own_from.cloned(),
                )?;
                history.want(wanted_columns(&self.queries[position].graph, id))?;
                while let Some(chunk) =
                    next_chunk(&mut history, &*self.log, to, CHUNK_ROWS, self.workers)?
                {
                    self.run_chunk(position, first, &relation, chunk, downstream)?;
                    self.keep_reader_to_budget(position, downstream)?;
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
                    self.keep_reader_to_budget(position, downstream)?;
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
        mut chunk: Chunk,
        downstream: Downstream,
    ) -> ExecResult<()> {
        let mut rows = RelationRows::new();
        let mut table_rows = TableRows::new();
        let mut rejected = std::mem::take(&mut chunk.rejected);
        chunk.into_rows(relation.id, &mut rows, &mut table_rows);
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
        if downstream == Downstream::Untold {
            return Ok(());
        }
        let rejected = self.processing_log.encode(&rejected)?;
        self.processing_log.append(&*self.log, &rejected)
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
        self.between_steps.extend(feeds);
        Ok(())
    }

    fn append_now(
        &mut self,
        position: usize,
        batches: crate::producer::StepBatches,
    ) -> ExecResult<()> {
        match &mut self.queries[position].sink {
            Some(sink) => sink.append(&*self.log, &batches),
            None => Ok(()),
        }
    }

    pub fn has_other_reader(&self, position: usize, relation: RelationId) -> bool {
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
        let exchange = Exchange::of_relation(relation)?;
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
    pub fn rebuild(&mut self, position: usize, ends: &SourcePositions) -> ExecResult<()> {
        let definition = self.queries[position].definition.clone();
        let relation = Arc::clone(definition.output.relation());
        let Some(old) = self.queries[position].table.take() else {
            return Err(ExecError::Unsupported(
                "a stream over a table cannot be resumed; drop and create it again".into(),
            ));
        };
        self.forget_operator_state(definition.id)?;
        self.queries[position].graph =
            QueryGraph::new(definition.plan.clone(), Some(definition.id), self.workers)?;
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
        let past = Past::between(&origin, ends);
        let built = self.catch_up(position, &past, Downstream::Unaffected, true);
        let fresh = self.queries[position].table.replace(old);
        self.queries[position].sink = sink;
        built?;
        let fresh =
            fresh.ok_or_else(|| ExecError::Internal("a rebuilt query lost its table".into()))?;
        self.send_difference(position, &fresh)?;
        self.queries[position].kept_revision = definition.revision;
        Ok(())
    }

    /// Changes a query's table into `fresh`, and sends the changes.
    fn send_difference(&mut self, position: usize, fresh: &TableStore) -> ExecResult<()> {
        let query = &mut self.queries[position];
        let table = query
            .table
            .as_mut()
            .ok_or_else(|| ExecError::Internal("a table query has no table".into()))?;
        let mut changes: Vec<(u32, Delta)> = Vec::new();
        for delta in crate::state::difference(&table.version(), &fresh.version())? {
            changes.extend(query.placing.route(delta)?);
        }
        // Where columns were added, each row that stays is among the changes.
        table.set_codec(Arc::clone(fresh.codec()));
        if changes.is_empty() {
            return Ok(());
        }
        let deltas: Vec<&Delta> = changes.iter().map(|(_, delta)| delta).collect();
        table.apply(&deltas, self.workers)?;
        let mut rejected: Vec<Rejected> = Vec::new();
        if let Some(sink) = &mut query.sink {
            let batches = sink.encode(&changes, None, &mut rejected)?;
            sink.append(&*self.log, &batches)?;
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
        self.processing_log.append(&*self.log, &rejected)
    }

    pub(crate) fn forget_operator_state(&self, query: QueryId) -> ExecResult<()> {
        let (from, _) = StateId::query_range(query);
        self.state
            .delete_range(&from, StateId::result(query).slot(0).bytes())
    }
}

/// What a query reads of the past, by relation.
pub struct Past<'a> {
    /// From where on.
    pub from: &'a SourcePositions,
    /// Up to where.
    pub to: &'a SourcePositions,
    /// Where the steps stand, if that is not where they stand now: of what others write to a query's stream, only that below is past.
    pub steps: Option<&'a SourcePositions>,
    /// Up to where the reader has what a query wrote to its own stream: it got that in memory.
    pub own_from: Option<&'a SourcePositions>,
}

impl<'a> Past<'a> {
    /// All from `from` up to `to`.
    pub fn between(from: &'a SourcePositions, to: &'a SourcePositions) -> Self {
        Self {
            from,
            to,
            steps: None,
            own_from: None,
        }
    }
}

/// Whether the readers of a query take part in its catch-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Downstream {
    /// They follow each change.
    Follows,
    /// It has none yet, or they get the difference at the end.
    Unaffected,
    /// They have got all of it before, and so has the processing log.
    Untold,
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

impl Chunk {
    /// Puts the piece among what a query reads.
    pub fn into_rows(self, relation: RelationId, rows: &mut RelationRows, tables: &mut TableRows) {
        if self.tombstones.is_empty() {
            rows.insert(relation, self.rows);
        } else {
            let pieces = self.rows.into_iter().zip(self.tombstones);
            tables.insert(relation, pieces.collect());
        }
    }
}

/// The next piece of a relation's past below `to`, of about `rows` rows; `None` when all is read.
pub fn next_chunk(
    history: &mut TopicSource,
    log: &dyn Log,
    to: &[Offset],
    rows: usize,
    workers: Workers,
) -> ExecResult<Option<Chunk>> {
    let mut chunk = Chunk::default();
    let rows = (rows / to.len()).max(1);
    let Some(parts) = history.read(log, to, rows, workers, &mut chunk.rejected)? else {
        return Ok(None);
    };
    for (rows, tombstones) in parts {
        chunk.rows.push(rows);
        chunk.tombstones.extend(tombstones);
    }
    Ok(Some(chunk))
}

/// The relations of a graph, each once.
pub fn unique_sources(graph: &QueryGraph) -> Vec<Arc<Relation>> {
    let mut sources: Vec<Arc<Relation>> = graph.plan().sources().cloned().collect();
    sources.sort_by_key(|relation| relation.id);
    sources.dedup_by_key(|relation| relation.id);
    sources
}
