//! The embedded log as a whole: a folder, its topics, and the [`Log`] trait over them.

use std::{
    collections::{BTreeMap, HashMap},
    fmt, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};

use crate::{
    batch::EncodedBatch,
    clock::{Clock, SystemClock},
    disk::{Disk, DiskLock, FileDisk, MemoryDisk},
    embedded::{
        Environment, LogBackup,
        handles::FileCache,
        layout,
        listeners::Listeners,
        pace::Pace,
        partition::Partition,
        periodic::Periodic,
        read_caches::{ABORTED_CACHE_BYTES, SegmentCache},
        small_file,
        sync_pool::SyncPool,
        tail::TailBudget,
        topics::{self, StoredTopics, Topic},
        waiting::refuse,
    },
    error::{LogError, LogResult},
    log::{
        AppendListener, AppendWaiter, Appended, Fetch, Isolation, Log, Offset, PartitionOffsets,
        PartitionUsage, ProducerId, ProducerState, SyncWaiter, TopicChange, TopicConfig, TopicInfo,
        TopicPartition,
    },
    options::{FsyncPolicy, LogOptions},
};

/// The log in a folder of this machine. Dropping it syncs what is not on disk yet.
#[derive(Debug)]
pub struct EmbeddedLog {
    // Field order is drop order: first the threads stop, then the topics close.
    _syncing: Option<Periodic>,
    maintenance: Mutex<Option<Periodic>>,
    sync_pool: SyncPool,
    inner: Arc<Inner>,
}

struct Inner {
    environment: Arc<Environment>,
    topics: RwLock<HashMap<Arc<str>, Arc<Topic>>>,
    damaged: Mutex<BTreeMap<String, Arc<LogError>>>,
    /// Held while topics are created and deleted.
    changing: Mutex<()>,
    _lock: Box<dyn DiskLock>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedLog")
            .field("root", &self.environment.root)
            .finish_non_exhaustive()
    }
}

impl EmbeddedLog {
    /// Opens the log in `dir`, which is created if need be. Damaged partitions are stopped, one by one; the others work.
    pub fn open(dir: &Path, options: LogOptions) -> LogResult<Self> {
        Self::open_on(Arc::new(FileDisk), dir, options)
    }

    /// A log that lives and dies with the process.
    pub fn in_memory(options: LogOptions) -> LogResult<Self> {
        Self::open_on(Arc::new(MemoryDisk::new()), Path::new("/log"), options)
    }

    /// Opens the log in a folder of some disk.
    pub fn open_on(disk: Arc<dyn Disk>, dir: &Path, options: LogOptions) -> LogResult<Self> {
        Self::open_with(disk, Arc::new(SystemClock), dir, options)
    }

    /// Opens the log in a folder of some disk, with a clock of one's own.
    pub fn open_with(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        dir: &Path,
        options: LogOptions,
    ) -> LogResult<Self> {
        options.validate()?;
        let fsync = options.fsync;
        let lock = prepare_folder(&*disk, dir)?;
        let files = FileCache::new(Arc::clone(&disk), options.max_open_files);
        let tails = Arc::new(TailBudget::new(
            options.tail_bytes,
            options.tail_total_bytes,
        ));
        let indexes = SegmentCache::new(options.index_cache_bytes);
        let environment = Arc::new(Environment {
            disk,
            clock,
            root: dir.to_path_buf(),
            options,
            files,
            tails,
            indexes,
            aborted: SegmentCache::new(ABORTED_CACHE_BYTES),
            pace: Pace::default(),
            listeners: Listeners::default(),
            stopping: AtomicBool::new(false),
            backups: AtomicUsize::new(0),
        });
        let StoredTopics { topics, damaged } = topics::open_all(&environment)?;
        let by_name = topics
            .into_iter()
            .map(|topic| (Arc::clone(topic.name()), Arc::new(topic)))
            .collect();
        let inner = Arc::new(Inner {
            environment,
            topics: RwLock::new(by_name),
            damaged: Mutex::new(
                damaged
                    .into_iter()
                    .map(|(name, error)| (name, Arc::new(error)))
                    .collect(),
            ),
            changing: Mutex::new(()),
            _lock: lock,
        });
        let syncing = match fsync {
            FsyncPolicy::Interval(every) => {
                let target = Arc::downgrade(&inner);
                Some(Periodic::start("log-sync", every, target, Inner::sync_all)?)
            }
            FsyncPolicy::Always | FsyncPolicy::Never => None,
        };
        Ok(Self {
            _syncing: syncing,
            maintenance: Mutex::new(None),
            sync_pool: SyncPool::default(),
            inner,
        })
    }

