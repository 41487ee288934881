//! What one statement writes to several partitions is there as a whole or not at all.

use std::collections::BTreeMap;

use rand::{SeedableRng, rngs::StdRng};

use crate::{
    faults::{BIDS, COUNTS, row},
    world::{Row, World},
};

/// Rows of one statement: two in each partition.
const ROWS: usize = 8;

/// The rows of one statement, which is told from others by its bidder.
fn rows(bidder: i64) -> Vec<Row> {
    vec![row(bidder); ROWS]
}

/// How many rows of each statement the table counts.
fn counted(world: &World, table: &str) -> BTreeMap<i64, usize> {
    let number = |text: &str| text.parse::<i64>().expect("a number");
    let lines = world.table(table).into_iter();
    let counts = lines.map(|line| {
        let (bidder, n) = line.split_once('|').expect("two columns");
        (number(bidder), number(n) as usize)
    });
    counts.collect()
}

#[test]
fn an_insert_into_several_partitions_is_whole_wherever_the_power_goes() {
    let mut lost = 0;
    // What survives of what was not synced is a matter of luck, so each moment has two tries.
    for (changes, seed) in (0..).flat_map(|changes| (0..2).map(move |seed| (changes, seed))) {
        let mut random = StdRng::seed_from_u64(changes * 2 + seed);
        let mut world = World::new(4, 1000);
        world.create(BIDS);
        world.create(&format!("CREATE TABLE counts AS {COUNTS}"));
        world.halt_after(changes);
        // One by itself, then two at once.
        let mut acknowledged = Vec::new();
        for together in [1..=1, 2..=3] {
            let begun: Vec<_> = together
                .map(|bidder| (bidder, world.begin_insert(&rows(bidder))))
                .collect();
            for (bidder, insert) in begun {
                if insert.is_ok_and(|insert| world.finish_insert(insert, &rows(bidder)).is_ok()) {
                    acknowledged.push(bidder);
                }
            }
        }
        world.power_cut(&mut random);
        world.create(&format!("CREATE TABLE later AS {COUNTS}"));
        let counts = counted(&world, "counts");
        assert_eq!(counted(&world, "later"), counts, "{changes} changes");
        for bidder in 1..=3 {
            let n = counts.get(&bidder).copied().unwrap_or(0);
            let is_acknowledged = acknowledged.contains(&bidder);
            assert!(
                n == ROWS || (n == 0 && !is_acknowledged),
                "{n} rows of insert {bidder} after {changes} changes, acknowledged: {is_acknowledged}"
            );
            lost += usize::from(n == 0);
        }
        // Nothing of what was cut off stands in the way of what comes.
        for bidder in 4..=5 {
            let insert = world.begin_insert(&rows(bidder)).expect("an append");
            world
                .finish_insert(insert, &rows(bidder))
                .expect("a commit");
            world.power_cut(&mut random);
            assert_eq!(
                counted(&world, "counts")[&bidder],
                ROWS,
                "{changes} changes"
            );
        }
        assert_eq!(counted(&world, "later"), counted(&world, "counts"));
        world.stop();
        if acknowledged.len() == 3 {
            break;
        }
    }
    assert!(lost > 0, "the power went too late");
}

#[test]
fn an_insert_of_which_a_sync_fails_is_whole_or_not_there() {
    for seed in 0..12 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut world = World::new(4, 1000);
        world.create(BIDS);
        world.create(&format!("CREATE TABLE counts AS {COUNTS}"));
        let insert = world.begin_insert(&rows(1)).expect("an append");
        world.finish_insert(insert, &rows(1)).expect("a commit");
        // Five files are synced for it.
        world.fail_syncs_after(seed % 5);
        let failed = world
            .begin_insert(&rows(2))
            .and_then(|insert| world.finish_insert(insert, &rows(2)));
        assert!(failed.is_err(), "a sync failed");
        world.power_cut(&mut random);
        let counts = counted(&world, "counts");
        assert_eq!(counts[&1], ROWS);
        let n = counts.get(&2).copied().unwrap_or(0);
        assert!(n == 0 || n == ROWS, "{n} rows with seed {seed}");
        world.stop();
    }
}
