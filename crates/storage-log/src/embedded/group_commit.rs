//! One sync for all who wait. The first becomes the leader and syncs what is in the file by then; those who come meanwhile wait for it and, if it
//! did not cover them, elect the next leader. No timer, and no thread of its own but for those who leave a word instead of waiting: for them one of
//! the pool's leads.
//!
//! INVARIANT: after a failed sync `durable` never moves again and every caller gets an error: the kernel may have dropped the dirty pages, so a later
//! sync that succeeds proves nothing.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

use crate::{
    error::{LogError, LogResult},
    log::{SyncWaiter, TopicPartition},
};

/// How far a partition is on disk.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    state: Mutex<State>,
    changed: Condvar,
    /// Enough words are left for the sync that waits for them.
    gathered: Condvar,
    /// Copy of `state.failure.is_some()`, so that appends need not take the lock.
    poisoned: AtomicBool,
}

struct State {
    durable: i64,
    leader: bool,
    failure: Option<String>,
    /// Who is told when everything below the offset is on disk.
    waiters: Vec<(i64, SyncWaiter)>,
    /// A thread of the pool was asked to lead for them.
    pool_leads: bool,
    /// How many words the pool's thread gathers before it syncs; 0 while it does not.
    gathering: usize,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("durable", &self.durable)
            .field("failure", &self.failure)
            .field("waiters", &self.waiters.len())
            .finish_non_exhaustive()
    }
}

impl State {
    /// Those whose word has come: their records are on disk, or never will be.
    fn take_told(&mut self) -> Vec<(i64, SyncWaiter)> {
        if self.failure.is_some() {
            return std::mem::take(&mut self.waiters);
        }
        let durable = self.durable;
        self.waiters
            .extract_if(.., |(up_to, _)| *up_to <= durable)
            .collect()
    }
}

impl GroupCommit {
    pub(crate) fn new(durable: i64) -> Self {
        Self {
            state: Mutex::new(State {
                durable,
                leader: false,
                failure: None,
                waiters: Vec::new(),
                pool_leads: false,
                gathering: 0,
            }),
            changed: Condvar::new(),
            gathered: Condvar::new(),
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
            let told = state.take_told();
            if !told.is_empty() {
                drop(state);
                self.tell(partition, told);
                state = self.state.lock();
            }
        }
    }

    /// Leaves a word for when everything below `up_to` is on disk. True if the pool has to be asked to lead.
    pub(crate) fn leave_word(
        &self,
        partition: &TopicPartition,
        up_to: i64,
        waiter: SyncWaiter,
    ) -> bool {
        let mut state = self.state.lock();
        state.waiters.push((up_to, waiter));
        let told = state.take_told();
        let must_lead = !state.waiters.is_empty() && !state.pool_leads;
        state.pool_leads |= must_lead;
        let enough = state.gathering > 0 && state.waiters.len() >= state.gathering;
        drop(state);
        if enough {
            self.gathered.notify_one();
        }
        self.tell(partition, told);
        must_lead
    }

    /// Waits until so many more have left a word, but not for long.
    pub(crate) fn gather(&self, more: usize, at_most: Duration) {
        let deadline = Instant::now() + at_most;
        let mut state = self.state.lock();
        state.gathering = state.waiters.len() + more;
        while state.waiters.len() < state.gathering
            && state.failure.is_none()
            && !self.gathered.wait_until(&mut state, deadline).timed_out()
        {}
        state.gathering = 0;
    }

    /// How many have left a word, and up to where the pool has to sync for them; `None` ends its leading.
    pub(crate) fn words(&self) -> Option<(usize, i64)> {
        let mut state = self.state.lock();
        let furthest = state.waiters.iter().map(|(up_to, _)| *up_to).max();
        state.pool_leads = furthest.is_some();
        Some((state.waiters.len(), furthest?))
    }

    /// Tells those who left a word that the pool cannot serve them.
    pub(crate) fn dismiss(&self, partition: &TopicPartition, reason: &str) {
        let mut state = self.state.lock();
        state.pool_leads = false;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        for (_, waiter) in waiters {
            waiter(Err(LogError::Poisoned {
                partition: partition.clone(),
                reason: reason.to_owned(),
            }));
        }
    }

    fn tell(&self, partition: &TopicPartition, told: Vec<(i64, SyncWaiter)>) {
        for (up_to, waiter) in told {
            // What was on disk before a failure still is.
            waiter(if up_to <= self.durable() {
                Ok(())
            } else {
                self.check(partition)
            });
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
        let told = state.take_told();
        drop(state);
        self.tell(partition, told);
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
