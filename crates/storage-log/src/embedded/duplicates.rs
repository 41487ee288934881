//! Finding the offsets of a batch that was appended long ago and is sent again.
//!
//! A continuous query that recovers sends many old batches in order. So the place behind the last one found is remembered per producer: the next one
//! is a few batches further on, and a whole replay reads the log once.

use parking_lot::Mutex;

use crate::{
    batch::ProducerFields,
    embedded::{partition::Partition, published::ReadSource, read::SegmentReader},
    error::LogResult,
    log::{Offset, ProducerId},
    producer::BatchPosition,
};

/// Producers whose replay is followed at a time.
const CURSORS_KEPT: usize = 16;
/// Bytes read at once; each cursor holds on to that much.
const CHUNK_BYTES: usize = 64 << 10;

/// Where the replays of producers are.
#[derive(Debug, Default)]
pub(super) struct ReplayCursors(Mutex<Vec<Replay>>);

/// A scan that stands behind the last batch found.
#[derive(Debug)]
struct Replay {
    producer: ProducerId,
    epoch: i16,
    /// Last sequence found; what comes next is further on.
    sequence: i32,
    segment: SegmentReader,
}

/// Offsets of what is no longer stored.
pub(super) const GONE: (Offset, Offset) = (Offset(-1), Offset(-1));

impl Partition {
    /// Offsets of the records `base_sequence..=last_sequence` of a producer; -1 for both when retention or compaction took them.
    pub(super) fn locate_duplicate(
        &self,
        producer: ProducerFields,
        last_sequence: i32,
    ) -> LogResult<(Offset, Offset)> {
        loop {
            let generation = self.published.read().generation;
            match self.search_duplicate(producer, last_sequence) {
                Err(_) if self.published.read().generation != generation => {}
                found => return found,
            }
        }
    }

    fn search_duplicate(
        &self,
        producer: ProducerFields,
        last_sequence: i32,
    ) -> LogResult<(Offset, Offset)> {
        if let Some(mut replay) = self.take_replay(producer)
            && let Some(found) = self.find_in(&mut replay.segment, producer, last_sequence)?
        {
            self.keep_replay(producer, last_sequence, replay.segment);
            return Ok(found);
        }
        for source in self.sources_from_newest() {
            let base = match &source {
                ReadSource::Active { segment, .. } => segment.base,
                ReadSource::Sealed(segment) => segment.base(),
            };
            let mut segment = self.segment_reader(source, base, CHUNK_BYTES)?;
            if let Some(found) = self.find_in(&mut segment, producer, last_sequence)? {
                self.keep_replay(producer, last_sequence, segment);
                return Ok(found);
            }
        }
        Ok(GONE)
    }

    fn sources_from_newest(&self) -> Vec<ReadSource> {
        let published = self.published.read();
        let active = published
            .active
            .as_ref()
            .and_then(|active| published.source_of(active.base));
        let sealed = published
            .sealed
            .iter()
            .rev()
            .map(|segment| ReadSource::Sealed(segment.clone()));
        active.into_iter().chain(sealed).collect()
    }

    /// Scans forward to the batch with the last of the sequences. The first one may lie in a batch before it: batches need not be cut as they were.
    fn find_in(
        &self,
        segment: &mut SegmentReader,
        producer: ProducerFields,
        last_sequence: i32,
    ) -> LogResult<Option<(Offset, Offset)>> {
        let mut base = None;
        while let Some((_, batch)) = self.next_batch(segment)? {
            let header = batch.header();
            if header.producer_id != producer.id.0
                || header.producer_epoch != producer.epoch
                || header.is_control()
            {
                continue;
            }
            let position = BatchPosition::of(header);
            base = base.or_else(|| position.offset_of(producer.base_sequence));
            if let Some(last) = position.offset_of(last_sequence) {
                return Ok(Some((base.unwrap_or(GONE.0), last)));
            }
        }
        Ok(None)
    }

    fn take_replay(&self, producer: ProducerFields) -> Option<Replay> {
        let mut replays = self.replays.0.lock();
        let at = replays
            .iter()
            .position(|replay| replay.producer == producer.id && replay.epoch == producer.epoch)?;
        let replay = replays.swap_remove(at);
        let ahead = producer.base_sequence.wrapping_sub(replay.sequence) & i32::MAX;
        (1..=i32::MAX / 2).contains(&ahead).then_some(replay)
    }

    fn keep_replay(&self, producer: ProducerFields, sequence: i32, segment: SegmentReader) {
        let mut replays = self.replays.0.lock();
        if replays.len() == CURSORS_KEPT {
            replays.remove(0);
        }
        replays.push(Replay {
            producer: producer.id,
            epoch: producer.epoch,
            sequence,
            segment,
        });
    }
}
