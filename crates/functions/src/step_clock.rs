//! The clock and the dice of a step.
//!
//! A continuous query runs a step again after a crash and must give the same rows. So UNIX_TIMESTAMP(), RANDOM() and their like do not ask the
//! machine inside of a step: they ask what the step's journal entry says. The engine sets it for the thread with [`StepClock::enter`] while
//! it evaluates one operator's batch. Outside of a step (a pull query, an INSERT) they ask the machine.

use std::{
    cell::Cell,
    hash::{BuildHasher, RandomState},
    time::{SystemTime, UNIX_EPOCH},
};

/// The increment of SplitMix64: an odd number whose multiples visit every 64-bit value.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The step that a thread is in, for another one that does a part of its work.
#[derive(Debug, Clone, Copy)]
pub struct StepMoment {
    millis: i64,
    seed: u64,
    operator: u64,
    drawn: u64,
}

thread_local! {
    static MOMENT: Cell<Option<StepMoment>> = const { Cell::new(None) };
    /// Dice outside of steps.
    static DICE: Cell<u64> = Cell::new(RandomState::new().hash_one(0u8));
}

/// While it lives, functions on this thread read the step's clock and seed.
#[derive(Debug)]
pub struct StepClock {
    _private: (),
}

impl StepClock {
    /// Sets clock (milliseconds since the epoch) and seed of a step.
    pub fn enter(millis: i64, seed: u64) -> Self {
        MOMENT.set(Some(StepMoment {
            millis,
            seed,
            operator: 0,
            drawn: 0,
        }));
        Self { _private: () }
    }

    /// The step that this thread is in.
    pub fn current() -> Option<StepMoment> {
        MOMENT.get()
    }

    /// Begins the draws of one slot of one operator, which `operator` tells apart from all others of the step. So what others draw (a push query
    /// that is gone when the step runs again) changes nothing here. Does nothing outside of a step.
    pub fn begin_operator(operator: u64) {
        if let Some(moment) = MOMENT.get() {
            MOMENT.set(Some(StepMoment {
                operator,
                drawn: 0,
                ..moment
            }));
        }
    }
}

impl StepMoment {
    /// Sets clock and seed of the step for this thread, too.
    pub fn enter(self) -> StepClock {
        StepClock::enter(self.millis, self.seed)
    }
}

impl Drop for StepClock {
    fn drop(&mut self) {
        MOMENT.set(None);
    }
}

/// Milliseconds since the epoch.
pub(crate) fn now_millis() -> i64 {
    match MOMENT.get() {
        Some(moment) => moment.millis,
        None => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|elapsed| i64::try_from(elapsed.as_millis()).ok())
            .unwrap_or(0),
    }
}

/// Sixty-four random bits.
pub(crate) fn draw() -> u64 {
    match MOMENT.get() {
        Some(moment) => {
            let drawn = moment.drawn.wrapping_add(1);
            MOMENT.set(Some(StepMoment { drawn, ..moment }));
            let start = moment.seed ^ mix(moment.operator.wrapping_add(GAMMA));
            mix(start.wrapping_add(drawn.wrapping_mul(GAMMA)))
        }
        None => {
            let state = DICE.get().wrapping_add(GAMMA);
            DICE.set(state);
            mix(state)
        }
    }
}

/// The finaliser of SplitMix64.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_runs_again_draws_the_same() {
        let run = |seed| {
            let _step = StepClock::enter(42, seed);
            (now_millis(), draw(), draw())
        };
        let (clock, first, second) = run(7);
        assert_eq!((clock, first, second), run(7));
        assert_eq!(clock, 42);
        assert_ne!(first, second);
        assert_ne!(first, run(8).1);
        assert!(now_millis() > 42, "the machine's clock outside of a step");

        let _step = StepClock::enter(42, 7);
        StepClock::begin_operator(1);
        let one = draw();
        StepClock::begin_operator(2);
        assert_ne!(one, draw(), "operators draw apart from each other");
        StepClock::begin_operator(1);
        assert_eq!(one, draw());

        let moment = StepClock::current().expect("in a step");
        let elsewhere = std::thread::spawn(move || {
            let _step = moment.enter();
            StepClock::begin_operator(1);
            (now_millis(), draw())
        });
        assert_eq!(elsewhere.join().expect("it ends"), (42, one));
    }
}
