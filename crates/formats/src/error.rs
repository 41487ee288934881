//! What can go wrong with a format.

/// Result of a format operation.
pub type FormatResult<T> = Result<T, FormatError>;

/// A format that cannot serve a schema, or a pattern that cannot be read.
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
}

/// One record that could not be decoded or encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// Index in the run.
    pub index: usize,
    /// What is wrong, with the field where it is known.
    pub reason: String,
}
