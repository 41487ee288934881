//! A partition folder that a real broker wrote (see `tests/fixtures/kafka-4.0/README.md`) is read, record by record, and goes on as ours.

use std::{
    fs,
    path::{Path, PathBuf},
};

use highwater_storage_log::{
    EmbeddedLog, Isolation, Log, LogOptions, Offset, ProducerId, Record, TopicConfig,
    TopicPartition,
};

use crate::support::*;

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kafka-4.0/sample-0")
}

fn open(dir: &Path) -> EmbeddedLog {
    EmbeddedLog::open(dir, LogOptions::default()).expect("open")
}

/// A data folder with the broker's partition in it.
fn imported() -> (tempfile::TempDir, TopicPartition) {
    let dir = tempfile::tempdir().expect("folder");
    let mut config = TopicConfig::with_partitions(1);
    config
        .settings
        .insert("segment.bytes".into(), "6000".into());
    config
        .settings
        .insert("index.interval.bytes".into(), "400".into());
    open(dir.path())
        .create_topic("sample", config)
        .expect("create");
    for file in fs::read_dir(fixture()).expect("fixture") {
        let file = file.expect("file");
        fs::copy(
            file.path(),
            dir.path().join("sample-0").join(file.file_name()),
        )
        .expect("copy");
    }
    (dir, TopicPartition::new("sample", 0))
}

fn records(log: &EmbeddedLog, at: &TopicPartition, isolation: Isolation) -> Vec<Record> {
    let mut all = Vec::new();
    let mut next = Offset(0);
    loop {
        let fetch = log.read(at, next, 500, isolation).expect("read");
        for batch in &fetch.batches {
            let records = batch.records().expect("records");
            all.extend(
                records
                    .iter()
                    .map(|record| record.expect("record").to_record().expect("headers")),
            );
        }
        if fetch.next_offset == next {
            return all;
        }
        next = fetch.next_offset;
    }
}

/// What the producer sent, in order; without offsets, which markers shift.
fn sent(with_aborted: bool) -> Vec<(i64, String, Option<String>)> {
    let mut sent = Vec::new();
    let mut now = 1_700_000_000_000;
    for round in 0..30 {
        let codec = CODECS[round / 6];
        for i in 0..7 {
            now += 250;
            let aborted = round % 6 == 4;
            if with_aborted || !aborted {
                let value = format!(
                    "{codec} {round} value {i} with some words to compress, to compress, to compress"
                );
                let time = if i == 4 { now - 60_000 } else { now };
                sent.push((time, format!("key-{}", i % 3), (i != 5).then_some(value)));
            }
        }
    }
    sent
}

fn assert_as_sent(records: &[Record], sent: &[(i64, String, Option<String>)]) {
    assert_eq!(records.len(), sent.len());
    for (record, (time, key, value)) in records.iter().zip(sent) {
        assert_eq!(record.timestamp, *time);
        assert_eq!(record.key.as_deref(), Some(key.as_bytes()));
        assert_eq!(
            record.value.as_deref(),
            value.as_ref().map(String::as_bytes)
        );
        assert_eq!(
            record.headers,
            [
                ("source".into(), Some("kafka".into())),
                ("empty".into(), None)
            ]
        );
    }
}

#[test]
fn a_partition_of_a_broker_is_read_as_it_was_sent() {
    let (dir, at) = imported();
    for _ in 0..3 {
        let log = open(dir.path());
        assert_as_sent(&records(&log, &at, Isolation::ReadUncommitted), &sent(true));
        assert_as_sent(&records(&log, &at, Isolation::ReadCommitted), &sent(false));
        let offsets = log.offsets(&at).expect("offsets");
        assert_eq!(
            (offsets.log_start, offsets.last_stable, offsets.log_end),
            (Offset(0), Offset(225), Offset(225))
        );
        // Ids alternate between plain and transactional producers; a transaction's end raises the epoch (Kafka's KIP-890).
        for id in 0..10 {
            let state = log
                .producer(&at, ProducerId(id))
                .expect("producer")
                .expect("known");
            let expected = if id % 2 == 0 { (0, 20) } else { (3, -1) };
            assert_eq!(
                (state.epoch, state.last_sequence, state.open_transaction),
                (expected.0, expected.1, None)
            );
        }
        // The late record of a round does not count; round 7 begins 49 records after the first.
        let found = log
            .offset_for_timestamp(&at, 1_700_000_000_000 + 50 * 250)
            .expect("find");
        let fetch = log
            .read(&at, found, 1, Isolation::ReadUncommitted)
            .expect("read");
        assert_eq!(
            fetch.batches[0].max_timestamp(),
            1_700_000_000_000 + 56 * 250
        );
    }
}

#[test]
fn the_indexes_we_make_are_those_of_the_broker() {
    let (dir, at) = imported();
    let log = open(dir.path());
    for file in fs::read_dir(fixture()).expect("fixture") {
        let name = file.expect("file").file_name().into_string().expect("name");
        let sealed =
            !name.starts_with("00000000000000000163") && name != "00000000000000000225.snapshot";
        if sealed
            && ["index", "timeindex", "txnindex"]
                .iter()
                .any(|kind| name.ends_with(&format!(".{kind}")))
        {
            let [ours, theirs] = [dir.path().join("sample-0"), fixture()]
                .map(|dir| fs::read(dir.join(&name)).expect("read"));
            assert_eq!(ours, theirs, "{name}");
        }
    }
    log.offsets(&at).expect("the partition is open");
}

#[test]
fn a_partition_of_a_broker_goes_on_as_ours() {
    let (dir, at) = imported();
    let log = open(dir.path());
    let repeat = log
        .append(&at, batch_from(&["x"], idempotent(8, 0, 20)))
        .expect("append");
    assert!(repeat.duplicate, "{repeat:?}");
    for i in 0..200 {
        let values = [format!("ours {i}")];
        let base = log
            .append(&at, batch_from(&[&values[0]], idempotent(8, 0, 21 + i)))
            .expect("append")
            .base_offset;
        assert_eq!(base, Offset(225 + i64::from(i)));
    }
    drop(log);
    let log = open(dir.path());
    let all = records(&log, &at, Isolation::ReadCommitted);
    assert_as_sent(&all[..all.len() - 200], &sent(false));
    assert_eq!(
        all.last().and_then(|record| record.value.as_deref()),
        Some(&b"ours 199"[..])
    );
}
