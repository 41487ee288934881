//! An engine over an in-memory log, with the little of a coordinator that tests need.

use std::{
    collections::BTreeMap,
    io::Write,
    num::NonZero,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::Duration,
};

use arrow::{
    array::{ArrayRef, Int64Array, StringArray, TimestampMillisecondArray},
    compute,
    datatypes::{DataType, TimeUnit},
    record_batch::RecordBatch,
    util::display::{ArrayFormatter, FormatOptions},
};
use datafusion::execution::SessionStateBuilder;
use highwater_exec::{
    ChangeBatch, ChangeReceiver, EarlierResult, Engine, EngineOptions, ExecError, ExecResult,
    FeedClosed, FeedStart, OffsetReset, PersistentQuery, QueryOutput, QueryState, RelationEncoder,
    SubscribeOptions, SubscriptionId,
};
use highwater_planner::{
    PlanContext,
    catalog::{Catalog, QueryId, Relation, RelationId, SourceKind},
    dataflow::DataflowPlan,
    plan_create_as, plan_create_source, plan_push, plan_source_table,
};
use highwater_sql::{Dialect, IdentifierCase, Statement};
use highwater_storage_log::{
    BatchBuilder, EmbeddedLog, Isolation, Log, LogOptions, MemoryDisk, Offset, TopicChange,
    TopicConfig, TopicPartition, partition_for_key,
};
use parking_lot::Mutex;
use rand::Rng;
use tempfile::TempDir;

const PROCESSING_LOG: &str = "_processing_log";

/// One bid.
#[derive(Debug, Clone)]
pub struct Row {
    pub bidder: i64,
    pub channel: Option<String>,
    pub price: Option<i64>,
    /// Milliseconds since the epoch.
    pub at: i64,
}

#[derive(Default)]
struct Relations(BTreeMap<String, Arc<Relation>>);

impl Catalog for Relations {
    fn relation(&self, name: &str) -> Option<Arc<Relation>> {
        self.0.get(name).cloned()
    }

    fn relations(&self) -> Vec<Arc<Relation>> {
        self.0.values().cloned().collect()
    }

    fn topic_partitions(&self, topic: &str) -> Option<u32> {
        self.0
            .values()
            .find(|relation| relation.topic == topic)
            .map(|relation| relation.partitions)
    }
}

pub struct World {
    disk: MemoryDisk,
    log: Arc<EmbeddedLog>,
    engine: Option<Arc<Engine>>,
    folder: TempDir,
    step_max_rows: usize,
    feed_history: i64,
    workers: NonZero<usize>,
    state_memory: usize,
    checkpoint_interval: Duration,
    partitions: u32,
    relations: Relations,
    queries: Vec<PersistentQuery>,
    rows: Vec<Row>,
    next_id: u64,
    written: BTreeMap<TopicPartition, Offset>,
}

struct Collector(Arc<Mutex<Vec<String>>>);

impl ChangeReceiver for Collector {
    fn offer(&mut self, changes: ChangeBatch) -> Result<(), FeedClosed> {
        self.0.lock().extend(text_rows(&[changes.rows]));
        Ok(())
    }

    fn closed(&mut self, reason: String) {
        self.0.lock().push(format!("closed: {reason}"));
    }
}

/// A part of a step as a reader got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    pub step: Option<u64>,
    pub ends_step: bool,
    pub rows: Vec<String>,
}

/// A push query that tells its steps.
pub struct Feed {
    id: SubscriptionId,
    pub given: Arc<Mutex<Vec<Given>>>,
    /// Why it ended, if it did.
    pub end: Arc<Mutex<Option<String>>>,
}

struct StepCollector {
    given: Arc<Mutex<Vec<Given>>>,
    end: Arc<Mutex<Option<String>>>,
}

impl ChangeReceiver for StepCollector {
    fn offer(&mut self, changes: ChangeBatch) -> Result<(), FeedClosed> {
        self.given.lock().push(Given {
            step: changes.step,
            ends_step: changes.ends_step,
            rows: text_rows(&[changes.rows]),
        });
        Ok(())
    }

    fn closed(&mut self, reason: String) {
        *self.end.lock() = Some(reason);
    }
}

/// How far the replacement of a query has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Paused,
    Recorded,
    Created,
    Dropped,
}

/// Rows that are on their way to the disk in one transaction.
pub struct Insert {
    ends: Vec<(TopicPartition, Offset)>,
    told: mpsc::Receiver<ExecResult<()>>,
}

/// Where the power goes, or the disk is full, while a table gets another query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Paused,
    Recorded,
    /// So many changes of the log's disk later.
    After(u64),
    /// So many bytes are left from then on, for a tenth of a second.
    Room(u64),
}

