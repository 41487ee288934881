//! The kill test: load, SIGKILL at a random moment, restart, check; again and again on one data folder. Two loads run at once: producers whose every
//! record is accounted for (`ledger.rs`), and a bank whose books must balance (`bank.rs`).
//!
//! `HIGHWATER_KILL_CYCLES` (default 500) and `HIGHWATER_KILL_SEED` (default random, printed) change a run;
//! `./hw kill-test --cycles N --seed N` sets them. What is checked stands in `check.rs`. The controls below break one promise each, outside
//! the server, and the same checks must report it.

mod bank;
mod check;
mod damage;
mod ledger;
mod load;
mod world;

use std::{
    env,
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    bank::Bank,
    check::Check,
    ledger::{Acknowledged, Ledger},
    load::Load,
    world::World,
};

/// Cycles of one run when nothing else is said.
const CYCLES: u32 = 500;
/// Every so many cycles, all records are compared one by one; in between, those of the last cycle and fingerprints of the rest.
const FULL_CHECK_EVERY: u32 = 20;
/// Longest time from the first INSERT of a cycle to its SIGKILL.
const LONGEST_LOAD: Duration = Duration::from_millis(250);

#[tokio::test]
async fn nothing_acknowledged_is_lost_and_nothing_is_counted_twice() {
    let cycles = setting("HIGHWATER_KILL_CYCLES").map_or(CYCLES, |cycles| cycles as u32);
    let seed = setting("HIGHWATER_KILL_SEED").unwrap_or_else(rand::random);
    println!("kill test: {cycles} cycles, seed {seed}");
    let began = Instant::now();
    let mut random = StdRng::seed_from_u64(seed);
    let mut world = World::create().await.unwrap();
    let (mut ledger, mut bank) = (Ledger::default(), Bank::default());
    for cycle in 1..=cycles {
        let moves = bank.moves(world.server.endpoint(), &mut random);
        let moves = tokio::spawn(moves.run());
        let observer = tokio::spawn(bank::observe_until_gone(world.server.endpoint().clone()));
        load_and_kill(&mut world, &mut ledger, &mut random, Acknowledged::ByServer).await;
        bank.add(moves.await.unwrap());
        let observed = observer.await.unwrap().unwrap_or_else(|fault| {
            panic!("cycle {cycle} of seed {seed}, while money moved: {fault:#}")
        });
        bank.saw(&observed);
        restart(&mut world, &mut random).await;
        // The first look after the restart, which waits for nothing.
        let reader = world.server.endpoint().connect().await.unwrap();
        if let Err(fault) = bank.check_monotonic(&reader).await {
            panic!(
                "cycle {cycle} of seed {seed}: {fault:#}\n{}",
                world.server.log_tail()
            );
        }
        let all = cycle % FULL_CHECK_EVERY == 0 || cycle == cycles;
        let check = if all { Check::full() } else { Check::quick() };
        if let Err(fault) = check.run(&world, &mut ledger).await {
            panic!(
                "cycle {cycle} of seed {seed}: {fault}\n{}",
                world.server.log_tail()
            );
        }
        let client = world.connect().await.unwrap();
        if let Err(fault) = bank.check(&client, all).await {
            panic!(
                "cycle {cycle} of seed {seed}: the bank: {fault:#}\n{}",
                world.server.log_tail()
            );
        }
    }
    world.server.check_health().unwrap();
    println!(
        "kill test: {cycles} cycles passed in {:.0?}: {} records acknowledged, {} more were in flight at a kill and were kept; {bank}",
        began.elapsed(),
        ledger.acknowledged(),
        ledger.kept_in_flight(),
    );
    assert!(
        ledger.acknowledged() > u64::from(cycles),
        "the load was too small to prove anything"
    );
}

/// Control: the client takes an INSERT for acknowledged when it is sent, as if the server answered before it appends.
#[tokio::test]
async fn an_acknowledgement_before_the_append_is_caught() {
    let mut random = StdRng::seed_from_u64(1);
    let mut world = World::create().await.unwrap();
    let mut ledger = Ledger::default();
    for _ in 0..30 {
        load_and_kill(&mut world, &mut ledger, &mut random, Acknowledged::WhenSent).await;
        world.server.restart().await.unwrap();
        if let Err(fault) = Check::quick().run(&world, &mut ledger).await {
            assert!(fault.to_string().contains("lost"), "{fault}");
            return;
        }
    }
    panic!("30 kills with acknowledgements before the append, and no loss was reported");
}

