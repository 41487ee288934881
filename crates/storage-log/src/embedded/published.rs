//! What readers of a partition see. The writer changes it after its bytes are in the file, under a short lock.

use std::{io, path::Path, sync::Arc};

use crate::{
    batch::BatchView,
    disk::DiskFile,
    embedded::{
        aborted::AbortedRanges,
        handles::FileCache,
        index::SegmentIndex,
        scan::ScanStart,
        segment::{SealedSegment, SegmentId},
        tail::Tail,
    },
    log::{Isolation, Offset, PartitionOffsets, PartitionUsage},
    producer::AbortedTransaction,
};

/// The segment that grows.
#[derive(Debug, Clone)]
pub(crate) struct ActiveSegment {
    pub(crate) id: SegmentId,
    pub(crate) base: i64,
    pub(crate) path: Arc<Path>,
    /// The file while it has bytes that are not synced; it is not closed before they are.
    pub(crate) unsynced: Option<Arc<dyn DiskFile>>,
    /// Every offset from the base on is there. Only a folder that Kafka wrote may have gaps here.
    pub(crate) dense: bool,
    /// Bytes of whole batches; the file may be longer after a failed write.
    pub(crate) bytes: u64,
    /// Bytes that are on disk.
    synced_bytes: u64,
}

/// How far a sync reaches that begins now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncMark {
    /// Offset below which everything is on disk then.
    pub(crate) end: i64,
    base: i64,
    bytes: u64,
}

impl ActiveSegment {
    /// The file, opened if need be.
    pub(crate) fn file(&self, files: &FileCache) -> io::Result<Arc<dyn DiskFile>> {
        match &self.unsynced {
            Some(file) => Ok(Arc::clone(file)),
            None => files.get(&self.path),
        }
    }
}

/// The published state of a partition.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) sealed: Vec<Arc<SealedSegment>>,
    /// None before the first append.
    pub(crate) active: Option<ActiveSegment>,
    /// Index of the active segment.
    pub(crate) index: SegmentIndex,
    pub(crate) log_start: i64,
    pub(crate) log_end: i64,
    pub(crate) last_stable: i64,
    /// Transactions that were aborted in the active segment, in the order of their markers. Sealed ones have theirs in files.
    pub(crate) aborted: Vec<AbortedTransaction>,
    pub(crate) tail: Tail,
    /// Goes up whenever sealed segments are removed or exchanged: a reader that failed with an older list in hand tries again.
    pub(crate) generation: u64,
}

/// Where to read an offset from.
#[derive(Debug)]
pub(crate) enum ReadSource {
    Active {
        segment: ActiveSegment,
        start: ScanStart,
    },
    Sealed(Arc<SealedSegment>),
}

impl Published {
    /// An empty segment at `base` takes what is appended from now on.
    pub(crate) fn start_segment(&mut self, base: i64, path: Arc<Path>, index_interval: u32) {
        self.index = SegmentIndex::new(base, index_interval);
        self.aborted.clear();
        self.active = Some(ActiveSegment {
            id: SegmentId::next(),
            base,
            path,
            unsynced: None,
            dense: true,
            bytes: 0,
            synced_bytes: 0,
        });
    }

    /// Makes a batch visible that is at `position` of the active segment.
    pub(crate) fn push(&mut self, batch: BatchView, position: u64) {
        self.index.observe(batch.header(), position);
        if let Some(active) = &mut self.active {
            active.bytes = position + batch.byte_len() as u64;
        }
        self.log_end = batch.last_offset().0 + 1;
        self.tail.push(batch);
    }

    /// Transactions as they are with what was pushed last.
    pub(crate) fn settle(&mut self, last_stable: i64, aborted: Option<AbortedTransaction>) {
        self.last_stable = last_stable;
        self.aborted.extend(aborted);
    }

    /// The active segment has bytes that are not synced; its file stays open until they are.
    pub(crate) fn hold_unsynced(&mut self, file: &Arc<dyn DiskFile>) {
        if let Some(active) = &mut self.active
            && active.unsynced.is_none()
        {
            active.unsynced = Some(Arc::clone(file));
        }
    }

