//! A pipeline: queries tied by lineage as one graph with one step clock.
//!
//! The pipeline belongs to one thread. This file holds what it is made of; `step` moves it, `backfill` adds to it, `recovery` brings it back.
//!
//! INVARIANT: queries stand in creation order, which is a topological order, since a query can only read what was there before it.
//! INVARIANT: all sources, tables and producers stand at the same step whenever no step is running.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Instant,
};

use highwater_planner::{
    catalog::{QueryId, Relation, RelationId, SourceKind},
    dataflow::Node,
};
use highwater_storage_log::{Log, Offset, TopicPartition};

use crate::{
    backfill::unique_sources,
    catch_up::CatchUpThread,
    checkpoint::{CheckpointStore, CheckpointWork, Manifest, QueryManifest, SourceManifest},
    engine::{EngineOptions, PersistentQuery, QueryOutput, QueryState, QueryStatus, SourceStatus},
    error::{ExecError, ExecResult},
    exchange::Exchange,
    feed::{ChangeBatch, ChangeReceiver, SubscriptionId},
    holds::Holds,
    journal::Journal,
    memory::MemoryHolder,
    query::{QueryGraph, keeps_state},
    rejects::ProcessingLog,
    shared::Shared,
    sink::Sink,
    snapshot::SnapshotInner,
    source::TopicSource,
    state::{BaseSnapshot, RocksState, RowCodec, StateChanges, StateId, StatePrefix, TableStore},
    step::PendingStep,
    workers::Workers,
};

/// See the module.
pub struct Pipeline {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) options: EngineOptions,
    pub(crate) workers: Workers,
    pub(crate) shared: Arc<Shared>,
    pub(crate) checkpoints: CheckpointStore,
    pub(crate) state: RocksState,
    pub(crate) base: Arc<BaseSnapshot>,
    pub(crate) journal: Journal,
    pub(crate) sources: BTreeMap<RelationId, TopicSource>,
    pub(crate) queries: Vec<RunningQuery>,
    /// Queries that catch up beside the steps.
    pub(crate) catching_up: Vec<CatchUpThread>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) processing_log: ProcessingLog,
    /// The last step that ran.
    pub(crate) step: u64,
    /// Clock and seed of the step that runs next: those of its journal entry.
    pub(crate) moment: (i64, u64),
    /// When the step was journaled that runs; `None` in a replay.
    pub(crate) step_began: Option<Instant>,
    /// A step that ran and waits for the disk.
    pub(crate) pending: Option<PendingStep>,
    /// The step of the last checkpoint.
    pub(crate) checkpointed_step: u64,
    /// Sources have moved past records without a step, or gone; readers wait to hear of it.
    pub(crate) moved_without_step: bool,
    /// The queries have changed and no checkpoint holds the change yet: no step may be journaled before one does.
    pub(crate) owes_checkpoint: bool,
    /// Transactions are open that no step will end, since the log refused to end them.
    pub(crate) owes_aborts: bool,
    /// What push queries get once the running change of the queries is committed.
    pub(crate) between_steps: Vec<(SubscriptionId, ChangeBatch)>,
    /// Changes of operator state that a failed checkpoint took; the next one writes them first.
    pub(crate) unwritten: Vec<(StatePrefix, StateChanges)>,
    /// What the log keeps for a replay.
    pub(crate) holds: Holds,
    /// What the steps take of the memory for state.
    pub(crate) memory: MemoryHolder,
    /// Up to where queries had written their streams as the journal last told, by partition.
    pub(crate) journaled_writes: HashMap<RelationId, Vec<Offset>>,
    /// About how many bytes each state table has on disk, as of the last checkpoint.
    pub(crate) stored: HashMap<StateId, u64>,
    /// Sources of which the journal does not tell yet where their reading began.
    pub(crate) untold: Vec<RelationId>,
}

