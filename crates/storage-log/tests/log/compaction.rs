//! Compaction: what stays, what goes, when, and that nobody who reads or writes meanwhile notices anything else.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use highwater_storage_log::{
    BatchBuilder, Compression, Disk, EmbeddedLog, EncodedBatch, Isolation, Log, LogOptions,
    ManualClock, MemoryDisk, Offset, ProducerFields, ProducerId, TopicPartition,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::support::*;

const HOUR: i64 = 3_600_000;

struct Fixture {
    disk: MemoryDisk,
    clock: Arc<ManualClock>,
    log: EmbeddedLog,
    at: TopicPartition,
}

impl Fixture {
    /// A compacted topic whose segments take some ten records.
    fn new(map_bytes: usize) -> Self {
        let disk = MemoryDisk::new();
        let clock = Arc::new(ManualClock::at(1_000 * HOUR));
        let log = open(&disk, &clock, map_bytes);
        let at = with_topic(&log);
        let settings = [
            ("cleanup.policy", "compact"),
            ("min.cleanable.dirty.ratio", "0"),
            ("delete.retention.ms", "3600000"),
        ];
        log.alter_topic("events", &changed(&settings))
            .expect("alter");
        Self {
            disk,
            clock,
            log,
            at,
        }
    }

    fn put(&self, key: &str, value: Option<&str>) -> i64 {
        put(&self.log, &self.at, key, value, None)
    }

    fn restart(self) -> Self {
        drop(self.log);
        let log = open(&self.disk, &self.clock, 1 << 16);
        Self { log, ..self }
    }

    fn stored(&self) -> Vec<(i64, String, Option<String>)> {
        stored(&self.log, &self.at, 0, Isolation::ReadUncommitted)
    }

    /// Removes all files of that kind, as if they had been lost.
    fn lose(&self, extension: &str) {
        for (path, _) in self.disk.files() {
            if path.extension().is_some_and(|e| e == extension) {
                self.disk.remove(&path).expect("remove");
            }
        }
    }
}

fn open(disk: &MemoryDisk, clock: &Arc<ManualClock>, map_bytes: usize) -> EmbeddedLog {
    let options = LogOptions {
        segment_bytes: 1_000,
        index_interval_bytes: 200,
        tail_bytes: 300,
        compaction_map_bytes: map_bytes,
        ..LogOptions::default()
    };
    EmbeddedLog::open_with(
        Arc::new(disk.clone()),
        Arc::clone(clock) as _,
        Path::new("/data"),
        options,
    )
    .expect("open")
}

fn record(key: &str, value: Option<&str>, producer: Option<ProducerFields>) -> EncodedBatch {
    let mut builder = BatchBuilder::new();
    builder.push(
        7,
        Some(key.as_bytes()),
        value.map(str::as_bytes),
        &[("h", None)],
    );
    builder.finish(producer)
}

fn put(
    log: &EmbeddedLog,
    at: &TopicPartition,
    key: &str,
    value: Option<&str>,
    producer: Option<ProducerFields>,
) -> i64 {
    log.append(at, record(key, value, producer))
        .expect("append")
        .base_offset
        .0
}

fn stored(
    log: &EmbeddedLog,
    at: &TopicPartition,
    from: i64,
    isolation: Isolation,
) -> Vec<(i64, String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let mut all = Vec::new();
    let mut next = Offset(from);
    loop {
        let fetch = log.read(at, next, 400, isolation).expect("read");
        for batch in &fetch.batches {
            for record in &batch.records().expect("records") {
                let record = record.expect("record");
                if record.offset >= next {
                    all.push((
                        record.offset.0,
                        record.key.map_or_else(String::new, text),
                        record.value.map(text),
                    ));
                }
            }
        }
        if fetch.next_offset == next {
            return all;
        }
        next = fetch.next_offset;
    }
}

