//! The thread that ends transactions: writes their markers, tells who waits, and lets go of commit records.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, mpsc},
    time::Duration,
};

use highwater_storage_log::{ErrorKind, Log, Offset, TopicPartition};
use parking_lot::Mutex;

use super::{
    Producer, State, Told,
    record::{Part, Record},
    records_partition,
};
use crate::{
    error::{ExecResult, with_causes},
    shared::Shared,
};

/// Transactions after which old commit records go.
const TRIM_EVERY: usize = 4_096;

/// How long markers that the log had no room for wait until they are tried again.
const RETRY: Duration = Duration::from_millis(200);

/// A transaction of which everything is written but the markers.
pub struct Ended {
    producer: Producer,
    /// Those that have no marker yet.
    parts: Vec<Part>,
    /// Its commit record.
    record: Option<Offset>,
    commit: bool,
    told: Option<(Told, ExecResult<()>)>,
    /// All parts, until the steps know that they belong together.
    unnoted: Vec<Part>,
    /// Its commit record is taken back, if it was to be.
    revoked: bool,
    /// A part cannot be ended before its partition is opened again. Until then its record stays, and its producer writes nothing else.
    stuck: bool,
}

impl Ended {
    /// One whose batches could not all be appended.
    pub fn abort(producer: Producer, parts: Vec<Part>) -> Self {
        Self {
            producer,
            parts,
            record: None,
            commit: false,
            told: None,
            unnoted: Vec::new(),
            revoked: false,
            stuck: false,
        }
    }

    /// One that is on disk, or could not be brought there.
    pub fn synced(
        producer: Producer,
        parts: Vec<Part>,
        record: Offset,
        synced: ExecResult<()>,
        told: Told,
    ) -> Self {
        Self {
            producer,
            unnoted: parts.clone(),
            parts,
            record: Some(record),
            commit: synced.is_ok(),
            told: Some((told, synced)),
            revoked: false,
            stuck: false,
        }
    }
}

/// See the module.
pub struct Ending {
    log: Arc<dyn Log>,
    records: TopicPartition,
    shared: Arc<Shared>,
    state: Arc<Mutex<State>>,
    /// Behind the last marker of each partition. They have to be on disk before the commit records go.
    markers: BTreeMap<TopicPartition, Offset>,
    /// Those for whose markers there was no room.
    owed: VecDeque<Ended>,
    since_trim: usize,
}

impl Ending {
    pub fn new(log: Arc<dyn Log>, shared: Arc<Shared>, state: Arc<Mutex<State>>) -> Self {
        Self {
            log,
            records: records_partition(),
            shared,
            state,
            markers: BTreeMap::new(),
            owed: VecDeque::new(),
            since_trim: 0,
        }
    }

    /// Ends transactions as they come, until nobody can send any more.
    pub fn run(mut self, ended: &mpsc::Receiver<Ended>) {
        loop {
            let is_settled = self.state.lock().settled;
            let next = if is_settled && self.owed.is_empty() {
                ended
                    .recv()
                    .map_err(|_| mpsc::RecvTimeoutError::Disconnected)
            } else {
                ended.recv_timeout(RETRY)
            };
            match next {
                Ok(ended) => self.end(ended),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    // Whoever writes next hears why it cannot be done.
                    let _ = self.state.lock().settle(&*self.log);
                    for ended in std::mem::take(&mut self.owed) {
                        self.end(ended);
                    }
                }
                // What is owed is found by the next start.
                Err(mpsc::RecvTimeoutError::Disconnected) => return self.trim(),
            }
        }
    }

    fn end(&mut self, mut ended: Ended) {
        if let (Some(record), false, false) = (ended.record, ended.commit, ended.revoked) {
            ended.revoked = true;
            self.revoke(record);
        }
        let written = self.write_markers(&mut ended);
        if let Some((told, synced)) = ended.told.take() {
            // Where a marker is owed, the rows are stored all the same, and whoever asks for them waits until they are there.
            told(synced);
        }
        if let Err(error) = written {
            tracing::warn!(
                error = with_causes(&error),
                "a transaction waits for room; readers of its topics wait behind it"
            );
            self.owed.push_back(ended);
            return;
        }
        if ended.stuck {
            return;
        }
        if !ended.commit {
            ended.producer.next.clear();
        }
        let mut state = self.state.lock();
        state.idle.push(ended.producer);
        if let Some(record) = ended.record {
            state.under_way.remove(&record);
        }
        drop(state);
        self.since_trim += 1;
        if self.since_trim >= TRIM_EVERY {
            self.trim();
        }
    }

    /// Takes back the commit record of a transaction. Where that fails, the same fault keeps the record itself from counting, or two have met.
    fn revoke(&self, record: Offset) {
        let appended = self
            .log
            .append(&self.records, Record::Abort(record).batch());
        let revoked = appended.and_then(|appended| {
            let end = Offset(appended.last_offset.0 + 1);
            self.log.sync(&self.records, end)
        });
        if let Err(error) = revoked {
            tracing::warn!(
                error = with_causes(&error),
                "that a transaction is aborted could not be recorded"
            );
        }
    }

    /// Writes the markers that are missing. A full disk is an error, and leaves the parts that have none yet.
    fn write_markers(&mut self, ended: &mut Ended) -> ExecResult<()> {
        // No cut falls between two of the markers.
        let _together = self.shared.groups.begin();
        while let Some(part) = ended.parts.last() {
            let (partition, producer) = (&part.partition, ended.producer.id);
            match self
                .log
                .end_transaction(partition, producer, 0, ended.commit)
            {
                Ok(marker) => {
                    // ORDER: from the first marker on, before a cut can look, and not earlier: a cut forgets groups of which it sees nothing.
                    let group = std::mem::take(&mut ended.unnoted);
                    if ended.commit {
                        self.note(group);
                    }
                    if let Some(marker) = marker {
                        self.markers.insert(partition.clone(), Offset(marker.0 + 1));
                    }
                }
                Err(error) if error.is_disk_full() => return Err(error.into()),
                // The topic is gone, or its partition takes no writes until it is opened again: the start that opens it settles this.
                Err(error) => {
                    ended.stuck |= !matches!(error.kind(), ErrorKind::UserMistake);
                    let error = with_causes(&error);
                    tracing::warn!(%partition, error, "a transaction could not be ended");
                }
            }
            ended.parts.pop();
        }
        Ok(())
    }

    /// Tells the steps what belongs together. Call it while no cut is made.
    fn note(&self, group: Vec<Part>) {
        let is_watched = |part: &Part| self.shared.is_watched(&part.partition.topic);
        if group.len() > 1 && group.iter().any(is_watched) {
            let group = group.into_iter();
            let group = group.map(|part| (part.partition, part.first, part.end));
            self.shared.groups.note(group.collect());
        }
    }

    /// Lets go of the commit records that no start needs: those whose markers are on disk.
    fn trim(&mut self) {
        self.since_trim = 0;
        let state = self.state.lock();
        let end = self.log.offsets(&self.records);
        let needed = state.under_way.first().copied();
        drop(state);
        let trimmed = end.and_then(|end| {
            for (partition, end) in &self.markers {
                self.log.sync(partition, *end)?;
            }
            self.log
                .drop_below(&self.records, needed.unwrap_or(end.log_end))
        });
        match trimmed {
            Ok(()) => self.markers.clear(),
            // They take room, and are tried again.
            Err(error) => {
                tracing::debug!(error = with_causes(&error), "old commit records stay");
            }
        }
    }
}
