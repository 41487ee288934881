//! The engine against the batch oracle: continuous queries over random inputs, cut at random places, with power cuts in between, must keep what
//! DataFusion's batch engine answers for the same query over the same rows.

mod faults;
mod lost_state;
mod memory;
mod oracle;
mod resume;
mod transactions;
mod workers;
mod world;

use rand::{Rng, SeedableRng, rngs::StdRng};
use world::{Moment, Row, World};

/// How many random histories a run tries; `HIGHWATER_ORACLE_CASES` for more.
fn cases() -> u64 {
    std::env::var("HIGHWATER_ORACLE_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(40)
}

/// Queries whose table must equal the batch answer. Each may read those before it.
const QUERIES: &[(&str, &str)] = &[
    (
        "per_bidder",
        "SELECT bidder, COUNT(*) AS n, SUM(price) AS total, MIN(price) AS least, MAX(price) AS most, AVG(price) AS mean \
         FROM bids GROUP BY bidder",
    ),
    (
        "per_channel",
        "SELECT channel, COUNT(price) AS n, COUNT(DISTINCT bidder) AS bidders, MAX(channel) AS same FROM bids \
         WHERE price > 20 GROUP BY channel",
    ),
    (
        "overall",
        "SELECT COUNT(*) AS n, SUM(price) AS total FROM bids",
    ),
    (
        "per_minute",
        "SELECT bidder, windowstart, windowend, COUNT(*) AS n, MAX(price) AS most FROM bids \
         WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 10 DAYS) GROUP BY bidder",
    ),
    // Over tables that change: rows are taken back.
    (
        "histogram",
        "SELECT n, COUNT(*) AS bidders, MIN(most) AS least_most, MAX(bidder) AS last FROM per_bidder GROUP BY n",
    ),
    (
        "busy",
        "SELECT bidder, n, total FROM per_bidder WHERE n % 2 = 0",
    ),
    (
        "rich",
        "SELECT bidder, total FROM per_bidder WHERE total > 40",
    ),
    // Joins: by the key of both, of one, of none; with itself; grouped again.
    (
        "left_joined",
        "SELECT p.bidder, p.n, b.total FROM per_bidder p LEFT JOIN busy b ON p.bidder = b.bidder",
    ),
    (
        "full_joined",
        "SELECT COALESCE(b.bidder, r.bidder) AS bidder, b.n, r.total FROM busy b FULL JOIN rich r ON b.bidder = r.bidder",
    ),
    (
        "looked_up",
        "SELECT p.bidder, p.n, h.bidders FROM per_bidder p JOIN histogram h ON p.n = h.n",
    ),
    (
        "pairs",
        "SELECT a.bidder AS one, b.bidder AS other, a.n FROM per_bidder a, per_bidder b WHERE a.n = b.n AND a.bidder < b.bidder",
    ),
    (
        "right_joined",
        "SELECT b.n AS busy_n, r.bidder, b.total FROM busy b RIGHT JOIN per_bidder r ON b.bidder = r.bidder AND b.n = r.n + 0",
    ),
    (
        "rejoined",
        "SELECT r.bidder, r.total, l.n, f.total AS again FROM rich r JOIN left_joined l ON r.bidder = l.bidder \
         JOIN full_joined f ON f.bidder = r.bidder",
    ),
    (
        "regrouped",
        "SELECT bidders, SUM(n) AS n, COUNT(*) AS rows FROM looked_up GROUP BY bidders",
    ),
];

/// The same with the batch engine's words.
fn batch_form(name: &str, query: &str) -> String {
    if name == "per_minute" {
        return "SELECT bidder, date_bin(INTERVAL '1 minute', at) AS windowstart, \
            date_bin(INTERVAL '1 minute', at) + INTERVAL '1 minute' AS windowend, COUNT(*) AS n, MAX(price) AS most \
            FROM bids GROUP BY bidder, date_bin(INTERVAL '1 minute', at)"
            .to_owned();
    }
    let earlier: Vec<String> = QUERIES
        .iter()
        .take_while(|(other, _)| *other != name)
        .filter(|(other, _)| *other != "per_minute")
        .map(|(other, query)| format!("{other} AS ({query})"))
        .collect();
    match earlier.is_empty() {
        true => query.to_owned(),
        false => format!("WITH {} {query}", earlier.join(", ")),
    }
}

fn random_rows(random: &mut StdRng) -> Vec<Row> {
    (0..random.random_range(1..60))
        .map(|_| Row {
            bidder: random.random_range(0..8),
            channel: random
                .random_bool(0.9)
                .then(|| format!("c{}", random.random_range(0..5))),
            price: random
                .random_bool(0.9)
                .then(|| random.random_range(-50..100)),
            at: random.random_range(0..600_000),
        })
        .collect()
}

#[test]
fn continuous_results_equal_the_batch_answer() {
    for seed in 0..cases() {
        run_history(seed, None);
    }
}

/// Runs a random history, with little memory for state if so many bytes are given.
fn run_history(seed: u64, state_memory: Option<usize>) {
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut world = World::new(random.random_range(1..5), random.random_range(1..100));
    if let Some(bytes) = state_memory {
        world.restart_with_state_memory(bytes);
    }
    world.create("CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')");
    let mut later: Vec<_> = QUERIES.iter().collect();
    for _ in 0..random.random_range(5..25) {
        match random.random_range(0..12) {
            0..5 => world.insert(&random_rows(&mut random)),
            5 => world.restart(),
            6 => world.power_cut(&mut random),
            // Queries come in order, since the last ones read the first; some before the data, some after.
            _ if !later.is_empty() => {
                let (name, query) = later.remove(0);
                world.create(&format!("CREATE TABLE {name} AS {query}"));
            }
            _ => {}
        }
        for (name, query) in QUERIES.iter().filter(|(name, _)| world.has(name)) {
            assert_eq!(
                world.table(name),
                oracle::answer(&batch_form(name, query), world.rows()),
                "seed {seed}, table {name}"
            );
        }
    }
    world.stop();
}

#[test]
fn retention_takes_nothing_that_a_replay_reads() {
    let mut expired = 0;
    for seed in 0..cases() {
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let mut world = World::new(random.random_range(1..4), random.random_range(1..50));
        world.create("CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')");
        // They see everything, so what is gone from the topic later is in their tables.
        let queries = QUERIES.iter().take(4);
        for (name, query) in queries.clone() {
            world.create(&format!("CREATE TABLE {name} AS {query}"));
        }
        for _ in 0..random.random_range(3..9) {
            match random.random_range(0..10) {
                0..4 => world.insert(&random_rows(&mut random)),
                4 => world.restart(),
                5 | 6 => world.power_cut(&mut random),
                _ => expired += world.expire(),
            }
            for (name, query) in queries.clone() {
                assert_eq!(
                    world.table(name),
                    oracle::answer(&batch_form(name, query), world.rows()),
                    "seed {seed}, table {name}"
                );
            }
        }
        world.stop();
    }
    assert!(expired > 0, "retention took nothing at all");
}

#[test]
fn a_declared_table_keeps_the_last_row_of_each_key() {
    let mut world = World::new(3, 10);
    world.create("CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner VARCHAR, balance BIGINT)");
    world.create("CREATE TABLE wealth AS SELECT owner, SUM(balance) AS total, MAX(balance) AS most FROM accounts GROUP BY owner");
    world.upsert(
        "accounts",
        &[
            (1, Some(("ann", 10))),
            (2, Some(("ann", 5))),
            (3, Some(("bob", 7))),
        ],
    );
    assert_eq!(world.table("wealth"), ["ann|15|10", "bob|7|7"]);
    world.upsert("accounts", &[(1, Some(("bob", 4))), (3, None)]);
    assert_eq!(world.table("accounts"), ["1|bob|4", "2|ann|5"]);
    assert_eq!(world.table("wealth"), ["ann|5|5", "bob|4|4"]);
    world.restart();
    world.upsert("accounts", &[(2, None)]);
    assert_eq!(world.table("wealth"), ["bob|4|4"]);
    world.stop();
}

#[test]
fn late_rows_are_dropped_alike_however_the_steps_are_cut() {
    let late = |max_rows: usize| {
        let mut world = World::new(1, max_rows);
        world.create("CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')");
        world.create(
            "CREATE TABLE per_minute AS SELECT bidder, COUNT(*) AS n FROM bids \
             WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 30 SECONDS) GROUP BY bidder",
        );
        let times = [0, 59_000, 70_000, 30_000, 95_000, 20_000, 100_000, 61_000];
        let rows: Vec<Row> = times
            .iter()
            .map(|&at| Row {
                bidder: 1,
                channel: None,
                price: None,
                at,
            })
            .collect();
        for row in rows {
            world.insert(&[row]);
        }
        let table = world.table("per_minute");
        world.stop();
        table
    };
    let expected = [
        "1|1970-01-01T00:00:00|1970-01-01T00:01:00|3",
        "1|1970-01-01T00:01:00|1970-01-01T00:02:00|4",
    ];
    assert_eq!(late(1), expected);
    assert_eq!(late(1000), expected);
}

#[test]
fn retention_takes_rows_back_alike_with_and_without_power_cuts() {
    let windows = [
        (
            "tumbling",
            "TUMBLING (SIZE 1 MINUTE, RETENTION 5 MINUTES, GRACE PERIOD 10 SECONDS)",
        ),
        (
            "sessions",
            "SESSION (20 SECONDS, RETENTION 3 MINUTES, GRACE PERIOD 10 SECONDS)",
        ),
    ];
    let run = |seed: u64, cuts: bool| {
        let mut random = StdRng::seed_from_u64(seed);
        let mut dice = StdRng::seed_from_u64(seed + 1000);
        let mut world = World::new(1, 1000);
        world.create("CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')");
        let mut tables = Vec::new();
        for (name, window) in windows {
            for (emit, clause) in [("changes", ""), ("finals", " EMIT FINAL")] {
                let table = format!("{name}_{emit}");
                world.create(&format!(
                    "CREATE TABLE {table} AS SELECT bidder, COUNT(*) AS n FROM bids WINDOW {window} GROUP BY bidder{clause}"
                ));
                world.create(&format!(
                    "CREATE TABLE {table}_total AS SELECT bidder, SUM(n) AS total FROM {table} GROUP BY bidder"
                ));
                tables.extend([format!("{table}_total"), table]);
            }
        }
        let mut now = 0;
        let mut seen = Vec::new();
        for _ in 0..40 {
            now += random.random_range(0..60_000);
            world.insert(&[Row {
                bidder: random.random_range(0..3),
                channel: None,
                price: None,
                at: now - random.random_range(0..30_000),
            }]);
            if cuts && dice.random_range(0..5) == 0 {
                world.power_cut(&mut dice);
            }
            // Reading waits for the row's step, so each row has one of its own.
            let now: Vec<_> = tables.iter().map(|table| world.table(table)).collect();
            seen.push(now);
        }
        world.stop();
        seen
    };
    for seed in 0..4 {
        let straight = run(seed, false);
        let last = straight.last().expect("tables");
        assert!(last.iter().all(|table| !table.is_empty()), "{last:?}");
        let most = straight.iter().map(|tables| tables[1].len()).max();
        assert!(
            most.is_some_and(|most| most < 20),
            "rows must go: {straight:?}"
        );
        assert_eq!(run(seed, true), straight, "seed {seed}");
    }
}

#[test]
fn history_is_one_step_of_a_new_query() {
    let mut world = World::new(1, 1000);
    world.create("CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')");
    // More than is read at a time, and rows that are late by the end of it.
    let rows: Vec<Row> = (0..50_000)
        .map(|number| Row {
            bidder: number % 5,
            channel: Some("c".into()),
            price: Some(number),
            at: if number % 7 == 0 { 0 } else { number * 10 },
        })
        .collect();
    rows.chunks(2_000).for_each(|rows| world.insert(rows));
    let per_bidder = "SELECT bidder, COUNT(*) AS n, MIN(price) AS least, MAX(price) AS most FROM bids GROUP BY bidder";
    world.create(&format!("CREATE TABLE per_bidder AS {per_bidder}"));
    world.create(
        "CREATE TABLE per_minute AS SELECT bidder, COUNT(*) AS n FROM bids \
         WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 30 SECONDS) GROUP BY bidder",
    );
    assert_eq!(
        world.table("per_bidder"),
        oracle::answer(per_bidder, world.rows())
    );
    // One record a group, and the marker that committed them.
    assert_eq!(world.records("per_bidder"), 6);
    let in_history = world.table("per_minute");
    world.insert(&rows[..100]);
    assert_eq!(
        world.table("per_bidder"),
        oracle::answer(per_bidder, world.rows())
    );
    world.restart();
    assert_eq!(
        world.table("per_bidder"),
        oracle::answer(per_bidder, world.rows())
    );
    world.stop();

    let mut world = World::new(1, 1000);
    world.create("CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')");
    world.create(
        "CREATE TABLE per_minute AS SELECT bidder, COUNT(*) AS n FROM bids \
         WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 30 SECONDS) GROUP BY bidder",
    );
    rows.chunks(2_000).for_each(|rows| world.insert(rows));
    // Late is late, in steps as in history.
    assert_eq!(world.table("per_minute"), in_history);
    world.stop();
}

#[test]
fn a_paused_query_catches_up_when_it_is_resumed() {
    let mut world = World::new(2, 5);
    world.create("CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')");
    world.create("CREATE TABLE counts AS SELECT bidder, COUNT(*) AS n FROM bids GROUP BY bidder");
    world.create("CREATE TABLE spread AS SELECT n, COUNT(*) AS bidders FROM counts GROUP BY n");
    let row = |bidder| Row {
        bidder,
        channel: None,
        price: None,
        at: 0,
    };
    world.insert(&[row(1), row(2), row(2)]);
    world.pause("counts");
    world.insert(&[row(1), row(3)]);
    assert_eq!(world.table("counts"), ["1|1", "2|2"]);
    world.restart();
    assert_eq!(world.table("counts"), ["1|1", "2|2"]);
    world.resume("counts");
    assert_eq!(world.table("counts"), ["1|2", "2|2", "3|1"]);
    assert_eq!(world.table("spread"), ["1|1", "2|2"]);
    world.pause("spread");
    world.insert(&[row(3)]);
    world.resume("spread");
    assert_eq!(world.table("spread"), ["2|3"]);
    world.stop();
}

/// Each record is copied once, by one query or the other, and the reader from before misses none.
#[test]
fn a_query_goes_on_where_another_stood_wherever_the_power_goes() {
    let mut random = StdRng::seed_from_u64(7);
    let moments = [
        None,
        Some(Moment::Paused),
        Some(Moment::Recorded),
        Some(Moment::Created),
        Some(Moment::Dropped),
    ];
    for cut in moments {
        let mut world = World::new(2, 3);
        world.create("CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')");
        world.create("CREATE STREAM copies AS SELECT bidder, price FROM bids");
        world.create(
            "CREATE TABLE counts AS SELECT bidder, COUNT(*) AS n FROM copies GROUP BY bidder",
        );
        let row = |bidder| Row {
            bidder,
            channel: None,
            price: Some(1),
            at: 0,
        };
        world.insert(&[row(1), row(2), row(2), row(3)]);
        let again = "CREATE STREAM copies_again WITH (kafka_topic = 'copies') AS SELECT bidder, price, 0 AS added FROM bids";
        world.replace("copies", again, cut, &mut random);
        world.insert(&[row(1), row(1), row(4)]);
        let expected = ["1|3", "2|2", "3|1", "4|1"];
        // What the new query writes reaches the reader through the topic, a step later.
        let settled = (0..2_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            world.table("counts") == expected
        });
        assert!(settled, "{cut:?}: {:?}", world.table("counts"));
        world.restart();
        assert_eq!(world.table("counts"), expected, "{cut:?}");
        world.stop();
    }
}

#[test]
fn rows_inserted_together_are_seen_together_however_small_the_steps() {
    let mut world = World::new(4, 3);
    world.create("CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')");
    world.create("CREATE TABLE counts AS SELECT bidder, COUNT(*) AS n FROM bids GROUP BY bidder");
    let seen = world.watch("SELECT SUM(price) AS total, COUNT(*) AS n FROM bids EMIT CHANGES");
    let row = |price| Row {
        bidder: 1,
        channel: None,
        price: Some(price),
        at: 0,
    };
    for amount in 1..300 {
        // The two rows go to two partitions.
        world.insert_without_waiting(&[row(amount), row(-amount)]);
    }
    assert_eq!(world.table("counts"), ["1|598"]);
    world.stop();
    let seen = seen.lock();
    let totals: Vec<&str> = seen
        .iter()
        .map(|row| row.split('|').next().expect("a first column"))
        .collect();
    assert!(
        totals.len() > 100,
        "only {} changes were seen",
        totals.len()
    );
    assert!(
        totals.iter().all(|total| *total == "0" || *total == "NULL"),
        "{totals:?}"
    );
}
