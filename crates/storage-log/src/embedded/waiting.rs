//! Those who wait for the disk without a thread of their own: batches that were handed over and not written yet, and words left for records that are
//! written and not synced yet. Plain lists, kept under the lock of [`super::group_commit`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{
    batch::EncodedBatch,
    error::{LogError, LogResult},
    log::{AppendWaiter, Appended, SyncWaiter, TopicPartition},
};

/// Whoever hands over a batch while so many bytes are waiting to be written writes them itself: this bounds the memory, and what one write takes.
pub(super) const MAX_WAITING_BYTES: usize = 4 << 20;

/// The same for small batches.
pub(super) const MAX_WAITING_BATCHES: usize = 4096;

/// Whoever hands over a batch while so many wait for a sync waits for it, too: some megabytes of memory, and far more than a disk serves at a time.
pub(super) const MAX_WORDS: usize = 1 << 16;

/// A batch that waits to be written, and who is told of it.
pub(crate) struct HandedOver {
    pub(super) batch: EncodedBatch,
    pub(super) waiter: AppendWaiter,
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

impl HandedOver {
    /// Tells that the batch is not in the log.
    pub(crate) fn refuse(waiter: AppendWaiter, error: LogError) {
        if catch_unwind(AssertUnwindSafe(|| waiter(Err(error)))).is_err() {
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
    handed_over: Vec<HandedOver>,
    handed_over_bytes: usize,
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
        self.handed_over.len() + self.words.len()
    }

    pub(super) fn leave_word(&mut self, up_to: i64, word: Word) {
        self.words.push((up_to, word));
    }

    pub(super) fn hand_over(&mut self, one: HandedOver) {
        self.handed_over_bytes += one.batch.len();
        self.handed_over.push(one);
    }

    /// So much is waiting to be written that it should be now.
    pub(super) fn is_full(&self) -> bool {
        self.handed_over_bytes >= MAX_WAITING_BYTES || self.handed_over.len() >= MAX_WAITING_BATCHES
    }

    /// Moves what was handed over into `into`, which is empty: its room is used again.
    pub(super) fn take_handed_over(&mut self, into: &mut Vec<HandedOver>) {
        debug_assert!(into.is_empty(), "what was taken before is done with");
        std::mem::swap(&mut self.handed_over, into);
        self.handed_over_bytes = 0;
    }

    /// So many wait for a sync that nobody else should begin to.
    pub(super) fn has_many_words(&self) -> bool {
        self.words.len() >= MAX_WORDS
    }

    /// Nothing waits to be written.
    pub(super) fn all_written(&self) -> bool {
        self.handed_over.is_empty()
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
    pub(super) fn take_all(&mut self) -> (Vec<HandedOver>, Vec<(i64, Word)>) {
        self.handed_over_bytes = 0;
        (
            std::mem::take(&mut self.handed_over),
            std::mem::take(&mut self.words),
        )
    }
}
