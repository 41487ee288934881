//! Readers of the past give way to appenders.
//!
//! A reader whose data is not in the page cache can keep a disk so busy that every fdatasync waits behind its reads. While somebody syncs, such a
//! reader rests after each of its reads for a multiple of the time that the disk took for it. Readers of what is in memory are never held.

use std::{
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// A sync this long ago still tells that there are appenders: they come one after the other.
const RECENTLY: Duration = Duration::from_millis(20);

/// How long a reader rests, in times of what it took from the disk: it has a quarter of the time then.
const REST: u32 = 3;

/// No reader rests longer at a time, however slow the disk.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// When the log last synced a file that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last_sync: Mutex<Option<Instant>>,
}

impl Pace {
    /// A sync begins or has ended.
    pub(crate) fn synced(&self) {
        *self.last_sync.lock() = Some(Instant::now());
    }

    /// How long to rest after reads that took so long from the disk.
    fn rest(&self, from_disk: Duration) -> Duration {
        let last_sync = *self.last_sync.lock();
        match last_sync {
            Some(at) if at.elapsed() < RECENTLY => (from_disk * REST).min(LONGEST_REST),
            _ => Duration::ZERO,
        }
    }

    /// Rests, if there is somebody to give way to.
    pub(crate) fn give_way(&self, from_disk: Duration) {
        if from_disk > Duration::ZERO {
            thread::sleep(self.rest(from_disk));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_readers_of_the_disk_rest_and_only_beside_syncs() {
        let pace = Pace::default();
        let took = Duration::from_millis(3);
        assert_eq!(pace.rest(took), Duration::ZERO, "nobody syncs");
        pace.synced();
        assert_eq!(pace.rest(Duration::ZERO), Duration::ZERO);
        assert_eq!(pace.rest(took), took * REST);
        assert_eq!(pace.rest(Duration::from_secs(9)), LONGEST_REST);
        *pace.last_sync.lock() = Instant::now().checked_sub(RECENTLY * 2);
        assert_eq!(pace.rest(took), Duration::ZERO, "that was long ago");
    }
}
