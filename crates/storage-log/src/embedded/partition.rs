//! One partition: its writer, and the seam to what readers see.
//!
//! INVARIANT: a batch is published after all its bytes are in the file, and offsets are given out in file order under the writer's lock, so the
//! published end of the active segment always lies between two whole batches. After a failed write the file is cut back there before
//! anything else is written.
//!
//! ORDER: append = write, then publish, then (by whoever waits) sync. [`super::produce`] does it for several batches with one write.

use std::{
    collections::HashSet,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};

use crate::{
    batch::{BatchError, BatchHeader, BatchView, ControlKind, ControlMarker, EncodedBatch},
    disk::DiskFile,
    embedded::{
        Environment,
        admission::Admission,
        compaction::CompactionState,
        duplicates::{self, ReplayCursors},
        group_commit::GroupCommit,
        layout,
        produce::Desk,
        published::Published,
        read_caches::ReadCursors,
        recovery_point,
        settings::PartitionSettings,
    },
    error::{LogError, LogResult},
    log::{Appended, Offset, PartitionOffsets, ProducerId, ProducerState, TopicPartition},
    options::FsyncPolicy,
    producer::{self, AbortedTransaction, ProducerTable},
};

/// An open partition.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(super) id: TopicPartition,
    pub(super) dir: PathBuf,
    pub(super) environment: Arc<Environment>,
    settings: RwLock<PartitionSettings>,
    admission: Admission,
    pub(super) writer: Mutex<Writer>,
    /// Where batches are put together for whoever is told of them later.
    pub(super) desk: Mutex<Desk>,
    pub(super) published: RwLock<Published>,
    pub(super) commit: GroupCommit,
    pub(super) cursors: ReadCursors,
    pub(super) replays: ReplayCursors,
    /// Held while the partition is compacted, which ends soon after it is over.
    pub(super) compacting: Mutex<()>,
    pub(super) compaction: Mutex<CompactionState>,
    /// Held while segments are removed or exchanged, so that this happens one at a time and not in a folder that is being deleted.
    pub(super) removing: Mutex<()>,
    /// Retention and compaction stay below this offset.
    held_from: AtomicI64,
    /// The topic was deleted. Locked while the recovery point is written, so that a sync that is under way cannot write it into the folder of a
    /// new topic of that name.
    recovery_point_ends: Mutex<bool>,
}

/// What only the writer needs.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) producers: ProducerTable,
    pub(crate) log_end: i64,
    /// A write failed half-way: the file has bytes behind its published end.
    pub(super) torn: bool,
    /// The topic was deleted.
    deleted: bool,
    pub(super) snapshots: Vec<i64>,
    /// When the active segment took its first batch, as far as it is known (milliseconds since the epoch).
    pub(super) segment_began: Option<i64>,
}

