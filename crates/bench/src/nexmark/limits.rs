//! What the same bytes cost without the system around them: the bare JSON library, our bare decoder and encoder, memory, the disk.
//!
//! Rates of work on records are by CPU time of one thread, the best of some rounds.

use std::{hint::black_box, path::Path, sync::Arc, time::Duration};

use anyhow::{Result, bail};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use highwater_formats::{
    Decoder, EncodedRecords, Encoder, FormatSpec, decoder, encoder, projected_decoder,
};
use highwater_storage_log::tools::bench::machine;
use serde::Serialize;

use super::{
    generator::{Generator, Kind},
    load::EventSet,
};
use crate::process::thread_cpu_seconds;

/// Bids that are kept in memory for this: some 60 MB, more than any cache.
const SAMPLE: usize = 262_144;
/// Records in one run, about what a query reads from one partition at a time.
const RUN: usize = 16_384;
/// Of so many measurements the best counts.
const ROUNDS: usize = 3;
/// Seconds of each: the system counts a thread's time in steps of some milliseconds.
const ROUND_SECONDS: f64 = 0.2;
/// Columns of a bid: what q0 writes, and what the plain GROUP BY reads.
const WRITTEN: [usize; 5] = [0, 1, 2, 5, 6];
const GROUPED: [usize; 4] = [0, 1, 2, 5];

/// Bids a second of one core's time.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Limits {
    /// simd-json parses them to a tape.
    pub(super) library: f64,
    /// All columns are decoded.
    pub(super) decode: f64,
    /// Only the columns that the plain GROUP BY reads are decoded.
    pub(super) decode_grouped: f64,
    /// All columns are decoded, five are encoded.
    pub(super) decode_encode: f64,
    /// They are copied, record by record.
    pub(super) copy: f64,
    /// Bytes of a bid.
    pub(super) bid_bytes: f64,
}

/// The disk's share.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct DiskLimits {
    /// MB/s written, with an fdatasync per 100 MB.
    pub(super) write: f64,
    /// fdatasyncs a second.
    pub(super) syncs: f64,
}

impl Limits {
    /// The better of two measurements: whatever else the machine does can only make one worse.
    pub(super) fn better(self, other: Self) -> Self {
        Self {
            library: self.library.max(other.library),
            decode: self.decode.max(other.decode),
            decode_grouped: self.decode_grouped.max(other.decode_grouped),
            decode_encode: self.decode_encode.max(other.decode_encode),
            copy: self.copy.max(other.copy),
            bid_bytes: self.bid_bytes,
        }
    }
}

/// Measures the disk below `folder`.
pub(super) fn disk(folder: &Path, bytes: usize) -> Result<DiskLimits> {
    let path = folder.join("disk-limit");
    let write = machine::sequential_write(&path, bytes, Some(machine::SYNC_EVERY))?;
    let (syncs, _) = machine::sync_rate(&path, Duration::from_millis(500))?;
    std::fs::remove_file(&path)?;
    Ok(DiskLimits { write, syncs })
}

/// Measures the work on the bids of `set`.
pub(super) fn measure(set: &EventSet) -> Result<Limits> {
    let records = sample(set);
    let slices: Vec<Option<&[u8]>> = records.iter().collect();
    let count = records.len();
    let schema = schema();
    let json = FormatSpec::Json { wrapped: true };

    let mut buffers = simd_json::Buffers::default();
    let mut scratch = Vec::new();
    let library = rate(count, || {
        for record in records.iter().flatten() {
            // The parser resolves escapes in place, so it needs a copy of its own.
            scratch.clear();
            scratch.extend_from_slice(record);
            black_box(simd_json::to_tape_with_buffers(&mut scratch, &mut buffers)?);
        }
        Ok(())
    })?;

    let mut all = decoder(&json, Arc::clone(&schema))?;
    let decode = rate(count, || decode_runs(&mut *all, &slices))?;
    let mut some = projected_decoder(&json, Arc::clone(&schema), &GROUPED)?;
    let decode_grouped = rate(count, || decode_runs(&mut *some, &slices))?;
    let mut written = encoder(&json, Arc::new(schema.project(&WRITTEN)?))?;
    let decode_encode = rate(count, || {
        decode_encode_runs(&mut *all, &mut *written, &slices)
    })?;

    let mut out: Vec<u8> = Vec::with_capacity(records.byte_len());
    let copy = rate(count, || {
        out.clear();
        for record in records.iter().flatten() {
            out.extend_from_slice(record);
        }
        black_box(&out);
        Ok(())
    })?;
    Ok(Limits {
        library,
        decode,
        decode_grouped,
        decode_encode,
        copy,
        bid_bytes: records.byte_len() as f64 / count as f64,
    })
}

fn decode_runs(decoder: &mut dyn Decoder, records: &[Option<&[u8]>]) -> Result<()> {
    for run in records.chunks(RUN) {
        let decoded = black_box(decoder.decode(run)?);
        if let Some(error) = decoded.errors.first() {
            bail!("a bid cannot be decoded: {}", error.reason);
        }
    }
    Ok(())
}

fn decode_encode_runs(
    decoder: &mut dyn Decoder,
    encoder: &mut dyn Encoder,
    records: &[Option<&[u8]>],
) -> Result<()> {
    let mut out = EncodedRecords::new();
    for run in records.chunks(RUN) {
        let decoded = decoder.decode(run)?;
        let columns = WRITTEN.map(|column| Arc::clone(&decoded.columns[column]));
        out.clear();
        let errors = encoder.encode(&columns, &mut out)?;
        black_box(&out);
        if let Some(error) = errors.first() {
            bail!("a bid cannot be encoded: {}", error.reason);
        }
    }
    Ok(())
}

/// Things a second of this thread's time.
fn rate(count: usize, mut round: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best: f64 = 0.0;
    for _ in 0..ROUNDS {
        let before = thread_cpu_seconds();
        let mut done = 0;
        while thread_cpu_seconds() - before < ROUND_SECONDS {
            round()?;
            done += count;
        }
        best = best.max(done as f64 / (thread_cpu_seconds() - before));
    }
    Ok(best)
}

fn sample(set: &EventSet) -> EncodedRecords {
    let generator = Generator::new(set.seed);
    let mut records = EncodedRecords::new();
    let mut line = Vec::new();
    let bids = generator
        .events(set.events, set.disorder_ms)
        .filter(|event| event.kind == Kind::Bid);
    for event in bids.take(SAMPLE) {
        line.clear();
        generator.write(&event, &mut line);
        records.push_bytes(&line);
    }
    records
}

fn schema() -> SchemaRef {
    let column = |name, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        column("auction", DataType::Int64),
        column("bidder", DataType::Int64),
        column("price", DataType::Int64),
        column("channel", DataType::Utf8),
        column("url", DataType::Utf8),
        column(
            "date_time",
            DataType::Timestamp(TimeUnit::Millisecond, None),
        ),
        column("extra", DataType::Utf8),
    ]))
}
