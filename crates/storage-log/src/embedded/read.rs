//! Reading: from memory at the tail, else from segment files, by offset and by time.

use std::sync::Arc;

use crate::{
    batch::BatchView,
    embedded::{
        index::SegmentIndex,
        layout::SegmentFile,
        partition::Partition,
        published::ReadSource,
        scan::{BatchScanner, SCAN_CHUNK_BYTES, ScanStart},
        segment::{SealedSegment, SegmentId},
        small_file,
    },
    error::{LogError, LogResult},
    log::{Fetch, Isolation, Offset},
};

/// Read at least so much at once, even for a small budget.
const MIN_CHUNK_BYTES: usize = 16 << 10;

/// A segment that can be scanned: file, valid bytes, offsets.
#[derive(Debug)]
pub(super) struct SegmentReader {
    id: SegmentId,
    /// Behind the last offset, for a sealed segment.
    pub(super) sealed_end: Option<i64>,
    scanner: BatchScanner,
}

/// Collects what a read hands out.
struct Collected {
    batches: Vec<BatchView>,
    bytes: usize,
    budget: usize,
    next_offset: i64,
    full: bool,
}

impl Collected {
    /// Moves to `next_offset` and keeps those of the batches before it that are for the reader.
    fn take(&mut self, mut batches: Vec<BatchView>, next_offset: i64) {
        self.next_offset = next_offset;
        // Compaction leaves batches without records where a producer's sequence has to be remembered.
        batches.retain(|batch| !batch.is_control() && batch.record_count() > 0);
        self.bytes += batches.iter().map(BatchView::byte_len).sum::<usize>();
        self.batches.append(&mut batches);
    }
}

impl Partition {
    /// Reads whole batches from `from` on.
    pub(crate) fn read(
        &self,
        from: Offset,
        max_bytes: usize,
        isolation: Isolation,
    ) -> LogResult<Fetch> {
        let mut collected = Collected {
            batches: Vec::new(),
            bytes: 0,
            budget: max_bytes,
            next_offset: from.0,
            full: false,
        };
        while !collected.full {
            let (source, end, generation) = {
                let published = self.published.read();
                let next = collected.next_offset;
                if next < published.log_start || next > published.log_end {
                    drop(published);
                    // Retention may have overtaken us, but not what we already have.
                    return if collected.batches.is_empty() {
                        Err(self.out_of_range(next))
                    } else {
                        break;
                    };
                }
                let end = published.end_for(isolation);
                if next >= end {
                    break;
                }
                let generation = published.generation;
                let at_the_tail = published.tail.from(next).map(|tail| {
                    let mut bytes = collected.bytes;
                    let mut first = collected.batches.is_empty();
                    tail.take_while(|batch| batch.base_offset().0 < end)
                        .take_while(|batch| {
                            bytes += batch.byte_len();
                            std::mem::take(&mut first) || bytes <= collected.budget
                        })
                        .cloned()
                        .collect()
                });
                if let Some(batches) = at_the_tail {
                    drop(published);
                    self.take_tail(batches, generation, isolation, &mut collected)?;
                    continue;
                }
                (published.source_of(next), end, generation)
            };
            let Some(source) = source else { break };
            if let Err(error) =
                self.read_segment(source, end, generation, isolation, &mut collected)
                && !self.was_rearranged(generation)
            {
                return Err(error);
            }
        }
        Ok(Fetch {
            batches: collected.batches,
            next_offset: Offset(collected.next_offset),
        })
    }

    fn take_tail(
        &self,
        mut batches: Vec<BatchView>,
        generation: u64,
        isolation: Isolation,
        collected: &mut Collected,
    ) -> LogResult<()> {
        let Some(last) = batches.last() else {
            collected.full = true;
            return Ok(());
        };
        let next_offset = last.last_offset().0 + 1;
        if isolation == Isolation::ReadUncommitted || self.hide_aborted(&mut batches, generation)? {
            collected.take(batches, next_offset);
            collected.full = collected.bytes >= collected.budget;
        }
        Ok(())
    }

    /// Retention or compaction has changed the list of segments since: what failed because of that succeeds with the new list.
    pub(super) fn was_rearranged(&self, generation: u64) -> bool {
        self.published.read().generation != generation
    }

