//! Appends to several partitions that take effect together or not at all, whatever happens meanwhile.
//!
//! The batches are written as the open transactions of one producer, and at the same time a *commit record* that names all of them goes to a topic of its
//! own. All of it is synced at once; only then come the transactions' markers, which nobody has to wait for. That is Kafka's protocol (KIP-98) with one
//! round of syncs instead of two: here the record does not say that the parts are on disk, a start sees for itself.
//!
//! INVARIANT: a transaction is committed if and only if its record and all that the record names are on disk. A marker is written only once they are, so
//! no part was ever visible while another one could still be lost.
//!
//! One of which a part could not be synced is aborted: a record says so before the markers do, since what was written may be on disk all the same. A start
//! (`settle`) ends what was left open by that rule, and then says in the topic that it has: what stands before that is about offsets which may be given
//! out a second time.
//!
//! ```text
//! commit   1 u8 | producer i64 | n u32 | n x (first i64, end i64, partition u32, length u16, topic)     little-endian
//! abort    2 u8 | offset of the commit record i64
//! settled  no value
//! ```

mod ending;
mod record;
mod settle;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use highwater_storage_log::{
    BatchBuilder, Log, Offset, ProducerFields, ProducerId, TopicPartition,
};
use parking_lot::Mutex;

use crate::{
    committer::when_durable,
    error::{ExecError, ExecResult, with_causes},
    producer::advance,
    shared::Shared,
};
use ending::{Ended, Ending};
use record::{Part, Record};

/// Topic of the commit records.
const TOPIC: &str = "_highwater_transactions";

/// Ids of the producers begin here, far below those of continuous queries.
const FIRST_PRODUCER: i64 = 1 << 39;

/// Hears that a transaction is on disk and visible, or why it is not.
pub type Told = Box<dyn FnOnce(ExecResult<()>) + Send>;

/// Where a write ends (exclusive), by partition.
pub type Ends = Vec<(TopicPartition, Offset)>;

/// See the module. Any number of transactions may be under way at once; each has a producer for itself.
pub struct Transactions {
    log: Arc<dyn Log>,
    records: TopicPartition,
    state: Arc<Mutex<State>>,
    /// To the thread that ends transactions; none when this is stopped.
    ended: Mutex<Option<mpsc::Sender<Ended>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    idle: Vec<Producer>,
    /// Producers that were ever made.
    made: i64,
    /// Offsets of the commit records that are still needed.
    under_way: BTreeSet<Offset>,
    /// What the process before left is dealt with. Until then no producer may write: its transaction could be that one's.
    settled: bool,
}

impl State {
    /// Deals with what the process before left, unless that is done.
    fn settle(&mut self, log: &dyn Log) -> ExecResult<()> {
        if !self.settled {
            settle::settle(log)?;
            self.settled = true;
        }
        Ok(())
    }
}

struct Producer {
    id: ProducerId,
    /// Sequence of the next record; the log is asked for those that are not here.
    next: HashMap<TopicPartition, i32>,
}

impl Producer {
    /// Appends a batch to the transaction.
    fn append(
        &mut self,
        log: &dyn Log,
        partition: TopicPartition,
        mut batch: BatchBuilder,
        parts: &mut Vec<Part>,
    ) -> ExecResult<()> {
        let base_sequence = match self.next.get(&partition) {
            Some(&next) => next,
            None => log
                .producer(&partition, self.id)?
                .map_or(0, |known| advance(known.last_sequence, 1)),
        };
        let fields = ProducerFields {
            id: self.id,
            epoch: 0,
            base_sequence,
            transactional: true,
        };
        let records = batch.len();
        let appended = log.append(&partition, batch.finish(Some(fields)))?;
        if appended.duplicate {
            return Err(ExecError::Internal(format!(
                "{partition} takes a new batch for a repeat"
            )));
        }
        self.next
            .insert(partition.clone(), advance(base_sequence, records));
        let end = Offset(appended.last_offset.0 + 1);
        match parts.iter_mut().find(|part| part.partition == partition) {
            Some(part) => part.end = end,
            None => parts.push(Part {
                partition,
                first: appended.base_offset,
                end,
            }),
        }
        Ok(())
    }
}

