//! Threads that do something every so often until the log is dropped: syncing under `log.fsync = interval`, and maintenance.

use std::{
    fmt,
    sync::{Weak, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::error::{LogError, LogResult};

/// A thread that is woken at an interval. Dropping it ends the thread and waits for that.
pub(crate) struct Periodic {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Periodic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Periodic").finish_non_exhaustive()
    }
}

impl Periodic {
    /// Calls `work` at that interval for as long as `target` lives.
    pub(crate) fn start<T: Send + Sync + 'static>(
        name: &str,
        interval: Duration,
        target: Weak<T>,
        work: impl Fn(&T) + Send + 'static,
    ) -> LogResult<Self> {
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            while stopped.recv_timeout(interval) == Err(mpsc::RecvTimeoutError::Timeout) {
                let Some(target) = target.upgrade() else {
                    return;
                };
                work(&target);
            }
        };
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(run)
            .map_err(LogError::io(|| format!("start the thread \"{name}\"")))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Periodic {
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
