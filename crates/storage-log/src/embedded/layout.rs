//! Names in a data folder.
//!
//! ```text
//! LOCK                                   held by the process that has the folder open
//! topics/<topic>.topic                   settings of a topic; it exists once this file does
//! topics/<topic>.deleted                 a deletion that is under way
//! <topic>-<partition>/                   one partition, laid out as Kafka does
//!   00000000000000000000.log             segment: record batches; named by the offset of its first one
//!   00000000000000000000.index           sparse index: offset -> position
//!   00000000000000000000.timeindex       sparse index: timestamp -> offset
//!   00000000000000000000.txnindex        transactions aborted in the segment
//!   00000000000000000000.seal            what a sealed segment must look like (length, end, checksums of the indexes)
//!   00000000000000001000.snapshot        producers as they were at that offset
//!   log-start                            first offset kept, once something was dropped
//!   compaction                           how far it is compacted, once it was
//!   exchange                             an exchange of segments that is under way; their new files end in .cleaned
//!   recovery-point                       below this offset everything was synced
//! ```

use std::path::{Path, PathBuf};

use crate::{
    error::{LogError, LogResult},
    log::TopicPartition,
};

pub(crate) const LOCK: &str = "LOCK";
pub(crate) const TOPICS: &str = "topics";
pub(crate) const LOG_START: &str = "log-start";
pub(crate) const RECOVERY_POINT: &str = "recovery-point";
pub(crate) const COMPACTION: &str = "compaction";
pub(crate) const EXCHANGE: &str = "exchange";
/// Extension of the files of a segment that will replace others.
pub(crate) const CLEANED: &str = "cleaned";
/// Extension of a file that was being written; worth nothing after a crash.
pub(crate) const TEMPORARY: &str = "tmp";
pub(crate) const TOPIC: &str = "topic";
pub(crate) const DELETED: &str = "deleted";

/// The files of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentFile {
    Log,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    Seal,
    Snapshot,
}

impl SegmentFile {
    pub(crate) const ALL: [Self; 6] = [
        Self::Log,
        Self::OffsetIndex,
        Self::TimeIndex,
        Self::TransactionIndex,
        Self::Seal,
        Self::Snapshot,
    ];

    fn extension(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::OffsetIndex => "index",
            Self::TimeIndex => "timeindex",
            Self::TransactionIndex => "txnindex",
            Self::Seal => "seal",
            Self::Snapshot => "snapshot",
        }
    }

    /// Path of this file of the segment that begins at `base`.
    pub(crate) fn path(self, dir: &Path, base: i64) -> PathBuf {
        dir.join(format!("{base:020}.{}", self.extension()))
    }

    /// Path of this file of a segment that will replace the one that begins at `base`.
    pub(crate) fn cleaned_path(self, dir: &Path, base: i64) -> PathBuf {
        dir.join(format!("{base:020}.{}.{CLEANED}", self.extension()))
    }

    /// Reads a name back into what it is and the offset in it.
    pub(crate) fn parse(name: &str) -> Option<(Self, i64)> {
        let (digits, extension) = name.split_once('.')?;
        let kind = Self::ALL
            .into_iter()
            .find(|kind| kind.extension() == extension)?;
        if digits.len() != 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some((kind, digits.parse().ok()?))
    }
}

/// Folder of a partition.
pub(crate) fn partition_dir(root: &Path, partition: &TopicPartition) -> PathBuf {
    root.join(partition.to_string())
}

/// Longest topic name, as in Kafka: with a partition number it must still be a file name.
const MAX_TOPIC_NAME: usize = 249;

/// Fails for names that Kafka does not take. What passes is safe as a file name.
pub(crate) fn check_topic_name(name: &str) -> LogResult<()> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name == "." || name == ".." {
        "it stands for a folder"
    } else if name.len() > MAX_TOPIC_NAME {
        "it is longer than 249 characters"
    } else if !name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    {
        "only letters, digits, \".\", \"_\" and \"-\" are allowed"
    } else {
        return Ok(());
    };
    Err(LogError::IllegalTopicName {
        name: name.into(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_names_are_those_of_kafka_and_come_back() {
        let path = SegmentFile::TimeIndex.path(Path::new("/d"), 1_234);
        assert_eq!(path, Path::new("/d/00000000000000001234.timeindex"));
        assert_eq!(
            SegmentFile::parse("00000000000000001234.timeindex"),
            Some((SegmentFile::TimeIndex, 1_234))
        );
        for name in [
            "1.log",
            "0000000000000000000x.log",
            "00000000000000000000.bak",
            "00000000000000000000.log.tmp",
            "log-start",
        ] {
            assert_eq!(SegmentFile::parse(name), None, "{name}");
        }
    }

    #[test]
    fn topic_names_cannot_leave_the_folder() {
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "a b",
            "ä",
            "a\0",
            &"x".repeat(250),
        ] {
            assert!(check_topic_name(name).is_err(), "{name:?}");
        }
        for name in ["a", "A.b_c-9", "...", &"x".repeat(249)] {
            assert!(check_topic_name(name).is_ok(), "{name:?}");
        }
    }
}
