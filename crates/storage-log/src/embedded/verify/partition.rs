//! Checking one partition's folder.

use std::{io, path::Path, sync::Arc};

use crate::{
    batch::BatchView,
    disk::{Disk, DiskFile},
    embedded::{
        compaction::CompactionState,
        index::SegmentIndex,
        layout::{self, CLEANED, SegmentFile, TEMPORARY},
        log_start, recovery_point,
        scan::{BatchScanner, ScanError, ScanStart},
        segment::SealedSegment,
        small_file, snapshot,
    },
    error::{LogError, LogResult},
    log::TopicPartition,
};

use super::report::{Checked, Severity};

/// A partition to be checked.
pub(super) struct PartitionCheck<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) dir: &'a Path,
    pub(super) id: &'a TopicPartition,
}

/// What the small files say about the segments.
struct Expectations {
    log_start: i64,
    /// `None` when nothing is known to be on disk: a folder that Kafka wrote, or one whose point was torn.
    recovery_point: Option<i64>,
    gaps_below: i64,
}

/// A segment's file, and what must hold for its batches.
struct SegmentScan {
    file: Arc<dyn DiskFile>,
    base: i64,
    /// All offsets lie below this one.
    limit: i64,
    bytes: u64,
    dense: bool,
    index_interval: u32,
}

/// What a scan of a segment found.
struct Scan {
    end: i64,
    bytes: u64,
    index: SegmentIndex,
    damage: Option<String>,
}

