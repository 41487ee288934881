//! Crashes, damage and full disks at the places where a change of the queries, or a step, is only half done.

use highwater_exec::QueryState;
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    oracle,
    world::{Cut, Row, World},
};

pub const BIDS: &str = "CREATE STREAM bids (bidder BIGINT, channel VARCHAR, price BIGINT, at TIMESTAMP) WITH (timestamp = 'at')";
pub const COUNTS: &str = "SELECT bidder, COUNT(*) AS n FROM bids GROUP BY bidder";

pub fn row(bidder: i64) -> Row {
    Row {
        bidder,
        channel: Some("c".into()),
        price: Some(bidder),
        at: 0,
    }
}

fn world_with_counts() -> World {
    let mut world = World::new(2, 10);
    world.create(BIDS);
    world.create(&format!("CREATE TABLE counts AS {COUNTS}"));
    world
}

fn counts(world: &World) -> Vec<String> {
    oracle::answer(COUNTS, world.rows())
}

#[test]
fn a_pause_or_resume_that_only_the_catalog_holds_takes_effect_at_start() {
    let mut random = StdRng::seed_from_u64(1);
    let mut world = world_with_counts();
    world.insert(&[row(1), row(2)]);
    assert_eq!(world.table("counts"), ["1|1", "2|1"]);
    world.note_paused("counts", true);
    world.power_cut(&mut random);
    assert_eq!(world.state("counts"), QueryState::Paused);
    world.insert(&[row(1), row(3)]);
    assert_eq!(world.table("counts"), ["1|1", "2|1"]);
    world.note_paused("counts", false);
    world.power_cut(&mut random);
    assert_eq!(world.table("counts"), counts(&world));
    world.insert(&[row(3)]);
    assert_eq!(world.table("counts"), counts(&world));
    world.stop();
}

#[test]
fn several_changes_of_the_queries_at_one_step_survive_a_power_cut() {
    let mut random = StdRng::seed_from_u64(2);
    let mut world = world_with_counts();
    world.insert(&[row(1)]);
    world
        .create("CREATE TABLE gone AS SELECT bidder, MAX(price) AS most FROM bids GROUP BY bidder");
    world.create("CREATE TABLE twice AS SELECT n, COUNT(*) AS bidders FROM counts GROUP BY n");
    world.drop("gone");
    world.pause("twice");
    world.resume("twice");
    world.power_cut(&mut random);
    assert_eq!(world.table("twice"), ["1|1"]);
    world.insert(&[row(1), row(2)]);
    world.power_cut(&mut random);
    assert_eq!(world.table("counts"), counts(&world));
    assert_eq!(world.table("twice"), ["1|1", "2|1"]);
    world.stop();
}

#[test]
fn a_push_query_ends_when_its_topic_is_deleted_and_the_others_go_on() {
    let mut world = world_with_counts();
    world.create("CREATE STREAM other (bidder BIGINT)");
    let seen = world.watch("SELECT bidder FROM other EMIT CHANGES");
    world.insert(&[row(1)]);
    assert_eq!(world.table("counts"), ["1|1"]);
    world.delete_topic("other");
    world.insert(&[row(1)]);
    assert_eq!(world.table("counts"), ["1|2"]);
    assert_eq!(*seen.lock(), ["closed: its topic was deleted"]);
    world.stop();
}

#[test]
fn a_result_row_that_no_batch_can_hold_is_rejected_and_the_query_goes_on() {
    let mut world = world_with_counts();
    world.create("CREATE STREAM wide AS SELECT bidder, repeat(channel, CAST(price AS INT)) AS text FROM bids");
    world.insert(&[
        row(1),
        Row {
            price: Some(9 << 20),
            ..row(2)
        },
        row(3),
    ]);
    assert_eq!(world.table("counts"), ["1|1", "2|1", "3|1"]);
    assert_eq!(world.state("wide"), QueryState::Running);
    assert_eq!(world.rejected().len(), 1, "{:?}", world.rejected());
    world.restart();
    world.insert(&[row(4)]);
    assert_eq!(world.table("counts"), counts(&world));
    assert_eq!(world.state("wide"), QueryState::Running);
    world.stop();
}

