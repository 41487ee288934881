//! Rows into a relation's topic: what INSERT and COPY share.
//!
//! Rows are encoded on the caller's side, appended as one group, and acknowledged when every partition they went to is on disk. What one INSERT writes
//! to several partitions is a transaction: a crash leaves all of it or nothing. Sessions that wait at the same time share one sync. A row with a key goes to the partition that Kafka's partitioner gives its key; rows without
//! one stay together, and the next write takes the next partition.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use arrow::array::{Array, ArrayRef};
use highwater_exec::{Ends, ExecResult, RelationEncoder};
use highwater_planner::catalog::{Relation, SourceKind};
use highwater_storage_log::{
    Appended, BatchBuilder, EncodedBatch, LogResult, Offset, TopicPartition, partition_for_key,
};
use metrics::counter;
use tokio::sync::oneshot;

use crate::{
    catalog::builtin::FIRST_ID,
    clock,
    server::Server,
    session::SessionResult,
    sqlstate::{SqlError, code},
    statement::unknown_relation,
    telemetry,
};

/// A batch is closed at this size; a thousandth part of the log's limit would do, a sixteenth keeps one statement's batches few.
const BATCH_BYTES: usize = 1 << 20;

/// The partition that the next write without keys takes.
static NEXT_PARTITION: AtomicU32 = AtomicU32::new(0);

/// Rows of a relation, all declared columns in order.
pub struct RowSet {
    /// Columns.
    pub columns: Vec<ArrayRef>,
    /// Record timestamps, if the statement gave them.
    pub timestamps: Option<Vec<Option<i64>>>,
    /// Number of rows.
    pub rows: usize,
}

/// Encodes and appends rows of one relation.
pub struct RelationWriter {
    server: Arc<Server>,
    relation: Arc<Relation>,
    encoder: RelationEncoder,
}

/// Rows that are on their way to the disk.
pub enum Written {
    /// Nothing.
    None,
    /// One batch, which the log writes and syncs with those of other sessions, and who hears where it is.
    Batch(TopicPartition, oneshot::Receiver<LogResult<Appended>>),
    /// A transaction, and who hears that it is on disk and visible.
    Transaction(Ends, oneshot::Receiver<ExecResult<()>>),
}

impl Written {
    /// Returns when the rows are on disk. However many sessions wait, no thread waits for each.
    pub async fn synced(self) -> SessionResult<Ends> {
        let early = |error| SqlError::internal(format!("a write ended early: {error}"));
        match self {
            Self::None => Ok(Vec::new()),
            Self::Batch(partition, hears) => {
                let appended = hears.await.map_err(early)??;
                Ok(vec![(partition, Offset(appended.last_offset.0 + 1))])
            }
            Self::Transaction(ends, hears) => {
                hears.await.map_err(early)??;
                Ok(ends)
            }
        }
    }
}

impl RelationWriter {
    /// A writer, if the relation takes rows from statements.
    pub fn new(server: &Arc<Server>, relation: Arc<Relation>) -> SessionResult<Self> {
        let name = &relation.name;
        if relation.id.0 < FIRST_ID {
            return Err(SqlError::new(
                code::INSUFFICIENT_PRIVILEGE,
                format!("\"{name}\" is written by the server alone"),
            ));
        }
        if let Some(query) = relation.query {
            let query = server.coordinator.catalog().query_name(query);
            return Err(SqlError::new(
                code::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot insert into \"{name}\": it is written by query {query}"),
            )
            .with_hint("insert into what the query reads"));
        }
        if relation.read_only {
            return Err(SqlError::new(
                code::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "cannot insert into \"{name}\": it was created with SOURCE, which makes it read-only"
                ),
            ));
        }
        let encoder = RelationEncoder::new(&relation)?;
        Ok(Self {
            server: Arc::clone(server),
            relation,
            encoder,
        })
    }

    /// Hands over rows of which a crash leaves all or none. May block.
    pub fn append_atomically(&mut self, rows: &RowSet) -> SessionResult<Written> {
        let mut batches = self.encode(rows)?;
        // Whoever asked may have gone when it is told.
        let written = if batches.len() > 1 {
            let (told, hears) = oneshot::channel();
            let tell = Box::new(move |done| _ = told.send(done));
            let ends = self.server.engine.append_atomically(batches, tell)?;
            Written::Transaction(ends, hears)
        } else if let Some((partition, mut batch)) = batches.pop() {
            // One batch is whole or not there by itself.
            let (told, hears) = oneshot::channel();
            let tell = Box::new(move |done| _ = told.send(done));
            self.server
                .log
                .produce(&partition, batch.finish(None), tell);
            Written::Batch(partition, hears)
        } else {
            Written::None
        };
        counter!(telemetry::ROWS_WRITTEN).increment(rows.rows as u64);
        Ok(written)
    }

    /// Appends rows, of which a crash may leave a part. Blocks; the rows are not yet on disk when it returns.
    pub fn append(&mut self, rows: &RowSet) -> SessionResult<Ends> {
        let batches = finished(self.encode(rows)?);
        let ends = self.server.engine.append_together(batches)?;
        counter!(telemetry::ROWS_WRITTEN).increment(rows.rows as u64);
        Ok(ends)
    }

    fn encode(&mut self, rows: &RowSet) -> SessionResult<Vec<(TopicPartition, BatchBuilder)>> {
        let relation = Arc::clone(&self.relation);
        let encoded = self.encoder.encode(&rows.columns)?;
        if let Some(error) = encoded.errors.first() {
            return Err(SqlError::new(
                code::DATA_EXCEPTION,
                format!("row {}: {}", error.index + 1, error.reason),
            ));
        }
        let keys = relation.key_columns();
        let has_key = |row: usize| {
            keys.iter()
                .any(|&column| rows.columns[column].is_valid(row))
        };
        let now = clock::now_ms();
        let keyless = NEXT_PARTITION.fetch_add(1, Ordering::Relaxed) % relation.partitions;
        let mut open: BTreeMap<u32, BatchBuilder> = BTreeMap::new();
        let mut batches = Vec::new();
        let target = |number: u32| TopicPartition::new(relation.topic.as_str(), number);
        for at in 0..rows.rows {
            let key = if has_key(at) { encoded.key(at) } else { None };
            if key.is_none() && relation.kind == SourceKind::Table {
                return Err(missing_key(&relation, at));
            }
            let number = key.map_or(keyless, |key| partition_for_key(key, relation.partitions));
            let timestamp = rows
                .timestamps
                .as_ref()
                .and_then(|timestamps| timestamps[at])
                .unwrap_or(now);
            let builder = open.entry(number).or_default();
            builder.push(timestamp, key, encoded.value(at), &[]);
            if builder.byte_len() >= BATCH_BYTES {
                batches.push((target(number), builder.split_off()));
            }
        }
        let rest = open.into_iter().filter(|(_, builder)| !builder.is_empty());
        batches.extend(rest.map(|(number, builder)| (target(number), builder)));
        Ok(batches)
    }
}

