//! Settings.

/// All settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// Most connections at once.
    pub max_connections: usize,
}
