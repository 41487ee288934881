//! Threads that write and sync for callers who do not wait themselves ([`crate::Log::produce`], [`crate::Log::when_synced`]): however many these are, no
//! thread is needed for each.

use std::{
    collections::VecDeque,
    fmt,
    sync::Arc,
    thread::{self, JoinHandle},
};

use parking_lot::{Condvar, Mutex};

use crate::{
    embedded::partition::Partition,
    error::{LogError, LogResult},
};

/// So many partitions are synced at a time; a disk does a few such requests together, and more would only wait for it.
const THREADS: usize = 4;

/// Started by the first who asks. Dropping it does what was asked for and waits for that.
#[derive(Default)]
pub(crate) struct SyncPool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<Partition>>,
    idle: usize,
    stopping: bool,
}

impl fmt::Debug for SyncPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncPool").finish_non_exhaustive()
    }
}

impl SyncPool {
    /// Lets a thread sync the partition for those who wait for it.
    pub(crate) fn sync(&self, partition: Arc<Partition>) -> LogResult<()> {
        let mut threads = self.threads.lock();
        let mut state = self.shared.state.lock();
        if state.idle <= state.queue.len() && threads.len() < THREADS {
            let shared = Arc::clone(&self.shared);
            let name = format!("log-sync-{}", threads.len());
            let thread = thread::Builder::new()
                .name(name)
                .spawn(move || shared.run())
                .map_err(LogError::io(|| "start a thread that syncs".into()));
            match thread {
                Ok(thread) => threads.push(thread),
                // Those that run will come to it.
                Err(_) if !threads.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        state.queue.push_back(partition);
        drop(state);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(partition) = state.queue.pop_front() {
                drop(state);
                let has_more = partition.serve_waiters();
                state = self.state.lock();
                if has_more {
                    // Behind the others: no partition keeps a thread to itself.
                    state.queue.push_back(partition);
                } else {
                    drop(state);
                    drop(partition);
                    state = self.state.lock();
                }
            } else if state.stopping {
                return;
            } else {
                state.idle += 1;
                self.changed.wait(&mut state);
                state.idle -= 1;
            }
        }
    }
}

impl Drop for SyncPool {
    fn drop(&mut self) {
        self.shared.state.lock().stopping = true;
        self.shared.changed.notify_all();
        for thread in self.threads.get_mut().drain(..) {
            // A waiter may have held the last reference to the log.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}