impl Transactions {
    /// Deals with what the process before left, and begins to take transactions. If the log has no room for that, it is tried again until it has.
    pub fn start(log: Arc<dyn Log>, shared: Arc<Shared>) -> ExecResult<Self> {
        let (sender, ended) = mpsc::channel();
        let mut state = State::default();
        if let Err(error) = state.settle(&*log) {
            tracing::error!(
                error = with_causes(&error),
                "transactions that were left open cannot be ended yet; statements that write to several partitions fail until they are"
            );
        }
        let state = Arc::new(Mutex::new(state));
        let ending = Ending::new(Arc::clone(&log), shared, Arc::clone(&state));
        let thread = thread::Builder::new()
            .name("hw-transactions".into())
            .spawn(move || ending.run(&ended))
            .map_err(|source| ExecError::Io {
                action: "start",
                path: "transaction thread".into(),
                source,
            })?;
        Ok(Self {
            log,
            records: records_partition(),
            state,
            ended: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Appends batches of which a crash at any moment leaves all or none, and which become visible at once; `told` hears when that is so. An error
    /// leaves nothing.
    pub fn append(
        &self,
        batches: Vec<(TopicPartition, BatchBuilder)>,
        told: Told,
    ) -> ExecResult<Ends> {
        let Some(ended) = self.ended.lock().clone() else {
            return Err(ExecError::Stopped("it is shutting down".into()));
        };
        let mut producer = self.producer()?;
        let mut parts = Vec::new();
        let written = batches
            .into_iter()
            .try_for_each(|(partition, batch)| {
                producer.append(&*self.log, partition, batch, &mut parts)
            })
            .and_then(|()| self.append_record(producer.id, &parts));
        let record = match written {
            Ok(record) => record,
            Err(error) => {
                // What the log has of them decides, not what was meant to be there.
                producer.next.clear();
                // Nobody listens any more where the engine stops: the next start aborts it.
                let _ = ended.send(Ended::abort(producer, parts));
                return Err(error);
            }
        };
        let ends: Ends = parts
            .iter()
            .map(|part| (part.partition.clone(), part.end))
            .collect();
        let mut durable = ends.clone();
        durable.push((self.records.clone(), Offset(record.0 + 1)));
        when_durable(&*self.log, durable, move |synced| {
            let _ = ended.send(Ended::synced(producer, parts, record, synced, told));
        });
        Ok(ends)
    }

    /// Takes no more; returns when those under way have ended, as far as the log lets them.
    pub fn stop(&self) {
        drop(self.ended.lock().take());
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that ends transactions panicked");
        }
    }

    fn producer(&self) -> ExecResult<Producer> {
        let mut state = self.state.lock();
        state.settle(&*self.log)?;
        Ok(state.idle.pop().unwrap_or_else(|| {
            let id = ProducerId(FIRST_PRODUCER + state.made);
            state.made += 1;
            Producer {
                id,
                next: HashMap::new(),
            }
        }))
    }

    fn append_record(&self, producer: ProducerId, parts: &[Part]) -> ExecResult<Offset> {
        let batch = Record::Commit(producer, parts.to_vec()).batch();
        // No record is in the topic and not in the list when somebody looks for the oldest that is needed.
        let mut state = self.state.lock();
        let offset = self.log.append(&self.records, batch)?.base_offset;
        state.under_way.insert(offset);
        Ok(offset)
    }
}

impl Drop for Transactions {
    fn drop(&mut self) {
        self.stop();
    }
}

fn records_partition() -> TopicPartition {
    TopicPartition::new(TOPIC, 0)
}