/// Last value of each key.
fn table(records: &[(i64, String, Option<String>)]) -> BTreeMap<String, (i64, Option<String>)> {
    records
        .iter()
        .map(|(offset, key, value)| (key.clone(), (*offset, value.clone())))
        .collect()
}

#[test]
fn the_last_record_of_each_key_stays_where_it_was() {
    // A map of 14 keys makes several passes of 40.
    for map_bytes in [1 << 16, 16 * 24] {
        let fixture = Fixture::new(map_bytes);
        for i in 0..400 {
            fixture.put(&format!("key {}", i * 7 % 40), Some(&format!("value {i}")));
        }
        let before = fixture.stored();
        let used = fixture.disk.used();
        fixture.log.maintain().expect("compact");
        assert!(
            fixture.disk.used() < used / 3,
            "{used} before, {} after",
            fixture.disk.used()
        );
        let check = |fixture: &Fixture| {
            let after = fixture.stored();
            assert_eq!(table(&after), table(&before));
            assert!(after.len() < 70, "the active segment and 40 keys");
            for from in (0..400).step_by(7) {
                let suffix = stored(&fixture.log, &fixture.at, from, Isolation::ReadCommitted);
                let expected: Vec<_> = after.iter().filter(|r| r.0 >= from).cloned().collect();
                assert_eq!(suffix, expected, "from {from}");
            }
            assert_eq!(
                fixture
                    .log
                    .offset_for_timestamp(&fixture.at, 7)
                    .expect("find"),
                Offset(after[0].0)
            );
        };
        check(&fixture);
        let fixture = fixture.restart();
        check(&fixture);
        // Indexes and seals can be made again although offsets are missing.
        fixture.lose("seal");
        fixture.lose("index");
        let fixture = fixture.restart();
        check(&fixture);
        // A second compaction finds what came since, and one that has nothing to do changes nothing.
        for i in 0..100 {
            fixture.put(&format!("key {}", i % 5), Some("again"));
        }
        let before = table(&fixture.stored());
        fixture.log.maintain().expect("compact");
        assert_eq!(table(&fixture.stored()), before);
        let changes = fixture.disk.changes();
        fixture.log.maintain().expect("compact");
        assert_eq!(fixture.disk.changes(), changes);
    }
}

#[test]
fn tombstones_stay_for_a_while_and_then_go() {
    let fixture = Fixture::new(1 << 16);
    for i in 0..30 {
        fixture.put(&format!("key {i}"), Some("value"));
    }
    for i in 0..20 {
        fixture.put(&format!("key {i}"), None);
    }
    // Enough for these to lie in sealed segments.
    for i in 0..40 {
        fixture.put(&format!("filler {i}"), Some("value"));
    }
    fixture.log.maintain().expect("compact");
    let tombstones = |fixture: &Fixture| {
        let all = fixture.stored();
        all.iter()
            .filter(|(_, _, value)| value.is_none())
            .map(|(offset, key, _)| (*offset, key.clone()))
            .collect::<Vec<_>>()
    };
    let expected: Vec<_> = (0..20).map(|i| (30 + i, format!("key {i}"))).collect();
    assert_eq!(tombstones(&fixture), expected);
    assert_eq!(fixture.stored()[0].1, "key 20", "their values are gone");
    let times = |fixture: &Fixture| {
        fixture
            .log
            .offset_for_timestamp(&fixture.at, 8)
            .expect("find")
    };
    assert_eq!(
        times(&fixture),
        fixture.log.offsets(&fixture.at).expect("offsets").log_end,
        "the horizon does not pass for a record's time"
    );
    fixture.clock.advance(HOUR - 1);
    fixture.log.maintain().expect("compact");
    assert_eq!(tombstones(&fixture), expected, "a millisecond too early");
    let fixture = fixture.restart();
    fixture.clock.advance(1);
    fixture.log.maintain().expect("compact");
    assert_eq!(tombstones(&fixture), []);
    assert_eq!(table(&fixture.stored()).len(), 50);
}

