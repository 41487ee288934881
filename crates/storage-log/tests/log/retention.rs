//! Retention by age and size, segments that are sealed by age, and what holds them back.

use std::{path::Path, sync::Arc, thread, time::Duration};

use highwater_storage_log::{
    BatchBuilder, EmbeddedLog, Isolation, Log, LogOptions, ManualClock, MemoryDisk, Offset,
    ProducerId, TopicPartition,
};

use crate::support::*;

const HOUR: i64 = 3_600_000;

/// A log whose segments take about ten batches, at noon of some day.
fn fixture() -> (MemoryDisk, Arc<ManualClock>, EmbeddedLog, TopicPartition) {
    let disk = MemoryDisk::new();
    let clock = Arc::new(ManualClock::at(1_000 * HOUR));
    let log = open(&disk, &clock);
    let at = with_topic(&log);
    (disk, clock, log, at)
}

fn open(disk: &MemoryDisk, clock: &Arc<ManualClock>) -> EmbeddedLog {
    let options = LogOptions {
        segment_bytes: 1_000,
        ..LogOptions::default()
    };
    EmbeddedLog::open_with(
        Arc::new(disk.clone()),
        Arc::clone(clock) as _,
        Path::new("/data"),
        options,
    )
    .expect("open")
}

fn append_at(log: &EmbeddedLog, at: &TopicPartition, time: i64) {
    let mut builder = BatchBuilder::new();
    builder.push(time, None, Some(b"some value of some bytes"), &[]);
    log.append(at, builder.finish(None)).expect("append");
}

fn start(log: &EmbeddedLog, at: &TopicPartition) -> i64 {
    let start = log.offsets(at).expect("offsets").log_start.0;
    if start > 0 {
        log.read(at, Offset(start - 1), 1, Isolation::ReadUncommitted)
            .expect_err("what lies before the start is gone");
    }
    start
}

#[test]
fn records_are_kept_for_ever_unless_told_otherwise() {
    let (_, clock, log, at) = fixture();
    (0..100).for_each(|i| append_at(&log, &at, i));
    clock.advance(1_000_000 * HOUR);
    log.maintain().expect("maintain");
    assert_eq!(start(&log, &at), 0);
}

#[test]
fn old_segments_go_and_stay_away() {
    let (disk, clock, log, at) = fixture();
    log.alter_topic("events", &changed(&[("retention.ms", "3600000")]))
        .expect("alter");
    // One a minute: the segment's newest record counts.
    (0..100).for_each(|i| append_at(&log, &at, 1_000 * HOUR + i * 60_000));
    log.maintain().expect("maintain");
    assert_eq!(start(&log, &at), 0, "nothing is older than an hour");
    clock.advance(HOUR + 45 * 60_000);
    log.maintain().expect("maintain");
    let kept = start(&log, &at);
    assert!(
        (30..=46).contains(&kept),
        "segments older than an hour are gone, {kept}"
    );
    let log = {
        drop(log);
        open(&disk, &clock)
    };
    assert_eq!(start(&log, &at), kept);
    assert_eq!(log.offsets(&at).expect("offsets").log_end, Offset(100));

    // In the end the segment that nobody writes to any more goes too, and offsets go on.
    clock.advance(2 * HOUR);
    log.maintain().expect("maintain");
    assert_eq!(start(&log, &at), 100);
    append_at(&log, &at, 1_003 * HOUR);
    let log = {
        drop(log);
        open(&disk, &clock)
    };
    assert_eq!(start(&log, &at), 100);
    assert_eq!(
        values(&log, &at, 100, Isolation::ReadCommitted, 100).len(),
        1
    );
}

#[test]
fn a_partition_keeps_no_less_than_its_size() {
    let (disk, _, log, at) = fixture();
    (0..200).for_each(|i| append_at(&log, &at, i));
    let bytes = |disk: &MemoryDisk| -> u64 {
        let files = disk.files().into_iter();
        files
            .filter(|(path, _)| path.extension().is_some_and(|e| e == "log"))
            .map(|(_, len)| len)
            .sum()
    };
    let before = bytes(&disk);
    log.alter_topic("events", &changed(&[("retention.bytes", "5000")]))
        .expect("alter");
    log.maintain().expect("maintain");
    assert!(
        before > 10_000 && (5_000..6_000).contains(&bytes(&disk)),
        "{before}, now {}",
        bytes(&disk)
    );
    // With another policy nothing goes by size.
    let kept = start(&log, &at);
    log.alter_topic(
        "events",
        &changed(&[("retention.bytes", "0"), ("cleanup.policy", "compact")]),
    )
    .expect("alter");
    log.maintain().expect("maintain");
    assert_eq!(start(&log, &at), kept);
}

#[test]
fn an_open_transaction_and_a_reader_that_must_read_again_hold_retention_back() {
    let (_, clock, log, at) = fixture();
    log.alter_topic("events", &changed(&[("retention.ms", "1000")]))
        .expect("alter");
    (0..50).for_each(|_| append_at(&log, &at, 1_000 * HOUR));
    log.append(&at, batch_from(&["open"], transactional(1, 0, 0)))
        .expect("append");
    (0..50).for_each(|_| append_at(&log, &at, 1_000 * HOUR));
    clock.advance(HOUR);
    log.hold_from(&at, Some(Offset(25))).expect("hold");
    log.maintain().expect("maintain");
    let held = start(&log, &at);
    assert!((10..=25).contains(&held), "{held}");
    log.hold_from(&at, None).expect("let go");
    log.maintain().expect("maintain");
    let open = start(&log, &at);
    assert!((40..=50).contains(&open), "{open}");
    log.end_transaction(&at, ProducerId(1), 0, true)
        .expect("commit");
    log.maintain().expect("maintain");
    assert_eq!(start(&log, &at), 102);
}

#[test]
fn a_segment_is_sealed_when_it_is_old_enough() {
    let (disk, clock, log, at) = fixture();
    log.alter_topic("events", &changed(&[("segment.ms", "60000")]))
        .expect("alter");
    let segments = || {
        let files = disk.files().into_iter();
        files
            .filter(|(path, _)| path.extension().is_some_and(|e| e == "log"))
            .count()
    };
    append_at(&log, &at, 5);
    clock.advance(59_000);
    append_at(&log, &at, 5);
    log.maintain().expect("maintain");
    assert_eq!(segments(), 1);
    clock.advance(1_000);
    append_at(&log, &at, 5);
    assert_eq!(segments(), 2, "by an append");
    clock.advance(60_000);
    log.maintain().expect("maintain");
    assert_eq!(segments(), 3, "without one");
    clock.advance(60_000);
    log.maintain().expect("maintain");
    assert_eq!(segments(), 3, "an empty segment does not age");
}

#[test]
fn the_thread_does_what_is_due() {
    let options = LogOptions {
        segment_bytes: 1_000,
        maintenance_interval: Duration::from_millis(5),
        ..LogOptions::default()
    };
    let log = EmbeddedLog::in_memory(options).expect("open");
    let at = with_topic(&log);
    log.alter_topic("events", &changed(&[("retention.bytes", "2000")]))
        .expect("alter");
    (0..100).for_each(|i| append_at(&log, &at, i));
    thread::sleep(Duration::from_millis(50));
    assert_eq!(start(&log, &at), 0, "not before it is told to");
    log.start_maintenance().expect("start");
    for _ in 0..500 {
        if start(&log, &at) > 0 {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing was dropped in five seconds");
}
