//! What the machine can do without a log: the limits that the log's own figures stand beside.

use std::{
    fs::{File, OpenOptions},
    hint::black_box,
    os::unix::fs::FileExt,
    path::Path,
    time::{Duration, Instant},
};

use super::{
    BenchError,
    figures::{Figures, Limits},
    meter::{Meter, percentile},
};

const BLOCK: usize = 1 << 20;
/// Bytes between two syncs when the disk's own rate is taken.
pub const SYNC_EVERY: usize = 100 << 20;

/// Measures all limits with files in `dir`.
pub(super) fn measure(
    dir: &Path,
    bytes: usize,
    seconds: Duration,
    out: &mut Figures,
) -> Result<Limits, BenchError> {
    let path = dir.join("machine");
    let disk_write = sequential_write(&path, bytes, Some(SYNC_EVERY))?;
    out.machine(
        "disk write, 1 MiB blocks, one fdatasync per 100 MB",
        disk_write,
        "MB/s",
    );
    let cache_write = sequential_write(&path, bytes, None)?;
    out.machine("page cache write, 1 MiB blocks", cache_write, "MB/s");
    let cache_read = sequential_read(&path)?;
    out.machine("page cache read, 1 MiB blocks", cache_read, "MB/s");
    let (sync_rate, mut waits) = sync_rate(&path, seconds)?;
    out.machine("fdatasync after 100 bytes", sync_rate, "/s");
    out.machine("fdatasync p50", percentile(&mut waits, 0.5), "ms");
    out.machine("fdatasync p99", percentile(&mut waits, 0.99), "ms");
    let block = vec![0x5a; BLOCK];
    let checksum = repeated(seconds / 4, || {
        black_box(crc32c::crc32c(black_box(&block)));
    });
    out.machine("CRC-32C of 1 MiB", checksum, "MB/s");
    std::fs::remove_file(&path).map_err(BenchError::file(&path))?;
    Ok(Limits {
        disk_write,
        cache_read,
    })
}

fn create(path: &Path) -> Result<File, BenchError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(BenchError::file(path))
}

/// Megabytes a second of writing `bytes` to a file at `path` in blocks of 1 MiB, with an fdatasync each time so much was written.
pub fn sequential_write(
    path: &Path,
    bytes: usize,
    sync_every: Option<usize>,
) -> Result<f64, BenchError> {
    let file = create(path)?;
    let block = vec![0x5a; BLOCK];
    let meter = Meter::start();
    let mut unsynced = 0;
    for at in 0..bytes / BLOCK {
        file.write_all_at(&block, (at * BLOCK) as u64)
            .map_err(BenchError::file(path))?;
        unsynced += BLOCK;
        if sync_every.is_some_and(|every| unsynced >= every) {
            file.sync_data().map_err(BenchError::file(path))?;
            unsynced = 0;
        }
    }
    if sync_every.is_some() {
        file.sync_data().map_err(BenchError::file(path))?;
    }
    let rate = meter.stop().megabytes(bytes);
    // The next measurement begins with nothing to write back.
    file.sync_data().map_err(BenchError::file(path))?;
    Ok(rate)
}

fn sequential_read(path: &Path) -> Result<f64, BenchError> {
    let file = File::open(path).map_err(BenchError::file(path))?;
    let mut block = vec![0; BLOCK];
    let mut bytes = 0;
    let meter = Meter::start();
    loop {
        let read = file
            .read_at(&mut block, bytes as u64)
            .map_err(BenchError::file(path))?;
        if read == 0 {
            return Ok(meter.stop().megabytes(bytes));
        }
        bytes += read;
    }
}

/// Syncs a second of a file that grows by 100 bytes each time, as a log does that serves one producer, and the milliseconds of each.
pub fn sync_rate(path: &Path, seconds: Duration) -> Result<(f64, Vec<f64>), BenchError> {
    let file = create(path)?;
    let mut waits = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < seconds {
        let before = Instant::now();
        file.write_all_at(&[0x5a; 100], waits.len() as u64 * 100)
            .and_then(|()| file.sync_data())
            .map_err(BenchError::file(path))?;
        waits.push(before.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok((waits.len() as f64 / begin.elapsed().as_secs_f64(), waits))
}

/// Megabytes a second of work on one block.
fn repeated(seconds: Duration, mut work: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut rounds = 0usize;
    while begin.elapsed() < seconds {
        work();
        rounds += 1;
    }
    (rounds * BLOCK) as f64 / 1e6 / begin.elapsed().as_secs_f64()
}
