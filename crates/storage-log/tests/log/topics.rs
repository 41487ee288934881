//! Topics while they are in use: their settings change, partitions are added, a stopped partition is opened again.

use std::{path::Path, sync::Arc};

use highwater_storage_log::{
    BatchBuilder, Compression, EmbeddedLog, Isolation, Log, LogError, LogOptions, ManualClock,
    MemoryDisk, Offset, TopicChange, TopicConfig, TopicPartition,
};

use crate::support::*;

fn on(disk: &MemoryDisk) -> EmbeddedLog {
    EmbeddedLog::open_on(
        Arc::new(disk.clone()),
        Path::new("/data"),
        LogOptions::default(),
    )
    .expect("open")
}

#[test]
fn settings_change_at_once_and_for_good() {
    let disk = MemoryDisk::new();
    let log = on(&disk);
    let at = with_topic(&log);
    let large = "x".repeat(500);
    log.append(&at, batch(&[&large])).expect("fits");
    log.alter_topic(
        "events",
        &changed(&[("max.message.bytes", "400"), ("segment.bytes", "300")]),
    )
    .expect("alter");
    assert!(matches!(
        log.append(&at, batch(&[&large])),
        Err(LogError::BatchTooLarge { limit: 400, .. })
    ));
    for _ in 0..6 {
        log.append(&at, batch(&["small"])).expect("append");
    }
    let logs = disk
        .files()
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "log"));
    assert!(
        logs.count() >= 3,
        "segments are as small as the setting says"
    );

    let log = {
        drop(log);
        on(&disk)
    };
    let settings = log.topic("events").expect("topic").config.settings;
    assert_eq!(
        settings.get("max.message.bytes").map(String::as_str),
        Some("400")
    );
    let mut back = TopicChange::default();
    back.settings.insert("max.message.bytes".into(), None);
    log.alter_topic("events", &back).expect("alter");
    log.append(&at, batch(&[&large])).expect("fits again");
    assert!(
        !log.topic("events")
            .expect("topic")
            .config
            .settings
            .contains_key("max.message.bytes")
    );
}

