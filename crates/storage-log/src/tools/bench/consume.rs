//! Reading: out of the page cache, off the disk, and off the disk while others append.

use std::{
    fs::File,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use crate::{
    BatchBuilder, EmbeddedLog, FsyncPolicy, Isolation, Log, LogResult, Offset, TopicPartition,
};

use super::{
    BenchError,
    append::{Producers, acknowledged, batch, open},
    figures::{Bar, Figures, Limits},
    meter::{Meter, Taken},
};

/// Who appends beside a reader of cold data.
const DISTURBED: Producers = Producers {
    producers: 16,
    in_flight: 1,
    record_bytes: 1024,
    partitions: 1,
};

/// What one read asks for.
const READ_BYTES: usize = 1 << 20;

/// Fills a topic and reads it back.
pub(super) fn consume(
    dir: &Path,
    bytes: usize,
    record_bytes: usize,
    limits: Limits,
    out: &mut Figures,
) -> Result<(), BenchError> {
    let dir = dir.join("consume");
    let (log, at) = open(&dir, FsyncPolicy::Never)?;
    let stored = fill(&log, &at, bytes, record_bytes)?;
    drop(log);
    let log = EmbeddedLog::open(&dir, crate::LogOptions::default())?;
    let name = format!("consume, {record_bytes} B records");

    drop_page_cache(&dir)?;
    let (taken, _) = read_all(&log, &at, false)?;
    out.ours(format!("{name}, cold"), taken.megabytes(stored), "MB/s");
    // The first warm pass brings everything back into the cache.
    read_all(&log, &at, false)?;
    let (taken, _) = read_all(&log, &at, false)?;
    let per_core = taken.megabytes_per_core(stored);
    out.compare(
        format!("{name}, warm, checked batches, per core"),
        per_core,
        "MB/s",
        (1_000.0, "1 GB/s"),
        Bar::AtLeast(1.0),
    );
    out.compare(
        format!("{name}, warm, checked batches"),
        taken.megabytes(stored),
        "MB/s",
        (limits.cache_read, "page cache read"),
        Bar::None,
    );
    let (taken, records) = read_all(&log, &at, true)?;
    out.ours(
        format!("{name}, warm, every record, per core"),
        taken.megabytes_per_core(stored),
        "MB/s",
    );
    out.ours(
        format!("{name}, warm, every record, per core"),
        taken.rate_per_core(records),
        "records/s",
    );
    drop(log);
    std::fs::remove_dir_all(&dir).map_err(BenchError::file(&dir))
}

/// Appenders alone, then beside a reader that reads old data off the disk.
pub(super) fn disturb(
    dir: &Path,
    bytes: usize,
    seconds: Duration,
    out: &mut Figures,
) -> Result<(), BenchError> {
    let dir = dir.join("disturb");
    let (log, at) = open(&dir, FsyncPolicy::Always)?;
    fill(&log, &at, bytes, 1024)?;
    let end = log.offsets(&at)?.log_end;
    log.sync(&at, end)?;
    let (alone, waits) = acknowledged(&log, std::slice::from_ref(&at), DISTURBED, seconds)?;
    let alone = alone.rate(waits.len());

    let done = AtomicBool::new(false);
    let (beside, read) = thread::scope(|scope| {
        let reader = scope.spawn(|| read_cold(&log, &at, end, &dir, &done));
        let appended = acknowledged(&log, std::slice::from_ref(&at), DISTURBED, seconds);
        done.store(true, Ordering::Relaxed);
        let read = reader.join().unwrap_or(Ok(0));
        appended.and_then(|(taken, waits)| {
            Ok((
                taken.rate(waits.len()),
                read.map_err(|error| match error {
                    BenchError::Log(error) => error,
                    other => crate::LogError::Io {
                        attempted: "read beside appenders".into(),
                        source: std::io::Error::other(other),
                    },
                })?,
            ))
        })
    })?;
    out.ours(
        "cold reader beside 16 producers, reads",
        read as f64 / 1e6 / seconds.as_secs_f64(),
        "MB/s",
    );
    out.compare(
        "16 producers beside a cold reader",
        beside,
        "records/s",
        (alone, "without it"),
        Bar::AtLeast(2.0 / 3.0),
    );
    drop(log);
    std::fs::remove_dir_all(&dir).map_err(BenchError::file(&dir))
}

fn fill(
    log: &EmbeddedLog,
    at: &TopicPartition,
    bytes: usize,
    record_bytes: usize,
) -> LogResult<usize> {
    let mut builder = BatchBuilder::new();
    let one = batch(&mut builder, record_bytes, (1 << 20) / (record_bytes + 12));
    let count = bytes / one.len();
    for _ in 0..count {
        log.append(at, one.clone())?;
    }
    Ok(count * one.len())
}

/// Reads everything; with `records`, looks at each key and value.
fn read_all(log: &EmbeddedLog, at: &TopicPartition, records: bool) -> LogResult<(Taken, usize)> {
    let mut next = Offset(0);
    let mut count = 0;
    let mut seen = 0usize;
    let meter = Meter::start();
    loop {
        let fetch = log.read(at, next, READ_BYTES, Isolation::ReadCommitted)?;
        if fetch.next_offset == next {
            std::hint::black_box(seen);
            return Ok((meter.stop(), count));
        }
        next = fetch.next_offset;
        if records {
            for batch in &fetch.batches {
                for record in &batch.records()? {
                    let record = record?;
                    seen += record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
                    count += 1;
                }
            }
        }
    }
}

/// Reads what lies below `end` over and over, each time off the disk.
fn read_cold(
    log: &EmbeddedLog,
    at: &TopicPartition,
    end: Offset,
    dir: &Path,
    done: &AtomicBool,
) -> Result<usize, BenchError> {
    let mut bytes = 0;
    while !done.load(Ordering::Relaxed) {
        drop_page_cache(dir)?;
        let mut next = Offset(0);
        while next < end && !done.load(Ordering::Relaxed) {
            let fetch = log.read(at, next, READ_BYTES, Isolation::ReadCommitted)?;
            bytes += fetch
                .batches
                .iter()
                .map(|batch| batch.byte_len())
                .sum::<usize>();
            next = fetch.next_offset;
        }
    }
    Ok(bytes)
}

/// Lets the operating system forget what it holds of the topic's files, as far as it is on disk.
fn drop_page_cache(dir: &Path) -> Result<(), BenchError> {
    let partition = dir.join("bench-0");
    let files = std::fs::read_dir(&partition).map_err(BenchError::file(&partition))?;
    for entry in files.flatten() {
        let path = entry.path();
        let file = File::open(&path).map_err(BenchError::file(&path))?;
        file.sync_data().map_err(BenchError::file(&path))?;
        // Elsewhere what is called cold is not.
        #[cfg(target_os = "linux")]
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
            .map_err(|error| BenchError::file(&path)(error.into()))?;
    }
    Ok(())
}
