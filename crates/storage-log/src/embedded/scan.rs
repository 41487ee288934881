//! Reading a segment batch by batch. Every batch is checked: header, checksum, and that its offsets follow the one before.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;

use crate::{
    batch::{BatchError, BatchHeader, BatchView, HEADER_BYTES},
    disk::DiskFile,
    error::LogError,
    log::{Offset, TopicPartition},
};

/// Bytes read at once by scans of whole segments: large enough that the disk streams, small beside the memory budget.
pub(crate) const SCAN_CHUNK_BYTES: usize = 1 << 20;

/// Why a scan stopped before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScanError {
    #[error(transparent)]
    Io(io::Error),
    #[error(transparent)]
    Batch(BatchError),
    /// The base offset is not covered by the checksum, but it must follow from the batch before.
    #[error("offset {found} follows where {expected} should")]
    Gap { expected: i64, found: i64 },
}

impl ScanError {
    /// What the caller of the log sees: I/O failures as such, anything else as damage up to `to`.
    pub(crate) fn into_log_error(self, partition: &TopicPartition, from: i64, to: i64) -> LogError {
        match self {
            Self::Io(source) => LogError::Io {
                attempted: format!("read {partition}"),
                source,
            },
            damage => LogError::Corrupt {
                partition: partition.clone(),
                from: Offset(from),
                to: Offset(to),
                reason: damage.to_string(),
            },
        }
    }
}

/// What the offsets of the next batch must be. The base offset lies outside the checksum, so it is held against what is known otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// It begins here.
    Base(i64),
    /// It ends here (an index entry says so).
    Last(i64),
}

/// Where a scan begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScanStart {
    pub(crate) position: u64,
    pub(crate) expected: Expected,
}

impl ScanStart {
    /// The front of a segment that begins at `base`.
    pub(crate) fn of_segment(base: i64) -> Self {
        Self {
            position: 0,
            expected: Expected::Base(base),
        }
    }
}

/// Iterates over the batches of one segment file.
#[derive(Debug)]
pub(crate) struct BatchScanner {
    file: Arc<dyn DiskFile>,
    /// Where the file's valid part ends, as far as the caller knows.
    end: u64,
    position: u64,
    expected: Expected,
    dense: bool,
    /// All offsets lie below this one.
    limit: i64,
    chunk: Bytes,
    chunk_position: u64,
    chunk_bytes: usize,
    /// What reads took that had to go to the medium.
    disk_time: Duration,
}

impl BatchScanner {
    /// Scans from `start` to the position `end`. In a `dense` segment each batch follows the one before exactly; a compacted one has gaps.
    pub(crate) fn new(file: Arc<dyn DiskFile>, start: ScanStart, end: u64, dense: bool) -> Self {
        Self {
            file,
            end,
            position: start.position,
            expected: start.expected,
            dense,
            limit: i64::MAX,
            chunk: Bytes::new(),
            chunk_position: start.position,
            chunk_bytes: SCAN_CHUNK_BYTES,
            disk_time: Duration::ZERO,
        }
    }

    /// Reads so many bytes at once.
    pub(crate) fn with_chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = bytes;
        self
    }

    /// No batch may reach that offset, where the next segment begins: with gaps allowed, nothing else would bound a damaged one.
    pub(crate) fn below(mut self, limit: i64) -> Self {
        self.limit = limit;
        self
    }

    /// What reads took so far that had to go to the medium.
    pub(crate) fn disk_time(&self) -> Duration {
        self.disk_time
    }

    /// Position of the batch that comes next.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// First offset that was not handed out yet, as far as it is known.
    pub(crate) fn next_offset(&self) -> i64 {
        match self.expected {
            Expected::Base(offset) | Expected::Last(offset) => offset,
        }
    }

    /// The next batch was read already, as a whole.
    pub(crate) fn next_is_at_hand(&self) -> bool {
        let rest = self.at_hand();
        BatchHeader::parse(rest).is_ok_and(|header| header.total_bytes <= rest.len())
    }

    /// The next batch with its position; `None` at the end. After an error the position stays at the batch that caused it.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, BatchView)>, ScanError> {
        if self.position >= self.end {
            return Ok(None);
        }
        let header = self.next_header()?;
        let batch = BatchView::parse_front(&self.bytes_from_position(header.total_bytes)?)
            .map_err(ScanError::Batch)?;
        self.check_offsets(&batch)?;
        let position = self.position;
        self.position += header.total_bytes as u64;
        self.expected = Expected::Base(batch.last_offset().0 + 1);
        Ok(Some((position, batch)))
    }

    fn check_offsets(&self, batch: &BatchView) -> Result<(), ScanError> {
        let (expected, found, gap_allowed) = match self.expected {
            Expected::Base(expected) => (expected, batch.base_offset().0, !self.dense),
            Expected::Last(expected) => (expected, batch.last_offset().0, false),
        };
        let is_inside = batch.last_offset().0 < self.limit;
        if is_inside && (found == expected || (gap_allowed && found > expected)) {
            Ok(())
        } else {
            Err(ScanError::Gap { expected, found })
        }
    }

    /// The header at the position, from the chunk at hand or else read alone: only it tells how large a chunk must be to hold the batch.
    fn next_header(&self) -> Result<BatchHeader, ScanError> {
        let at_hand = self.at_hand();
        if at_hand.len() >= HEADER_BYTES {
            return BatchHeader::parse(at_hand).map_err(ScanError::Batch);
        }
        let mut header = [0; HEADER_BYTES];
        let len = usize::try_from(self.end - self.position)
            .unwrap_or(usize::MAX)
            .min(HEADER_BYTES);
        let read = self
            .file
            .read_at(&mut header[..len], self.position)
            .map_err(ScanError::Io)?;
        BatchHeader::parse(&header[..read]).map_err(ScanError::Batch)
    }

    /// What was read of the bytes from the position on.
    fn at_hand(&self) -> &[u8] {
        let at = usize::try_from(self.position - self.chunk_position).unwrap_or(usize::MAX);
        self.chunk.get(at..).unwrap_or_default()
    }

    /// At least the `need` bytes from the position on, unless the file ends before.
    fn bytes_from_position(&mut self, need: usize) -> Result<Bytes, ScanError> {
        let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        if need > left {
            // Also keeps a hostile length from being allocated.
            return Err(ScanError::Batch(BatchError::Truncated { have: left, need }));
        }
        let at_hand = self.at_hand();
        if at_hand.len() >= need {
            return Ok(self.chunk.slice_ref(at_hand));
        }
        let mut buffer = vec![0; left.min(self.chunk_bytes.max(need))];
        // The last byte tells: what the kernel reads ahead of a reader in sequence does not reach that far.
        let cached = self.file.is_cached(self.position + buffer.len() as u64 - 1);
        let began = Instant::now();
        let read = self
            .file
            .read_at(&mut buffer, self.position)
            .map_err(ScanError::Io)?;
        if !cached {
            self.disk_time += began.elapsed();
        }
        buffer.truncate(read);
        self.chunk = Bytes::from(buffer);
        self.chunk_position = self.position;
        Ok(self.chunk.clone())
    }
}