    /// Reads from one segment until it ends, the reader has enough, or `end` is reached.
    fn read_segment(
        &self,
        source: ReadSource,
        end: i64,
        generation: u64,
        isolation: Isolation,
        collected: &mut Collected,
    ) -> LogResult<()> {
        let from = collected.next_offset;
        let budget = collected.budget.saturating_sub(collected.bytes);
        let chunk = budget.clamp(MIN_CHUNK_BYTES, SCAN_CHUNK_BYTES);
        let mut segment = self.segment_reader(source, from, chunk)?;
        let mut found: Vec<BatchView> = Vec::new();
        let mut found_bytes = collected.bytes;
        let mut exhausted = false;
        loop {
            // What is read already is worth more than another chunk.
            if !found.is_empty() && !segment.scanner.next_is_at_hand() {
                break;
            }
            let Some((position, batch)) = self.next_batch(&mut segment)? else {
                exhausted = true;
                break;
            };
            if batch.last_offset().0 < from {
                continue;
            }
            let first = collected.batches.is_empty() && found.is_empty();
            found_bytes += batch.byte_len();
            if batch.base_offset().0 >= end || (!first && found_bytes > collected.budget) {
                collected.full = true;
                self.cursors
                    .keep(segment.id, batch.base_offset().0, position);
                break;
            }
            found.push(batch);
        }
        if !exhausted && !collected.full {
            self.cursors.keep(
                segment.id,
                segment.scanner.next_offset(),
                segment.scanner.position(),
            );
        }
        // No lock is held: nobody waits for a reader that rests.
        self.environment.pace.give_way(segment.scanner.disk_time());
        let next_offset = match (exhausted, segment.sealed_end, found.last()) {
            (true, Some(sealed_end), _) => sealed_end,
            (_, _, Some(last)) => last.last_offset().0 + 1,
            (_, _, None) => collected.next_offset,
        };
        if isolation == Isolation::ReadUncommitted || self.hide_aborted(&mut found, generation)? {
            collected.take(found, next_offset);
            collected.full |= !collected.batches.is_empty() && collected.bytes >= collected.budget;
        } else {
            // It is read again.
            collected.full = false;
        }
        Ok(())
    }

    /// The next batch of a segment; damage is reported with the offsets that cannot be read.
    pub(super) fn next_batch(
        &self,
        segment: &mut SegmentReader,
    ) -> LogResult<Option<(u64, BatchView)>> {
        let expected = segment.scanner.next_offset();
        segment.scanner.next().map_err(|error| {
            let end = segment
                .sealed_end
                .unwrap_or_else(|| self.published.read().log_end);
            error.into_log_error(&self.id, expected, end)
        })
    }

    /// A reader that begins at or before the batch that holds `from`.
    pub(super) fn segment_reader(
        &self,
        source: ReadSource,
        from: i64,
        chunk_bytes: usize,
    ) -> LogResult<SegmentReader> {
        match source {
            ReadSource::Active { segment, start } => {
                let start = self.cursors.take(segment.id, from).unwrap_or(start);
                let file = segment
                    .file(&self.environment.files)
                    .map_err(LogError::io(|| {
                        format!("open \"{}\"", segment.path.display())
                    }))?;
                let scanner = BatchScanner::new(file, start, segment.bytes, segment.dense);
                Ok(SegmentReader {
                    id: segment.id,
                    sealed_end: None,
                    scanner: scanner.with_chunk_bytes(chunk_bytes),
                })
            }
            ReadSource::Sealed(segment) => {
                segment.check_offsets(&self.environment, &self.id, &self.dir)?;
                let start = match self.cursors.take(segment.id, from) {
                    Some(cursor) => cursor,
                    None => self.index_of(&segment)?.start_for(from),
                };
                let file = segment.open(&self.environment, &self.dir)?;
                let scanner = BatchScanner::new(file, start, segment.log_bytes(), segment.dense())
                    .below(segment.end());
                Ok(SegmentReader {
                    id: segment.id,
                    sealed_end: Some(segment.end()),
                    scanner: scanner.with_chunk_bytes(chunk_bytes),
                })
            }
        }
    }