impl World {
    pub fn new(partitions: u32, step_max_rows: usize) -> Self {
        let disk = MemoryDisk::with_crashes();
        let log = open_log(&disk);
        log.create_topic(PROCESSING_LOG, TopicConfig::with_partitions(1))
            .expect("a new topic");
        let mut world = Self {
            disk,
            log,
            engine: None,
            folder: TempDir::new().expect("a folder"),
            step_max_rows,
            feed_history: EngineOptions::FEED_HISTORY,
            workers: NonZero::<usize>::MIN,
            state_memory: EngineOptions::STATE_MEMORY,
            checkpoint_interval: Duration::from_millis(20),
            partitions,
            relations: Relations::default(),
            queries: Vec::new(),
            rows: Vec::new(),
            next_id: 1,
            written: BTreeMap::new(),
        };
        world.start();
        world
    }

    fn start(&mut self) {
        let options = EngineOptions {
            state_dir: self.folder.path().to_owned(),
            // So few that most histories are caught up with beside the steps.
            catch_up_tail: 10,
            step_max_rows: self.step_max_rows,
            workers: self.workers,
            checkpoint_interval: self.checkpoint_interval,
            state_memory: self.state_memory,
            feed_history: self.feed_history,
            processing_log_topic: PROCESSING_LOG.into(),
        };
        let log = Arc::clone(&self.log) as Arc<dyn Log>;
        self.engine =
            Some(Engine::open(log, options, self.queries.clone()).expect("the engine recovers"));
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("the engine runs")
    }

    pub fn stop(&mut self) {
        self.engine
            .take()
            .expect("the engine runs")
            .stop()
            .expect("a clean stop");
    }

    /// A clean stop and a start with so many bytes for state.
    pub fn restart_with_state_memory(&mut self, bytes: usize) {
        self.state_memory = bytes;
        self.restart();
    }

    /// A clean stop and a start with so much time between checkpoints.
    pub fn restart_with_checkpoints_every(&mut self, interval: Duration) {
        self.checkpoint_interval = interval;
        self.restart();
    }

    /// A clean stop and a start with so many threads for a step.
    pub fn restart_with_workers(&mut self, workers: usize) {
        self.workers = NonZero::new(workers).expect("not zero");
        self.restart();
    }

    /// A clean stop and a start.
    pub fn restart(&mut self) {
        self.stop();
        self.log = open_log_after(&self.disk, &mut self.log);
        self.start();
    }

    /// The power goes while the engine runs; what was not synced may be lost.
    pub fn power_cut(&mut self, random: &mut impl Rng) {
        self.lose_power(random);
        self.start();
    }

    /// The same, and no database of a checkpoint can be opened any more.
    pub fn power_cut_with_lost_state(&mut self, random: &mut impl Rng) {
        self.lose_power(random);
        self.lose_state();
        self.start();
    }

    fn lose_power(&mut self, random: &mut impl Rng) {
        self.disk.halt_after(Some(0));
        // It stops cleanly only if nothing was left to write.
        let _ = self.engine.take().expect("the engine runs").stop();
        self.disk = self
            .disk
            .crash(&mut |choices| random.random_range(0..choices));
        self.log = open_log(&self.disk);
    }

    /// A clean stop, and a start with no database of a checkpoint that can be opened.
    pub fn restart_with_lost_state(&mut self) {
        self.stop();
        self.log = open_log_after(&self.disk, &mut self.log);
        self.lose_state();
        self.start();
    }

    /// The files of all checkpoints that have the given beginning or ending of a name.
    fn checkpoint_files(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let list = |folder: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(folder).expect("a folder");
            entries
                .map(|entry| entry.expect("an entry").path())
                .collect()
        };
        let checkpoints = list(&self.folder.path().join("checkpoints"));
        let files = checkpoints
            .iter()
            .flat_map(|folder| list(&folder.join("db")));
        let name = |path: &PathBuf| {
            path.file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        files
            .filter(|path| name(path).is_some_and(|name| is_wanted(&name)))
            .collect()
    }

    fn lose_state(&self) {
        let files = self.checkpoint_files(|name| name.starts_with("MANIFEST"));
        assert!(!files.is_empty(), "there is a checkpoint");
        for path in files {
            std::fs::write(path, "no database").expect("a write");
        }
    }

