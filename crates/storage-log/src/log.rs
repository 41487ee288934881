//! The seam between the log and everything above it: topics, partitions, appends, reads.
//!
//! Two homes are planned: the embedded log of this crate and Apache Kafka. Nothing above this trait may tell which one it has.
//! All calls are synchronous and take `&self`; a partition has one writer at a time and any number of readers.

use std::{collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;

use crate::{
    batch::{BatchView, EncodedBatch},
    error::LogResult,
};

/// Number of a partition within its topic, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub u32);

/// Position of a record in its partition. Dense, never reused; transaction markers take one too, as in Kafka.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

/// Identity of a producer (Kafka's producer id). Ids of [`ProducerId::ENGINE_BASE`] and above belong to continuous queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerId(pub i64);

impl ProducerId {
    /// First id that a continuous query uses: query `q` appends as `ENGINE_BASE + q`.
    pub const ENGINE_BASE: i64 = 1 << 40;
}

/// One partition of one topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// Topic name.
    pub topic: Arc<str>,
    /// Partition number.
    pub partition: PartitionId,
}

impl TopicPartition {
    /// Names a partition.
    pub fn new(topic: impl Into<Arc<str>>, partition: u32) -> Self {
        Self {
            topic: topic.into(),
            partition: PartitionId(partition),
        }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition.0)
    }
}

/// Settings of a topic under Kafka's names (`retention.ms`, `segment.bytes`, ..). Absent ones have the log's options, else Kafka's defaults; but
/// records are kept for ever unless `retention.ms` or `retention.bytes` says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicConfig {
    /// How many partitions.
    pub partitions: u32,
    /// Kafka's topic settings.
    pub settings: BTreeMap<String, String>,
}

impl TopicConfig {
    /// A topic with default settings.
    pub fn with_partitions(partitions: u32) -> Self {
        Self {
            partitions,
            settings: BTreeMap::new(),
        }
    }
}

/// What changes about a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicChange {
    /// So many partitions; there can only be more than before. Keys that come later may then go to other partitions than earlier ones.
    pub partitions: Option<u32>,
    /// New values of settings; `None` goes back to the default.
    pub settings: BTreeMap<String, Option<String>>,
}

/// A topic as the log knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicInfo {
    /// Name.
    pub name: Arc<str>,
    /// Settings.
    pub config: TopicConfig,
}

/// The four positions of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionOffsets {
    /// First offset still stored.
    pub log_start: Offset,
    /// Up to here (exclusive) no transaction is open: what read-committed readers see.
    pub last_stable: Offset,
    /// Next offset to be written.
    pub log_end: Offset,
    /// Up to here (exclusive) a power cut takes nothing.
    pub durable: Offset,
}

/// What a partition takes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionUsage {
    /// Segments, the one that grows included.
    pub segments: usize,
    /// Bytes of their record batches.
    pub bytes: u64,
}

/// What a reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Up to the last stable offset, without records of aborted transactions.
    ReadCommitted,
    /// Everything written.
    ReadUncommitted,
}

/// Outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the batch's first record.
    pub base_offset: Offset,
    /// Offset of the batch's last record.
    pub last_offset: Offset,
    /// The log already held this batch (same producer, epoch and sequence); nothing was written and the offsets are the ones it has.
    pub duplicate: bool,
}

impl Appended {
    /// The log held it already, at these offsets.
    pub(crate) fn before((base_offset, last_offset): (Offset, Offset)) -> Self {
        Self {
            base_offset,
            last_offset,
            duplicate: true,
        }
    }
}

/// Hears whether records are on disk.
pub type SyncWaiter = Box<dyn FnOnce(LogResult<()>) + Send>;

/// Hears where a batch was appended, or why it was not.
pub type AppendWaiter = Box<dyn FnOnce(LogResult<Appended>) + Send>;

/// What a partition remembers of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerState {
    /// Latest epoch seen.
    pub epoch: i16,
    /// Sequence of the last record of that epoch; -1 before the first.
    pub last_sequence: i32,
    /// First offset of its open transaction.
    pub open_transaction: Option<Offset>,
}

/// Batches handed out by a read.
#[derive(Debug, Clone)]
pub struct Fetch {
    /// Whole batches in offset order; the first may begin before the asked offset (skip its earlier records). Control batches and, under
    /// read-committed, aborted batches are left out.
    pub batches: Vec<BatchView>,
    /// Where the next read continues; it moves past what was left out, so a loop over it always ends.
    pub next_offset: Offset,
}

/// Called after each append or transaction end on any partition, once for batches that were written together, by the thread that wrote: it must only
/// flag and wake.
pub trait AppendListener: Send + Sync {
    /// `partition` has new records, or records that became visible.
    fn appended(&self, partition: &TopicPartition);
}

