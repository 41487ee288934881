//! Any number of threads makes the same of a step.

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    oracle,
    world::{Row, World},
};

const BIDS: &str = "CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')";

const STREAMS: &[(&str, &str)] = &[
    (
        "copy",
        "SELECT bidder, channel, price * 2 AS twice FROM bids WHERE price % 3 > 0",
    ),
    (
        "rekeyed",
        "SELECT channel, bidder, price FROM bids PARTITION BY channel",
    ),
];

const TABLES: &[(&str, &str)] = &[
    (
        "per_bidder",
        "SELECT bidder, COUNT(*) AS n, SUM(price) AS total, MAX(channel) AS channel FROM bids GROUP BY bidder",
    ),
    (
        "histogram",
        "SELECT n, COUNT(*) AS bidders FROM per_bidder GROUP BY n",
    ),
];

/// Enough for a step to be shared out.
fn rows(random: &mut StdRng) -> Vec<Row> {
    (0..12_000)
        .map(|_| Row {
            bidder: random.random_range(0..5_000),
            channel: Some(format!("c{}", random.random_range(0..40))),
            price: random
                .random_bool(0.9)
                .then(|| random.random_range(-50..100)),
            at: random.random_range(0..600_000),
        })
        .collect()
}

/// What all queries made: of tables their rows, of all their topics' bytes.
fn run(first: usize, then: usize) -> Vec<(String, Vec<String>, Vec<Vec<u8>>)> {
    let mut random = StdRng::seed_from_u64(1);
    let mut world = World::new(3, 60_000);
    world.restart_with_workers(first);
    world.create(BIDS);
    let create = |world: &mut World| {
        for (kind, queries) in [("STREAM", STREAMS), ("TABLE", TABLES)] {
            for (name, query) in queries {
                // Made before the data at first, and once more over all of it in the end.
                let name = match world.has(name) {
                    false => (*name).to_owned(),
                    true => format!("{name}_later"),
                };
                world.create(&format!("CREATE {kind} {name} AS {query}"));
            }
        }
    };
    create(&mut world);
    world.insert(&rows(&mut random));
    world.table("per_bidder");
    world.restart_with_workers(then);
    world.insert(&rows(&mut random));
    world.table("per_bidder");
    create(&mut world);
    let per_bidder = TABLES[0].1;
    assert_eq!(
        world.table("per_bidder"),
        oracle::answer(per_bidder, world.rows())
    );
    let mut made = Vec::new();
    for (name, _) in STREAMS.iter().chain(TABLES) {
        for name in [(*name).to_owned(), format!("{name}_later")] {
            let is_table = TABLES.iter().any(|(table, _)| name.starts_with(table));
            let rows = match is_table {
                true => world.table(&name),
                false => Vec::new(),
            };
            let batches = world.batches(&name);
            assert!(!batches.is_empty(), "{name} has no records");
            made.push((name, rows, batches));
        }
    }
    world.stop();
    made
}

#[test]
fn any_number_of_workers_makes_the_same_rows_and_the_same_batches() {
    let alone = run(1, 1);
    for (first, then) in [(2, 2), (4, 4), (1, 3), (4, 1)] {
        for (expected, got) in alone.iter().zip(run(first, then)) {
            assert_eq!(expected.1, got.1, "{}: {first}, {then} workers", got.0);
            assert!(expected.2 == got.2, "{}: {first}, {then} workers", got.0);
        }
    }
}
