//! Running dataflow plans: steps, state, snapshots, change feeds.
//!
//! [`Engine`] is what the server talks to. Behind it one thread owns the pipeline: all queries as one graph that moves in steps (`step`). Each
//! step is written to a journal before it runs and committed once it is on disk; checkpoints and the journal bring everything back after a
//! crash (`recovery`). Pull queries read a [`Snapshot`], push queries subscribe to the changes of each step.
//!
//! Everything here is synchronous. Operators are functions of (state, change, step), so a step that runs again gives the same result.

mod backfill;
mod backup;
mod catch_up;
mod checkpoint;
mod committer;
mod cut;
mod delta;
mod engine;
mod error;
mod eval;
mod exchange;
mod feed;
mod holds;
mod journal;
mod memory;
mod operator;
mod operators;
mod pipeline;
mod pipeline_thread;
mod producer;
mod query;
mod query_changes;
mod query_memory;
mod rebuild;
mod recovery;
mod rejects;
mod relation;
mod resume;
mod shared;
mod sink;
mod snapshot;
mod source;
mod state;
mod step;
mod step_times;
mod subscribe;
mod transactions;
mod workers;

pub use backup::FrozenState;
pub use engine::{
    EarlierResult, Engine, EngineOptions, OffsetReset, PersistentQuery, QueryOutput, QueryState,
    QueryStatus, SourceStatus,
};
pub use error::{ExecError, ExecResult};
pub use feed::{
    ChangeBatch, ChangeReceiver, FeedClosed, FeedStart, SubscribeOptions, SubscriptionId,
};
pub use operator::{Rejected, StateMemory};
pub use relation::{DecodedRows, EncodedRows, RelationDecoder, RelationEncoder};
pub use resume::is_resumable;
pub use snapshot::{KeyRange, Snapshot, TableReader};
pub use step_times::StepStats;
pub use transactions::{Ends, Told};
