//! What bare libraries do with the same bytes.

use std::hint::black_box;

use arrow::{datatypes::SchemaRef, json::ReaderBuilder};

use crate::{
    EncodedRecords,
    error::{FormatError, FormatResult},
};

/// Parsing JSON to a tape with simd-json, record by record.
pub(super) fn simd_json(records: &EncodedRecords) -> impl FnMut() -> FormatResult<()> + '_ {
    let mut buffers = simd_json::Buffers::default();
    // The parser resolves escapes in place, so it needs a copy of its own.
    let mut scratch = Vec::new();
    move || {
        for record in records.iter().flatten() {
            scratch.clear();
            scratch.extend_from_slice(record);
            let tape = simd_json::to_tape_with_buffers(&mut scratch, &mut buffers)
                .map_err(|error| refused(&error))?;
            black_box(&tape);
        }
        Ok(())
    }
}

/// Decoding JSON to Arrow with arrow-json, record by record.
pub(super) fn arrow_json<'a>(
    schema: &'a SchemaRef,
    records: &'a EncodedRecords,
) -> impl FnMut() -> FormatResult<()> + 'a {
    move || {
        let mut decoder = ReaderBuilder::new(SchemaRef::clone(schema))
            .with_batch_size(records.len())
            .build_decoder()?;
        for record in records.iter().flatten() {
            decoder.decode(record)?;
        }
        black_box(decoder.flush()?);
        Ok(())
    }
}

/// Splitting lines with the csv crate.
pub(super) fn csv(records: &EncodedRecords) -> impl FnMut() -> FormatResult<()> + use<> {
    let mut lines = Vec::with_capacity(records.byte_len() + records.len());
    for record in records.iter().flatten() {
        lines.extend_from_slice(record);
        lines.push(b'\n');
    }
    let mut row = csv::ByteRecord::new();
    move || {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(lines.as_slice());
        while reader
            .read_byte_record(&mut row)
            .map_err(|error| refused(&error))?
        {
            black_box(&row);
        }
        Ok(())
    }
}

/// Copying the bytes, record by record.
pub(super) fn copy(records: &EncodedRecords) -> impl FnMut() -> FormatResult<()> + '_ {
    let mut out: Vec<u8> = Vec::with_capacity(records.byte_len());
    move || {
        out.clear();
        for record in records.iter().flatten() {
            out.extend_from_slice(record);
        }
        black_box(&out);
        Ok(())
    }
}

fn refused(error: &dyn std::error::Error) -> FormatError {
    FormatError::ColumnMismatch {
        reason: format!("a library refused the sample: {error}"),
    }
}
