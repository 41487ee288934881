//! Push queries that go on behind a step: across restarts, power cuts, changes of the queries and times in which nobody read, each step comes
//! whole, once, and with the rows that it had the first time.

use std::{collections::BTreeMap, time::Duration};

use highwater_exec::{ExecError, FeedStart};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    cases,
    world::{Feed, Given, Row, World},
};

const BIDS: &str = "CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')";
const COPIES: &str = "CREATE STREAM copies AS SELECT bidder, price FROM bids";
const COUNTS: &str =
    "CREATE TABLE counts AS SELECT bidder, COUNT(*) AS n FROM bids GROUP BY bidder";

/// Watched without a query that keeps anything; with one; what a query makes; both at once.
const FEEDS: &[&str] = &[
    "SELECT price FROM bids EMIT CHANGES",
    "SELECT price FROM copies EMIT CHANGES",
    "SELECT price FROM copies WHERE price % 2 = 0 EMIT CHANGES",
    "SELECT price FROM bids UNION ALL SELECT price FROM copies EMIT CHANGES",
];

/// A row with a price that no other has.
fn bid(price: i64) -> Row {
    Row {
        bidder: price % 7,
        channel: None,
        price: Some(price),
        at: 0,
    }
}

/// Steps that a reader has whole, in order, with their rows.
#[derive(Debug, Default)]
struct Whole(BTreeMap<u64, Vec<String>>);

impl Whole {
    /// Takes what was given behind the steps that are there; a step that does not end is left out.
    fn take(&mut self, given: &[Given]) {
        let mut rows = Vec::new();
        let mut open: Option<u64> = None;
        for part in given {
            // Of history, only the last part tells its step.
            assert!(
                open.is_none() || open == part.step,
                "a step is cut: {given:?}"
            );
            open = part.step;
            rows.extend(part.rows.iter().cloned());
            if !part.ends_step {
                continue;
            }
            open = None;
            let step = part.step.expect("a step that ends has a number");
            let last = self.0.last_key_value().map(|(step, _)| *step);
            assert!(
                last.is_none_or(|last| last < step),
                "step {step} comes behind {last:?}"
            );
            rows.sort();
            self.0.insert(step, std::mem::take(&mut rows));
        }
    }

    fn rows(&self) -> Vec<i64> {
        let rows = self.0.values().flatten();
        let mut rows: Vec<i64> = rows.map(|row| row.parse().expect("a price")).collect();
        rows.sort_unstable();
        rows
    }
}

/// One reader: what it has, and what it had before it went back to an earlier step.
struct Reader {
    sql: &'static str,
    whole: Whole,
    before: BTreeMap<u64, Vec<String>>,
    feed: Option<Feed>,
}

impl Reader {
    /// Begins with all that was there.
    fn start(world: &World, sql: &'static str) -> Self {
        Self {
            sql,
            whole: Whole::default(),
            before: BTreeMap::new(),
            feed: Some(world.follow(sql, FeedStart::History).expect("a push query")),
        }
    }

    fn leave(&mut self, world: &World) {
        if let Some(feed) = self.feed.take() {
            self.whole.take(&world.leave(feed));
        }
    }

    /// Goes on behind the last step that it has, or one of those before.
    fn go_on(&mut self, world: &World, random: &mut impl Rng) {
        let steps: Vec<u64> = self.whole.0.keys().copied().collect();
        let Some(&last) = steps.last() else {
            self.feed = Some(
                world
                    .follow(self.sql, FeedStart::History)
                    .expect("a push query"),
            );
            return;
        };
        let after = match random.random_bool(0.5) {
            true => last,
            false => steps[random.random_range(0..steps.len())],
        };
        let forgotten = self.whole.0.split_off(&(after + 1));
        self.before.extend(forgotten);
        let feed = world.follow(self.sql, FeedStart::After(after));
        self.feed = Some(feed.unwrap_or_else(|error| panic!("{}: {error}", self.sql)));
    }

