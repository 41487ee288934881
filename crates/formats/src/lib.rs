//! Bytes to columns and columns to bytes: what a topic's keys and values mean.
//!
//! A [`Decoder`] turns a run of records into Arrow columns, an [`Encoder`] turns columns into a run of records. Both work on whole runs, so
//! there is one virtual call a batch, not one a record. A record that cannot be decoded is a value-level error with its index: its row
//! is NULL in every column and the caller decides what becomes of it. Nothing here panics on outside input.

mod error;

pub use error::{FormatError, FormatResult, RecordError};

use arrow::{array::ArrayRef, datatypes::SchemaRef};

/// Which format, with its properties.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FormatSpec {
    /// No bytes at all: the key format of a source without key columns.
    None,
    /// Kafka's own serdes: big-endian integers and doubles, UTF-8 text; exactly one column.
    Kafka,
    /// CSV with minimal quotes and one delimiter.
    Delimited {
        /// Field separator.
        delimiter: u8,
    },
    /// JSON: an object by column name, or the bare value when `wrapped` is false and there is one column.
    Json {
        /// `WRAP_SINGLE_VALUE`.
        wrapped: bool,
    },
}

/// A decoded run: one array per column of the decoder's schema, each as long as the run.
#[derive(Debug)]
pub struct Decoded {
    /// Columns in the order of the schema.
    pub columns: Vec<ArrayRef>,
    /// Records that could not be decoded, by ascending index; their rows are NULL.
    pub errors: Vec<RecordError>,
}

/// Bytes to columns, for one schema.
pub trait Decoder: Send {
    /// Decodes a run of records. A `None` record (NULL key, tombstone) is a row of NULLs and no error.
    fn decode(&mut self, records: &[Option<&[u8]>]) -> FormatResult<Decoded>;
}

/// Columns to bytes, for one schema.
pub trait Encoder: Send {
    /// Appends one record per row to `out`. Rows that cannot be encoded are left as `None` and reported by index.
    fn encode(&mut self, columns: &[ArrayRef], out: &mut EncodedRecords) -> FormatResult<Vec<RecordError>>;
}

/// Encoded records back to back.
#[derive(Debug, Default)]
pub struct EncodedRecords {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    present: Vec<bool>,
}

/// Makes a decoder of `spec` for the columns of `schema`.
pub fn decoder(_spec: &FormatSpec, _schema: SchemaRef) -> FormatResult<Box<dyn Decoder>> {
    todo!()
}

/// Makes an encoder of `spec` for the columns of `schema`.
pub fn encoder(_spec: &FormatSpec, _schema: SchemaRef) -> FormatResult<Box<dyn Encoder>> {
    todo!()
}