    /// The index of a sealed segment, made again from its log when the files are not what was sealed.
    fn index_of(&self, segment: &SealedSegment) -> LogResult<Arc<SegmentIndex>> {
        let cache = &self.environment.indexes;
        if let Some(index) = cache.get(segment.id) {
            return Ok(index);
        }
        let disk = &*self.environment.disk;
        let index = match segment.load_index(disk, &self.dir)? {
            Some(index) => index,
            None => {
                tracing::warn!(partition = %self.id, segment = segment.base(), "index is missing or damaged, it is made again");
                let index = self.scan_index(segment)?;
                for (kind, bytes) in [
                    (SegmentFile::OffsetIndex, index.encode_offsets()),
                    (SegmentFile::TimeIndex, index.encode_times()),
                ] {
                    // The reader has its index in any case; a full disk only means that the next start makes it again.
                    if let Err(error) =
                        small_file::replace(disk, &kind.path(&self.dir, segment.base()), &bytes)
                    {
                        tracing::warn!(partition = %self.id, %error, "index could not be written");
                    }
                }
                index
            }
        };
        let index = Arc::new(index);
        cache.keep(segment.id, Arc::clone(&index));
        Ok(index)
    }

    fn scan_index(&self, segment: &SealedSegment) -> LogResult<SegmentIndex> {
        let file = segment.open(&self.environment, &self.dir)?;
        let start = ScanStart::of_segment(segment.base());
        let scanner = BatchScanner::new(file, start, segment.log_bytes(), segment.dense())
            .below(segment.end());
        let mut reader = SegmentReader {
            id: segment.id,
            sealed_end: Some(segment.end()),
            scanner,
        };
        let mut index = SegmentIndex::new(segment.base(), segment.index_interval());
        while let Some((position, batch)) = self.next_batch(&mut reader)? {
            index.observe(batch.header(), position);
        }
        index.seal();
        Ok(index)
    }

    /// First offset whose batch may hold a timestamp at or after `timestamp`.
    pub(crate) fn offset_for_timestamp(&self, timestamp: i64) -> LogResult<Offset> {
        loop {
            let generation = self.published.read().generation;
            match self.search_by_time(timestamp) {
                Err(_) if self.was_rearranged(generation) => {}
                found => return found,
            }
        }
    }

    fn search_by_time(&self, timestamp: i64) -> LogResult<Offset> {
        let (sealed, active, log_start, log_end) = {
            let published = self.published.read();
            let first = published.index.offset_before_timestamp(timestamp);
            let active = published
                .active
                .clone()
                .filter(|_| {
                    published
                        .index
                        .max_timestamp()
                        .is_some_and(|max| max >= timestamp)
                })
                .map(|segment| ReadSource::Active {
                    segment,
                    start: published.index.start_for(first),
                });
            (
                published.sealed.clone(),
                active,
                published.log_start,
                published.log_end,
            )
        };
        for segment in sealed {
            if segment.max_timestamp().is_none_or(|max| max < timestamp) {
                continue;
            }
            let first = self
                .index_of(&segment)?
                .offset_before_timestamp(timestamp)
                .max(log_start);
            if let Some(offset) =
                self.first_at_or_after(ReadSource::Sealed(segment), first, timestamp, log_start)?
            {
                return Ok(offset);
            }
        }
        if let Some(active) = active
            && let Some(offset) = self.first_at_or_after(active, log_start, timestamp, log_start)?
        {
            return Ok(offset);
        }
        Ok(Offset(log_end))
    }

    fn first_at_or_after(
        &self,
        source: ReadSource,
        from: i64,
        timestamp: i64,
        log_start: i64,
    ) -> LogResult<Option<Offset>> {
        let mut segment = self.segment_reader(source, from, SCAN_CHUNK_BYTES)?;
        while let Some((_, batch)) = self.next_batch(&mut segment)? {
            let holds_records = !batch.is_control()
                && batch.record_count() > 0
                && batch.last_offset().0 >= log_start;
            if holds_records && batch.max_timestamp() >= timestamp {
                return Ok(Some(Offset(batch.base_offset().0.max(log_start))));
            }
        }
        Ok(None)
    }
}
