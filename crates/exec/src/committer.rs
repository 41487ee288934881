//! Hears from the log when what a step needs is on disk, so that the next step can run meanwhile.
//!
//! No thread waits for it: whichever thread of the log syncs last tells. Where nothing has to be waited for, that is the caller itself.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use highwater_storage_log::{Log, LogError, Offset, TopicPartition};
use parking_lot::Mutex;

use crate::error::{ExecError, ExecResult};

/// One wait for several partitions.
struct Waiting<D> {
    left: AtomicUsize,
    failed: Mutex<Option<LogError>>,
    done: Mutex<Option<D>>,
}

/// Calls `done` once, when all partitions are on disk up to their offsets or could not be brought there. It must not wait for anything.
pub fn when_durable<D>(log: &dyn Log, partitions: Vec<(TopicPartition, Offset)>, done: D)
where
    D: FnOnce(ExecResult<()>) + Send + 'static,
{
    if partitions.is_empty() {
        return done(Ok(()));
    }
    let waiting = Arc::new(Waiting {
        left: AtomicUsize::new(partitions.len()),
        failed: Mutex::new(None),
        done: Mutex::new(Some(done)),
    });
    for (partition, end) in partitions {
        let waiting = Arc::clone(&waiting);
        log.when_synced(
            &partition,
            end,
            Box::new(move |synced| waiting.synced(synced.err())),
        );
    }
}

impl<D: FnOnce(ExecResult<()>)> Waiting<D> {
    fn synced(&self, failed: Option<LogError>) {
        if failed.is_some() {
            *self.failed.lock() = failed;
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let failed = self.failed.lock().take();
        if let Some(done) = self.done.lock().take() {
            done(failed.map_or(Ok(()), |error| Err(ExecError::from(error))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::mpsc, time::Duration};

    use highwater_storage_log::{BatchBuilder, EmbeddedLog, LogOptions, MemoryDisk, TopicConfig};

    use super::*;

    /// Appends a record to each of two partitions and waits for both.
    fn wait(disk: &MemoryDisk) -> ExecResult<()> {
        let log = EmbeddedLog::open_on(
            Arc::new(disk.clone()),
            Path::new("/log"),
            LogOptions::default(),
        )
        .expect("it opens");
        log.create_topic("t", TopicConfig::with_partitions(2))
            .expect("made");
        let ends = (0..2).map(|number| {
            let partition = TopicPartition::new("t", number);
            let mut builder = BatchBuilder::new();
            builder.push(0, None, Some(b"record"), &[]);
            log.append(&partition, builder.finish(None))
                .expect("appended");
            (partition, Offset(1))
        });
        let ends = ends.collect();
        let (sender, told) = mpsc::channel();
        when_durable(&log, ends, move |synced| {
            sender.send(synced).expect("somebody listens");
        });
        told.recv_timeout(Duration::from_secs(20))
            .expect("told once")
    }

    #[test]
    fn it_is_told_when_all_partitions_are_on_disk() {
        wait(&MemoryDisk::with_crashes()).expect("synced");
        let (sender, told) = mpsc::channel();
        let disk = MemoryDisk::with_crashes();
        let log = EmbeddedLog::open_on(Arc::new(disk), Path::new("/log"), LogOptions::default())
            .expect("it opens");
        when_durable(&log, Vec::new(), move |synced| {
            sender.send(synced.is_ok()).expect("somebody listens");
        });
        assert!(told.try_recv().expect("told at once"));
    }

    #[test]
    fn a_partition_that_is_not_there_is_an_error() {
        let log = EmbeddedLog::open_on(
            Arc::new(MemoryDisk::with_crashes()),
            Path::new("/log"),
            LogOptions::default(),
        )
        .expect("it opens");
        let (sender, told) = mpsc::channel();
        let ends = vec![(TopicPartition::new("none", 0), Offset(1))];
        when_durable(&log, ends, move |synced| {
            sender.send(synced).expect("somebody listens");
        });
        let told = told.recv_timeout(Duration::from_secs(20)).expect("told");
        assert!(matches!(told, Err(ExecError::Log(_))), "{told:?}");
    }
}