/// A persistent query with its result.
pub struct RunningQuery {
    pub(crate) definition: PersistentQuery,
    pub(crate) graph: QueryGraph,
    /// Places rows of the result by key.
    pub(crate) placing: Exchange,
    pub(crate) table: Option<TableStore>,
    /// Which revision of the query made what it keeps; another than the definition's while it is being replaced.
    pub(crate) kept_revision: u64,
    pub(crate) sink: Option<Sink>,
    pub(crate) state: QueryState,
    /// Where a query that does not run stopped reading.
    pub(crate) stopped_at: Option<SourcePositions>,
    /// Of a query that does not run: up to where it has what other queries write to their streams, see [`Pipeline::note_where_it_stops`].
    pub(crate) has_own: SourcePositions,
    /// It failed since the state database is damaged.
    pub(crate) has_lost_state: bool,
    /// Why what it keeps was made anew from the log when the process began, if it was.
    pub(crate) rebuilt: Option<String>,
    /// Where it began to read.
    pub(crate) origin: SourcePositions,
    pub(crate) workers: Workers,
    /// Latest event time that the parts of a step have read which has not ended.
    pub(crate) latest_read: Option<i64>,
    pub(crate) rows_in: u64,
    pub(crate) rows_out: u64,
}

/// Offsets by partition of each relation that a query reads from its topic.
pub type SourcePositions = BTreeMap<RelationId, Vec<Offset>>;

/// A push query.
pub struct Subscription {
    pub(crate) id: SubscriptionId,
    pub(crate) graph: QueryGraph,
    pub(crate) receiver: Box<dyn ChangeReceiver>,
    /// Its first step has run.
    pub(crate) started: bool,
}

impl RunningQuery {
    /// Wires up a query with the producer positions, row count and base of its result.
    pub fn new(
        definition: PersistentQuery,
        manifest: Option<&QueryManifest>,
        base: &Arc<BaseSnapshot>,
        workers: Workers,
    ) -> ExecResult<Self> {
        let graph = QueryGraph::new(definition.plan.clone(), Some(definition.id), workers)?;
        let relation = definition.output.relation();
        let kept_revision = manifest.map_or(definition.revision, |manifest| manifest.revision);
        let table = match &definition.output {
            QueryOutput::Stream(_) => None,
            QueryOutput::Table(_) | QueryOutput::SourceTable(_) => {
                let codec = Arc::new(row_codec(&definition, kept_revision)?);
                let prefix = StateId::result(definition.id).slot(0);
                let rows = manifest.map_or(0, |manifest| manifest.rows);
                Some(TableStore::new(codec, prefix, Some(Arc::clone(base)), rows))
            }
        };
        let positions = manifest
            .map(|manifest| manifest.sink.as_slice())
            .unwrap_or_default();
        let sink = match &definition.output {
            QueryOutput::SourceTable(_) => None,
            QueryOutput::Stream(relation) | QueryOutput::Table(relation) => {
                let relation = Arc::clone(relation);
                Some(Sink::new(definition.id, relation, positions, workers)?)
            }
        };
        let failure = manifest.and_then(|manifest| manifest.failure.clone());
        let state = match failure {
            Some(reason) => QueryState::Failed(reason),
            // What the checkpoint says counts while steps are replayed; the catalog's word is put into effect after that.
            None if manifest.map_or(definition.paused, |known| known.stopped_at.is_some()) => {
                QueryState::Paused
            }
            None => QueryState::Running,
        };
        Ok(Self {
            graph,
            placing: Exchange::of_relation(relation)?,
            table,
            kept_revision,
            sink,
            state,
            stopped_at: manifest
                .and_then(|manifest| manifest.stopped_at.as_deref())
                .map(positions_from),
            has_own: manifest
                .map(|manifest| positions_from(&manifest.has_own))
                .unwrap_or_default(),
            has_lost_state: manifest.is_some_and(|manifest| manifest.has_lost_state),
            rebuilt: None,
            origin: manifest
                .map(|manifest| positions_from(&manifest.origin))
                .unwrap_or_default(),
            definition,
            workers,
            latest_read: None,
            rows_in: 0,
            rows_out: 0,
        })
    }

