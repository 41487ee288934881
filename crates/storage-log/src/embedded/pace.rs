//! Readers of the past give way to appenders.
//!
//! A reader whose data is not in the page cache can keep a disk so busy that every fdatasync waits behind its reads. While somebody syncs, such a
//! reader rests for a multiple of the time since its last rest, whenever it has to go to the disk: what the kernel reads ahead of it keeps the
//! disk busy too, and only the reader's pace bounds that. Readers of what is in memory are never held.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::disk::DiskFile;

/// A sync this long ago still tells that there are appenders: they come one after the other.
const RECENTLY: Duration = Duration::from_millis(20);

/// How long a reader rests, in times of what it was busy: it has a tenth of the time then, which is still more than most networks carry away. With a
/// sixth, appenders kept two thirds of their rate on average, and not always.
const REST: u32 = 9;

/// Whoever has not rested for so long has not been reading all the time.
const LONGEST_WORK: Duration = Duration::from_millis(50);

/// No reader rests longer at a time, however slow the disk.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// When the log last synced a file that somebody waits for, and when a reader last rested.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    syncs_under_way: AtomicUsize,
    last_sync: Mutex<Option<Instant>>,
    last_rest: Mutex<Option<Instant>>,
}

impl Pace {
    /// Syncs a file that somebody waits for.
    pub(crate) fn sync(&self, file: &dyn DiskFile) -> io::Result<()> {
        self.syncs_under_way.fetch_add(1, Ordering::Relaxed);
        let synced = file.sync_data();
        self.syncs_under_way.fetch_sub(1, Ordering::Relaxed);
        *self.last_sync.lock() = Some(Instant::now());
        synced
    }

    /// Somebody waits for the disk, or has just been served and will come back.
    fn has_appenders(&self) -> bool {
        self.syncs_under_way.load(Ordering::Relaxed) > 0
            || self
                .last_sync
                .lock()
                .is_some_and(|at| at.elapsed() < RECENTLY)
    }

    /// A reader gave way, ever.
    #[cfg(test)]
    fn has_rested(&self) -> bool {
        self.last_rest.lock().is_some()
    }

    /// How long to rest after reads that took so long from the disk.
    fn rest(&self, from_disk: Duration) -> Duration {
        if from_disk.is_zero() || !self.has_appenders() {
            return Duration::ZERO;
        }
        let since_rest = self.last_rest.lock().map(|at| at.elapsed());
        let busy = since_rest
            .filter(|busy| *busy <= LONGEST_WORK)
            .unwrap_or_default()
            .max(from_disk);
        (busy * REST).min(LONGEST_REST)
    }

    /// Rests, if there is somebody to give way to.
    pub(crate) fn give_way(&self, from_disk: Duration) {
        let rest = self.rest(from_disk);
        if !rest.is_zero() {
            thread::sleep(rest);
            *self.last_rest.lock() = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, path::Path};

    use super::*;
    use crate::{
        BatchBuilder, EmbeddedLog, Isolation, Log, LogOptions, Offset, TopicConfig, TopicPartition,
        disk::DiskFile,
    };

    fn ago(time: Duration) -> Option<Instant> {
        Instant::now().checked_sub(time)
    }

    #[test]
    fn only_readers_of_the_disk_rest_and_only_beside_syncs() {
        let pace = Pace::default();
        let took = Duration::from_millis(3);
        assert_eq!(pace.rest(took), Duration::ZERO, "nobody syncs");
        *pace.last_sync.lock() = Some(Instant::now());
        assert_eq!(pace.rest(Duration::ZERO), Duration::ZERO);
        assert_eq!(pace.rest(took), took * REST);
        assert_eq!(pace.rest(Duration::from_secs(9)), LONGEST_REST);
        *pace.last_rest.lock() = ago(took * 3);
        assert!(pace.rest(took) >= took * 3 * REST, "since the last rest");
        *pace.last_rest.lock() = ago(LONGEST_WORK * 2);
        assert_eq!(pace.rest(took), took * REST, "that is no work");
        *pace.last_sync.lock() = ago(RECENTLY * 2);
        assert_eq!(pace.rest(took), Duration::ZERO, "that was long ago");
        pace.syncs_under_way.store(1, Ordering::Relaxed);
        assert_eq!(pace.rest(took), took * REST, "a slow disk is still at it");
    }

    /// Lets the operating system forget the segment; it may take its time with what was just written.
    #[cfg(target_os = "linux")]
    fn make_cold(segment: &Path) {
        let file = File::open(segment).expect("open");
        for _ in 0..100 {
            file.sync_data().expect("sync");
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advise");
            if !file.is_cached(1 << 20) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the page cache keeps \"{}\"", segment.display());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_reader_finds_out_that_it_needs_the_disk_and_gives_way() {
        // Where programs are built there is a disk; temporary files may be in memory.
        let program = std::env::current_exe().expect("a test is a program");
        let beside = program.parent().expect("in a folder");
        let dir = tempfile::tempdir_in(beside).expect("folder");
        let options = LogOptions {
            tail_bytes: 1_000,
            ..LogOptions::default()
        };
        let log = EmbeddedLog::open(dir.path(), options).expect("open");
        log.create_topic("events", TopicConfig::with_partitions(1))
            .expect("create");
        let at = TopicPartition::new("events", 0);
        let mut builder = BatchBuilder::new();
        let append = |builder: &mut BatchBuilder, bytes: usize| {
            builder.push(0, None, Some(&vec![7; bytes]), &[]);
            let appended = log.append(&at, builder.finish(None)).expect("append");
            let end = Offset(appended.last_offset.0 + 1);
            log.sync(&at, end).expect("sync");
        };
        (0..8).for_each(|_| append(&mut builder, 1 << 20));
        let read = || {
            let fetch = log.read(&at, Offset(0), 4 << 20, Isolation::ReadCommitted);
            assert!(fetch.expect("read").batches.len() >= 3);
        };
        let segment = dir.path().join("events-0/00000000000000000000.log");
        let pace = log.pace();

        append(&mut builder, 1);
        read();
        assert!(!pace.has_rested(), "all of it is in memory");
        make_cold(&segment);
        thread::sleep(RECENTLY * 2);
        read();
        assert!(!pace.has_rested(), "nobody appends");
        // A machine that is busy with something else may take longer for the read than an append counts.
        let rests = (0..50).any(|_| {
            make_cold(&segment);
            append(&mut builder, 1);
            read();
            pace.has_rested()
        });
        assert!(rests, "somebody appends");
    }
}
