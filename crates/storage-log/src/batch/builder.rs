//! Encoding: records in, one finished batch out.

use bytes::Bytes;

use super::{
    BatchError, BatchView,
    compression::Compression,
    header::{self, BatchHeader, HEADER_BYTES, ProducerFields},
    varint,
};
use crate::{error::LogResult, log::Offset};

/// Collects the records of one batch. [`Self::finish`] leaves it empty and ready for the next one.
///
/// Records are encoded as they come, behind room for the header, so an uncompressed batch is never copied.
#[derive(Debug)]
pub struct BatchBuilder {
    codec: Compression,
    /// Room for the header, then the records.
    buffer: Vec<u8>,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    /// Size of the last batch: the best guess for the next one.
    last_bytes: usize,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// A builder of uncompressed batches.
    pub fn new() -> Self {
        Self::with_compression(Compression::None)
    }

    /// A builder of compressed batches. A batch that compression would not make smaller is left uncompressed.
    pub fn with_compression(codec: Compression) -> Self {
        Self {
            codec,
            buffer: Vec::new(),
            count: 0,
            base_timestamp: 0,
            max_timestamp: i64::MIN,
            last_bytes: 0,
        }
    }

    /// Adds a record. A `None` value is a tombstone.
    pub fn push(
        &mut self,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) {
        if self.count == 0 {
            // A little more than last time, header included: growing by doubling would copy the batch and then give the rest back.
            self.buffer
                .reserve(HEADER_BYTES.max(self.last_bytes + self.last_bytes / 16));
            self.buffer.resize(HEADER_BYTES, 0);
            self.base_timestamp = timestamp_ms;
        }
        self.max_timestamp = self.max_timestamp.max(timestamp_ms);
        // Wraps for timestamps that are 292 million years apart; the reader wraps back.
        let timestamp_delta = timestamp_ms.wrapping_sub(self.base_timestamp);
        let record = RecordBody {
            timestamp_delta,
            offset_delta: self.count.into(),
            key,
            value,
            headers,
        };
        record.put(&mut self.buffer);
        self.count += 1;
    }

    /// What was collected, apart from this builder, which is empty afterwards and ready for the next batch.
    pub fn split_off(&mut self) -> Self {
        self.last_bytes = self.buffer.len();
        Self {
            codec: self.codec,
            buffer: std::mem::take(&mut self.buffer),
            count: std::mem::take(&mut self.count),
            base_timestamp: self.base_timestamp,
            max_timestamp: std::mem::replace(&mut self.max_timestamp, i64::MIN),
            last_bytes: self.last_bytes,
        }
    }

    /// Number of records so far.
    pub fn len(&self) -> usize {
        // Counted up from 0.
        self.count as usize
    }

    /// No record yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes so far, header included, before compression.
    pub fn byte_len(&self) -> usize {
        self.buffer.len().max(HEADER_BYTES)
    }

    /// Encodes what was collected. Without records the batch is empty, which a log refuses to append.
    pub fn finish(&mut self, producer: Option<ProducerFields>) -> EncodedBatch {
        debug_assert!(self.count > 0, "a batch has at least one record");
        let mut bytes = std::mem::take(&mut self.buffer);
        self.last_bytes = bytes.len();
        if bytes.is_empty() {
            bytes.resize(HEADER_BYTES, 0);
        }
        let mut header =
            BatchHeader::for_records(self.count, self.base_timestamp, self.max_timestamp);
        if let Some(producer) = producer {
            header.set_producer(producer);
        }
        if let Some(compressed) = self.compressed(&bytes) {
            header.set_codec(self.codec);
            // The buffer did not leave us: the next batch goes into it.
            bytes.clear();
            self.buffer = std::mem::replace(&mut bytes, compressed);
        }
        self.count = 0;
        self.max_timestamp = i64::MIN;
        EncodedBatch::seal(header, bytes)
    }

    fn compressed(&self, batch: &[u8]) -> Option<Vec<u8>> {
        if self.codec == Compression::None {
            return None;
        }
        let mut out = Vec::with_capacity(batch.len() / 2 + HEADER_BYTES);
        out.resize(HEADER_BYTES, 0);
        self.codec.compress(&batch[HEADER_BYTES..], &mut out).ok()?;
        (out.len() < batch.len()).then_some(out)
    }
}

/// One record as it is written.
struct RecordBody<'a> {
    timestamp_delta: i64,
    offset_delta: i64,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers: &'a [(&'a str, Option<&'a [u8]>)],
}

