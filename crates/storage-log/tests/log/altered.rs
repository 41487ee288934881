//! Each setting of a topic, changed while the log runs: what it did not do before, it does after.

use std::{path::Path, sync::Arc};

use highwater_storage_log::{
    BatchBuilder, EmbeddedLog, Isolation, Log, LogError, LogOptions, ManualClock, MemoryDisk,
    Offset, PartitionUsage, TopicPartition,
};

use crate::support::*;

const HOUR: i64 = 3_600_000;
/// When the log's clock begins.
const BEGAN: i64 = 1_000 * HOUR;

struct Running {
    disk: MemoryDisk,
    clock: Arc<ManualClock>,
    log: EmbeddedLog,
    at: TopicPartition,
}

impl Running {
    fn new() -> Self {
        let disk = MemoryDisk::new();
        let clock = Arc::new(ManualClock::at(BEGAN));
        let log = EmbeddedLog::open_with(
            Arc::new(disk.clone()),
            clock.clone(),
            Path::new("/data"),
            LogOptions::default(),
        );
        let log = log.expect("open");
        let at = with_topic(&log);
        Self {
            disk,
            clock,
            log,
            at,
        }
    }

    fn alter(&self, name: &str, value: &str) {
        self.log
            .alter_topic("events", &changed(&[(name, value)]))
            .expect("alter");
    }

    /// Appends a record of that many bytes, made now.
    fn put(&self, key: &str, value_bytes: Option<usize>) {
        let value = value_bytes.map(|bytes| vec![b'x'; bytes]);
        let mut builder = BatchBuilder::new();
        let now = highwater_storage_log::Clock::now_ms(&*self.clock);
        builder.push(now, Some(key.as_bytes()), value.as_deref(), &[]);
        self.log
            .append(&self.at, builder.finish(None))
            .expect("append");
    }

    fn usage(&self) -> PartitionUsage {
        self.log.usage(&self.at).expect("usage")
    }

    fn log_start(&self) -> i64 {
        self.log.offsets(&self.at).expect("offsets").log_start.0
    }

    fn maintain(&self) {
        self.log.maintain().expect("maintain");
    }

    fn records(&self) -> usize {
        let mut next = Offset(self.log_start());
        let mut count = 0;
        loop {
            let fetch = self
                .log
                .read(&self.at, next, 1 << 20, Isolation::ReadCommitted)
                .expect("read");
            count += fetch
                .batches
                .iter()
                .map(|b| b.record_count())
                .sum::<usize>();
            if fetch.next_offset == next {
                return count;
            }
            next = fetch.next_offset;
        }
    }

    /// Bytes of the files of that kind.
    fn files(&self, extension: &str) -> u64 {
        let files = self.disk.files().into_iter();
        files
            .filter(|(path, _)| path.extension().is_some_and(|e| e == extension))
            .map(|(_, bytes)| bytes)
            .sum()
    }

    /// Ten segments with a record each.
    fn with_segments() -> Self {
        let running = Self::new();
        running.alter("segment.bytes", "100");
        (0..10).for_each(|i| running.put(&format!("{}", i % 2), Some(100)));
        assert_eq!(running.usage().segments, 10);
        running
    }
}

#[test]
fn segment_bytes() {
    let running = Running::new();
    (0..10).for_each(|_| running.put("k", Some(100)));
    assert_eq!(running.usage().segments, 1);
    running.alter("segment.bytes", "400");
    (0..10).for_each(|_| running.put("k", Some(100)));
    assert!(running.usage().segments >= 5);
}

#[test]
fn segment_ms() {
    let running = Running::new();
    running.put("k", Some(1));
    running.clock.advance(HOUR);
    running.put("k", Some(1));
    assert_eq!(running.usage().segments, 1);
    running.alter("segment.ms", "1000");
    running.put("k", Some(1));
    assert_eq!(running.usage().segments, 2);
    running.clock.advance(2_000);
    running.maintain();
    assert_eq!(running.usage().segments, 3, "without an append, too");
}

