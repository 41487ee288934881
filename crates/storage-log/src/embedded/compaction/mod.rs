//! Compaction: of each key the last record stays.
//!
//! A pass reads what was not compacted yet into a map from key to last offset, of fixed size, and then writes all segments from the log's start up to
//! where the map was full without the records that a later one in the map replaces. More keys than the map holds take more passes.
//!
//! INVARIANT: offsets stay, and so does the last record of every key below the point that a pass reached; so a reader at any offset sees, from
//! there on, the last record of each key that it would have seen before. Only sealed segments are touched, and nothing at or behind an open
//! transaction or [`crate::Log::hold_from`].
//!
//! Memory: the map, two buffers of 1 MiB, and the largest batch in its expanded form, whatever the size of segments.

mod cleaner;
mod exchange;
mod offset_map;
mod state;

use std::sync::{Arc, atomic::Ordering};

use crate::{
    embedded::{
        partition::Partition,
        scan::{BatchScanner, ScanStart},
        segment::SealedSegment,
    },
    error::LogResult,
};

use cleaner::{Cleaner, Pass, Rules};
use exchange::{Exchange, discard_leftovers};
pub(crate) use exchange::{decode_plan, recover};
use offset_map::OffsetMap;
pub(crate) use state::CompactionState;

/// What a pass works on.
struct Work {
    /// From the log's start on.
    segments: Vec<Arc<SealedSegment>>,
    /// What lies below was compacted before.
    dirty_from: i64,
}

impl Work {
    fn end(&self) -> i64 {
        self.segments.last().map_or(0, |last| last.end())
    }

    fn bytes(segments: &[Arc<SealedSegment>]) -> u64 {
        segments.iter().map(|segment| segment.log_bytes()).sum()
    }

    fn dirty(&self) -> &[Arc<SealedSegment>] {
        let clean = self
            .segments
            .partition_point(|segment| segment.end() <= self.dirty_from);
        &self.segments[clean..]
    }
}

impl Partition {
    /// Compacts what is due.
    pub(super) fn compact(&self) -> LogResult<()> {
        let backups = self.environment.backups.load(Ordering::Acquire);
        if !self.settings().cleanup.compact || backups > 0 {
            return Ok(());
        }
        let _compacting = self.compacting.lock();
        let settled = self.settled_below();
        let log_end = self.published.read().log_end;
        let mut work = self.work(settled);
        if !self.is_due(&work)? {
            return Ok(());
        }
        // ORDER: the markers by which transactions are settled are on disk before a record goes because of them. A power cut could take them otherwise,
        // and the record that replaced another would turn out to be aborted.
        self.sync_to(log_end)?;
        discard_leftovers(&*self.environment.disk, &self.dir)?;
        while self.pass(&work)? {
            work = self.work(settled);
            if work.dirty_from >= work.end() {
                break;
            }
        }
        Ok(())
    }

    /// The sealed segments that may be touched: those that end below `settled`.
    fn work(&self, settled: i64) -> Work {
        let lag = self.settings().compaction.min_lag_ms;
        let young = self.environment.clock.now_ms().saturating_sub(lag);
        let segments: Vec<_> = self
            .published
            .read()
            .sealed
            .iter()
            .take_while(|segment| {
                segment.end() <= settled
                    && (lag == 0 || segment.max_timestamp().is_none_or(|newest| newest <= young))
            })
            .cloned()
            .collect();
        let start = segments.first().map_or(0, |first| first.base());
        Work {
            dirty_from: self.compaction.lock().clean_to.max(start),
            segments,
        }
    }

    fn is_due(&self, work: &Work) -> LogResult<bool> {
        let settings = self.settings().compaction;
        let now = self.environment.clock.now_ms();
        let horizon = self.compaction.lock().next_horizon;
        if !work.segments.is_empty() && horizon.is_some_and(|horizon| horizon <= now) {
            return Ok(true);
        }
        let Some(oldest_dirty) = work.dirty().first() else {
            return Ok(false);
        };
        let dirty = Work::bytes(work.dirty()) as f64;
        let all = Work::bytes(&work.segments).max(1) as f64;
        if dirty / all > settings.min_dirty_ratio {
            return Ok(true);
        }
        if settings.max_lag_ms == i64::MAX {
            return Ok(false);
        }
        let overdue = now.saturating_sub(settings.max_lag_ms);
        Ok(self
            .scan(oldest_dirty)?
            .next()
            .map_err(|error| {
                error.into_log_error(&self.id, oldest_dirty.base(), oldest_dirty.end())
            })?
            .is_some_and(|(_, batch)| batch.max_timestamp() <= overdue))
    }

    fn scan(&self, segment: &SealedSegment) -> LogResult<BatchScanner> {
        segment.check_offsets(&self.environment, &self.id, &self.dir)?;
        let file = segment.open(&self.environment, &self.dir)?;
        let start = ScanStart::of_segment(segment.base());
        Ok(
            BatchScanner::new(file, start, segment.log_bytes(), segment.dense())
                .below(segment.end()),
        )
    }

