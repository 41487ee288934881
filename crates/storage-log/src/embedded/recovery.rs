//! Opening a partition: what is there, what of it is whole, and what follows for producers and readers.
//!
//! Only the last segment is searched for a torn tail; sealed ones are taken at their seal's word and checked batch by batch when they are read. In the
//! last segment the first invalid batch ends the log if nothing at or behind it was ever acknowledged (the recovery point says so): then the
//! file is cut there. Otherwise the partition does not open and the error names the offsets. What lies behind the recovery point is written and synced once
//! more before it counts.

use std::{collections::BTreeSet, io, path::PathBuf, sync::Arc};

use crate::{
    disk::DiskFile,
    embedded::{
        Environment,
        compaction::{self, CompactionState},
        index::SegmentIndex,
        layout::{self, SegmentFile, TEMPORARY},
        log_start,
        partition::{Partition, Writer},
        published::{ActiveSegment, Published},
        recovery_point,
        removal::remove_segment,
        scan::{BatchScanner, SCAN_CHUNK_BYTES, ScanError, ScanStart},
        segment::{SealedSegment, UnsealedSegment},
        settings::PartitionSettings,
        small_file, snapshot,
        tail::Tail,
    },
    error::{LogError, LogResult},
    log::{Offset, TopicPartition},
    options::FsyncPolicy,
    producer::ProducerTable,
};

/// Opens a partition whose folder exists.
pub(crate) fn open_partition(
    environment: &Arc<Environment>,
    id: TopicPartition,
    settings: PartitionSettings,
) -> LogResult<Partition> {
    let dir = layout::partition_dir(&environment.root, &id);
    let recovery = Recovery {
        environment,
        id: &id,
        dir: &dir,
        settings,
    };
    compaction::recover(environment, &dir)?;
    let compaction = CompactionState::read(&*environment.disk, &dir)?;
    let (writer, published, durable) = recovery.run(compaction)?;
    let partition = Partition::new(
        Arc::clone(environment),
        id,
        settings,
        writer,
        published,
        durable,
        compaction,
    );
    partition.seal_foreign()?;
    Ok(partition)
}

/// Writes that part of a file once more. A sync may have failed before the process ended, and the operating system then takes what it could not write for
/// written: it is read back from memory, but no later sync would bring it to the disk.
fn write_again(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let mut position = from;
    while position < to {
        // Bounded by the chunk.
        let len = (to - position).min(SCAN_CHUNK_BYTES as u64) as usize;
        let mut bytes = vec![0; len];
        let read = file.read_at(&mut bytes, position)?;
        file.write_at(&bytes[..read], position)?;
        position += len as u64;
    }
    Ok(())
}

struct Recovery<'a> {
    environment: &'a Arc<Environment>,
    id: &'a TopicPartition,
    dir: &'a PathBuf,
    settings: PartitionSettings,
}

/// What a folder holds.
struct Folder {
    /// Bases of the segments, in order.
    bases: Vec<i64>,
    snapshots: BTreeSet<i64>,
}

