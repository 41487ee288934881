//! Finding and opening the log in a data folder.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{EmbeddedLog, FsyncPolicy, Log, LogError, LogOptions, TopicInfo};

use super::error::ToolError;

/// Which folder a command works on.
#[derive(Debug, Clone, Args)]
pub struct FolderArgs {
    /// Data folder of a server, or the folder of a log itself
    #[arg(
        long,
        env = "HIGHWATER_DATA",
        value_name = "DIR",
        default_value = "./highwater-data"
    )]
    data: PathBuf,
}

impl FolderArgs {
    /// Folder of the log, which must exist.
    pub(super) fn log_dir(&self) -> Result<PathBuf, ToolError> {
        self.existing()
            .ok_or_else(|| ToolError::NoLog(self.data.clone()))
    }

    /// A server keeps its log in a folder of its own.
    fn existing(&self) -> Option<PathBuf> {
        [self.data.join("log"), self.data.clone()]
            .into_iter()
            .find(|dir| dir.join("topics").is_dir())
    }

    /// Opens the log, which must exist.
    pub(super) fn open(&self) -> Result<EmbeddedLog, ToolError> {
        open(&self.log_dir()?)
    }

    /// Opens the log; makes one where a server would look for it.
    pub(super) fn open_or_create(&self) -> Result<EmbeddedLog, ToolError> {
        let dir = self.existing().unwrap_or_else(|| self.data.join("log"));
        open(&dir)
    }
}

fn open(dir: &Path) -> Result<EmbeddedLog, ToolError> {
    let options = LogOptions {
        fsync: FsyncPolicy::Always,
        ..LogOptions::default()
    };
    EmbeddedLog::open(dir, options).map_err(in_use)
}

/// Says what can be done about a folder in use.
pub(super) fn in_use(error: LogError) -> ToolError {
    match error {
        LogError::FolderInUse { .. } => ToolError::InUse(error),
        other => ToolError::Log(other),
    }
}

/// The topic of that name.
pub(super) fn topic(log: &EmbeddedLog, name: &str) -> Result<TopicInfo, ToolError> {
    let unknown = || LogError::UnknownTopic { topic: name.into() };
    Ok(log.topic(name).ok_or_else(unknown)?)
}
