//! Appending: large batches against the disk's own rate, small records against the core, many producers against the disk's syncs.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

use crate::{
    Appended, BatchBuilder, EmbeddedLog, EncodedBatch, FsyncPolicy, Log, LogOptions, LogResult,
    Offset, TopicConfig, TopicPartition,
};

use super::{
    BenchError,
    figures::{Bar, Figures, Limits},
    machine::sync_rate,
    meter::{Meter, Taken, memory_mib, percentile},
};

/// Bytes of records in a batch of the throughput runs; what producers that linger a little send.
const BATCH_BYTES: usize = 64 << 10;
const MIB: usize = 1 << 20;
/// What records hold; all of it, or the front.
static VALUE: [u8; 1024] = [0x5a; 1024];
/// Threads that serve the producers.
const HOSTS: usize = 2;

/// A log in a folder of its own with one topic of one partition.
pub(super) fn open(
    dir: &Path,
    fsync: FsyncPolicy,
) -> Result<(EmbeddedLog, TopicPartition), BenchError> {
    let (log, mut partitions) = open_partitions(dir, fsync, 1)?;
    Ok((log, partitions.remove(0)))
}

/// A log in a folder of its own with one topic.
fn open_partitions(
    dir: &Path,
    fsync: FsyncPolicy,
    partitions: u32,
) -> Result<(EmbeddedLog, Vec<TopicPartition>), BenchError> {
    let options = LogOptions {
        fsync,
        ..LogOptions::default()
    };
    let log = EmbeddedLog::open(dir, options)?;
    log.create_topic("bench", TopicConfig::with_partitions(partitions))?;
    let partitions = (0..partitions).map(|number| TopicPartition::new("bench", number));
    Ok((log, partitions.collect()))
}

/// A batch of records of that size, keys of eight bytes included.
pub(super) fn batch(
    builder: &mut BatchBuilder,
    record_bytes: usize,
    records: usize,
) -> EncodedBatch {
    for i in 0..records {
        let key = (i as u64).to_be_bytes();
        let value = &VALUE[..(record_bytes - key.len()).min(VALUE.len())];
        builder.push(1_700_000_000_000 + i as i64, Some(&key), Some(value), &[]);
    }
    builder.finish(None)
}

/// Batches of 1 MiB, each encoded before: what the log adds to the disk's own rate.
pub(super) fn sequential(
    dir: &Path,
    bytes: usize,
    limits: Limits,
    out: &mut Figures,
) -> Result<(), BenchError> {
    let policies = [
        ("always, one sync per 100 MB", FsyncPolicy::Always),
        (
            "interval of 100 ms",
            FsyncPolicy::Interval(Duration::from_millis(100)),
        ),
        ("never", FsyncPolicy::Never),
    ];
    let mut builder = BatchBuilder::new();
    let one = batch(&mut builder, 1024, MIB / 1040);
    for (name, fsync) in policies {
        let dir = dir.join("sequential");
        let (log, at) = open(&dir, fsync)?;
        let count = bytes / one.len();
        let meter = Meter::start();
        let mut unsynced = 0;
        for _ in 0..count {
            let last = log.append(&at, one.clone())?.last_offset;
            unsynced += one.len();
            if unsynced >= 100 * MIB {
                log.sync(&at, Offset(last.0 + 1))?;
                unsynced = 0;
            }
        }
        let end = log.offsets(&at)?.log_end;
        log.sync(&at, end)?;
        if fsync != FsyncPolicy::Never {
            // Under an interval the rest is on disk after the next one, or when the log closes.
            drop(log);
        }
        let taken = meter.stop();
        let rate = taken.megabytes(count * one.len());
        let what = format!("append, 1-MiB batches, fsync {name}");
        match fsync {
            FsyncPolicy::Never => out.ours(what, rate, "MB/s"),
            _ => out.compare(
                what,
                rate,
                "MB/s",
                (limits.disk_write, "disk write"),
                Bar::AtLeast(0.8),
            ),
        }
        std::fs::remove_dir_all(&dir).map_err(BenchError::file(&dir))?;
    }
    Ok(())
}

