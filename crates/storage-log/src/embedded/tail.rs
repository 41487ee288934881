//! The newest batches of a partition in memory, for readers that follow it closely: they never touch the file.

use std::collections::VecDeque;

use crate::batch::BatchView;

/// Most batches kept, whatever their size: bounds what is spent on small ones (a marker is 78 bytes, keeping it takes twice that).
const MAX_BATCHES: usize = 4096;

/// A ring of batches that ends at the log end. INVARIANT: no offset between its first and its last is missing.
#[derive(Debug)]
pub(crate) struct Tail {
    batches: VecDeque<BatchView>,
    bytes: usize,
    limit: usize,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            batches: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    pub(crate) fn push(&mut self, batch: BatchView) {
        self.bytes += batch.byte_len();
        self.batches.push_back(batch);
        while self.bytes > self.limit || self.batches.len() > MAX_BATCHES {
            let Some(oldest) = self.batches.pop_front() else {
                break;
            };
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