    /// Flips bits here and there in the sorted files of the checkpoints, which the running engine has open.
    pub fn damage_state(&self) {
        let files = self.checkpoint_files(|name| name.ends_with(".sst"));
        assert!(!files.is_empty(), "there is state");
        for path in files {
            let mut bytes = std::fs::read(&path).expect("a file");
            let end = bytes.len() * 3 / 4;
            bytes[..end]
                .iter_mut()
                .step_by(500)
                .for_each(|byte| *byte ^= 0x10);
            // In place: the database has the same file.
            let mut file = std::fs::File::options()
                .write(true)
                .open(&path)
                .expect("a file");
            file.write_all(&bytes).expect("a write");
        }
    }

    /// Why the state of a query was made anew at the last start, if it was.
    pub fn rebuilt(&self, name: &str) -> Option<String> {
        let id = self.query(name);
        let status = self.engine().queries();
        let status = status.into_iter().find(|status| status.id == id);
        status.expect("a query's status").rebuilt
    }

    /// Stops a query while steps run.
    pub fn pause_at_once(&mut self, name: &str) {
        let id = self.query(name);
        self.engine().pause_query(id).expect("a pause");
        self.note_paused(name, true);
    }

    /// Gives the stream's topic small segments and lets the log drop whatever retention takes: every record is too old. Answers how many are gone.
    pub fn expire(&self) -> i64 {
        let settings = [("retention.ms", "1"), ("segment.bytes", "300")];
        let change = TopicChange {
            partitions: None,
            settings: settings
                .map(|(name, value)| (name.into(), Some(value.into())))
                .into(),
        };
        self.log
            .alter_topic("bids", &change)
            .expect("the topic is there");
        self.log.maintain().expect("retention");
        let starts = (0..self.partitions).map(|number| {
            let at = TopicPartition::new("bids", number);
            self.log.offsets(&at).expect("offsets").log_start.0
        });
        starts.sum()
    }

    pub fn has(&self, name: &str) -> bool {
        self.relations.0.contains_key(name)
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Runs a CREATE statement.
    pub fn create(&mut self, sql: &str) {
        let Some(query) = self.prepare(sql) else {
            return;
        };
        self.engine()
            .create_query(query.clone())
            .expect("the query starts");
        self.queries.push(query);
    }

    /// Runs a CREATE statement, and `during` again and again until it is done; answers how often.
    pub fn create_beside(&mut self, sql: &str, during: impl Fn(&mut Self, i64)) -> i64 {
        let query = self.prepare(sql).expect("a query");
        let (engine, definition) = (
            Arc::clone(self.engine.as_ref().expect("an engine")),
            query.clone(),
        );
        let creation = std::thread::spawn(move || engine.create_query(definition));
        let mut rounds = 0;
        while !creation.is_finished() {
            rounds += 1;
            during(self, rounds);
        }
        creation
            .join()
            .expect("no panic")
            .expect("the query starts");
        self.queries.push(query);
        rounds
    }

    /// The power goes while a CREATE that the catalog holds is under way.
    pub fn power_cut_while_creating(&mut self, sql: &str, random: &mut impl Rng) {
        let query = self.prepare(sql).expect("a query");
        let (engine, definition) = (
            Arc::clone(self.engine.as_ref().expect("an engine")),
            query.clone(),
        );
        let creation = std::thread::spawn(move || engine.create_query(definition));
        std::thread::sleep(Duration::from_millis(random.random_range(0..40)));
        self.queries.push(query);
        self.power_cut(random);
        // It may have been done before.
        let _ = creation.join().expect("no panic");
    }

    /// All syncs of the log's disk but the next few fail.
    pub fn fail_syncs_after(&self, syncs: u64) {
        self.disk.fail_syncs_after(Some(syncs));
    }

    /// The log's disk takes so many more changes and none after them.
    pub fn halt_after(&self, changes: u64) {
        self.disk.halt_after(Some(changes));
    }

    /// The power goes after so many more changes of the log's disk while a CREATE runs; answers whether it was done by then.
    pub fn power_cut_after(&mut self, changes: u64, sql: &str, random: &mut impl Rng) -> bool {
        let query = self.prepare(sql).expect("a query");
        self.disk.halt_after(Some(changes));
        let done = self.engine().create_query(query.clone()).is_ok();
        self.queries.push(query);
        self.power_cut(random);
        done
    }

    /// The disk of the log fails for good while a CREATE is under way; answers what its caller was told.
    pub fn fail_syncs_while_creating(&mut self, sql: &str) -> Result<(), ExecError> {
        let query = self.prepare(sql).expect("a query");
        let engine = Arc::clone(self.engine.as_ref().expect("an engine"));
        let (told, hears) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(engine.create_query(query)));
        self.disk.fail_syncs_after(Some(0));
        self.insert_without_waiting(&[Row {
            bidder: 1,
            channel: None,
            price: None,
            at: 0,
        }]);
        let heard = hears
            .recv_timeout(Duration::from_secs(20))
            .expect("whoever waits is told");
        let _ = self.engine.take().expect("an engine").stop();
        heard
    }

