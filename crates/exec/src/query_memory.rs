//! What queries keep in memory, and how it is kept within the budget.
//!
//! Between two steps, the pipeline evicts what is too much, begins a checkpoint before much waits to be written, and lets steps wait for it when they
//! are faster than it is. A query that catches up beside the steps writes by itself. What a step has touched stays until it ends.

use crate::{
    backfill::Downstream,
    checkpoint::CheckpointWork,
    error::ExecResult,
    memory::MemoryHolder,
    operator::StateMemory,
    pipeline::{Pipeline, RunningQuery},
    state::{RocksState, StateChanges, StatePrefix, TableStore},
};

/// About what the end of a step makes of a row: its old and new values, a row of the table, an encoded record.
const HELD_ROW_BYTES: usize = 256;

impl RunningQuery {
    /// What operators and the table keep in memory. Rows of the table leave it with each checkpoint.
    pub(crate) fn memory(&self) -> StateMemory {
        let mut sum = StateMemory::default();
        self.graph.memory().for_each(|node| sum += node);
        let table = self.table.as_ref().map_or(0, TableStore::memory);
        sum.bytes += table;
        sum.unwritten += table;
        sum
    }

    /// Puts what the operators keep into the database, outside of a checkpoint: only for a query whose state no checkpoint needs as it was.
    pub(crate) fn write_operators(&mut self, state: &RocksState) -> ExecResult<()> {
        let mut changes = Vec::new();
        self.graph.checkpoint(&mut changes);
        let mut all = usize::MAX;
        self.graph.checkpoint_more(&mut changes, &mut all);
        state.write(&changes)?;
        self.graph.checkpointed();
        Ok(())
    }

    /// Evicts about so many bytes.
    pub(crate) fn evict(&mut self, bytes: usize) {
        let memory = self.memory();
        self.graph
            .evict(bytes, memory.bytes.saturating_sub(memory.unwritten));
    }

    /// Tells the budget what a query keeps that reads history, and evicts what is too much; answers whether it should end its step and write what it
    /// has. Half of what it may have can wait to be written, since writing takes as much again.
    pub(crate) fn is_short_of(&mut self, budget: &mut MemoryHolder) -> bool {
        let memory = self.memory();
        budget.hold(memory.bytes + memory.unwritten);
        let excess = budget.excess();
        if excess > 0 {
            self.evict(excess);
        }
        let step_end = self.graph.held() * HELD_ROW_BYTES;
        memory.unwritten > budget.allowance() / 2
            || memory.unwritten + step_end > budget.allowance()
    }
}

/// Bytes of changes that wait to be written.
pub fn changes_memory(changes: &[(StatePrefix, StateChanges)]) -> usize {
    changes.iter().map(|(_, changes)| changes.memory()).sum()
}

impl CheckpointWork {
    /// Bytes that it takes beside what the queries keep.
    pub(crate) fn memory(&self) -> usize {
        changes_memory(&self.changes)
    }
}

impl Pipeline {
    /// Tells the budget what the steps keep, with `saving` bytes of a checkpoint under way, and evicts what is too much; answers how many bytes the
    /// next checkpoint would make evictable.
    pub(crate) fn keep_to_budget(&mut self, saving: usize) -> usize {
        let mut memory = StateMemory::default();
        for query in &self.queries {
            memory += query.memory();
        }
        let (mut held, unwritten) = (memory.bytes, memory.unwritten);
        // Push queries have what they keep in memory only.
        for node in self
            .subscriptions
            .iter()
            .flat_map(|push| push.graph.memory())
        {
            held += node.bytes;
        }
        self.memory
            .hold(held + saving + changes_memory(&self.unwritten));
        let excess = self.memory.excess();
        if excess > 0 {
            let evictable = memory.bytes.saturating_sub(unwritten);
            for query in &mut self.queries {
                query.graph.evict(excess, evictable);
            }
        }
        unwritten
    }

    /// Keeps a query to the budget that reads history between two steps. What it has made of it may be written at once: until the checkpoint at the end,
    /// nobody goes on from there.
    pub(crate) fn keep_reader_to_budget(
        &mut self,
        position: usize,
        downstream: Downstream,
    ) -> ExecResult<()> {
        self.keep_to_budget(0);
        let own = self.queries[position].graph.memory();
        let unwritten = own.map(|node| node.unwritten).sum();
        if downstream == Downstream::Follows || !self.memory.should_write(unwritten) {
            return Ok(());
        }
        self.queries[position].write_operators(&self.state)
    }
}
