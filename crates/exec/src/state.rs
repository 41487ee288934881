//! State: what operators and tables keep between steps.
//!
//! The memory tier is where queries run. RocksDB is written only by checkpoints, from what changed since the last one, and is read for keys
//! that memory does not hold. The live database has no write-ahead log and is never trusted after a crash: recovery starts from a
//! checkpoint, a hard-linked copy that a manifest names (see `checkpoint`).

mod key;
mod rocks;
mod run;
mod table;

pub use key::{StateId, StatePrefix, leading};
pub use rocks::{BaseSnapshot, RocksState, SlotState};
pub use run::Run;
pub use table::{RowCodec, TableStore, TableVersion, difference};

/// Changes to one state prefix since its last checkpoint, in order.
#[derive(Debug, Default)]
pub struct StateChanges {
    changes: Vec<StateChange>,
}

/// One change; keys are without the prefix.
#[derive(Debug)]
pub enum StateChange {
    /// Sets a value.
    Put(Vec<u8>, Vec<u8>),
    /// Removes a key.
    Delete(Vec<u8>),
    /// Removes all keys from the first on, below the second.
    DeleteRange(Vec<u8>, Vec<u8>),
}

impl StateChanges {
    /// Sets a value.
    pub fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.changes.push(StateChange::Put(key, value));
    }

    /// Removes a key.
    pub fn delete(&mut self, key: Vec<u8>) {
        self.changes.push(StateChange::Delete(key));
    }

    /// Removes all keys from `from` on, below `to`.
    pub fn delete_range(&mut self, from: Vec<u8>, to: Vec<u8>) {
        self.changes.push(StateChange::DeleteRange(from, to));
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The changes in order.
    pub fn iter(&self) -> impl Iterator<Item = &StateChange> {
        self.changes.iter()
    }
}
