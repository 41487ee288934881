//! Appending for callers who are told later ([`crate::Log::produce`]): what has come by the time that the pool's thread looks is written with one call.
//!
//! Nothing of a batch happens before it is written: it has no offset, its producer's sequence has not moved, nobody sees it. So one that cannot be
//! written leaves nothing to take back. A *run* is what one call writes: neighbours in one segment, no two of one producer, since the second would be
//! judged by what the first has changed. When the write of a run fails, its batches are written one by one and each has its own outcome.
//!
//! INVARIANT: batches are taken and written under the desk's lock, so they reach the file in the order in which they were handed over.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    iter::Peekable,
    sync::Arc,
    vec,
};

use bytes::{Buf, Bytes, BytesMut};

use crate::{
    batch::{self, BatchHeader, BatchView, EncodedBatch, ProducerFields},
    disk::DiskFile,
    embedded::{
        duplicates,
        group_commit::MustDo,
        partition::{Partition, Writer},
        waiting::{HandedOver, Queue, Refusal, Word, refuse},
    },
    error::{LogError, LogResult},
    log::{AppendWaiter, Appended, Offset},
    options::FsyncPolicy,
    producer::{Admission, ProducerTable},
};

/// What one call writes, unless a single batch is larger: small beside the memory budget, and more would not make it cheaper.
const RUN_BYTES: u64 = 1 << 20;

/// Batches for which a partition keeps room once they are written.
const ROOM_KEPT: usize = 512;

/// So many producers are remembered whose first batch could not be written.
const MAX_REFUSED: usize = 10_000;

/// Where batches are put together that were handed over. Its lists are kept for their room.
#[derive(Default)]
pub(super) struct Desk {
    taken: Queue,
    producers: RunProducers,
}

/// What the partition's table does not know of the producers.
#[derive(Default)]
struct RunProducers {
    /// Those with a batch in the run that is put together.
    in_run: HashSet<i64>,
    /// Epoch and sequence of a first batch that could not be written. A producer that is not known may begin with any sequence; without this, what it
    /// sent behind that batch would be taken for its beginning, and the batch, sent again, for a repeat.
    refused: HashMap<i64, (i16, i32)>,
}

impl RunProducers {
    /// A batch of that producer could not be written.
    fn refuse(&mut self, known: &ProducerTable, batch: ProducerFields) {
        if self.refused.len() < MAX_REFUSED && known.get(batch.id).is_none() {
            self.refused
                .entry(batch.id.0)
                .or_insert((batch.epoch, batch.base_sequence));
        }
    }

