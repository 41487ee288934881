//! Bytes to columns and columns to bytes: what a topic's keys and values mean.
//!
//! A [`Decoder`] turns a run of records into Arrow columns, an [`Encoder`] turns columns into a run of records. Both work on whole runs, so
//! there is one virtual call a batch, not one a record. A record that cannot be decoded is a value-level error with its index: its row
//! is NULL in every column and the caller decides what becomes of it. Nothing here panics on outside input.
//!
//! [`FormatSpec`] names a format with its properties; [`decoder`] and [`encoder`] make the two halves for a schema. Where few columns are read,
//! [`judging_decoder`] still gives every record the same verdict, and [`projected_decoder`] does not look at the others.
//! Beside the formats lives what else gives a record's bytes a meaning: the bounds in a windowed key ([`windowed_key`]), Java's date
//! patterns ([`java_time`]), Java's texts of numbers ([`java_text`]) and the event time of a row ([`TimestampExtractor`]).

mod column;
mod delimited;
mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod java_text;
pub mod java_time;
mod json;
mod kafka;
mod none;
pub mod rates;
mod records;
mod run;
mod scalar;
mod spec;
mod timestamp;
pub mod windowed_key;

#[cfg(test)]
mod tests;

pub use error::{FormatError, FormatResult, RecordError};
pub use records::EncodedRecords;
pub use spec::FormatSpec;
pub use timestamp::TimestampExtractor;

use std::sync::Arc;

use arrow::{array::ArrayRef, datatypes::SchemaRef};

/// A decoded run: one array per column of the decoder's schema, each as long as the run.
#[derive(Debug)]
pub struct Decoded {
    /// Columns in the order of the schema.
    pub columns: Vec<ArrayRef>,
    /// Records that could not be decoded, by ascending index; their rows are NULL.
    pub errors: Vec<RecordError>,
}

impl Decoded {
    /// The same records with only the columns at these positions.
    fn pick(self, columns: &[usize]) -> Self {
        Self {
            columns: columns
                .iter()
                .map(|&column| Arc::clone(&self.columns[column]))
                .collect(),
            errors: self.errors,
        }
    }
}

/// Bytes to columns, for one schema.
pub trait Decoder: Send {
    /// Decodes a run of records. A `None` record (NULL key, tombstone) is a row of NULLs and no error.
    fn decode(&mut self, records: &[Option<&[u8]>]) -> FormatResult<Decoded>;
}

/// Columns to bytes, for one schema.
pub trait Encoder: Send {
    /// Appends one record per row to `out`. Rows that cannot be encoded are absent and reported by index.
    ///
    /// A NULL in the only column of KAFKA or bare JSON is an absent record too, without an error: that is how these formats write NULL. Whether a
    /// row as a whole is a NULL key or a tombstone is the caller's business; an encoder writes every row it is given.
    fn encode(
        &mut self,
        columns: &[ArrayRef],
        out: &mut EncodedRecords,
    ) -> FormatResult<Vec<RecordError>>;
}

/// Makes a decoder of `spec` for the columns of `schema`.
pub fn decoder(spec: &FormatSpec, schema: SchemaRef) -> FormatResult<Box<dyn Decoder>> {
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    projected_decoder(spec, schema, &all)
}

/// Makes a decoder of records of `schema` that builds only the columns at `projection` (ascending indices, in range).
pub fn projected_decoder(
    spec: &FormatSpec,
    schema: SchemaRef,
    projection: &[usize],
) -> FormatResult<Box<dyn Decoder>> {
    let projected = Arc::new(schema.project(projection)?);
    Ok(match spec {
        FormatSpec::None => Box::new(none::NoneFormat::new(&schema)?),
        FormatSpec::Kafka => Box::new(kafka::KafkaDecoder::new(&schema, &projected)?),
        FormatSpec::Delimited { delimiter } => Box::new(delimited::DelimitedDecoder::new(
            &schema, *delimiter, projection,
        )?),
        FormatSpec::Json { wrapped } => {
            let bare = !wrapped && schema.fields().len() == 1;
            Box::new(json::JsonDecoder::new(&projected, bare)?)
        }
    })
}

/// Makes a decoder that judges records by all columns of `schema` and hands out those at `built` (in range).
///
/// INVARIANT: whether a record is an error, and which, does not depend on `built`.
pub fn judging_decoder(
    spec: &FormatSpec,
    schema: SchemaRef,
    built: &[usize],
) -> FormatResult<Box<dyn Decoder>> {
    Ok(match spec {
        FormatSpec::Json { wrapped } => {
            let bare = !wrapped && schema.fields().len() == 1;
            Box::new(json::JsonDecoder::judging(&schema, bare, built)?)
        }
        // A column of these costs little to build.
        FormatSpec::None | FormatSpec::Kafka | FormatSpec::Delimited { .. } => Box::new(Picking {
            decoder: decoder(spec, schema)?,
            columns: built.to_vec(),
        }),
    })
}

/// Decodes all columns and hands out some.
struct Picking {
    decoder: Box<dyn Decoder>,
    columns: Vec<usize>,
}

impl Decoder for Picking {
    fn decode(&mut self, records: &[Option<&[u8]>]) -> FormatResult<Decoded> {
        Ok(self.decoder.decode(records)?.pick(&self.columns))
    }
}

/// Makes an encoder of `spec` for the columns of `schema`.
///
/// Types that only represent the same values in another way (string views, dictionaries, timestamps in other units) are cast per run.
pub fn encoder(spec: &FormatSpec, schema: SchemaRef) -> FormatResult<Box<dyn Encoder>> {
    let schema = run::canonical(&schema);
    Ok(match spec {
        FormatSpec::None => Box::new(none::NoneFormat::new(&schema)?),
        FormatSpec::Kafka => Box::new(kafka::KafkaEncoder::new(schema)?),
        FormatSpec::Delimited { delimiter } => {
            Box::new(delimited::DelimitedEncoder::new(schema, *delimiter)?)
        }
        FormatSpec::Json { wrapped } => {
            let bare = !wrapped && schema.fields().len() == 1;
            Box::new(json::JsonEncoder::new(schema, bare)?)
        }
    })
}