    /// Whether it takes part in steps.
    pub fn runs(&self) -> bool {
        self.state == QueryState::Running
    }

    /// Whether what it keeps was made by an earlier revision of it.
    pub fn is_replaced(&self) -> bool {
        self.kept_revision != self.definition.revision
    }

    /// Where it stopped reading, by partition.
    fn stopped_partitions(&self) -> Vec<(TopicPartition, Offset)> {
        let Some(stopped_at) = &self.stopped_at else {
            return Vec::new();
        };
        unique_sources(&self.graph)
            .into_iter()
            .flat_map(|relation| {
                let offsets = stopped_at.get(&relation.id).into_iter().flatten();
                (0..)
                    .zip(offsets.copied().collect::<Vec<_>>())
                    .map(move |(number, offset)| {
                        let partition = TopicPartition::new(relation.topic.as_str(), number);
                        (partition, offset)
                    })
            })
            .collect()
    }

    /// What it keeps: the state of its operators, and its result.
    fn state_tables(&self) -> impl Iterator<Item = StateId> {
        let id = self.definition.id;
        let operators = self.graph.plan().nodes.iter();
        let operators = operators.filter(|node| keeps_state(&node.operator));
        let result = self.table.is_some().then(|| StateId::result(id));
        operators
            .map(move |node| StateId::operator(id, node.id))
            .chain(result)
    }

    fn status(&self, stored: &HashMap<StateId, u64>) -> QueryStatus {
        let id = self.definition.id;
        let of_node = |node: &Node| match keeps_state(&node.operator) {
            true => stored.get(&StateId::operator(id, node.id)).copied(),
            false => None,
        };
        QueryStatus {
            stored: self.graph.plan().nodes.iter().map(of_node).collect(),
            result_stored: stored.get(&StateId::result(id)).copied(),
            id: self.definition.id,
            state: self.state.clone(),
            rows_in: self.rows_in,
            rows_out: self.rows_out,
            late: self.graph.late(),
            stopped_at: self.stopped_partitions(),
            operators: self
                .graph
                .counters()
                .into_iter()
                .map(|counters| (counters.rows_in, counters.rows_out, counters.nanos))
                .collect(),
            memory: self.graph.memory().collect(),
            table_bytes: self.table.as_ref().map_or(0, TableStore::memory),
            rebuilt: self.rebuilt.clone(),
        }
    }

    fn manifest(&self) -> QueryManifest {
        QueryManifest {
            query: self.definition.id.0,
            sink: self
                .sink
                .as_ref()
                .map(|sink| sink.producer().positions())
                .unwrap_or_default(),
            rows: self.table.as_ref().map_or(0, TableStore::rows),
            revision: self.kept_revision,
            stopped_at: self.stopped_at.as_ref().map(positions_to),
            has_own: positions_to(&self.has_own),
            has_lost_state: self.has_lost_state,
            origin: positions_to(&self.origin),
            failure: match &self.state {
                QueryState::Failed(reason) => Some(reason.clone()),
                QueryState::Running | QueryState::Paused | QueryState::CatchingUp(_) => None,
            },
        }
    }
}

/// How a query's table keeps its rows, as a revision of the query made them.
pub fn row_codec(definition: &PersistentQuery, revision: u64) -> ExecResult<RowCodec> {
    let relation = definition.output.relation();
    let (schema, keys) = (relation.schema(), relation.key_columns());
    match &definition.earlier {
        Some(earlier) if revision == earlier.revision && revision != definition.revision => {
            RowCodec::of_earlier(&earlier.relation.schema(), &schema, &keys)
        }
        _ => RowCodec::new(&schema, &keys),
    }
}

/// Positions as a manifest tells them.
pub fn positions_from(manifests: &[SourceManifest]) -> SourcePositions {
    manifests
        .iter()
        .map(|source| {
            (
                RelationId(source.relation),
                source.positions.iter().copied().map(Offset).collect(),
            )
        })
        .collect()
}