impl Writer {
    pub(crate) fn new(producers: ProducerTable, log_end: i64, snapshots: Vec<i64>) -> Self {
        Self {
            producers,
            log_end,
            torn: false,
            deleted: false,
            snapshots,
            segment_began: None,
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
        compaction: CompactionState,
    ) -> Self {
        let dir = layout::partition_dir(&environment.root, &id);
        Self {
            id,
            dir,
            environment,
            admission: Admission::new(&settings),
            settings: RwLock::new(settings),
            writer: Mutex::new(writer),
            desk: Mutex::default(),
            published: RwLock::new(published),
            commit: GroupCommit::new(durable),
            cursors: ReadCursors::default(),
            replays: ReplayCursors::default(),
            compacting: Mutex::new(()),
            compaction: Mutex::new(compaction),
            removing: Mutex::new(()),
            held_from: AtomicI64::new(i64::MAX),
            recovery_point_ends: Mutex::new(false),
        }
    }

    pub(super) fn settings(&self) -> PartitionSettings {
        *self.settings.read()
    }

    /// The topic was altered; what is appended from now on follows these.
    pub(crate) fn change_settings(&self, settings: PartitionSettings) {
        *self.settings.write() = settings;
        self.admission.change(&settings);
    }

    /// Retention and compaction stay below `from`.
    pub(crate) fn hold_from(&self, from: Option<Offset>) {
        self.held_from
            .store(from.map_or(i64::MAX, |from| from.0), Ordering::Release);
    }

    /// What [`Self::hold_from`] was last told.
    pub(crate) fn held_from(&self) -> Option<Offset> {
        let from = self.held_from.load(Ordering::Acquire);
        (from < i64::MAX).then_some(Offset(from))
    }

    /// Nobody needs what lies below this offset as it is: it is committed and not held.
    pub(super) fn settled_below(&self) -> i64 {
        let held = self.held_from.load(Ordering::Acquire);
        self.published.read().last_stable.min(held)
    }

    /// Appends one batch.
    pub(crate) fn append(&self, batch: EncodedBatch) -> LogResult<Appended> {
        self.append_admitted(self.admitted(batch)?)
    }

    pub(super) fn append_admitted(&self, batch: EncodedBatch) -> LogResult<Appended> {
        let mut writer = self.lock_writer()?;
        match self.judge(&writer, batch.header())? {
            producer::Admission::New => {}
            producer::Admission::Duplicate(base, last) => {
                return Ok(Appended::before((base, last)));
            }
            producer::Admission::OldDuplicate => {
                drop(writer);
                let last_sequence = batch.header().last_sequence();
                let found = batch
                    .producer()
                    .map(|producer| self.locate_duplicate(producer, last_sequence));
                return found.unwrap_or(Ok(duplicates::GONE)).map(Appended::before);
            }
        }
        let (appended, unsynced) = self.append_one(&mut writer, batch)?;
        writer
            .producers
            .forget_beyond(self.environment.options.max_producers);
        drop(writer);
        self.environment.listeners.notify(&self.id);
        self.bound_unsynced(unsynced, appended.last_offset.0 + 1)?;
        Ok(appended)
    }

    /// Whether the batch may be appended, or was before.
    pub(super) fn judge(
        &self,
        writer: &Writer,
        header: &BatchHeader,
    ) -> LogResult<producer::Admission> {
        self.check_writable(writer)?;
        match header.producer() {
            Some(producer) => {
                let records = header.record_count;
                writer.producers.admit(&self.id, producer, records)
            }
            None => Ok(producer::Admission::New),
        }
    }

    /// Writes one batch that was judged and makes it visible; answers how many bytes are not synced now.
    pub(super) fn append_one(
        &self,
        writer: &mut Writer,
        batch: EncodedBatch,
    ) -> LogResult<(Appended, u64)> {
        self.check_writable(writer)?;
        let (batch, file, position) = self.write(writer, batch)?;
        let appended = Appended {
            base_offset: batch.base_offset(),
            last_offset: batch.last_offset(),
            duplicate: false,
        };
        writer.producers.apply_records(batch.header());
        let unsynced = self.publish(writer, [batch], &file, position, None);
        Ok((appended, unsynced))
    }

    /// The batch as the topic's settings want it.
    pub(super) fn admitted(&self, batch: EncodedBatch) -> LogResult<EncodedBatch> {
        if batch.is_empty() {
            return Err(BatchError::Field {
                field: "record count",
                value: 0,
            }
            .into());
        }
        let batch = if self.admission.stored_as_they_come() {
            batch
        } else {
            self.converted(batch)?
        };
        let limit = self.admission.max_batch_bytes();
        if batch.len() > limit {
            return Err(LogError::BatchTooLarge {
                partition: self.id.clone(),
                bytes: batch.len(),
                limit,
            });
        }
        Ok(batch)
    }

    /// The batch under the topic's codec, with the log's time if that is what the topic wants.
    fn converted(&self, batch: EncodedBatch) -> LogResult<EncodedBatch> {
        let settings = self.settings();
        let batch = match settings.compression {
            Some(codec) => batch.with_compression(codec)?,
            None => batch,
        };
        Ok(if settings.log_append_time {
            batch.with_append_time(self.environment.clock.now_ms())
        } else {
            batch
        })
    }

    /// Back-pressure: whoever makes the part that is not synced too large waits for the disk.
    pub(super) fn bound_unsynced(&self, unsynced: u64, end: i64) -> LogResult<()> {
        let bounded = self.environment.options.fsync != FsyncPolicy::Never;
        if bounded && unsynced > self.environment.options.max_unsynced_bytes {
            self.sync_to(end)?;
        }
        Ok(())
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
        let (batch, file, position) = self.write(&mut writer, batch)?;
        let offset = batch.base_offset();
        let aborted = writer.producers.apply_marker(batch.header(), marker);
        self.publish(&mut writer, [batch], &file, position, aborted);
        drop(writer);
        self.environment.listeners.notify(&self.id);
        Ok(Some(offset))
    }

    /// What is remembered of a producer.
    pub(crate) fn producer(&self, producer: ProducerId) -> Option<ProducerState> {
        self.writer.lock().producers.state(producer)
    }

    /// Producers with an open transaction, and their epochs.
    pub(crate) fn open_transactions(&self) -> Vec<(ProducerId, i16)> {
        self.writer.lock().producers.open_transactions()
    }

    /// Offsets at which the newest batch and marker of each producer end: what a restart learns their sequences from.
    pub(super) fn newest_of_producers(&self) -> HashSet<i64> {
        self.writer.lock().producers.newest_offsets()
    }

    /// Current positions.
    pub(crate) fn offsets(&self) -> PartitionOffsets {
        // In this order, so that durable is never beyond the log end.
        let durable = self.commit.durable();
        self.published.read().offsets(durable)
    }

    /// Stops the writer for good, before the files go.
    pub(crate) fn retire(&self) {
        self.writer.lock().deleted = true;
        *self.recovery_point_ends.lock() = true;
        self.wait_for_maintenance();
    }

    /// A sync failed.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.commit.check(&self.id).is_err()
    }

