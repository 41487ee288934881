//! Writing the segment that takes the place of several, with what stays of them.
//!
//! | of a batch | stays |
//! |---|---|
//! | record with a key | if no later one with that key was seen |
//! | record without a key | always: nothing can replace it |
//! | tombstone | until `delete.retention.ms` after the first compaction that saw it |
//! | record of an aborted transaction | never |
//! | marker | as long as a batch of its transaction |
//! | newest batch or marker of a producer | always, if need be without records, so that its sequences go on after a restart |

use std::{collections::HashSet, path::Path, sync::Arc};

use crate::{
    batch::{BatchHeader, BatchView},
    disk::DiskFile,
    embedded::{
        Environment,
        aborted::AbortedRanges,
        index::SegmentIndex,
        layout::SegmentFile,
        scan::{BatchScanner, ScanStart},
        segment::{SealedSegment, SegmentContent},
        small_file,
    },
    error::{LogError, LogResult},
    log::TopicPartition,
    producer::AbortedTransaction,
};

use super::offset_map::OffsetMap;

/// Bytes collected before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// What decides about records.
pub(super) struct Rules<'a> {
    pub(super) map: &'a OffsetMap,
    /// The map knows of records below this offset only.
    pub(super) map_end: i64,
    /// Last offsets of each producer's newest batch and marker.
    pub(super) newest_of_producers: &'a HashSet<i64>,
    pub(super) now_ms: i64,
    pub(super) tombstone_ms: i64,
    /// The log is being dropped, or the topic deleted.
    pub(super) interrupted: &'a dyn Fn() -> bool,
}

/// What is known across the segments of one pass, which begins at the log's start.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// Producers with a batch that stays of the transaction that is open at this point.
    kept_transactions: HashSet<i64>,
    /// When the first tombstone that stayed may go.
    pub(super) next_horizon: Option<i64>,
}

/// What becomes of a batch.
enum Verdict {
    Whole,
    Rewritten(Vec<u8>),
    Gone,
}

impl Rules<'_> {
    fn judge(
        &self,
        pass: &mut Pass,
        batch: &BatchView,
        aborted: &AbortedRanges,
    ) -> LogResult<Verdict> {
        let header = batch.header();
        let must_stay = self.newest_of_producers.contains(&header.last_offset());
        if batch.is_control() {
            let stays = must_stay || pass.kept_transactions.contains(&header.producer_id);
            pass.kept_transactions.remove(&header.producer_id);
            return Ok(if stays { Verdict::Whole } else { Verdict::Gone });
        }
        let aborted = aborted.hide(batch);
        let horizon = header.delete_horizon();
        let tombstones_go = horizon.is_some_and(|horizon| horizon <= self.now_ms);
        let filtered = batch.filter(|record| {
            !aborted
                && (record.offset.0 >= self.map_end
                    || record.key.is_none_or(|key| {
                        self.map.get(key).is_none_or(|last| record.offset.0 >= last)
                            && !(record.value.is_none() && tombstones_go)
                    }))
        })?;
        if filtered.is_empty() && !must_stay {
            return Ok(Verdict::Gone);
        }
        if header.is_transactional() {
            pass.kept_transactions.insert(header.producer_id);
        }
        let new_horizon = (filtered.has_tombstones() && horizon.is_none())
            .then(|| self.now_ms.saturating_add(self.tombstone_ms));
        if filtered.has_tombstones() {
            let due = new_horizon.or(horizon);
            pass.next_horizon = pass.next_horizon.into_iter().chain(due).min();
        }
        Ok(if filtered.is_whole() && new_horizon.is_none() {
            Verdict::Whole
        } else {
            Verdict::Rewritten(filtered.encode(new_horizon)?)
        })
    }
}

/// Writes one segment.
pub(super) struct Cleaner<'a> {
    environment: &'a Environment,
    partition: &'a TopicPartition,
    dir: &'a Path,
    base: i64,
    file: Arc<dyn DiskFile>,
    index: SegmentIndex,
    buffer: Vec<u8>,
    written: u64,
    /// Nothing was taken out or changed.
    unchanged: bool,
    /// Offsets of markers that went.
    dropped_markers: HashSet<i64>,
}

