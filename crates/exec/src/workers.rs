//! The threads that share the work of a step.
//!
//! A step's work comes in pieces that know nothing of each other: a partition to decode, a slot of an operator, a slot's rows to encode. The
//! thread that runs the step takes part; others help it as long as one round of pieces lasts.
//!
//! INVARIANT: pieces are cut by partition and slot, never by the number of threads, and results stand in the order of the pieces, so which thread
//! did what changes nothing: any number of workers makes the same rows and the same batches.
//!
//! A helper costs some tens of microseconds. A round with few rows does without: a step of one record never leaves its thread.

use std::{num::NonZero, panic, thread};

use highwater_functions::{StepClock, StepMoment};
use parking_lot::Mutex;

use crate::error::ExecResult;

/// Rows from which on a helper is worth what it costs: about half a millisecond of work.
const MIN_ROWS: usize = 2_048;

/// How many threads share a step's work.
#[derive(Debug, Clone, Copy)]
pub struct Workers(NonZero<usize>);

impl Workers {
    /// The thread that runs the step, alone.
    pub const ONE: Self = Self(NonZero::<usize>::MIN);

    /// So many threads, the one that runs the step among them.
    pub fn new(threads: NonZero<usize>) -> Self {
        Self(threads)
    }

    /// Does `work` for each of the pieces, which have `rows` rows together; answers the results in the order of the pieces.
    pub fn map<T: Send, R: Send>(
        self,
        rows: usize,
        pieces: Vec<T>,
        work: impl Fn(T) -> R + Sync,
    ) -> Vec<R> {
        let threads = self.0.get().min(pieces.len());
        if threads < 2 || rows < MIN_ROWS {
            return pieces.into_iter().map(work).collect();
        }
        let left = Mutex::new(pieces.into_iter().enumerate());
        let take_next = || left.lock().next();
        let take_part = || {
            let mut done = Vec::new();
            while let Some((position, piece)) = take_next() {
                done.push((position, work(piece)));
            }
            done
        };
        let moment = StepClock::current();
        let help = || {
            let _clock = moment.map(StepMoment::enter);
            take_part()
        };
        let mut done = thread::scope(|scope| {
            // Where the system has no more threads, fewer do it.
            let helpers: Vec<_> = (1..threads)
                .map_while(|_| {
                    let helper = thread::Builder::new().name("hw-worker".into());
                    helper.spawn_scoped(scope, help).ok()
                })
                .collect();
            let mut done = take_part();
            for helper in helpers {
                match helper.join() {
                    Ok(more) => done.extend(more),
                    Err(reason) => panic::resume_unwind(reason),
                }
            }
            done
        });
        done.sort_unstable_by_key(|(position, _)| *position);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

/// Things that a thread needs for itself while it works on a piece, like an encoder's buffers: as many as threads ever needed one at once.
#[derive(Debug)]
pub struct Pool<T> {
    idle: Mutex<Vec<T>>,
}

impl<T> Pool<T> {
    /// Begins with one.
    pub fn new(first: T) -> Self {
        Self {
            idle: Mutex::new(vec![first]),
        }
    }

    /// Does `work` with one that nobody uses, else with a new one from `make`.
    pub fn with<R>(
        &self,
        make: impl FnOnce() -> ExecResult<T>,
        work: impl FnOnce(&mut T) -> R,
    ) -> ExecResult<R> {
        let idle = self.idle.lock().pop();
        let mut taken = match idle {
            Some(taken) => taken,
            None => make()?,
        };
        let done = work(&mut taken);
        self.idle.lock().push(taken);
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workers(threads: usize) -> Workers {
        Workers::new(NonZero::new(threads).expect("not zero"))
    }

    #[test]
    fn results_stand_in_the_order_of_the_pieces() {
        for threads in [1, 2, 7] {
            for pieces in [0, 1, 5, 100] {
                let squares = workers(threads).map(MIN_ROWS, (0..pieces).collect(), |n| n * n);
                let expected: Vec<i32> = (0..pieces).map(|n| n * n).collect();
                assert_eq!(squares, expected);
            }
        }
    }

    #[test]
    fn all_threads_take_part_and_know_the_step() {
        let _step = StepClock::enter(42, 7);
        // Each piece waits for the other, so one thread alone would never be done.
        let both = std::sync::Barrier::new(2);
        let seen = workers(2).map(MIN_ROWS, vec![0, 1], |_| {
            both.wait();
            (thread::current().id(), StepClock::current().is_some())
        });
        assert_ne!(seen[0].0, seen[1].0);
        assert!(seen.iter().all(|(_, in_step)| *in_step));
    }

    #[test]
    fn few_rows_stay_on_their_thread() {
        let here = thread::current().id();
        let seen = workers(4).map(MIN_ROWS - 1, vec![(); 8], |()| thread::current().id());
        assert!(seen.into_iter().all(|id| id == here));
    }

    #[test]
    #[should_panic(expected = "piece 3")]
    fn a_panic_of_a_helper_is_one_of_the_step() {
        workers(2).map(MIN_ROWS, (0..8).collect(), |n| assert_ne!(n, 3, "piece 3"));
    }

    #[test]
    fn a_pool_makes_what_is_needed_at_once() {
        let pool = Pool::new(1);
        let outer = pool.with(
            || unreachable!("one is idle"),
            |one| (*one, pool.with(|| Ok(2), |two| *two).expect("made")),
        );
        assert_eq!(outer.expect("there"), (1, 2));
        assert_eq!(pool.idle.lock().len(), 2);
    }
}
