//! State databases that cannot be read any more.

use std::time::Duration;

use highwater_exec::QueryState;
use rand::{SeedableRng, rngs::StdRng};

use crate::{
    faults::{BIDS, COUNTS, row},
    oracle,
    world::{Row, World},
};

const TABLES: [(&str, &str, &str); 4] = [
    ("counts", COUNTS, COUNTS),
    (
        "spread",
        "SELECT bidder, MIN(price) AS least, COUNT(*) AS n FROM copies GROUP BY bidder",
        "SELECT bidder, MIN(price) AS least, COUNT(*) AS n FROM bids GROUP BY bidder",
    ),
    (
        "twice",
        "SELECT n, COUNT(*) AS bidders FROM counts GROUP BY n",
        "SELECT n, COUNT(*) AS bidders FROM (SELECT COUNT(*) AS n FROM bids GROUP BY bidder) GROUP BY n",
    ),
    (
        "sums",
        "SELECT bidder, SUM(price) AS total FROM bids GROUP BY bidder",
        "SELECT bidder, SUM(price) AS total FROM bids GROUP BY bidder",
    ),
];

fn world() -> World {
    let mut world = World::new(2, 10);
    world.create(BIDS);
    world.create("CREATE STREAM copies AS SELECT bidder, price FROM bids");
    for (name, sql, _) in TABLES {
        world.create(&format!("CREATE TABLE {name} AS {sql}"));
    }
    world
}

fn rows(count: i64) -> Vec<Row> {
    (0..count).map(|number| row(number % 70)).collect()
}

fn check(world: &World) {
    for (name, _, answer) in TABLES {
        assert_eq!(
            world.table(name),
            oracle::answer(answer, world.rows()),
            "{name}"
        );
        assert_eq!(world.state(name), QueryState::Running, "{name}");
    }
}

#[test]
fn lost_state_is_made_anew_from_the_log() {
    let mut world = world();
    world.insert(&rows(100));
    // It makes records behind those that are in its readers' state.
    world.insert(&rows(30));
    check(&world);
    world.settle();
    let before = world.batches("copies");
    world.restart_with_lost_state();
    check(&world);
    for (name, ..) in TABLES {
        assert!(world.rebuilt(name).is_some(), "{name}");
        world.check_topic(name);
    }
    assert_eq!(world.batches("copies"), before, "nothing is written twice");
    world.insert(&rows(50));
    check(&world);
    world.restart();
    check(&world);
    assert_eq!(world.rebuilt("counts"), None, "once is enough");
    world.stop();
}

#[test]
fn steps_behind_lost_state_run_again() {
    for seed in 0..20 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut world = world();
        world.insert(&rows(40));
        world.restart_with_checkpoints_every(Duration::from_secs(3600));
        world.insert(&rows(100));
        world.power_cut_with_lost_state(&mut random);
        check(&world);
        world.insert(&rows(20));
        check(&world);
        for (name, ..) in TABLES {
            world.check_topic(name);
        }
        world.stop();
    }
}

#[test]
fn a_paused_query_gets_its_lost_state_back_as_of_its_pause() {
    let mut world = world();
    world.insert(&rows(40));
    world.pause("sums");
    world.pause("spread");
    let (sums, spread) = (world.table("sums"), world.table("spread"));
    world.insert(&rows(90));
    world.restart_with_lost_state();
    assert_eq!(world.table("sums"), sums);
    assert_eq!(world.table("spread"), spread);
    world.resume("sums");
    world.resume("spread");
    check(&world);
    world.stop();
}

#[test]
fn what_the_log_does_not_hold_any_more_is_not_made_up() {
    let mut world = world();
    // The first call makes segments small; retention waits for what a replay may need.
    let gone = (0..200).any(|_| {
        world.insert(&rows(20));
        world.table("counts");
        std::thread::sleep(Duration::from_millis(5));
        world.expire() > 0
    });
    assert!(gone, "retention takes what all queries have read");
    check(&world);
    world.restart_with_lost_state();
    for name in ["counts", "sums", "twice"] {
        let QueryState::Failed(reason) = world.state(name) else {
            panic!("{name} runs");
        };
        assert!(reason.contains("cannot be made anew"), "{reason}");
    }
    // Its own topic is whole.
    assert_eq!(world.state("spread"), QueryState::Running);
    let (name, _, answer) = TABLES[1];
    assert_eq!(world.table(name), oracle::answer(answer, world.rows()));
    world.stop();
}

#[test]
fn a_query_that_meets_damage_goes_on_after_the_next_start() {
    let mut random = StdRng::seed_from_u64(1);
    let mut world = World::new(2, 1000);
    world.create(BIDS);
    world.create(&format!("CREATE TABLE counts AS {COUNTS}"));
    let many: Vec<Row> = (0..20_000).map(row).collect();
    world.insert(&many);
    world.restart();
    world.damage_state();
    world.insert(&many);
    world.failure("counts");
    world.power_cut(&mut random);
    assert_eq!(world.state("counts"), QueryState::Running);
    assert!(world.rebuilt("counts").is_some());
    assert_eq!(world.table("counts"), oracle::answer(COUNTS, world.rows()));
    world.check_topic("counts");
    world.stop();
}

#[test]
fn a_pause_between_what_a_query_got_and_what_its_topic_tells_counts_nothing_twice() {
    let mut world = world();
    for round in 0..200 {
        world.insert_without_waiting(&rows(20 + round % 7));
        world.pause_at_once("spread");
        world.insert_without_waiting(&rows(5));
        world.try_resume("spread").expect("a resumption");
    }
    world.settle();
    check(&world);
    world.stop();
}