#[test]
fn max_message_bytes() {
    let running = Running::new();
    running.put("k", Some(500));
    running.alter("max.message.bytes", "400");
    let mut builder = BatchBuilder::new();
    builder.push(0, None, Some(&[0; 500]), &[]);
    let refused = running.log.append(&running.at, builder.finish(None));
    assert!(
        matches!(refused, Err(LogError::BatchTooLarge { limit: 400, .. })),
        "{refused:?}"
    );
    running.alter("max.message.bytes", "1000");
    running.put("k", Some(500));
}

#[test]
fn index_interval_bytes() {
    let running = Running::new();
    running.alter("segment.bytes", "10000");
    (0..60).for_each(|_| running.put("k", Some(100)));
    running.alter("segment.bytes", "9000");
    let coarse = running.files("index");
    running.alter("index.interval.bytes", "100");
    // The segment that grows keeps its interval.
    (0..200).for_each(|_| running.put("k", Some(100)));
    assert!(running.files("index") > 10 * coarse.max(8));
}

#[test]
fn retention_ms() {
    let running = Running::with_segments();
    running.clock.advance(HOUR);
    running.maintain();
    assert_eq!(running.log_start(), 0);
    running.alter("retention.ms", "60000");
    running.put("new", Some(1));
    running.maintain();
    assert_eq!((running.log_start(), running.records()), (10, 1));
    running.alter("retention.ms", "-1");
    running.clock.advance(HOUR);
    running.maintain();
    assert_eq!(running.records(), 1, "for ever again");
}

#[test]
fn retention_bytes() {
    let running = Running::with_segments();
    running.maintain();
    assert_eq!(running.log_start(), 0);
    running.alter("retention.bytes", "500");
    running.maintain();
    let left = running.usage().bytes;
    assert!((500..800).contains(&left), "{left} bytes are left");
}

#[test]
fn cleanup_policy_and_dirty_ratio() {
    let running = Running::with_segments();
    running.alter("min.cleanable.dirty.ratio", "1");
    running.maintain();
    assert_eq!(running.records(), 10, "not compacted");
    running.alter("cleanup.policy", "compact");
    running.maintain();
    assert_eq!(running.records(), 10, "not dirty enough");
    running.alter("min.cleanable.dirty.ratio", "0.3");
    running.maintain();
    assert_eq!(running.records(), 3, "two keys, and the segment that grows");
    running.alter("retention.ms", "1");
    running.clock.advance(HOUR);
    running.maintain();
    assert_eq!(running.records(), 3, "compacted topics keep what is old");
    running.alter("cleanup.policy", "compact,delete");
    running.maintain();
    assert_eq!(running.records(), 0);
}

#[test]
fn delete_retention_ms() {
    for (ms, left) in [("3600000", true), ("1000", false)] {
        let running = Running::with_segments();
        running.alter("cleanup.policy", "compact");
        running.alter("min.cleanable.dirty.ratio", "0");
        running.alter("delete.retention.ms", ms);
        running.put("0", None);
        running.put("other", Some(100));
        running.put("another", Some(100));
        running.maintain();
        running.clock.advance(60_000);
        running.put("one more", Some(100));
        running.maintain();
        let expected = if left { 5 } else { 4 };
        assert_eq!(running.records(), expected, "delete.retention.ms={ms}");
    }
}

#[test]
fn compaction_lags() {
    let running = Running::with_segments();
    running.alter("min.compaction.lag.ms", "7200000");
    running.alter("min.cleanable.dirty.ratio", "0");
    running.alter("cleanup.policy", "compact");
    running.clock.advance(HOUR);
    running.maintain();
    assert_eq!(running.records(), 10, "too young");
    running.alter("min.compaction.lag.ms", "0");
    running.alter("min.cleanable.dirty.ratio", "1");
    running.maintain();
    assert_eq!(running.records(), 10, "not dirty enough");
    running.alter("max.compaction.lag.ms", "1000");
    running.maintain();
    assert!(running.records() < 5, "overdue");
}
