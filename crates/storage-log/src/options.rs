//! How a log behaves, with the reason for each default.

use std::time::Duration;

use crate::error::{LogError, LogResult};

/// When an appended batch reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsyncPolicy {
    /// [`crate::Log::sync`] returns after an fdatasync: what it covered survives a power cut.
    Always,
    /// A thread syncs what is new, this often; a power cut takes at most that much time.
    Interval(Duration),
    /// The operating system writes back when it likes (Kafka's default). A crash of the process alone takes nothing.
    Never,
}

/// Options of an embedded log. A topic's own settings win over `segment_bytes`, `index_interval_bytes` and `max_batch_bytes`.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// When data reaches the disk. Default: always, so that an acknowledged record survives a power cut.
    pub fsync: FsyncPolicy,
    /// A segment is sealed before it grows beyond this. Default 1 GiB as in Kafka; at most 2 GiB - 1, because index positions are 32 bits.
    pub segment_bytes: u64,
    /// One index entry per so many bytes. Default 4 KiB as in Kafka: a seek then reads about one page too much.
    pub index_interval_bytes: u32,
    /// Largest batch taken. Default 16 MiB: a step writes one batch per partition and may hold tens of thousands of rows.
    pub max_batch_bytes: usize,
    /// How much of a partition's end is kept in memory for readers that follow it. Default 1 MiB: a few steps.
    pub tail_bytes: usize,
    /// What all partitions together keep so. Default 32 MiB; with more than 32 busy partitions each keeps less.
    pub tail_total_bytes: usize,
    /// How many files are kept open. Default 512: half of the usual soft limit of a process. Files with bytes that are not synced come on top.
    pub max_open_files: usize,
    /// How often retention and compaction are looked after once [`crate::EmbeddedLog::start_maintenance`] was called. Default 10 s.
    pub maintenance_interval: Duration,
    /// Memory in which a compaction remembers the last offset of each key. Default 16 MiB: 600,000 keys a pass; more keys take more passes.
    pub compaction_map_bytes: usize,
    /// Bytes of a partition that may be written and not synced under `always` and `interval`: whoever appends more has to sync first.
    /// Default 256 MiB, a second or so of a good disk.
    pub max_unsynced_bytes: u64,
    /// What all partitions together keep in memory of the indexes of sealed segments. Default 32 MiB: six segments of 1 GiB.
    pub index_cache_bytes: usize,
    /// How many producers a partition remembers before it forgets the longest silent ones. Default 10,000.
    pub max_producers: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            fsync: FsyncPolicy::Always,
            segment_bytes: 1 << 30,
            index_interval_bytes: 4096,
            max_batch_bytes: 16 << 20,
            tail_bytes: 1 << 20,
            tail_total_bytes: 32 << 20,
            max_open_files: 512,
            maintenance_interval: Duration::from_secs(10),
            compaction_map_bytes: 16 << 20,
            max_unsynced_bytes: 256 << 20,
            index_cache_bytes: 32 << 20,
            max_producers: 10_000,
        }
    }
}

impl LogOptions {
    /// Largest `segment_bytes`: positions in Kafka's index are signed 32-bit numbers.
    pub const MAX_SEGMENT_BYTES: u64 = i32::MAX as u64;

    /// Fails when a value is out of its range.
    pub fn validate(&self) -> LogResult<()> {
        let refuse = |name: &str, value: String, reason: &str| {
            Err(LogError::InvalidSetting {
                name: name.into(),
                value,
                reason: reason.into(),
            })
        };
        if self.segment_bytes == 0 || self.segment_bytes > Self::MAX_SEGMENT_BYTES {
            return refuse(
                "segment.bytes",
                self.segment_bytes.to_string(),
                "1 to 2147483647",
            );
        }
        if self.max_batch_bytes < 128 || self.max_batch_bytes as u64 > Self::MAX_SEGMENT_BYTES {
            return refuse(
                "max.message.bytes",
                self.max_batch_bytes.to_string(),
                "128 to 2147483647",
            );
        }
        if self.max_open_files < 8 {
            return refuse(
                "log.max.open.files",
                self.max_open_files.to_string(),
                "at least 8",
            );
        }
        if self.max_producers == 0 {
            return refuse("log.max.producers", "0".into(), "at least 1");
        }
        Ok(())
    }
}
