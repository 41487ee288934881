//! Damage on disk: every flipped byte of every file is noticed or does no harm, and so is every missing file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use highwater_storage_log::{
    BatchBuilder, Disk, EmbeddedLog, ErrorKind, Isolation, Log, LogError, LogOptions, LogResult,
    MemoryDisk, Offset, ProducerId, ProducerState, Severity, TopicPartition, VerifyReport, verify,
};

use crate::support::*;

fn open(disk: &MemoryDisk) -> LogResult<EmbeddedLog> {
    let options = LogOptions {
        segment_bytes: 900,
        index_interval_bytes: 100,
        tail_bytes: 0,
        ..LogOptions::default()
    };
    EmbeddedLog::open_on(Arc::new(disk.clone()), Path::new("/data"), options)
}

/// A partition with several segments, transactions of both kinds, repeats and a moved log start; closed cleanly.
fn sound() -> MemoryDisk {
    let disk = MemoryDisk::new();
    let log = open(&disk).expect("open");
    let at = with_topic(&log);
    for i in 0..16i32 {
        log.append(
            &at,
            batch_from(
                &["one", "two"],
                transactional(i64::from(i % 2), 0, i / 2 * 2),
            ),
        )
        .expect("append");
        if i % 3 == 2 {
            log.end_transaction(&at, ProducerId(i64::from(i % 2)), 0, i % 2 == 0)
                .expect("end");
        }
        let mut builder = BatchBuilder::new();
        builder.push(
            i64::from(10 * i),
            None,
            Some(format!("plain {i}").as_bytes()),
            &[],
        );
        log.append(&at, builder.finish(None)).expect("append");
    }
    log.drop_below(&at, Offset(18)).expect("drop");
    drop(log);
    disk
}

/// The same, compacted: sealed segments with gaps, empty batches, tombstones with a horizon.
fn compacted() -> MemoryDisk {
    let disk = sound();
    let log = open(&disk).expect("open");
    let settings = [
        ("cleanup.policy", "compact"),
        ("min.cleanable.dirty.ratio", "0"),
    ];
    log.alter_topic("events", &changed(&settings))
        .expect("alter");
    for id in 0..2 {
        log.end_transaction(&partition(), ProducerId(id), 0, true)
            .expect("end");
    }
    let before = disk.used();
    log.maintain().expect("compact");
    assert!(disk.used() < before, "something went");
    drop(log);
    disk
}

/// Bits that are flipped in each byte; one pattern only without optimisation.
const MASKS: &[u8] = if cfg!(debug_assertions) {
    &[0x81]
} else {
    &[0x01, 0x80, 0xff]
};

/// All that can be asked of the partition.
#[derive(Debug, PartialEq)]
struct Answers {
    all: Vec<(i64, String)>,
    committed: Vec<(i64, String)>,
    producers: Vec<Option<ProducerState>>,
    by_time: Vec<Offset>,
    offsets: (Offset, Offset, Offset),
}

fn ask(disk: &MemoryDisk) -> LogResult<Answers> {
    let log = open(disk)?;
    let at = partition();
    let offsets = log.offsets(&at)?;
    let start = offsets.log_start.0;
    let read = |isolation| -> LogResult<Vec<(i64, String)>> {
        // From every offset, so that every index entry and every batch is used.
        for from in start..offsets.log_end.0 {
            log.read(&at, Offset(from), 1, isolation)?;
        }
        try_values(&log, &at, start, isolation, 1 << 20)
    };
    Ok(Answers {
        all: read(Isolation::ReadUncommitted)?,
        committed: read(Isolation::ReadCommitted)?,
        producers: (0..3)
            .map(|id| log.producer(&at, ProducerId(id)))
            .collect::<LogResult<_>>()?,
        by_time: (-10..130)
            .step_by(7)
            .map(|time| log.offset_for_timestamp(&at, time))
            .collect::<LogResult<_>>()?,
        offsets: (offsets.log_start, offsets.last_stable, offsets.log_end),
    })
}

