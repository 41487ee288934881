//! Sealed segments: files that never change again, and the seal that says what they must look like.
//!
//! ORDER: the log of a segment is synced before its successor is created. So nothing in a segment with a successor was ever torn, and the last one
//! is the only one that recovery has to search for a torn tail. Indexes, seal and snapshot are written in between, but nothing rests on their order.
//!
//! A seal that is missing or damaged (or a folder that Kafka wrote) costs a scan of that segment, after which it has one again. An index that
//! does not match the seal's checksum is made again from the log.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use serde::{Deserialize, Serialize};

use crate::{
    disk::{Disk, DiskFile},
    embedded::{
        Environment,
        index::{self, SegmentIndex},
        layout::SegmentFile,
        scan::{BatchScanner, ScanStart},
        small_file::{self, FileKind},
    },
    error::{LogError, LogResult},
    log::{Offset, TopicPartition},
    producer::{AbortedTransaction, ProducerTable},
};

const SEAL: FileKind = FileKind {
    name: "highwater-seal",
    version: 1,
};

/// What a sealed segment must look like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    base_offset: i64,
    /// Behind the last offset.
    end_offset: i64,
    log_bytes: u64,
    max_timestamp: Option<i64>,
    /// Every offset from base to end is there (not compacted).
    dense: bool,
    /// Bytes between two entries of its indexes.
    index_interval: u32,
    offset_index_crc: u32,
    time_index_crc: u32,
    transaction_index_crc: u32,
    /// Checksum of the base offsets of all batches. Where offsets may be missing, a damaged one would not be noticed by its neighbours.
    offsets_crc: u32,
}

/// Tells segments apart in caches. A segment that takes the place of another has an id of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SegmentId(u64);

impl SegmentId {
    /// An id that nothing had since the process started.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A segment that never changes again.
#[derive(Debug)]
pub(crate) struct SealedSegment {
    pub(crate) id: SegmentId,
    seal: Seal,
    /// First offset of all transactions that were aborted in the segment; they may have begun before it.
    aborted_from: Option<i64>,
    /// The offsets of a segment with gaps were held against the seal since the process started.
    offsets_checked: AtomicBool,
}

/// A segment that has a successor but no seal that can be trusted.
pub(crate) struct UnsealedSegment<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) partition: &'a TopicPartition,
    pub(crate) dir: &'a Path,
    pub(crate) index_interval: u32,
    pub(crate) base: i64,
    pub(crate) successor: i64,
    /// It was compacted, or Kafka wrote the folder and may have: offsets may be missing.
    pub(crate) may_have_gaps: bool,
}

/// Everything about a segment that is to be sealed.
pub(crate) struct SegmentContent<'a> {
    pub(crate) base: i64,
    pub(crate) end: i64,
    pub(crate) log_bytes: u64,
    pub(crate) dense: bool,
    pub(crate) index: &'a SegmentIndex,
    /// Transactions whose abort marker lies in the segment.
    pub(crate) aborted: &'a [AbortedTransaction],
}

impl SegmentContent<'_> {
    /// Writes indexes and seal of a segment whose log is on disk. The caller syncs the folder.
    pub(crate) fn seal(&self, disk: &dyn Disk, dir: &Path) -> LogResult<SealedSegment> {
        self.seal_as(disk, |kind| kind.path(dir, self.base))
    }

    /// The same under other names.
    pub(crate) fn seal_as(
        &self,
        disk: &dyn Disk,
        path: impl Fn(SegmentFile) -> PathBuf,
    ) -> LogResult<SealedSegment> {
        let (seal, files) = self.encode();
        for (kind, bytes) in files {
            small_file::replace(disk, &path(kind), &bytes)?;
        }
        let body = serde_json::to_vec(&seal).map_err(|error| LogError::Io {
            attempted: "encode a segment's seal".into(),
            source: error.into(),
        })?;
        small_file::replace(disk, &path(SegmentFile::Seal), &SEAL.frame(&body))?;
        Ok(SealedSegment {
            id: SegmentId::next(),
            seal,
            aborted_from: first_aborted(self.aborted),
            offsets_checked: AtomicBool::new(false),
        })
    }

    fn encode(&self) -> (Seal, [(SegmentFile, Vec<u8>); 3]) {
        let mut sealed_index = self.index.clone();
        sealed_index.seal();
        let offsets = sealed_index.encode_offsets();
        let times = sealed_index.encode_times();
        let transactions = index::encode_aborted(self.aborted);
        let seal = Seal {
            base_offset: self.base,
            end_offset: self.end,
            log_bytes: self.log_bytes,
            max_timestamp: sealed_index.max_timestamp(),
            dense: self.dense,
            index_interval: self.index.interval(),
            offset_index_crc: crc32c::crc32c(&offsets),
            time_index_crc: crc32c::crc32c(&times),
            transaction_index_crc: crc32c::crc32c(&transactions),
            offsets_crc: self.index.offsets_crc(),
        };
        let files = [
            (SegmentFile::OffsetIndex, offsets),
            (SegmentFile::TimeIndex, times),
            (SegmentFile::TransactionIndex, transactions),
        ];
        (seal, files)
    }
}

