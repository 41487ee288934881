//! Who hears of appends.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use parking_lot::RwLock;

use crate::log::{AppendListener, TopicPartition};

/// The listeners of a log.
pub(crate) struct Listeners(RwLock<Arc<[Arc<dyn AppendListener>]>>);

impl Default for Listeners {
    fn default() -> Self {
        Self(RwLock::new(Arc::new([])))
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

impl Listeners {
    pub(crate) fn add(&self, listener: Arc<dyn AppendListener>) {
        let mut listeners = self.0.write();
        *listeners = listeners.iter().cloned().chain([listener]).collect();
    }

    /// The partition has new records, or records that became visible. No lock is held while they are told.
    pub(crate) fn notify(&self, partition: &TopicPartition) {
        let listeners = Arc::clone(&self.0.read());
        for listener in listeners.iter() {
            // Whoever is to be told after them is told.
            if catch_unwind(AssertUnwindSafe(|| listener.appended(partition))).is_err() {
                tracing::error!(%partition, "a listener for appends panicked");
            }
        }
    }
}
