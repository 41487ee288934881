//! One sync for all who wait. The first becomes the leader and syncs what is in the file by then; those who come meanwhile wait for it and, if it
//! did not cover them, elect the next leader. No thread of its own, no timer.
//!
//! INVARIANT: after a failed sync `durable` never moves again and every caller gets an error: the kernel may have dropped the dirty pages, so a later
//! sync that succeeds proves nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::{
    error::{LogError, LogResult},
    log::TopicPartition,
};

/// How far a partition is on disk.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    state: Mutex<State>,
    changed: Condvar,
    /// Copy of `state.failure.is_some()`, so that appends need not take the lock.
    poisoned: AtomicBool,
}

#[derive(Debug)]
struct State {
    durable: i64,
    leader: bool,
    failure: Option<String>,
}

impl GroupCommit {
    pub(crate) fn new(durable: i64) -> Self {
        Self {
            state: Mutex::new(State {
                durable,
                leader: false,
                failure: None,
            }),
            changed: Condvar::new(),
            poisoned: AtomicBool::new(false),
        }
    }

    /// Everything below this offset is on disk.
    pub(crate) fn durable(&self) -> i64 {
        self.state.lock().durable
    }

    /// Fails once a sync failed.
    pub(crate) fn check(&self, partition: &TopicPartition) -> LogResult<()> {
        if !self.poisoned.load(Ordering::Acquire) {
            return Ok(());
        }
        let reason = self.state.lock().failure.clone().unwrap_or_default();
        Err(LogError::Poisoned {
            partition: partition.clone(),
            reason,
        })
    }

    /// Waits until everything below `up_to` is on disk. `sync` syncs what is there and answers up to where that was.
    pub(crate) fn wait_for(
        &self,
        partition: &TopicPartition,
        up_to: i64,
        sync: impl Fn() -> std::io::Result<i64>,
    ) -> LogResult<()> {
        let mut state = self.state.lock();
        loop {
            // What was on disk before a failure still is.
            if state.durable >= up_to {
                return Ok(());
            }
            if let Some(reason) = &state.failure {
                return Err(LogError::Poisoned {
                    partition: partition.clone(),
                    reason: reason.clone(),
                });
            }
            if state.leader {
                self.changed.wait(&mut state);
                continue;
            }
            state.leader = true;
            drop(state);
            let synced = sync();
            state = self.state.lock();
            state.leader = false;
            self.record(&mut state, synced);
            self.changed.notify_all();
        }
    }

    /// Takes note of a sync that was done elsewhere (when a segment is sealed).
    pub(crate) fn note(
        &self,
        partition: &TopicPartition,
        synced: std::io::Result<i64>,
    ) -> LogResult<()> {
        let mut state = self.state.lock();
        self.record(&mut state, synced);
        self.changed.notify_all();
        drop(state);
        self.check(partition)
    }

    fn record(&self, state: &mut State, synced: std::io::Result<i64>) {
        match synced {
            Ok(end) if state.failure.is_none() => state.durable = state.durable.max(end),
            Ok(_) => {}
            Err(error) => {
                state.failure.get_or_insert_with(|| error.to_string());
                self.poisoned.store(true, Ordering::Release);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{
            Barrier,
            atomic::{AtomicI64, AtomicU64},
        },
        thread,
        time::Duration,
    };

    use super::*;

    #[test]
    fn waiters_share_syncs() {
        let commit = GroupCommit::new(0);
        let partition = TopicPartition::new("t", 0);
        let written = AtomicI64::new(0);
        let syncs = AtomicU64::new(0);
        let barrier = Barrier::new(16);
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..20 {
                        let mine = written.fetch_add(1, Ordering::SeqCst) + 1;
                        let sync = || {
                            syncs.fetch_add(1, Ordering::SeqCst);
                            let end = written.load(Ordering::SeqCst);
                            thread::sleep(Duration::from_millis(1));
                            Ok(end)
                        };
                        commit.wait_for(&partition, mine, sync).expect("synced");
                        assert!(commit.durable() >= mine);
                    }
                });
            }
        });
        let syncs = syncs.load(Ordering::SeqCst);
        assert!(syncs <= 80, "320 waits took {syncs} syncs");
    }

    #[test]
    fn a_failure_is_for_ever_but_takes_nothing_back() {
        let commit = GroupCommit::new(0);
        let partition = TopicPartition::new("t", 0);
        commit.wait_for(&partition, 5, || Ok(5)).expect("synced");
        let failed = commit.wait_for(&partition, 9, || Err(io::Error::other("no")));
        assert!(
            matches!(failed, Err(LogError::Poisoned { .. })),
            "{failed:?}"
        );
        assert!(
            commit.wait_for(&partition, 9, || Ok(9)).is_err(),
            "a later sync proves nothing"
        );
        assert!(commit.check(&partition).is_err());
        commit
            .wait_for(&partition, 5, || Err(io::Error::other("not called")))
            .expect("still on disk");
        assert_eq!(commit.durable(), 5);
    }
}
