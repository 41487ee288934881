//! Damage on disk: every flipped byte of every file is noticed or does no harm, and so is every missing file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use highwater_storage_log::{
    BatchBuilder, Disk, EmbeddedLog, ErrorKind, Isolation, Log, LogError, LogOptions, LogResult,
    MemoryDisk, Offset, ProducerId, ProducerState, TopicPartition,
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
    let mut noticed = 0;
    let mut harmless = 0;
    for (path, len) in disk.files() {
        for at in 0..len as usize {
            for &mask in MASKS {
                let damaged = disk.deep_clone();
                damaged.flip(&path, at, mask).expect("flip");
                let what = format!("byte {at} of {} ^ {mask:#x}", path.display());
                match assert_noticed_or_harmless(&what, &expected, ask(&damaged)) {
                    true => noticed += 1,
                    false => harmless += 1,
                }
            }
        }
    }
    assert!(
        noticed > 500 && harmless > 500,
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
