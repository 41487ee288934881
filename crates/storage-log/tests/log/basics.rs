//! Appending, reading, transactions, topics: what a user of the crate does every day.

use std::{path::Path, sync::Arc};

use highwater_storage_log::{
    BatchBuilder, Compression, Disk, EmbeddedLog, ErrorKind, FsyncPolicy, Isolation, Log, LogError,
    LogOptions, MemoryDisk, Offset, ProducerId, TopicConfig, TopicPartition,
};

use crate::support::*;

/// Segments so small that a few batches fill one.
fn small_segments() -> LogOptions {
    LogOptions {
        segment_bytes: 600,
        index_interval_bytes: 150,
        ..LogOptions::default()
    }
}

fn on(disk: &MemoryDisk, options: LogOptions) -> EmbeddedLog {
    EmbeddedLog::open_on(
        Arc::new(disk.clone()) as Arc<dyn Disk>,
        Path::new("/data"),
        options,
    )
    .expect("open")
}

#[test]
fn what_is_appended_is_read_back_at_dense_offsets() {
    for tail_bytes in [0, 1 << 20] {
        let log = EmbeddedLog::in_memory(LogOptions {
            tail_bytes,
            ..small_segments()
        })
        .expect("open");
        let at = with_topic(&log);
        let mut expected = Vec::new();
        for i in 0..100 {
            let (a, b) = (format!("a{i}"), format!("b{i}"));
            let appended = log.append(&at, batch(&[&a, &b])).expect("append");
            assert_eq!(
                (appended.base_offset, appended.last_offset),
                (Offset(2 * i), Offset(2 * i + 1))
            );
            expected.extend([(2 * i, a), (2 * i + 1, b)]);
        }
        for max_bytes in [1, 300, 1 << 20] {
            for from in [0usize, 1, 2, 77, 199, 200] {
                let got = values(
                    &log,
                    &at,
                    from as i64,
                    Isolation::ReadUncommitted,
                    max_bytes,
                );
                assert_eq!(
                    got,
                    expected[from..],
                    "from {from}, {max_bytes} bytes, tail of {tail_bytes}"
                );
            }
        }
        let outside = log.read(&at, Offset(201), 100, Isolation::ReadCommitted);
        assert!(
            matches!(outside, Err(LogError::OffsetOutOfRange { .. })),
            "{outside:?}"
        );
    }
}

#[test]
fn all_codecs_come_back() {
    let log = EmbeddedLog::in_memory(LogOptions::default()).expect("open");
    let at = with_topic(&log);
    let value = "the same words again and again ".repeat(5_000);
    for codec in [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let mut builder = BatchBuilder::with_compression(codec);
        builder.push(
            5,
            Some(b"k"),
            Some(value.as_bytes()),
            &[("h", Some(b"1")), ("none", None)],
        );
        builder.push(3, None, None, &[]);
        let encoded = builder.finish(None);
        assert!(
            codec == Compression::None || encoded.len() < value.len() / 5,
            "{codec}: {} bytes",
            encoded.len()
        );
        let from = log.append(&at, encoded).expect("append").base_offset;
        let fetch = log
            .read(&at, from, 1 << 20, Isolation::ReadCommitted)
            .expect("read");
        let [stored] = &fetch.batches[..] else {
            panic!("one batch")
        };
        assert_eq!((stored.compression(), stored.max_timestamp()), (codec, 5));
        let records = stored.records().expect("records");
        let all: Vec<_> = records
            .iter()
            .map(|r| r.expect("record").to_record().expect("headers"))
            .collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].value.as_deref(), Some(value.as_bytes()));
        assert_eq!(
            all[0].headers,
            [("h".into(), Some("1".into())), ("none".into(), None)]
        );
        assert_eq!(
            (all[1].timestamp, &all[1].key, &all[1].value),
            (3, &None, &None)
        );
    }
}