#[test]
fn a_resume_on_a_full_disk_fails_and_a_later_one_loses_nothing() {
    let mut random = StdRng::seed_from_u64(3);
    for crash in [false, true] {
        let mut world = world_with_counts();
        world.create("CREATE TABLE twice AS SELECT n, COUNT(*) AS bidders FROM counts GROUP BY n");
        world.insert(&[row(1)]);
        world.pause("counts");
        let rows: Vec<Row> = (0..500).map(row).collect();
        world.insert(&rows);
        world.leave_room(Some(100));
        let error = world.try_resume("counts").expect_err("no room");
        assert!(error.is_disk_full(), "{error}");
        assert!(matches!(world.state("counts"), QueryState::Failed(_)));
        world.leave_room(None);
        if crash {
            world.power_cut(&mut random);
        }
        world.try_resume("counts").expect("there is room");
        world.try_resume("twice").expect("there is room");
        world.insert(&[row(1), row(7)]);
        assert_eq!(world.table("counts"), counts(&world), "crash: {crash}");
        assert_eq!(
            world.table("twice"),
            ["1|498", "2|1", "3|1"],
            "crash: {crash}"
        );
        world.check_topic("counts");
        world.check_topic("twice");
        world.restart();
        assert_eq!(world.table("counts"), counts(&world), "crash: {crash}");
        world.stop();
    }
}

const OTHER_COUNTS: &str =
    "SELECT bidder, COUNT(*) AS n, MAX(price) AS most FROM bids WHERE bidder <> 2 GROUP BY bidder";

/// A table with a reader, and rows of which the other query has one less, one like it was, and two that differ.
fn world_with_spread() -> World {
    let mut world = world_with_counts();
    world.create("CREATE TABLE spread AS SELECT n, COUNT(*) AS bidders FROM counts GROUP BY n");
    world.insert(&[row(1), row(2), row(1), row(3)]);
    assert_eq!(world.table("spread"), ["1|2", "2|1"]);
    world
}

/// A change that fails takes a query, and those that follow it, out of the steps.
fn resume_failed(world: &mut World) {
    for name in ["counts", "spread"] {
        if matches!(world.state(name), QueryState::Failed(_)) {
            world.try_resume(name).expect("nothing is in its way");
        }
    }
}

fn check_replaced(world: &mut World, cut: Option<Cut>) {
    resume_failed(world);
    assert_eq!(world.table("counts"), ["1|2|1", "3|1|3"], "{cut:?}");
    assert_eq!(world.table("spread"), ["1|1", "2|1"], "{cut:?}");
    world.insert(&[row(2), row(3), row(4)]);
    world.restart();
    let expected = ["1|2|1", "3|2|3", "4|1|4"];
    assert_eq!(world.table("counts"), expected, "{cut:?}");
    assert_eq!(world.table("spread"), ["1|1", "2|2"], "{cut:?}");
    world.check_topic("counts");
    world.check_topic("spread");
}

#[test]
fn a_replaced_table_is_built_anew_wherever_the_power_goes() {
    let sql = format!("CREATE TABLE counts AS {OTHER_COUNTS}");
    let mut random = StdRng::seed_from_u64(5);
    let mut world = world_with_spread();
    world
        .replace_table("counts", &sql, Some(Cut::Paused), &mut random)
        .expect("no more than a pause");
    assert_eq!(world.table("counts"), ["1|2", "2|1", "3|1"]);
    world
        .replace_table("counts", &sql, None, &mut random)
        .expect("a replacement");
    check_replaced(&mut world, None);
    world.stop();
    let mut changes = 0;
    loop {
        for cut in [Cut::Recorded, Cut::After(changes)] {
            let mut random = StdRng::seed_from_u64(changes);
            let mut world = world_with_spread();
            let done = world.replace_table("counts", &sql, Some(cut), &mut random);
            check_replaced(&mut world, Some(cut));
            world.stop();
            if cut != Cut::Recorded && done.is_ok() {
                assert!(changes > 1, "a replacement writes to the log");
                return;
            }
        }
        changes += 1;
    }
}

