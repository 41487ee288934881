//! Which batches belong to aborted transactions.
//!
//! Each segment has a list of the transactions whose abort marker lies in it: the active one in memory (and it is sealed before the list grows beyond
//! [`MAX_IN_SEGMENT`]), the sealed ones in files, of which the lately used are cached. So memory does not grow with what was ever aborted.

use std::{collections::HashMap, ops::RangeInclusive, sync::Arc};

use crate::{
    batch::BatchView,
    embedded::{partition::Partition, segment::SealedSegment},
    error::{LogError, LogResult},
    log::Offset,
    producer::AbortedTransaction,
};

/// Half a megabyte of memory for a partition; with the smallest records, a segment of 2 MiB.
pub(super) const MAX_IN_SEGMENT: usize = 16_384;

/// Offsets of aborted transactions, by producer.
#[derive(Debug, Default)]
pub(crate) struct AbortedRanges(HashMap<i64, Vec<RangeInclusive<i64>>>);

impl AbortedRanges {
    /// Adds those that can concern batches from `first` to `last`. `transactions` are in the order of their markers, and lists are added in that order.
    pub(crate) fn add_overlapping(
        &mut self,
        transactions: &[AbortedTransaction],
        first: i64,
        last: i64,
    ) {
        let from = transactions.partition_point(|transaction| transaction.last_offset < first);
        for transaction in &transactions[from..] {
            if transaction.first_offset <= last {
                let range = transaction.first_offset..=transaction.last_offset;
                self.0.entry(transaction.producer).or_default().push(range);
            }
            // Whatever ends later begins at or after this one's last stable offset.
            if transaction.last_stable_offset > last {
                break;
            }
        }
    }

    /// The batch belongs to one of them.
    pub(crate) fn hide(&self, batch: &BatchView) -> bool {
        let Some(producer) = batch.producer().filter(|producer| producer.transactional) else {
            return false;
        };
        let base = batch.base_offset().0;
        self.0.get(&producer.id.0).is_some_and(|ranges| {
            // A producer has one transaction at a time, so its ranges are in order and apart.
            let at = ranges.partition_point(|range| *range.end() < base);
            ranges.get(at).is_some_and(|range| range.contains(&base))
        })
    }
}

impl Partition {
    /// Removes what read-committed readers must not see from neighbours below the last stable offset. False when segments were removed or exchanged
    /// since that generation: what was aborted among batches that were read before may be forgotten by now, and they have to be read again.
    pub(super) fn hide_aborted(
        &self,
        batches: &mut Vec<BatchView>,
        generation: u64,
    ) -> LogResult<bool> {
        let in_transactions = |batch: &&BatchView| batch.is_transactional() && !batch.is_control();
        let first = batches.iter().find(in_transactions);
        let last = batches.iter().rfind(in_transactions);
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(true);
        };
        let (first, last) = (first.base_offset().0, last.last_offset().0);
        let (told_by, of_active) = {
            let published = self.published.read();
            if published.generation != generation {
                return Ok(false);
            }
            published.aborted_among(first, last)
        };
        let of_sealed = match self.ranges_of(&told_by, first, last) {
            Err(_) if self.was_rearranged(generation) => return Ok(false),
            ranges => ranges?,
        };
        batches.retain(|batch| !of_sealed.hide(batch) && !of_active.hide(batch));
        Ok(true)
    }

    /// What was aborted among the batches of a sealed segment that lies below the last stable offset.
    pub(super) fn aborted_in(&self, segment: &SealedSegment) -> LogResult<AbortedRanges> {
        let (first, last) = (segment.base(), segment.end() - 1);
        let (told_by, of_active) = self.published.read().aborted_among(first, last);
        let mut ranges = self.ranges_of(&told_by, first, last)?;
        for (producer, mut later) in of_active.0 {
            ranges.0.entry(producer).or_default().append(&mut later);
        }
        Ok(ranges)
    }

    fn ranges_of(
        &self,
        segments: &[Arc<SealedSegment>],
        first: i64,
        last: i64,
    ) -> LogResult<AbortedRanges> {
        let mut ranges = AbortedRanges::default();
        for segment in segments {
            ranges.add_overlapping(&self.aborted_of(segment)?, first, last);
        }
        Ok(ranges)
    }

    /// The transactions whose abort marker lies in the segment.
    pub(super) fn aborted_of(
        &self,
        segment: &SealedSegment,
    ) -> LogResult<Arc<Vec<AbortedTransaction>>> {
        if segment.aborted_from().is_none() {
            return Ok(Arc::default());
        }
        let cache = &self.environment.aborted;
        if let Some(aborted) = cache.get(segment.id) {
            return Ok(aborted);
        }
        let stored = segment.load_aborted(&*self.environment.disk, &self.dir)?;
        let Some(aborted) = stored.map(Arc::new) else {
            return Err(LogError::Corrupt {
                partition: self.id.clone(),
                from: Offset(segment.base()),
                to: Offset(segment.end()),
                reason: "the index of aborted transactions is missing or damaged, which the next start mends"
                    .into(),
            });
        };
        cache.keep(segment.id, Arc::clone(&aborted));
        Ok(aborted)
    }
}