#[test]
fn only_committed_transactions_are_seen() {
    for tail_bytes in [0, 1 << 20] {
        let disk = MemoryDisk::new();
        let options = LogOptions {
            tail_bytes,
            ..small_segments()
        };
        let log = on(&disk, options.clone());
        let at = with_topic(&log);
        log.append(&at, batch_from(&["a1"], transactional(1, 0, 0)))
            .expect("append");
        log.append(&at, batch_from(&["b1"], transactional(2, 0, 0)))
            .expect("append");
        log.append(&at, batch(&["plain"])).expect("append");
        assert_eq!(committed(&log, &at), [""; 0], "both transactions are open");
        assert_eq!(log.offsets(&at).expect("offsets").last_stable, Offset(0));
        let state = log
            .producer(&at, ProducerId(2))
            .expect("producer")
            .expect("known");
        assert_eq!(
            (state.open_transaction, state.last_sequence),
            (Some(Offset(1)), 0)
        );

        assert_eq!(
            log.end_transaction(&at, ProducerId(2), 0, false)
                .expect("abort"),
            Some(Offset(3))
        );
        assert_eq!(committed(&log, &at), [""; 0], "the first is still open");
        assert_eq!(
            log.end_transaction(&at, ProducerId(1), 0, true)
                .expect("commit"),
            Some(Offset(4))
        );
        assert_eq!(committed(&log, &at), ["a1", "plain"]);
        assert_eq!(
            log.end_transaction(&at, ProducerId(1), 0, true)
                .expect("commit"),
            None,
            "nothing is open"
        );

        log.append(&at, batch_from(&["b2"], transactional(2, 0, 1)))
            .expect("append");
        assert_eq!(
            log.end_transaction(&at, ProducerId(2), 0, true)
                .expect("commit"),
            Some(Offset(6))
        );
        assert_eq!(committed(&log, &at), ["a1", "plain", "b2"]);
        let everything = values(&log, &at, 0, Isolation::ReadUncommitted, 1 << 20);
        assert_eq!(
            everything.len(),
            4,
            "markers are never handed out: {everything:?}"
        );

        for _ in 0..2 {
            drop(on_again(&disk, &options, &at));
        }
    }
}

fn on_again(disk: &MemoryDisk, options: &LogOptions, at: &TopicPartition) -> EmbeddedLog {
    // The first log of the caller still holds the lock, as a process that was killed would not.
    let log = on(&disk.deep_clone(), options.clone());
    assert_eq!(committed(&log, at), ["a1", "plain", "b2"]);
    log
}

#[test]
fn repeats_are_appended_once_and_keep_their_offsets_across_restarts() {
    let disk = MemoryDisk::new();
    let mut at = partition();
    for restart in 0..3 {
        let log = on(&disk, small_segments());
        if restart == 0 {
            at = with_topic(&log);
            for i in 0..50 {
                log.append(&at, batch_from(&["x", "y"], idempotent(7, 0, 2 * i)))
                    .expect("append");
                log.append(&at, batch(&["other"])).expect("append");
            }
        }
        for i in 0..50 {
            let again = log
                .append(&at, batch_from(&["x", "y"], idempotent(7, 0, 2 * i)))
                .expect("append");
            assert!(again.duplicate, "batch {i} after {restart} restarts");
            assert_eq!(
                again.base_offset,
                Offset(3 * i64::from(i)),
                "batch {i} after {restart} restarts"
            );
        }
        assert_eq!(log.offsets(&at).expect("offsets").log_end, Offset(150));
    }
    let log = on(&disk, small_segments());
    let gap = log.append(&at, batch_from(&["z"], idempotent(7, 0, 101)));
    assert!(
        matches!(gap, Err(LogError::OutOfOrderSequence { expected: 100, .. })),
        "{gap:?}"
    );
    let half = log.append(&at, batch_from(&["y", "z"], idempotent(7, 0, 99)));
    assert!(
        matches!(half, Err(LogError::OutOfOrderSequence { .. })),
        "{half:?}"
    );
    log.append(&at, batch_from(&["z"], idempotent(7, 1, 0)))
        .expect("a new epoch starts at 0");
    let fenced = log.append(&at, batch_from(&["z"], idempotent(7, 0, 100)));
    assert!(
        matches!(fenced, Err(LogError::ProducerFenced { current: 1, .. })),
        "{fenced:?}"
    );
}