impl SealedSegment {
    pub(crate) fn base(&self) -> i64 {
        self.seal.base_offset
    }

    pub(crate) fn end(&self) -> i64 {
        self.seal.end_offset
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.seal.log_bytes
    }

    pub(crate) fn dense(&self) -> bool {
        self.seal.dense
    }

    pub(crate) fn max_timestamp(&self) -> Option<i64> {
        self.seal.max_timestamp
    }

    /// First offset of all transactions that were aborted in the segment.
    pub(crate) fn aborted_from(&self) -> Option<i64> {
        self.aborted_from
    }

    /// Bytes between two entries of its indexes.
    pub(crate) fn index_interval(&self) -> u32 {
        self.seal.index_interval
    }

    /// Whether these are the base offsets that were sealed, by their checksum.
    pub(crate) fn vouches_for_offsets(&self, offsets_crc: u32) -> bool {
        self.seal.offsets_crc == offsets_crc
    }

    /// Makes sure, once, that the offsets in a segment with gaps are those that were sealed. In one without gaps each batch proves the one before.
    pub(crate) fn check_offsets(
        &self,
        environment: &Environment,
        partition: &TopicPartition,
        dir: &Path,
    ) -> LogResult<()> {
        if self.dense() || self.offsets_checked.load(Ordering::Acquire) {
            return Ok(());
        }
        let file = self.open(environment, dir)?;
        let start = ScanStart::of_segment(self.base());
        let mut scanner = BatchScanner::new(file, start, self.log_bytes(), false).below(self.end());
        let mut index = SegmentIndex::new(self.base(), self.index_interval());
        loop {
            let expected = scanner.next_offset();
            match scanner.next() {
                Ok(None) => break,
                Ok(Some((position, batch))) => index.observe(batch.header(), position),
                Err(error) => return Err(error.into_log_error(partition, expected, self.end())),
            }
        }
        if !self.vouches_for_offsets(index.offsets_crc()) {
            return Err(LogError::Corrupt {
                partition: partition.clone(),
                from: Offset(self.base()),
                to: Offset(self.end()),
                reason: "the offsets are not those that were sealed".into(),
            });
        }
        self.offsets_checked.store(true, Ordering::Release);
        Ok(())
    }

    /// The bytes are those of that index when the segment was sealed.
    pub(crate) fn vouches_for(&self, index: SegmentFile, bytes: &[u8]) -> bool {
        let sealed = match index {
            SegmentFile::OffsetIndex => self.seal.offset_index_crc,
            SegmentFile::TimeIndex => self.seal.time_index_crc,
            SegmentFile::TransactionIndex => self.seal.transaction_index_crc,
            SegmentFile::Log | SegmentFile::Seal | SegmentFile::Snapshot => return false,
        };
        crc32c::crc32c(bytes) == sealed
    }

    /// Reads the seal and what was aborted. `None` when there is none of them that can be trusted.
    pub(crate) fn load(disk: &dyn Disk, dir: &Path, base: i64) -> LogResult<Option<Self>> {
        let path = SegmentFile::Seal.path(dir, base);
        let body = match SEAL.read(disk, &path) {
            Err(LogError::CorruptFile { reason, .. }) => {
                tracing::warn!(path = %path.display(), reason, "seal is damaged, the segment is scanned");
                return Ok(None);
            }
            read => read?,
        };
        let Some(segment) = body
            .and_then(|body| Self::decode(&body))
            .filter(|segment| segment.base() == base)
        else {
            return Ok(None);
        };
        let aborted = segment.load_aborted(disk, dir)?;
        Ok(aborted.map(|aborted| Self {
            aborted_from: first_aborted(&aborted),
            ..segment
        }))
    }

