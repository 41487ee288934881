//! Batches that are handed over ([`Log::produce`]): written together, each with an outcome of its own.

use std::{
    path::Path,
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use highwater_storage_log::{
    Appended, EmbeddedLog, EncodedBatch, FsyncPolicy, Isolation, Log, LogError, LogOptions,
    LogResult, MemoryDisk, Offset, TopicConfig, TopicPartition,
};

use crate::support::*;

const PRODUCERS: i64 = 8;
const BATCHES: i32 = 300;
/// What a producer of Kafka's has on its way by default (`max.in.flight.requests.per.connection`).
const IN_FLIGHT: usize = 5;
/// Whoever is not told by then never will be.
const PATIENCE: Duration = Duration::from_secs(60);

fn on(disk: &MemoryDisk, options: LogOptions) -> EmbeddedLog {
    EmbeddedLog::open_on(Arc::new(disk.clone()), Path::new("/data"), options).expect("open")
}

/// Hands a batch over; its outcome comes out of the channel.
fn send(
    log: &EmbeddedLog,
    at: &TopicPartition,
    batch: EncodedBatch,
) -> Receiver<LogResult<Appended>> {
    let (told, hears) = mpsc::channel();
    log.produce(at, batch, Box::new(move |outcome| _ = told.send(outcome)));
    hears
}

fn outcome(hears: &Receiver<LogResult<Appended>>) -> LogResult<Appended> {
    hears.recv_timeout(PATIENCE).expect("told")
}

/// Hands over all of them at once; the outcomes in their order.
fn send_all(
    log: &EmbeddedLog,
    at: &TopicPartition,
    batches: Vec<EncodedBatch>,
) -> Vec<LogResult<Appended>> {
    let sent: Vec<_> = batches
        .into_iter()
        .map(|batch| send(log, at, batch))
        .collect();
    sent.iter().map(outcome).collect()
}

#[test]
fn producers_with_several_batches_on_their_way_keep_their_order() {
    let disk = MemoryDisk::new();
    let options = LogOptions {
        segment_bytes: 20_000,
        tail_bytes: 2_000,
        ..LogOptions::default()
    };
    let log = on(&disk, options.clone());
    let at = with_topic(&log);
    thread::scope(|scope| {
        for id in 0..PRODUCERS {
            let (log, at) = (&log, &at);
            scope.spawn(move || {
                let mut under_way = std::collections::VecDeque::new();
                for sequence in 0..BATCHES {
                    let value = format!("{id}:{sequence}");
                    let batch = batch_from(&[&value], idempotent(id, 0, sequence));
                    under_way.push_back((value, send(log, at, batch)));
                    if under_way.len() == IN_FLIGHT {
                        acknowledged(log, at, under_way.pop_front());
                    }
                }
                while !under_way.is_empty() {
                    acknowledged(log, at, under_way.pop_front());
                }
            });
        }
    });
    let all = PRODUCERS as u64 * BATCHES as u64;
    drop(log);
    let log = on(&disk, options);
    let stored = values(&log, &at, 0, Isolation::ReadCommitted, 1 << 20);
    let offsets: Vec<i64> = stored.iter().map(|(offset, _)| *offset).collect();
    assert!(offsets.into_iter().eq(0..all as i64), "dense");
    for id in 0..PRODUCERS {
        let prefix = format!("{id}:");
        let sequences = stored
            .iter()
            .filter_map(|(_, value)| value.strip_prefix(&prefix)?.parse::<i32>().ok());
        assert!(sequences.eq(0..BATCHES), "producer {id} in order, once");
    }
}

/// The oldest batch on its way was acknowledged: it is on disk, and is read at its offset.
fn acknowledged(
    log: &EmbeddedLog,
    at: &TopicPartition,
    sent: Option<(String, Receiver<LogResult<Appended>>)>,
) {
    let (value, hears) = sent.expect("one is on its way");
    let appended = outcome(&hears).expect("appended");
    assert!(!appended.duplicate && appended.base_offset == appended.last_offset);
    assert!(log.offsets(at).expect("offsets").durable > appended.base_offset);
    let fetch = log
        .read(at, appended.base_offset, 1, Isolation::ReadCommitted)
        .expect("read");
    let records = fetch.batches[0].records().expect("records");
    let record = records.iter().next().expect("one").expect("whole");
    assert_eq!(
        (record.offset, record.value),
        (appended.base_offset, Some(value.as_bytes()))
    );
}

#[test]
fn what_has_come_is_written_with_one_call_and_synced_with_one() {
    let disk = MemoryDisk::new();
    let log = on(&disk, LogOptions::default());
    let at = with_topic(&log);
    outcome(&send(&log, &at, batch(&["the file is there"]))).expect("appended");
    // Whoever leads is kept busy until all have come.
    let (lets_go, held) = mpsc::channel::<()>();
    let (tells, is_held) = mpsc::channel();
    let holds = move |_| {
        tells.send(()).expect("the test hears");
        _ = held.recv();
    };
    log.produce(&at, batch(&["first"]), Box::new(holds));
    is_held.recv_timeout(PATIENCE).expect("the leader is busy");
    let before = (disk.changes(), disk.syncs());
    let sent: Vec<_> = (0..100)
        .map(|id| send(&log, &at, batch_from(&["x", "y"], idempotent(id, 0, 0))))
        .collect();
    assert_eq!(disk.changes(), before.0, "nothing happens yet");
    assert_eq!(log.offsets(&at).expect("offsets").log_end, Offset(2));
    lets_go.send(()).expect("the leader waits");
    for (i, hears) in (0..).zip(&sent) {
        let appended = outcome(hears).expect("appended");
        assert_eq!(
            (appended.base_offset, appended.last_offset),
            (Offset(2 + 2 * i), Offset(3 + 2 * i))
        );
    }
    // A write, a sync, and the recovery point.
    assert_eq!((disk.changes() - before.0, disk.syncs() - before.1), (3, 1));
}

#[test]
fn each_batch_is_judged_by_itself() {
    let disk = MemoryDisk::new();
    let log = on(&disk, LogOptions::default());
    let at = with_topic(&log);
    log.alter_topic("events", &changed(&[("max.message.bytes", "1000")]))
        .expect("alter");
    for sequence in 0..10 {
        log.append(&at, batch_from(&["old"], idempotent(1, 0, sequence)))
            .expect("append");
    }
    let too_large = "x".repeat(1_000);
    let outcomes = send_all(
        &log,
        &at,
        vec![
            batch_from(&["a"], idempotent(1, 0, 10)),
            batch(&[&too_large]),
            batch_from(&["gap"], idempotent(1, 0, 12)),
            batch_from(&["a"], idempotent(1, 0, 10)),
            batch(&["b", "c"]),
            batch_from(&["old"], idempotent(1, 0, 3)),
            batch_from(&["d"], idempotent(1, 1, 0)),
            batch_from(&["fenced"], idempotent(1, 0, 11)),
        ],
    );
    let appended = |base: i64, last: i64, duplicate| Appended {
        base_offset: Offset(base),
        last_offset: Offset(last),
        duplicate,
    };
    let [a, large, gap, again, b, old, d, fenced] = &outcomes[..] else {
        unreachable!("as many as were sent")
    };
    let place = |outcome: &LogResult<Appended>| *outcome.as_ref().expect("appended");
    assert_eq!(place(a), appended(10, 10, false));
    assert!(
        matches!(large, Err(LogError::BatchTooLarge { .. })),
        "{large:?}"
    );
    assert!(
        matches!(gap, Err(LogError::OutOfOrderSequence { expected: 11, .. })),
        "{gap:?}"
    );
    assert_eq!(place(again), appended(10, 10, true));
    assert_eq!(place(b), appended(11, 12, false));
    assert_eq!(
        place(old),
        appended(3, 3, true),
        "too long ago to be remembered"
    );
    assert_eq!(place(d), appended(13, 13, false));
    assert!(
        matches!(fenced, Err(LogError::ProducerFenced { .. })),
        "{fenced:?}"
    );
    assert_eq!(committed(&log, &at)[10..], ["a", "b", "c", "d"]);

    let nowhere = outcome(&send(
        &log,
        &TopicPartition::new("nowhere", 0),
        batch(&["x"]),
    ));
    assert!(
        matches!(nowhere, Err(LogError::UnknownTopic { .. })),
        "{nowhere:?}"
    );
}

#[test]
fn a_full_disk_refuses_whom_it_cannot_take_and_nobody_else() {
    for free in (0..4_000).step_by(97) {
        let disk = MemoryDisk::new();
        let log = on(&disk, LogOptions::default());
        let at = with_topic(&log);
        outcome(&send(
            &log,
            &at,
            batch_from(&["before"], idempotent(9, 0, 0)),
        ))
        .expect("there is space");
        let batches = |range: std::ops::Range<i64>| -> Vec<_> {
            range
                .map(|id| batch_from(&[&"x".repeat(20 + 40 * id as usize)], idempotent(id, 0, 0)))
                .collect()
        };
        disk.set_capacity(Some(disk.used() + free));
        let outcomes = send_all(&log, &at, batches(0..8));
        let mut next = 1;
        for outcome in &outcomes {
            match outcome {
                Ok(appended) => {
                    assert_eq!(appended.base_offset.0, next, "dense among those that fit");
                    next += 1;
                }
                Err(error) => assert!(error.is_disk_full(), "{error:?}"),
            }
        }
        // The small ones come first: what fits is not refused for the sake of what does not.
        let smallest = batch(&["x".repeat(20).as_str()]).len() as u64;
        assert!(
            outcomes[0].is_ok() || free < smallest,
            "{free} bytes were free"
        );
        assert_eq!(
            log.offsets(&at).expect("offsets").log_end.0,
            next,
            "nothing of the refused is seen"
        );
        assert_eq!(committed(&log, &at).len() as i64, next, "reads go on");

        disk.set_capacity(None);
        let again = send_all(&log, &at, batches(0..8));
        for (first, again) in outcomes.iter().zip(&again) {
            let again = again.as_ref().expect("there is space again");
            assert_eq!(
                again.duplicate,
                first.is_ok(),
                "only what was refused is appended"
            );
        }
        drop(log);
        let log = on(&disk, LogOptions::default());
        let stored = values(&log, &at, 0, Isolation::ReadCommitted, 1 << 20);
        assert!(
            stored.iter().map(|(offset, _)| *offset).eq(0..9),
            "{stored:?}"
        );
    }
}

#[test]
fn a_failed_sync_is_told_to_all_whom_it_concerns() {
    let disk = MemoryDisk::new();
    let log = on(&disk, LogOptions::default());
    let at = with_topic(&log);
    outcome(&send(&log, &at, batch(&["safe"]))).expect("appended");
    disk.fail_syncs_after(Some(0));
    for outcome in send_all(&log, &at, (0..20).map(|_| batch(&["lost"])).collect()) {
        assert!(
            matches!(outcome, Err(LogError::Poisoned { .. })),
            "{outcome:?}"
        );
    }
    disk.fail_syncs_after(None);
    let refused = outcome(&send(&log, &at, batch(&["late"])));
    assert!(
        matches!(refused, Err(LogError::Poisoned { .. })),
        "{refused:?}"
    );
    log.reopen(&at).expect("the disk works again");
    let appended = outcome(&send(&log, &at, batch(&["after"]))).expect("appended");
    let stored = committed(&log, &at);
    assert_eq!(
        (&stored[0][..], &stored[appended.base_offset.0 as usize][..]),
        ("safe", "after")
    );
    assert!(
        !stored.contains(&"late".into()),
        "what was refused is not there"
    );
}

#[test]
fn a_deleted_topic_refuses_what_was_handed_over() {
    let disk = MemoryDisk::new();
    let log = on(&disk, LogOptions::default());
    let at = with_topic(&log);
    for _ in 0..50 {
        let sent: Vec<_> = (0..20).map(|_| send(&log, &at, batch(&["x"]))).collect();
        log.delete_topic("events").expect("delete");
        for hears in &sent {
            let outcome = outcome(hears);
            assert!(
                matches!(outcome, Ok(_) | Err(LogError::UnknownTopic { .. })),
                "{outcome:?}"
            );
        }
        log.create_topic("events", TopicConfig::with_partitions(1))
            .expect("create again");
        assert_eq!(
            log.offsets(&at).expect("offsets").log_end,
            Offset(0),
            "a new topic is empty"
        );
    }
}

#[test]
fn the_end_of_the_process_takes_nothing_that_was_acknowledged_under_any_policy() {
    for fsync in [
        FsyncPolicy::Always,
        FsyncPolicy::Interval(Duration::from_secs(3600)),
        FsyncPolicy::Never,
    ] {
        let disk = MemoryDisk::new();
        let options = LogOptions {
            fsync,
            ..LogOptions::default()
        };
        let log = on(&disk, options.clone());
        let at = with_topic(&log);
        outcome(&send(&log, &at, batch(&["a", "b"]))).expect("appended");
        // What the operating system has when the process is killed now.
        let survivor = disk.deep_clone();
        assert_eq!(
            committed(&on(&survivor, options), &at),
            ["a", "b"],
            "{fsync:?}"
        );
    }
}

#[test]
fn whoever_hands_over_too_much_writes_it() {
    let disk = MemoryDisk::new();
    let log = on(&disk, LogOptions::default());
    let at = with_topic(&log);
    let large = "x".repeat(1 << 20);
    let outcomes = send_all(&log, &at, (0..24).map(|_| batch(&[&large])).collect());
    let offsets = outcomes
        .into_iter()
        .map(|outcome| outcome.expect("appended").base_offset.0);
    assert!(offsets.eq(0..24), "in order");
    let small = send_all(&log, &at, (0..10_000).map(|_| batch(&["x"])).collect());
    let offsets = small
        .into_iter()
        .map(|outcome| outcome.expect("appended").base_offset.0);
    assert!(offsets.eq(24..10_024), "in order");
}

#[test]
fn a_waiter_that_panics_is_alone_with_that() {
    let disk = MemoryDisk::new();
    let log = on(&disk, LogOptions::default());
    let at = with_topic(&log);
    for round in 0..20 {
        log.produce(
            &at,
            batch(&["x"]),
            Box::new(|_| panic!("a waiter's own fault")),
        );
        let others = [
            send(&log, &at, batch(&["y"])),
            send(&log, &at, batch(&["z"])),
        ];
        for hears in &others {
            outcome(hears).expect("appended");
        }
        let end = log.offsets(&at).expect("offsets").log_end;
        let (told, hears) = mpsc::channel();
        log.when_synced(&at, end, Box::new(|_| panic!("a waiter's own fault")));
        log.when_synced(&at, end, Box::new(move |synced| _ = told.send(synced)));
        hears.recv_timeout(PATIENCE).expect("told").expect("synced");
        assert_eq!(end.0, 3 * (round + 1));
    }
}

#[test]
fn more_partitions_than_threads_are_all_served() {
    let disk = MemoryDisk::new();
    let log = Arc::new(on(&disk, LogOptions::default()));
    const PARTITIONS: u32 = 12;
    log.create_topic("events", TopicConfig::with_partitions(PARTITIONS))
        .expect("create");
    let (told, hears) = mpsc::channel();
    // Each acknowledgement hands over the next batch, so that no partition is ever idle.
    fn go_on(log: &Arc<EmbeddedLog>, partition: u32, left: u32, told: mpsc::Sender<u32>) {
        let at = TopicPartition::new("events", partition);
        let again = Arc::downgrade(log);
        let waiter = move |appended: LogResult<Appended>| {
            appended.expect("appended");
            match again.upgrade().filter(|_| left > 0) {
                Some(log) => go_on(&log, partition, left - 1, told),
                None => told.send(partition).expect("the test hears"),
            }
        };
        log.produce(&at, batch(&["x"]), Box::new(waiter));
    }
    for partition in 0..PARTITIONS {
        go_on(&log, partition, 200, told.clone());
    }
    drop(told);
    for _ in 0..PARTITIONS {
        hears.recv_timeout(PATIENCE).expect("every partition ends");
    }
}

#[test]
fn whoever_waits_when_the_log_is_dropped_is_told() {
    let disk = MemoryDisk::new();
    for _ in 0..20 {
        let log = on(&disk, LogOptions::default());
        if log.topic("events").is_none() {
            with_topic(&log);
        }
        let sent: Vec<_> = (0..300)
            .map(|_| send(&log, &partition(), batch(&["x"])))
            .collect();
        drop(log);
        for hears in &sent {
            outcome(hears).expect("appended");
        }
    }
    let log = on(&disk, LogOptions::default());
    assert_eq!(
        log.offsets(&partition()).expect("offsets").log_end,
        Offset(6_000)
    );
}
