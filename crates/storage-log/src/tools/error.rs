//! Why a command failed.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::LogError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The log refused.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Another process has the folder open.
    #[error(
        "{0}; stop that process first, or look at the files with \"highwater log dump\", which needs no lock"
    )]
    InUse(LogError),
    /// There is no log in the folder.
    #[error("there is no log in \"{}\"", .0.display())]
    NoLog(PathBuf),
    /// An argument has a value that it cannot have.
    #[error("{argument} cannot be \"{value}\": {reason}")]
    Argument {
        /// The argument.
        argument: &'static str,
        /// Its value.
        value: String,
        /// What is expected.
        reason: String,
    },
    /// A line of the input cannot be made a record.
    #[error("line {line} of the input: {reason}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that was named cannot be read.
    #[error("could not read \"{}\"", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// Standard input or output failed.
    #[error("could not {0}")]
    Standard(&'static str, #[source] io::Error),
}

impl ToolError {
    /// Whoever read our output has closed it.
    pub(super) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Standard(_, source) if source.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    pub(super) fn output(source: io::Error) -> Self {
        Self::Standard("write to standard output", source)
    }
}