#[test]
fn records_without_a_key_stay() {
    let fixture = Fixture::new(1 << 16);
    for i in 0..60 {
        let mut builder = BatchBuilder::with_compression(Compression::Zstd);
        builder.push(i, None, Some(b"keyless"), &[]);
        builder.push(i, Some(b"key"), Some(b"keyed"), &[]);
        fixture
            .log
            .append(&fixture.at, builder.finish(None))
            .expect("append");
    }
    fixture.log.maintain().expect("compact");
    let all = fixture.stored();
    assert_eq!(all.iter().filter(|(_, key, _)| key.is_empty()).count(), 60);
    assert!(all.iter().filter(|(_, key, _)| key == "key").count() < 20);
}

#[test]
fn transactions_keep_their_outcome() {
    let fixture = Fixture::new(1 << 16);
    let mut sequences = [0; 4];
    for round in 0..80i32 {
        let id = round % 4;
        let fields = transactional(i64::from(id), 0, sequences[id as usize]);
        sequences[id as usize] += 1;
        let key = format!("key {}", round * 5 % 13);
        put(
            &fixture.log,
            &fixture.at,
            &key,
            Some(&format!("{round}")),
            fields,
        );
        if round % 3 == 2 {
            for id in 0..4 {
                fixture
                    .log
                    .end_transaction(&fixture.at, ProducerId(id), 0, round % 2 == 0)
                    .expect("end");
            }
        }
    }
    for id in 0..4 {
        fixture
            .log
            .end_transaction(&fixture.at, ProducerId(id), 0, true)
            .expect("end");
    }
    for i in 0..40 {
        fixture.put(&format!("filler {}", i % 3), Some("value"));
    }
    let committed = |fixture: &Fixture| {
        table(&stored(
            &fixture.log,
            &fixture.at,
            0,
            Isolation::ReadCommitted,
        ))
    };
    let before = committed(&fixture);
    let offsets = fixture.log.offsets(&fixture.at).expect("offsets");
    let everything = fixture.stored().len();
    fixture.log.maintain().expect("compact");
    assert!(fixture.stored().len() < everything / 2);
    let mut fixture = fixture;
    for lost in ["", "seal", "snapshot", "txnindex"] {
        fixture.lose(lost);
        fixture = fixture.restart();
        assert_eq!(committed(&fixture), before, "without {lost}");
        let now = fixture.log.offsets(&fixture.at).expect("offsets");
        assert_eq!(
            (now.last_stable, now.log_end),
            (offsets.last_stable, offsets.log_end)
        );
        for (id, next) in (0i64..).zip(sequences) {
            let known = fixture.log.producer(&fixture.at, ProducerId(id));
            let known = known.expect("producer").expect("known");
            assert_eq!(
                (known.last_sequence, known.open_transaction),
                (next - 1, None),
                "producer {id} without {lost}"
            );
        }
    }
    // A repeat is still one, and the sequence goes on.
    let again = fixture
        .log
        .append(
            &fixture.at,
            record("x", Some("y"), transactional(1, 0, sequences[1] - 1)),
        )
        .expect("append");
    assert!(again.duplicate);
    let old = fixture
        .log
        .append(&fixture.at, record("x", Some("y"), transactional(1, 0, 0)))
        .expect("append");
    assert!(old.duplicate, "{old:?}");
    put(
        &fixture.log,
        &fixture.at,
        "x",
        Some("y"),
        transactional(1, 0, sequences[1]),
    );
}

