//! Readers of the past give way to appenders.
//!
//! A reader whose data is not in the page cache can keep a disk so busy that every fdatasync waits behind its reads. While somebody syncs, such a
//! reader rests for a multiple of the time since its last rest, whenever it has to go to the disk: what the kernel reads ahead of it keeps the
//! disk busy too, and only the reader's pace bounds that. Readers of what is in memory are never held.

use std::{
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// A sync this long ago still tells that there are appenders: they come one after the other.
const RECENTLY: Duration = Duration::from_millis(20);

/// How long a reader rests, in times of what it was busy: it has a sixth of the time then.
const REST: u32 = 5;

/// Whoever has not rested for so long has not been reading all the time.
const LONGEST_WORK: Duration = Duration::from_millis(50);

/// No reader rests longer at a time, however slow the disk.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// When the log last synced a file that somebody waits for, and when a reader last rested.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last_sync: Mutex<Option<Instant>>,
    last_rest: Mutex<Option<Instant>>,
}

impl Pace {
    /// A sync begins or has ended.
    pub(crate) fn synced(&self) {
        *self.last_sync.lock() = Some(Instant::now());
    }

    /// How long to rest after reads that took so long from the disk.
    fn rest(&self, from_disk: Duration) -> Duration {
        let last_sync = *self.last_sync.lock();
        if from_disk.is_zero() || last_sync.is_none_or(|at| at.elapsed() >= RECENTLY) {
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
    use super::*;

    fn ago(time: Duration) -> Option<Instant> {
        Instant::now().checked_sub(time)
    }

    #[test]
    fn only_readers_of_the_disk_rest_and_only_beside_syncs() {
        let pace = Pace::default();
        let took = Duration::from_millis(3);
        assert_eq!(pace.rest(took), Duration::ZERO, "nobody syncs");
        pace.synced();
        assert_eq!(pace.rest(Duration::ZERO), Duration::ZERO);
        assert_eq!(pace.rest(took), took * REST);
        assert_eq!(pace.rest(Duration::from_secs(9)), LONGEST_REST);
        *pace.last_rest.lock() = ago(took * 4);
        assert!(pace.rest(took) >= took * 4 * REST, "since the last rest");
        *pace.last_rest.lock() = ago(LONGEST_WORK * 2);
        assert_eq!(pace.rest(took), took * REST, "that is no work");
        *pace.last_sync.lock() = ago(RECENTLY * 2);
        assert_eq!(pace.rest(took), Duration::ZERO, "that was long ago");
    }
}
