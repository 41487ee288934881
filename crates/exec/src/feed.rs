//! Change feeds: what push queries read.
//!
//! A receiver gets whole steps, in order, each after its commit. The engine never waits for a receiver: one that is full loses its
//! subscription.

use arrow::record_batch::RecordBatch;

/// Identity of a subscription within one run of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubscriptionId(pub u64);

/// The changes of one committed step.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    /// The step; `None` for history whose step was not known yet.
    pub step: Option<u64>,
    /// It is all of the step, or the last part: whoever has it can go on behind the step.
    pub ends_step: bool,
    /// Rows: the columns of the plan's result, without the hidden event time.
    pub rows: RecordBatch,
    /// +1 or -1 per row; `None` when all are +1. A changed row is its -1 directly followed by its +1.
    pub diffs: Option<Vec<i8>>,
}

/// Why a receiver takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedClosed {
    /// The reader has gone.
    Gone,
    /// The reader is behind by more than its bound.
    Full,
}

/// The reading end of a subscription, called on the engine's thread: it must not block.
pub trait ChangeReceiver: Send {
    /// Takes one step's changes.
    fn offer(&mut self, changes: ChangeBatch) -> Result<(), FeedClosed>;

    /// The subscription has ended on the engine's side, after the last `offer`.
    fn closed(&mut self, reason: String);
}

/// How a subscription begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscribeOptions {
    /// With which changes.
    pub start: FeedStart,
    /// The reader wants to know which batch ends a step, of history too.
    pub with_steps: bool,
}

/// With which changes a subscription begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedStart {
    /// Only what comes.
    Next,
    /// Streams from their first record, tables as they are now, before the changes.
    History,
    /// With the first step behind this one.
    After(u64),
}
