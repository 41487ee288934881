//! The partitioned, segmented log that everything else stands on.
//!
//! The promise, in five sentences:
//! 1. A record whose offset was covered by a [`Log::sync`] that returned (under [`FsyncPolicy::Always`]) survives a power cut, and every restart
//!    finds it at the same offset.
//! 2. Offsets of a partition are dense and never given out twice.
//! 3. After a crash exactly the acknowledged records are there, plus at most whole batches that were written and not yet acknowledged.
//! 4. A batch that carries a producer's fields is appended once, however often it is sent, across restarts too.
//! 5. Bytes that are not what was written are never handed out: a damaged range stops its partition, with an error that names the offsets.
//!
//! The types meet like this: a [`BatchBuilder`] makes an [`EncodedBatch`], a [`Log`] appends it and hands out [`BatchView`]s, whose [`Records`] are
//! borrowed from the stored bytes. [`EmbeddedLog`] is the log on this machine's [`Disk`].

mod batch;
mod clock;
mod disk;
mod embedded;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod log;
mod options;
mod partitioner;
mod producer;
pub mod tools;

pub use batch::{
    BatchBuilder, BatchError, BatchView, Compression, ControlKind, ControlMarker, EncodedBatch,
    Headers, MAX_UNCOMPRESSED_BYTES, ProducerFields, RecordIter, RecordRef, Records,
};
pub use clock::{Clock, ManualClock, SystemClock};
pub use disk::{Disk, DiskFile, DiskLock, FileDisk, MemoryDisk};
pub use embedded::{EmbeddedLog, Finding, LogBackup, Severity, VerifyReport, verify};
pub use error::{ErrorKind, LogError, LogResult};
pub use log::{
    AppendListener, AppendWaiter, Appended, Fetch, Isolation, Log, Offset, PartitionId,
    PartitionOffsets, PartitionUsage, ProducerId, ProducerState, Record, SyncWaiter, TopicChange,
    TopicConfig, TopicInfo, TopicPartition,
};
pub use options::{FsyncPolicy, LogOptions};
pub use partitioner::{Partitioner, murmur2, partition_for_key};
