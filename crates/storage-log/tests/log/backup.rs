//! Copies of a log that is in use: each is the log as it was when the copy began, whatever happens while it is made.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use highwater_storage_log::{
    EmbeddedLog, Isolation, Log, LogError, LogOptions, ManualClock, MemoryDisk, Offset, ProducerId,
    TopicConfig, TopicPartition, verify,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::support::*;

const COPY: &str = "/copy";

fn open(disk: &MemoryDisk, dir: &str) -> EmbeddedLog {
    let options = LogOptions {
        segment_bytes: 600,
        index_interval_bytes: 200,
        tail_bytes: 300,
        ..LogOptions::default()
    };
    let clock = Arc::new(ManualClock::at(1_000_000));
    EmbeddedLog::open_with(Arc::new(disk.clone()), clock, Path::new(dir), options).expect("open")
}

fn all(log: &EmbeddedLog, at: &TopicPartition, isolation: Isolation) -> Vec<(i64, String)> {
    let from = log.offsets(at).expect("offsets").log_start.0;
    values(log, at, from, isolation, 1 << 16)
}

fn append(log: &EmbeddedLog, at: &TopicPartition, value: &str) {
    log.append(at, batch(&[value])).expect("append");
}

/// A log of two topics with sealed segments, an idempotent producer, an aborted transaction and an open one.
fn filled(disk: &MemoryDisk) -> EmbeddedLog {
    let log = open(disk, "/data");
    let at = with_topic(&log);
    log.create_topic("other", TopicConfig::with_partitions(2))
        .expect("create");
    for number in 0..40 {
        append(&log, &at, &format!("event {number}"));
        append(
            &log,
            &TopicPartition::new("other", number % 2),
            &format!("other {number}"),
        );
    }
    log.append(&at, batch_from(&["once"], idempotent(7, 0, 0)))
        .expect("append");
    log.append(&at, batch_from(&["aborted"], transactional(8, 0, 0)))
        .expect("append");
    log.end_transaction(&at, ProducerId(8), 0, false)
        .expect("abort");
    log.append(&at, batch_from(&["committed"], transactional(8, 0, 1)))
        .expect("append");
    log.end_transaction(&at, ProducerId(8), 0, true)
        .expect("commit");
    log.append(&at, batch_from(&["open"], transactional(9, 0, 0)))
        .expect("append");
    log
}

#[test]
fn a_copy_is_the_log_as_it_was_when_it_began() {
    let disk = MemoryDisk::new();
    let log = filled(&disk);
    let at = partition();
    let others = [0, 1].map(|number| TopicPartition::new("other", number));
    log.drop_below(&others[0], Offset(3)).expect("drop");
    let before: Vec<_> = [&at, &others[0], &others[1]]
        .map(|at| all(&log, at, Isolation::ReadUncommitted))
        .into();
    let backup = log.begin_backup().expect("begin");

    // What happens from now on is not in it, and takes nothing of it away.
    for number in 0..40 {
        append(&log, &at, &format!("later {number}"));
        append(&log, &others[0], "later");
    }
    log.drop_below(&at, Offset(30)).expect("drop");
    log.alter_topic(
        "other",
        &changed(&[
            ("cleanup.policy", "compact"),
            ("min.cleanable.dirty.ratio", "0"),
        ]),
    )
    .expect("alter");
    log.maintain().expect("maintenance");
    let mut copied = 0;
    backup
        .copy_to(Path::new(COPY), &mut |bytes| {
            copied += bytes;
            Ok(())
        })
        .expect("copy");
    assert!(
        copied >= backup.bytes() && backup.bytes() > 2_000,
        "{copied} bytes"
    );
    let again = backup.copy_to(Path::new(COPY), &mut |_| Ok(()));
    assert!(
        matches!(again, Err(LogError::FolderNotEmpty { .. })),
        "{again:?}"
    );
    drop(backup);

    let report = verify(&disk, Path::new(COPY), &mut |_| {}).expect("verify");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let copy = open(&disk, COPY);
    let after: Vec<_> = [&at, &others[0], &others[1]]
        .map(|at| all(&copy, at, Isolation::ReadUncommitted))
        .into();
    assert_eq!(before, after);
    let committed: Vec<String> = all(&copy, &at, Isolation::ReadCommitted)
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    assert_eq!(committed[40..], ["once", "committed"]);
    assert_eq!(
        copy.offsets(&others[0]).expect("offsets").log_start,
        Offset(3)
    );
    // A retry is known, and so is the transaction that was open.
    let retried = copy.append(&at, batch_from(&["once"], idempotent(7, 0, 0)));
    assert!(retried.expect("append").duplicate);
    let open = copy.open_transactions(&at).expect("transactions");
    assert_eq!(open, [(ProducerId(9), 0)]);
    append(&copy, &at, "goes on");

    // The log goes on too: what the copy held back is done now.
    let used = disk.used();
    log.maintain().expect("maintenance");
    assert!(disk.used() < used, "compaction was only put off");
    assert_eq!(all(&log, &at, Isolation::ReadUncommitted)[0].0, 30);
}