    /// Plans a CREATE statement and enters its relation; answers the query, if it has one.
    fn prepare(&mut self, sql: &str) -> Option<PersistentQuery> {
        let statement = highwater_sql::parse_statement(sql)
            .expect("a statement")
            .statement;
        let functions = SessionStateBuilder::new().with_default_features().build();
        let context = PlanContext {
            catalog: &self.relations,
            functions: &functions,
            default_partitions: self.partitions,
            dialect: Dialect::Postgres,
            identifier_case: IdentifierCase::Lower,
            defaults: &highwater_planner::defaults::NO_DEFAULTS,
        };
        let (id, query) = (RelationId(self.next_id), QueryId(self.next_id));
        self.next_id += 1;
        let (relation, plan, is_source) = match &statement {
            Statement::CreateSource(create) => {
                let relation =
                    Arc::new(plan_create_source(create, &context, id).expect("a source"));
                let plan = (relation.kind == SourceKind::Table)
                    .then(|| plan_source_table(Arc::clone(&relation)));
                (relation, plan, true)
            }
            Statement::CreateAs(create) => {
                let planned = plan_create_as(create, &context, id, query).expect("a plan");
                (Arc::new(planned.relation), Some(planned.plan), false)
            }
            other => panic!("{other:?} creates nothing"),
        };
        if self.log.topic(&relation.topic).is_none() {
            self.log
                .create_topic(
                    &relation.topic,
                    TopicConfig::with_partitions(relation.partitions),
                )
                .expect("a new topic");
        }
        self.relations
            .0
            .insert(relation.name.clone(), Arc::clone(&relation));
        let plan = plan?;
        let output = match (is_source, relation.kind) {
            (true, _) => QueryOutput::SourceTable(relation),
            (false, SourceKind::Table) => QueryOutput::Table(relation),
            (false, SourceKind::Stream) => QueryOutput::Stream(relation),
        };
        Some(PersistentQuery {
            id: query,
            plan,
            output,
            offset_reset: OffsetReset::Earliest,
            begins_at: Vec::new(),
            paused: false,
            revision: 0,
            earlier: None,
        })
    }

    /// Inserts bids durably.
    pub fn insert(&mut self, rows: &[Row]) {
        let batch = rows_as_batch(rows);
        self.append("bids", batch.columns(), &vec![false; rows.len()]);
        self.rows.extend_from_slice(rows);
    }