    /// From now on a thread looks after retention, compaction and segments that are due. Whoever must be able to read something again says so first
    /// ([`Log::hold_from`]).
    pub fn start_maintenance(&self) -> LogResult<()> {
        let mut maintenance = self.maintenance.lock();
        if maintenance.is_none() {
            let every = self.inner.environment.options.maintenance_interval;
            let target = Arc::downgrade(&self.inner);
            let work = |inner: &Inner| {
                for error in inner.maintain() {
                    tracing::error!(%error, "maintenance of a partition failed, it is tried again");
                }
            };
            *maintenance = Some(Periodic::start("log-maintenance", every, target, work)?);
        }
        Ok(())
    }

    /// Applies retention and compaction once, to all partitions. Answers with the first failure, after the others had their turn.
    pub fn maintain(&self) -> LogResult<()> {
        self.inner.maintain().into_iter().next().map_or(Ok(()), Err)
    }

    /// What a partition takes on disk.
    pub fn usage(&self, partition: &TopicPartition) -> LogResult<PartitionUsage> {
        self.with_partition(partition, |open| Ok(open.published.read().usage()))
    }

    /// Recovers a partition that stopped after a failed sync or because it was damaged, as a restart would. One that works stays as it is.
    pub fn reopen(&self, partition: &TopicPartition) -> LogResult<()> {
        let _changing = self.inner.changing.lock();
        let topic = self.inner.topics.read().get(&partition.topic).cloned();
        let topic = topic.ok_or_else(|| self.unknown(&partition.topic))?;
        topic.reopen(&self.inner.environment, partition)
    }

    /// Notes where the log stands, to copy what it holds now. Whoever needs several partitions at one moment keeps others from appending meanwhile.
    pub fn begin_backup(&self) -> LogResult<LogBackup> {
        let _changing = self.inner.changing.lock();
        let damaged = self.inner.damaged.lock().keys().next().cloned();
        if let Some(topic) = damaged {
            return Err(self.unknown(&topic));
        }
        let mut topics: Vec<_> = self.inner.topics.read().values().cloned().collect();
        topics.sort_unstable_by(|left, right| left.name().cmp(right.name()));
        LogBackup::begin(&self.inner.environment, &topics)
    }

    #[cfg(test)]
    pub(super) fn pace(&self) -> &Pace {
        &self.inner.environment.pace
    }

    fn with_partition<T>(
        &self,
        id: &TopicPartition,
        call: impl FnOnce(&Partition) -> LogResult<T>,
    ) -> LogResult<T> {
        call(&*self.partition(id)?)
    }

    fn partition(&self, id: &TopicPartition) -> LogResult<Arc<Partition>> {
        let topic = self.inner.topics.read().get(&id.topic).cloned();
        match topic {
            Some(topic) => topic.partition(id),
            None => Err(self.unknown(&id.topic)),
        }
    }

    fn unknown(&self, topic: &str) -> LogError {
        match self.inner.damaged.lock().get(topic) {
            Some(cause) => LogError::Stopped {
                partition: TopicPartition::new(topic, 0),
                cause: Arc::clone(cause),
            },
            None => LogError::UnknownTopic {
                topic: topic.into(),
            },
        }
    }

