//! Why the server cannot start or go on.

use std::{io, net::SocketAddr, path::PathBuf};

use highwater_exec::ExecError;
use highwater_storage_log::LogError;

use crate::{config::ConfigError, sqlstate::SqlError};

/// A failure of the process as a whole; failures of one statement are [`SqlError`]s.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A setting cannot be used.
    #[error("a setting cannot be used")]
    Config(#[from] ConfigError),
    /// The data folder cannot be used.
    #[error("cannot use the data folder \"{path}\"")]
    DataFolder {
        /// Which folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process has the data folder.
    #[error(
        "the data folder \"{path}\" is in use by another highwater process; stop that one, or start this one with another --data"
    )]
    DataFolderInUse {
        /// Which folder.
        path: PathBuf,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}; is another server running there?")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The log cannot be opened, read or written.
    #[error("the log failed")]
    Log(#[from] LogError),
    /// The engine cannot recover or stop.
    #[error("the engine failed")]
    Engine(#[from] ExecError),
    /// A recorded statement does not run any more.
    #[error("statement {number} of the command topic cannot be applied: {statement}")]
    Recovery {
        /// Its offset in the command topic.
        number: i64,
        /// Its text.
        statement: String,
        /// Why.
        #[source]
        source: SqlError,
    },
    /// A record of the command topic is not one of ours.
    #[error("record {number} of the command topic cannot be read: {reason}")]
    DamagedCommand {
        /// Its offset in the command topic.
        number: i64,
        /// Why.
        reason: String,
    },
    /// A thread pool, a timer or a signal handler cannot be had.
    #[error("cannot {action}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}