fn finished(batches: Vec<(TopicPartition, BatchBuilder)>) -> Vec<(TopicPartition, EncodedBatch)> {
    let finish =
        |(partition, mut batch): (TopicPartition, BatchBuilder)| (partition, batch.finish(None));
    batches.into_iter().map(finish).collect()
}

fn missing_key(relation: &Relation, row: usize) -> SqlError {
    let keys: Vec<String> = relation
        .columns
        .iter()
        .filter(|column| column.key)
        .map(|column| format!("\"{}\"", column.name))
        .collect();
    SqlError::new(
        code::NOT_NULL_VIOLATION,
        format!(
            "row {}: the primary key {} of table \"{}\" cannot be null",
            row + 1,
            keys.join(", "),
            relation.name
        ),
    )
}

/// Returns when everything below the ends is on disk. However many sessions wait, no thread waits for each.
pub async fn sync(server: &Server, ends: &[(TopicPartition, Offset)]) -> SessionResult<()> {
    let mut waiting = Vec::with_capacity(ends.len());
    for (partition, end) in ends {
        let (told, hears) = oneshot::channel();
        // Whoever asked may have gone.
        let waiter = Box::new(move |synced| _ = told.send(synced));
        server.log.when_synced(partition, *end, waiter);
        waiting.push(hears);
    }
    for synced in waiting {
        synced
            .await
            .map_err(|error| SqlError::internal(format!("a sync ended early: {error}")))??;
    }
    Ok(())
}

/// The columns that a statement fills: positions in the relation, and where `rowtime` stands among what was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A declared column.
    Column(usize),
    /// The record's timestamp.
    RowTime,
}

/// Resolves the columns of `INSERT INTO name (..)` and `COPY name (..)`; none named means all in order.
pub fn targets(relation: &Relation, names: &[String]) -> SessionResult<Vec<Target>> {
    if names.is_empty() {
        let written = (0..relation.columns.len())
            .filter(|column| relation.columns[*column].headers.is_none());
        return Ok(written.map(Target::Column).collect());
    }
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let declared = relation
            .columns
            .iter()
            .position(|column| column.name == *name);
        let target = match declared {
            Some(at) if relation.columns[at].headers.is_some() => {
                return Err(SqlError::new(
                    code::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!("column \"{name}\" shows headers, which no statement writes"),
                ));
            }
            Some(at) => Target::Column(at),
            None if name == highwater_planner::catalog::ROWTIME => Target::RowTime,
            None => {
                let columns: Vec<&str> = relation
                    .columns
                    .iter()
                    .map(|column| column.name.as_str())
                    .collect();
                return Err(SqlError::new(
                    code::UNDEFINED_COLUMN,
                    format!(
                        "column \"{name}\" of relation \"{}\" does not exist",
                        relation.name
                    ),
                )
                .with_hint(format!("its columns are {}", columns.join(", "))));
            }
        };
        if targets.contains(&target) {
            return Err(SqlError::new(
                code::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        targets.push(target);
    }
    Ok(targets)
}

/// The relation that a write names.
pub fn relation(server: &Server, name: &str) -> SessionResult<Arc<Relation>> {
    use highwater_planner::catalog::Catalog;
    server
        .coordinator
        .catalog()
        .relation(name)
        .ok_or_else(|| unknown_relation(name))
}
