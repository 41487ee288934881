//! Errors of running queries and of the log: mostly the environment's, sometimes damage on disk.

use std::error::Error;

use highwater_exec::ExecError;
use highwater_formats::FormatError;
use highwater_storage_log::LogError;

use super::{SqlError, code, datafusion::from_io};

/// What helps when bytes on disk are not what was written.
const DAMAGE_HINT: &str = "other topics and tables are not concerned; keep a copy of the data folder before anything else";

/// What helps when a push query cannot be resumed.
const FROM_SNAPSHOT: &str = "begin again with EMIT CHANGES WITH SNAPSHOT, STEP";

impl From<ExecError> for SqlError {
    fn from(error: ExecError) -> Self {
        Self::from(&error)
    }
}

impl From<&ExecError> for SqlError {
    fn from(error: &ExecError) -> Self {
        match error {
            ExecError::UnknownQuery(_) => Self::new(code::UNDEFINED_OBJECT, error.to_string()),
            ExecError::Unsupported(message) => Self::unsupported(message.as_str()),
            ExecError::NotResumable(message) => Self::unsupported(message.as_str()).with_hint(FROM_SNAPSHOT),
            ExecError::StepAhead { .. } => Self::new(code::INVALID_PARAMETER_VALUE, error.to_string())
                .with_hint("name the step of the last row whose step_ends is true, as EMIT CHANGES WITH STEP gives it"),
            ExecError::StepGone { .. } | ExecError::RecordsGone { .. } => {
                Self::new(code::OBJECT_NOT_IN_PREREQUISITE_STATE, error.to_string()).with_hint(FROM_SNAPSHOT)
            }
            ExecError::LimitExceeded(message) => Self::new(code::PROGRAM_LIMIT_EXCEEDED, message.as_str())
                .with_hint("join on more columns, or group the tables first"),
            ExecError::Evaluate(source) => Self::from_datafusion(source, ""),
            ExecError::Arrow(source) => Self::from_arrow(source),
            ExecError::Format(source) => Self::from(source),
            ExecError::Log(source) => Self::from(source),
            ExecError::State(source) => from_state(source),
            ExecError::Io { source, .. } => within(error, from_io(source)),
            ExecError::Corrupt { .. } => Self::new(code::DATA_CORRUPTED, error.to_string()).with_hint(DAMAGE_HINT),
            ExecError::FreshnessTimeout(_) => Self::new(code::QUERY_CANCELED, error.to_string())
                .with_hint("the server is behind: try again, or SET freshness = 'any' to read the last committed step"),
            ExecError::Stopped(_) => Self::new(code::CANNOT_CONNECT_NOW, error.to_string()),
            ExecError::Internal(_) => Self::internal(error.to_string()),
            // Forced by #[non_exhaustive]: a variant that has no arm above is a bug here.
            _ => Self::internal(chain(error)),
        }
    }
}

impl From<LogError> for SqlError {
    fn from(error: LogError) -> Self {
        Self::from(&error)
    }
}

impl From<&LogError> for SqlError {
    fn from(error: &LogError) -> Self {
        let code = match error {
            LogError::TopicExists { .. } => code::DUPLICATE_OBJECT,
            LogError::UnknownTopic { .. } | LogError::UnknownPartition { .. } => {
                code::UNDEFINED_OBJECT
            }
            LogError::IllegalTopicName { .. } | LogError::InvalidSetting { .. } => {
                code::INVALID_PARAMETER_VALUE
            }
            LogError::BatchTooLarge { .. } => code::PROGRAM_LIMIT_EXCEEDED,
            LogError::OffsetOutOfRange { .. } => code::INVALID_PARAMETER_VALUE,
            LogError::OutOfOrderSequence { .. }
            | LogError::ProducerFenced { .. }
            | LogError::TransactionOpen { .. } => code::OBJECT_NOT_IN_PREREQUISITE_STATE,
            LogError::FolderInUse { .. } => code::OBJECT_IN_USE,
            LogError::FolderNotEmpty { .. } => code::DUPLICATE_OBJECT,
            LogError::Io { source, .. } => return within(error, from_io(source)),
            LogError::Batch(_) | LogError::Corrupt { .. } | LogError::CorruptFile { .. } => {
                return Self::new(code::DATA_CORRUPTED, error.to_string()).with_hint(DAMAGE_HINT);
            }
            LogError::NewerFormat { .. } => code::FEATURE_NOT_SUPPORTED,
            LogError::Stopped { cause, .. } => return within(error, Self::from(cause.as_ref())),
            LogError::Poisoned { .. } => {
                return Self::new(code::IO_ERROR, error.to_string()).with_hint(
                    "look at the disk, then restart the server: what was acknowledged is kept",
                );
            }
            // Forced by #[non_exhaustive]: a variant that has no arm above is a bug here.
            _ => return Self::internal(chain(error)),
        };
        Self::new(code, error.to_string())
    }
}

impl From<FormatError> for SqlError {
    fn from(error: FormatError) -> Self {
        Self::from(&error)
    }
}

impl From<&FormatError> for SqlError {
    fn from(error: &FormatError) -> Self {
        let code = match error {
            FormatError::UnsupportedType { .. } => code::FEATURE_NOT_SUPPORTED,
            FormatError::ColumnCount { .. } => code::INVALID_TABLE_DEFINITION,
            FormatError::UnknownFormat { .. }
            | FormatError::UnsupportedProperty { .. }
            | FormatError::InvalidProperty { .. }
            | FormatError::InvalidPattern { .. }
            | FormatError::UnknownZone { .. } => code::INVALID_PARAMETER_VALUE,
            FormatError::TimestampColumn { .. } => code::DATATYPE_MISMATCH,
            FormatError::RunTooLarge { .. } => code::PROGRAM_LIMIT_EXCEEDED,
            FormatError::ColumnMismatch { .. } => code::INTERNAL_ERROR,
            FormatError::Arrow(source) => return Self::from_arrow(source),
            // Forced by #[non_exhaustive]: a variant that has no arm above is a bug here.
            _ => code::INTERNAL_ERROR,
        };
        Self::new(code, error.to_string())
    }
}

/// The state store's error: its library tells the kind only in words.
fn from_state(error: &(impl Error + ?Sized)) -> SqlError {
    let message = error.to_string();
    if message.contains("No space left") || message.contains("Disk quota exceeded") {
        SqlError::new(code::DISK_FULL, format!("could not write state: {message}"))
            .with_hint("make room on the disk; reads go on meanwhile")
    } else if message.starts_with("Corruption") {
        SqlError::new(
            code::DATA_CORRUPTED,
            format!("the state store is damaged: {message}"),
        )
        .with_hint(DAMAGE_HINT)
    } else {
        SqlError::new(code::IO_ERROR, format!("the state store failed: {message}"))
    }
}

/// What was attempted as the message; the cause's code and hint, and its message as the detail.
fn within(attempt: &impl Error, cause: SqlError) -> SqlError {
    SqlError {
        message: attempt.to_string(),
        detail: Some(cause.message),
        ..cause
    }
}

/// An error with all its causes.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |message, cause| {
        format!("{message}: {cause}")
    })
}