impl RecordBody<'_> {
    /// Bytes behind the length field.
    fn len(&self) -> usize {
        let headers: usize = self
            .headers
            .iter()
            .map(|(name, value)| nullable_len(Some(name.as_bytes())) + nullable_len(*value))
            .sum();
        1 + varint::len(self.timestamp_delta)
            + varint::len(self.offset_delta)
            + nullable_len(self.key)
            + nullable_len(self.value)
            + varint::len(self.headers.len() as i64)
            + headers
    }

    fn put(&self, out: &mut Vec<u8>) {
        let len = self.len();
        out.reserve(len + 5);
        varint::put(out, len as i64);
        out.push(0); // attributes: none are defined
        varint::put(out, self.timestamp_delta);
        varint::put(out, self.offset_delta);
        put_nullable(out, self.key);
        put_nullable(out, self.value);
        varint::put(out, self.headers.len() as i64);
        for (name, value) in self.headers {
            put_nullable(out, Some(name.as_bytes()));
            put_nullable(out, *value);
        }
    }
}

fn nullable_len(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint::len(bytes.len() as i64) + bytes.len())
}

fn put_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => varint::put(out, -1),
        Some(bytes) => {
            varint::put(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}

/// A complete, valid batch whose base offset is not assigned yet; the log stamps it in place, outside the checksum.
#[derive(Debug, Clone)]
pub struct EncodedBatch {
    header: BatchHeader,
    bytes: Vec<u8>,
}

impl EncodedBatch {
    /// Completes a batch: writes the header in front of the records.
    pub(super) fn seal(mut header: BatchHeader, mut bytes: Vec<u8>) -> Self {
        // The log keeps its newest batches in memory; spare room would stay with them.
        if bytes.capacity() - bytes.len() > bytes.len() / 8 {
            bytes.shrink_to_fit();
        }
        header.total_bytes = bytes.len();
        header.write(&mut bytes);
        Self { header, bytes }
    }

    /// A batch of one record without timestamp delta: what markers are.
    pub(super) fn single_record(header: BatchHeader, key: &[u8], value: &[u8]) -> Self {
        let record = RecordBody {
            timestamp_delta: 0,
            offset_delta: 0,
            key: Some(key),
            value: Some(value),
            headers: &[],
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + record.len() + 1);
        bytes.resize(HEADER_BYTES, 0);
        record.put(&mut bytes);
        Self::seal(header, bytes)
    }

    /// Takes a batch that somebody else encoded (a Kafka client): checks all of it, down to every record.
    pub fn from_bytes(bytes: Vec<u8>) -> LogResult<Self> {
        let view = BatchView::parse(Bytes::from(bytes))?;
        let header = *view.header();
        if header.is_control() {
            return Err(BatchError::Field {
                field: "control bit; attributes",
                value: header.attributes.into(),
            }
            .into());
        }
        if header.record_count != header.last_offset_delta + 1 {
            return Err(BatchError::RecordCount {
                expected: header.last_offset_delta as usize + 1,
            }
            .into());
        }
        for (delta, record) in (0i64..).zip(view.records()?.iter()) {
            if record?.offset.0 != header.base_offset + delta {
                return Err(BatchError::Record {
                    index: delta as usize,
                    part: "offset delta",
                }
                .into());
            }
        }
        Ok(Self {
            header,
            bytes: view.into_bytes().into(),
        })
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never true for a batch that can be appended.
    pub fn is_empty(&self) -> bool {
        self.header.record_count == 0
    }

    /// Number of records.
    pub fn record_count(&self) -> usize {
        usize::try_from(self.header.record_count).unwrap_or(0)
    }

    /// Largest timestamp.
    pub fn max_timestamp(&self) -> i64 {
        self.header.max_timestamp
    }

    /// Who wrote it.
    pub fn producer(&self) -> Option<ProducerFields> {
        self.header.producer()
    }

    /// The encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn header(&self) -> &BatchHeader {
        &self.header
    }

    pub(crate) fn into_parts(self) -> (BatchHeader, Vec<u8>) {
        (self.header, self.bytes)
    }

    /// The batch that [`Self::into_parts`] took apart.
    pub(crate) fn from_parts(header: BatchHeader, bytes: Vec<u8>) -> Self {
        debug_assert_eq!(header.total_bytes, bytes.len(), "the same batch");
        Self { header, bytes }
    }

    /// Assigns the base offset.
    pub(crate) fn stamp(mut self, base: Offset) -> BatchView {
        header::stamp(&mut self.bytes, base);
        self.header.base_offset = base.0;
        BatchView::trusted(self.header, Bytes::from(self.bytes))
    }
}
