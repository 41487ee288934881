//! The newest batches of a partition in memory, for readers that follow it closely: they never touch the file.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::batch::BatchView;

/// Most batches kept, whatever their size: bounds what is spent on small ones (a marker is 78 bytes, keeping it takes twice that).
const MAX_BATCHES: usize = 4096;

/// What all tails of a log may hold together. Each takes an equal share, counted when it grows; so idle ones may hold more than their share of today,
/// and the sum stays within a small multiple of the total.
#[derive(Debug)]
pub(crate) struct TailBudget {
    per_partition: usize,
    total: usize,
    /// Partitions that were appended to.
    tails: AtomicUsize,
}

impl TailBudget {
    pub(crate) fn new(per_partition: usize, total: usize) -> Self {
        Self {
            per_partition,
            total,
            tails: AtomicUsize::new(0),
        }
    }

    fn share(&self) -> usize {
        let tails = self.tails.load(Ordering::Relaxed).max(1);
        self.per_partition.min(self.total / tails)
    }
}

/// A ring of batches that ends at the log end. INVARIANT: no batch between its first and its last is missing.
#[derive(Debug)]
pub(crate) struct Tail {
    batches: VecDeque<BatchView>,
    bytes: usize,
    budget: Arc<TailBudget>,
    counted: bool,
}

impl Tail {
    pub(crate) fn new(budget: Arc<TailBudget>) -> Self {
        Self {
            batches: VecDeque::new(),
            bytes: 0,
            budget,
            counted: false,
        }
    }

    pub(crate) fn push(&mut self, batch: BatchView) {
        if !self.counted {
            self.counted = true;
            self.budget.tails.fetch_add(1, Ordering::Relaxed);
        }
        self.bytes += batch.byte_len();
        self.batches.push_back(batch);
        let share = self.budget.share();
        while self.bytes > share || self.batches.len() > MAX_BATCHES {
            let Some(oldest) = self.batches.pop_front() else {
                break;
            };
            self.bytes -= oldest.byte_len();
        }
    }

    /// Forgets the batches that begin below `offset`.
    pub(crate) fn drop_below(&mut self, offset: i64) {
        while let Some(oldest) = self
            .batches
            .pop_front_if(|batch| batch.base_offset().0 < offset)
        {
            self.bytes -= oldest.byte_len();
        }
    }

    /// The batches from the one that holds `offset` on; `None` when it is not here (any more).
    pub(crate) fn from(&self, offset: i64) -> Option<impl Iterator<Item = &BatchView>> {
        let first = self.batches.front()?;
        if offset < first.base_offset().0 {
            return None;
        }
        let at = self
            .batches
            .partition_point(|batch| batch.last_offset().0 < offset);
        (at < self.batches.len()).then(|| self.batches.range(at..))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        if self.counted {
            self.budget.tails.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{batch::BatchBuilder, log::Offset};

    fn batch(offset: i64) -> BatchView {
        let mut builder = BatchBuilder::new();
        builder.push(0, None, Some(&[0; 900]), &[]);
        builder.finish(None).stamp(Offset(offset))
    }

    #[test]
    fn a_tail_keeps_the_newest_within_its_share() {
        let budget = Arc::new(TailBudget::new(10_000, 16_000));
        let mut first = Tail::new(Arc::clone(&budget));
        (0..20).for_each(|offset| first.push(batch(offset)));
        assert!(first.bytes <= 10_000 && first.batches.len() >= 9);
        assert!(first.from(2).is_none(), "too long ago");
        let kept: Vec<_> = first
            .from(15)
            .expect("kept")
            .map(|batch| batch.base_offset().0)
            .collect();
        assert_eq!(kept, [15, 16, 17, 18, 19]);
        assert!(first.from(20).is_none(), "not there yet");

        let mut second = Tail::new(Arc::clone(&budget));
        (0..20).for_each(|offset| second.push(batch(offset)));
        assert!(second.bytes <= 8_000);
        first.push(batch(20));
        assert!(first.bytes <= 8_000, "two share the total");
        drop(second);
        assert_eq!(budget.share(), 10_000);
    }
}
