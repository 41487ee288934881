//! The 61 bytes in front of the records.

use super::{BatchError, compression::Compression};
use crate::log::{Offset, ProducerId};

/// Bytes of the header; records follow.
pub(crate) const HEADER_BYTES: usize = 61;
/// Bytes in front of what the length field counts.
pub(crate) const LENGTH_OVERHEAD: usize = 12;
/// The smallest batch: a header without records (what compaction leaves to keep a producer's sequence).
const MIN_BATCH_BYTES: usize = HEADER_BYTES;

const MAGIC: i8 = 2;
const CODEC_MASK: i16 = 0b111;
const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;
const NO_PRODUCER: i64 = -1;

mod at {
    pub(super) const BASE_OFFSET: usize = 0;
    pub(super) const LENGTH: usize = 8;
    pub(super) const LEADER_EPOCH: usize = 12;
    pub(super) const MAGIC: usize = 16;
    pub(super) const CRC: usize = 17;
    pub(super) const ATTRIBUTES: usize = 21;
    pub(super) const LAST_OFFSET_DELTA: usize = 23;
    pub(super) const BASE_TIMESTAMP: usize = 27;
    pub(super) const MAX_TIMESTAMP: usize = 35;
    pub(super) const PRODUCER_ID: usize = 43;
    pub(super) const PRODUCER_EPOCH: usize = 51;
    pub(super) const BASE_SEQUENCE: usize = 53;
    pub(super) const RECORD_COUNT: usize = 57;
}

/// Who wrote a batch: what makes retries and transactions work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerFields {
    /// The producer.
    pub id: ProducerId,
    /// Its instance; a newer one fences off older ones.
    pub epoch: i16,
    /// Sequence of the batch's first record. Sequences count records per partition and epoch from 0 and wrap after `i32::MAX`.
    pub base_sequence: i32,
    /// The batch belongs to the producer's open transaction, or opens one.
    pub transactional: bool,
}

/// Sequence that follows `sequence` by `by` records; sequences wrap from `i32::MAX` to 0.
pub(crate) fn next_sequence(sequence: i32, by: i32) -> i32 {
    let sum = i64::from(sequence) + i64::from(by);
    // Reduced to 31 bits, so the cast keeps the value.
    (sum & i64::from(i32::MAX)) as i32
}

/// A parsed header. Its fields are checked one by one and against each other; the records are covered by the checksum only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    pub(crate) base_offset: i64,
    /// Size of the whole batch, this header included.
    pub(crate) total_bytes: usize,
    pub(crate) crc: u32,
    pub(crate) attributes: i16,
    pub(crate) last_offset_delta: i32,
    pub(crate) base_timestamp: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) record_count: i32,
}

