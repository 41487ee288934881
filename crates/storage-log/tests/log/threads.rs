//! Many threads on one log: offsets stay dense, readers see whole batches in order, waiters share syncs.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use highwater_storage_log::{
    AppendListener, EmbeddedLog, Isolation, Log, LogError, LogOptions, LogResult, MemoryDisk,
    Offset, ProducerId, TopicConfig, TopicPartition,
};

use crate::support::*;

const PRODUCERS: i64 = 8;
const BATCHES: i32 = 200;

#[derive(Default)]
struct Counter(AtomicU64);

impl AppendListener for Counter {
    fn appended(&self, partition: &TopicPartition) {
        assert_eq!(partition, &self::partition());
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn producers_and_readers_do_not_disturb_each_other() {
    let disk = MemoryDisk::new();
    let options = LogOptions {
        segment_bytes: 5_000,
        tail_bytes: 2_000,
        max_open_files: 8,
        ..LogOptions::default()
    };
    let log = EmbeddedLog::open_on(Arc::new(disk.clone()), Path::new("/data"), options.clone())
        .expect("open");
    let at = with_topic(&log);
    let counter = Arc::new(Counter::default());
    log.add_listener(counter.clone());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = [Isolation::ReadCommitted, Isolation::ReadUncommitted]
            .into_iter()
            .map(|isolation| {
                scope.spawn({
                    let (log, at, done) = (&log, &at, &done);
                    move || follow(log, at, isolation, done)
                })
            })
            .collect();
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|id| {
                scope.spawn({
                    let (log, at) = (&log, &at);
                    move || {
                        if hands_over(id) {
                            hand_over(log, at, id);
                        } else {
                            produce(log, at, id);
                        }
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join().expect("producer");
        }
        done.store(true, Ordering::SeqCst);
        let [committed, all] = &readers
            .into_iter()
            .map(|reader| reader.join().expect("reader"))
            .collect::<Vec<_>>()[..]
        else {
            unreachable!("two readers")
        };
        // Even producers use transactions and abort every tenth; odd ones do not.
        let aborted = PRODUCERS as usize / 2 * BATCHES as usize / 10 * 2;
        assert_eq!(all.len(), PRODUCERS as usize * BATCHES as usize * 2);
        assert_eq!(committed.len(), all.len() - aborted);
        for values in [committed, all] {
            assert!(values.is_sorted(), "offsets ascend");
        }
    });
    let appends = PRODUCERS as u64 * BATCHES as u64;
    let markers = PRODUCERS as u64 / 2 * BATCHES as u64;
    // What was written together is told together.
    let handing_over = (0..PRODUCERS).filter(|id| hands_over(*id)).count() as u64;
    let told = counter.0.load(Ordering::SeqCst);
    let alone = appends + markers - handing_over * BATCHES as u64;
    assert!(
        (alone + 1..=appends + markers).contains(&told),
        "{told} notes"
    );
    let end = log.offsets(&at).expect("offsets").log_end;
    assert_eq!(end, Offset((2 * appends + markers) as i64), "dense");

    drop(log);
    let log =
        EmbeddedLog::open_on(Arc::new(disk), Path::new("/data"), options).expect("open again");
    assert_eq!(log.offsets(&at).expect("offsets").log_end, end);
    for id in 0..PRODUCERS {
        let state = log
            .producer(&at, ProducerId(id))
            .expect("producer")
            .expect("known");
        assert_eq!(
            (state.last_sequence, state.open_transaction),
            (2 * BATCHES - 1, None)
        );
    }
}

/// Half of those that use no transactions let the log write for them.
fn hands_over(id: i64) -> bool {
    id % 4 == 1
}

/// Like [`produce`], with five batches on their way.
fn hand_over(log: &EmbeddedLog, at: &TopicPartition, id: i64) {
    let (told, hears) = mpsc::channel();
    for i in 0..BATCHES {
        let (first, second) = (format!("{id}:{}", 2 * i), format!("{id}:{}", 2 * i + 1));
        let batch = batch_from(&[&first, &second], idempotent(id, 0, 2 * i));
        let told = told.clone();
        let waiter = move |outcome: LogResult<_>| told.send(outcome).expect("heard");
        log.produce(at, batch, Box::new(waiter));
        if i >= 5 {
            hears.recv().expect("told").expect("appended");
        }
    }
    drop(told);
    assert!(hears.iter().all(|outcome| outcome.is_ok()));
}

fn produce(log: &EmbeddedLog, at: &TopicPartition, id: i64) {
    for i in 0..BATCHES {
        let in_transaction = id % 2 == 0;
        let fields = if in_transaction {
            transactional(id, 0, 2 * i)
        } else {
            idempotent(id, 0, 2 * i)
        };
        let (first, second) = (format!("{id}:{}", 2 * i), format!("{id}:{}", 2 * i + 1));
        let appended = log
            .append(at, batch_from(&[&first, &second], fields))
            .expect("append");
        if in_transaction {
            log.end_transaction(at, ProducerId(id), 0, i % 10 != 9)
                .expect("end");
        }
        if i % 20 == 0 {
            log.sync(at, Offset(appended.last_offset.0 + 1))
                .expect("sync");
        }
    }
}

/// Reads along until the producers are done and nothing is left; checks that each producer's values come in order.
fn follow(
    log: &EmbeddedLog,
    at: &TopicPartition,
    isolation: Isolation,
    done: &AtomicBool,
) -> Vec<i64> {
    let mut offsets = Vec::new();
    let mut last_of = [-1i64; PRODUCERS as usize];
    let mut next = Offset(0);
    loop {
        let over = done.load(Ordering::SeqCst);
        let fetch = log.read(at, next, 700, isolation).expect("read");
        for batch in &fetch.batches {
            let records = batch.records().expect("records");
            for record in &records {
                let record = record.expect("record");
                let value = std::str::from_utf8(record.value.expect("value")).expect("text");
                let (id, number) = value.split_once(':').expect("two parts");
                let last = &mut last_of[id.parse::<usize>().expect("id")];
                let number: i64 = number.parse().expect("number");
                assert!(number > *last, "{value} after {last}");
                *last = number;
                offsets.push(record.offset.0);
            }
        }
        if over && fetch.next_offset == next {
            return offsets;
        }
        next = fetch.next_offset;
    }
}

#[test]
fn waiters_share_syncs_and_partitions_do_not_wait_for_each_other() {
    let dir = tempfile::tempdir().expect("folder");
    let log = EmbeddedLog::open(dir.path(), LogOptions::default()).expect("open");
    log.create_topic("events", TopicConfig::with_partitions(4))
        .expect("create");
    thread::scope(|scope| {
        for i in 0..16u32 {
            let log = &log;
            scope.spawn(move || {
                let at = TopicPartition::new("events", i % 4);
                for _ in 0..10 {
                    let end = log
                        .append(&at, batch(&["x"]))
                        .expect("append")
                        .last_offset
                        .0
                        + 1;
                    log.sync(&at, Offset(end)).expect("sync");
                    assert!(log.offsets(&at).expect("offsets").durable.0 >= end);
                }
            });
        }
    });
    for i in 0..4 {
        let offsets = log
            .offsets(&TopicPartition::new("events", i))
            .expect("offsets");
        assert_eq!((offsets.log_end, offsets.durable), (Offset(40), Offset(40)));
    }
}

fn on_memory() -> (MemoryDisk, EmbeddedLog) {
    let disk = MemoryDisk::new();
    let log = EmbeddedLog::open_on(
        Arc::new(disk.clone()),
        Path::new("/data"),
        LogOptions::default(),
    );
    (disk, log.expect("open"))
}

#[test]
fn words_left_are_told_once_and_share_syncs() {
    let (disk, log) = on_memory();
    let log = Arc::new(log);
    log.create_topic("events", TopicConfig::with_partitions(6))
        .expect("create");
    let before = disk.syncs();
    let (told, hears) = mpsc::channel();
    for i in 0..3_000u32 {
        let at = TopicPartition::new("events", i % 6);
        let appended = log.append(&at, batch(&["x"])).expect("append");
        let end = Offset(appended.last_offset.0 + 1);
        let (told, asked) = (told.clone(), Arc::downgrade(&log));
        let waiter = move |synced: LogResult<()>| {
            let durable = asked.upgrade().map(|log| {
                let at = TopicPartition::new("events", i % 6);
                log.offsets(&at).expect("offsets").durable
            });
            told.send((
                i,
                synced.is_ok() && durable.is_none_or(|durable| durable >= end),
            ))
            .expect("the test hears");
        };
        log.when_synced(&at, end, Box::new(waiter));
    }
    // Dropping the log does not leave anybody waiting.
    drop(log);
    drop(told);
    let mut heard: Vec<_> = hears.iter().collect();
    heard.sort_unstable();
    let all: Vec<_> = (0..3_000).map(|i| (i, true)).collect();
    assert_eq!(heard, all);
    let syncs = disk.syncs() - before;
    assert!(syncs < 3_000, "3000 words took {syncs} syncs");
}

#[test]
fn words_are_told_of_failures() {
    let (disk, log) = on_memory();
    let at = with_topic(&log);
    let word = |partition: &TopicPartition, up_to| {
        let (told, hears) = mpsc::channel();
        let waiter = move |synced| told.send(synced).expect("the test hears");
        log.when_synced(partition, Offset(up_to), Box::new(waiter));
        hears.recv().expect("told")
    };
    log.append(&at, batch(&["one"])).expect("append");
    word(&at, 1).expect("synced");
    assert!(matches!(
        word(&at, 2),
        Err(LogError::OffsetOutOfRange { .. })
    ));
    let elsewhere = TopicPartition::new("nothing", 0);
    assert!(matches!(
        word(&elsewhere, 0),
        Err(LogError::UnknownTopic { .. })
    ));
    log.append(&at, batch(&["two"])).expect("append");
    disk.fail_syncs_after(Some(0));
    assert!(matches!(word(&at, 2), Err(LogError::Poisoned { .. })));
    disk.fail_syncs_after(None);
    assert!(
        matches!(word(&at, 2), Err(LogError::Poisoned { .. })),
        "for ever"
    );
    word(&at, 1).expect("what was on disk still is");
}
