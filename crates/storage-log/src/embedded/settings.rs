//! A topic's settings: which names there are, what values they take, and what they mean for a partition.

use crate::{
    error::{LogError, LogResult},
    log::TopicConfig,
    options::LogOptions,
};

/// Largest number of partitions of a topic: each has a folder and a lock.
const MAX_PARTITIONS: u32 = 10_000;

/// What a partition needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartitionSettings {
    pub(crate) segment_bytes: u64,
    pub(crate) max_batch_bytes: usize,
    pub(crate) index_interval_bytes: u32,
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
            max_batch_bytes: options.max_batch_bytes,
            index_interval_bytes: options.index_interval_bytes,
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
            "max.message.bytes" => {
                self.max_batch_bytes =
                    usize::try_from(number(name, value, 0, max)?).unwrap_or(usize::MAX);
            }
            "index.interval.bytes" => {
                self.index_interval_bytes =
                    u32::try_from(number(name, value, 0, max)?).unwrap_or(u32::MAX);
            }
            "retention.ms" | "retention.bytes" => {
                number(name, value, -1, i64::MAX)?;
            }
            "segment.ms"
            | "delete.retention.ms"
            | "min.compaction.lag.ms"
            | "max.compaction.lag.ms"
            | "file.delete.delay.ms" => {
                number(name, value, 0, i64::MAX)?;
            }
            "min.cleanable.dirty.ratio" => {
                value
                    .parse()
                    .ok()
                    .filter(|ratio| (0.0..=1.0f64).contains(ratio))
                    .ok_or_else(|| invalid(name, value, "a number from 0 to 1"))?;
            }
            "cleanup.policy" => one_of(
                name,
                value,
                &["delete", "compact", "compact,delete", "delete,compact"],
            )?,
            "compression.type" => {
                one_of(
                    name,
                    value,
                    &["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"],
                )?;
            }
            "message.timestamp.type" => one_of(name, value, &["CreateTime", "LogAppendTime"])?,
            _ => return Err(invalid(name, value, "no topic setting has this name")),
        }
        Ok(())
    }
}

fn number(name: &str, value: &str, min: i64, max: i64) -> LogResult<i64> {
    let number = value.parse().ok().filter(|n| (min..=max).contains(n));
    number.ok_or_else(|| invalid(name, value, &format!("a whole number from {min} to {max}")))
}

fn one_of(name: &str, value: &str, allowed: &[&str]) -> LogResult<()> {
    if allowed.contains(&value) {
        Ok(())
    } else {
        Err(invalid(
            name,
            value,
            &format!("one of {}", allowed.join(" | ")),
        ))
    }
}

fn invalid(name: &str, value: &str, reason: &str) -> LogError {
    LogError::InvalidSetting {
        name: name.into(),
        value: value.into(),
        reason: reason.into(),
    }
}
