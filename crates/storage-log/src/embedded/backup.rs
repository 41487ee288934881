//! A copy of the log as it was at one moment, made while it is in use.
//!
//! [`EmbeddedLog::begin_backup`] notes where each partition ends and which segments it has, which takes no longer than it takes to look. The bytes are
//! copied afterwards: sealed segments never change, and of the one that grows as much is copied as was there. What the copy holds is durable, and
//! a log can be opened on its folder.
//!
//! INVARIANT: as long as a [`LogBackup`] lives, no file of a segment is removed or exchanged. Retention moves log starts all the same, and leaves the
//! files to the next start; compaction waits.
//! ORDER: a topic's file is written last, so a copy that was cut off holds no topic that lacks some of its records.

use std::{
    fmt, io,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use crate::{
    disk::{Disk, DiskFile},
    embedded::{
        Environment, layout,
        layout::SegmentFile,
        log_start,
        partition::Partition,
        recovery_point, small_file,
        topics::{self, Topic},
    },
    error::{LogError, LogResult},
    log::{TopicConfig, TopicPartition},
};

/// Bytes that are copied at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The log at one moment, to be copied.
pub struct LogBackup {
    environment: Arc<Environment>,
    topics: Vec<(Arc<str>, TopicConfig)>,
    partitions: Vec<Captured>,
}

/// A partition at that moment.
struct Captured {
    partition: Arc<Partition>,
    /// Where its sealed segments begin.
    sealed: Vec<i64>,
    /// The segment that grows, and its length.
    active: Option<(i64, u64)>,
    bytes: u64,
    log_start: i64,
    log_end: i64,
}

impl fmt::Debug for LogBackup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogBackup")
            .field("topics", &self.topics.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl Drop for LogBackup {
    fn drop(&mut self) {
        self.environment.backups.fetch_sub(1, Ordering::Release);
    }
}

impl LogBackup {
    /// Notes where the log stands. Fails for a partition that is stopped: a copy without it would not be one of the log.
    pub(super) fn begin(environment: &Arc<Environment>, topics: &[Arc<Topic>]) -> LogResult<Self> {
        // ORDER: counted first, so that nothing that was noted is removed.
        environment.backups.fetch_add(1, Ordering::AcqRel);
        let mut backup = Self {
            environment: Arc::clone(environment),
            topics: Vec::with_capacity(topics.len()),
            partitions: Vec::new(),
        };
        for topic in topics {
            let info = topic.info();
            for number in 0..info.config.partitions {
                let id = TopicPartition::new(Arc::clone(&info.name), number);
                backup
                    .partitions
                    .push(Captured::note(topic.partition(&id)?));
            }
            backup.topics.push((info.name, info.config));
        }
        Ok(backup)
    }

    /// Bytes of records that a copy holds.
    pub fn bytes(&self) -> u64 {
        self.partitions.iter().map(|captured| captured.bytes).sum()
    }

    /// Copies everything into `folder` of the same disk, which is created and must not hold a log yet. `copied` hears of each piece: its bytes; an
    /// error of it ends the copy.
    ///
    /// Fails when the disk is full, and when a topic was deleted since the backup began. What it wrote then stays.
    pub fn copy_to(
        &self,
        folder: &Path,
        copied: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> LogResult<()> {
        let disk = &*self.environment.disk;
        let topics_dir = folder.join(layout::TOPICS);
        create_dir(disk, folder)?;
        create_dir(disk, &topics_dir)?;
        let there = disk
            .list(folder)
            .map_err(LogError::io(|| format!("list \"{}\"", folder.display())))?;
        if there.iter().any(|name| name != layout::TOPICS) {
            return Err(LogError::FolderNotEmpty {
                folder: folder.into(),
            });
        }
        for captured in &self.partitions {
            captured.copy_to(disk, folder, copied)?;
        }
        small_file::sync_dir(disk, folder)?;
        for (name, config) in &self.topics {
            topics::write_file_in(disk, folder, name, config)?;
        }
        small_file::sync_dir(disk, &topics_dir)?;
        folder
            .parent()
            .map_or(Ok(()), |parent| small_file::sync_dir(disk, parent))
    }
}

impl Captured {
    fn note(partition: Arc<Partition>) -> Self {
        // An exchange or a removal that is under way ends before.
        let removing = partition.removing.lock();
        let published = partition.published.read();
        let captured = Self {
            sealed: published.sealed.iter().map(|s| s.base()).collect(),
            active: published
                .active
                .as_ref()
                .map(|active| (active.base, active.bytes)),
            bytes: published.usage().bytes,
            log_start: published.log_start,
            log_end: published.log_end,
            partition: Arc::clone(&partition),
        };
        drop(published);
        drop(removing);
        captured
    }

    fn copy_to(
        &self,
        disk: &dyn Disk,
        folder: &Path,
        copied: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> LogResult<()> {
        // What is copied is on disk here before it is there.
        self.partition.sync_to(self.log_end)?;
        let from = &self.partition.dir;
        let to = layout::partition_dir(folder, &self.partition.id);
        create_dir(disk, &to)?;
        let mut copy = Copy { disk, copied };
        for &base in &self.sealed {
            for kind in SegmentFile::ALL {
                if kind != SegmentFile::Snapshot {
                    copy.whole(&kind.path(from, base), &kind.path(&to, base))?;
                }
            }
        }
        if let Some((base, bytes)) = self.active {
            let log = SegmentFile::Log;
            copy.prefix(&log.path(from, base), &log.path(&to, base), bytes)?;
        }
        for offset in self.snapshots(disk)? {
            let snapshot = SegmentFile::Snapshot;
            copy.whole(&snapshot.path(from, offset), &snapshot.path(&to, offset))?;
        }
        copy.whole(&from.join(layout::COMPACTION), &to.join(layout::COMPACTION))?;
        if self.log_start > 0 {
            log_start::write(disk, &to, self.log_start)?;
        }
        recovery_point::create(disk, &to, self.log_end)?;
        small_file::sync_dir(disk, &to)
    }

    /// Offsets at which the producers are known.
    fn snapshots(&self, disk: &dyn Disk) -> LogResult<Vec<i64>> {
        let dir = &self.partition.dir;
        let names = disk
            .list(dir)
            .map_err(LogError::io(|| format!("list \"{}\"", dir.display())))?;
        Ok(names
            .iter()
            .filter_map(|name| SegmentFile::parse(name))
            .filter(|(kind, offset)| *kind == SegmentFile::Snapshot && *offset <= self.log_end)
            .map(|(_, offset)| offset)
            .collect())
    }
}

struct Copy<'a> {
    disk: &'a dyn Disk,
    copied: &'a mut dyn FnMut(u64) -> io::Result<()>,
}

impl Copy<'_> {
    /// Copies a file, if it is there: a log is always there, the others can be made anew.
    fn whole(&mut self, from: &Path, to: &Path) -> LogResult<()> {
        match self.disk.open(from) {
            Ok(file) => {
                let length = file.len().map_err(reading(from))?;
                self.bytes(&*file, from, to, length)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_log(from) => Ok(()),
            Err(error) => Err(reading(from)(error)),
        }
    }

    fn prefix(&mut self, from: &Path, to: &Path, length: u64) -> LogResult<()> {
        if length == 0 {
            return Ok(());
        }
        let file = self.disk.open(from).map_err(reading(from))?;
        self.bytes(&*file, from, to, length)
    }

    fn bytes(
        &mut self,
        source: &dyn DiskFile,
        from: &Path,
        to: &Path,
        length: u64,
    ) -> LogResult<()> {
        let writing = || LogError::io(|| format!("write \"{}\"", to.display()));
        let target = self.disk.create(to).map_err(writing())?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut position = 0;
        while position < length {
            let wanted = usize::try_from(length - position)
                .map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
            let read = source
                .read_at(&mut chunk[..wanted], position)
                .map_err(reading(from))?;
            if read == 0 {
                return Err(reading(from)(io::ErrorKind::UnexpectedEof.into()));
            }
            target
                .write_at(&chunk[..read], position)
                .map_err(writing())?;
            position += read as u64;
            (self.copied)(read as u64).map_err(writing())?;
        }
        target.sync_data().map_err(writing())
    }
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

fn reading(path: &Path) -> impl FnOnce(io::Error) -> LogError + '_ {
    LogError::io(move || format!("read \"{}\"", path.display()))
}

fn create_dir(disk: &dyn Disk, dir: &Path) -> LogResult<()> {
    disk.create_dir(dir)
        .map_err(LogError::io(|| format!("create \"{}\"", dir.display())))
}
