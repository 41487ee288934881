//! What can go wrong in the log, sorted by who can do something about it.

use std::{io, path::PathBuf, sync::Arc};

use crate::{
    batch::{BatchError, Compression},
    log::{Offset, ProducerId, TopicPartition},
};

/// Result of every call into the log.
pub type LogResult<T> = Result<T, LogError>;

/// Who can do something about a [`LogError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller asked for something that cannot be.
    UserMistake,
    /// A producer is out of step with what the partition remembers of it.
    Sequence,
    /// Disk full, permissions, a folder in use, a failing device.
    Environment,
    /// Stored bytes are not what was written.
    Corruption,
    /// A sync failed earlier; the partition must be reopened.
    Poisoned,
}

/// Errors of the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The name is taken.
    #[error("topic \"{topic}\" already exists")]
    TopicExists {
        /// The name.
        topic: String,
    },
    /// There is no such topic.
    #[error("topic \"{topic}\" does not exist")]
    UnknownTopic {
        /// The name.
        topic: String,
    },
    /// The topic exists, this partition of it does not.
    #[error("partition {} of topic \"{}\" does not exist", .partition.partition.0, .partition.topic)]
    UnknownPartition {
        /// The partition that was asked for.
        partition: TopicPartition,
    },
    /// Kafka would refuse the name too.
    #[error("\"{name}\" is not a legal topic name: {reason}")]
    IllegalTopicName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A topic setting or option has a value it cannot have.
    #[error("setting \"{name}\" cannot be \"{value}\": {reason}")]
    InvalidSetting {
        /// Kafka's name of the setting.
        name: String,
        /// The value given.
        value: String,
        /// What is expected.
        reason: String,
    },
    /// The batch is larger than the partition takes.
    #[error("batch of {bytes} bytes for {partition} is larger than {limit} bytes")]
    BatchTooLarge {
        /// Where it was to be appended.
        partition: TopicPartition,
        /// Its size.
        bytes: usize,
        /// The limit (`max.message.bytes`).
        limit: usize,
    },
    /// The offset is not stored, or not yet.
    #[error("offset {} of {partition} is outside {}..{}", .offset.0, .log_start.0, .log_end.0)]
    OffsetOutOfRange {
        /// The partition.
        partition: TopicPartition,
        /// What was asked for.
        offset: Offset,
        /// First offset stored.
        log_start: Offset,
        /// Next offset to be written.
        log_end: Offset,
    },
    /// Bytes that should be a record batch are not a valid one.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A batch skips sequences, or overlaps the last one.
    #[error("producer {} sent sequence {sequence} to {partition}, {expected} is next", .producer.0)]
    OutOfOrderSequence {
        /// The partition.
        partition: TopicPartition,
        /// The producer.
        producer: ProducerId,
        /// What it sent.
        sequence: i32,
        /// What would have been right.
        expected: i32,
    },
    /// A newer instance of the producer has taken over.
    #[error("producer {} with epoch {epoch} was fenced off {partition} by epoch {current}", .producer.0)]
    ProducerFenced {
        /// The partition.
        partition: TopicPartition,
        /// The producer.
        producer: ProducerId,
        /// Its epoch.
        epoch: i16,
        /// The latest epoch.
        current: i16,
    },
    /// A batch outside a transaction came from a producer that has one open.
    #[error("producer {} has a transaction open on {partition} since offset {}", .producer.0, .since.0)]
    TransactionOpen {
        /// The partition.
        partition: TopicPartition,
        /// The producer.
        producer: ProducerId,
        /// First offset of the transaction.
        since: Offset,
    },
    /// Another process has the folder open.
    #[error("folder \"{}\" is in use by another process ({owner})", .folder.display())]
    FolderInUse {
        /// The folder.
        folder: PathBuf,
        /// What the lock file says of its holder.
        owner: String,
    },
    /// A folder that a new topic needs holds data that belongs to no topic.
    #[error("folder \"{}\" holds data of no known topic", .folder.display())]
    FolderNotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// The operating system refused.
    #[error("could not {attempted}")]
    Io {
        /// What was attempted, with the path.
        attempted: String,
        /// Its answer.
        #[source]
        source: io::Error,
    },
    /// A stored range of a partition is damaged. Other partitions are not concerned.
    #[error("{partition} is damaged from offset {} to {}: {reason}", .from.0, .to.0)]
    Corrupt {
        /// The partition.
        partition: TopicPartition,
        /// First offset that cannot be read.
        from: Offset,
        /// End (exclusive) of what cannot be trusted, as far as it is known.
        to: Offset,
        /// What was found.
        reason: String,
    },
    /// The partition could not be opened; others are not concerned.
    #[error("{partition} is stopped")]
    Stopped {
        /// The partition.
        partition: TopicPartition,
        /// Why.
        #[source]
        cause: Arc<LogError>,
    },
    /// A small metadata file is damaged.
    #[error("file \"{}\" is damaged: {reason}", .path.display())]
    CorruptFile {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The folder was written by a later release.
    #[error("file \"{}\" has format version {version}, this release reads up to {supported}", .path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// What this release reads.
        supported: u32,
    },
    /// A sync of the partition failed, so nobody knows what is on disk. It takes no writes until it is reopened.
    #[error("{partition} takes no writes since a sync failed: {reason}")]
    Poisoned {
        /// The partition.
        partition: TopicPartition,
        /// The first failure.
        reason: String,
    },
}

impl LogError {
    /// Who can do something about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TopicExists { .. }
            | Self::UnknownTopic { .. }
            | Self::UnknownPartition { .. }
            | Self::IllegalTopicName { .. }
            | Self::InvalidSetting { .. }
            | Self::BatchTooLarge { .. }
            | Self::OffsetOutOfRange { .. } => ErrorKind::UserMistake,
            Self::OutOfOrderSequence { .. }
            | Self::ProducerFenced { .. }
            | Self::TransactionOpen { .. } => ErrorKind::Sequence,
            Self::FolderInUse { .. }
            | Self::FolderNotEmpty { .. }
            | Self::Io { .. }
            | Self::NewerFormat { .. } => ErrorKind::Environment,
            Self::Batch(_) | Self::Corrupt { .. } | Self::CorruptFile { .. } => {
                ErrorKind::Corruption
            }
            Self::Stopped { cause, .. } => cause.kind(),
            Self::Poisoned { .. } => ErrorKind::Poisoned,
        }
    }

    /// True when the disk (or the quota) is full: writes can be tried again once there is space.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }

    /// Wraps an I/O error; to be used as `map_err(LogError::io(|| format!("write \"{path}\"")))`.
    pub(crate) fn io(attempted: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            attempted: attempted(),
            source,
        }
    }
}

impl From<(Compression, io::Error)> for BatchError {
    fn from((codec, source): (Compression, io::Error)) -> Self {
        Self::Decompression { codec, source }
    }
}