    /// Waits until it has all of `prices`, then checks them and the steps.
    fn check(&mut self, world: &World, prices: &[i64], seed: u64) {
        let feed = self.feed.take().expect("a feed");
        let given =
            |feed: &Feed| -> usize { feed.given.lock().iter().map(|part| part.rows.len()).sum() };
        let has = self.whole.rows().len();
        for _ in 0..2_000 {
            if has + given(&feed) >= prices.len() || feed.end.lock().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(*feed.end.lock(), None, "seed {seed}, {}", self.sql);
        self.whole.take(&world.leave(feed));
        assert_eq!(self.whole.rows(), prices, "seed {seed}, {}", self.sql);
        for (step, rows) in &self.before {
            assert_eq!(
                self.whole.0.get(step),
                Some(rows),
                "seed {seed}, {}, step {step}",
                self.sql
            );
        }
    }
}

#[test]
fn each_step_comes_whole_and_once_however_often_a_reader_is_cut_off() {
    for seed in 0..cases() {
        one_history(seed);
    }
}

fn one_history(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut world = World::new(random.random_range(1..4), random.random_range(1..6));
    world.create(BIDS);
    world.create(COPIES);
    let mut next = 0;
    let mut insert = |world: &mut World, random: &mut StdRng| {
        let rows: Vec<Row> = (0..random.random_range(1..5))
            .map(|more| bid(next + more))
            .collect();
        next += rows.len() as i64;
        world.insert(&rows);
    };
    insert(&mut world, &mut random);
    let mut readers: Vec<Reader> = FEEDS.iter().map(|sql| Reader::start(&world, sql)).collect();
    let mut copies_run = true;
    for _ in 0..random.random_range(10..30) {
        match random.random_range(0..16) {
            0 => {
                readers.iter_mut().for_each(|reader| reader.leave(&world));
                world.restart();
            }
            1 => {
                readers.iter_mut().for_each(|reader| reader.leave(&world));
                world.power_cut(&mut random);
            }
            2 if copies_run => {
                world.pause("copies");
                copies_run = false;
            }
            2 | 3 if !copies_run => {
                world.resume("copies");
                copies_run = true;
            }
            4 if !world.has("counts") => world.create(COUNTS),
            4 => world.drop("counts"),
            5..8 => {
                let reader = random.random_range(0..readers.len());
                readers[reader].leave(&world);
            }
            8..11 => {
                let reader = random.random_range(0..readers.len());
                if readers[reader].feed.is_none() {
                    readers[reader].go_on(&world, &mut random);
                }
            }
            _ => insert(&mut world, &mut random),
        }
    }
    if !copies_run {
        world.resume("copies");
    }
    let prices: Vec<i64> = world.rows().iter().filter_map(|row| row.price).collect();
    for reader in &mut readers {
        if reader.feed.is_none() {
            reader.go_on(&world, &mut random);
        }
        let expected: Vec<i64> = match reader.sql {
            sql if sql.contains("% 2") => prices
                .iter()
                .copied()
                .filter(|price| price % 2 == 0)
                .collect(),
            sql if sql.contains("UNION") => prices.iter().flat_map(|price| [*price; 2]).collect(),
            _ => prices.clone(),
        };
        reader.check(&world, &expected, seed);
    }
    world.stop();
}

#[test]
fn what_was_written_while_nobody_read_comes_too() {
    let mut world = World::new(2, 100);
    world.create(BIDS);
    let sql = FEEDS[0];
    world.insert(&[bid(0)]);
    let mut reader = Reader::start(&world, sql);
    wait_for(&reader, 1);
    reader.leave(&world);
    // Nobody reads this; then somebody else does, from there on.
    world.insert(&[bid(1), bid(2)]);
    let other = world.follow(sql, FeedStart::Next).expect("a push query");
    world.insert(&[bid(3)]);
    while other.given.lock().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let of_other = world.leave(other);
    assert_eq!(
        of_other
            .iter()
            .flat_map(|part| &part.rows)
            .collect::<Vec<_>>(),
        ["3"]
    );
    world.insert(&[bid(4)]);
    let last = *reader.whole.0.last_key_value().expect("a step").0;
    reader.feed = Some(
        world
            .follow(sql, FeedStart::After(last))
            .expect("a push query"),
    );
    reader.check(&world, &[0, 1, 2, 3, 4], 0);
    // The other one, too, goes on behind what it has.
    let step = of_other[0].step.expect("a step");
    let feed = world
        .follow(sql, FeedStart::After(step))
        .expect("a push query");
    let mut other = Reader {
        sql,
        whole: Whole::default(),
        before: BTreeMap::new(),
        feed: Some(feed),
    };
    other.check(&world, &[4], 0);
    world.stop();
}

fn wait_for(reader: &Reader, parts: usize) {
    let feed = reader.feed.as_ref().expect("a feed");
    while feed.given.lock().len() < parts {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_cannot_be_exact_is_refused_by_name() {
    let mut world = World::new(2, 100);
    world.create(BIDS);
    world.create(COUNTS);
    world.create("CREATE STREAM unread WITH (kafka_topic = 'elsewhere') AS SELECT bidder FROM bids WHERE bidder < 0");
    world.insert(&[bid(1)]);
    world.table("counts");
    let step = world.step();
    let refused = |world: &World, sql: &str, step| {
        let outcome = world.follow(sql, FeedStart::After(step));
        outcome.err().unwrap_or_else(|| panic!("{sql} was resumed"))
    };
    let error = refused(&world, "SELECT * FROM counts EMIT CHANGES", step);
    assert!(
        matches!(&error, ExecError::NotResumable(text) if text.contains("\"counts\"")),
        "{error:?}"
    );
    let error = refused(&world, "SELECT COUNT(*) AS n FROM bids EMIT CHANGES", step);
    assert!(matches!(&error, ExecError::NotResumable(_)), "{error:?}");
    let error = refused(&world, FEEDS[0], step + 1);
    assert!(
        matches!(error, ExecError::StepAhead { step: ahead, last } if (ahead, last) == (step + 1, step)),
        "{error:?}"
    );
    // The stream is made by a query, and no step has read its topic.
    let error = refused(&world, "SELECT bidder FROM unread EMIT CHANGES", step);
    assert!(matches!(error, ExecError::StepGone { .. }), "{error:?}");
    // Records that a later step read are gone.
    for price in 2..40 {
        world.insert(&[bid(price)]);
        world.table("counts");
    }
    let reader = world
        .follow(FEEDS[0], FeedStart::After(step))
        .expect("a push query");
    world.leave(reader);
    world.restart();
    let gone = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        world.insert(&[bid(40)]);
        world.table("counts");
        world.expire() > 10
    });
    assert!(gone, "retention takes nothing");
    let error = refused(&world, FEEDS[0], step);
    assert!(matches!(error, ExecError::RecordsGone { .. }), "{error:?}");
    world.stop();
}

#[test]
fn the_journal_keeps_as_many_steps_as_it_is_told() {
    let mut world = World::new(1, 100);
    world.restart_with_history(50);
    world.create(BIDS);
    world.create(COUNTS);
    let reader = world
        .follow(FEEDS[0], FeedStart::Next)
        .expect("a push query");
    let mut steps = 0;
    while steps < 400 {
        world.insert(&[bid(steps)]);
        world.table("counts");
        steps += 1;
    }
    let given = world.leave(reader);
    // A checkpoint lets go of what lies behind.
    world.restart();
    let first = given[0].step.expect("a step");
    let near = &given[given.len() - 20];
    let (last, price) = (near.step.expect("a step"), &near.rows[0]);
    let price: i64 = price.parse().expect("a price");
    match world.follow(FEEDS[0], FeedStart::After(first)).err() {
        Some(ExecError::StepGone {
            first: Some(oldest),
            ..
        }) => {
            assert!(first < oldest && oldest <= last, "{first} {oldest} {last}");
        }
        other => panic!("{other:?}"),
    }
    let feed = world
        .follow(FEEDS[0], FeedStart::After(last))
        .expect("a push query");
    let mut reader = Reader {
        sql: FEEDS[0],
        whole: Whole::default(),
        before: BTreeMap::new(),
        feed: Some(feed),
    };
    reader.check(&world, &(price + 1..steps).collect::<Vec<_>>(), 0);
    world.stop();
}
