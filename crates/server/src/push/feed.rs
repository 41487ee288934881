//! The queue between the engine's thread and one reader, bounded in bytes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use arrow::{array::Array, record_batch::RecordBatch};
use highwater_exec::{ChangeBatch, ChangeReceiver, FeedClosed};
use tokio::sync::mpsc;

use crate::{
    session::SessionResult,
    sqlstate::{SqlError, code},
};

/// What a batch costs beside its data, so that many small batches are bounded too.
const BATCH_OVERHEAD: usize = 512;

enum Item {
    Changes(ChangeBatch, usize),
    /// The last step that the reader has whole, if it can go on behind it.
    TooSlow(Option<u64>),
    Ended(String),
}

/// The engine's end.
pub struct Feed {
    sender: mpsc::UnboundedSender<Item>,
    waiting: Arc<AtomicUsize>,
    bound: usize,
    /// The last offer found no room. The engine may offer again (history waits for its reader) or give up.
    full: bool,
    /// The query can be resumed behind a step.
    resumable: bool,
    /// The last step that was taken whole.
    last_step: Option<u64>,
}

/// The reader's end.
pub struct FeedReader {
    receiver: mpsc::UnboundedReceiver<Item>,
    waiting: Arc<AtomicUsize>,
}

/// A queue that holds at most `bound` bytes, or one batch that is larger. The channel itself has no bound; the count of bytes is its bound.
pub fn bounded(bound: usize, resumable: bool) -> (Feed, FeedReader) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    (
        Feed {
            sender,
            waiting: Arc::clone(&waiting),
            bound,
            full: false,
            resumable,
            last_step: None,
        },
        FeedReader { receiver, waiting },
    )
}

impl ChangeReceiver for Feed {
    fn offer(&mut self, changes: ChangeBatch) -> Result<(), FeedClosed> {
        let bytes = size(&changes.rows);
        let waiting = self.waiting.load(Ordering::Acquire);
        if waiting > 0 && waiting + bytes > self.bound {
            self.full = true;
            return if self.sender.is_closed() {
                Err(FeedClosed::Gone)
            } else {
                Err(FeedClosed::Full)
            };
        }
        self.full = false;
        if changes.ends_step {
            self.last_step = changes.step;
        }
        self.waiting.fetch_add(bytes, Ordering::AcqRel);
        self.sender
            .send(Item::Changes(changes, bytes))
            .map_err(|_| FeedClosed::Gone)
    }

    fn closed(&mut self, reason: String) {
        let last = if self.full {
            Item::TooSlow(self.last_step.filter(|_| self.resumable))
        } else {
            Item::Ended(reason)
        };
        // A reader that has gone does not need to know.
        let _ = self.sender.send(last);
    }
}

impl FeedReader {
    /// The next step's changes; an error is the last item. Loses nothing when it is dropped while it waits.
    pub async fn next(&mut self) -> Option<SessionResult<ChangeBatch>> {
        Some(match self.receiver.recv().await? {
            Item::Changes(changes, bytes) => {
                self.waiting.fetch_sub(bytes, Ordering::AcqRel);
                Ok(changes)
            }
            Item::TooSlow(last_step) => Err(too_slow(last_step)),
            Item::Ended(reason) => Err(SqlError::new(
                code::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the push query has ended: {reason}"),
            )),
        })
    }
}

fn too_slow(last_step: Option<u64>) -> SqlError {
    let message = "the push query was ended because its reader is too slow";
    let help = "read faster, narrow the query, or raise push.buffer_bytes";
    let code = code::CONFIGURATION_LIMIT_EXCEEDED;
    match last_step {
        Some(step) => SqlError::new(
            code,
            format!("{message}; it has got all rows up to step {step}"),
        )
        .with_hint(format!("go on with EMIT CHANGES AFTER STEP {step}; {help}")),
        None => SqlError::new(code, message).with_hint(help),
    }
}

/// Bytes of the rows themselves; a batch may be a slice of larger buffers.
fn size(rows: &RecordBatch) -> usize {
    let of = |column: &dyn Array| {
        column
            .to_data()
            .get_slice_memory_size()
            .unwrap_or_else(|_| column.get_array_memory_size())
    };
    BATCH_OVERHEAD
        + rows
            .columns()
            .iter()
            .map(|column| of(column.as_ref()))
            .sum::<usize>()
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::Int64Array,
        datatypes::{DataType, Field, Schema},
    };

    use super::*;

    fn changes(step: u64, rows: usize) -> ChangeBatch {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let column = Arc::new(Int64Array::from(vec![7; rows]));
        ChangeBatch {
            step: Some(step),
            ends_step: true,
            rows: RecordBatch::try_new(schema, vec![column]).expect("a batch"),
            diffs: None,
        }
    }

    #[tokio::test]
    async fn a_reader_that_falls_behind_is_told_after_what_it_has() {
        let (mut feed, mut reader) = bounded(4096, true);
        feed.offer(changes(1, 100)).expect("room");
        feed.offer(changes(2, 100)).expect("room");
        assert_eq!(feed.offer(changes(3, 1000)), Err(FeedClosed::Full));
        feed.closed("behind".to_owned());
        drop(feed);
        assert_eq!(
            reader.next().await.expect("first").expect("changes").step,
            Some(1)
        );
        assert_eq!(
            reader.next().await.expect("second").expect("changes").step,
            Some(2)
        );
        let error = reader.next().await.expect("third").expect_err("too slow");
        assert_eq!(error.code, "53400");
        assert!(error.message.ends_with("up to step 2"), "{}", error.message);
        assert!(reader.next().await.is_none());
    }

    #[tokio::test]
    async fn a_full_feed_takes_the_same_changes_later() {
        let (mut feed, mut reader) = bounded(4096, true);
        feed.offer(changes(1, 400)).expect("room");
        assert_eq!(feed.offer(changes(2, 400)), Err(FeedClosed::Full));
        reader.next().await.expect("first").expect("changes");
        feed.offer(changes(2, 400)).expect("room again");
        feed.closed("the end".to_owned());
        assert_eq!(
            reader.next().await.expect("second").expect("changes").step,
            Some(2)
        );
        assert_eq!(
            reader.next().await.expect("third").expect_err("ended").code,
            "55000"
        );
    }

    #[tokio::test]
    async fn reading_makes_room_and_one_large_batch_passes() {
        let (mut feed, mut reader) = bounded(4096, true);
        for step in 0..10 {
            feed.offer(changes(step, 5000))
                .expect("an empty queue takes any batch");
            reader.next().await.expect("an item").expect("changes");
        }
        drop(reader);
        assert_eq!(feed.offer(changes(11, 1)), Err(FeedClosed::Gone));
    }
}