    /// The file that has to be synced. Segments before the active one were when they were sealed.
    pub(crate) fn unsynced_file(&self) -> Option<Arc<dyn DiskFile>> {
        self.active
            .as_ref()
            .and_then(|active| active.unsynced.clone())
    }

    /// What a sync that begins now will cover.
    pub(crate) fn sync_mark(&self) -> SyncMark {
        let active = self.active.as_ref();
        SyncMark {
            end: self.log_end,
            base: active.map_or(self.log_end, |active| active.base),
            bytes: active.map_or(0, |active| active.bytes),
        }
    }

    /// A sync that began at the mark has ended well.
    pub(crate) fn note_synced(&mut self, mark: SyncMark) {
        let log_end = self.log_end;
        let Some(active) = &mut self.active else {
            return;
        };
        if active.base == mark.base {
            active.synced_bytes = active.synced_bytes.max(mark.bytes);
        }
        if log_end <= mark.end {
            active.unsynced = None;
        }
    }

    /// Bytes of the active segment that are not on disk. Those before it are.
    pub(crate) fn unsynced_bytes(&self) -> u64 {
        self.active
            .as_ref()
            .map_or(0, |active| active.bytes - active.synced_bytes)
    }

    /// Where readers of that isolation have to stop.
    pub(crate) fn end_for(&self, isolation: Isolation) -> i64 {
        match isolation {
            Isolation::ReadCommitted => self.last_stable,
            Isolation::ReadUncommitted => self.log_end,
        }
    }

    pub(crate) fn offsets(&self, durable: i64) -> PartitionOffsets {
        PartitionOffsets {
            log_start: Offset(self.log_start),
            last_stable: Offset(self.last_stable),
            log_end: Offset(self.log_end),
            durable: Offset(durable),
        }
    }

    pub(crate) fn usage(&self) -> PartitionUsage {
        let active = self.active.as_ref();
        let sealed_bytes: u64 = self.sealed.iter().map(|s| s.log_bytes()).sum();
        PartitionUsage {
            segments: self.sealed.len() + usize::from(active.is_some()),
            bytes: sealed_bytes + active.map_or(0, |active| active.bytes),
        }
    }

    /// The file that holds `offset`, which must lie between log start and log end.
    pub(crate) fn source_of(&self, offset: i64) -> Option<ReadSource> {
        let at = self
            .sealed
            .partition_point(|segment| segment.end() <= offset);
        if let Some(segment) = self.sealed.get(at) {
            return Some(ReadSource::Sealed(Arc::clone(segment)));
        }
        let segment = self.active.clone()?;
        Some(ReadSource::Active {
            segment,
            start: self.index.start_for(offset),
        })
    }

    /// One segment takes the place of several, which are neighbours.
    pub(crate) fn exchange(&mut self, old: &[Arc<SealedSegment>], new: SealedSegment) {
        let Some(at) = old
            .first()
            .and_then(|first| self.sealed.iter().position(|s| Arc::ptr_eq(s, first)))
        else {
            return;
        };
        // Nobody will know any more which of the old batches were aborted.
        self.tail.drop_below(new.end());
        self.sealed.splice(at..at + old.len(), [Arc::new(new)]);
        self.generation += 1;
    }

    /// Segments up to that offset are gone; answers with them.
    pub(crate) fn drop_below(&mut self, offset: i64) -> Vec<Arc<SealedSegment>> {
        self.log_start = offset;
        let kept_from = self.sealed.partition_point(|s| s.end() <= offset);
        self.generation += 1;
        self.sealed.drain(..kept_from).collect()
    }

    /// Where it is told which transactions were aborted that have batches from `first` to `last`, below the last stable offset: the sealed segments
    /// that hold their markers, and those of the active one.
    pub(crate) fn aborted_among(
        &self,
        first: i64,
        last: i64,
    ) -> (Vec<Arc<SealedSegment>>, AbortedRanges) {
        let after = self
            .sealed
            .partition_point(|segment| segment.end() <= first);
        let sealed = self.sealed[after..].iter();
        let told_by = sealed
            .filter(|segment| segment.aborted_from().is_some_and(|from| from <= last))
            .cloned()
            .collect();
        let mut ranges = AbortedRanges::default();
        ranges.add_overlapping(&self.aborted, first, last);
        (told_by, ranges)
    }
}