#[test]
fn dropped_segments_stay_dropped() {
    let disk = MemoryDisk::new();
    let log = on(&disk, small_segments());
    let at = with_topic(&log);
    for i in 0..100 {
        log.append(&at, batch(&[&i.to_string()])).expect("append");
    }
    let before = disk.used();
    log.drop_below(&at, Offset(50)).expect("drop");
    assert!(
        disk.used() < before * 2 / 3,
        "{} of {before} bytes are left",
        disk.used()
    );
    log.drop_below(&at, Offset(10)).expect("nothing to do");
    for log in [log, on(&disk.deep_clone(), small_segments())] {
        let offsets = log.offsets(&at).expect("offsets");
        assert_eq!(
            (offsets.log_start, offsets.log_end),
            (Offset(50), Offset(100))
        );
        let early = log.read(&at, Offset(49), 100, Isolation::ReadCommitted);
        assert!(
            matches!(early, Err(LogError::OffsetOutOfRange { .. })),
            "{early:?}"
        );
        assert_eq!(
            values(&log, &at, 50, Isolation::ReadCommitted, 1 << 20).len(),
            50
        );
    }
}

#[test]
fn offsets_are_found_by_time() {
    let log = EmbeddedLog::in_memory(small_segments()).expect("open");
    let at = with_topic(&log);
    for i in 0..100i64 {
        let mut builder = BatchBuilder::new();
        // Mostly ascending, every tenth record is late.
        builder.push(
            if i % 10 == 9 { 10 * i - 500 } else { 10 * i },
            None,
            Some(b"v"),
            &[],
        );
        log.append(&at, builder.finish(None)).expect("append");
    }
    for timestamp in [i64::MIN, -1, 0, 1, 5, 10, 400, 405, 890, 980] {
        let expected =
            (0..100).find(|i| (if i % 10 == 9 { 10 * i - 500 } else { 10 * i }) >= timestamp);
        assert_eq!(
            log.offset_for_timestamp(&at, timestamp).expect("find"),
            Offset(expected.expect("there is one")),
            "{timestamp}"
        );
    }
    assert_eq!(
        log.offset_for_timestamp(&at, 981).expect("find"),
        Offset(100)
    );
}

#[test]
fn topics_are_durable_and_their_names_checked() {
    let disk = MemoryDisk::new();
    let log = on(&disk, LogOptions::default());
    let mut config = TopicConfig::with_partitions(3);
    config
        .settings
        .insert("segment.bytes".into(), "1000".into());
    log.create_topic("orders", config.clone()).expect("create");
    log.create_topic("gone", TopicConfig::with_partitions(2))
        .expect("create");
    log.append(&TopicPartition::new("gone", 1), batch(&["x"]))
        .expect("append");
    log.delete_topic("gone").expect("delete");
    drop(log);

    let log = on(&disk, LogOptions::default());
    let [topic] = &log.topics()[..] else {
        panic!("one topic")
    };
    assert_eq!((&*topic.name, &topic.config), ("orders", &config));
    assert!(log.topic("gone").is_none());
    assert!(
        disk.files()
            .iter()
            .all(|(path, _)| !path.to_string_lossy().contains("gone")),
        "{:?}",
        disk.files()
    );
    let refused = log.create_topic("orders", TopicConfig::with_partitions(1));
    assert!(
        matches!(refused, Err(LogError::TopicExists { .. })),
        "{refused:?}"
    );
    assert!(matches!(
        log.create_topic("../x", config),
        Err(LogError::IllegalTopicName { .. })
    ));
    let unknown = log.append(&TopicPartition::new("orders", 3), batch(&["x"]));
    assert!(
        matches!(unknown, Err(LogError::UnknownPartition { .. })),
        "{unknown:?}"
    );
    let mut wrong = TopicConfig::with_partitions(1);
    wrong.settings.insert("segment.byte".into(), "1".into());
    assert!(matches!(
        log.create_topic("t", wrong),
        Err(LogError::InvalidSetting { .. })
    ));
    log.create_topic("gone", TopicConfig::with_partitions(1))
        .expect("the name is free again");
    assert_eq!(
        log.offsets(&TopicPartition::new("gone", 0))
            .expect("offsets")
            .log_end,
        Offset(0)
    );
}