/// The same answers, or an error that says what is wrong.
fn assert_noticed_or_harmless(what: &str, expected: &Answers, answers: LogResult<Answers>) -> bool {
    match answers {
        Ok(answers) => {
            assert_eq!(&answers, expected, "{what} changes the answers");
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error:?}");
            true
        }
    }
}

#[test]
fn every_flipped_byte_is_noticed_or_harmless() {
    let disk = sound();
    let expected = ask(&disk.deep_clone()).expect("sound");
    assert!(expected.all.len() > expected.committed.len() && expected.committed.len() > 5);
    flip_every_byte(&disk, &expected, 500);
}

#[test]
fn every_flipped_byte_of_a_compacted_partition_is_noticed_or_harmless() {
    let disk = compacted();
    let expected = ask(&disk.deep_clone()).expect("sound");
    assert!(expected.committed.len() > 5);
    flip_every_byte(&disk, &expected, 300);
}

/// Flips each byte and asks; at least so many flips must have been noticed, and as many harmless.
fn flip_every_byte(disk: &MemoryDisk, expected: &Answers, at_least: usize) {
    let mut noticed = 0;
    let mut harmless = 0;
    for (path, len) in disk.files() {
        for at in 0..len as usize {
            for &mask in MASKS {
                let damaged = disk.deep_clone();
                damaged.flip(&path, at, mask).expect("flip");
                let what = format!("byte {at} of {} ^ {mask:#x}", path.display());
                match assert_noticed_or_harmless(&what, expected, ask(&damaged)) {
                    true => noticed += 1,
                    false => harmless += 1,
                }
            }
        }
    }
    assert!(
        noticed > at_least && harmless > at_least,
        "{noticed} noticed, {harmless} harmless"
    );
}

#[test]
fn every_missing_file_is_noticed_or_made_again() {
    let disk = sound();
    let expected = ask(&disk.deep_clone()).expect("sound");
    for (path, _) in disk.files() {
        let damaged = disk.deep_clone();
        damaged.remove(&path).expect("remove");
        let log_file = path.extension().is_some_and(|extension| extension == "log");
        let needed = log_file
            || path.ends_with("log-start")
            || path.parent() == Some(Path::new("/data/topics"));
        match ask(&damaged) {
            Ok(answers) => {
                assert!(!needed, "{} is missing and nobody noticed", path.display());
                assert_eq!(answers, expected, "{} is missing", path.display());
            }
            // A topic without its file does not exist; its data is not touched.
            Err(LogError::UnknownTopic { .. }) => assert!(path.ends_with("topics/events.topic")),
            Err(error) => assert!(
                needed && error.kind() == ErrorKind::Corruption,
                "{}: {error:?}",
                path.display()
            ),
        }
    }
}

#[test]
fn a_cut_sealed_segment_is_noticed() {
    let disk = sound();
    let segments: Vec<(PathBuf, u64)> = disk
        .files()
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "log"))
        .collect();
    assert!(segments.len() > 2);
    for (path, len) in segments {
        for cut in [1, 70, len] {
            let damaged = disk.deep_clone();
            damaged
                .open(&path)
                .expect("open")
                .truncate(len - cut)
                .expect("truncate");
            let error = ask(&damaged).expect_err("acknowledged records are gone");
            assert_eq!(
                error.kind(),
                ErrorKind::Corruption,
                "{} cut by {cut}: {error:?}",
                path.display()
            );
        }
    }
}

#[test]
fn damage_stops_one_partition_and_names_its_offsets() {
    let disk = sound();
    let other = TopicPartition::new("other", 0);
    {
        let log = open(&disk).expect("open");
        log.create_topic(
            "other",
            highwater_storage_log::TopicConfig::with_partitions(1),
        )
        .expect("create");
        log.append(&other, batch(&["fine"])).expect("append");
    }
    let (active, len) = disk
        .files()
        .into_iter()
        .rfind(|(path, _)| {
            path.to_string_lossy().contains("events-0")
                && path.extension().is_some_and(|e| e == "log")
        })
        .expect("a segment");
    let base: i64 = active
        .file_stem()
        .and_then(|stem| stem.to_str())
        .expect("name")
        .parse()
        .expect("offset");
    disk.flip(&active, len as usize - 1, 1).expect("flip");

    let log = open(&disk).expect("the log opens");
    assert_eq!(committed(&log, &other), ["fine"]);
    let Err(LogError::Stopped {
        partition: stopped,
        cause,
    }) = log.read(&partition(), Offset(18), 100, Isolation::ReadCommitted)
    else {
        panic!("the damaged partition is stopped")
    };
    assert_eq!(stopped, partition());
    let LogError::Corrupt {
        partition: named,
        from,
        to,
        ..
    } = &*cause
    else {
        panic!("{cause:?}")
    };
    assert_eq!(named, &partition());
    assert!(base <= from.0 && from < to, "{cause}");
    assert!(matches!(
        log.append(&partition(), batch(&["x"])),
        Err(LogError::Stopped { .. })
    ));
}