    /// Writes rows of a table (id, owner, balance), or removes them.
    pub fn upsert(&mut self, table: &str, rows: &[(i64, Option<(&str, i64)>)]) {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|(id, _)| Some(*id)).collect::<Int64Array>()),
            Arc::new(
                rows.iter()
                    .map(|(_, row)| row.map(|(owner, _)| owner))
                    .collect::<StringArray>(),
            ),
            Arc::new(
                rows.iter()
                    .map(|(_, row)| row.map(|(_, balance)| balance))
                    .collect::<Int64Array>(),
            ),
        ];
        let removed: Vec<bool> = rows.iter().map(|(_, row)| row.is_none()).collect();
        self.append(table, &columns, &removed);
    }

    /// Inserts bids that may still be on their way to the disk.
    pub fn insert_without_waiting(&mut self, rows: &[Row]) {
        let batch = rows_as_batch(rows);
        let ends = self.append_unsynced("bids", batch.columns(), &vec![false; rows.len()]);
        self.written.extend(ends);
        self.rows.extend_from_slice(rows);
    }

    /// Inserts bids in one transaction, as far as the disk lets it.
    pub fn begin_insert(&mut self, rows: &[Row]) -> ExecResult<Insert> {
        let batch = rows_as_batch(rows);
        self.begin_append("bids", batch.columns(), &vec![false; rows.len()])
    }

    /// Waits for an insert; its rows count when it is acknowledged.
    pub fn finish_insert(&mut self, insert: Insert, rows: &[Row]) -> ExecResult<()> {
        self.finish_append(insert)?;
        self.rows.extend_from_slice(rows);
        Ok(())
    }

    fn append(&mut self, relation: &str, columns: &[ArrayRef], removed: &[bool]) {
        let append = self.begin_append(relation, columns, removed);
        self.finish_append(append.expect("an append"))
            .expect("a commit");
    }

    fn begin_append(
        &self,
        relation: &str,
        columns: &[ArrayRef],
        removed: &[bool],
    ) -> ExecResult<Insert> {
        let batches = self.encode(relation, columns, removed);
        let (sender, told) = mpsc::channel();
        let tell = Box::new(move |done| sender.send(done).expect("somebody listens"));
        let ends = self.engine().append_atomically(batches, tell)?;
        Ok(Insert { ends, told })
    }

    fn finish_append(&mut self, insert: Insert) -> ExecResult<()> {
        insert
            .told
            .recv_timeout(Duration::from_secs(20))
            .expect("told once")?;
        self.written.extend(insert.ends);
        Ok(())
    }

    fn append_unsynced(
        &mut self,
        relation: &str,
        columns: &[ArrayRef],
        removed: &[bool],
    ) -> Vec<(TopicPartition, Offset)> {
        let batches = self.encode(relation, columns, removed).into_iter();
        let batches = batches.map(|(partition, mut batch)| (partition, batch.finish(None)));
        self.engine()
            .append_together(batches.collect())
            .expect("an append")
    }

    fn encode(
        &self,
        relation: &str,
        columns: &[ArrayRef],
        removed: &[bool],
    ) -> Vec<(TopicPartition, BatchBuilder)> {
        let relation = Arc::clone(&self.relations.0[relation]);
        let encoded = RelationEncoder::new(&relation)
            .expect("an encoder")
            .encode(columns)
            .expect("records");
        let mut builders: BTreeMap<u32, BatchBuilder> = BTreeMap::new();
        for (row, removed) in removed.iter().enumerate() {
            let partition = match encoded.placing_key(row) {
                Some(key) => partition_for_key(key, relation.partitions),
                None => row as u32 % relation.partitions,
            };
            let value = encoded.value(row).filter(|_| !removed);
            builders
                .entry(partition)
                .or_default()
                .push(0, encoded.key(row), value, &[]);
        }
        builders
            .into_iter()
            .map(|(partition, builder)| {
                (
                    TopicPartition::new(relation.topic.as_str(), partition),
                    builder,
                )
            })
            .collect()
    }

    /// Follows a push query; its rows are collected as `a|b|c`.
    pub fn watch(&self, sql: &str) -> Arc<Mutex<Vec<String>>> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let options = SubscribeOptions {
            start: FeedStart::Next,
            with_steps: false,
        };
        let collector = Collector(Arc::clone(&seen));
        self.engine()
            .subscribe(self.push_plan(sql), options, Box::new(collector))
            .expect("a subscription");
        seen
    }

    /// Follows a push query step by step.
    pub fn follow(&self, sql: &str, start: FeedStart) -> Result<Feed, ExecError> {
        let options = SubscribeOptions {
            start,
            with_steps: true,
        };
        let collector = StepCollector {
            given: Arc::default(),
            end: Arc::default(),
        };
        let (given, end) = (Arc::clone(&collector.given), Arc::clone(&collector.end));
        let plan = self.push_plan(sql);
        let id = self
            .engine()
            .subscribe(plan, options, Box::new(collector))?;
        Ok(Feed { id, given, end })
    }

    /// Ends it; answers what its reader has got.
    pub fn leave(&self, feed: Feed) -> Vec<Given> {
        let given = feed.given.lock().clone();
        self.engine().unsubscribe(feed.id);
        given
    }

    /// Starts again with so many steps that push queries can be resumed behind.
    pub fn restart_with_history(&mut self, steps: i64) {
        self.feed_history = steps;
        self.restart();
    }

    /// The last committed step.
    pub fn step(&self) -> u64 {
        self.engine().snapshot().step()
    }

    fn push_plan(&self, sql: &str) -> DataflowPlan {
        let Statement::Query(query) = highwater_sql::parse_statement(sql)
            .expect("a statement")
            .statement
        else {
            panic!("{sql} is no query");
        };
        let functions = SessionStateBuilder::new().with_default_features().build();
        let context = PlanContext {
            catalog: &self.relations,
            functions: &functions,
            default_partitions: self.partitions,
            dialect: Dialect::Postgres,
            identifier_case: IdentifierCase::Lower,
            defaults: &highwater_planner::defaults::NO_DEFAULTS,
        };
        plan_push(&query, &context).expect("a plan").plan
    }

    /// The batches that stand in a topic, byte for byte, partition by partition.
    pub fn batches(&self, topic: &str) -> Vec<Vec<u8>> {
        let mut batches = Vec::new();
        for number in 0..self.partitions {
            let partition = TopicPartition::new(topic, number);
            let mut from = self.log.offsets(&partition).expect("offsets").log_start;
            loop {
                let fetch = self
                    .log
                    .read(&partition, from, 1 << 20, Isolation::ReadCommitted)
                    .expect("readable");
                batches.extend(fetch.batches.iter().map(|batch| batch.as_bytes().to_vec()));
                if fetch.next_offset == from {
                    break;
                }
                from = fetch.next_offset;
            }
        }
        batches
    }

    fn query(&self, name: &str) -> QueryId {
        let made = |query: &&PersistentQuery| query.output.relation().name == name;
        self.queries.iter().find(made).expect("a query").id
    }

    pub fn pause(&mut self, name: &str) {
        self.settle();
        let id = self.query(name);
        self.engine().pause_query(id).expect("a pause");
        self.queries
            .iter_mut()
            .filter(|query| query.id == id)
            .for_each(|query| query.paused = true);
    }

    pub fn resume(&mut self, name: &str) {
        self.settle();
        let id = self.query(name);
        self.engine().resume_query(id).expect("a resumption");
        self.queries
            .iter_mut()
            .filter(|query| query.id == id)
            .for_each(|query| query.paused = false);
    }

    /// The catalog says so; whether the engine was told is another matter.
    pub fn note_paused(&mut self, name: &str, paused: bool) {
        let id = self.query(name);
        self.queries
            .iter_mut()
            .filter(|query| query.id == id)
            .for_each(|query| query.paused = paused);
    }

    /// Resumes a query that may fail to.
    pub fn try_resume(&mut self, name: &str) -> Result<(), ExecError> {
        let id = self.query(name);
        self.engine().resume_query(id)?;
        self.note_paused(name, false);
        Ok(())
    }

    /// Lets a new query go on for an old one, as the catalog does it; the power goes at `cut`.
    pub fn replace(&mut self, old: &str, sql: &str, cut: Option<Moment>, random: &mut impl Rng) {
        let id = self.query(old);
        self.engine().pause_query(id).expect("a pause");
        let status = self.engine().queries();
        let status = status.into_iter().find(|status| status.id == id);
        let stopped_at = status.expect("a query's status").stopped_at;
        if cut == Some(Moment::Paused) {
            // The catalog knows nothing of it: the old query goes on.
            return self.power_cut(random);
        }
        let mut new = self.prepare(sql).expect("a query");
        new.begins_at = stopped_at;
        self.queries.retain(|query| query.id != id);
        self.queries.push(new.clone());
        if cut == Some(Moment::Recorded) {
            return self.power_cut(random);
        }
        self.engine().create_query(new).expect("the query starts");
        if cut == Some(Moment::Created) {
            return self.power_cut(random);
        }
        self.engine().drop_query(id).expect("a removal");
        if cut == Some(Moment::Dropped) {
            self.power_cut(random);
        }
    }

    /// Gives a table another query, as the catalog does it; the power goes at `cut`, or after so many changes of the log's disk. What the
    /// engine says counts only if the power stays.
    pub fn replace_table(
        &mut self,
        name: &str,
        sql: &str,
        cut: Option<Cut>,
        random: &mut impl Rng,
    ) -> Result<(), ExecError> {
        let id = self.query(name);
        let old = self.queries.iter().find(|query| query.id == id);
        let old = old.expect("a query").clone();
        let before = Arc::clone(old.output.relation());
        self.engine().pause_query(id).expect("a pause");
        if cut == Some(Cut::Paused) {
            self.power_cut(random);
            return Ok(());
        }
        self.relations.0.remove(name);
        let revision = std::mem::replace(&mut self.next_id, id.0);
        let new = self.prepare(sql).expect("a query");
        self.next_id = revision + 1;
        let new = PersistentQuery {
            revision,
            earlier: Some(EarlierResult {
                revision: old.revision,
                relation: Arc::clone(&before),
            }),
            ..new
        };
        self.put(new.clone());
        match cut {
            Some(Cut::Recorded) => self.power_cut(random),
            Some(Cut::After(changes)) => {
                self.disk.halt_after(Some(changes));
                let done = self.engine().replace_query(new);
                self.power_cut(random);
                return done;
            }
            Some(Cut::Paused | Cut::Room(_)) | None => {
                if let Some(Cut::Room(bytes)) = cut {
                    self.leave_room(Some(bytes));
                }
                // What failed is taken back once there is room, and the engine answers after that.
                let disk = self.disk.clone();
                let relief = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(100));
                    disk.set_capacity(None);
                });
                let replaced = self.engine().replace_query(new);
                relief.join().expect("no panic");
                if let Err(error) = replaced {
                    self.put(old);
                    self.relations.0.insert(name.to_owned(), before);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, query: PersistentQuery) {
        let place = self.queries.iter_mut().find(|known| known.id == query.id);
        *place.expect("a query") = query;
    }

    /// Checks that the records of a table's topic, the last one of each key, are the rows of the table.
    pub fn check_topic(&self, name: &str) {
        let relation = &self.relations.0[name];
        let mut told = BTreeMap::new();
        for number in 0..relation.partitions {
            let partition = TopicPartition::new(relation.topic.as_str(), number);
            let mut from = Offset(0);
            while from < self.log.offsets(&partition).expect("offsets").last_stable {
                let fetch = self
                    .log
                    .read(&partition, from, 1 << 20, Isolation::ReadCommitted)
                    .expect("a read");
                for batch in &fetch.batches {
                    for record in &batch.records().expect("records") {
                        let record = record.expect("a record");
                        let value = record.value.map(<[u8]>::to_vec);
                        told.insert(record.key.map(<[u8]>::to_vec), value);
                    }
                }
                from = fetch.next_offset;
            }
        }
        told.retain(|_, value| value.is_some());
        let reader = self.settle().table(relation.id).expect("a kept table");
        let columns: Vec<usize> = (0..relation.columns.len()).collect();
        let mut encoder = RelationEncoder::new(relation).expect("an encoder");
        let mut kept = BTreeMap::new();
        for batch in reader.scan(Some(&columns), &[]).expect("a scan") {
            let batch = batch.expect("rows");
            let rows = encoder.encode(batch.columns()).expect("records");
            for row in 0..batch.num_rows() {
                let (key, value) = (rows.key(row), rows.value(row));
                kept.insert(key.map(<[u8]>::to_vec), value.map(<[u8]>::to_vec));
            }
        }
        assert_eq!(told, kept, "the topic of {name}");
    }

    /// Removes a query that nobody reads, with its relation.
    pub fn drop(&mut self, name: &str) {
        let id = self.query(name);
        self.queries.retain(|query| query.id != id);
        self.relations.0.remove(name);
        self.engine().drop_query(id).expect("a removal");
    }

    /// Waits until a query has failed; answers why.
    pub fn failure(&self, name: &str) -> String {
        for _ in 0..1000 {
            if let QueryState::Failed(reason) = self.state(name) {
                return reason;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{name} has not failed");
    }

    pub fn state(&self, name: &str) -> QueryState {
        let id = self.query(name);
        let status = self.engine().queries();
        let status = status.into_iter().find(|status| status.id == id);
        status.expect("a query's status").state
    }

    /// Groups of a query that are in memory, as last told.
    pub fn groups_in_memory(&self, name: &str) -> usize {
        let id = self.query(name);
        let status = self.engine().queries();
        let status = status.into_iter().find(|status| status.id == id);
        let memory = status.expect("a query's status").memory;
        memory.iter().map(|operator| operator.groups).sum()
    }

    pub fn delete_topic(&mut self, topic: &str) {
        self.log.delete_topic(topic).expect("a topic");
    }

    /// Leaves the disk of the log `bytes` to fill; `None` takes the bound away.
    pub fn leave_room(&self, bytes: Option<u64>) {
        let used = self.disk.used();
        self.disk.set_capacity(bytes.map(|bytes| used + bytes));
    }

    /// Records in a topic that has no transactions.
    pub fn records(&self, topic: &str) -> i64 {
        (0..self.partitions)
            .map(|partition| {
                let offsets = self.log.offsets(&TopicPartition::new(topic, partition));
                offsets.expect("a partition").log_end.0
            })
            .sum()
    }

    /// After a power cut: of what nobody was told to be safe, only what is there counts.
    pub fn forget_unacknowledged(&mut self) {
        self.rows.clear();
        self.written = (0..self.partitions)
            .map(|partition| {
                let partition = TopicPartition::new("bids", partition);
                let end = self.log.offsets(&partition).expect("a partition").log_end;
                (partition, end)
            })
            .collect();
    }

    /// Entries of the processing log.
    pub fn rejected(&self) -> Vec<String> {
        let partition = TopicPartition::new(PROCESSING_LOG, 0);
        let fetch = self
            .log
            .read(&partition, Offset(0), 1 << 20, Isolation::ReadCommitted)
            .expect("a read");
        let mut entries = Vec::new();
        for batch in &fetch.batches {
            for record in &batch.records().expect("records") {
                let value = record.expect("a record").value.expect("a value");
                entries.push(String::from_utf8_lossy(value).into_owned());
            }
        }
        entries
    }

    /// While the engine is down, bids are appended, and later the medium changes a bit of each batch.
    pub fn damage_while_down(&mut self, rows: &[Row]) {
        self.stop();
        let before: BTreeMap<_, _> = self.disk.files().into_iter().collect();
        self.append_past_the_engine(rows);
        let damaged: Vec<_> = self
            .disk
            .files()
            .into_iter()
            .filter(|(path, length)| before.get(path).is_none_or(|before| before < length))
            .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "log"))
            .collect();
        assert!(!damaged.is_empty(), "nothing was written");
        // From its second start on, the log knows that the batches are not a torn tail.
        self.log = open_log_after(&self.disk, &mut self.log);
        for (path, length) in damaged {
            self.disk
                .flip(&path, length as usize - 2, 0x10)
                .expect("a byte");
        }
        self.log = open_log_after(&self.disk, &mut self.log);
        self.start();
    }

    fn append_past_the_engine(&self, rows: &[Row]) {
        let columns = rows_as_batch(rows);
        for (partition, mut batch) in
            self.encode("bids", columns.columns(), &vec![false; rows.len()])
        {
            let appended = self
                .log
                .append(&partition, batch.finish(None))
                .expect("an append");
            self.log
                .sync(&partition, Offset(appended.last_offset.0 + 1))
                .expect("a sync");
        }
    }

    pub fn settle(&self) -> highwater_exec::Snapshot {
        let written: Vec<_> = self
            .written
            .iter()
            .map(|(partition, end)| (partition.clone(), *end))
            .collect();
        self.engine()
            .snapshot_covering(&written, Duration::from_secs(20))
            .expect("a step that covers the rows")
    }

    /// Waits until a table covers everything inserted.
    pub fn wait_for(&self, name: &str) {
        let relation = &self.relations.0[name];
        self.settle().table(relation.id).expect("a kept table");
    }

    /// The sorted rows of a table that covers everything inserted.
    pub fn table(&self, name: &str) -> Vec<String> {
        let relation = &self.relations.0[name];
        let reader = self.settle().table(relation.id).expect("a kept table");
        let columns: Vec<usize> = (0..relation.columns.len()).collect();
        let batches: Vec<RecordBatch> = reader
            .scan(Some(&columns), &[])
            .expect("a scan")
            .map(|batch| batch.expect("rows"))
            .collect();
        let rows = text_rows(&batches);
        assert_eq!(
            reader.estimated_rows(),
            Some(rows.len()),
            "the row count of {name}"
        );
        rows
    }
}

