//! One partition: its writer, and the seam to what readers see.
//!
//! INVARIANT: a batch is published after all its bytes are in the file, and offsets are given out in file order under the writer's lock, so the
//! published end of the active segment always lies between two whole batches. After a failed write the file is cut back there before
//! anything else is written.
//!
//! ORDER: append = write, then publish, then (by whoever waits) sync. Roll = sync the old segment, seal it, write the producer snapshot, create the new
//! segment; each durable before the next.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};

use crate::{
    batch::{BatchError, BatchView, ControlKind, ControlMarker, EncodedBatch},
    disk::DiskFile,
    embedded::{
        Environment,
        duplicates::ReplayCursors,
        group_commit::GroupCommit,
        layout::{self, SegmentFile},
        published::{ActiveSegment, Published},
        read_caches::ReadCaches,
        recovery_point,
        segment::SegmentContent,
        settings::PartitionSettings,
        small_file::{self, FileKind},
        snapshot,
    },
    error::{LogError, LogResult},
    log::{Appended, Offset, PartitionOffsets, ProducerId, ProducerState, TopicPartition},
    options::FsyncPolicy,
    producer::{AbortedTransaction, Admission, ProducerTable},
};

pub(crate) const LOG_START: FileKind = FileKind {
    name: "highwater-log-start",
    version: 1,
};

/// Snapshots kept: the one that recovery uses, and one more should it be damaged.
const SNAPSHOTS_KEPT: usize = 2;

/// An open partition.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(super) id: TopicPartition,
    pub(super) dir: PathBuf,
    pub(super) environment: Arc<Environment>,
    pub(super) settings: PartitionSettings,
    writer: Mutex<Writer>,
    pub(super) published: RwLock<Published>,
    pub(super) commit: GroupCommit,
    pub(super) caches: ReadCaches,
    pub(super) replays: ReplayCursors,
    /// The topic was deleted. Locked while the recovery point is written, so that a sync that is under way cannot write it into the folder of a
    /// new topic of that name.
    recovery_point_ends: Mutex<bool>,
}

/// A batch that is in the file and not visible yet.
struct Written {
    batch: BatchView,
    file: Arc<dyn DiskFile>,
    position: u64,
}

/// What only the writer needs.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) producers: ProducerTable,
    pub(crate) log_end: i64,
    /// A write failed half-way: the file has bytes behind its published end.
    torn: bool,
    /// The topic was deleted.
    deleted: bool,
    snapshots: Vec<i64>,
}

impl Writer {
    pub(crate) fn new(producers: ProducerTable, log_end: i64, snapshots: Vec<i64>) -> Self {
        Self {
            producers,
            log_end,
            torn: false,
            deleted: false,
            snapshots,
        }
    }
}

impl Partition {
    /// Puts a partition together from what recovery found; everything below `durable` is on disk.
    pub(crate) fn new(
        environment: Arc<Environment>,
        id: TopicPartition,
        settings: PartitionSettings,
        writer: Writer,
        published: Published,
        durable: i64,
    ) -> Self {
        let dir = layout::partition_dir(&environment.root, &id);
        Self {
            id,
            dir,
            environment,
            settings,
            writer: Mutex::new(writer),
            published: RwLock::new(published),
            commit: GroupCommit::new(durable),
            caches: ReadCaches::default(),
            replays: ReplayCursors::default(),
            recovery_point_ends: Mutex::new(false),
        }
    }

    /// Seals an active segment with gaps, which only a folder that Kafka wrote can have: what we append is dense, and is checked to be.
    pub(crate) fn seal_foreign(&self) -> LogResult<()> {
        let mut writer = self.lock_writer()?;
        let active = self.published.read().active.clone();
        match active.filter(|active| !active.dense) {
            Some(active) => self.roll(&mut writer, &active).map(drop),
            None => Ok(()),
        }
    }

