//! What makes the next read cheaper: indexes of sealed segments and what was aborted in them, shared by all partitions, and per partition where earlier reads ended. Nothing in here
//! is needed, and all of it is bounded.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::{
    embedded::{
        index::SegmentIndex,
        scan::{Expected, ScanStart},
        segment::SegmentId,
    },
    producer::AbortedTransaction,
};

/// Positions kept where earlier reads ended: readers go on there without an index.
const CURSORS_KEPT: usize = 16;

/// What lists of aborted transactions take in memory for all partitions, beside those of active segments.
pub(super) const ABORTED_CACHE_BYTES: usize = 8 << 20;

/// What belongs to a sealed segment and can be read again.
pub(crate) trait OfSegment {
    /// Memory that it takes.
    fn byte_len(&self) -> usize;
}

impl OfSegment for SegmentIndex {
    fn byte_len(&self) -> usize {
        Self::byte_len(self)
    }
}

impl OfSegment for Vec<AbortedTransaction> {
    fn byte_len(&self) -> usize {
        self.capacity() * size_of::<AbortedTransaction>()
    }
}

/// Parts of sealed segments; the longest unused ones make room for others.
#[derive(Debug)]
pub(crate) struct SegmentCache<T> {
    limit: usize,
    state: Mutex<Cached<T>>,
}

#[derive(Debug)]
struct Cached<T> {
    parts: HashMap<SegmentId, (u64, Arc<T>)>,
    bytes: usize,
    clock: u64,
}

impl<T: OfSegment> SegmentCache<T> {
    /// A cache of that many bytes. It keeps one part in any case.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::new(Cached {
                parts: HashMap::new(),
                bytes: 0,
                clock: 0,
            }),
        }
    }

    /// The part of that segment, if it was used lately.
    pub(super) fn get(&self, segment: SegmentId) -> Option<Arc<T>> {
        let mut state = self.state.lock();
        state.clock += 1;
        let now = state.clock;
        let (used, part) = state.parts.get_mut(&segment)?;
        *used = now;
        Some(Arc::clone(part))
    }

    pub(super) fn keep(&self, segment: SegmentId, part: Arc<T>) {
        let mut state = self.state.lock();
        state.clock += 1;
        let now = state.clock;
        state.bytes += part.byte_len();
        if let Some((_, replaced)) = state.parts.insert(segment, (now, part)) {
            state.bytes -= replaced.byte_len();
        }
        while state.bytes > self.limit && state.parts.len() > 1 {
            let oldest = state.parts.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(segment, _)| *segment) else {
                return;
            };
            if let Some((_, removed)) = state.parts.remove(&oldest) {
                state.bytes -= removed.byte_len();
            }
        }
    }
}

/// Where reads of a partition ended.
#[derive(Debug, Default)]
pub(super) struct ReadCursors {
    /// A segment, and where in it an offset begins.
    cursors: Mutex<Vec<(SegmentId, i64, u64)>>,
}

impl ReadCursors {
    /// Where a read that begins at `offset` in that segment finds it, if an earlier one ended there.
    pub(super) fn take(&self, segment: SegmentId, offset: i64) -> Option<ScanStart> {
        let mut cursors = self.cursors.lock();
        let at = cursors
            .iter()
            .position(|(of, at, _)| (*of, *at) == (segment, offset))?;
        let (_, _, position) = cursors.swap_remove(at);
        Some(ScanStart {
            position,
            expected: Expected::Base(offset),
        })
    }

    /// A read ended before `offset`, which is at that position.
    pub(super) fn keep(&self, segment: SegmentId, offset: i64, position: u64) {
        let mut cursors = self.cursors.lock();
        if cursors.len() == CURSORS_KEPT {
            cursors.remove(0);
        }
        cursors.push((segment, offset, position));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_index_makes_room() {
        let cache = SegmentCache::new(3 * SegmentIndex::new(0, 0).byte_len());
        let ids: Vec<_> = (0..4).map(|_| SegmentId::next()).collect();
        for id in &ids[..3] {
            cache.keep(*id, Arc::new(SegmentIndex::new(0, 0)));
        }
        assert!(cache.get(ids[0]).is_some());
        cache.keep(ids[3], Arc::new(SegmentIndex::new(0, 0)));
        let kept: Vec<_> = ids.iter().map(|id| cache.get(*id).is_some()).collect();
        assert_eq!(kept, [true, false, true, true]);
    }
}