fn positions_to(positions: &SourcePositions) -> Vec<SourceManifest> {
    positions
        .iter()
        .map(|(relation, offsets)| SourceManifest {
            relation: relation.0,
            positions: offsets.iter().map(|offset| offset.0).collect(),
        })
        .collect()
}

impl Pipeline {
    /// The query at hand by its id.
    pub fn query_index(&self, id: QueryId) -> ExecResult<usize> {
        self.queries
            .iter()
            .position(|query| query.definition.id == id)
            .ok_or_else(|| ExecError::UnknownQuery(id.to_string()))
    }

    /// Whether some query keeps this relation as a table: then its rows come from there, not from the topic.
    pub fn keeper(&self, relation: RelationId) -> Option<&RunningQuery> {
        self.queries.iter().find(|query| {
            query.definition.output.relation().id == relation && query.table.is_some()
        })
    }

    /// The relations that a plan reads from their topics.
    pub fn topic_relations(
        &self,
        graph: &QueryGraph,
        output: Option<&QueryOutput>,
    ) -> Vec<Arc<Relation>> {
        let mut relations: Vec<Arc<Relation>> = graph
            .plan()
            .sources()
            .filter(|relation| comes_from_topic(relation, output))
            .cloned()
            .collect();
        relations.sort_by_key(|relation| relation.id);
        relations.dedup_by_key(|relation| relation.id);
        relations
    }

