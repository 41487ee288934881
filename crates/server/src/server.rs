//! What all sessions share.

use std::sync::Arc;

use highwater_exec::Engine;
use highwater_storage_log::{EmbeddedLog, Log};

use crate::{
    append_signal::AppendSignal, config::Config, coordinator::Coordinator, worker::Workers,
};

/// The running server.
pub struct Server {
    /// Validated settings.
    pub config: Config,
    /// The topics.
    pub log: Arc<dyn Log>,
    /// The same log as what a backup copies; none where it lives in memory.
    pub embedded: Option<Arc<EmbeddedLog>>,
    /// The continuous queries.
    pub engine: Arc<Engine>,
    /// Owner of the catalog and of every change to it.
    pub coordinator: Coordinator,
    /// Threads that run pull queries.
    pub workers: Workers,
    /// Raised by every append.
    pub appended: Arc<AppendSignal>,
}
