//! What a running operator is, and what it may know.
//!
//! An operator instance serves one slot of one node. It is synchronous, never spawns, and reads no clock and no random number but those of its
//! [`StepContext`], so a step is a function of (state, deltas, context) and can be run again after a crash.

use highwater_storage_log::TopicPartition;

use crate::{
    delta::Delta,
    error::ExecResult,
    state::{SlotState, StateChanges},
};

/// What an operator may ask and tell while a step runs.
pub struct StepContext<'a> {
    /// This operator's durable state; `None` in a push query, whose state lives as long as its connection.
    pub state: Option<SlotState<'a>>,
    /// Rows dropped since their window had closed.
    pub late: &'a mut u64,
    /// Rows whose evaluation failed, for the processing log.
    pub rejected: &'a mut Vec<Rejected>,
}

/// A record, or a row of a query, that could not be used.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// The relation or query that met it.
    pub source: String,
    /// Where it came from, when it is a record of a topic.
    pub position: Option<(TopicPartition, i64)>,
    /// Why.
    pub reason: String,
    /// The record's bytes.
    pub key: Option<Vec<u8>>,
    /// The record's bytes.
    pub value: Option<Vec<u8>>,
    /// Event time of the row, or the record's timestamp.
    pub timestamp: i64,
}

impl Rejected {
    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        size_of::<Self>()
            + self.source.len()
            + self.reason.len()
            + length(&self.key)
            + length(&self.value)
    }
}

/// Memory that an operator has for what it keeps between steps; estimates, without what a running step takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateMemory {
    /// Bytes in all.
    pub bytes: usize,
    /// Bytes of them that the next checkpoint makes evictable.
    pub unwritten: usize,
    /// Groups, or keys of a join.
    pub groups: usize,
}

impl std::ops::AddAssign for StateMemory {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.unwritten += other.unwritten;
        self.groups += other.groups;
    }
}

/// One slot of one node.
pub trait Operator: Send {
    /// Takes one delta from an input (by its position among the node's inputs) and pushes what follows from it at once to `output`.
    fn apply(
        &mut self,
        input: usize,
        delta: Delta,
        context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()>;

    /// The step's last call: stateful operators push the consolidated change of their result.
    fn step_end(
        &mut self,
        _context: &mut StepContext<'_>,
        _output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        Ok(())
    }

    /// About how many rows [`Operator::step_end`] would give now: what a step that goes on keeps in memory.
    fn held(&self) -> usize {
        0
    }

    /// What it keeps in memory.
    fn memory(&self) -> StateMemory {
        StateMemory::default()
    }

    /// Lets go of about so many bytes of what the database has as well, and reads it back when a row names it again; answers how many bytes it let go. What the
    /// running step has touched stays, so it may be called between two parts of a step.
    fn evict(&mut self, _bytes: usize) -> usize {
        0
    }

    /// Begins a checkpoint of what changed since the last one. What is much may be left to [`Operator::checkpoint_more`].
    fn checkpoint(&mut self, _changes: &mut StateChanges) {}

    /// Hands over more of what the checkpoint under way takes, as it was when that began, and counts it off `budget`; answers whether that was
    /// all. Steps may run between two calls.
    fn checkpoint_more(&mut self, _changes: &mut StateChanges, _budget: &mut usize) -> bool {
        true
    }

    /// The checkpoint that took the last changes is written: what it removed need not be remembered any more. No checkpoint is taken between
    /// the two calls, unless the first failed.
    fn checkpointed(&mut self) {}
}