    /// Leaves the files of a poisoned partition to its successor: nothing is written after this returns, and no handle that has seen the failure is used.
    pub(crate) fn abandon(&self) {
        debug_assert!(
            self.is_poisoned(),
            "a partition that works is not abandoned"
        );
        // Whoever got the lock before the failure is done with it now; later ones are refused.
        drop(self.writer.lock());
        *self.recovery_point_ends.lock() = true;
        self.wait_for_maintenance();
        self.environment.files.forget_below(&self.dir);
    }

    /// What is removing or exchanging segments ends before the folder goes or somebody else takes it.
    fn wait_for_maintenance(&self) {
        drop(self.compacting.lock());
        drop(self.removing.lock());
    }

    /// The topic was deleted, or a successor has the files.
    pub(super) fn is_over(&self) -> bool {
        *self.recovery_point_ends.lock()
    }

    pub(super) fn write_recovery_point(&self, offset: i64) {
        let ends = self.recovery_point_ends.lock();
        if !*ends {
            recovery_point::write(&self.environment.files, &self.dir, offset);
        }
    }

    /// Makes everything durable; part of a clean stop.
    pub(crate) fn close(&self) -> LogResult<()> {
        if self.is_over() {
            return Ok(());
        }
        self.sync_all()
    }

    pub(super) fn lock_writer(&self) -> LogResult<parking_lot::MutexGuard<'_, Writer>> {
        let writer = self.writer.lock();
        self.check_writable(&writer)?;
        Ok(writer)
    }

    /// Fails once the topic was deleted or a sync failed.
    pub(super) fn check_writable(&self, writer: &Writer) -> LogResult<()> {
        if writer.deleted {
            return Err(LogError::UnknownTopic {
                topic: self.id.topic.to_string(),
            });
        }
        self.commit.check(&self.id)
    }

    /// Gives the batch its offsets and writes it behind the last one. Nothing is visible yet.
    fn write(
        &self,
        writer: &mut Writer,
        batch: EncodedBatch,
    ) -> LogResult<(BatchView, Arc<dyn DiskFile>, u64)> {
        let offsets = i64::from(batch.header().last_offset_delta) + 1;
        let (file, position) = self.make_room(writer, batch.len() as u64, offsets)?;
        let batch = batch.stamp(Offset(writer.log_end));
        if let Err(error) = file.write_at(batch.as_bytes(), position) {
            writer.torn = true;
            return Err(self.io("append to")(error));
        }
        Ok((batch, file, position))
    }

    /// Makes batches visible that stand in the file one behind the other, from `position` on; answers how many bytes are not synced now.
    pub(super) fn publish(
        &self,
        writer: &mut Writer,
        batches: impl IntoIterator<Item = BatchView>,
        file: &Arc<dyn DiskFile>,
        mut position: u64,
        aborted: Option<AbortedTransaction>,
    ) -> u64 {
        let mut published = self.published.write();
        for batch in batches {
            let bytes = batch.byte_len() as u64;
            published.push(batch, position);
            position += bytes;
        }
        writer.log_end = published.log_end;
        let last_stable = writer
            .producers
            .first_open_offset()
            .unwrap_or(writer.log_end);
        published.settle(last_stable, aborted);
        published.hold_unsynced(file);
        published.unsynced_bytes()
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

    pub(super) fn io(&self, what: &'static str) -> impl FnOnce(io::Error) -> LogError + '_ {
        LogError::io(move || format!("{what} {}", self.id))
    }
}
