//! Power cuts and kills at every kind of moment. A random workload runs on a disk that stops after some number of changes; then the disk loses any choice of
//! what was not synced (whole writes, torn ones, names), the log is opened on what is left and held against a model: exactly the acknowledged records
//! are there, plus at most whole batches of the unacknowledged rest, with producers and transactions to match. Then it goes on from there.
//!
//! Some runs have retention, some compaction, some both, changed while they run; some have syncs that fail and a partition that is opened again.
//!
//! The checker has negative controls: a log that skips the sync and a disk that lies about it must both be caught.

mod handed_over;
mod model;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use highwater_storage_log::{
    BatchBuilder, EmbeddedLog, EncodedBatch, FsyncPolicy, Isolation, Log, LogError, LogOptions,
    LogResult, MemoryDisk, Offset, ProducerFields, ProducerId, TopicConfig, TopicPartition,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::support::*;
use model::{Entry, Model, key_of};

/// Disk states checked per run of the test; `HIGHWATER_CRASH_STATES` asks for more.
/// Fewer without optimisation, where a state takes ten times as long.
const STATES: u64 = if cfg!(debug_assertions) {
    3_000
} else {
    20_000
};

fn states() -> u64 {
    std::env::var("HIGHWATER_CRASH_STATES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(STATES)
}

/// Does one random thing and tells the model. Answers whether the disk still runs.
fn step(log: &EmbeddedLog, at: &TopicPartition, model: &mut Model, rng: &mut SmallRng) -> bool {
    match rng.random_range(0..100) {
        0..60 => append(log, at, model, rng),
        60..75 => {
            let id = rng.random_range(1..=3);
            let commit = rng.random_bool(0.6);
            let open = model.producer(id).1;
            let marker = Entry {
                base: model.end(),
                values: Vec::new(),
                producer: transactional(id, 0, -1),
                marker: Some(commit),
            };
            match log.end_transaction(at, ProducerId(id), 0, commit) {
                Ok(offset) => {
                    assert_eq!(offset, open.then_some(Offset(marker.base)));
                    model.entries.extend(open.then_some(marker));
                    true
                }
                Err(error) => failed(model, open.then_some(marker), &error),
            }
        }
        75..92 => {
            let up_to = rng.random_range(model.acknowledged..=model.end());
            match log.sync(at, Offset(up_to)) {
                Ok(()) => {
                    model.acknowledged = model.acknowledged.max(up_to);
                    true
                }
                Err(error) => failed(model, None, &error),
            }
        }
        92..95 => maintain(log, at, model, rng),
        95 => alter(log, at, model, rng),
        _ => {
            let to = rng.random_range(model.log_start..=model.end());
            // Several calls that failed may each have left their mark.
            model.retention_uncertain |= model.log_start_maybe != model.log_start;
            model.log_start_maybe = model.log_start_maybe.max(to);
            match log.drop_below(at, Offset(to)) {
                Ok(()) if to == model.log_start => true,
                Ok(()) => {
                    model.log_start = to;
                    model.log_start_maybe = to;
                    model.retention_uncertain = false;
                    true
                }
                Err(error) => failed(model, None, &error),
            }
        }
    }
}

/// Retention and compaction, as the topic's settings want them.
fn maintain(log: &EmbeddedLog, at: &TopicPartition, model: &mut Model, rng: &mut SmallRng) -> bool {
    if rng.random_bool(0.2) {
        let from = rng
            .random_bool(0.5)
            .then(|| Offset(rng.random_range(0..=model.end())));
        log.hold_from(at, from).expect("hold");
    }
    let stable = model.committed().1;
    let outcome = log.maintain();
    model.compacted |= log.topic(&at.topic).is_some_and(|topic| {
        let policy = topic.config.settings.get("cleanup.policy");
        policy.is_some_and(|policy| policy.contains("compact"))
    });
    match outcome {
        Ok(()) => {
            let start = log.offsets(at).expect("offsets").log_start.0;
            assert!(start == model.log_start || (model.log_start..=stable).contains(&start));
            if start != model.log_start {
                model.log_start = start;
                model.log_start_maybe = start;
                model.retention_uncertain = false;
            }
            true
        }
        Err(error) => {
            model.log_start_maybe = stable.max(model.log_start);
            model.retention_uncertain = true;
            failed(model, None, &error)
        }
    }
}

/// Another policy from now on.
fn alter(log: &EmbeddedLog, at: &TopicPartition, model: &mut Model, rng: &mut SmallRng) -> bool {
    let policies = ["delete", "compact", "compact,delete"];
    let settings = [
        ("cleanup.policy", policies[rng.random_range(0..3)]),
        ("retention.bytes", ["-1", "1500"][rng.random_range(0..2)]),
        ("min.cleanable.dirty.ratio", "0"),
    ];
    match log.alter_topic(&at.topic, &changed(&settings)) {
        Ok(()) => true,
        Err(error) => failed(model, None, &error),
    }
}

/// A batch whose keys follow from its values.
fn keyed(values: &[&str], producer: Option<ProducerFields>) -> EncodedBatch {
    let mut builder = BatchBuilder::new();
    for (i, value) in (0i64..).zip(values) {
        let key = key_of(value).to_be_bytes();
        builder.push(1_000 + i, Some(&key), Some(value.as_bytes()), &[]);
    }
    builder.finish(producer)
}

fn append(log: &EmbeddedLog, at: &TopicPartition, model: &mut Model, rng: &mut SmallRng) -> bool {
    let values: Vec<String> = (0..rng.random_range(1..4))
        .map(|i| {
            format!(
                "{}-{i}-{}",
                model.end(),
                "x".repeat(if rng.random_bool(0.1) { 700 } else { 5 })
            )
        })
        .collect();
    let id = rng.random_range(1..=3);
    let (next, open) = model.producer(id);
    let producer = match rng.random_range(0..3) {
        0 => None,
        1 if !open => idempotent(id, 0, next),
        _ => transactional(id, 0, next),
    };
    let texts: Vec<&str> = values.iter().map(String::as_str).collect();
    let entry = Entry {
        base: model.end(),
        values: values.clone(),
        producer,
        marker: None,
    };
    match log.append(at, keyed(&texts, producer)) {
        Ok(appended) => {
            assert!(!appended.duplicate, "{entry:?} was never sent before");
            assert_eq!(appended.base_offset.0, entry.base);
            model.entries.push(entry);
            if producer.is_some() && rng.random_bool(0.3) {
                let again = log
                    .append(at, keyed(&texts, producer))
                    .expect("a repeat writes nothing");
                assert!(
                    again.duplicate && again.base_offset == appended.base_offset,
                    "{again:?}"
                );
            }
            true
        }
        Err(error) => failed(model, Some(entry), &error),
    }
}

fn failed(model: &mut Model, uncertain: Option<Entry>, error: &LogError) -> bool {
    assert!(
        matches!(
            error,
            LogError::Io { .. } | LogError::Poisoned { .. } | LogError::Stopped { .. }
        ),
        "{error:?}"
    );
    model.uncertain = uncertain;
    false
}

/// What differs between the real check and its controls.
#[derive(Clone, Copy)]
struct Setup {
    fsync: FsyncPolicy,
    lying_disk: bool,
    /// Sealing a segment syncs it, which would hide part of what the controls do wrong.
    segment_bytes: u64,
}

const HONEST: Setup = Setup {
    fsync: FsyncPolicy::Always,
    lying_disk: false,
    segment_bytes: 900,
};

fn open(disk: &MemoryDisk, setup: Setup) -> EmbeddedLog {
    try_open(disk, setup).expect("open")
}

fn try_open(disk: &MemoryDisk, setup: Setup) -> LogResult<EmbeddedLog> {
    let options = LogOptions {
        fsync: setup.fsync,
        segment_bytes: setup.segment_bytes,
        index_interval_bytes: 200,
        tail_bytes: 500,
        // Four keys a pass: most compactions take several.
        compaction_map_bytes: 5 * 24,
        ..LogOptions::default()
    };
    if setup.lying_disk {
        disk.ignore_syncs();
    }
    EmbeddedLog::open_on(Arc::new(disk.clone()), Path::new("/data"), options)
}

/// Opens the log on a disk that stops meanwhile; answers with the disk as the next opening finds it.
fn cut_opening_short(disk: MemoryDisk, setup: Setup, rng: &mut SmallRng) -> MemoryDisk {
    disk.halt_after(Some(rng.random_range(0..20)));
    let opened = try_open(&disk, setup);
    disk.halt_after(Some(0));
    drop(opened);
    if rng.random_bool(0.5) {
        disk.halt_after(None);
        return disk;
    }
    disk.crash(&mut |n| rng.random_range(0..n))
}

/// Lets a sync fail, then opens the partition again on the disk that works by then. What was not acknowledged may be gone or not, but not later.
fn fail_a_sync(
    log: &EmbeddedLog,
    disk: &MemoryDisk,
    at: &TopicPartition,
    model: &mut Model,
    rng: &mut SmallRng,
) {
    disk.fail_syncs_after(Some(rng.random_range(0..4)));
    for _ in 0..30 {
        if !step(log, at, model, rng) {
            break;
        }
    }
    disk.fail_syncs_after(None);
    log.reopen(at).expect("the disk works again");
    model.check_running(log, at);
}

/// Runs one seed: several lives, each ended by a power cut, with several outcomes of each cut checked. Answers how many states were checked.
fn run(seed: u64, setup: Setup) -> u64 {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut disk = MemoryDisk::with_crashes();
    let at = partition();
    open(&disk, HONEST)
        .create_topic(&at.topic, TopicConfig::with_partitions(1))
        .expect("create");
    let mut model = Model::default();
    let mut checked = 0;
    for _ in 0..4 {
        if rng.random_bool(0.3) {
            disk = cut_opening_short(disk, setup, &mut rng);
            model.check(&open(&disk, setup), &at);
            checked += 1;
        }
        let log = open(&disk, setup);
        if rng.random_bool(0.2) {
            fail_a_sync(&log, &disk, &at, &mut model, &mut rng);
        }
        disk.halt_after(Some(rng.random_range(0..120)));
        for _ in 0..200 {
            if !step(&log, &at, &mut model, &mut rng) {
                break;
            }
        }
        // Nothing of what follows, a clean stop above all, reaches the disk.
        disk.halt_after(Some(0));
        drop(log);
        if rng.random_bool(0.25) {
            // Only the process was killed: nothing is lost yet, but what is found now must survive the next power cut.
            disk.halt_after(None);
            model.check(&open(&disk, setup), &at);
            disk.halt_after(None);
            checked += 1;
            continue;
        }
        let outcomes = rng.random_range(1..4);
        for _ in 0..outcomes {
            let bias = rng.random_range(0..4);
            let survivor = disk.crash(&mut |n| match bias {
                0 => 0,
                1 => n - 1,
                _ => rng.random_range(0..n),
            });
            let mut outcome = model.clone();
            let log = open(&survivor, setup);
            outcome.check(&log, &at);
            drop(log);
            checked += 1;
            if checked % 2 == 0 {
                // Opening once more, also after a crash of the opening itself, changes nothing.
                let again = survivor.crash(&mut |n| rng.random_range(0..n));
                outcome.check(&open(&again, setup), &at);
                checked += 1;
            }
        }
        let survivor = disk.crash(&mut |n| rng.random_range(0..n));
        let log = open(&survivor, setup);
        model.check(&log, &at);
        drop(log);
        disk = survivor;
    }
    checked
}

#[test]
fn acknowledged_records_survive_power_cuts() {
    let mut checked = 0;
    let mut seed = 0;
    while checked < states() {
        let ran = catch_unwind(AssertUnwindSafe(|| run(seed, HONEST)));
        checked += ran.unwrap_or_else(|_| panic!("seed {seed} breaks the promise"));
        seed += 1;
    }
}

/// How many of the first 40 seeds the checker objects to.
fn caught(setup: Setup) -> usize {
    (0..40)
        .filter(|seed| catch_unwind(AssertUnwindSafe(|| run(*seed, setup))).is_err())
        .count()
}

#[test]
fn the_checker_catches_a_log_that_skips_the_sync_and_a_disk_that_lies() {
    let large = Setup {
        segment_bytes: 1 << 20,
        ..HONEST
    };
    let skipped = caught(Setup {
        fsync: FsyncPolicy::Never,
        ..large
    });
    assert!(
        skipped > 20,
        "only {skipped} of 40 runs without sync were caught"
    );
    let lied = caught(Setup {
        lying_disk: true,
        ..large
    });
    assert!(
        lied > 20,
        "only {lied} of 40 runs on a lying disk were caught"
    );
    assert_eq!(caught(large), 0, "the honest log with such segments passes");
}

#[test]
fn topics_come_and_go_as_a_whole() {
    for seed in 0..400 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let disk = MemoryDisk::with_crashes();
        let log = open(&disk, HONEST);
        let create = |name: &str| log.create_topic(name, TopicConfig::with_partitions(2));
        create("old").expect("create");
        let last = TopicPartition::new("old", 1);
        log.append(&last, batch(&["x"])).expect("append");
        log.sync(&last, Offset(1)).expect("sync");
        disk.halt_after(Some(rng.random_range(0..24)));
        let created = create("new").is_ok();
        let deleted = log.delete_topic("old").is_ok();
        disk.halt_after(Some(0));
        drop(log);

        let disk = disk.crash(&mut |n| rng.random_range(0..n));
        let log = open(&disk, HONEST);
        assert!(
            log.topic("new").is_some() || !created,
            "seed {seed}: an acknowledged topic is gone"
        );
        assert!(
            log.topic("old").is_none() || !deleted,
            "seed {seed}: a deleted topic is back"
        );
        if log.topic("old").is_some() {
            assert_eq!(
                committed(&log, &last),
                ["x"],
                "seed {seed}: a topic without its data"
            );
        } else {
            create_again(&log, "old", seed);
        }
        if log.topic("new").is_none() {
            create_again(&log, "new", seed);
        }
        for name in ["old", "new"] {
            log.append(&TopicPartition::new(name, 0), batch(&["y"]))
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
    }
}

fn create_again(log: &EmbeddedLog, name: &str, seed: u64) {
    let created = log.create_topic(name, TopicConfig::with_partitions(2));
    created.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(
        committed(log, &TopicPartition::new(name, 1)),
        [""; 0],
        "seed {seed}: data of a deleted topic"
    );
}
