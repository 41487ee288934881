//! Those who wait for the disk without a thread of their own: batches that were handed over and not written yet, and words left for records that are
//! written and not synced yet. Plain lists, kept under the lock of [`super::group_commit`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::BytesMut;

use crate::{
    batch::{BatchHeader, EncodedBatch},
    error::{LogError, LogResult},
    log::{AppendWaiter, Appended, SyncWaiter, TopicPartition},
};

/// Whoever hands over a batch while so many bytes are waiting to be written writes them itself: this bounds the memory, and what one write takes.
pub(super) const MAX_WAITING_BYTES: usize = 1 << 20;

/// The same for small batches.
pub(super) const MAX_WAITING_BATCHES: usize = 4096;

/// Larger batches are not copied: they are written by themselves, which costs little beside their size.
const MAX_COPIED_BYTES: usize = 8 << 10;

/// Whoever hands over a batch while so many wait for a sync waits for it, too: some megabytes of memory, and far more than a disk serves at a time.
pub(super) const MAX_WORDS: usize = 1 << 16;

/// A batch that waits to be written, and who is told of it.
pub(super) struct HandedOver {
    pub(super) header: BatchHeader,
    /// The bytes of a large batch. Those of small ones stand in [`Queue::bytes`].
    pub(super) large: Option<Vec<u8>>,
    pub(super) waiter: AppendWaiter,
}

/// Batches that wait to be written, in the order in which they were handed over.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) batches: Vec<HandedOver>,
    /// The small ones, one behind the other, as they will stand in the file.
    pub(super) bytes: BytesMut,
    total_bytes: usize,
    small_bytes: usize,
    /// Bytes of small batches that came the last time: room for them is made at once.
    expected_bytes: usize,
}

impl Queue {
    /// Takes a batch. What comes back is to be dropped once the lock is free: on the caller's thread, which will need such memory for its next batch.
    fn push(&mut self, batch: EncodedBatch, waiter: AppendWaiter) -> Option<Vec<u8>> {
        let (header, bytes) = batch.into_parts();
        self.total_bytes += bytes.len();
        let is_small = bytes.len() <= MAX_COPIED_BYTES;
        let (large, spare) = if is_small {
            if self.bytes.capacity() == 0 {
                self.bytes.reserve(self.expected_bytes);
            }
            self.small_bytes += bytes.len();
            self.bytes.extend_from_slice(&bytes);
            (None, Some(bytes))
        } else {
            (Some(bytes), None)
        };
        self.batches.push(HandedOver {
            header,
            large,
            waiter,
        });
        spare
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// All batches are done with; keeps room for so many.
    pub(super) fn clear(&mut self, room: usize) {
        self.batches.clear();
        self.batches.shrink_to(room);
        self.bytes = BytesMut::new();
        self.expected_bytes = std::mem::take(&mut self.small_bytes);
        self.total_bytes = 0;
    }
}

/// Tells that a batch is not in the log. A waiter that panics takes nobody's word away but its own.
pub(crate) fn refuse((error, waiter): Refusal) {
    if catch_unwind(AssertUnwindSafe(|| waiter(Err(error)))).is_err() {
        tracing::error!("a waiter for the disk panicked");
    }
}

/// Why a batch was not taken, and who is to be told.
pub(crate) type Refusal = (LogError, AppendWaiter);

/// Who is told once everything below an offset is on disk.
pub(super) enum Word {
    /// Somebody who appended before.
    Synced(SyncWaiter),
    /// Somebody who handed over a batch, which is in the log now.
    Appended(Appended, AppendWaiter),
}

impl Word {
    /// Tells. A waiter that panics takes nobody's word away but its own.
    pub(super) fn tell(self, synced: LogResult<()>) {
        let told = match self {
            Self::Synced(waiter) => catch_unwind(AssertUnwindSafe(|| waiter(synced))),
            Self::Appended(appended, waiter) => {
                catch_unwind(AssertUnwindSafe(|| waiter(synced.map(|()| appended))))
            }
        };
        if told.is_err() {
            tracing::error!("a waiter for the disk panicked");
        }
    }
}

/// Words whose time has come, and what they say.
pub(super) struct Told {
    words: Vec<(i64, Word)>,
    durable: i64,
    failure: Option<String>,
}

impl Told {
    /// Tells all of them. What was on disk before a failure still is.
    pub(super) fn tell(self, partition: &TopicPartition) {
        let Self {
            words,
            durable,
            failure,
        } = self;
        for (up_to, word) in words {
            word.tell(match &failure {
                Some(reason) if up_to > durable => Err(LogError::Poisoned {
                    partition: partition.clone(),
                    reason: reason.clone(),
                }),
                _ => Ok(()),
            });
        }
    }
}

/// What waits.
#[derive(Default)]
pub(super) struct Waiting {
    queue: Queue,
    /// Offsets below which everything has to be on disk, and who is told then.
    words: Vec<(i64, Word)>,
    /// A thread of the pool was asked to lead for them.
    pub(super) pool_leads: bool,
    /// How many have to wait for the pool's thread to sync for them; 0 while it is not waiting for that.
    pub(super) gathering: usize,
}

impl Waiting {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.queue.batches.len() + self.words.len()
    }

