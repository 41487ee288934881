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
    vec,
};

use bytes::Bytes;

use crate::{
    batch::{EncodedBatch, ProducerFields},
    embedded::{
        group_commit::MustDo,
        partition::{Partition, Writer},
        waiting::{HandedOver, Refusal, Word},
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
    taken: Vec<HandedOver>,
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
    batches: Vec<EncodedBatch>,
    waiters: Vec<AppendWaiter>,
    bytes: usize,
    offsets: i64,
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
            Ok(batch) => Ok(self.commit.hand_over(HandedOver { batch, waiter })),
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
            Err(error) => HandedOver::refuse(waiter, error),
        }
    }

    /// Writes what was handed over. True if [`Self::serve_waiters`] has to be called for those who did.
    pub(super) fn write_handed_over(&self) -> bool {
        let mut outcome = Outcome::default();
        let mut desk = self.desk.lock();
        self.commit.take_handed_over(&mut desk.taken);
        if desk.taken.is_empty() {
            return false;
        }
        outcome.appended.reserve(desk.taken.len());
        self.append_taken(&mut self.writer.lock(), &mut desk, &mut outcome);
        desk.taken.shrink_to(ROOM_KEPT);
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
        for (error, waiter) in refused {
            HandedOver::refuse(waiter, error);
        }
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
        let mut taken = taken.drain(..).peekable();
        while taken.peek().is_some() {
            let run = self.next_run(writer, &mut taken, producers, outcome);
            self.append_run(writer, run, producers, outcome);
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
        run.batches.reserve(taken.len());
        run.waiters.reserve(taken.len());
        while let Some(one) = taken.next_if(|one| {
            let header = one.batch.header();
            let fits = run.bytes + one.batch.len() <= limit
                && run.offsets + i64::from(header.last_offset_delta) < i64::from(i32::MAX);
            let is_apart = !producers.in_run.contains(&header.producer_id);
            run.batches.is_empty() || (fits && is_apart)
        }) {
            let HandedOver { batch, waiter } = one;
            match self.judge_handed_over(writer, &batch, producers) {
                Ok(Admission::New) => {
                    let header = batch.header();
                    let producer = header.producer().map(|producer| producer.id.0);
                    producers.in_run.extend(producer);
                    run.bytes += batch.len();
                    run.offsets += i64::from(header.last_offset_delta) + 1;
                    run.batches.push(batch);
                    run.waiters.push(waiter);
                }
                Ok(Admission::Duplicate(base, last)) => {
                    let appended = Appended::before((base, last));
                    outcome.appended.push((appended, waiter));
                }
                Ok(Admission::OldDuplicate) => outcome.repeated.extend(
                    batch
                        .producer()
                        .map(|producer| (producer, batch.header().last_sequence(), waiter)),
                ),
                Err(error) => outcome.refused.push((error, waiter)),
            }
        }
        run
    }

    fn judge_handed_over(
        &self,
        writer: &Writer,
        batch: &EncodedBatch,
        producers: &mut RunProducers,
    ) -> LogResult<Admission> {
        let admission = self.judge(writer, batch)?;
        if let Some(producer) = batch.producer().filter(|_| admission == Admission::New)
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

    /// Writes a run with one call. What cannot be written so is written one by one, for each to have its own outcome.
    fn append_run(
        &self,
        writer: &mut Writer,
        run: Run,
        producers: &mut RunProducers,
        outcome: &mut Outcome,
    ) {
        let together = match run.batches.len() {
            0 => return,
            1 => None,
            _ => self.append_together(writer, &run).ok(),
        };
        let Some((mut base, unsynced)) = together else {
            for (batch, waiter) in run.batches.into_iter().zip(run.waiters) {
                let producer = batch.producer();
                match self.append_one(writer, batch) {
                    Ok((appended, unsynced)) => {
                        outcome.unsynced = unsynced;
                        outcome.appended.push((appended, waiter));
                    }
                    Err(error) => {
                        if let Some(producer) = producer {
                            producers.refuse(&writer.producers, producer);
                        }
                        outcome.refused.push((error, waiter));
                    }
                }
            }
            return;
        };
        outcome.unsynced = unsynced;
        for (batch, waiter) in run.batches.iter().zip(run.waiters) {
            let last = base + i64::from(batch.header().last_offset_delta);
            let appended = Appended {
                base_offset: Offset(base),
                last_offset: Offset(last),
                duplicate: false,
            };
            outcome.appended.push((appended, waiter));
            base = last + 1;
        }
    }

    /// Answers with the run's first offset and with how many bytes are not synced now.
    fn append_together(&self, writer: &mut Writer, run: &Run) -> LogResult<(i64, u64)> {
        self.check_writable(writer)?;
        let (file, position) = self.make_room(writer, run.bytes as u64, run.offsets)?;
        let base = writer.log_end;
        let mut bytes = Vec::with_capacity(run.bytes);
        let mut offset = base;
        for batch in &run.batches {
            batch.stamp_into(Offset(offset), &mut bytes);
            offset += i64::from(batch.header().last_offset_delta) + 1;
        }
        if let Err(error) = file.write_at(&bytes, position) {
            writer.torn = true;
            return Err(self.io("append to")(error));
        }
        let bytes = Bytes::from(bytes);
        let mut at = 0;
        let mut offset = base;
        let batches = run.batches.iter().map(|batch| {
            let stored = bytes.slice(at..at + batch.len());
            let view = batch.view_of_stored(Offset(offset), stored);
            at += batch.len();
            offset += i64::from(batch.header().last_offset_delta) + 1;
            view
        });
        let written = batches.collect::<Vec<_>>();
        for batch in &written {
            writer.producers.apply_records(batch.header());
        }
        Ok((base, self.publish(writer, written, &file, position, None)))
    }
}