    /// Appends one batch.
    pub(crate) fn append(&self, batch: EncodedBatch) -> LogResult<Appended> {
        if batch.len() > self.settings.max_batch_bytes {
            return Err(LogError::BatchTooLarge {
                partition: self.id.clone(),
                bytes: batch.len(),
                limit: self.settings.max_batch_bytes,
            });
        }
        if batch.is_empty() {
            return Err(BatchError::Field {
                field: "record count",
                value: 0,
            }
            .into());
        }
        let mut writer = self.lock_writer()?;
        if let Some(producer) = batch.producer() {
            match writer
                .producers
                .admit(&self.id, producer, batch.header().record_count)?
            {
                Admission::New => {}
                Admission::Duplicate(base_offset, last_offset) => {
                    return Ok(Appended {
                        base_offset,
                        last_offset,
                        duplicate: true,
                    });
                }
                Admission::OldDuplicate => {
                    drop(writer);
                    let (base_offset, last_offset) =
                        self.locate_duplicate(producer, batch.header().last_sequence())?;
                    return Ok(Appended {
                        base_offset,
                        last_offset,
                        duplicate: true,
                    });
                }
            }
        }
        let written = self.write(&mut writer, batch)?;
        let appended = Appended {
            base_offset: written.batch.base_offset(),
            last_offset: written.batch.last_offset(),
            duplicate: false,
        };
        writer.producers.apply_records(written.batch.header());
        writer
            .producers
            .forget_beyond(self.environment.options.max_producers);
        self.publish(&mut writer, written, None);
        Ok(appended)
    }

    /// Ends the producer's open transaction with a marker; `None` when it has none.
    pub(crate) fn end_transaction(
        &self,
        producer: ProducerId,
        epoch: i16,
        commit: bool,
    ) -> LogResult<Option<Offset>> {
        let mut writer = self.lock_writer()?;
        writer.producers.check_epoch(&self.id, producer, epoch)?;
        let entry = writer.producers.get(producer);
        let Some(entry) = entry.filter(|entry| entry.open_transaction.is_some()) else {
            return Ok(None);
        };
        let kind = if commit {
            ControlKind::Commit
        } else {
            ControlKind::Abort
        };
        let marker = ControlMarker {
            kind,
            coordinator_epoch: 0,
        };
        // A marker takes the time of the records it is about: the wall clock's would hide theirs from the time index, and a log that is written
        // again from the same batches would differ.
        let batch = marker.encode(producer, epoch, entry.last_timestamp);
        let written = self.write(&mut writer, batch)?;
        let offset = written.batch.base_offset();
        let header = written.batch.header();
        let aborted = writer.producers.apply_marker(header, marker);
        self.publish(&mut writer, written, aborted);
        Ok(Some(offset))
    }

    /// What is remembered of a producer.
    pub(crate) fn producer(&self, producer: ProducerId) -> Option<ProducerState> {
        self.writer.lock().producers.state(producer)
    }

    /// Waits until everything below `up_to` is on disk, if that is the policy.
    pub(crate) fn sync(&self, up_to: Offset) -> LogResult<()> {
        let log_end = self.published.read().log_end;
        if up_to.0 > log_end {
            return Err(self.out_of_range(up_to.0));
        }
        match self.environment.options.fsync {
            FsyncPolicy::Always => self.sync_to(up_to.0),
            FsyncPolicy::Interval(_) | FsyncPolicy::Never => self.commit.check(&self.id),
        }
    }

    /// Syncs whatever is not on disk yet, whatever the policy.
    pub(crate) fn sync_all(&self) -> LogResult<()> {
        let log_end = self.published.read().log_end;
        self.sync_to(log_end)
    }

    fn sync_to(&self, up_to: i64) -> LogResult<()> {
        self.commit.wait_for(&self.id, up_to, || {
            let (unsynced, end) = {
                let published = self.published.read();
                (published.unsynced_file(), published.log_end)
            };
            if let Some(file) = unsynced {
                file.sync_data()?;
                self.published.write().note_synced(end);
            }
            self.write_recovery_point(end);
            Ok(end)
        })
    }

    /// Current positions.
    pub(crate) fn offsets(&self) -> PartitionOffsets {
        // In this order, so that durable is never beyond the log end.
        let durable = self.commit.durable();
        self.published.read().offsets(durable)
    }