impl<'a> Cleaner<'a> {
    pub(super) fn new(
        environment: &'a Environment,
        partition: &'a TopicPartition,
        dir: &'a Path,
        base: i64,
        index_interval: u32,
    ) -> LogResult<Self> {
        let path = SegmentFile::Log.cleaned_path(dir, base);
        let failed = || LogError::io(|| format!("create \"{}\"", path.display()));
        small_file::remove_if_there(&*environment.disk, &path).map_err(failed())?;
        let file = environment.disk.create(&path).map_err(failed())?;
        Ok(Self {
            environment,
            partition,
            dir,
            base,
            file,
            index: SegmentIndex::new(base, index_interval),
            buffer: Vec::with_capacity(WRITE_BYTES),
            written: 0,
            unchanged: true,
            dropped_markers: HashSet::new(),
        })
    }

    /// Takes over what stays of a segment, in which those were aborted. False when the log is being dropped meanwhile.
    pub(super) fn add(
        &mut self,
        segment: &SealedSegment,
        rules: &Rules<'_>,
        aborted: &AbortedRanges,
        pass: &mut Pass,
    ) -> LogResult<bool> {
        let file = segment.open(self.environment, self.dir)?;
        let start = ScanStart::of_segment(segment.base());
        let mut scanner = BatchScanner::new(file, start, segment.log_bytes(), segment.dense())
            .below(segment.end());
        loop {
            if (rules.interrupted)() {
                return Ok(false);
            }
            let expected = scanner.next_offset();
            let batch = match scanner.next() {
                Ok(None) => return Ok(true),
                Ok(Some((_, batch))) => batch,
                Err(error) => {
                    return Err(error.into_log_error(self.partition, expected, segment.end()));
                }
            };
            match rules.judge(pass, &batch, aborted)? {
                Verdict::Whole => self.put(batch.as_bytes())?,
                Verdict::Rewritten(bytes) => {
                    self.unchanged = false;
                    self.put(&bytes)?;
                }
                Verdict::Gone => {
                    self.unchanged = false;
                    if batch.is_control() {
                        self.dropped_markers.insert(batch.last_offset().0);
                    }
                }
            }
        }
    }

    fn put(&mut self, batch: &[u8]) -> LogResult<()> {
        let header = BatchHeader::parse(batch)?;
        self.index
            .observe(&header, self.written + self.buffer.len() as u64);
        self.buffer.extend_from_slice(batch);
        if self.buffer.len() >= WRITE_BYTES {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> LogResult<()> {
        self.file
            .write_at(&self.buffer, self.written)
            .map_err(LogError::io(|| format!("compact {}", self.partition)))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Completes the segment that stands for `old`, in which the markers of those aborted transactions lay. `None` when it would be the same as the only one of them.
    pub(super) fn finish(
        mut self,
        old: &[Arc<SealedSegment>],
        aborted: &[AbortedTransaction],
    ) -> LogResult<Option<SealedSegment>> {
        let end = old.last().map_or(self.base, |last| last.end());
        if self.unchanged && old.len() == 1 {
            return Ok(None);
        }
        self.write_out()?;
        self.file
            .sync_data()
            .map_err(LogError::io(|| format!("compact {}", self.partition)))?;
        let kept: Vec<_> = aborted
            .iter()
            .filter(|transaction| !self.dropped_markers.contains(&transaction.last_offset))
            .copied()
            .collect();
        let content = SegmentContent {
            base: self.base,
            end,
            log_bytes: self.written,
            dense: self.unchanged && old.iter().all(|segment| segment.dense()),
            index: &self.index,
            aborted: &kept,
        };
        let replacement = content.seal_as(&*self.environment.disk, |kind| {
            kind.cleaned_path(self.dir, self.base)
        })?;
        Ok(Some(replacement))
    }
}
