//! The memory that queries may take for state: one budget, shared by the steps and by the queries that catch up beside them.
//!
//! Each holder tells how much it has, and may have what the others leave. An eighth is left to everybody, so that a new query does not stand
//! still before the others have made room. A budget is kept by evicting what the database has as well; what it has not yet cannot go, so a checkpoint begins
//! before that is much, and steps wait for it when it comes too late.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Of the memory for state, the database has about a third (`state::RocksState::open`), and this much in sixteenths is for operators, tables and
/// checkpoints. The rest is for what only a running step takes.
const SIXTEENTHS: usize = 9;

/// The part of the budget that is left to each holder.
const LEAST_SHARE: usize = 8;

/// The part of an allowance that may wait to be written before a checkpoint begins: it takes as much again while it is under way.
const UNWRITTEN_SHARE: usize = 4;

/// Less than this is not worth the syncs of a checkpoint.
const LEAST_UNWRITTEN: usize = 8 << 20;

/// How much more than an allowance may be held while a checkpoint is under way.
const EXCESS_SHARE: usize = 8;

/// See the module.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: usize,
    held: AtomicUsize,
}

impl MemoryBudget {
    /// `memory` is what the database, operators and tables may take together.
    pub fn new(memory: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: memory / 16 * SIXTEENTHS,
            held: AtomicUsize::new(0),
        })
    }

    /// Somebody who holds nothing yet.
    pub fn holder(self: &Arc<Self>) -> MemoryHolder {
        MemoryHolder {
            budget: Arc::clone(self),
            held: 0,
        }
    }
}

/// Who has a part of the budget, until it is dropped.
#[derive(Debug)]
pub struct MemoryHolder {
    budget: Arc<MemoryBudget>,
    held: usize,
}

impl MemoryHolder {
    /// Tells how much is held now.
    pub fn hold(&mut self, bytes: usize) {
        let total = &self.budget.held;
        total.fetch_add(bytes, Ordering::Relaxed);
        total.fetch_sub(self.held, Ordering::Relaxed);
        self.held = bytes;
    }

    /// How much may be held.
    pub fn allowance(&self) -> usize {
        let limit = self.budget.limit;
        let others = self.budget.held.load(Ordering::Relaxed) - self.held;
        limit.saturating_sub(others).max(limit / LEAST_SHARE)
    }

    /// How many bytes have to go.
    pub fn excess(&self) -> usize {
        self.held.saturating_sub(self.allowance())
    }

    /// Whether so much waits to be written that it should be.
    pub fn should_write(&self, unwritten: usize) -> bool {
        unwritten >= LEAST_UNWRITTEN && unwritten > self.allowance() / UNWRITTEN_SHARE
    }

    /// Whether so much is held that a checkpoint under way should come first, which frees about `freed` bytes or lets them be evicted.
    pub fn should_wait(&self, freed: usize) -> bool {
        let much = self.allowance() / EXCESS_SHARE;
        self.excess() > much && freed > much
    }
}

impl Drop for MemoryHolder {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_have_what_the_others_leave_and_an_eighth() {
        let budget = MemoryBudget::new(1600 << 20);
        let (mut steps, mut new) = (budget.holder(), budget.holder());
        let all = 900 << 20;
        assert_eq!(steps.allowance(), all);
        steps.hold(all);
        assert_eq!((steps.excess(), new.allowance()), (0, all / 8));
        new.hold(100 << 20);
        assert_eq!(steps.allowance(), 800 << 20);
        assert_eq!(steps.excess(), 100 << 20);
        assert!(!steps.should_wait(all));
        new.hold(300 << 20);
        assert!(steps.should_wait(all));
        assert!(!steps.should_wait(1 << 20), "waiting would not help");
        assert!(!new.should_write(LEAST_UNWRITTEN - 1));
        assert!(new.should_write(64 << 20));
        drop(steps);
        assert_eq!(new.allowance(), all);
    }

    #[test]
    fn a_small_budget_asks_for_no_checkpoint_of_little() {
        let mut holder = MemoryBudget::new(16).holder();
        holder.hold(1000);
        assert!(!holder.should_write(1000));
        assert!(holder.excess() > 0 && holder.should_wait(1000));
    }
}