fn check(disk: &MemoryDisk) -> VerifyReport {
    verify(disk, Path::new("/data"), &mut |_| {}).expect("verify")
}

#[test]
fn a_check_finds_nothing_in_a_sound_folder_and_reads_all_of_it() {
    let disk = sound();
    let changes = disk.changes();
    let report = check(&disk);
    assert_eq!(report.findings, []);
    assert_eq!(report.bytes, disk.used(), "every byte was looked at");
    assert_eq!(disk.changes(), changes, "and none written");
    assert_eq!((report.topics, report.partitions), (1, 1));
    assert!(report.segments >= 3 && report.batches > 15 && report.records > 20);

    let log = open(&disk).expect("open");
    let in_use = verify(&disk, Path::new("/data"), &mut |_| {});
    assert!(matches!(in_use, Err(LogError::FolderInUse { .. })));
    drop(log);
}

#[test]
fn a_check_finds_every_flipped_byte_but_those_that_nothing_reads() {
    find_every_flip(&sound());
    find_every_flip(&compacted());
}

fn find_every_flip(disk: &MemoryDisk) {
    let mut unnoticed = Vec::new();
    let mut batches = 0;
    for (path, len) in disk.files() {
        let is_log = path.extension().is_some_and(|e| e == "log");
        for at in 0..len as usize {
            let damaged = disk.deep_clone();
            damaged.flip(&path, at, 0x81).expect("flip");
            let report = check(&damaged);
            if is_log {
                batches = batches.max(report.batches);
            }
            if report.worst().is_none_or(|worst| worst == Severity::Note) {
                assert!(is_log, "byte {at} of {}", path.display());
                unnoticed.push(at);
            }
        }
    }
    // The leader epoch: four bytes of each batch that lie outside its checksum.
    assert_eq!(unnoticed.len() as u64, 4 * check(disk).batches);
}

#[test]
fn a_check_finds_missing_and_cut_files() {
    let disk = sound();
    for (path, len) in disk.files() {
        let missing = disk.deep_clone();
        missing.remove(&path).expect("remove");
        // An empty topic's folder belongs to none then.
        let report = check(&missing);
        let tolerated =
            path.ends_with("recovery-point") || path.extension() == Some("snapshot".as_ref());
        assert!(
            tolerated || !report.findings.is_empty(),
            "{}",
            path.display()
        );
        let cut = disk.deep_clone();
        if len == 0 {
            continue;
        }
        cut.open(&path)
            .expect("open")
            .truncate(len - 1)
            .expect("truncate");
        let worst = check(&cut).worst();
        assert!(worst > Some(Severity::Note), "{} {worst:?}", path.display());
    }
}

#[test]
fn a_check_names_what_is_lost() {
    let disk = sound();
    let (path, _) = disk
        .files()
        .into_iter()
        .find(|(path, _)| path.extension().is_some_and(|e| e == "log"))
        .expect("a segment");
    disk.flip(&path, 70, 1).expect("flip");
    let report = check(&disk);
    let [finding] = &report.findings[..] else {
        panic!("{report:?}")
    };
    assert_eq!((finding.severity, &finding.path), (Severity::Damage, &path));
    let (from, to) = finding.offsets.expect("offsets");
    assert!(
        from < to && finding.what.contains("checksum"),
        "{finding:?}"
    );
}
