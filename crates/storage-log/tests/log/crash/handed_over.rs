//! Batches that are handed over while the power goes, a sync fails or the disk is full: which of them are written together depends on the threads, so
//! what is held against the log is what the producers were told.

use std::sync::mpsc;

use super::*;

/// Batches that are on their way when something happens.
const BURST: i32 = 6;

/// What one producer was told.
#[derive(Debug, Clone, Default)]
struct Told {
    /// Sequences below this one were acknowledged.
    acknowledged: i32,
    /// Sequences below this one may be there.
    sent: i32,
}

/// A producer sends the same again until it is acknowledged.
fn value(id: i64, sequence: i32) -> String {
    let padding = if (id + i64::from(sequence)) % 5 == 0 {
        300
    } else {
        3
    };
    format!("{id}:{sequence}:{}", "x".repeat(padding))
}

/// All producers hand over what was not acknowledged yet and a few more; then all outcomes are heard. Answers whether there was a failure.
fn burst(
    log: &EmbeddedLog,
    at: &TopicPartition,
    told: &mut [Told],
    places: &mut Vec<(i64, String)>,
) -> bool {
    let (tells, hears) = mpsc::channel();
    for more in 0..BURST {
        for (id, producer) in told.iter_mut().enumerate() {
            let sequence = producer.acknowledged + more;
            producer.sent = producer.sent.max(sequence + 1);
            let value = value(id as i64, sequence);
            let batch = batch_from(&[&value], idempotent(id as i64, 0, sequence));
            let tells = tells.clone();
            let waiter = move |outcome| tells.send((id, sequence, value, outcome)).expect("heard");
            log.produce(at, batch, Box::new(waiter));
        }
    }
    drop(tells);
    let mut outcomes: Vec<_> = hears.iter().collect();
    assert_eq!(
        outcomes.len(),
        told.len() * BURST as usize,
        "each is told once"
    );
    outcomes.sort_unstable_by_key(|(_, sequence, ..)| *sequence);
    let mut failed = false;
    for (id, sequence, value, outcome) in outcomes {
        match outcome {
            Ok(appended) => {
                let producer = &mut told[id];
                assert_eq!(
                    producer.acknowledged, sequence,
                    "no gap in what producer {id} was told"
                );
                producer.acknowledged += 1;
                places.push((appended.base_offset.0, value));
            }
            Err(error) => {
                failed = true;
                assert!(
                    matches!(
                        error,
                        LogError::Io { .. }
                            | LogError::Poisoned { .. }
                            | LogError::OutOfOrderSequence { .. }
                    ),
                    "{error:?}"
                );
            }
        }
    }
    failed
}

/// What was acknowledged is there, at its offset; of the rest, of each producer, as many as come next.
fn check(log: &EmbeddedLog, at: &TopicPartition, told: &[Told], places: &[(i64, String)]) {
    let stored = values(log, at, 0, Isolation::ReadCommitted, 1 << 20);
    assert!(
        stored
            .iter()
            .map(|(offset, _)| *offset)
            .eq(0..stored.len() as i64),
        "offsets are dense"
    );
    for (offset, value) in places {
        assert_eq!(
            stored.get(*offset as usize).map(|(_, value)| value),
            Some(value),
            "acknowledged at {offset}"
        );
    }
    for (id, producer) in told.iter().enumerate() {
        let prefix = format!("{id}:");
        let own: Vec<_> = stored
            .iter()
            .filter(|(_, value)| value.starts_with(&prefix))
            .map(|(_, value)| value.clone())
            .collect();
        let count = own.len() as i32;
        assert!(
            (producer.acknowledged..=producer.sent).contains(&count),
            "producer {id}: {count} stored, {producer:?}"
        );
        let expected: Vec<_> = (0..count)
            .map(|sequence| value(id as i64, sequence))
            .collect();
        assert_eq!(own, expected, "producer {id} in order, once");
    }
}

fn run(seed: u64, setup: Setup) -> u64 {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut disk = MemoryDisk::with_crashes();
    let at = partition();
    open(&disk, HONEST)
        .create_topic(&at.topic, TopicConfig::with_partitions(1))
        .expect("create");
    let mut told = vec![Told::default(); 4];
    let mut places = Vec::new();
    let mut checked = 0;
    for _ in 0..4 {
        let log = open(&disk, setup);
        match rng.random_range(0..4) {
            0 => {
                disk.fail_syncs_after(Some(rng.random_range(0..4)));
                while !burst(&log, &at, &mut told, &mut places) {}
                disk.fail_syncs_after(None);
                log.reopen(&at).expect("the disk works again");
                check(&log, &at, &told, &places);
            }
            1 => {
                disk.set_capacity(Some(disk.used() + rng.random_range(0..4_000)));
                while !burst(&log, &at, &mut told, &mut places) {}
                check(&log, &at, &told, &places);
                disk.set_capacity(None);
            }
            _ => {}
        }
        disk.halt_after(Some(rng.random_range(0..60)));
        while !burst(&log, &at, &mut told, &mut places) {}
        disk.halt_after(Some(0));
        drop(log);
        let bias = rng.random_range(0..4);
        disk = disk.crash(&mut |n| match bias {
            0 => 0,
            1 => n - 1,
            _ => rng.random_range(0..n),
        });
        check(&open(&disk, setup), &at, &told, &places);
        checked += 1;
    }
    let log = open(&disk, setup);
    assert!(
        !burst(&log, &at, &mut told, &mut places),
        "all goes through in the end"
    );
    check(&log, &at, &told, &places);
    checked
}

#[test]
fn batches_that_were_handed_over_survive_once_acknowledged() {
    let mut checked = 0;
    let mut seed = 0;
    // A tenth of the other test's: these have threads to wait for.
    while checked < states() / 10 {
        let ran = catch_unwind(AssertUnwindSafe(|| run(seed, HONEST)));
        checked += ran.unwrap_or_else(|_| panic!("seed {seed} breaks the promise"));
        seed += 1;
    }
}

#[test]
fn the_checker_of_handed_over_batches_catches_a_disk_that_lies() {
    let lying = Setup {
        segment_bytes: 1 << 20,
        lying_disk: true,
        ..HONEST
    };
    let caught = (0..40)
        .filter(|seed| catch_unwind(AssertUnwindSafe(|| run(*seed, lying))).is_err())
        .count();
    assert!(
        caught > 20,
        "only {caught} of 40 runs on a lying disk were caught"
    );
}