    /// The batch that the producer has to begin with, if it is not this one.
    fn begins_with(&mut self, batch: ProducerFields) -> Option<i32> {
        let (epoch, sequence) = *self.refused.get(&batch.id.0)?;
        if epoch == batch.epoch && sequence != batch.base_sequence {
            return Some(sequence);
        }
        self.refused.remove(&batch.id.0);
        None
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

/// How it went with what was taken.
#[derive(Default)]
struct Outcome {
    appended: Vec<(Appended, AppendWaiter)>,
    refused: Vec<Refusal>,
    /// Repeats of batches that were appended too long ago to know where.
    repeated: Vec<(ProducerFields, i32, AppendWaiter)>,
    unsynced: u64,
}

/// Neighbours that are written with one call.
#[derive(Default)]
struct Run {
    headers: Vec<BatchHeader>,
    waiters: Vec<AppendWaiter>,
    bytes: usize,
    offsets: i64,
    /// The bytes of a large batch, which is a run by itself.
    large: Option<Vec<u8>>,
    /// Bytes of small batches behind the run that are not to be written.
    left_out: usize,
}

impl Run {
    /// The run can go on with that batch.
    fn has_room_for(&self, next: &HandedOver, limit: usize, in_run: &HashSet<i64>) -> bool {
        let header = &next.header;
        let is_joined = self.large.is_none() && next.large.is_none() && self.left_out == 0;
        let fits = self.bytes + header.total_bytes <= limit
            && self.offsets + i64::from(header.last_offset_delta) < i64::from(i32::MAX);
        is_joined && fits && !in_run.contains(&header.producer_id)
    }

    fn push(&mut self, one: HandedOver) {
        self.bytes += one.header.total_bytes;
        self.offsets += i64::from(one.header.last_offset_delta) + 1;
        self.headers.push(one.header);
        self.waiters.push(one.waiter);
        self.large = one.large;
    }
}

impl Partition {
    /// Takes a batch that the pool will write, for as long as everybody waits for the disk. A batch that cannot be is given back with the reason. Waits
    /// for nothing and tells nobody: the caller holds locks.
    pub(crate) fn hand_over(
        &self,
        batch: EncodedBatch,
        waiter: AppendWaiter,
    ) -> Result<MustDo, Refusal> {
        debug_assert_eq!(self.environment.options.fsync, FsyncPolicy::Always);
        match self.admitted(batch) {
            Ok(batch) => Ok(self.commit.hand_over(batch, waiter)),
            Err(error) => Err((error, waiter)),
        }
    }

    /// Does what [`Self::hand_over`] found to be done. True if [`Self::serve_waiters`] has to be called.
    pub(crate) fn after_hand_over(&self, must_do: MustDo) -> bool {
        // Back-pressure.
        let must_lead = must_do.catch_up && self.write_handed_over();
        must_do.lead || must_lead
    }

    /// Appends where nobody waits for the disk: the operating system has the batch when this returns, so that the end of the process alone takes nothing.
    pub(crate) fn append_and_tell(&self, batch: EncodedBatch, waiter: AppendWaiter) {
        match self.append(batch) {
            Ok(appended) => Word::Appended(appended, waiter).tell(self.commit.check(&self.id)),
            Err(error) => refuse((error, waiter)),
        }
    }

    /// Nobody hands anything over just now: no room is kept for it.
    pub(super) fn release_desk(&self) {
        let mut desk = self.desk.lock();
        debug_assert!(desk.taken.is_empty(), "what was taken is written");
        desk.taken = Queue::default();
        desk.producers.in_run = HashSet::new();
    }

    /// Writes what was handed over. True if [`Self::serve_waiters`] has to be called for those who did.
    pub(super) fn write_handed_over(&self) -> bool {
        let mut outcome = Outcome::default();
        let mut desk = self.desk.lock();
        self.commit.exchange_queue(&mut desk.taken);
        if desk.taken.is_empty() {
            return false;
        }
        outcome.appended.reserve(desk.taken.batches.len());
        self.append_taken(&mut self.writer.lock(), &mut desk, &mut outcome);
        desk.taken.clear(ROOM_KEPT);
        desk.producers.in_run.shrink_to(ROOM_KEPT);
        drop(desk);
        self.tell_outcome(outcome)
    }

    /// Nobody is told before all locks are free: a waiter may hand over the next batch.
    fn tell_outcome(&self, outcome: Outcome) -> bool {
        let Outcome {
            mut appended,
            mut refused,
            repeated,
            unsynced,
        } = outcome;
        if appended.iter().any(|(appended, _)| !appended.duplicate) {
            self.environment.listeners.notify(&self.id);
        }
        for (producer, last_sequence, waiter) in repeated {
            match self.locate_duplicate(producer, last_sequence) {
                Ok(offsets) => appended.push((Appended::before(offsets), waiter)),
                Err(error) => refused.push((error, waiter)),
            }
        }
        let mut end = 0;
        let words = appended.into_iter().map(|(appended, waiter)| {
            end = end.max(appended.last_offset.0 + 1);
            let up_to = appended.last_offset.0 + 1;
            (up_to, Word::Appended(appended, waiter))
        });
        let must_do = self.commit.leave_words(&self.id, words);
        refused.into_iter().for_each(refuse);
        // A failure is told to those who wait.
        let _ = if must_do.catch_up {
            self.sync_to(end)
        } else {
            self.bound_unsynced(unsynced, end)
        };
        must_do.lead
    }

    /// Appends what was taken, run by run.
    fn append_taken(&self, writer: &mut Writer, desk: &mut Desk, outcome: &mut Outcome) {
        let Desk { taken, producers } = desk;
        let bytes = &mut taken.bytes;
        let mut taken = taken.batches.drain(..).peekable();
        while taken.peek().is_some() {
            let run = self.next_run(writer, &mut taken, producers, outcome);
            let (large, left_out) = (run.large.is_some(), run.left_out);
            let stored = bytes.split_to(if large { 0 } else { run.bytes });
            self.append_run(writer, run, stored, producers, outcome);
            bytes.advance(left_out);
        }
        writer
            .producers
            .forget_beyond(self.environment.options.max_producers);
    }

    /// The longest run that can be written now. What is not to be written on the way has its outcome.
    fn next_run(
        &self,
        writer: &Writer,
        taken: &mut Peekable<vec::Drain<'_, HandedOver>>,
        producers: &mut RunProducers,
        outcome: &mut Outcome,
    ) -> Run {
        producers.in_run.clear();
        let limit = self.settings().segment_bytes.min(RUN_BYTES) as usize;
        let mut run = Run::default();
        run.headers.reserve(taken.len());
        run.waiters.reserve(taken.len());
        while let Some(one) = taken.next_if(|one| {
            run.headers.is_empty() || run.has_room_for(one, limit, &producers.in_run)
        }) {
            let admission = self.judge_handed_over(writer, &one.header, producers);
            if let Ok(Admission::New) = admission {
                let producer = one.header.producer().map(|producer| producer.id.0);
                producers.in_run.extend(producer);
                run.push(one);
                continue;
            }
            if one.large.is_none() {
                run.left_out += one.header.total_bytes;
            }
            outcome.take(admission, one);
            if run.headers.is_empty() {
                // What stands in front of a run is left out first.
                break;
            }
        }
        run
    }

    fn judge_handed_over(
        &self,
        writer: &Writer,
        header: &BatchHeader,
        producers: &mut RunProducers,
    ) -> LogResult<Admission> {
        let admission = self.judge(writer, header)?;
        if let Some(producer) = header.producer().filter(|_| admission == Admission::New)
            && let Some(expected) = producers.begins_with(producer)
        {
            return Err(LogError::OutOfOrderSequence {
                partition: self.id.clone(),
                producer: producer.id,
                sequence: producer.base_sequence,
                expected,
            });
        }
        Ok(admission)
    }

    /// Writes a run with one call: what is `stored`, or its large batch. What cannot be written so is written one by one, for each to have its own outcome.
    fn append_run(
        &self,
        writer: &mut Writer,
        run: Run,
        mut stored: BytesMut,
        producers: &mut RunProducers,
        outcome: &mut Outcome,
    ) {
        if run.large.is_none() && !run.headers.is_empty() {
            let base = writer.log_end;
            if let Ok((file, position)) = self.write_together(writer, &run, &mut stored) {
                let batches = views(&run.headers, base, &stored.freeze());
                for batch in &batches {
                    writer.producers.apply_records(batch.header());
                }
                let places = batches.iter().map(|batch| Appended {
                    base_offset: batch.base_offset(),
                    last_offset: batch.last_offset(),
                    duplicate: false,
                });
                outcome.appended.extend(places.zip(run.waiters));
                outcome.unsynced = self.publish(writer, batches, &file, position, None);
                return;
            }
        }
        let mut large = run.large;
        for (header, waiter) in run.headers.into_iter().zip(run.waiters) {
            let bytes = large
                .take()
                .unwrap_or_else(|| stored.split_to(header.total_bytes).to_vec());
            match self.append_one(writer, EncodedBatch::from_parts(header, bytes)) {
                Ok((appended, unsynced)) => {
                    outcome.unsynced = unsynced;
                    outcome.appended.push((appended, waiter));
                }
                Err(error) => {
                    if let Some(producer) = header.producer() {
                        producers.refuse(&writer.producers, producer);
                    }
                    outcome.refused.push((error, waiter));
                }
            }
        }
    }

    /// Gives the batches their offsets and writes them; answers where.
    fn write_together(
        &self,
        writer: &mut Writer,
        run: &Run,
        stored: &mut BytesMut,
    ) -> LogResult<(Arc<dyn DiskFile>, u64)> {
        self.check_writable(writer)?;
        let (file, position) = self.make_room(writer, run.bytes as u64, run.offsets)?;
        let mut offset = writer.log_end;
        let mut at = 0;
        for header in &run.headers {
            batch::stamp(&mut stored[at..], Offset(offset));
            offset += i64::from(header.last_offset_delta) + 1;
            at += header.total_bytes;
        }
        if let Err(error) = file.write_at(stored, position) {
            writer.torn = true;
            return Err(self.io("append to")(error));
        }
        Ok((file, position))
    }
}

impl Outcome {
    /// Takes note of a batch that is not to be written.
    fn take(&mut self, admission: LogResult<Admission>, batch: HandedOver) {
        let HandedOver { header, waiter, .. } = batch;
        match (admission, header.producer()) {
            (Ok(Admission::Duplicate(base, last)), _) => {
                self.appended.push((Appended::before((base, last)), waiter));
            }
            (Ok(Admission::OldDuplicate), Some(producer)) => {
                let last_sequence = header.last_sequence();
                self.repeated.push((producer, last_sequence, waiter));
            }
            (Err(error), _) => self.refused.push((error, waiter)),
            (Ok(_), _) => {
                debug_assert!(false, "a new batch is written, and only producers repeat");
                self.appended
                    .push((Appended::before(duplicates::GONE), waiter));
            }
        }
    }
}

/// The batches that stand in `stored` one behind the other.
fn views(headers: &[BatchHeader], base: i64, stored: &Bytes) -> Vec<BatchView> {
    let mut offset = base;
    let mut at = 0;
    let views = headers.iter().map(|header| {
        let header = BatchHeader {
            base_offset: offset,
            ..*header
        };
        let end = at + header.total_bytes;
        let view = BatchView::trusted(header, stored.slice(at..end));
        offset += i64::from(header.last_offset_delta) + 1;
        at = end;
        view
    });
    views.collect()
}
