//! A wake-up for those who follow a topic without a query (PRINT).

use highwater_storage_log::{AppendListener, TopicPartition};
use tokio::sync::watch;

/// Counts appends; followers wait for the count to change. The count wraps, which no follower notices.
#[derive(Debug)]
pub struct AppendSignal {
    count: watch::Sender<u64>,
}

impl AppendSignal {
    /// A signal that has not been raised.
    pub fn new() -> Self {
        Self {
            count: watch::Sender::new(0),
        }
    }

    /// Whatever is appended after this call is noticed.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }
}

impl Default for AppendSignal {
    fn default() -> Self {
        Self::new()
    }
}

impl AppendListener for AppendSignal {
    fn appended(&self, _: &TopicPartition) {
        if self.count.receiver_count() > 0 {
            self.count
                .send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}