#[test]
fn what_is_open_held_young_or_active_is_not_touched() {
    let fixture = Fixture::new(1 << 16);
    for i in 0..100 {
        fixture.put("key", Some(&format!("value {i}")));
    }
    let count = |fixture: &Fixture| fixture.stored().len();
    fixture
        .log
        .hold_from(&fixture.at, Some(Offset(0)))
        .expect("hold");
    fixture.log.maintain().expect("compact");
    assert_eq!(count(&fixture), 100, "held");
    fixture.log.hold_from(&fixture.at, None).expect("let go");

    let lag = changed(&[("min.compaction.lag.ms", &(1_000 * HOUR).to_string())]);
    fixture.log.alter_topic("events", &lag).expect("alter");
    fixture.log.maintain().expect("compact");
    assert_eq!(count(&fixture), 100, "young");
    fixture
        .log
        .alter_topic("events", &changed(&[("min.compaction.lag.ms", "0")]))
        .expect("alter");

    let dirty = changed(&[("min.cleanable.dirty.ratio", "1")]);
    fixture.log.alter_topic("events", &dirty).expect("alter");
    fixture.log.maintain().expect("compact");
    assert_eq!(count(&fixture), 100, "not worth it");
    let overdue = changed(&[("max.compaction.lag.ms", "1000")]);
    fixture.log.alter_topic("events", &overdue).expect("alter");
    fixture.clock.advance(1_000);
    fixture.log.maintain().expect("compact");
    assert_eq!(
        count(&fixture),
        1,
        "overdue, the last one in a segment of its own"
    );
}

#[test]
fn an_open_transaction_holds_compaction_back() {
    let fixture = Fixture::new(1 << 16);
    for i in 0..50 {
        fixture.put("key", Some(&format!("value {i}")));
    }
    put(
        &fixture.log,
        &fixture.at,
        "key",
        Some("open"),
        transactional(1, 0, 0),
    );
    for i in 0..50 {
        fixture.put("key", Some(&format!("later {i}")));
    }
    fixture.log.maintain().expect("compact");
    let all = fixture.stored();
    assert!(
        all.iter()
            .any(|(_, _, value)| value.as_deref() == Some("open"))
    );
    assert!((51..70).contains(&all.len()), "{}", all.len());
    fixture
        .log
        .end_transaction(&fixture.at, ProducerId(1), 0, false)
        .expect("abort");
    for i in 0..20 {
        fixture.put("key", Some(&format!("end {i}")));
    }
    fixture.log.maintain().expect("compact");
    let all = fixture.stored();
    assert!(
        all.iter()
            .all(|(_, _, value)| value.as_deref() != Some("open"))
    );
    assert!(all.len() < 15, "{}", all.len());
}

#[test]
fn a_commit_that_a_power_cut_takes_has_replaced_nothing() {
    let disk = MemoryDisk::with_crashes();
    let clock = Arc::new(ManualClock::at(1_000 * HOUR));
    let log = open(&disk, &clock, 1 << 16);
    let at = with_topic(&log);
    let compact = [
        ("cleanup.policy", "compact"),
        ("min.cleanable.dirty.ratio", "0"),
    ];
    log.alter_topic("events", &changed(&compact))
        .expect("alter");
    put(&log, &at, "key", Some("old"), None);
    put(&log, &at, "key", Some("new"), transactional(1, 0, 0));
    while disk
        .files()
        .iter()
        .all(|(path, _)| !path.ends_with("00000000000000000000.seal"))
    {
        put(&log, &at, "filler", Some("value"), None);
    }
    log.end_transaction(&at, ProducerId(1), 0, true)
        .expect("commit");
    log.maintain().expect("compact");
    let log = open(&disk.crash(&mut |_| 0), &clock, 1 << 16);
    // A coordinator that finds the transaction open aborts it.
    log.end_transaction(&at, ProducerId(1), 0, false)
        .expect("abort");
    let seen = table(&stored(&log, &at, 0, Isolation::ReadCommitted));
    let value = seen["key"].1.as_deref();
    assert!(value == Some("new") || value == Some("old"), "{value:?}");
}

