//! What the pipeline's thread shares with everybody else: the published snapshot, counters, and wake-ups.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use highwater_storage_log::{AppendListener, Offset, TopicPartition};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::{
    cut::AppendGroups,
    engine::{QueryStatus, SourceStatus},
    error::{ExecError, ExecResult, with_causes},
    memory::MemoryBudget,
    pipeline_thread::Event,
    snapshot::{Snapshot, SnapshotInner},
    step_times::{StepStats, StepTimes},
};

/// How long a write waits for room before it is tried again.
const FULL_DISK_PAUSE: Duration = Duration::from_millis(200);

/// See the module.
pub struct Shared {
    events: mpsc::Sender<Event>,
    /// An input event is in the channel; no further one is needed.
    input_signalled: AtomicBool,
    watched: RwLock<HashSet<String>>,
    published: Mutex<Published>,
    changed: Condvar,
    status: Mutex<(Vec<QueryStatus>, Vec<SourceStatus>)>,
    step_times: Mutex<StepTimes>,
    /// Appends that must not be cut apart.
    pub(crate) groups: AppendGroups,
    next_subscription: AtomicU64,
    stopping: AtomicBool,
    /// The memory for state.
    pub(crate) memory: Arc<MemoryBudget>,
}

#[derive(Default)]
struct Published {
    snapshot: Snapshot,
    /// Why the engine stopped.
    stopped: Option<String>,
}

impl Shared {
    /// Events go to the pipeline's thread; queries have `state_memory` bytes for their state.
    pub fn new(events: mpsc::Sender<Event>, state_memory: usize) -> Self {
        Self {
            events,
            input_signalled: AtomicBool::new(false),
            watched: RwLock::new(HashSet::new()),
            published: Mutex::new(Published::default()),
            changed: Condvar::new(),
            status: Mutex::default(),
            step_times: Mutex::default(),
            groups: AppendGroups::default(),
            next_subscription: AtomicU64::new(1),
            stopping: AtomicBool::new(false),
            memory: MemoryBudget::new(state_memory),
        }
    }

    /// Sends an event; answers false when the thread has ended.
    pub fn send(&self, event: Event) -> bool {
        self.events.send(event).is_ok()
    }

    /// Appends to this topic wake the pipeline from now on.
    pub fn watch(&self, topic: &str) {
        self.watched.write().insert(topic.to_owned());
    }

    /// Whether some query reads the topic.
    pub fn is_watched(&self, topic: &str) -> bool {
        self.watched.read().contains(topic)
    }

    /// The pipeline is about to look for input: later appends signal again.
    pub fn clear_input_signal(&self) {
        self.input_signalled.store(false, Ordering::SeqCst);
    }

    /// Wakes the pipeline to look for input.
    pub fn signal_input(&self) {
        if !self.input_signalled.swap(true, Ordering::SeqCst) {
            self.send(Event::Input);
        }
    }

    /// A number for a new push query.
    pub fn next_subscription(&self) -> u64 {
        self.next_subscription.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes a committed step visible.
    pub fn publish(&self, inner: SnapshotInner) {
        self.published.lock().snapshot = Snapshot {
            inner: Arc::new(inner),
        };
        self.changed.notify_all();
    }

    /// The last committed step.
    pub fn snapshot(&self) -> Snapshot {
        self.published.lock().snapshot.clone()
    }

    /// The engine is asked to stop: nothing waits for a full disk any more.
    pub fn begin_stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Whether the engine's owner has asked it to stop.
    pub fn is_asked_to_stop(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Whether the engine stops or has stopped.
    pub fn is_stopping(&self) -> bool {
        self.is_asked_to_stop() || self.stopped().is_some()
    }

    /// Does `write` until the disk has room for it. Readers keep the last snapshot meanwhile.
    pub fn until_there_is_room<T>(
        &self,
        mut write: impl FnMut() -> ExecResult<T>,
    ) -> ExecResult<T> {
        let mut told = false;
        loop {
            match write() {
                Err(error) if error.is_disk_full() && !self.is_stopping() => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::error!(
                            error = with_causes(&error),
                            "the disk is full; the queries wait for room"
                        );
                    }
                    std::thread::sleep(FULL_DISK_PAUSE);
                }
                done => return done,
            }
        }
    }

    /// Ends all waiting.
    pub fn stop(&self, reason: &str) {
        self.published
            .lock()
            .stopped
            .get_or_insert_with(|| reason.to_owned());
        self.changed.notify_all();
    }

    /// Why the engine stopped, if it did.
    pub fn stopped(&self) -> Option<String> {
        self.published.lock().stopped.clone()
    }

    /// Waits for a step that covers all records below the given offsets in the partitions that are read.
    pub fn wait_covering(
        &self,
        written: &[(TopicPartition, Offset)],
        timeout: Duration,
    ) -> ExecResult<Snapshot> {
        let deadline = Instant::now() + timeout;
        let mut published = self.published.lock();
        loop {
            if covers(&published.snapshot, written) {
                return Ok(published.snapshot.clone());
            }
            if let Some(reason) = &published.stopped {
                return Err(ExecError::Stopped(reason.clone()));
            }
            if self
                .changed
                .wait_until(&mut published, deadline)
                .timed_out()
            {
                return Err(ExecError::FreshnessTimeout(timeout));
            }
        }
    }

    /// Notes a step that commits now and began its cut at `began`.
    pub fn note_step(&self, began: Instant) {
        let now = Instant::now();
        self.step_times
            .lock()
            .note(now, now.saturating_duration_since(began));
    }

    /// How often steps commit and how long they take.
    pub fn step_stats(&self) -> StepStats {
        self.step_times.lock().stats(Instant::now())
    }

    /// Publishes counters.
    pub fn set_status(&self, queries: Vec<QueryStatus>, sources: Vec<SourceStatus>) {
        *self.status.lock() = (queries, sources);
    }

    /// Counters as last published.
    pub fn status(&self) -> (Vec<QueryStatus>, Vec<SourceStatus>) {
        self.status.lock().clone()
    }
}

fn covers(snapshot: &Snapshot, written: &[(TopicPartition, Offset)]) -> bool {
    written.iter().all(|(partition, end)| {
        let positions = snapshot.inner.positions.get(&*partition.topic);
        let position =
            positions.and_then(|positions| positions.get(partition.partition.0 as usize));
        position.is_none_or(|position| *position >= end.0)
    })
}

impl AppendListener for Shared {
    fn appended(&self, partition: &TopicPartition) {
        if self.is_watched(&partition.topic) {
            self.signal_input();
        }
    }
}
