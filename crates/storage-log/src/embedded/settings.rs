//! A topic's settings: which names there are, what values they take, and what they mean for a partition.
//!
//! Names and values are Kafka's. `file.delete.delay.ms` is taken for the sake of scripts and changes nothing: a file goes at once, and whoever still
//! reads it holds it open.

use crate::{
    batch::Compression,
    error::{LogError, LogResult},
    log::TopicConfig,
    options::LogOptions,
};

/// Largest number of partitions of a topic: each has a folder and a lock.
const MAX_PARTITIONS: u32 = 10_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// What becomes of old records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CleanupPolicy {
    /// Segments go once they are older than `retention.ms` or beyond `retention.bytes`.
    pub(crate) delete: bool,
    /// Of each key the last record stays.
    pub(crate) compact: bool,
}

/// What a partition needs to know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PartitionSettings {
    pub(crate) segment_bytes: u64,
    pub(crate) segment_ms: i64,
    pub(crate) max_batch_bytes: usize,
    pub(crate) index_interval_bytes: u32,
    pub(crate) cleanup: CleanupPolicy,
    /// `None` keeps records for ever.
    pub(crate) retention_ms: Option<i64>,
    /// `None` keeps any amount.
    pub(crate) retention_bytes: Option<u64>,
    pub(crate) compaction: CompactionSettings,
    /// `None` stores batches as they come.
    pub(crate) compression: Option<Compression>,
    /// The log's clock, not the producer's, says when a record was made.
    pub(crate) log_append_time: bool,
}

/// When a partition is compacted, and what of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CompactionSettings {
    /// It is worth it once so large a part of the sealed segments was not compacted yet.
    pub(crate) min_dirty_ratio: f64,
    /// How long a tombstone stays after the first compaction that saw it.
    pub(crate) tombstone_ms: i64,
    /// Records that are younger stay as they are.
    pub(crate) min_lag_ms: i64,
    /// Once a record is older than that it is compacted whatever the ratio.
    pub(crate) max_lag_ms: i64,
}

impl PartitionSettings {
    /// The topic's settings over the log's options. Fails for a value that a setting cannot have and for names that no topic setting has.
    pub(crate) fn resolve(config: &TopicConfig, options: &LogOptions) -> LogResult<Self> {
        if config.partitions == 0 || config.partitions > MAX_PARTITIONS {
            return Err(LogError::InvalidSetting {
                name: "partitions".into(),
                value: config.partitions.to_string(),
                reason: format!("1 to {MAX_PARTITIONS}"),
            });
        }
        let mut resolved = Self {
            segment_bytes: options.segment_bytes,
            segment_ms: 7 * DAY_MS,
            max_batch_bytes: options.max_batch_bytes,
            index_interval_bytes: options.index_interval_bytes,
            cleanup: CleanupPolicy {
                delete: true,
                compact: false,
            },
            retention_ms: None,
            retention_bytes: None,
            compaction: CompactionSettings {
                min_dirty_ratio: 0.5,
                tombstone_ms: DAY_MS,
                min_lag_ms: 0,
                max_lag_ms: i64::MAX,
            },
            compression: None,
            log_append_time: false,
        };
        for (name, value) in &config.settings {
            resolved.take(name, value)?;
        }
        Ok(resolved)
    }

    fn take(&mut self, name: &str, value: &str) -> LogResult<()> {
        let max = i64::from(i32::MAX);
        match name {
            // Kafka asks for at least 14 bytes; a smaller segment than a batch would be pointless anyway.
            "segment.bytes" => self.segment_bytes = number(name, value, 14, max)?.unsigned_abs(),
            "segment.ms" => self.segment_ms = number(name, value, 1, i64::MAX)?,
            "max.message.bytes" => {
                self.max_batch_bytes =
                    usize::try_from(number(name, value, 0, max)?).unwrap_or(usize::MAX);
            }
            "index.interval.bytes" => {
                self.index_interval_bytes =
                    u32::try_from(number(name, value, 0, max)?).unwrap_or(u32::MAX);
            }
            "retention.ms" => {
                let ms = number(name, value, -1, i64::MAX)?;
                self.retention_ms = (ms >= 0).then_some(ms);
            }
            "retention.bytes" => {
                self.retention_bytes = u64::try_from(number(name, value, -1, i64::MAX)?).ok();
            }
            "cleanup.policy" => self.cleanup = cleanup_policy(name, value)?,
            "min.cleanable.dirty.ratio" => {
                self.compaction.min_dirty_ratio = value
                    .parse()
                    .ok()
                    .filter(|ratio| (0.0..=1.0f64).contains(ratio))
                    .ok_or_else(|| invalid(name, value, "a number from 0 to 1"))?;
            }
            "delete.retention.ms" => {
                self.compaction.tombstone_ms = number(name, value, 0, i64::MAX)?;
            }
            "min.compaction.lag.ms" => {
                self.compaction.min_lag_ms = number(name, value, 0, i64::MAX)?;
            }
            "max.compaction.lag.ms" => {
                self.compaction.max_lag_ms = number(name, value, 1, i64::MAX)?;
            }
            "file.delete.delay.ms" => {
                number(name, value, 0, i64::MAX)?;
            }
            "compression.type" => self.compression = compression(name, value)?,
            "message.timestamp.type" => {
                self.log_append_time = match value {
                    "CreateTime" => false,
                    "LogAppendTime" => true,
                    _ => return Err(invalid(name, value, "CreateTime or LogAppendTime")),
                };
            }
            _ => return Err(invalid(name, value, "no topic setting has this name")),
        }
        Ok(())
    }
}

fn cleanup_policy(name: &str, value: &str) -> LogResult<CleanupPolicy> {
    let mut policy = CleanupPolicy {
        delete: false,
        compact: false,
    };
    for word in value.split(',').map(str::trim) {
        match word {
            "delete" => policy.delete = true,
            "compact" => policy.compact = true,
            _ => return Err(invalid(name, value, "delete, compact, or compact,delete")),
        }
    }
    Ok(policy)
}

fn compression(name: &str, value: &str) -> LogResult<Option<Compression>> {
    Ok(Some(match value {
        "producer" => return Ok(None),
        "uncompressed" | "none" => Compression::None,
        "gzip" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        _ => {
            let reason = "one of producer | uncompressed | gzip | snappy | lz4 | zstd";
            return Err(invalid(name, value, reason));
        }
    }))
}

fn number(name: &str, value: &str, min: i64, max: i64) -> LogResult<i64> {
    let number = value.parse().ok().filter(|n| (min..=max).contains(n));
    number.ok_or_else(|| invalid(name, value, &format!("a whole number from {min} to {max}")))
}

fn invalid(name: &str, value: &str, reason: &str) -> LogError {
    LogError::InvalidSetting {
        name: name.into(),
        value: value.into(),
        reason: reason.into(),
    }
}
