//! State: what operators and tables keep between steps.
//!
//! The memory tier is where queries run. RocksDB is written only by checkpoints, from what changed since the last one, and is read for keys
//! that memory does not hold. The live database has no write-ahead log and is never trusted after a crash: recovery starts from a
//! checkpoint, a hard-linked copy that a manifest names (see `checkpoint`). What a checkpoint writes is put into key order first; much of it goes
//! into the database as sorted files, little of it through the memtable.

mod changes;
mod key;
mod rocks;
mod run;
mod sorted_files;
mod table;
#[cfg(test)]
mod tests;

pub use changes::StateChanges;
pub use key::{StateId, StatePrefix, key_order};
pub use rocks::{BaseSnapshot, RocksState, SlotState};
pub use run::Run;
pub use table::{RowCodec, TableStore, TableVersion, difference};