impl PartitionCheck<'_> {
    pub(super) fn run(&self, checked: &mut Checked<'_>) -> LogResult<()> {
        let names = match self.disk.list(self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                checked.damage(self.dir, None, "the partition's folder is missing");
                return Ok(());
            }
            listed => {
                listed.map_err(LogError::io(|| format!("list \"{}\"", self.dir.display())))?
            }
        };
        if names.iter().any(|name| name == layout::EXCHANGE) {
            // Old and new files lie side by side until it is finished.
            checked.note(
                &self.dir.join(layout::EXCHANGE),
                "an exchange of segments was interrupted: open the log once, then check again",
            );
            return Ok(());
        }
        let Some(expectations) = self.check_small_files(checked)? else {
            return Ok(());
        };
        let mut bases = Vec::new();
        for name in &names {
            match SegmentFile::parse(name) {
                Some((SegmentFile::Log, base)) => bases.push(base),
                Some((SegmentFile::Snapshot, offset)) => self.check_snapshot(offset, checked)?,
                // Looked at beside their logs.
                Some(_) => {}
                None => self.check_other(name, checked),
            }
        }
        for name in &names {
            if let Some((kind, base)) = SegmentFile::parse(name)
                && kind != SegmentFile::Snapshot
                && !bases.contains(&base)
            {
                checked.note(&self.dir.join(name), "left from a segment that is gone");
            }
        }
        bases.sort_unstable();
        self.check_segments(&bases, &expectations, checked)
    }

    fn check_other(&self, name: &str, checked: &mut Checked<'_>) {
        let known = [
            layout::LOG_START,
            layout::RECOVERY_POINT,
            layout::COMPACTION,
            // Kafka's.
            "partition.metadata",
            "leader-epoch-checkpoint",
        ];
        let path = self.dir.join(name);
        match name.rsplit_once('.') {
            Some((_, TEMPORARY | CLEANED)) => {
                checked.note(&path, "left from a write that was interrupted");
            }
            _ if known.contains(&name) => {}
            _ => checked.note(&path, "nothing that the log has written"),
        }
    }

    /// `None` when they are so damaged that nothing can be said about the segments.
    fn check_small_files(&self, checked: &mut Checked<'_>) -> LogResult<Option<Expectations>> {
        let mut counted = |name: &str| -> LogResult<bool> {
            let bytes = small_file::read_whole(self.disk, &self.dir.join(name))?;
            checked.count(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64));
            Ok(bytes.is_some())
        };
        let has_point = counted(layout::RECOVERY_POINT)?;
        counted(layout::LOG_START)?;
        let has_compaction = counted(layout::COMPACTION)?;
        let recovery_point = recovery_point::read(self.disk, self.dir)?;
        if has_point && recovery_point.is_none() {
            checked.repairable(
                &self.dir.join(layout::RECOVERY_POINT),
                "its checksum does not match",
            );
        }
        let compaction = CompactionState::read(self.disk, self.dir)?;
        if has_compaction && compaction == CompactionState::default() {
            checked.repairable(
                &self.dir.join(layout::COMPACTION),
                "its checksum does not match",
            );
        }
        match log_start::read(self.disk, self.dir) {
            Ok(log_start) => Ok(Some(Expectations {
                log_start: log_start.unwrap_or(0),
                recovery_point,
                gaps_below: compaction.gaps_below,
            })),
            Err(error @ LogError::CorruptFile { .. }) => {
                checked.damage(&self.dir.join(layout::LOG_START), None, error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn check_snapshot(&self, offset: i64, checked: &mut Checked<'_>) -> LogResult<()> {
        let path = SegmentFile::Snapshot.path(self.dir, offset);
        let bytes = small_file::read_whole(self.disk, &path)?.unwrap_or_default();
        checked.count(bytes.len() as u64);
        if snapshot::read(self.disk, self.dir, offset)?.is_none() {
            checked.repairable(&path, "the producers' snapshot is damaged");
        }
        Ok(())
    }

    fn check_segments(
        &self,
        bases: &[i64],
        expectations: &Expectations,
        checked: &mut Checked<'_>,
    ) -> LogResult<()> {
        let foreign = expectations.recovery_point.is_none();
        match bases.first() {
            Some(&first) if first > expectations.log_start && !foreign => {
                let missing = (expectations.log_start, first);
                checked.damage(self.dir, Some(missing), "the first segments are missing");
            }
            None if expectations
                .recovery_point
                .is_some_and(|point| point > expectations.log_start) =>
            {
                let missing = (
                    expectations.log_start,
                    expectations.recovery_point.unwrap_or(0),
                );
                checked.damage(self.dir, Some(missing), "all segments are missing");
            }
            _ => {}
        }
        for (at, &base) in bases.iter().enumerate() {
            checked.report.segments += 1;
            match bases.get(at + 1) {
                Some(&successor) => {
                    let may_have_gaps = foreign || base < expectations.gaps_below;
                    self.check_sealed(base, successor, may_have_gaps, checked)?;
                }
                None => self.check_active(base, expectations, checked)?,
            }
        }
        Ok(())
    }

    fn check_sealed(
        &self,
        base: i64,
        successor: i64,
        may_have_gaps: bool,
        checked: &mut Checked<'_>,
    ) -> LogResult<()> {
        let path = SegmentFile::Log.path(self.dir, base);
        let seal =
            SealedSegment::load(self.disk, self.dir, base)?.filter(|seal| seal.end() == successor);
        let dense = seal.as_ref().map_or(!may_have_gaps, SealedSegment::dense);
        let index_interval = seal.as_ref().map_or(0, SealedSegment::index_interval);
        let (file, bytes) = self.open(&path)?;
        let segment = SegmentScan {
            file,
            base,
            limit: successor,
            bytes,
            dense,
            index_interval,
        };
        let scan = self.scan(segment, checked)?;
        if let Some(damage) = scan.damage {
            checked.damage(&path, Some((scan.end, successor)), damage);
            return Ok(());
        }
        if scan.end != successor && dense || scan.end > successor {
            let range = (scan.end.min(successor), scan.end.max(successor));
            checked.damage(
                &path,
                Some(range),
                "the segment does not end where the next one begins",
            );
        }
        let seal_path = SegmentFile::Seal.path(self.dir, base);
        let seal_bytes = small_file::read_whole(self.disk, &seal_path)?.unwrap_or_default();
        checked.count(seal_bytes.len() as u64);
        let Some(seal) = seal else {
            checked.repairable(&seal_path, "the seal is missing or damaged");
            return Ok(());
        };
        if seal.log_bytes() != bytes {
            let what = format!(
                "the segment has {bytes} bytes, {} were sealed",
                seal.log_bytes()
            );
            checked.damage(&path, Some((base, successor)), what);
        }
        if !seal.vouches_for_offsets(scan.index.offsets_crc()) {
            checked.damage(
                &path,
                Some((base, successor)),
                "the offsets are not those that were sealed",
            );
        }
        self.check_indexes(&seal, &scan.index, checked)
    }

    fn check_indexes(
        &self,
        seal: &SealedSegment,
        index: &SegmentIndex,
        checked: &mut Checked<'_>,
    ) -> LogResult<()> {
        let mut index = index.clone();
        index.seal();
        let kinds = [
            (SegmentFile::OffsetIndex, Some(index.encode_offsets())),
            (SegmentFile::TimeIndex, Some(index.encode_times())),
            // What was aborted follows from earlier segments too, which may be gone.
            (SegmentFile::TransactionIndex, None),
        ];
        for (kind, made_again) in kinds {
            let path = kind.path(self.dir, seal.base());
            let stored = small_file::read_whole(self.disk, &path)?;
            checked.count(stored.as_ref().map_or(0, |bytes| bytes.len() as u64));
            let what = match stored {
                None => "the index is missing",
                Some(stored) if !seal.vouches_for(kind, &stored) => {
                    "the index is not what was sealed"
                }
                Some(stored) if made_again.is_some_and(|made_again| made_again != stored) => {
                    "the index is not what the segment gives"
                }
                Some(_) => continue,
            };
            checked.repairable(&path, what);
        }
        Ok(())
    }

    fn check_active(
        &self,
        base: i64,
        expectations: &Expectations,
        checked: &mut Checked<'_>,
    ) -> LogResult<()> {
        let path = SegmentFile::Log.path(self.dir, base);
        let (file, bytes) = self.open(&path)?;
        let segment = SegmentScan {
            file,
            base,
            limit: base + i64::from(i32::MAX),
            bytes,
            dense: expectations.recovery_point.is_some(),
            index_interval: 0,
        };
        let scan = self.scan(segment, checked)?;
        let acknowledged = expectations
            .recovery_point
            .unwrap_or(0)
            .max(expectations.log_start);
        if scan.end < acknowledged {
            let what = scan
                .damage
                .unwrap_or_else(|| "the file ends too early".into());
            checked.damage(&path, Some((scan.end, acknowledged)), what);
        } else if let Some(damage) = scan.damage {
            let rest = bytes - scan.bytes;
            let what = format!(
                "{rest} bytes behind offset {} that were never acknowledged, the next start cuts them off: {damage}",
                scan.end
            );
            checked.find(Severity::Note, &path, None, what);
        }
        Ok(())
    }

    fn open(&self, path: &Path) -> LogResult<(Arc<dyn DiskFile>, u64)> {
        let failed = || LogError::io(|| format!("read \"{}\"", path.display()));
        let file = self.disk.open(path).map_err(failed())?;
        let bytes = file.len().map_err(failed())?;
        Ok((file, bytes))
    }

    fn scan(&self, segment: SegmentScan, checked: &mut Checked<'_>) -> LogResult<Scan> {
        let SegmentScan {
            file,
            base,
            limit,
            bytes,
            dense,
            index_interval,
        } = segment;
        let start = ScanStart::of_segment(base);
        let mut scanner = BatchScanner::new(file, start, bytes, dense).below(limit);
        let mut scan = Scan {
            end: base,
            bytes: 0,
            index: SegmentIndex::new(base, index_interval),
            damage: None,
        };
        loop {
            let (position, batch) = match scanner.next() {
                Ok(None) => return Ok(scan),
                Ok(Some(next)) => next,
                Err(ScanError::Io(source)) => {
                    return Err(LogError::io(|| format!("read {}", self.id))(source));
                }
                Err(damage) => {
                    scan.damage = Some(damage.to_string());
                    return Ok(scan);
                }
            };
            match check_records(&batch) {
                Ok(records) => checked.report.records += records,
                Err(error) => {
                    scan.damage = Some(error.to_string());
                    return Ok(scan);
                }
            }
            checked.report.batches += 1;
            checked.count(batch.byte_len() as u64);
            scan.index.observe(batch.header(), position);
            scan.end = batch.last_offset().0 + 1;
            scan.bytes = position + batch.byte_len() as u64;
        }
    }
}

/// Decodes everything in a batch.
fn check_records(batch: &BatchView) -> LogResult<u64> {
    let mut count = 0;
    for record in &batch.records()? {
        for header in record?.headers() {
            header?;
        }
        count += 1;
    }
    if batch.is_control() {
        batch.control()?;
    }
    Ok(count)
}