    pub(super) fn leave_word(&mut self, up_to: i64, word: Word) {
        self.words.push((up_to, word));
    }

    /// Takes a batch; what comes back is to be dropped once the lock is free.
    pub(super) fn hand_over(
        &mut self,
        batch: EncodedBatch,
        waiter: AppendWaiter,
    ) -> Option<Vec<u8>> {
        self.queue.push(batch, waiter)
    }

    /// So much is waiting to be written that it should be now.
    pub(super) fn is_full(&self) -> bool {
        self.queue.total_bytes >= MAX_WAITING_BYTES
            || self.queue.batches.len() >= MAX_WAITING_BATCHES
    }

    /// Exchanges what was handed over for `with`, which is empty: its room is used again.
    pub(super) fn exchange_queue(&mut self, with: &mut Queue) {
        debug_assert!(with.is_empty(), "what was taken before is done with");
        std::mem::swap(&mut self.queue, with);
    }

    /// So many wait for a sync that nobody else should begin to.
    pub(super) fn has_many_words(&self) -> bool {
        self.words.len() >= MAX_WORDS
    }

    /// Nobody waits, and nobody may for long: no room is kept.
    pub(super) fn release_room(&mut self) {
        debug_assert!(self.len() == 0, "nobody waits");
        self.queue = Queue::default();
        self.words = Vec::new();
    }

    /// Nothing waits to be written.
    pub(super) fn all_written(&self) -> bool {
        self.queue.is_empty()
    }

    /// Up to where somebody waits.
    pub(super) fn furthest(&self) -> Option<i64> {
        self.words.iter().map(|(up_to, _)| *up_to).max()
    }

    /// The words whose time has come: the records are on disk, or never will be.
    pub(super) fn take_told(&mut self, durable: i64, failure: Option<&String>) -> Told {
        let words = match failure {
            Some(_) => std::mem::take(&mut self.words),
            // As a rule all of them were waiting for this sync.
            None if self.words.iter().all(|(up_to, _)| *up_to <= durable) => {
                std::mem::take(&mut self.words)
            }
            None => self
                .words
                .extract_if(.., |(up_to, _)| *up_to <= durable)
                .collect(),
        };
        Told {
            words,
            durable,
            failure: failure.cloned(),
        }
    }

    /// Everybody, for telling that nobody can be served.
    pub(super) fn take_all(&mut self) -> (Queue, Vec<(i64, Word)>) {
        (
            std::mem::take(&mut self.queue),
            std::mem::take(&mut self.words),
        )
    }
}
