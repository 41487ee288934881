//! The three indexes of a segment, as Kafka has them: big-endian entries, sorted, no header.
//!
//! | index | entry |
//! |---|---|
//! | offset | last offset of a batch minus the segment's base (i32), position of that batch (i32) |
//! | time | largest timestamp so far (i64), last offset of the batch that has it minus the base (i32) |
//! | transaction | version 0 (i16), producer id, first offset, offset of the marker, last stable offset after it (i64 each) |
//!
//! They carry no checksum of their own; the segment's seal has one for each. An index is never the truth: it can be made again from the log.

use crate::{
    batch::BatchHeader,
    embedded::scan::{Expected, ScanStart},
    producer::AbortedTransaction,
};

const OFFSET_ENTRY_BYTES: usize = 8;
const TIME_ENTRY_BYTES: usize = 12;
const TRANSACTION_ENTRY_BYTES: usize = 34;

/// Where a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    /// Last offset of the batch, relative to the segment's base.
    pub(crate) offset: u32,
    pub(crate) position: u32,
}

/// All batches up to `offset` have timestamps up to `timestamp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    pub(crate) timestamp: i64,
    pub(crate) offset: u32,
}

/// The offset and time index of one segment, growing with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentIndex {
    base: i64,
    interval: u32,
    bytes_since_entry: u64,
    offsets: Vec<OffsetEntry>,
    times: Vec<TimeEntry>,
    /// Largest timestamp so far and the last offset of the first batch that has it.
    max_timestamp: Option<(i64, u32)>,
    /// Checksum of the base offsets of all batches, which lie outside the batches' own.
    offsets_crc: u32,
}

impl SegmentIndex {
    pub(crate) fn new(base: i64, interval: u32) -> Self {
        Self {
            base,
            interval,
            bytes_since_entry: 0,
            offsets: Vec::new(),
            times: Vec::new(),
            max_timestamp: None,
            offsets_crc: 0,
        }
    }

    pub(crate) fn interval(&self) -> u32 {
        self.interval
    }

    /// The segment can take a batch that ends at `last_offset`: entries hold 31 bits.
    pub(crate) fn can_hold(&self, last_offset: i64) -> bool {
        last_offset - self.base <= i64::from(i32::MAX)
    }

    /// Takes note of the batch at `position`.
    pub(crate) fn observe(&mut self, header: &BatchHeader, position: u64) {
        debug_assert!(
            self.can_hold(header.last_offset()) && position <= i32::MAX as u64,
            "the writer rolls before that"
        );
        let offset = (header.last_offset() - self.base) as u32;
        if self
            .max_timestamp
            .is_none_or(|(max, _)| header.max_timestamp > max)
        {
            self.max_timestamp = Some((header.max_timestamp, offset));
        }
        if self.bytes_since_entry > u64::from(self.interval) {
            self.offsets.push(OffsetEntry {
                offset,
                position: position as u32,
            });
            self.push_time();
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += header.total_bytes as u64;
        let base_offset = header.base_offset.to_be_bytes();
        self.offsets_crc = crc32c::crc32c_append(self.offsets_crc, &base_offset);
    }

    /// Checksum of the base offsets of all batches that were observed.
    pub(crate) fn offsets_crc(&self) -> u32 {
        self.offsets_crc
    }

    fn push_time(&mut self) {
        let Some((timestamp, offset)) = self.max_timestamp else {
            return;
        };
        if self
            .times
            .last()
            .is_none_or(|last| timestamp > last.timestamp)
        {
            self.times.push(TimeEntry { timestamp, offset });
        }
    }

    /// The largest timestamp becomes the last entry: a reader then knows a sealed segment's range from that entry alone.
    pub(crate) fn seal(&mut self) {
        self.push_time();
    }

    /// Memory that it takes.
    pub(crate) fn byte_len(&self) -> usize {
        size_of::<Self>()
            + self.offsets.capacity() * size_of::<OffsetEntry>()
            + self.times.capacity() * size_of::<TimeEntry>()
    }

    pub(crate) fn max_timestamp(&self) -> Option<i64> {
        self.max_timestamp.map(|(timestamp, _)| timestamp)
    }

    /// Where to begin to scan for `offset`: at a batch that is, or comes before, the one that holds it.
    pub(crate) fn start_for(&self, offset: i64) -> ScanStart {
        let after = self
            .offsets
            .partition_point(|entry| self.base + i64::from(entry.offset) <= offset);
        match after.checked_sub(1).map(|i| self.offsets[i]) {
            None => ScanStart::of_segment(self.base),
            Some(entry) => ScanStart {
                position: entry.position.into(),
                expected: Expected::Last(self.base + i64::from(entry.offset)),
            },
        }
    }

    /// An offset such that all batches before it have timestamps below `timestamp`.
    pub(crate) fn offset_before_timestamp(&self, timestamp: i64) -> i64 {
        let after = self
            .times
            .partition_point(|entry| entry.timestamp < timestamp);
        after
            .checked_sub(1)
            .map_or(self.base, |i| self.base + i64::from(self.times[i].offset))
    }

    /// Offset entries: last offset of a batch, and where it is.
    pub(crate) fn offset_entries(&self) -> impl Iterator<Item = (i64, u32)> {
        self.offsets
            .iter()
            .map(|entry| (self.base + i64::from(entry.offset), entry.position))
    }

    /// Time entries: largest timestamp so far, and last offset of the batch that has it.
    pub(crate) fn time_entries(&self) -> impl Iterator<Item = (i64, i64)> {
        self.times
            .iter()
            .map(|entry| (entry.timestamp, self.base + i64::from(entry.offset)))
    }

    pub(crate) fn encode_offsets(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.offsets.len() * OFFSET_ENTRY_BYTES);
        for entry in &self.offsets {
            out.extend_from_slice(&entry.offset.to_be_bytes());
            out.extend_from_slice(&entry.position.to_be_bytes());
        }
        out
    }

