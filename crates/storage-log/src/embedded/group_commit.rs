//! One sync for all who wait. The first becomes the leader and syncs what is in the file by then; those who come meanwhile wait for it and, if it
//! did not cover them, elect the next leader. No timer, and no thread of its own but for those who leave a word or hand over a batch instead of
//! waiting: for them one of the pool's leads.
//!
//! INVARIANT: after a failed sync `durable` never moves again and every caller gets an error: the kernel may have dropped the dirty pages, so a later
//! sync that succeeds proves nothing.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::{
    batch::EncodedBatch,
    embedded::waiting::{Queue, Told, Waiting, Word, refuse},
    error::{LogError, LogResult},
    log::{AppendWaiter, SyncWaiter, TopicPartition},
};

/// How far a partition is on disk.
// Apart from what is only read, so that whoever reads that does not wait for the memory of those who write this.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct GroupCommit {
    state: Mutex<State>,
    changed: Condvar,
    /// Enough wait for the sync that waits for them.
    gathered: Condvar,
    /// Copy of `state.failure.is_some()`, so that appends need not take the lock.
    poisoned: AtomicBool,
}

struct State {
    durable: i64,
    leader: bool,
    failure: Option<String>,
    waiting: Waiting,
}

/// What follows for whoever let somebody wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MustDo {
    /// The pool has to be asked to lead.
    pub(super) lead: bool,
    /// So much is waiting that it has to be written, or synced, now.
    pub(super) catch_up: bool,
}

/// What the pool's thread has to do next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Round {
    /// So many wait for everything below the offset to be on disk.
    Sync(usize, i64),
    /// Somebody has handed over a batch since.
    Write,
    /// Nobody waits; it leads no more.
    Over,
}

impl MustDo {
    /// Nothing has to be done.
    pub(super) fn is_done(self) -> bool {
        !self.lead && !self.catch_up
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("durable", &self.durable)
            .field("failure", &self.failure)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl State {
    fn take_told(&mut self) -> Told {
        self.waiting.take_told(self.durable, self.failure.as_ref())
    }
}

impl GroupCommit {
    pub(crate) fn new(durable: i64) -> Self {
        Self {
            state: Mutex::new(State {
                durable,
                leader: false,
                failure: None,
                waiting: Waiting::default(),
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
            drop(state);
            told.tell(partition);
            state = self.state.lock();
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
        state.waiting.leave_word(up_to, Word::Synced(waiter));
        if up_to <= state.durable || state.failure.is_some() {
            let told = state.take_told();
            drop(state);
            told.tell(partition);
            return false;
        }
        self.began_to_wait(state).lead
    }

    /// Leaves words for batches that are in the log now. The pool's thread may have found nobody between the taking of the batches and this, and has to
    /// be asked again then.
    pub(super) fn leave_words(
        &self,
        partition: &TopicPartition,
        words: impl Iterator<Item = (i64, Word)>,
    ) -> MustDo {
        let mut state = self.state.lock();
        words.for_each(|(up_to, word)| state.waiting.leave_word(up_to, word));
        // What was appended before, and is found a second time, may be on disk.
        let told = state.take_told();
        let waiting = &mut state.waiting;
        let must_do = MustDo {
            lead: waiting.furthest().is_some() && !waiting.pool_leads,
            catch_up: waiting.has_many_words(),
        };
        waiting.pool_leads |= must_do.lead;
        drop(state);
        told.tell(partition);
        must_do
    }

    /// Takes a batch that is to be written by whoever leads.
    pub(super) fn hand_over(&self, batch: EncodedBatch, waiter: AppendWaiter) -> MustDo {
        let mut state = self.state.lock();
        let spare = state.waiting.hand_over(batch, waiter);
        let must_do = self.began_to_wait(state);
        drop(spare);
        must_do
    }

    fn began_to_wait(&self, mut state: MutexGuard<'_, State>) -> MustDo {
        let waiting = &mut state.waiting;
        let must_do = MustDo {
            lead: !waiting.pool_leads,
            catch_up: waiting.is_full(),
        };
        waiting.pool_leads = true;
        let enough = waiting.gathering > 0 && waiting.len() >= waiting.gathering;
        if enough {
            // The thread is woken once.
            waiting.gathering = 0;
        }
        drop(state);
        if enough {
            self.gathered.notify_one();
        }
        must_do
    }

    /// Tells those whose word has come.
    pub(super) fn tell(&self, partition: &TopicPartition) {
        let told = self.state.lock().take_told();
        told.tell(partition);
    }

    /// Exchanges what was handed over for `with`, which is empty.
    pub(super) fn exchange_queue(&self, with: &mut Queue) {
        self.state.lock().waiting.exchange_queue(with);
    }

    /// Waits until so many more wait, but not for long.
    pub(crate) fn gather(&self, more: usize, at_most: Duration) {
        let deadline = Instant::now() + at_most;
        let mut state = self.state.lock();
        let enough = state.waiting.len() + more;
        state.waiting.gathering = enough;
        while state.waiting.gathering > 0
            && state.failure.is_none()
            && !self.gathered.wait_until(&mut state, deadline).timed_out()
        {}
        state.waiting.gathering = 0;
    }

    /// What the pool's thread has to do next.
    pub(super) fn next_round(&self) -> Round {
        let mut state = self.state.lock();
        let waiting = &mut state.waiting;
        match waiting.furthest() {
            Some(up_to) => Round::Sync(waiting.len(), up_to),
            None if !waiting.all_written() => Round::Write,
            None => {
                waiting.pool_leads = false;
                waiting.release_room();
                Round::Over
            }
        }
    }

    /// Tells those who wait that the pool cannot serve them.
    pub(crate) fn dismiss(&self, partition: &TopicPartition, reason: &str) {
        let mut state = self.state.lock();
        state.waiting.pool_leads = false;
        let (queue, words) = state.waiting.take_all();
        drop(state);
        let refusal = || LogError::Poisoned {
            partition: partition.clone(),
            reason: reason.to_owned(),
        };
        for one in queue.batches {
            refuse((refusal(), one.waiter));
        }
        for (_, word) in words {
            word.tell(Err(refusal()));
        }
    }

    /// Takes note of a sync that was done elsewhere (when a segment is sealed). Those who left a word are told by the pool's thread: the caller holds
    /// locks, and a waiter may hand over the next batch.
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