#[test]
fn a_change_that_cannot_be_changes_nothing() {
    let log = EmbeddedLog::in_memory(LogOptions::default()).expect("open");
    log.create_topic("events", TopicConfig::with_partitions(3))
        .expect("create");
    let before = log.topic("events");
    let fewer = TopicChange {
        partitions: Some(2),
        ..TopicChange::default()
    };
    for change in [
        fewer,
        changed(&[("retention.ms", "600000"), ("cleanup.policy", "shred")]),
        changed(&[("retention.bytes", "much")]),
        changed(&[("no.such.setting", "1")]),
    ] {
        let refused = log.alter_topic("events", &change);
        assert!(
            matches!(refused, Err(LogError::InvalidSetting { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(log.topic("events"), before);
    assert!(matches!(
        log.alter_topic("other", &TopicChange::default()),
        Err(LogError::UnknownTopic { .. })
    ));
}

#[test]
fn partitions_are_added_beside_those_in_use() {
    let disk = MemoryDisk::new();
    let log = on(&disk);
    let first = with_topic(&log);
    log.append(&first, batch(&["old"])).expect("append");
    let added = TopicPartition::new("events", 3);
    assert!(matches!(
        log.append(&added, batch(&["early"])),
        Err(LogError::UnknownPartition { .. })
    ));
    let more = TopicChange {
        partitions: Some(4),
        ..TopicChange::default()
    };
    log.alter_topic("events", &more).expect("alter");
    log.append(&added, batch(&["new"])).expect("append");
    for log in [log, on(&disk.deep_clone())] {
        assert_eq!(log.topic("events").expect("topic").config.partitions, 4);
        assert_eq!(committed(&log, &first), ["old"]);
        assert_eq!(committed(&log, &added), ["new"]);
    }
}

#[test]
fn a_topic_decides_about_codec_and_time() {
    let clock = Arc::new(ManualClock::at(7_000_000));
    let log = EmbeddedLog::open_with(
        Arc::new(MemoryDisk::new()),
        clock,
        Path::new("/data"),
        LogOptions::default(),
    )
    .expect("open");
    let at = with_topic(&log);
    let words = "some words to compress, ".repeat(40);
    let codecs = [
        ("gzip", Compression::Gzip),
        ("snappy", Compression::Snappy),
        ("lz4", Compression::Lz4),
        ("zstd", Compression::Zstd),
        ("uncompressed", Compression::None),
    ];
    for (name, codec) in codecs {
        log.alter_topic("events", &changed(&[("compression.type", name)]))
            .expect("alter");
        for sent in [Compression::None, Compression::Zstd] {
            let mut builder = BatchBuilder::with_compression(sent);
            builder.push(5, Some(b"k"), Some(words.as_bytes()), &[]);
            let base = log
                .append(&at, builder.finish(None))
                .expect("append")
                .base_offset;
            let fetch = log
                .read(&at, base, 1, Isolation::ReadUncommitted)
                .expect("read");
            assert_eq!(
                fetch.batches[0].compression(),
                codec,
                "{sent} sent to {name}"
            );
            assert_eq!(
                values(&log, &at, base.0, Isolation::ReadUncommitted, 1),
                [(base.0, words.clone())]
            );
        }
    }
    log.alter_topic(
        "events",
        &changed(&[
            ("compression.type", "producer"),
            ("message.timestamp.type", "LogAppendTime"),
        ]),
    )
    .expect("alter");
    let base = log
        .append(&at, batch(&["a", "b"]))
        .expect("append")
        .base_offset;
    let fetch = log
        .read(&at, base, 1, Isolation::ReadUncommitted)
        .expect("read");
    let records = fetch.batches[0].records().expect("records");
    let times: Vec<_> = records
        .iter()
        .map(|record| record.expect("record").timestamp)
        .collect();
    assert_eq!(times, [7_000_000; 2]);
}

#[test]
fn a_partition_with_a_failed_sync_is_opened_again_and_trusts_nothing_of_it() {
    let disk = MemoryDisk::with_crashes();
    let log = on(&disk);
    let at = with_topic(&log);
    log.append(&at, batch(&["one"])).expect("append");
    log.sync(&at, Offset(1)).expect("sync");
    log.append(&at, batch(&["two"])).expect("append");
    disk.fail_syncs_after(Some(0));
    log.sync(&at, Offset(2)).expect_err("the disk fails");
    assert!(log.reopen(&at).is_err(), "the disk still fails");
    assert!(matches!(
        log.append(&at, batch(&["x"])),
        Err(LogError::Stopped { .. })
    ));
    disk.fail_syncs_after(None);
    log.reopen(&at).expect("the disk works again");
    assert_eq!(committed(&log, &at), ["one", "two"]);
    log.append(&at, batch(&["three"])).expect("append");
    log.sync(&at, Offset(3)).expect("sync");
    log.reopen(&at)
        .expect("a partition that works stays as it is");
    // What the failed sync left in memory only is on the medium now, as the log says.
    let log = on(&disk.crash(&mut |_| 0));
    assert_eq!(committed(&log, &at), ["one", "two", "three"]);
}

#[test]
fn a_restart_after_a_failed_sync_trusts_nothing_of_it() {
    let disk = MemoryDisk::with_crashes();
    let log = on(&disk);
    let at = with_topic(&log);
    log.append(&at, batch(&["one"])).expect("append");
    disk.fail_syncs_after(Some(0));
    log.sync(&at, Offset(1)).expect_err("the disk fails");
    drop(log);
    disk.fail_syncs_after(None);
    let log = on(&disk);
    let durable = log.offsets(&at).expect("offsets").durable.0 as usize;
    drop(log);
    let log = on(&disk.crash(&mut |_| 0));
    assert_eq!(committed(&log, &at).len(), durable);
}

#[test]
fn too_much_that_is_not_synced_makes_the_appender_sync() {
    let disk = MemoryDisk::new();
    let options = LogOptions {
        max_unsynced_bytes: 2_000,
        ..LogOptions::default()
    };
    let log =
        EmbeddedLog::open_on(Arc::new(disk.clone()), Path::new("/data"), options).expect("open");
    let at = with_topic(&log);
    let before = disk.syncs();
    let mut bytes = 0;
    for _ in 0..100 {
        let batch = batch(&["something"]);
        bytes += batch.len() as u64;
        log.append(&at, batch).expect("append");
        let offsets = log.offsets(&at).expect("offsets");
        assert!((offsets.log_end.0 - offsets.durable.0) * 80 <= 2_400);
    }
    let syncs = disk.syncs() - before;
    assert!(
        syncs >= bytes / 2_200 && syncs <= bytes / 1_900,
        "{syncs} syncs for {bytes} bytes"
    );
}
