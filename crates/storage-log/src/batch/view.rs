//! A stored batch that passed its checks.

use bytes::Bytes;

use super::{
    BatchError, ControlMarker,
    compression::{Compression, MAX_UNCOMPRESSED_BYTES},
    header::{self, BatchHeader, HEADER_BYTES, ProducerFields},
    record::Records,
};
use crate::{error::LogResult, log::Offset};

/// A batch whose header and checksum were verified. Cheap to clone: it shares its bytes.
#[derive(Debug, Clone)]
pub struct BatchView {
    header: BatchHeader,
    bytes: Bytes,
}

impl BatchView {
    /// Takes exactly one batch.
    pub fn parse(bytes: Bytes) -> LogResult<Self> {
        let view = Self::parse_front(&bytes)?;
        let extra = bytes.len() - view.bytes.len();
        if extra > 0 {
            return Err(BatchError::TrailingBytes { extra }.into());
        }
        Ok(view)
    }

    /// Takes the batch at the front of `bytes`; more may follow it.
    pub(crate) fn parse_front(bytes: &Bytes) -> Result<Self, BatchError> {
        let header = BatchHeader::parse(bytes)?;
        let Some(batch) = bytes.get(..header.total_bytes) else {
            return Err(BatchError::Truncated {
                have: bytes.len(),
                need: header.total_bytes,
            });
        };
        let computed = header::checksum(batch);
        if computed != header.crc {
            return Err(BatchError::Checksum {
                stored: header.crc,
                computed,
            });
        }
        Ok(Self {
            header,
            bytes: bytes.slice(..header.total_bytes),
        })
    }

    /// Wraps a batch that was just encoded, or just stamped.
    pub(crate) fn trusted(header: BatchHeader, bytes: Bytes) -> Self {
        debug_assert_eq!(header.total_bytes, bytes.len(), "exactly the batch");
        Self { header, bytes }
    }

    pub(crate) fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Offset of the first record.
    pub fn base_offset(&self) -> Offset {
        Offset(self.header.base_offset)
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> Offset {
        Offset(self.header.last_offset())
    }

    /// Largest timestamp of its records, milliseconds since the epoch.
    pub fn max_timestamp(&self) -> i64 {
        self.header.max_timestamp
    }

    /// Number of records.
    pub fn record_count(&self) -> usize {
        usize::try_from(self.header.record_count).unwrap_or(0)
    }

    /// Size in bytes as stored.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The stored bytes.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Gives up the view for its bytes.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Codec of its records.
    pub fn compression(&self) -> Compression {
        self.header.codec().unwrap_or_default()
    }

    /// Who wrote it.
    pub fn producer(&self) -> Option<ProducerFields> {
        self.header.producer()
    }

    /// It holds a marker, not records of a user.
    pub fn is_control(&self) -> bool {
        self.header.is_control()
    }

    /// It belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.header.is_transactional()
    }

    /// The marker of a control batch that ends a transaction.
    pub fn control(&self) -> LogResult<Option<ControlMarker>> {
        if self.is_control() {
            ControlMarker::decode(self)
        } else {
            Ok(None)
        }
    }

    /// The records; decompresses them if they are compressed, to at most [`MAX_UNCOMPRESSED_BYTES`].
    pub fn records(&self) -> LogResult<Records> {
        let stored = self.bytes.slice(HEADER_BYTES..);
        let bytes = match self.compression() {
            Compression::None => stored,
            codec => Bytes::from(codec.decompress(&stored, MAX_UNCOMPRESSED_BYTES)?),
        };
        Ok(Records::new(self.header, bytes))
    }
}
