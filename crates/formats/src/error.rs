//! What can go wrong with a format.
//!
//! Two levels: a [`FormatError`] means the format cannot serve this schema or these properties at all (a user's mistake in a statement, or
//! our own bug); a [`RecordError`] is about one record among many and never stops the rest of the run.

/// Result of a format operation.
pub type FormatResult<T> = Result<T, FormatError>;

/// A format that cannot serve a schema, or a property or pattern that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The format has no form for this column type.
    #[error("format {format} cannot hold column \"{column}\" of type {data_type}")]
    UnsupportedType {
        /// Format name.
        format: &'static str,
        /// Column name.
        column: String,
        /// Arrow type, as text.
        data_type: String,
    },
    /// The format wants another number of columns.
    #[error("format {format} needs {expected}, but the schema has {actual} columns")]
    ColumnCount {
        /// Format name.
        format: &'static str,
        /// What it needs, in words.
        expected: &'static str,
        /// What the schema has.
        actual: usize,
    },
    /// No such format.
    #[error("unknown format \"{name}\"")]
    UnknownFormat {
        /// The name as given.
        name: String,
    },
    /// A property that the format does not have.
    #[error("format {format} does not support property \"{property}\"")]
    UnsupportedProperty {
        /// Format name.
        format: &'static str,
        /// Property name.
        property: &'static str,
    },
    /// A property with a value that cannot be used.
    #[error("invalid value \"{value}\" for property \"{property}\": {reason}")]
    InvalidProperty {
        /// Property name.
        property: &'static str,
        /// The value as given.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A date and time pattern that cannot be used.
    #[error("invalid time pattern \"{pattern}\" at position {position}: {reason}")]
    InvalidPattern {
        /// The pattern as given.
        pattern: String,
        /// Byte offset in the pattern, from 0.
        position: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A time zone that is not known.
    #[error("unknown time zone \"{name}\"")]
    UnknownZone {
        /// The name as given.
        name: String,
    },
    /// The event time column has a type that cannot give a time.
    #[error(
        "a timestamp column must be BIGINT, TIMESTAMP, or STRING with a format; got {data_type}{hint}"
    )]
    TimestampColumn {
        /// Arrow type, as text.
        data_type: String,
        /// What would help, or nothing.
        hint: &'static str,
    },
    /// A run whose columns would not fit Arrow's 32-bit offsets.
    #[error("a run of {bytes} bytes is larger than the {limit} that one batch can hold")]
    RunTooLarge {
        /// Size of the run.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// Columns handed to an encoder that do not match its schema.
    #[error("cannot encode: {reason}")]
    ColumnMismatch {
        /// What does not match.
        reason: String,
    },
    /// Arrow refused to build or cast an array.
    #[error("cannot build a column")]
    Arrow(#[from] arrow::error::ArrowError),
}

/// One record that could not be decoded or encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// Index in the run.
    pub index: usize,
    /// What is wrong, with the field where it is known.
    pub reason: String,
}
