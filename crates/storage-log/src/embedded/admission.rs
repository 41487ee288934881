//! What every batch is held against before it is appended, read without a lock: producers on all cores ask for it at once, and even a lock that is only
//! read is written to by each of them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::embedded::settings::PartitionSettings;

/// The part of a partition's settings that is about single batches.
#[derive(Debug)]
pub(super) struct Admission {
    max_batch_bytes: AtomicUsize,
    /// No codec and no time of the log's own.
    stored_as_they_come: AtomicBool,
}

impl Admission {
    pub(super) fn new(settings: &PartitionSettings) -> Self {
        let admission = Self {
            max_batch_bytes: AtomicUsize::new(0),
            stored_as_they_come: AtomicBool::new(false),
        };
        admission.change(settings);
        admission
    }

    pub(super) fn change(&self, settings: &PartitionSettings) {
        let as_they_come = settings.compression.is_none() && !settings.log_append_time;
        self.max_batch_bytes
            .store(settings.max_batch_bytes, Ordering::Release);
        self.stored_as_they_come
            .store(as_they_come, Ordering::Release);
    }

    pub(super) fn max_batch_bytes(&self) -> usize {
        self.max_batch_bytes.load(Ordering::Acquire)
    }

    pub(super) fn stored_as_they_come(&self) -> bool {
        self.stored_as_they_come.load(Ordering::Acquire)
    }
}
