//! Opening reads what may be torn, not what is stored.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use highwater_storage_log::{
    Disk, DiskFile, DiskLock, EmbeddedLog, Isolation, Log, LogOptions, MemoryDisk,
};

use crate::support::*;

/// A disk that counts the bytes that are read, those of segments apart.
#[derive(Debug, Clone)]
struct Counting {
    disk: MemoryDisk,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    segments: AtomicU64,
    others: AtomicU64,
}

struct CountingFile {
    file: Arc<dyn DiskFile>,
    is_segment: bool,
    counts: Arc<Counts>,
}

impl fmt::Debug for CountingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl Counting {
    fn counted(&self, path: &Path, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(CountingFile {
            file,
            is_segment: path.extension().is_some_and(|kind| kind == "log"),
            counts: Arc::clone(&self.counts),
        })
    }
}

impl Disk for Counting {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.counted(path, self.disk.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.counted(path, self.disk.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn lock(&self, path: &Path, owner: &str) -> io::Result<Box<dyn DiskLock>> {
        self.disk.lock(path, owner)
    }
}

impl DiskFile for CountingFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        let read = self.file.read_at(buf, position)?;
        let count = if self.is_segment {
            &self.counts.segments
        } else {
            &self.counts.others
        };
        count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.file.write_at(bytes, position)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

/// Twenty sealed segments of so many records and one that grows, after a kill of the process. Answers what opening reads of segments and of other files.
fn opened(records_a_segment: usize, lost: Option<&str>) -> (u64, u64) {
    let disk = MemoryDisk::new();
    let options = LogOptions::default();
    let open =
        |disk: Arc<dyn Disk>| EmbeddedLog::open_on(disk, Path::new("/data"), options.clone());
    let log = open(Arc::new(disk.clone())).expect("open");
    let at = with_topic(&log);
    let value = "x".repeat(1_000);
    let one = batch(&[&value]).len();
    let bytes = (one * records_a_segment).to_string();
    log.alter_topic("events", &changed(&[("segment.bytes", &bytes)]))
        .expect("alter");
    for _ in 0..20 * records_a_segment + 1 {
        log.append(&at, batch(&[&value])).expect("append");
    }
    assert_eq!(log.usage(&at).expect("usage").segments, 21);
    let killed = disk.deep_clone();
    if let Some(kind) = lost {
        let of_first: PathBuf = format!("/data/events-0/{:020}.{kind}", 0).into();
        killed.remove(&of_first).expect("remove");
    }
    let counting = Counting {
        disk: killed,
        counts: Arc::default(),
    };
    let reopened = open(Arc::new(counting.clone())).expect("open again");
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (segments, others) = (
        read(&counting.counts.segments),
        read(&counting.counts.others),
    );
    let stored = values(&reopened, &at, 0, Isolation::ReadCommitted, 1 << 20);
    assert_eq!(stored.len(), 20 * records_a_segment + 1);
    (segments, others)
}

#[test]
fn opening_reads_no_sealed_segment_whatever_it_holds() {
    let (small_segments, small_others) = opened(4, None);
    let (large_segments, large_others) = opened(400, None);
    // The one record of the segment that grows; it is read once more to be written again.
    assert_eq!(small_segments, large_segments);
    assert!(large_segments < 4_000, "{large_segments} bytes");
    // Numbers in seals have more digits.
    assert!(
        large_others < small_others + 1_000,
        "{small_others} and {large_others} bytes"
    );
}

#[test]
fn opening_reads_a_segment_whose_seal_is_lost_and_no_other() {
    let (sound, _) = opened(100, None);
    let (scanned, _) = opened(100, Some("seal"));
    let segment = 100_000;
    assert!(
        (sound + segment..sound + 2 * segment).contains(&scanned),
        "{scanned} bytes"
    );
}