impl Recovery<'_> {
    fn run(&self, compaction: CompactionState) -> LogResult<(Writer, Published, i64)> {
        let mut folder = self.list()?;
        let recovery_point = recovery_point::read(&*self.environment.disk, self.dir)?;
        let log_start = self.log_start(&mut folder, recovery_point)?;
        let Some((&active_base, sealed_bases)) = folder.bases.split_last() else {
            if let Some(acknowledged) = recovery_point.filter(|point| *point > log_start) {
                return Err(self.corrupt(log_start, acknowledged, "all segments are missing"));
            }
            let writer = Writer::new(ProducerTable::default(), log_start, Vec::new());
            return Ok((writer, self.empty(log_start), log_start));
        };

        let loaded = self.load_sealed(sealed_bases, active_base)?;
        // What a segment that has to be scanned is about may have begun before it; those behind the last such one are left alone if a snapshot spares them.
        let first_scanned = loaded.iter().position(Option::is_none);
        let last_scanned = loaded.iter().rposition(Option::is_none);
        let (mut producers, mut from) =
            self.newest_snapshot(&folder, first_scanned.unwrap_or(loaded.len()))?;
        let mut sealed = Vec::with_capacity(loaded.len());
        for (at, loaded) in loaded.into_iter().enumerate() {
            let base = folder.bases[at];
            if last_scanned.is_some_and(|last| at == last + 1) {
                let (known, spared) = self.newest_snapshot(&folder, sealed_bases.len())?;
                if spared > at {
                    (producers, from) = (known, spared);
                }
            }
            let successor = folder.bases[at + 1];
            let segment = match loaded {
                Some(segment) => {
                    if at >= from {
                        self.replay(&segment, &mut producers)?;
                    }
                    segment
                }
                None => UnsealedSegment {
                    environment: self.environment,
                    partition: self.id,
                    dir: self.dir,
                    index_interval: self.settings.index_interval_bytes,
                    base,
                    successor,
                    may_have_gaps: recovery_point.is_none() || base < compaction.gaps_below,
                }
                .rebuild(&mut producers)?,
            };
            sealed.push(Arc::new(segment));
        }

        let mut published = self.empty(log_start);
        published.sealed = sealed;
        self.recover_active(active_base, recovery_point, &mut producers, &mut published)?;
        published.last_stable = producers.first_open_offset().unwrap_or(published.log_end);
        let snapshots = folder
            .snapshots
            .iter()
            .copied()
            .filter(|offset| *offset <= active_base)
            .collect();
        let log_end = published.log_end;
        let mut writer = Writer::new(producers, log_end, snapshots);
        if published
            .active
            .as_ref()
            .is_some_and(|active| active.bytes > 0)
        {
            // Nobody knows when the segment began. From now on is late at worst by the time that a process runs.
            writer.segment_began = Some(self.environment.clock.now_ms());
        }
        Ok((writer, published, log_end))
    }

    fn list(&self) -> LogResult<Folder> {
        let disk = &*self.environment.disk;
        let names = disk
            .list(self.dir)
            .map_err(LogError::io(|| format!("list \"{}\"", self.dir.display())))?;
        let mut folder = Folder {
            bases: Vec::new(),
            snapshots: BTreeSet::new(),
        };
        for name in names {
            if name
                .rsplit_once('.')
                .is_some_and(|(_, extension)| extension == TEMPORARY)
            {
                let path = self.dir.join(&name);
                small_file::remove_if_there(disk, &path)
                    .map_err(LogError::io(|| format!("remove \"{}\"", path.display())))?;
            }
            match SegmentFile::parse(&name) {
                Some((SegmentFile::Log, base)) => folder.bases.push(base),
                Some((SegmentFile::Snapshot, offset)) => drop(folder.snapshots.insert(offset)),
                _ => {}
            }
        }
        folder.bases.sort_unstable();
        Ok(folder)
    }

    /// Where the log begins; finishes the removal of segments before it.
    fn log_start(&self, folder: &mut Folder, recovery_point: Option<i64>) -> LogResult<i64> {
        let stored = log_start::read(&*self.environment.disk, self.dir)?;
        let first = folder.bases.first().copied();
        let log_start = match (stored, first) {
            (Some(stored), _) => stored,
            // A folder that Kafka wrote may begin anywhere; one of ours says so in its file.
            (None, Some(first)) if recovery_point.is_none() => first,
            (None, _) => 0,
        };
        let dropped = folder
            .bases
            .iter()
            .skip(1)
            .take_while(|successor| **successor <= log_start)
            .count();
        if dropped > 0 {
            // ORDER: the process may have been killed before it made the new log start durable; the segments may go only after that.
            small_file::sync_dir(&*self.environment.disk, self.dir)?;
        }
        for base in folder.bases.drain(..dropped) {
            remove_segment(self.environment, self.dir, base);
        }
        match folder.bases.first() {
            Some(&first) if first > log_start => {
                Err(self.corrupt(log_start, first, "the first segments are missing"))
            }
            _ => Ok(log_start),
        }
    }

    fn load_sealed(
        &self,
        bases: &[i64],
        active_base: i64,
    ) -> LogResult<Vec<Option<SealedSegment>>> {
        let disk = &*self.environment.disk;
        let successors = bases.iter().skip(1).chain([&active_base]);
        let mut loaded = Vec::with_capacity(bases.len());
        for (&base, &successor) in bases.iter().zip(successors) {
            // A seal that does not reach the successor is left from an attempt to seal the segment that a crash undid.
            let segment = SealedSegment::load(disk, self.dir, base)?
                .filter(|segment| segment.end() == successor);
            loaded.push(segment);
        }
        Ok(loaded)
    }

    /// The newest usable snapshot in front of that segment or an earlier one, and the number of the segment it stands in front of.
    fn newest_snapshot(
        &self,
        folder: &Folder,
        segment: usize,
    ) -> LogResult<(ProducerTable, usize)> {
        for at in (0..=segment).rev() {
            let base = folder.bases[at];
            if folder.snapshots.contains(&base)
                && let Some(producers) = snapshot::read(&*self.environment.disk, self.dir, base)?
            {
                return Ok((producers, at));
            }
        }
        Ok((ProducerTable::default(), 0))
    }

    /// Learns about producers from a segment that is whole otherwise.
    fn replay(&self, segment: &SealedSegment, producers: &mut ProducerTable) -> LogResult<()> {
        segment.check_offsets(self.environment, self.id, self.dir)?;
        let file = segment.open(self.environment, self.dir)?;
        let start = ScanStart::of_segment(segment.base());
        let mut scanner = BatchScanner::new(file, start, segment.log_bytes(), segment.dense())
            .below(segment.end());
        loop {
            let expected = scanner.next_offset();
            match scanner.next() {
                Ok(None) => return Ok(()),
                Ok(Some((_, batch))) => drop(producers.apply(&batch)?),
                Err(error) => return Err(error.into_log_error(self.id, expected, segment.end())),
            }
        }
    }

    /// Scans the last segment, cuts a torn tail and makes sure that what remains is on disk.
    fn recover_active(
        &self,
        base: i64,
        recovery_point: Option<i64>,
        producers: &mut ProducerTable,
        published: &mut Published,
    ) -> LogResult<()> {
        let disk = &*self.environment.disk;
        let path = SegmentFile::Log.path(self.dir, base);
        let failed = || LogError::io(|| format!("recover \"{}\"", path.display()));
        let file = self.environment.files.get(&path).map_err(failed())?;
        let file_bytes = file.len().map_err(failed())?;
        let interval = self.settings.index_interval_bytes;
        published.start_segment(base, path.clone().into(), interval);
        published.log_end = base;

        // Without a recovery point the folder may be one that Kafka wrote, where compaction may have left gaps.
        let mut dense = true;
        let mut scanner = BatchScanner::new(
            Arc::clone(&file),
            ScanStart::of_segment(base),
            file_bytes,
            recovery_point.is_some(),
        )
        .below(base + i64::from(i32::MAX));
        // The log start was synced up to before it was moved.
        let acknowledged = recovery_point.unwrap_or(0).max(published.log_start);
        // Where the first batch begins of which nothing says that it was synced.
        let mut unproven = None;
        let torn = loop {
            match scanner.next() {
                Ok(None) => break None,
                Ok(Some((position, batch))) => {
                    if unproven.is_none() && batch.last_offset().0 >= acknowledged {
                        unproven = Some(position);
                    }
                    let aborted = producers.apply(&batch)?;
                    dense &= batch.base_offset().0 == published.log_end;
                    published.push(batch, position);
                    published.settle(0, aborted);
                }
                Err(ScanError::Io(source)) => return Err(failed()(source)),
                Err(damage) => break Some(damage),
            }
        };
        let log_end = published.log_end;
        if log_end < acknowledged {
            let reason = torn.map_or_else(
                || "the file ends too early".into(),
                |damage| damage.to_string(),
            );
            return Err(self.corrupt(log_end, acknowledged, reason));
        }
        if let Some(damage) = &torn {
            tracing::warn!(
                partition = %self.id, offset = log_end, bytes = file_bytes - scanner.position(), %damage,
                "cut a tail that was never acknowledged"
            );
            file.truncate(scanner.position()).map_err(failed())?;
        }
        if let Some(from) =
            unproven.filter(|_| self.environment.options.fsync != FsyncPolicy::Never)
        {
            write_again(&*file, from, scanner.position()).map_err(failed())?;
        }
        // ORDER: nothing that was found is acknowledged, and nothing is appended, before it is as durable as it looks. That goes for the name of the
        // file too: the process may have been killed between creating it and syncing the folder.
        if torn.is_some() || recovery_point != Some(log_end) {
            file.sync_data().map_err(failed())?;
        }
        small_file::sync_dir(disk, self.dir)?;
        // A recovery point says as well that the segment has no gaps.
        if dense {
            recovery_point::write(&self.environment.files, self.dir, log_end);
        }
        if let Some(active) = &mut published.active {
            active.dense = dense;
        }
        let mark = published.sync_mark();
        published.note_synced(mark);
        Ok(())
    }

    fn empty(&self, log_start: i64) -> Published {
        Published {
            sealed: Vec::new(),
            active: None::<ActiveSegment>,
            index: SegmentIndex::new(log_start, self.settings.index_interval_bytes),
            log_start,
            log_end: log_start,
            last_stable: log_start,
            aborted: Vec::new(),
            tail: Tail::new(Arc::clone(&self.environment.tails)),
            generation: 0,
        }
    }

    fn corrupt(&self, from: i64, to: i64, reason: impl Into<String>) -> LogError {
        LogError::Corrupt {
            partition: self.id.clone(),
            from: Offset(from),
            to: Offset(to),
            reason: reason.into(),
        }
    }
}