    /// Makes sure that a relation's topic is read, from `positions` if it was not read before, with the columns that are wanted.
    pub fn attach_source(
        &mut self,
        relation: &Arc<Relation>,
        positions: Vec<Offset>,
        wanted: impl Iterator<Item = usize>,
    ) -> ExecResult<()> {
        let source = match self.sources.entry(relation.id) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                self.shared.watch(&relation.topic);
                self.untold.push(relation.id);
                entry.insert(TopicSource::new(Arc::clone(relation), positions)?)
            }
        };
        source.want(wanted)
    }

    /// Lets go of sources that nobody reads. A query that does not run knows by itself where it stopped.
    pub fn drop_unread_sources(&mut self) {
        let read: Vec<RelationId> = self
            .sources
            .keys()
            .copied()
            .filter(|&relation| {
                self.is_durable_source(relation)
                    || self
                        .subscriptions
                        .iter()
                        .any(|subscription| reads_topic(&subscription.graph, None, relation))
            })
            .collect();
        let before = self.sources.len();
        self.sources.retain(|relation, _| read.contains(relation));
        // Whoever wrote there would wait for a step that reads it, unless the snapshot tells that none will.
        self.moved_without_step |= self.sources.len() < before;
    }

    /// Whether a source is read by a persistent query that runs; one that only push queries read is read by no replay.
    pub fn is_durable_source(&self, relation: RelationId) -> bool {
        self.queries.iter().any(|query| {
            query.runs() && reads_topic(&query.graph, Some(&query.definition.output), relation)
        })
    }

    /// End of each partition of a relation's topic, as far as it may be read.
    pub fn stable_ends(&self, relation: &Relation) -> ExecResult<Vec<Offset>> {
        self.partition_offsets(relation, |offsets| offsets.last_stable)
    }

    /// Start of each partition of a relation's topic.
    pub fn starts(&self, relation: &Relation) -> ExecResult<Vec<Offset>> {
        self.partition_offsets(relation, |offsets| offsets.log_start)
    }

    fn partition_offsets(
        &self,
        relation: &Relation,
        pick: impl Fn(highwater_storage_log::PartitionOffsets) -> Offset,
    ) -> ExecResult<Vec<Offset>> {
        (0..relation.partitions)
            .map(|partition| {
                Ok(pick(self.log.offsets(&TopicPartition::new(
                    relation.topic.as_str(),
                    partition,
                ))?))
            })
            .collect()
    }

    /// What readers see once the last step has committed.
    pub(crate) fn current_snapshot(&self) -> SnapshotInner {
        let tables = self
            .queries
            .iter()
            .filter_map(|query| {
                query
                    .table
                    .as_ref()
                    .map(|table| (query.definition.output.relation().id, table.version()))
            })
            .collect();
        SnapshotInner {
            step: self.step,
            tables: Arc::new(tables),
            positions: Arc::new(self.source_positions()),
            written: Arc::new(self.written_positions()),
        }
    }

    /// By topic: up to where (exclusive) all readers have read.
    pub(crate) fn source_positions(&self) -> HashMap<String, Vec<i64>> {
        let mut positions: HashMap<String, Vec<i64>> = HashMap::new();
        for source in self.sources.values() {
            let offsets = source.positions().iter().map(|offset| offset.0);
            positions
                .entry(source.relation().topic.clone())
                .and_modify(|known| {
                    known
                        .iter_mut()
                        .zip(offsets.clone())
                        .for_each(|(known, offset)| *known = (*known).min(offset));
                })
                .or_insert_with(|| offsets.collect());
        }
        positions
    }

    /// By topic of a query's stream: up to where (exclusive) the query has appended, or one that inserts beside it. Once that is committed, it
    /// is what a reader of the stream sees at this step. A declared stream has other writers, too.
    fn written_positions(&self) -> HashMap<String, Vec<i64>> {
        let mut written: HashMap<String, Vec<i64>> = HashMap::new();
        for query in &self.queries {
            let (QueryOutput::Stream(relation), Some(sink)) =
                (&query.definition.output, &query.sink)
            else {
                continue;
            };
            if relation.query.is_none() {
                continue;
            }
            let ends = written
                .entry(relation.topic.clone())
                .or_insert_with(|| vec![0; relation.partitions as usize]);
            for (end, appended) in ends.iter_mut().zip(sink.producer().appended()) {
                *end = appended.max(*end);
            }
        }
        written
    }

    /// Up to where (exclusive) each query that makes a stream has written it.
    fn own_records_of_all(&self) -> SourcePositions {
        let streams = self.queries.iter().filter_map(|query| {
            let relation = query.definition.output.relation();
            let makes_it = relation.query == Some(query.definition.id);
            (makes_it && query.table.is_none()).then_some(relation)
        });
        streams
            .filter_map(|relation| Some((relation.id, self.own_records(relation)?)))
            .collect()
    }

    /// Looks how much each state table has on disk; checkpoints tell it from then on.
    pub(crate) fn measure_state(&mut self) {
        let queries = self.queries.iter();
        let tables: Vec<StateId> = queries.flat_map(RunningQuery::state_tables).collect();
        let sizes = self.state.stored(&tables);
        self.stored = tables.into_iter().zip(sizes).collect();
    }

    /// Publishes state and counters.
    pub(crate) fn publish_status(&self) {
        let catching_up = self.catching_up.iter().map(|catch_up| QueryStatus {
            id: catch_up.query,
            state: QueryState::CatchingUp(catch_up.per_cent()),
            rows_in: 0,
            rows_out: 0,
            late: 0,
            stopped_at: Vec::new(),
            operators: Vec::new(),
            memory: Vec::new(),
            table_bytes: 0,
            rebuilt: None,
            stored: Vec::new(),
            result_stored: None,
        });
        let queries = self
            .queries
            .iter()
            .map(|query| query.status(&self.stored))
            .chain(catching_up)
            .collect();
        let sources = self
            .sources
            .values()
            .flat_map(|source| {
                source
                    .partitions()
                    .iter()
                    .zip(source.positions())
                    .zip(source.rejected())
                    .map(|((partition, position), rejected)| SourceStatus {
                        partition: partition.clone(),
                        position: *position,
                        rejected: *rejected,
                    })
            })
            .collect();
        self.shared.set_status(queries, sources);
    }

    /// Whether a checkpoint would hold anything new.
    pub(crate) fn changed_since_checkpoint(&self) -> bool {
        self.step > self.checkpointed_step
    }

    /// Begins a checkpoint of all that changed since the last one; [`Self::checkpoint_more`] goes on. No step may be pending.
    pub(crate) fn checkpoint_work(&mut self, changes_queries: bool) -> ExecResult<CheckpointWork> {
        debug_assert!(
            self.pending.is_none(),
            "a checkpoint lies between two committed steps"
        );
        match self.mark_journal() {
            // Steps go on where they stood, so an older mark tells the same.
            Err(error) if !changes_queries && error.is_disk_full() => {
                tracing::debug!(%error, "a checkpoint goes without its mark in the journal");
            }
            marked => _ = marked?,
        }
        let mut manifest = Manifest::new(self.step, self.journal.end()?);
        let durable: Vec<RelationId> = self
            .sources
            .keys()
            .copied()
            .filter(|relation| self.is_durable_source(*relation))
            .collect();
        manifest.sources = durable
            .iter()
            .map(|relation| SourceManifest {
                relation: relation.0,
                positions: self.sources[relation]
                    .positions()
                    .iter()
                    .map(|offset| offset.0)
                    .collect(),
            })
            .collect();
        manifest.queries = self.queries.iter().map(RunningQuery::manifest).collect();
        manifest.written = positions_to(&self.own_records_of_all());
        manifest.processing_log = self.processing_log.producer().positions();

        let mut changes = std::mem::take(&mut self.unwritten);
        let mut runs = Vec::new();
        let mut must_be_durable = self.processing_log.producer().ends(&*self.log)?;
        must_be_durable.push((self.journal.partition().clone(), Offset(manifest.journal)));
        for relation in &durable {
            let source = &self.sources[relation];
            must_be_durable.extend(
                source
                    .partitions()
                    .iter()
                    .cloned()
                    .zip(source.positions().iter().copied()),
            );
        }
        let mut tables = Vec::new();
        for query in &mut self.queries {
            tables.extend(query.state_tables());
            query.graph.checkpoint(&mut changes);
            if let Some(table) = &mut query.table {
                runs.push((table.prefix(), table.freeze()));
            }
            if let Some(sink) = &query.sink {
                must_be_durable.extend(sink.producer().ends(&*self.log)?);
            }
        }
        Ok(CheckpointWork {
            manifest,
            changes,
            runs,
            must_be_durable,
            tables,
            changes_queries,
        })
    }

    /// Takes about `groups` more of the operators' groups, as they were when the checkpoint began; answers whether it has all.
    pub(crate) fn checkpoint_more(&mut self, work: &mut CheckpointWork, groups: usize) -> bool {
        let mut budget = groups;
        self.queries
            .iter_mut()
            .all(|query| query.graph.checkpoint_more(&mut work.changes, &mut budget))
    }
}

/// Streams are read from their topics; a table only by the query that keeps it, the others read what that keeps.
fn comes_from_topic(relation: &Relation, output: Option<&QueryOutput>) -> bool {
    relation.kind == SourceKind::Stream || matches!(output, Some(QueryOutput::SourceTable(_)))
}

/// Whether a graph reads the relation from its topic.
pub fn reads_topic(graph: &QueryGraph, output: Option<&QueryOutput>, relation: RelationId) -> bool {
    graph
        .plan()
        .sources()
        .any(|source| source.id == relation && comes_from_topic(source, output))
}

/// Whether a graph has the relation among its sources.
pub fn reads(graph: &QueryGraph, relation: RelationId) -> bool {
    graph.plan().sources().any(|source| source.id == relation)
}

/// Columns of a relation that a graph reads.
pub fn wanted_columns(graph: &QueryGraph, relation: RelationId) -> impl Iterator<Item = usize> {
    graph
        .plan()
        .nodes
        .iter()
        .filter_map(move |node| match &node.operator {
            highwater_planner::dataflow::Operator::Source {
                relation: source,
                projection,
                ..
            } if source.id == relation => Some(projection.clone()),
            _ => None,
        })
        .flatten()
}