    /// One pass. False when it was overtaken by retention, or the log is being dropped: what it did stays, the rest is for the next time.
    fn pass(&self, work: &Work) -> LogResult<bool> {
        let newest_of_producers = self.newest_of_producers();
        let mut map = OffsetMap::with_bytes(self.environment.options.compaction_map_bytes);
        let Some(map_end) = self.fill(&mut map, work)? else {
            return Ok(false);
        };
        let settings = self.settings();
        let interrupted = || self.is_interrupted();
        let rules = Rules {
            interrupted: &interrupted,
            map: &map,
            map_end,
            newest_of_producers: &newest_of_producers,
            now_ms: self.environment.clock.now_ms(),
            tombstone_ms: settings.compaction.tombstone_ms,
        };
        let reached = work
            .segments
            .partition_point(|segment| segment.base() < map_end);
        self.allow_gaps_below(work.segments[..reached].last().map_or(0, |last| last.end()))?;
        let mut pass = Pass::default();
        for group in groups(&work.segments[..reached], settings.segment_bytes) {
            let Some(first) = group.first() else { continue };
            let mut cleaner = Cleaner::new(
                &self.environment,
                &self.id,
                &self.dir,
                first.base(),
                settings.index_interval_bytes,
            )?;
            for segment in group {
                segment.check_offsets(&self.environment, &self.id, &self.dir)?;
                let aborted = self.aborted_in(segment)?;
                if !cleaner.add(segment, &rules, &aborted, &mut pass)? {
                    return Ok(false);
                }
            }
            let mut aborted = Vec::new();
            for segment in group {
                aborted.extend_from_slice(&self.aborted_of(segment)?);
            }
            let Some(replacement) = cleaner.finish(group, &aborted)? else {
                continue;
            };
            if self.exchange(group, replacement)? == Exchange::Overtaken {
                return Ok(false);
            }
        }
        discard_leftovers(&*self.environment.disk, &self.dir)?;
        self.note_compacted(map_end, pass.next_horizon)?;
        Ok(true)
    }

    /// Reads what is dirty into the map, as far as it fits. Answers with the first offset that the map does not know; `None` when the log is being
    /// dropped.
    fn fill(&self, map: &mut OffsetMap, work: &Work) -> LogResult<Option<i64>> {
        for segment in work.dirty() {
            let aborted = self.aborted_in(segment)?;
            let mut scanner = self.scan(segment)?;
            loop {
                if self.is_interrupted() {
                    return Ok(None);
                }
                let expected = scanner.next_offset();
                let next = scanner
                    .next()
                    .map_err(|error| error.into_log_error(&self.id, expected, segment.end()))?;
                let Some((_, batch)) = next else { break };
                let concerned = batch.last_offset().0 >= work.dirty_from
                    && !batch.is_control()
                    && !aborted.hide(&batch);
                if !concerned {
                    continue;
                }
                for record in &batch.records()? {
                    let record = record?;
                    if record.offset.0 < work.dirty_from {
                        continue;
                    }
                    if map.is_full() {
                        return Ok(Some(record.offset.0));
                    }
                    if let Some(key) = record.key {
                        map.put(key, record.offset.0);
                    }
                }
            }
        }
        Ok(Some(work.end()))
    }

    fn is_interrupted(&self) -> bool {
        self.environment.stopping.load(Ordering::Relaxed) || self.is_over()
    }

    fn allow_gaps_below(&self, end: i64) -> LogResult<()> {
        let mut state = self.compaction.lock();
        if state.gaps_below < end {
            let changed = CompactionState {
                gaps_below: end,
                ..*state
            };
            changed.write(&*self.environment.disk, &self.dir)?;
            *state = changed;
        }
        Ok(())
    }

    fn note_compacted(&self, clean_to: i64, next_horizon: Option<i64>) -> LogResult<()> {
        let mut state = self.compaction.lock();
        let changed = CompactionState {
            clean_to,
            next_horizon,
            ..*state
        };
        changed.write(&*self.environment.disk, &self.dir)?;
        *state = changed;
        Ok(())
    }
}

/// Neighbours that together are no larger than a segment may be.
fn groups(segments: &[Arc<SealedSegment>], segment_bytes: u64) -> Vec<&[Arc<SealedSegment>]> {
    let mut groups = Vec::new();
    let mut rest = segments;
    while let Some(first) = rest.first() {
        let mut bytes = first.log_bytes();
        let more = rest[1..]
            .iter()
            .take_while(|segment| {
                bytes += segment.log_bytes();
                bytes <= segment_bytes && segment.end() - first.base() <= i64::from(i32::MAX)
            })
            .count();
        let (group, after) = rest.split_at(1 + more);
        groups.push(group);
        rest = after;
    }
    groups
}
