//! What a partition remembers between reads, so that a reader that goes on where it was needs no index.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::embedded::{
    index::SegmentIndex,
    scan::{Expected, ScanStart},
};

/// Indexes of sealed segments kept in memory per partition: one reader far behind, one near, and room for two more.
const INDEXES_KEPT: usize = 4;
/// Positions kept where earlier reads ended: readers go on there without an index.
const CURSORS_KEPT: usize = 16;

/// What makes the next read cheaper. Nothing in it is needed.
#[derive(Debug, Default)]
pub(super) struct ReadCaches {
    indexes: Mutex<Vec<(i64, Arc<SegmentIndex>)>>,
    /// Segment base, and where in it an offset begins.
    cursors: Mutex<Vec<(i64, i64, u64)>>,
}

impl ReadCaches {
    /// Drops what is known of a segment.
    pub(super) fn forget(&self, base: i64) {
        self.indexes.lock().retain(|(of, _)| *of != base);
        self.cursors.lock().retain(|(of, _, _)| *of != base);
    }

    /// The index of a segment, if it was used lately.
    pub(super) fn index(&self, base: i64) -> Option<Arc<SegmentIndex>> {
        let mut indexes = self.indexes.lock();
        let at = indexes.iter().position(|(of, _)| *of == base)?;
        let found = indexes.remove(at);
        let index = Arc::clone(&found.1);
        indexes.push(found);
        Some(index)
    }

    pub(super) fn keep_index(&self, base: i64, index: Arc<SegmentIndex>) {
        let mut indexes = self.indexes.lock();
        if indexes.len() == INDEXES_KEPT {
            indexes.remove(0);
        }
        indexes.push((base, index));
    }

    /// Where a read that begins at `offset` in that segment finds it, if an earlier one ended there.
    pub(super) fn take_cursor(&self, base: i64, offset: i64) -> Option<ScanStart> {
        let mut cursors = self.cursors.lock();
        let at = cursors
            .iter()
            .position(|(of, at, _)| (*of, *at) == (base, offset))?;
        let (_, _, position) = cursors.swap_remove(at);
        Some(ScanStart {
            position,
            expected: Expected::Base(offset),
        })
    }

    /// A read ended before `offset`, which is at that position.
    pub(super) fn keep_cursor(&self, base: i64, offset: i64, position: u64) {
        let mut cursors = self.cursors.lock();
        if cursors.len() == CURSORS_KEPT {
            cursors.remove(0);
        }
        cursors.push((base, offset, position));
    }
}