#[test]
fn real_files_survive_a_restart_and_are_locked() {
    let dir = tempfile::tempdir().expect("folder");
    let log = EmbeddedLog::open(dir.path(), small_segments()).expect("open");
    let at = with_topic(&log);
    for i in 0..40 {
        let end = log
            .append(&at, batch(&[&format!("v{i}")]))
            .expect("append")
            .last_offset
            .0
            + 1;
        log.sync(&at, Offset(end)).expect("sync");
    }
    let second = EmbeddedLog::open(dir.path(), small_segments());
    assert!(
        matches!(&second, Err(LogError::FolderInUse { owner, .. }) if owner.contains(&std::process::id().to_string())),
        "{second:?}"
    );
    drop(log);
    let log = EmbeddedLog::open(dir.path(), small_segments()).expect("open again");
    assert_eq!(committed(&log, &at).len(), 40);
    assert_eq!(log.offsets(&at).expect("offsets").durable, Offset(40));
}

#[test]
fn a_full_disk_refuses_writes_and_serves_reads_until_there_is_space() {
    let disk = MemoryDisk::new();
    let log = on(&disk, small_segments());
    let at = with_topic(&log);
    let mut appended = 0;
    disk.set_capacity(Some(3_000));
    let full = loop {
        match log.append(&at, batch(&[&format!("v{appended}")])) {
            Ok(_) => appended += 1,
            Err(error) => break error,
        }
    };
    assert!(
        full.is_disk_full() && full.kind() == ErrorKind::Environment,
        "{full:?}"
    );
    assert_eq!(committed(&log, &at).len(), appended);
    assert!(log.append(&at, batch(&["no"])).is_err());
    disk.set_capacity(None);
    log.append(&at, batch(&["yes"]))
        .expect("there is space again");
    log.sync(&at, Offset(appended as i64 + 1)).expect("sync");
    for log in [log, on(&disk.deep_clone(), small_segments())] {
        let values = committed(&log, &at);
        assert_eq!(
            (values.len(), values.last().map(String::as_str)),
            (appended + 1, Some("yes"))
        );
    }
}

#[test]
fn a_failed_sync_poisons_the_partition_until_it_is_reopened() {
    let disk = MemoryDisk::with_crashes();
    let log = on(&disk, LogOptions::default());
    let at = with_topic(&log);
    log.append(&at, batch(&["one"])).expect("append");
    log.sync(&at, Offset(1)).expect("sync");
    log.append(&at, batch(&["two"])).expect("append");
    disk.fail_syncs_after(Some(0));
    assert!(matches!(
        log.sync(&at, Offset(2)),
        Err(LogError::Poisoned { .. })
    ));
    disk.fail_syncs_after(None);
    assert!(matches!(
        log.sync(&at, Offset(2)),
        Err(LogError::Poisoned { .. })
    ));
    assert!(matches!(
        log.append(&at, batch(&["three"])),
        Err(LogError::Poisoned { .. })
    ));
    log.sync(&at, Offset(1)).expect("what was on disk still is");
    assert_eq!(committed(&log, &at), ["one", "two"], "reads go on");
    let log = on(&disk.crash(&mut |_| 0), LogOptions::default());
    assert_eq!(committed(&log, &at), ["one"]);
    log.append(&at, batch(&["two"])).expect("reopened");
}

#[test]
fn policies_other_than_always_do_not_wait() {
    for fsync in [
        FsyncPolicy::Never,
        FsyncPolicy::Interval(std::time::Duration::from_millis(5)),
    ] {
        let disk = MemoryDisk::new();
        let log = on(
            &disk,
            LogOptions {
                fsync,
                ..LogOptions::default()
            },
        );
        let at = with_topic(&log);
        log.append(&at, batch(&["x"])).expect("append");
        log.sync(&at, Offset(1)).expect("returns at once");
        let durable = || log.offsets(&at).expect("offsets").durable;
        if fsync == FsyncPolicy::Never {
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!(durable(), Offset(0));
        } else {
            let begin = std::time::Instant::now();
            while durable() == Offset(0) {
                assert!(begin.elapsed().as_secs() < 30, "nobody syncs");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }
}