fn open_log(disk: &MemoryDisk) -> Arc<EmbeddedLog> {
    let disk = Arc::new(disk.clone());
    Arc::new(
        EmbeddedLog::open_on(disk, Path::new("/log"), LogOptions::default())
            .expect("the log opens"),
    )
}

/// Opens the log again once the engine's last thread has let go of the old one.
fn open_log_after(disk: &MemoryDisk, old: &mut Arc<EmbeddedLog>) -> Arc<EmbeddedLog> {
    while Arc::strong_count(old) > 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    *old = Arc::new(EmbeddedLog::in_memory(LogOptions::default()).expect("a log"));
    open_log(disk)
}

/// Bids as columns.
pub fn rows_as_batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "bidder",
            Arc::new(
                rows.iter()
                    .map(|row| Some(row.bidder))
                    .collect::<Int64Array>(),
            ),
        ),
        (
            "channel",
            Arc::new(
                rows.iter()
                    .map(|row| row.channel.clone())
                    .collect::<StringArray>(),
            ),
        ),
        (
            "price",
            Arc::new(rows.iter().map(|row| row.price).collect::<Int64Array>()),
        ),
        (
            "at",
            Arc::new(
                rows.iter()
                    .map(|row| Some(row.at))
                    .collect::<TimestampMillisecondArray>(),
            ),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
    .expect("columns of one length")
}

/// Rows as `a|b|c`, sorted.
pub fn text_rows(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        // The oracle may count time in finer units.
        let columns: Vec<ArrayRef> = batch
            .columns()
            .iter()
            .map(|column| match column.data_type() {
                DataType::Timestamp(..) => {
                    compute::cast(column, &DataType::Timestamp(TimeUnit::Millisecond, None))
                        .expect("a time")
                }
                _ => Arc::clone(column),
            })
            .collect();
        let formatters: Vec<ArrayFormatter<'_>> = columns
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).expect("a printable type"))
            .collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = formatters
                .iter()
                .map(|formatter| formatter.value(row).to_string())
                .collect();
            rows.push(cells.join("|"));
        }
    }
    rows.sort();
    rows
}