/// Small records in batches, encoded as part of the work; from one producer.
pub(super) fn records(
    dir: &Path,
    bytes: usize,
    record_bytes: usize,
    out: &mut Figures,
) -> Result<(), BenchError> {
    let policies = [
        (
            "interval",
            FsyncPolicy::Interval(Duration::from_millis(100)),
        ),
        ("never", FsyncPolicy::Never),
    ];
    for (name, fsync) in policies {
        let dir = dir.join("records");
        let (log, at) = open(&dir, fsync)?;
        let in_batch = BATCH_BYTES / record_bytes;
        let count = bytes / record_bytes / in_batch;
        let mut builder = BatchBuilder::new();
        let meter = Meter::start();
        for _ in 0..count {
            log.append(&at, batch(&mut builder, record_bytes, in_batch))?;
        }
        let taken = meter.stop();
        drop(log);
        let records = count * in_batch;
        let what = format!("append, {record_bytes} B records, fsync {name}");
        out.ours(&what, taken.rate(records), "records/s");
        out.ours(&what, taken.megabytes(records * record_bytes), "MB/s");
        let what = format!("{what}, per core");
        let per_core = taken.rate_per_core(records);
        if record_bytes == 100 && name == "interval" {
            out.compare(
                what,
                per_core,
                "records/s",
                (1e6, "1,000,000"),
                Bar::AtLeast(1.0),
            );
        } else {
            out.ours(what, per_core, "records/s");
        }
        std::fs::remove_dir_all(&dir).map_err(BenchError::file(&dir))?;
    }
    Ok(())
}

/// Who sends what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Producers {
    pub(super) producers: usize,
    /// Records that each has on its way.
    pub(super) in_flight: usize,
    pub(super) record_bytes: usize,
    /// Partitions of the topic, which the producers share out among themselves.
    pub(super) partitions: u32,
}

/// Producers that send records and wait until they are on disk. The disk's own rate is taken before and after: it changes from minute to minute.
pub(super) fn always(
    dir: &Path,
    producers: Producers,
    seconds: Duration,
    out: &mut Figures,
) -> Result<(), BenchError> {
    let Producers {
        producers: count,
        in_flight,
        record_bytes,
        partitions,
    } = producers;
    let machine = dir.join("machine");
    let (rate_before, _) = sync_rate(&machine, seconds / 4)?;
    let dir = dir.join("always");
    let (log, at) = open_partitions(&dir, FsyncPolicy::Always, partitions)?;
    let (taken, mut waits) = acknowledged(&log, &at, producers, seconds)?;
    drop(log);
    let (rate_after, _) = sync_rate(&machine, seconds / 4)?;
    std::fs::remove_file(&machine).map_err(BenchError::file(&machine))?;
    let mut what = format!("append, {record_bytes} B records, fsync always, {count} producers");
    if in_flight > 1 {
        what += &format!(" x {in_flight}");
    }
    if partitions > 1 {
        what += &format!(", {partitions} partitions");
    }
    let bar = match (count, in_flight) {
        (256, 1) => Bar::AtLeast(150.0),
        _ => Bar::None,
    };
    out.compare(
        &*what,
        taken.rate(waits.len()),
        "records/s",
        (f64::midpoint(rate_before, rate_after), "fdatasync rate"),
        bar,
    );
    let of_core = 1e6 / taken.rate_per_core(waits.len());
    out.ours(format!("{what}, CPU a record"), of_core, "us");
    for (name, part) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
        out.ours(
            format!("{what}, {name}"),
            percentile(&mut waits, part),
            "ms",
        );
    }
    std::fs::remove_dir_all(&dir).map_err(BenchError::file(&dir))
}

