//! The thread behind `log.fsync = interval`: it syncs what is new, every so often, until the log is dropped.

use std::{
    sync::{Arc, Weak, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::error::{LogError, LogResult};

/// What is to be synced.
pub(crate) trait SyncAll: Send + Sync + 'static {
    /// Syncs all that is not on disk.
    fn sync_all(&self);
}

/// Ends the thread when it is dropped.
#[derive(Debug)]
pub(crate) struct IntervalSync {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl IntervalSync {
    pub(crate) fn start<T: SyncAll>(target: Weak<T>, interval: Duration) -> LogResult<Self> {
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            while stopped.recv_timeout(interval) == Err(mpsc::RecvTimeoutError::Timeout) {
                let Some(target) = Weak::upgrade(&target) else {
                    return;
                };
                let target: Arc<T> = target;
                target.sync_all();
            }
        };
        let thread = thread::Builder::new()
            .name("log-sync".into())
            .spawn(run)
            .map_err(LogError::io(|| {
                "start the thread that syncs the log".into()
            }))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for IntervalSync {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            // The thread itself may hold the last reference to the log.
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}