#[test]
fn a_replacement_on_a_full_disk_leaves_the_table_as_it_was() {
    let mut random = StdRng::seed_from_u64(6);
    let sql = format!("CREATE TABLE counts AS {OTHER_COUNTS}");
    for room in [0, 100, 200, 300, 400, 600] {
        let mut world = world_with_spread();
        let cut = Some(Cut::Room(room));
        let replaced = world.replace_table("counts", &sql, cut, &mut random);
        if replaced.is_ok() {
            check_replaced(&mut world, None);
            world.stop();
            continue;
        }
        assert_eq!(world.table("counts"), ["1|2", "2|1", "3|1"], "{room} bytes");
        resume_failed(&mut world);
        world.insert(&[row(2)]);
        assert_eq!(world.table("counts"), ["1|2", "2|2", "3|1"], "{room} bytes");
        assert_eq!(world.table("spread"), ["1|1", "2|2"], "{room} bytes");
        world.check_topic("counts");
        world.check_topic("spread");
        world.restart();
        assert_eq!(world.table("counts"), ["1|2", "2|2", "3|1"], "{room} bytes");
        world.stop();
    }
}

#[test]
fn a_step_whose_records_a_power_cut_took_never_happened() {
    for seed in 0..30 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut world = World::new(random.random_range(1..4), random.random_range(1..20));
        world.create(BIDS);
        world.create("CREATE TABLE overall AS SELECT COUNT(*) AS n FROM bids");
        for _ in 0..4 {
            for _ in 0..random.random_range(0..30) {
                world.insert_without_waiting(&[row(random.random_range(0..9)), row(1)]);
            }
            world.power_cut(&mut random);
            world.forget_unacknowledged();
            let stored = world.records("bids").to_string();
            assert_eq!(world.table("overall"), [stored], "seed {seed}");
        }
        world.stop();
    }
}

#[test]
fn a_topic_that_cannot_be_read_stops_its_readers_alone() {
    let mut world = world_with_counts();
    world.create("CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner VARCHAR, balance BIGINT)");
    world.create(
        "CREATE TABLE wealth AS SELECT owner, SUM(balance) AS total FROM accounts GROUP BY owner",
    );
    world.insert(&[row(1)]);
    assert_eq!(world.table("counts"), ["1|1"]);
    world.damage_while_down(&[row(2), row(3)]);
    world.upsert("accounts", &[(1, Some(("ann", 10)))]);
    assert_eq!(world.table("wealth"), ["ann|10"]);
    let reason = world.failure("counts");
    assert!(reason.contains("bids"), "{reason}");
    assert_eq!(world.table("counts"), ["1|1"], "what it had stays readable");
    world.stop();
}

fn insert_many(world: &mut World, batches: i64) {
    for batch in 0..batches {
        let rows: Vec<Row> = (0..2000)
            .map(|number| row((batch * 7 + number) % 50))
            .collect();
        world.insert(&rows);
    }
}

#[test]
fn a_query_that_catches_up_holds_nobody_up() {
    let mut world = World::new(2, 1000);
    world.create(BIDS);
    world.create("CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner VARCHAR, balance BIGINT)");
    insert_many(&mut world, 40);
    let rounds = world.create_beside(
        &format!("CREATE TABLE counts AS {COUNTS}"),
        |world, round| {
            world.insert(&[row(1), row(round)]);
            world.upsert("accounts", &[(1, Some(("ann", round)))]);
            assert_eq!(world.table("accounts"), [format!("1|ann|{round}")]);
        },
    );
    assert!(rounds > 1, "{rounds} rounds");
    assert_eq!(world.table("counts"), counts(&world));
    world.restart();
    world.insert(&[row(3)]);
    assert_eq!(world.table("counts"), counts(&world));
    world.stop();
}