/// A partitioned log.
///
/// An append is in the operating system's hands when [`Log::append`] returns and survives a power cut only after [`Log::sync`] returned for
/// its last offset. A failed sync poisons the partition: every later append and sync fails until it is reopened.
pub trait Log: Send + Sync {
    /// Makes a topic durable before it returns. Fails when the name is taken or not a legal Kafka topic name.
    fn create_topic(&self, name: &str, config: TopicConfig) -> LogResult<()>;

    /// Removes a topic with its data. Readers that hold batches keep them.
    fn delete_topic(&self, name: &str) -> LogResult<()>;

    /// Changes a topic; all of it is durable and in effect when this returns, or nothing is.
    fn alter_topic(&self, name: &str, change: &TopicChange) -> LogResult<()>;

    /// One topic.
    fn topic(&self, name: &str) -> Option<TopicInfo>;

    /// All topics by name.
    fn topics(&self) -> Vec<TopicInfo>;

    /// Appends one batch. With a producer in it, sequence and epoch are checked as Kafka does, except that a repeat of any earlier sequence
    /// (not just of the last five batches) counts as a duplicate.
    fn append(&self, partition: &TopicPartition, batch: EncodedBatch) -> LogResult<Appended>;

    /// Appends one batch and returns at once; `waiter` is told where it is, exactly once, when it is as safe as `log.fsync` has it: what a producer
    /// with `acks=all` sees. Batches that come together are written with one call and synced with one; each is checked, and fails, by itself. What one
    /// caller hands over stays in order, but [`Log::append`] may overtake it, and nobody sees it before it is written. When too much is waiting,
    /// the caller writes it. The waiter must not wait for anything, though it may hand over the next batch; another thread may call it, or
    /// this call itself.
    fn produce(&self, partition: &TopicPartition, batch: EncodedBatch, waiter: AppendWaiter) {
        match self.append(partition, batch) {
            Ok(appended) => {
                let end = Offset(appended.last_offset.0 + 1);
                let waiter = move |synced: LogResult<()>| waiter(synced.map(|()| appended));
                self.when_synced(partition, end, Box::new(waiter));
            }
            Err(error) => waiter(Err(error)),
        }
    }

    /// Writes a commit or abort marker for the producer's open transaction; without one it does nothing and answers `None`.
    fn end_transaction(
        &self,
        partition: &TopicPartition,
        producer: ProducerId,
        epoch: i16,
        commit: bool,
    ) -> LogResult<Option<Offset>>;

    /// What the partition remembers of a producer.
    fn producer(
        &self,
        partition: &TopicPartition,
        producer: ProducerId,
    ) -> LogResult<Option<ProducerState>>;

    /// The producers that have an open transaction in the partition, with their epochs, in the order in which the transactions began.
    fn open_transactions(&self, partition: &TopicPartition) -> LogResult<Vec<(ProducerId, i16)>>;

    /// Returns when everything below `up_to` is on disk. Callers who wait together share one fdatasync. Under `log.fsync = interval | never`
    /// it returns at once.
    fn sync(&self, partition: &TopicPartition, up_to: Offset) -> LogResult<()>;

    /// Like [`Log::sync`], but returns at once: `waiter` is told the outcome, exactly once, by whichever thread syncs, or by this call itself. It
    /// must not wait for anything.
    fn when_synced(&self, partition: &TopicPartition, up_to: Offset, waiter: SyncWaiter);

    /// Reads whole batches from `from`, at least one if there is any, then up to `max_bytes`.
    fn read(
        &self,
        partition: &TopicPartition,
        from: Offset,
        max_bytes: usize,
        isolation: Isolation,
    ) -> LogResult<Fetch>;

    /// Current positions.
    fn offsets(&self, partition: &TopicPartition) -> LogResult<PartitionOffsets>;

    /// First offset whose batch may hold a timestamp (milliseconds since the epoch) at or after `timestamp`; log end when there is none.
    fn offset_for_timestamp(&self, partition: &TopicPartition, timestamp: i64)
    -> LogResult<Offset>;

    /// Allows whole segments below `offset` to be dropped, and moves the log start there.
    fn drop_below(&self, partition: &TopicPartition, offset: Offset) -> LogResult<()>;

    /// Retention and compaction leave alone what lies at or behind `from`, until the next call says otherwise; `None` lets go of all. A reader that
    /// must be able to read the same again (a query's replay) holds on to it so. Lasts as long as the process.
    fn hold_from(&self, partition: &TopicPartition, from: Option<Offset>) -> LogResult<()>;

    /// Registers a listener for the life of the log.
    fn add_listener(&self, listener: Arc<dyn AppendListener>);
}

/// A record as it is read from a batch: slices into the batch's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Position.
    pub offset: Offset,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// Key bytes.
    pub key: Option<Bytes>,
    /// Value bytes; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// Headers in order.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}
