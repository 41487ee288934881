//! A data folder of the first release (see `tests/fixtures/highwater-1/README.md`) is read by this one, record by record.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use highwater_storage_log::{
    Compression, EmbeddedLog, FileDisk, Isolation, Log, LogOptions, Offset, ProducerId, Record,
    TopicPartition, verify,
};

use crate::support::*;

/// The folder, which opening it would change.
fn copied() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("folder");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/highwater-1/data");
    copy(&fixture, dir.path());
    dir
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("create");
    for entry in fs::read_dir(from).expect("fixture") {
        let entry = entry.expect("entry");
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type().expect("type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copy");
        }
    }
}

/// A record as `examples/write_partition.rs` made it.
#[derive(Debug, Clone, PartialEq)]
struct Written {
    time: i64,
    key: String,
    value: Option<String>,
    /// Its transaction was committed, or it belongs to none.
    committed: bool,
}

fn written() -> Vec<Written> {
    let mut now = 1_700_000_000_000;
    let mut all = Vec::new();
    // Records of the open transactions of both producers.
    let mut open: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
    for round in 0..60usize {
        for i in 0..=round % 7 {
            now += 250;
            let transactional = matches!(round % 4, 1 | 2);
            if transactional {
                open[round % 4 - 1].push(all.len());
            }
            all.push(Written {
                time: if i % 5 == 4 { now - 60_000 } else { now },
                key: format!("key-{}", i % 3),
                value: (i % 6 != 5).then(|| {
                    format!("value {i} of round {round}, with some words to compress, to compress")
                }),
                committed: !transactional,
            });
        }
        if round % 8 == 6 {
            for (open, commits) in open.iter_mut().zip([true, round % 16 == 6]) {
                for record in open.drain(..) {
                    all[record].committed = commits;
                }
            }
        }
    }
    all
}

fn records(log: &EmbeddedLog, topic: &str, isolation: Isolation) -> Vec<Record> {
    let at = TopicPartition::new(topic, 0);
    let mut all = Vec::new();
    let mut next = Offset(0);
    loop {
        let fetch = log.read(&at, next, 1_000, isolation).expect("read");
        for batch in &fetch.batches {
            let records = batch.records().expect("records");
            let owned = records
                .iter()
                .map(|record| record.expect("record").to_record().expect("headers"));
            all.extend(owned);
        }
        if fetch.next_offset == next {
            return all;
        }
        next = fetch.next_offset;
    }
}

fn assert_written(record: &Record, written: &Written) {
    let headers = [
        ("source".into(), Some("sample".into())),
        ("empty".into(), None),
    ];
    assert_eq!(record.timestamp, written.time);
    assert_eq!(record.key.as_deref(), Some(written.key.as_bytes()));
    assert_eq!(
        record.value.as_deref(),
        written.value.as_ref().map(String::as_bytes)
    );
    assert_eq!(record.headers, headers);
}

#[test]
fn a_folder_of_the_first_release_holds_what_was_written() {
    let dir = copied();
    let report = verify(&FileDisk, dir.path(), &mut |_| {}).expect("check");
    assert!(report.findings.is_empty(), "{report:?}");
    let written = written();
    for _ in 0..2 {
        let log = EmbeddedLog::open(dir.path(), LogOptions::default()).expect("open");
        let all = records(&log, "sample", Isolation::ReadUncommitted);
        assert_eq!(all.len(), written.len());
        for (record, written) in all.iter().zip(&written) {
            assert_written(record, written);
        }
        let at = TopicPartition::new("sample", 0);
        let stable = log.offsets(&at).expect("offsets").last_stable;
        let committed = records(&log, "sample", Isolation::ReadCommitted);
        let expected: Vec<_> = all
            .iter()
            .zip(&written)
            .filter(|(record, written)| record.offset < stable && written.committed)
            .map(|(record, _)| record.clone())
            .collect();
        assert_eq!(committed, expected);
        let mut codecs = BTreeMap::new();
        let fetch = log.read(&at, Offset(0), 1 << 20, Isolation::ReadUncommitted);
        for batch in fetch.expect("read").batches {
            *codecs.entry(batch.compression().to_string()).or_insert(0) += 1;
        }
        assert_eq!(codecs.len(), 5, "{codecs:?}");
        assert!(codecs.contains_key(&Compression::Zstd.to_string()));

        // Of each key the last committed record is left; what follows the stable offset was not touched.
        let compacted = records(&log, "compacted", Isolation::ReadCommitted);
        let last_of = |records: &[Record]| -> BTreeMap<_, _> {
            records
                .iter()
                .map(|record| (record.key.clone(), record.clone()))
                .collect()
        };
        assert_eq!(last_of(&compacted), last_of(&committed));
        assert!(compacted.len() < committed.len() / 4);
    }
}

#[test]
fn a_folder_of_the_first_release_goes_on() {
    let dir = copied();
    let log = EmbeddedLog::open(dir.path(), LogOptions::default()).expect("open");
    for topic in ["sample", "compacted"] {
        let at = TopicPartition::new(topic, 0);
        let end = log.offsets(&at).expect("offsets").log_end;
        let state = log
            .producer(&at, ProducerId(100))
            .expect("producer")
            .expect("known");
        let repeat = batch_from(&["x"], idempotent(100, 0, state.last_sequence));
        assert!(log.append(&at, repeat).expect("append").duplicate);
        let next = batch_from(&["x"], idempotent(100, 0, state.last_sequence + 1));
        assert_eq!(log.append(&at, next).expect("append").base_offset, end);
    }
}
