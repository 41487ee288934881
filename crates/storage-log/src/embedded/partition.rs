//! One partition: its writer, and the seam to what readers see.
//!
//! INVARIANT: a batch is published after all its bytes are in the file, and offsets are given out in file order under the writer's lock, so the
//! published end of the active segment always lies between two whole batches. After a failed write the file is cut back there before
//! anything else is written.
//!
//! ORDER: append = write, then publish, then (by whoever waits) sync.

use std::{
    collections::HashSet,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};

use crate::{
    batch::{BatchError, BatchView, ControlKind, ControlMarker, EncodedBatch},
    disk::DiskFile,
    embedded::{
        Environment, compaction::CompactionState, duplicates::ReplayCursors,
        group_commit::GroupCommit, layout, published::Published, read_caches::ReadCursors,
        recovery_point, settings::PartitionSettings,
    },
    error::{LogError, LogResult},
    log::{
        Appended, Offset, PartitionOffsets, ProducerId, ProducerState, SyncWaiter, TopicPartition,
    },
    options::FsyncPolicy,
    producer::{AbortedTransaction, Admission, ProducerTable},
};

/// After a sync that several had waited for, the next one waits for them, but no longer than this part of what the sync took: those who were told
/// come back at once, as a rule, and would take turns otherwise, most of them waiting for several syncs.
const GATHERING_PART: u32 = 2;

/// It never waits longer than this.
const LONGEST_GATHERING: Duration = Duration::from_micros(500);

/// An open partition.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(super) id: TopicPartition,
    pub(super) dir: PathBuf,
    pub(super) environment: Arc<Environment>,
    settings: RwLock<PartitionSettings>,
    writer: Mutex<Writer>,
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
            settings: RwLock::new(settings),
            writer: Mutex::new(writer),
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
        let batch = self.admitted(batch)?;
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
        let unsynced = self.publish(&mut writer, written, None);
        drop(writer);
        self.bound_unsynced(unsynced, appended.last_offset.0 + 1)?;
        Ok(appended)
    }

    /// The batch as the topic's settings want it.
    fn admitted(&self, batch: EncodedBatch) -> LogResult<EncodedBatch> {
        let settings = self.settings();
        if batch.is_empty() {
            return Err(BatchError::Field {
                field: "record count",
                value: 0,
            }
            .into());
        }
        let batch = match settings.compression {
            Some(codec) => batch.with_compression(codec)?,
            None => batch,
        };
        if batch.len() > settings.max_batch_bytes {
            return Err(LogError::BatchTooLarge {
                partition: self.id.clone(),
                bytes: batch.len(),
                limit: settings.max_batch_bytes,
            });
        }
        Ok(if settings.log_append_time {
            batch.with_append_time(self.environment.clock.now_ms())
        } else {
            batch
        })
    }

    /// Back-pressure: whoever makes the part that is not synced too large waits for the disk.
    fn bound_unsynced(&self, unsynced: u64, end: i64) -> LogResult<()> {
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

    /// Producers with an open transaction, and their epochs.
    pub(crate) fn open_transactions(&self) -> Vec<(ProducerId, i16)> {
        self.writer.lock().producers.open_transactions()
    }

    /// Offsets at which the newest batch and marker of each producer end: what a restart learns their sequences from.
    pub(super) fn newest_of_producers(&self) -> HashSet<i64> {
        self.writer.lock().producers.newest_offsets()
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

    /// Tells `waiter` when everything below `up_to` is on disk, if that is the policy. True if [`Self::sync_for_waiters`] has to be called for it.
    pub(crate) fn when_synced(&self, up_to: Offset, waiter: SyncWaiter) -> bool {
        let log_end = self.published.read().log_end;
        if up_to.0 > log_end {
            waiter(Err(self.out_of_range(up_to.0)));
            return false;
        }
        match self.environment.options.fsync {
            FsyncPolicy::Always => self.commit.leave_word(&self.id, up_to.0, waiter),
            FsyncPolicy::Interval(_) | FsyncPolicy::Never => {
                waiter(self.commit.check(&self.id));
                false
            }
        }
    }

    /// Syncs for as long as somebody has left a word.
    pub(crate) fn sync_for_waiters(&self) {
        while let Some((waiting, up_to)) = self.commit.words() {
            let began = Instant::now();
            // A failure is told to them where it is noted.
            let _ = self.sync_to(up_to);
            if waiting > 1 {
                let at_most = (began.elapsed() / GATHERING_PART).min(LONGEST_GATHERING);
                self.commit.gather(waiting, at_most);
            }
        }
    }

    /// Tells those who left a word that nobody can sync for them.
    pub(crate) fn dismiss_waiters(&self, error: &LogError) {
        self.commit.dismiss(&self.id, &error.to_string());
    }

    /// Syncs whatever is not on disk yet, whatever the policy.
    pub(crate) fn sync_all(&self) -> LogResult<()> {
        let log_end = self.published.read().log_end;
        self.sync_to(log_end)
    }

    pub(super) fn sync_to(&self, up_to: i64) -> LogResult<()> {
        self.commit.wait_for(&self.id, up_to, || {
            let (unsynced, mark) = {
                let published = self.published.read();
                (published.unsynced_file(), published.sync_mark())
            };
            if let Some(file) = unsynced {
                self.environment.pace.synced();
                file.sync_data()?;
                self.environment.pace.synced();
                self.published.write().note_synced(mark);
            }
            self.write_recovery_point(mark.end);
            Ok(mark.end)
        })
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

    /// Makes the batch visible; answers how many bytes are not synced now.
    fn publish(
        &self,
        writer: &mut Writer,
        written: Written,
        aborted: Option<AbortedTransaction>,
    ) -> u64 {
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
        let mut published = self.published.write();
        published.push(batch, file, position, last_stable, aborted);
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