/// Runs the producers; answers with the milliseconds that each record took. As in a server, a few threads serve them all: a producer whose record
/// is on disk gets its turn again.
pub(super) fn acknowledged(
    log: &EmbeddedLog,
    at: &[TopicPartition],
    producers: Producers,
    seconds: Duration,
) -> LogResult<(Taken, Vec<f64>)> {
    let done = AtomicBool::new(false);
    let under_way = producers.producers * producers.in_flight;
    let meter = Meter::start();
    let waits = thread::scope(|scope| {
        let share = |host: usize| (under_way + host) / HOSTS;
        let handles: Vec<_> = (0..HOSTS)
            .map(|host| {
                let done = &done;
                let record_bytes = producers.record_bytes;
                scope.spawn(move || host_producers(log, at, share(host), record_bytes, done))
            })
            .collect();
        thread::sleep(seconds);
        done.store(true, Ordering::Relaxed);
        let waits = handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| Ok(Vec::new())));
        waits.collect::<LogResult<Vec<_>>>()
    })?;
    Ok((meter.stop(), waits.concat()))
}

/// Producers whose records are on disk, or could not be brought there.
#[derive(Default)]
struct Acknowledged {
    /// When each was sent, and to which of the partitions.
    ready: Mutex<Vec<LogResult<(Instant, usize)>>>,
    changed: Condvar,
}

/// One thread's share of the records on their way: each that is on disk is followed by the next of its producer.
fn host_producers(
    log: &EmbeddedLog,
    at: &[TopicPartition],
    share: usize,
    record_bytes: usize,
    done: &AtomicBool,
) -> LogResult<Vec<f64>> {
    let acknowledged = Arc::new(Acknowledged::default());
    let mut builder = BatchBuilder::new();
    let mut waits = Vec::new();
    let mut sends: Vec<usize> = (0..share).map(|producer| producer % at.len()).collect();
    let mut under_way = 0;
    loop {
        // One look at the clock for all that go out now: theirs are a little longer for it, and the clock is no part of what is measured.
        let sent = Instant::now();
        under_way += sends.len();
        for partition in sends {
            let batch = batch(&mut builder, record_bytes, 1);
            let tells = Arc::clone(&acknowledged);
            let waiter = move |appended: LogResult<Appended>| {
                let mut ready = tells.ready.lock();
                let is_first = ready.is_empty();
                ready.push(appended.map(|_| (sent, partition)));
                drop(ready);
                if is_first {
                    tells.changed.notify_one();
                }
            };
            log.produce(&at[partition], batch, Box::new(waiter));
        }
        if under_way == 0 {
            return Ok(waits);
        }
        let mut ready = acknowledged.ready.lock();
        while ready.is_empty() {
            acknowledged.changed.wait(&mut ready);
        }
        let ready = std::mem::take(&mut *ready);
        under_way -= ready.len();
        let heard = Instant::now();
        sends = Vec::with_capacity(ready.len());
        for acknowledged in ready {
            let (sent, partition) = acknowledged?;
            waits.push((heard - sent).as_secs_f64() * 1_000.0);
            sends.push(partition);
        }
        if done.load(Ordering::Relaxed) {
            sends.clear();
        }
    }
}

/// Memory while much is appended.
pub(super) fn memory(dir: &Path, bytes: usize, out: &mut Figures) -> Result<(), BenchError> {
    let dir = dir.join("memory");
    let (log, at) = open(&dir, FsyncPolicy::Interval(Duration::from_millis(100)))?;
    let mut builder = BatchBuilder::new();
    let one = batch(&mut builder, 1024, MIB / 1040);
    let mut peak: f64 = 0.0;
    for i in 0..bytes / one.len() {
        log.append(&at, one.clone())?;
        if i % 64 == 0 {
            peak = peak.max(memory_mib());
        }
    }
    let what = format!(
        "memory while {} GB are appended, peak",
        bytes / 1_000_000_000
    );
    out.compare(what, peak, "MiB", (64.0, "64 MiB"), Bar::AtMost(1.0));
    drop(log);
    std::fs::remove_dir_all(&dir).map_err(BenchError::file(&dir))
}