#[test]
fn a_copy_that_is_cut_off_holds_whole_topics_or_none() {
    let mut changes = 0;
    loop {
        let disk = MemoryDisk::with_crashes();
        let log = filled(&disk);
        let at = partition();
        let before = all(&log, &at, Isolation::ReadUncommitted);
        let backup = log.begin_backup().expect("begin");
        disk.halt_after(Some(changes));
        let done = backup.copy_to(Path::new(COPY), &mut |_| Ok(())).is_ok();
        drop(backup);
        drop(log);
        let mut random = SmallRng::seed_from_u64(changes);
        let disk = disk.crash(&mut |choices| random.random_range(0..choices));
        let copy = open(&disk, COPY);
        if done || copy.topic("events").is_some() {
            assert_eq!(
                all(&copy, &at, Isolation::ReadUncommitted),
                before,
                "{changes}"
            );
        }
        if done {
            assert!(
                copy.topic("other").is_some(),
                "a copy that ended is durable"
            );
            break;
        }
        changes += 1;
    }
    assert!(changes > 20, "{changes} changes");
}

#[test]
fn a_full_disk_or_a_deleted_topic_ends_a_copy_and_nothing_else() {
    let disk = MemoryDisk::new();
    let log = filled(&disk);
    let at = partition();
    let backup = log.begin_backup().expect("begin");
    disk.set_capacity(Some(disk.used() + 1_000));
    let full = backup.copy_to(Path::new(COPY), &mut |_| Ok(()));
    assert!(full.as_ref().is_err_and(LogError::is_disk_full), "{full:?}");
    disk.set_capacity(None);
    drop(backup);
    append(&log, &at, "still there");

    let backup = log.begin_backup().expect("begin");
    log.delete_topic("other").expect("delete");
    let gone = backup.copy_to(Path::new("/second"), &mut |_| Ok(()));
    assert!(gone.is_err(), "a topic that the copy should hold is gone");
    drop(backup);
    append(&log, &at, "still there");
}

#[test]
fn a_copy_made_while_others_append_is_sound() {
    let disk = MemoryDisk::new();
    let log = Arc::new(open(&disk, "/data"));
    let at = with_topic(&log);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let (log, at, stop) = (Arc::clone(&log), at.clone(), Arc::clone(&stop));
            thread::spawn(move || {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    append(&log, &at, &format!("{writer}: {number}"));
                    number += 1;
                }
            })
        })
        .collect();
    for round in 0..20 {
        let folder = format!("/copy-{round}");
        let acknowledged = log.offsets(&at).expect("offsets").log_end.0;
        let backup = log.begin_backup().expect("begin");
        backup
            .copy_to(Path::new(&folder), &mut |_| Ok(()))
            .expect("copy");
        drop(backup);
        let report = verify(&disk, Path::new(&folder), &mut |_| {}).expect("verify");
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let copy = all(&open(&disk, &folder), &at, Isolation::ReadUncommitted);
        assert!(copy.len() as i64 >= acknowledged);
        let original = all(&log, &at, Isolation::ReadUncommitted);
        assert_eq!(copy[..], original[..copy.len()]);
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().expect("no panic");
    }
}