    /// Lets the pool lead for those who wait for the partition.
    fn serve_waiters(&self, partition: Arc<Partition>) {
        if let Err(error) = self.sync_pool.sync(Arc::clone(&partition)) {
            partition.dismiss_waiters(&error);
        }
    }
}

/// Locks a folder that exists.
pub(crate) fn lock_folder(disk: &dyn Disk, dir: &Path) -> LogResult<Box<dyn DiskLock>> {
    let path = dir.join(layout::LOCK);
    disk.lock(&path, &format!("pid {}\n", std::process::id()))
        .map_err(|error| {
            if error.kind() != io::ErrorKind::WouldBlock {
                return LogError::io(|| format!("lock \"{}\"", path.display()))(error);
            }
            let owner = small_file::read_whole(disk, &path)
                .ok()
                .flatten()
                .unwrap_or_default();
            LogError::FolderInUse {
                folder: dir.into(),
                owner: String::from_utf8_lossy(&owner).trim().into(),
            }
        })
}

/// Creates and locks the folder.
fn prepare_folder(disk: &dyn Disk, dir: &Path) -> LogResult<Box<dyn DiskLock>> {
    let failed = || LogError::io(|| format!("create \"{}\"", dir.display()));
    disk.create_dir(dir).map_err(failed())?;
    let lock = lock_folder(disk, dir)?;
    disk.create_dir(&dir.join(layout::TOPICS))
        .map_err(failed())?;
    small_file::sync_dir(disk, &dir.join(layout::TOPICS))?;
    small_file::sync_dir(disk, dir)?;
    // A relative name of one part lies in the working folder.
    let parent = dir
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    small_file::sync_dir(disk, parent)?;
    Ok(lock)
}

impl Inner {
    fn open_partitions(&self) -> Vec<Arc<Partition>> {
        let topics: Vec<_> = self.topics.read().values().cloned().collect();
        topics
            .iter()
            .flat_map(|topic| topic.open_partitions())
            .collect()
    }

    fn sync_all(&self) {
        for partition in self.open_partitions() {
            if let Err(error) = partition.close() {
                tracing::error!(%error, "sync failed");
            }
        }
    }

    fn maintain(&self) -> Vec<LogError> {
        self.open_partitions()
            .iter()
            .filter_map(|partition| partition.maintain().err())
            .collect()
    }
}

impl Drop for EmbeddedLog {
    fn drop(&mut self) {
        self.inner
            .environment
            .stopping
            .store(true, Ordering::Relaxed);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sync_all();
    }
}

impl Log for EmbeddedLog {
    fn create_topic(&self, name: &str, config: TopicConfig) -> LogResult<()> {
        layout::check_topic_name(name)?;
        let _changing = self.inner.changing.lock();
        if self.inner.topics.read().contains_key(name)
            || self.inner.damaged.lock().contains_key(name)
        {
            return Err(LogError::TopicExists { topic: name.into() });
        }
        let topic = topics::create(&self.inner.environment, name, config)?;
        self.inner
            .topics
            .write()
            .insert(Arc::clone(topic.name()), Arc::new(topic));
        Ok(())
    }

    fn alter_topic(&self, name: &str, change: &TopicChange) -> LogResult<()> {
        let _changing = self.inner.changing.lock();
        let topic = self.inner.topics.read().get(name).cloned();
        let topic = topic.ok_or_else(|| self.unknown(name))?;
        topic.alter(&self.inner.environment, change)
    }

    fn delete_topic(&self, name: &str) -> LogResult<()> {
        let _changing = self.inner.changing.lock();
        let topic = self.inner.topics.read().get(name).cloned();
        if topic.is_none() && !self.inner.damaged.lock().contains_key(name) {
            return Err(LogError::UnknownTopic { topic: name.into() });
        }
        topics::begin_deletion(&self.inner.environment, name)?;
        self.inner.topics.write().remove(name);
        self.inner.damaged.lock().remove(name);
        for partition in topic.iter().flat_map(|topic| topic.open_partitions()) {
            partition.retire();
        }
        topics::finish_deletion(&self.inner.environment, name)
    }

