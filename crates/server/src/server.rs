//! What all sessions share.

use crate::config::Config;

/// The running server.
pub struct Server {
    /// Validated settings.
    pub config: Config,
}