#[test]
fn a_power_cut_in_a_catch_up_begins_it_anew() {
    for seed in 0..6 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut world = World::new(2, 1000);
        world.create(BIDS);
        insert_many(&mut world, 10);
        let sql = format!("CREATE TABLE counts AS {COUNTS}");
        world.power_cut_while_creating(&sql, &mut random);
        world.insert(&[row(1), row(60)]);
        assert_eq!(world.table("counts"), counts(&world), "seed {seed}");
        world.power_cut(&mut random);
        assert_eq!(world.table("counts"), counts(&world), "seed {seed}");
        world.stop();
    }
}

#[test]
fn a_power_cut_at_any_write_of_a_create_counts_nothing_twice() {
    let mut changes = 0;
    loop {
        let mut random = StdRng::seed_from_u64(changes);
        let mut world = World::new(2, 1000);
        world.create(BIDS);
        world.insert(&[row(1), row(2), row(1)]);
        let sql = format!("CREATE TABLE counts AS {COUNTS}");
        let done = world.power_cut_after(changes, &sql, &mut random);
        assert_eq!(world.table("counts"), ["1|2", "2|1"], "{changes} changes");
        world.insert(&[row(1), row(60)]);
        world.restart();
        assert_eq!(world.table("counts"), counts(&world), "{changes} changes");
        world.stop();
        if done {
            break;
        }
        changes += 1;
    }
    assert!(changes > 1, "a CREATE writes to the log");
}

#[test]
fn what_is_written_after_the_answer_reaches_a_push_query_however_busy_the_steps_are() {
    let mut world = World::new(1, 1000);
    world.create("CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner VARCHAR, balance BIGINT)");
    world.create(BIDS);
    let accounts: Vec<(i64, Option<(&str, i64)>)> =
        (0..20_000).map(|id| (id, Some(("ann", id)))).collect();
    for rows in accounts.chunks(2000) {
        world.upsert("accounts", rows);
    }
    let seen = std::cell::RefCell::new(Vec::new());
    // A query over a table is built between two steps, so the push query has to wait for it.
    world.create_beside(
        "CREATE TABLE wealth AS SELECT owner, balance % 7 AS rest, SUM(balance) AS total FROM accounts GROUP BY owner, balance % 7",
        |world, round| {
            if round == 1 {
                seen.borrow_mut().push(world.watch("SELECT bidder FROM bids EMIT CHANGES"));
                world.insert(&[row(5)]);
            }
        },
    );
    world.create(&format!("CREATE TABLE counts AS {COUNTS}"));
    world.insert(&[row(6)]);
    assert_eq!(world.table("counts"), counts(&world));
    assert_eq!(*seen.borrow()[0].lock(), ["5", "6"]);
    world.stop();
}

#[test]
fn everybody_who_waits_is_told_when_the_engine_stops_for_good() {
    let mut world = World::new(2, 1000);
    world.create(BIDS);
    world.create("CREATE TABLE overall AS SELECT COUNT(*) AS n FROM bids");
    insert_many(&mut world, 40);
    let told = world.fail_syncs_while_creating(&format!("CREATE TABLE counts AS {COUNTS}"));
    assert!(told.is_err(), "a query was created on a disk that fails");
}

#[test]
fn a_join_that_makes_too_many_rows_fails_and_the_others_go_on() {
    let mut world = World::new(1, 10_000);
    world.create(BIDS);
    world.create("CREATE TABLE ones AS SELECT bidder, 1 AS one FROM (SELECT bidder, COUNT(*) AS n FROM bids GROUP BY bidder) AS b");
    world.create("CREATE TABLE pairs AS SELECT a.bidder AS a, b.bidder AS b FROM ones a JOIN ones b ON a.one = b.one");
    world.create(&format!("CREATE TABLE counts AS {COUNTS}"));
    let rows: Vec<Row> = (0..3000).map(row).collect();
    world.insert(&rows);
    let reason = world.failure("pairs");
    assert!(reason.contains("share a join key"), "{reason}");
    assert_eq!(world.table("counts").len(), 3000);
    world.stop();
}