impl BatchHeader {
    /// Reads a header from the front of `bytes`, without looking at the records.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let Some(h) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(BatchError::Truncated {
                have: bytes.len(),
                need: HEADER_BYTES,
            });
        };
        let magic = i8::from_be_bytes(field(h, at::MAGIC));
        if magic != MAGIC {
            return Err(BatchError::Magic { found: magic });
        }
        let length = i32::from_be_bytes(field(h, at::LENGTH));
        let total_bytes = usize::try_from(length).unwrap_or(0) + LENGTH_OVERHEAD;
        if total_bytes < MIN_BATCH_BYTES {
            return Err(BatchError::Field {
                field: "length",
                value: length.into(),
            });
        }
        let header = Self {
            base_offset: i64::from_be_bytes(field(h, at::BASE_OFFSET)),
            total_bytes,
            crc: u32::from_be_bytes(field(h, at::CRC)),
            attributes: i16::from_be_bytes(field(h, at::ATTRIBUTES)),
            last_offset_delta: i32::from_be_bytes(field(h, at::LAST_OFFSET_DELTA)),
            base_timestamp: i64::from_be_bytes(field(h, at::BASE_TIMESTAMP)),
            max_timestamp: i64::from_be_bytes(field(h, at::MAX_TIMESTAMP)),
            producer_id: i64::from_be_bytes(field(h, at::PRODUCER_ID)),
            producer_epoch: i16::from_be_bytes(field(h, at::PRODUCER_EPOCH)),
            base_sequence: i32::from_be_bytes(field(h, at::BASE_SEQUENCE)),
            record_count: i32::from_be_bytes(field(h, at::RECORD_COUNT)),
        };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Result<(), BatchError> {
        let wrong = |field, value| Err(BatchError::Field { field, value });
        if self.base_offset < 0 || self.base_offset > i64::MAX - i64::from(i32::MAX) - 1 {
            return wrong("base offset", self.base_offset);
        }
        if self.last_offset_delta < 0 || self.last_offset_delta == i32::MAX {
            return wrong("last offset delta", self.last_offset_delta.into());
        }
        // Compaction removes records but keeps the offset range, so fewer are fine.
        if self.record_count < 0 || self.record_count > self.last_offset_delta + 1 {
            return wrong("record count", self.record_count.into());
        }
        if self.codec().is_none() {
            return wrong("codec", (self.attributes & CODEC_MASK).into());
        }
        if self.producer_id < NO_PRODUCER {
            return wrong("producer id", self.producer_id);
        }
        if self.producer_id == NO_PRODUCER && self.is_transactional() {
            return wrong(
                "transaction without a producer; attributes",
                self.attributes.into(),
            );
        }
        if self.producer_id != NO_PRODUCER && self.producer_epoch < 0 {
            return wrong("producer epoch", self.producer_epoch.into());
        }
        if self.producer_id != NO_PRODUCER && !self.is_control() && self.base_sequence < 0 {
            return wrong("base sequence", self.base_sequence.into());
        }
        Ok(())
    }

    /// Writes the header in front of the records that `batch` holds from [`HEADER_BYTES`] on, checksum included.
    /// `total_bytes` and `crc` are computed, whatever they say.
    pub(super) fn write(&self, batch: &mut [u8]) {
        debug_assert!(
            batch.len() >= HEADER_BYTES,
            "the builder reserves room for the header"
        );
        // A batch beyond 2 GiB cannot be expressed; the log refuses it by its size long before.
        let length = i32::try_from(batch.len() - LENGTH_OVERHEAD).unwrap_or(i32::MAX);
        put(batch, at::BASE_OFFSET, self.base_offset.to_be_bytes());
        put(batch, at::LENGTH, length.to_be_bytes());
        put(batch, at::LEADER_EPOCH, 0i32.to_be_bytes());
        put(batch, at::MAGIC, MAGIC.to_be_bytes());
        put(batch, at::ATTRIBUTES, self.attributes.to_be_bytes());
        put(
            batch,
            at::LAST_OFFSET_DELTA,
            self.last_offset_delta.to_be_bytes(),
        );
        put(batch, at::BASE_TIMESTAMP, self.base_timestamp.to_be_bytes());
        put(batch, at::MAX_TIMESTAMP, self.max_timestamp.to_be_bytes());
        put(batch, at::PRODUCER_ID, self.producer_id.to_be_bytes());
        put(batch, at::PRODUCER_EPOCH, self.producer_epoch.to_be_bytes());
        put(batch, at::BASE_SEQUENCE, self.base_sequence.to_be_bytes());
        put(batch, at::RECORD_COUNT, self.record_count.to_be_bytes());
        let crc = checksum(batch);
        put(batch, at::CRC, crc.to_be_bytes());
    }

    /// A header for `record_count` records; the caller fills in the rest.
    pub(super) fn for_records(record_count: i32, base_timestamp: i64, max_timestamp: i64) -> Self {
        Self {
            base_offset: 0,
            total_bytes: 0,
            crc: 0,
            attributes: 0,
            last_offset_delta: record_count.saturating_sub(1).max(0),
            base_timestamp,
            max_timestamp,
            producer_id: NO_PRODUCER,
            producer_epoch: -1,
            base_sequence: -1,
            record_count,
        }
    }

    pub(super) fn set_codec(&mut self, codec: Compression) {
        self.attributes = (self.attributes & !CODEC_MASK) | codec.id();
    }

    pub(super) fn set_producer(&mut self, producer: ProducerFields) {
        self.producer_id = producer.id.0;
        self.producer_epoch = producer.epoch;
        self.base_sequence = producer.base_sequence;
        if producer.transactional {
            self.attributes |= TRANSACTIONAL;
        }
    }

    /// The log's time stands for that of all records.
    pub(super) fn set_log_append_time(&mut self, now_ms: i64) {
        self.attributes |= LOG_APPEND_TIME;
        self.max_timestamp = now_ms;
    }

    pub(super) fn set_control(&mut self) {
        self.attributes |= CONTROL;
    }

    /// Offset of the last record, or of where it was before compaction.
    pub(crate) fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// Codec of the records; `None` for an unknown one, which [`Self::parse`] refuses.
    pub(crate) fn codec(&self) -> Option<Compression> {
        Compression::from_id(self.attributes & CODEC_MASK)
    }

    pub(crate) fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    pub(crate) fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// The log, not the producer, set the time: the largest timestamp then stands for all records.
    pub(crate) fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// When the tombstones of the batch may go, if compaction has seen them. Record times count from there.
    pub(crate) fn delete_horizon(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    pub(super) fn set_delete_horizon(&mut self, horizon: i64) {
        self.attributes |= DELETE_HORIZON;
        self.base_timestamp = horizon;
    }

    pub(crate) fn producer(&self) -> Option<ProducerFields> {
        (self.producer_id != NO_PRODUCER).then(|| ProducerFields {
            id: ProducerId(self.producer_id),
            epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            transactional: self.is_transactional(),
        })
    }

    /// Sequence of the last record.
    pub(crate) fn last_sequence(&self) -> i32 {
        next_sequence(self.base_sequence, self.last_offset_delta)
    }
}

/// CRC-32C of a whole batch, of which `bytes` holds at least the header.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(&bytes[at::ATTRIBUTES..])
}

/// Sets what the log assigns: the base offset, and the leader epoch, which is always 0 in a log with one server.
pub(crate) fn stamp(batch: &mut [u8], offset: Offset) {
    put(batch, at::BASE_OFFSET, offset.0.to_be_bytes());
    put(batch, at::LEADER_EPOCH, 0i32.to_be_bytes());
}

fn field<const N: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&header[at..at + N]);
    out
}

fn put<const N: usize>(batch: &mut [u8], at: usize, value: [u8; N]) {
    batch[at..at + N].copy_from_slice(&value);
}