#[test]
fn a_full_disk_stops_compaction_and_nothing_else() {
    let fixture = Fixture::new(1 << 16);
    for i in 0..200 {
        fixture.put(&format!("key {}", i % 10), Some(&format!("value {i}")));
    }
    let before = table(&fixture.stored());
    let mut refused = 0;
    for room in [0, 50, 150, 300, 0] {
        // What was exchanged before the disk was full has made room, so a later attempt may come through.
        fixture.disk.set_capacity(Some(fixture.disk.used() + room));
        if let Err(full) = fixture.log.maintain() {
            assert!(full.is_disk_full(), "{full:?}");
            refused += 1;
        }
        assert_eq!(table(&fixture.stored()), before);
    }
    assert!(refused >= 2, "{refused}");
    fixture.disk.set_capacity(None);
    fixture.put("key 0", Some("there is room again"));
    fixture.log.maintain().expect("compact");
    let after = fixture.stored();
    assert!(after.len() < 30, "{}", after.len());
    let leftovers = fixture.disk.files().into_iter();
    let leftovers = leftovers.filter(|(path, _)| {
        path.extension()
            .is_some_and(|e| e == "cleaned" || e == "tmp")
    });
    assert_eq!(leftovers.count(), 0);
}

#[test]
fn both_policies_work_together() {
    let fixture = Fixture::new(1 << 16);
    let both = [
        ("cleanup.policy", "compact,delete"),
        ("retention.bytes", "2500"),
    ];
    fixture
        .log
        .alter_topic("events", &changed(&both))
        .expect("alter");
    for i in 0..300 {
        fixture.put(&format!("key {i}"), Some("all different"));
        if i % 50 == 49 {
            fixture.log.maintain().expect("maintain");
        }
    }
    let start = fixture.log.offsets(&fixture.at).expect("offsets").log_start;
    assert!(start > Offset(200), "{start:?}");
    let fixture = fixture.restart();
    let all = stored(&fixture.log, &fixture.at, start.0, Isolation::ReadCommitted);
    assert_eq!(all.len() as i64, 300 - start.0);
}

#[test]
fn readers_and_writers_go_on_while_segments_are_exchanged() {
    let fixture = Fixture::new(20 * 24);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (log, at, done) = (&fixture.log, &fixture.at, &done);
        let writer = scope.spawn(move || {
            let mut rng = SmallRng::seed_from_u64(1);
            let mut last = BTreeMap::new();
            for i in 0..6_000 {
                let key = format!("key {}", rng.random_range(0..30));
                let value = format!("value {i}");
                let offset = put(log, at, &key, Some(&value), None);
                last.insert(key, (offset, Some(value)));
            }
            last
        });
        let compactor = scope.spawn(move || {
            while !done.load(Ordering::SeqCst) {
                log.maintain().expect("compact");
            }
        });
        let readers: Vec<_> = (0..2)
            .map(|seed| {
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(seed);
                    while !done.load(Ordering::SeqCst) {
                        let end = log.offsets(at).expect("offsets").log_end.0;
                        let from = rng.random_range(0..=end);
                        let seen = stored(log, at, from, Isolation::ReadCommitted);
                        assert!(seen.is_sorted_by_key(|(offset, _, _)| *offset));
                        log.offset_for_timestamp(at, 7).expect("find");
                    }
                })
            })
            .collect();
        let last = writer.join().expect("writer");
        done.store(true, Ordering::SeqCst);
        compactor.join().expect("compactor");
        for reader in readers {
            reader.join().expect("reader");
        }
        log.maintain().expect("compact");
        let all = stored(log, at, 0, Isolation::ReadCommitted);
        assert_eq!(table(&all), last);
        assert!(all.len() < 60, "{}", all.len());
    });
}

#[test]
fn a_topic_can_be_deleted_while_it_is_compacted() {
    for _ in 0..20 {
        let fixture = Fixture::new(1 << 16);
        for i in 0..2_000 {
            fixture.put(&format!("key {}", i % 100), Some("value"));
        }
        thread::scope(|scope| {
            let log = &fixture.log;
            scope.spawn(move || log.maintain());
            log.delete_topic("events").expect("delete");
        });
        let left: Vec<_> = fixture
            .disk
            .files()
            .into_iter()
            .filter(|(path, _)| path.to_string_lossy().contains("events"))
            .collect();
        assert_eq!(left, []);
    }
}