/// Control: the disk forgets the end of a partition that it said it had synced.
#[tokio::test]
async fn a_disk_that_forgets_synced_bytes_is_caught() {
    let mut random = StdRng::seed_from_u64(2);
    let mut world = World::create().await.unwrap();
    let mut ledger = Ledger::default();
    let load = Load::start(
        world.server.endpoint(),
        ledger.begin_cycle(),
        &mut random,
        Acknowledged::ByServer,
    );
    // To its end: the last batch is one that was acknowledged.
    ledger.add(load.finish().await);
    world.server.kill();
    let cut = damage::forget_last_bytes(&world.server.data()).unwrap();
    world.server.spawn().unwrap();
    match world.server.wait_until_ready().await {
        // Refusing to start is a report, too, when it says what is missing.
        Err(refusal) => assert!(refusal.to_string().contains("offset"), "{refusal}"),
        Ok(()) => {
            let fault = Check::quick().run(&world, &mut ledger).await;
            let fault = fault
                .expect_err(&format!("{cut} were cut and nothing was reported"))
                .to_string();
            assert!(
                fault.contains("lost") || fault.contains("answer"),
                "{fault}"
            );
        }
    }
}

/// Control: a record is appended twice, as by a retry that the log does not recognise.
#[tokio::test]
async fn a_record_appended_twice_is_caught() {
    let mut random = StdRng::seed_from_u64(3);
    let mut world = World::create().await.unwrap();
    let mut ledger = Ledger::default();
    load_and_kill(&mut world, &mut ledger, &mut random, Acknowledged::ByServer).await;
    world.server.restart().await.unwrap();
    world.repeat_a_record().await.unwrap();
    let fault = Check::quick()
        .run(&world, &mut ledger)
        .await
        .expect_err("a duplicate was not reported");
    assert!(fault.to_string().contains("twice"), "{fault}");
}

/// Control: a table that has missed a record, here since its query began to read after it.
#[tokio::test]
async fn a_table_that_missed_a_record_is_caught() {
    let world = World::create().await.unwrap();
    let mut ledger = Ledger::default();
    world
        .replace_totals_by_late_starter(&mut ledger)
        .await
        .unwrap();
    let fault = Check::quick()
        .run(&world, &mut ledger)
        .await
        .expect_err("a wrong table was not reported");
    assert!(fault.to_string().contains("totals"), "{fault}");
}

/// Control: somebody looks, and then at a server that has lost all of it.
#[tokio::test]
async fn books_that_go_back_are_caught() {
    let mut random = StdRng::seed_from_u64(4);
    let world = World::create().await.unwrap();
    let mut bank = Bank::default();
    let moved = bank.moves(world.server.endpoint(), &mut random).run().await;
    bank.add(moved);
    let client = world.connect().await.unwrap();
    bank.check_monotonic(&client).await.unwrap();
    let empty = World::create().await.unwrap();
    let client = empty.connect().await.unwrap();
    let fault = bank
        .check_monotonic(&client)
        .await
        .expect_err("older books were not reported");
    assert!(fault.to_string().contains("went back"), "{fault}");
}

/// Lets producers write for a random time, then kills the server and waits until every client has noticed. Meanwhile a reader asks for
/// tables and streams in one statement, which must agree at any moment.
async fn load_and_kill(
    world: &mut World,
    ledger: &mut Ledger,
    random: &mut StdRng,
    acknowledged: Acknowledged,
) {
    let load = Load::start(
        world.server.endpoint(),
        ledger.begin_cycle(),
        random,
        acknowledged,
    );
    let reader = tokio::spawn(check::agree_until_gone(world.server.endpoint().clone()));
    tokio::time::sleep(random.random_range(Duration::ZERO..LONGEST_LOAD)).await;
    world.server.kill();
    ledger.add(load.finish().await);
    if let Err(fault) = reader.await.unwrap() {
        panic!("while producers wrote: {fault}");
    }
}

/// Starts the server again; in one of four times it is killed once more while it recovers.
async fn restart(world: &mut World, random: &mut StdRng) {
    if random.random_bool(0.25) {
        world.server.spawn().unwrap();
        tokio::time::sleep(random.random_range(Duration::ZERO..Duration::from_millis(120))).await;
        world.server.kill();
    }
    world.server.restart().await.unwrap();
}

fn setting(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")),
    )
}
