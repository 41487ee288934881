//! Any memory for state makes the same of the same records.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    cases, oracle, run_history,
    world::{Row, World},
};

/// Less than any group takes: whatever may be evicted is.
const NOTHING: usize = 16;

const BIDS: &str = "CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')";

const TABLES: &[(&str, &str)] = &[
    (
        "per_bidder",
        "SELECT bidder, COUNT(*) AS n, SUM(price) AS total, MIN(price) AS least, MAX(channel) AS channel, COUNT(DISTINCT channel) AS channels \
         FROM bids GROUP BY bidder",
    ),
    // Groups of it lose all their rows and come back.
    (
        "histogram",
        "SELECT n, COUNT(*) AS bidders, MAX(total) AS most, MIN(channel) AS first FROM per_bidder GROUP BY n",
    ),
    (
        "per_minute",
        "SELECT bidder, windowstart, windowend, COUNT(*) AS n FROM bids WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 2 MINUTES) GROUP BY bidder",
    ),
    (
        "kept_minutes",
        "SELECT channel, windowstart, windowend, SUM(price) AS total FROM bids \
         WINDOW TUMBLING (SIZE 1 MINUTE, RETENTION 5 MINUTES, GRACE PERIOD 1 MINUTE) GROUP BY channel",
    ),
    (
        "visits",
        "SELECT channel, windowstart, windowend, COUNT(*) AS n FROM bids WINDOW SESSION (10 SECONDS, GRACE PERIOD 20 SECONDS) GROUP BY channel",
    ),
    (
        "joined",
        "SELECT p.bidder, p.n, h.bidders FROM per_bidder p JOIN histogram h ON p.n = h.n",
    ),
];

/// Rows whose times go on from `minute`.
fn rows(random: &mut StdRng, minute: i64) -> Vec<Row> {
    (0..random.random_range(1..300))
        .map(|_| Row {
            bidder: random.random_range(0..600),
            channel: Some(format!(
                "a channel with so long a name {}",
                random.random_range(0..40)
            )),
            price: random
                .random_bool(0.9)
                .then(|| random.random_range(-50..100)),
            at: minute * 60_000 + random.random_range(0..90_000),
        })
        .collect()
}

/// Rows of a table and batches of its topic.
type Made = (Vec<String>, Vec<Vec<u8>>);

/// What all queries made: of tables their rows, of all their topics' bytes; and how many groups of the first are in memory in the end.
fn run(state_memory: Option<usize>) -> (Vec<Made>, usize) {
    let mut random = StdRng::seed_from_u64(3);
    let mut world = World::new(3, 60_000);
    if let Some(bytes) = state_memory {
        world.restart_with_state_memory(bytes);
    }
    world.create(BIDS);
    let (now, later) = TABLES.split_at(3);
    let create = |world: &mut World, tables: &[(&str, &str)]| {
        for (name, query) in tables {
            world.create(&format!("CREATE TABLE {name} AS {query}"));
        }
    };
    create(&mut world, now);
    for minute in 0..40 {
        if minute == 20 {
            // These read history first; then all goes on after a restart.
            create(&mut world, later);
            world.restart();
        }
        // One statement is one step, whenever it is waited for.
        world.insert(&rows(&mut random, minute));
        assert!(!world.table("per_bidder").is_empty());
        // Checkpoints come in between.
        std::thread::sleep(Duration::from_millis(5));
    }
    // A checkpoint writes all; the step after it may evict all but its own; then that is told.
    std::thread::sleep(Duration::from_millis(200));
    world.insert(&rows(&mut random, 40)[..1]);
    assert!(!world.table("per_bidder").is_empty());
    std::thread::sleep(Duration::from_millis(300));
    let groups = world.groups_in_memory("per_bidder");
    assert_eq!(
        world.table("per_bidder"),
        oracle::answer(TABLES[0].1, world.rows())
    );
    let made = TABLES
        .iter()
        .map(|(name, _)| (world.table(name), world.batches(name)))
        .collect();
    world.stop();
    (made, groups)
}

#[test]
fn any_memory_makes_the_same_rows_and_the_same_batches() {
    let (all, kept) = run(None);
    let (got, left) = run(Some(NOTHING));
    for ((name, _), (expected, got)) in TABLES.iter().zip(all.iter().zip(&got)) {
        assert_eq!(expected.0, got.0, "{name}");
        assert!(expected.1 == got.1, "{name}: other batches");
        assert!(!got.1.is_empty(), "{name} has no records");
    }
    assert!(
        kept > 400 && left < 100,
        "{kept} groups are in memory with enough of it, {left} with none"
    );
}

#[test]
fn continuous_results_equal_the_batch_answer_when_nothing_fits_in_memory() {
    for seed in 0..cases() {
        run_history(1_000 + seed, Some(NOTHING));
    }
}

#[test]
fn a_checkpoint_comes_before_its_time_when_memory_is_short() {
    let run = |state_memory: usize| {
        let mut world = World::new(2, 60_000);
        world.restart_with_checkpoints_every(Duration::from_secs(3_600));
        world.restart_with_state_memory(state_memory);
        world.create(BIDS);
        world.create("CREATE TABLE counts AS SELECT bidder, COUNT(*) AS n, MAX(channel) AS channel FROM bids GROUP BY bidder");
        let rows: Vec<Row> = (0..160_000)
            .map(|bidder| Row {
                bidder,
                channel: Some(format!("a name that has memory of its own {bidder}")),
                price: None,
                at: 0,
            })
            .collect();
        for some in rows.chunks(20_000) {
            world.insert(some);
            world.wait_for("counts");
        }
        // A step of one row evicts what was written by then, and the counters are told.
        std::thread::sleep(Duration::from_millis(300));
        world.insert(&rows[..1]);
        world.wait_for("counts");
        std::thread::sleep(Duration::from_millis(300));
        let groups = world.groups_in_memory("counts");
        let counts = world.table("counts").len();
        world.stop();
        (groups, counts)
    };
    assert_eq!(run(1 << 30), (160_000, 160_000));
    let (groups, counts) = run(NOTHING);
    assert_eq!(counts, 160_000);
    assert!(groups < 120_000, "{groups} groups are in memory");
}
