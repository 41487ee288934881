//! Which batches belong to aborted transactions.

use std::{collections::HashMap, ops::RangeInclusive};

use crate::{batch::BatchView, producer::AbortedTransaction};

/// Offsets of aborted transactions, by producer.
#[derive(Debug, Default)]
pub(crate) struct AbortedRanges(HashMap<i64, Vec<RangeInclusive<i64>>>);

impl AbortedRanges {
    /// Those that can concern batches from `first` to `last`. `transactions` are in the order of their markers.
    pub(crate) fn overlapping(transactions: &[AbortedTransaction], first: i64, last: i64) -> Self {
        let mut ranges = Self::default();
        let from = transactions.partition_point(|transaction| transaction.last_offset < first);
        for transaction in &transactions[from..] {
            if transaction.first_offset <= last {
                let range = transaction.first_offset..=transaction.last_offset;
                ranges
                    .0
                    .entry(transaction.producer)
                    .or_default()
                    .push(range);
            }
            // Whatever ends later begins at or after this one's last stable offset.
            if transaction.last_stable_offset > last {
                break;
            }
        }
        ranges
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