    /// Moves the log start and removes segments that lie before it as a whole.
    pub(crate) fn drop_below(&self, offset: Offset) -> LogResult<()> {
        let writer = self.lock_writer()?;
        if offset.0 > writer.log_end {
            return Err(self.out_of_range(offset.0));
        }
        if offset.0 <= self.published.read().log_start {
            return Ok(());
        }
        // ORDER: what lies below the new start is on disk before it, or a power cut could put the log's end before its start.
        self.sync_to(offset.0)?;
        let disk = &*self.environment.disk;
        // ORDER: the new start is durable before a segment goes, so recovery never finds a hole at the front.
        small_file::replace(
            disk,
            &self.dir.join(layout::LOG_START),
            &LOG_START.frame(offset.0.to_string().as_bytes()),
        )?;
        small_file::sync_dir(disk, &self.dir)?;
        let dropped = {
            let mut published = self.published.write();
            published.log_start = offset.0;
            published
                .aborted
                .retain(|transaction| transaction.last_offset >= offset.0);
            let kept_from = published
                .sealed
                .partition_point(|segment| segment.end() <= offset.0);
            published.sealed.drain(..kept_from).collect::<Vec<_>>()
        };
        for segment in dropped {
            self.caches.forget(segment.base());
            remove_segment(&self.environment, &self.dir, segment.base());
        }
        Ok(())
    }

    /// Stops the writer for good, before the files go.
    pub(crate) fn retire(&self) {
        self.writer.lock().deleted = true;
        *self.recovery_point_ends.lock() = true;
    }

    fn write_recovery_point(&self, offset: i64) {
        let ends = self.recovery_point_ends.lock();
        if !*ends {
            recovery_point::write(&self.environment.files, &self.dir, offset);
        }
    }

    /// Makes everything durable; part of a clean stop.
    pub(crate) fn close(&self) -> LogResult<()> {
        if self.writer.lock().deleted {
            return Ok(());
        }
        self.sync_all()
    }