    fn topic(&self, name: &str) -> Option<TopicInfo> {
        self.inner.topics.read().get(name).map(|topic| topic.info())
    }

    fn topics(&self) -> Vec<TopicInfo> {
        let mut topics: Vec<_> = self
            .inner
            .topics
            .read()
            .values()
            .map(|topic| topic.info())
            .collect();
        topics.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        topics
    }

    fn append(&self, partition: &TopicPartition, batch: EncodedBatch) -> LogResult<Appended> {
        self.with_partition(partition, |open| open.append(batch))
    }

    fn produce(&self, partition: &TopicPartition, batch: EncodedBatch, waiter: AppendWaiter) {
        if self.inner.environment.options.fsync != FsyncPolicy::Always {
            return match self.partition(partition) {
                Ok(open) => open.append_and_tell(batch, waiter),
                Err(error) => refuse((error, waiter)),
            };
        }
        let topics = self.inner.topics.read();
        let handed_over = match topics.get(&partition.topic) {
            Some(topic) => topic.hand_over(partition, batch, waiter),
            None => Err((self.unknown(&partition.topic), waiter)),
        };
        drop(topics);
        match handed_over {
            Ok(None) => {}
            Ok(Some((open, must_do))) => {
                if open.after_hand_over(must_do) {
                    self.serve_waiters(open);
                }
            }
            Err(refusal) => refuse(refusal),
        }
    }

    fn end_transaction(
        &self,
        partition: &TopicPartition,
        producer: ProducerId,
        epoch: i16,
        commit: bool,
    ) -> LogResult<Option<Offset>> {
        self.with_partition(partition, |open| {
            open.end_transaction(producer, epoch, commit)
        })
    }

    fn producer(
        &self,
        partition: &TopicPartition,
        producer: ProducerId,
    ) -> LogResult<Option<ProducerState>> {
        self.with_partition(partition, |open| Ok(open.producer(producer)))
    }

    fn open_transactions(&self, partition: &TopicPartition) -> LogResult<Vec<(ProducerId, i16)>> {
        self.with_partition(partition, |open| Ok(open.open_transactions()))
    }

    fn sync(&self, partition: &TopicPartition, up_to: Offset) -> LogResult<()> {
        self.with_partition(partition, |open| open.sync(up_to))
    }

    fn when_synced(&self, partition: &TopicPartition, up_to: Offset, waiter: SyncWaiter) {
        match self.partition(partition) {
            Ok(open) => {
                if open.when_synced(up_to, waiter) {
                    self.serve_waiters(open);
                }
            }
            Err(error) => waiter(Err(error)),
        }
    }

    fn read(
        &self,
        partition: &TopicPartition,
        from: Offset,
        max_bytes: usize,
        isolation: Isolation,
    ) -> LogResult<Fetch> {
        self.with_partition(partition, |open| open.read(from, max_bytes, isolation))
    }

    fn offsets(&self, partition: &TopicPartition) -> LogResult<PartitionOffsets> {
        self.with_partition(partition, |open| Ok(open.offsets()))
    }

    fn offset_for_timestamp(
        &self,
        partition: &TopicPartition,
        timestamp: i64,
    ) -> LogResult<Offset> {
        self.with_partition(partition, |open| open.offset_for_timestamp(timestamp))
    }

    fn drop_below(&self, partition: &TopicPartition, offset: Offset) -> LogResult<()> {
        self.with_partition(partition, |open| open.drop_below(offset))
    }

    fn hold_from(&self, partition: &TopicPartition, from: Option<Offset>) -> LogResult<()> {
        self.with_partition(partition, |open| {
            open.hold_from(from);
            Ok(())
        })
    }

    fn add_listener(&self, listener: Arc<dyn AppendListener>) {
        self.inner.environment.listeners.add(listener);
    }
}