    pub(crate) fn encode_times(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.times.len() * TIME_ENTRY_BYTES);
        for entry in &self.times {
            out.extend_from_slice(&entry.timestamp.to_be_bytes());
            out.extend_from_slice(&entry.offset.to_be_bytes());
        }
        out
    }

    /// The index of a sealed segment from its files, whose checksums the caller verified. `None` when they are not whole entries.
    pub(crate) fn decode(base: i64, offsets: &[u8], times: &[u8]) -> Option<Self> {
        let (offset_entries, rest) = offsets.as_chunks::<OFFSET_ENTRY_BYTES>();
        let (time_entries, time_rest) = times.as_chunks::<TIME_ENTRY_BYTES>();
        if !rest.is_empty() || !time_rest.is_empty() {
            return None;
        }
        let offsets = offset_entries
            .iter()
            .map(|[o0, o1, o2, o3, p0, p1, p2, p3]| OffsetEntry {
                offset: u32::from_be_bytes([*o0, *o1, *o2, *o3]),
                position: u32::from_be_bytes([*p0, *p1, *p2, *p3]),
            })
            .collect();
        let times: Vec<_> = time_entries
            .iter()
            .map(
                |[t0, t1, t2, t3, t4, t5, t6, t7, o0, o1, o2, o3]| TimeEntry {
                    timestamp: i64::from_be_bytes([*t0, *t1, *t2, *t3, *t4, *t5, *t6, *t7]),
                    offset: u32::from_be_bytes([*o0, *o1, *o2, *o3]),
                },
            )
            .collect();
        let max_timestamp = times.last().map(|entry| (entry.timestamp, entry.offset));
        Some(Self {
            base,
            interval: 0,
            bytes_since_entry: 0,
            offsets,
            times,
            max_timestamp,
            offsets_crc: 0,
        })
    }
}

pub(crate) fn encode_aborted(aborted: &[AbortedTransaction]) -> Vec<u8> {
    let mut out = Vec::with_capacity(aborted.len() * TRANSACTION_ENTRY_BYTES);
    for entry in aborted {
        out.extend_from_slice(&0i16.to_be_bytes());
        for number in [
            entry.producer,
            entry.first_offset,
            entry.last_offset,
            entry.last_stable_offset,
        ] {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
    out
}

/// `None` when the bytes are not whole entries of version 0.
pub(crate) fn decode_aborted(bytes: &[u8]) -> Option<Vec<AbortedTransaction>> {
    let (entries, rest) = bytes.as_chunks::<TRANSACTION_ENTRY_BYTES>();
    if !rest.is_empty() {
        return None;
    }
    entries
        .iter()
        .map(|entry| {
            let (version, numbers) = entry.split_first_chunk::<2>()?;
            let (numbers, _) = numbers.as_chunks::<8>();
            let [producer, first_offset, last_offset, last_stable_offset] = numbers else {
                return None;
            };
            (*version == [0, 0]).then(|| AbortedTransaction {
                producer: i64::from_be_bytes(*producer),
                first_offset: i64::from_be_bytes(*first_offset),
                last_offset: i64::from_be_bytes(*last_offset),
                last_stable_offset: i64::from_be_bytes(*last_stable_offset),
            })
        })
        .collect()
}
