//! Taking records out of a batch, as compaction does. The batch keeps its offsets, its producer and its sequences, so that readers and producers
//! find everything else where it was.

use std::ops::Range;

use bytes::Bytes;

use super::{
    BatchError, BatchView,
    compression::Compression,
    header::{BatchHeader, HEADER_BYTES},
    record::RecordRef,
    varint::{self, Reader},
};
use crate::error::{LogError, LogResult};

/// What is to stay of a batch.
#[derive(Debug)]
pub(crate) struct FilteredBatch {
    header: BatchHeader,
    /// All records, decompressed.
    records: Bytes,
    /// Where in them those are that stay.
    kept: Vec<Range<usize>>,
    max_timestamp: i64,
    tombstones: bool,
}

impl BatchView {
    /// Decides about each record.
    pub(crate) fn filter(
        &self,
        mut keep: impl FnMut(&RecordRef<'_>) -> bool,
    ) -> LogResult<FilteredBatch> {
        let records = self.records()?;
        let mut kept = Vec::new();
        let mut max_timestamp = -1;
        let mut tombstones = false;
        let mut iter = records.iter();
        loop {
            let start = iter.position();
            let Some(record) = iter.next() else { break };
            let record = record?;
            if keep(&record) {
                kept.push(start..iter.position());
                max_timestamp = max_timestamp.max(record.timestamp);
                tombstones |= record.key.is_some() && record.value.is_none();
            }
        }
        Ok(FilteredBatch {
            header: *self.header(),
            records: records.bytes().clone(),
            kept,
            max_timestamp,
            tombstones,
        })
    }
}

impl FilteredBatch {
    /// No record stays.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// A tombstone stays.
    pub(crate) fn has_tombstones(&self) -> bool {
        self.tombstones
    }

    /// Every record stays.
    pub(crate) fn is_whole(&self) -> bool {
        self.kept.len() == usize::try_from(self.header.record_count).unwrap_or(0)
    }

    /// The batch with what stays of it. With `horizon` its tombstones may go after that time (milliseconds since the epoch).
    pub(crate) fn encode(&self, horizon: Option<i64>) -> LogResult<Vec<u8>> {
        let mut header = self.header;
        // There are fewer than there were.
        header.record_count = i32::try_from(self.kept.len()).unwrap_or(i32::MAX);
        if !header.is_log_append_time() {
            header.max_timestamp = self.max_timestamp;
        }
        let mut records = Vec::with_capacity(self.records.len());
        match horizon {
            None => {
                for range in &self.kept {
                    records.extend_from_slice(&self.records[range.clone()]);
                }
            }
            Some(horizon) => {
                // The horizon takes the place of the base timestamp, as in Kafka, so deltas count from there.
                let shift = header.base_timestamp.wrapping_sub(horizon);
                header.set_delete_horizon(horizon);
                for (index, range) in self.kept.iter().enumerate() {
                    put_shifted(&mut records, &self.records[range.clone()], shift).ok_or(
                        BatchError::Record {
                            index,
                            part: "timestamp",
                        },
                    )?;
                }
            }
        }
        let mut bytes = vec![0; HEADER_BYTES];
        let codec = self.header.codec().unwrap_or_default();
        if self.is_empty() {
            header.set_codec(Compression::None);
        } else {
            codec
                .compress(&records, &mut bytes)
                .map_err(LogError::io(|| {
                    format!("compress a batch with codec {codec}")
                }))?;
        }
        header.write(&mut bytes);
        Ok(bytes)
    }
}

/// Appends a record whose timestamp counts from a base that lies `shift` earlier. `None` when it is malformed.
fn put_shifted(out: &mut Vec<u8>, record: &[u8], shift: i64) -> Option<()> {
    let mut reader = Reader::new(record);
    reader.varint()?;
    let attributes = reader.byte()?;
    let delta = reader.varlong()?.wrapping_add(shift);
    let rest = reader.take(reader.remaining())?;
    varint::put(out, (1 + varint::len(delta) + rest.len()) as i64);
    out.push(attributes);
    varint::put(out, delta);
    out.extend_from_slice(rest);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        batch::{BatchBuilder, ProducerFields},
        log::{Offset, ProducerId},
    };

    #[test]
    fn what_stays_is_as_it_was() {
        for codec in [Compression::None, Compression::Lz4] {
            let mut builder = BatchBuilder::with_compression(codec);
            for i in 0..20i64 {
                let key = format!("key {i}");
                let value = format!("value, value, value, value {i}");
                let value = (i % 4 != 3).then_some(value.as_bytes());
                builder.push(
                    1_000 - 7 * i,
                    Some(key.as_bytes()),
                    value,
                    &[("h", Some(b"x"))],
                );
            }
            let producer = ProducerFields {
                id: ProducerId(7),
                epoch: 2,
                base_sequence: 40,
                transactional: true,
            };
            let batch = builder.finish(Some(producer)).stamp(Offset(500));
            let expected: Vec<_> = batch
                .records()
                .expect("records")
                .iter()
                .map(|record| record.expect("record").to_record().expect("headers"))
                .filter(|record| record.offset.0 % 3 != 0)
                .collect();
            let filtered = batch
                .filter(|record| record.offset.0 % 3 != 0)
                .expect("filter");
            assert!(filtered.has_tombstones() && !filtered.is_empty() && !filtered.is_whole());
            for horizon in [None, Some(5_000_000)] {
                let bytes = filtered.encode(horizon).expect("encode");
                let view = BatchView::parse(Bytes::from(bytes)).expect("valid");
                let records: Vec<_> = view
                    .records()
                    .expect("records")
                    .iter()
                    .map(|record| record.expect("record").to_record().expect("headers"))
                    .collect();
                assert_eq!(records, expected, "{codec} {horizon:?}");
                assert_eq!(view.header().delete_horizon(), horizon);
                assert_eq!(view.producer(), Some(producer));
                assert_eq!(
                    (view.base_offset(), view.last_offset()),
                    (Offset(500), Offset(519))
                );
                assert_eq!(view.max_timestamp(), expected[0].timestamp);
            }
            let none = batch.filter(|_| false).expect("filter");
            let view =
                BatchView::parse(Bytes::from(none.encode(None).expect("encode"))).expect("valid");
            assert_eq!((view.record_count(), view.last_offset()), (0, Offset(519)));
            assert_eq!(view.records().expect("records").iter().count(), 0);
        }
    }
}
