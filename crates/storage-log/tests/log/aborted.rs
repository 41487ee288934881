//! Aborted transactions: hidden wherever a reader meets them, without memory for all that ever were.

use std::{path::Path, sync::Arc};

use highwater_storage_log::{
    Disk, EmbeddedLog, Isolation, Log, LogError, LogOptions, MemoryDisk, ProducerId, TopicPartition,
};

use crate::support::*;

fn on(disk: &MemoryDisk, options: &LogOptions) -> EmbeddedLog {
    EmbeddedLog::open_on(Arc::new(disk.clone()), Path::new("/data"), options.clone()).expect("open")
}

fn transaction(
    log: &EmbeddedLog,
    at: &TopicPartition,
    producer: i64,
    sequence: i32,
    value: &str,
    commit: bool,
) {
    log.append(
        at,
        batch_from(&[value], transactional(producer, 0, sequence)),
    )
    .expect("append");
    log.end_transaction(at, ProducerId(producer), 0, commit)
        .expect("end");
}

#[test]
fn a_reader_of_the_tail_sees_no_aborted_records_after_compaction_forgot_them() {
    let disk = MemoryDisk::new();
    // All of it stays in memory.
    let options = LogOptions {
        segment_bytes: 1_000,
        ..LogOptions::default()
    };
    let log = on(&disk, &options);
    let at = with_topic(&log);
    let settings = [
        ("cleanup.policy", "compact"),
        ("min.cleanable.dirty.ratio", "0"),
    ];
    log.alter_topic("events", &changed(&settings))
        .expect("alter");
    transaction(&log, &at, 1, 0, "aborted", false);
    transaction(&log, &at, 1, 1, "committed", true);
    for i in 0..30 {
        log.append(&at, batch(&[&format!("filler {i}")]))
            .expect("append");
    }
    assert!(!committed(&log, &at).contains(&"aborted".into()));
    log.maintain().expect("compact");
    let seen = committed(&log, &at);
    assert!(!seen.contains(&"aborted".into()), "{seen:?}");
    assert_eq!(seen.last().map(String::as_str), Some("filler 29"));
}

#[test]
fn a_transaction_is_hidden_in_all_segments_that_it_spans() {
    let disk = MemoryDisk::new();
    let options = LogOptions {
        segment_bytes: 1_000,
        tail_bytes: 300,
        ..LogOptions::default()
    };
    let mut log = on(&disk, &options);
    let at = with_topic(&log);
    let mut expected = Vec::new();
    for i in 0..60 {
        let long = batch_from(&["long"], transactional(9, 0, i));
        log.append(&at, long).expect("append");
        let value = format!("{i}");
        transaction(&log, &at, 1, i, &value, i % 3 > 0);
        expected.extend((i % 3 > 0).then_some(value));
    }
    assert!(committed(&log, &at).is_empty(), "nothing is decided");
    log.end_transaction(&at, ProducerId(9), 0, false)
        .expect("abort");
    for round in 0..3 {
        assert_eq!(committed(&log, &at), expected, "round {round}");
        // In other segments than the one that holds the marker, and in steps of one batch.
        for from in [0, 50, 100] {
            let one_by_one = values(&log, &at, from, Isolation::ReadCommitted, 1);
            let at_once = values(&log, &at, from, Isolation::ReadCommitted, 1 << 20);
            assert_eq!(one_by_one, at_once);
            assert!(one_by_one.iter().all(|(_, value)| value != "long"));
        }
        if round == 0 {
            for i in 0..20 {
                log.append(&at, batch(&[&format!("later {i}")]))
                    .expect("append");
                expected.push(format!("later {i}"));
            }
        }
        drop(log);
        log = on(&disk, &options);
    }
}

#[test]
fn a_segment_ends_before_its_list_of_aborted_transactions_takes_much_memory() {
    let disk = MemoryDisk::new();
    let options = LogOptions::default();
    let log = on(&disk, &options);
    let at = with_topic(&log);
    const TRANSACTIONS: i32 = 40_000;
    for i in 0..TRANSACTIONS {
        transaction(&log, &at, i64::from(i % 7), i / 7, "x", i % 1_000 == 999);
    }
    // 16,384 fit, and a GiB of records would have.
    assert_eq!(log.usage(&at).expect("usage").segments, 3);
    let expected = vec!["x"; TRANSACTIONS as usize / 1_000];
    assert_eq!(committed(&log, &at), expected);
    drop(log);
    assert_eq!(
        committed(&on(&disk, &options), &at),
        expected,
        "after a restart"
    );
}

#[test]
fn a_list_that_is_lost_meanwhile_is_noticed_and_made_again_by_the_next_start() {
    let disk = MemoryDisk::new();
    let options = LogOptions {
        segment_bytes: 1_000,
        tail_bytes: 300,
        ..LogOptions::default()
    };
    let log = on(&disk, &options);
    let at = with_topic(&log);
    for i in 0..40 {
        transaction(&log, &at, 1, i, "x", i % 2 == 0);
    }
    for (path, _) in disk.files() {
        if path.extension().is_some_and(|kind| kind == "txnindex") {
            disk.remove(&path).expect("remove");
        }
    }
    let refused = try_values(&log, &at, 0, Isolation::ReadCommitted, 1 << 20);
    assert!(
        matches!(refused, Err(LogError::Corrupt { .. })),
        "{refused:?}"
    );
    let all = values(&log, &at, 0, Isolation::ReadUncommitted, 1 << 20);
    assert_eq!(all.len(), 40);
    drop(log);
    assert_eq!(committed(&on(&disk, &options), &at).len(), 20);
}