    fn lock_writer(&self) -> LogResult<parking_lot::MutexGuard<'_, Writer>> {
        let writer = self.writer.lock();
        if writer.deleted {
            return Err(LogError::UnknownTopic {
                topic: self.id.topic.to_string(),
            });
        }
        self.commit.check(&self.id)?;
        Ok(writer)
    }

    /// Gives the batch its offsets and writes it behind the last one. Nothing is visible yet.
    fn write(&self, writer: &mut Writer, batch: EncodedBatch) -> LogResult<Written> {
        let (file, position) = self.make_room(writer, &batch)?;
        let batch = batch.stamp(Offset(writer.log_end));
        if let Err(error) = file.write_at(batch.as_bytes(), position) {
            writer.torn = true;
            return Err(self.io("append to")(error));
        }
        Ok(Written {
            batch,
            file,
            position,
        })
    }

    fn publish(&self, writer: &mut Writer, written: Written, aborted: Option<AbortedTransaction>) {
        let Written {
            batch,
            file,
            position,
        } = written;
        writer.log_end = batch.last_offset().0 + 1;
        let last_stable = writer
            .producers
            .first_open_offset()
            .unwrap_or(writer.log_end);
        self.published
            .write()
            .push(batch, file, position, last_stable, aborted);
    }

    /// The file that takes the batch, and where.
    fn make_room(
        &self,
        writer: &mut Writer,
        batch: &EncodedBatch,
    ) -> LogResult<(Arc<dyn DiskFile>, u64)> {
        let last_offset = writer.log_end + i64::from(batch.header().last_offset_delta);
        let (active, fits) = {
            let published = self.published.read();
            let fits = published.index.can_hold(last_offset);
            (published.active.clone(), fits)
        };
        let Some(active) = active else {
            return Ok((self.start_first_segment(writer)?, 0));
        };
        let file = active
            .file(&self.environment.files)
            .map_err(self.io("open the active segment of"))?;
        if writer.torn {
            file.truncate(active.bytes)
                .map_err(self.io("cut a failed write off"))?;
            writer.torn = false;
        }
        if active.bytes == 0
            || (fits && active.bytes + batch.len() as u64 <= self.settings.segment_bytes)
        {
            return Ok((file, active.bytes));
        }
        Ok((self.roll(writer, &active)?, 0))
    }

    fn start_first_segment(&self, writer: &Writer) -> LogResult<Arc<dyn DiskFile>> {
        let (path, file) = self.create_log_file(writer.log_end)?;
        self.published.write().start_segment(
            writer.log_end,
            path,
            self.settings.index_interval_bytes,
        );
        Ok(file)
    }

    /// Seals the active segment and starts the next one. When it fails, the old one goes on as the active one and the next append tries again.
    fn roll(&self, writer: &mut Writer, active: &ActiveSegment) -> LogResult<Arc<dyn DiskFile>> {
        if let Some(file) = &active.unsynced {
            let synced = file.sync_data().map(|()| writer.log_end);
            self.commit.note(&self.id, synced)?;
            self.published.write().note_synced(writer.log_end);
        }
        let (index, aborted) = {
            let published = self.published.read();
            let from = published
                .aborted
                .partition_point(|transaction| transaction.last_offset < active.base);
            (published.index.clone(), published.aborted[from..].to_vec())
        };
        let content = SegmentContent {
            base: active.base,
            end: writer.log_end,
            log_bytes: active.bytes,
            dense: active.dense,
            index: &index,
            aborted: &aborted,
        };
        let disk = &*self.environment.disk;
        let sealed = content.seal(disk, &self.dir)?;
        snapshot::write(disk, &self.dir, writer.log_end, &writer.producers)?;
        let (path, file) = self.create_log_file(writer.log_end)?;
        {
            let mut published = self.published.write();
            published.sealed.push(Arc::new(sealed));
            published.start_segment(writer.log_end, path, self.settings.index_interval_bytes);
        }
        self.write_recovery_point(writer.log_end);
        self.retire_snapshots(writer);
        Ok(file)
    }

    fn create_log_file(&self, base: i64) -> LogResult<(Arc<Path>, Arc<dyn DiskFile>)> {
        let disk = &*self.environment.disk;
        let path = SegmentFile::Log.path(&self.dir, base);
        // An attempt that failed behind this point may have left it, empty.
        self.environment.files.forget(&path);
        small_file::remove_if_there(disk, &path).map_err(self.io("start a segment of"))?;
        let file = disk.create(&path).map_err(self.io("start a segment of"))?;
        small_file::sync_dir(disk, &self.dir)?;
        Ok((path.into(), file))
    }

    fn retire_snapshots(&self, writer: &mut Writer) {
        writer.snapshots.push(writer.log_end);
        while writer.snapshots.len() > SNAPSHOTS_KEPT {
            let oldest = writer.snapshots.remove(0);
            let path = SegmentFile::Snapshot.path(&self.dir, oldest);
            if let Err(error) = small_file::remove_if_there(&*self.environment.disk, &path) {
                tracing::warn!(path = %path.display(), %error, "an old snapshot stays");
            }
        }
    }

    pub(super) fn out_of_range(&self, offset: i64) -> LogError {
        let published = self.published.read();
        LogError::OffsetOutOfRange {
            partition: self.id.clone(),
            offset: Offset(offset),
            log_start: Offset(published.log_start),
            log_end: Offset(published.log_end),
        }
    }

    fn io(&self, what: &'static str) -> impl FnOnce(io::Error) -> LogError + '_ {
        LogError::io(move || format!("{what} {}", self.id))
    }
}

/// Removes the files of a segment. What stays is removed when the partition is opened again.
pub(crate) fn remove_segment(environment: &Environment, dir: &Path, base: i64) {
    environment.files.forget(&SegmentFile::Log.path(dir, base));
    // ORDER: the log goes last, so that what is left after a crash is found by it.
    for kind in SegmentFile::ALL.into_iter().rev() {
        if kind == SegmentFile::Snapshot {
            continue;
        }
        let path = kind.path(dir, base);
        if let Err(error) = small_file::remove_if_there(&*environment.disk, &path) {
            tracing::warn!(path = %path.display(), %error, "a file of a dropped segment stays");
        }
    }
}

/// Removes a partition's folder with all that is in it; fine if it is gone.
pub(crate) fn remove_partition_dir(environment: &Environment, dir: &Path) -> LogResult<()> {
    let failed = || LogError::io(|| format!("remove \"{}\"", dir.display()));
    let names = match environment.disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(failed())?,
    };
    for name in names {
        let path = dir.join(name);
        environment.files.forget(&path);
        environment.disk.remove(&path).map_err(failed())?;
    }
    environment.disk.remove_dir(dir).map_err(failed())
}