    /// The segment that a seal's body speaks of; nothing is known of what was aborted in it.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let seal = serde_json::from_slice(body).ok()?;
        Some(Self {
            id: SegmentId::next(),
            seal,
            aborted_from: None,
            offsets_checked: AtomicBool::new(false),
        })
    }

    /// The log file.
    pub(crate) fn open(
        &self,
        environment: &Environment,
        dir: &Path,
    ) -> LogResult<Arc<dyn DiskFile>> {
        let path = SegmentFile::Log.path(dir, self.base());
        environment
            .files
            .get(&path)
            .map_err(LogError::io(|| format!("open \"{}\"", path.display())))
    }

    /// The indexes from their files. `None` when they are missing or not what was sealed.
    pub(crate) fn load_index(
        &self,
        disk: &dyn Disk,
        dir: &Path,
    ) -> LogResult<Option<SegmentIndex>> {
        let offsets =
            small_file::read_whole(disk, &SegmentFile::OffsetIndex.path(dir, self.base()))?;
        let times = small_file::read_whole(disk, &SegmentFile::TimeIndex.path(dir, self.base()))?;
        let (Some(offsets), Some(times)) = (offsets, times) else {
            return Ok(None);
        };
        let sealed = self.vouches_for(SegmentFile::OffsetIndex, &offsets)
            && self.vouches_for(SegmentFile::TimeIndex, &times);
        Ok(if sealed {
            SegmentIndex::decode(self.base(), &offsets, &times)
        } else {
            None
        })
    }

    /// The aborted transactions from their file. `None` when it is missing or not what was sealed.
    pub(crate) fn load_aborted(
        &self,
        disk: &dyn Disk,
        dir: &Path,
    ) -> LogResult<Option<Vec<AbortedTransaction>>> {
        let bytes =
            small_file::read_whole(disk, &SegmentFile::TransactionIndex.path(dir, self.base()))?;
        Ok(bytes
            .filter(|bytes| self.vouches_for(SegmentFile::TransactionIndex, bytes))
            .and_then(|bytes| index::decode_aborted(&bytes)))
    }
}

fn first_aborted(aborted: &[AbortedTransaction]) -> Option<i64> {
    aborted.iter().map(|aborted| aborted.first_offset).min()
}

impl UnsealedSegment<'_> {
    /// Scans the segment and seals it. Anything invalid in it is damage.
    pub(crate) fn rebuild(&self, producers: &mut ProducerTable) -> LogResult<SealedSegment> {
        let Self {
            environment,
            partition,
            dir,
            base,
            successor,
            ..
        } = *self;
        let path = SegmentFile::Log.path(dir, base);
        let failed = || LogError::io(|| format!("read \"{}\"", path.display()));
        let file = environment.files.get(&path).map_err(failed())?;
        let log_bytes = file.len().map_err(failed())?;
        let mut index = SegmentIndex::new(base, self.index_interval);
        let mut aborted = Vec::new();
        let mut dense = true;
        let start = ScanStart::of_segment(base);
        let mut scanner =
            BatchScanner::new(file, start, log_bytes, !self.may_have_gaps).below(successor);
        loop {
            let expected = scanner.next_offset();
            match scanner.next() {
                Ok(None) => break,
                Ok(Some((position, batch))) => {
                    dense &= batch.base_offset().0 == expected;
                    index.observe(batch.header(), position);
                    aborted.extend(producers.apply(&batch)?);
                }
                Err(error) => return Err(error.into_log_error(partition, expected, successor)),
            }
        }
        let found_end = scanner.next_offset();
        if found_end < successor && !self.may_have_gaps {
            return Err(LogError::Corrupt {
                partition: partition.clone(),
                from: Offset(found_end),
                to: Offset(successor),
                reason: "a segment ends too early".into(),
            });
        }
        // What may be missing at the end belongs to this segment, so that segments are neighbours always.
        dense &= found_end == successor;
        let end = successor;
        let content = SegmentContent {
            base,
            end,
            log_bytes,
            dense,
            index: &index,
            aborted: &aborted,
        };
        content.seal(&*environment.disk, dir)
    }
}
