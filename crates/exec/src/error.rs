//! What can go wrong while queries run.

use highwater_storage_log::LogError;

/// Result of an engine operation.
pub type ExecResult<T> = Result<T, ExecError>;

/// An engine error. User mistakes, environment, corruption and our own bugs are told apart, since each has another SQLSTATE.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// There is no such query.
    #[error("query \"{0}\" does not exist")]
    UnknownQuery(String),
    /// A plan uses something that has no incremental form here.
    #[error("{0}")]
    Unsupported(String),
    /// A push query cannot go on behind a step.
    #[error("{0}")]
    NotResumable(String),
    /// A push query shall go on behind a step that has not been.
    #[error("step {step} has not been: the last one is {last}")]
    StepAhead {
        /// The step.
        step: u64,
        /// The last one.
        last: u64,
    },
    /// A push query shall go on behind a step that the journal does not tell of any more, or in which nobody read what the query reads.
    #[error("how far topic \"{topic}\" was read by step {step} is not known{}", oldest(*.first))]
    StepGone {
        /// The step.
        step: u64,
        /// What the query reads.
        topic: String,
        /// The oldest one that the journal tells of.
        first: Option<u64>,
    },
    /// A push query shall go on behind a step, and records of later steps are gone.
    #[error(
        "records of steps behind {step} are gone: \"{partition}\" was read up to offset {from} by then and begins at {start} now"
    )]
    RecordsGone {
        /// The step.
        step: u64,
        /// Topic and partition.
        partition: String,
        /// Where it was read by then.
        from: i64,
        /// Where it begins.
        start: i64,
    },
    /// A query needs more than one query may have.
    #[error("{0}")]
    LimitExceeded(String),
    /// An expression could not be evaluated.
    #[error("could not evaluate an expression")]
    Evaluate(#[source] datafusion::error::DataFusionError),
    /// Columns could not be put together.
    #[error("could not build columns")]
    Arrow(#[from] arrow::error::ArrowError),
    /// A format refused a schema.
    #[error("could not set up a format")]
    Format(#[from] highwater_formats::FormatError),
    /// The log failed.
    #[error("the log failed")]
    Log(#[from] LogError),
    /// The state store failed.
    #[error("the state store failed")]
    State(#[from] rocksdb::Error),
    /// A file operation failed.
    #[error("could not {action} \"{path}\"")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file.
        path: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// Bytes on disk are not what was written.
    #[error("{what} is damaged: {detail}")]
    Corrupt {
        /// Which file or record.
        what: String,
        /// How it shows.
        detail: String,
    },
    /// Waiting for a step took longer than allowed.
    #[error("the step that holds the session's records did not commit within {0:?}")]
    FreshnessTimeout(std::time::Duration),
    /// The engine has stopped, or a step failed for good.
    #[error("the engine has stopped: {0}")]
    Stopped(String),
    /// A bug in this program.
    #[error("internal error: {0}")]
    Internal(String),
}

impl ExecError {
    /// Whether what is on disk of the state is not what was written there.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Corrupt { .. } => true,
            Self::State(error) => error.kind() == rocksdb::ErrorKind::Corruption,
            _ => false,
        }
    }

    /// Whether the disk is full, which passes when somebody makes room.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Log(error) => error.is_disk_full(),
            Self::Io { source, .. } => source.kind() == std::io::ErrorKind::StorageFull,
            _ => false,
        }
    }
}

fn oldest(first: Option<u64>) -> String {
    first.map_or_else(String::new, |first| {
        format!(": the journal keeps the steps from {first} on")
    })
}

/// An error with its causes in one line, for logs and states that only hold text.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
