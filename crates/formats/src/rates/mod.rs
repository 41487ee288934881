//! How fast the formats are on this machine, beside what bare libraries do with the same bytes.
//!
//! Every figure is for one thread, the best of many short rounds over the same rows: whatever else the machine does can only slow a round down. The
//! rows are auction bids of seven columns. A rate in bytes counts the encoded bytes of the format that is measured, so formats compare by
//! rows, and a format compares with its libraries by bytes.

mod bare;
mod sample;

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, SchemaRef},
};

use crate::{
    EncodedRecords, FormatSpec, encoder,
    error::{FormatError, FormatResult},
    projected_decoder,
};

/// One measured piece of work.
#[derive(Debug, Clone)]
pub struct Rate {
    /// What was done, like `JSON decode, 2 of 7 columns`.
    pub work: String,
    /// Rows per second.
    pub rows_per_second: f64,
    /// Encoded bytes per second, in units of 10^6.
    pub megabytes_per_second: f64,
}

/// The rates as lines of at most 80 characters, under a heading.
pub fn table(rates: &[Rate]) -> String {
    let heading = format!("{:<36} {:>14} {:>10}", "work", "records/s", "MB/s");
    let lines = rates.iter().map(|rate| {
        format!(
            "{:<36} {:>14.0} {:>10.0}",
            rate.work, rate.rows_per_second, rate.megabytes_per_second
        )
    });
    std::iter::once(heading)
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Rounds that are run however short the time is.
const MIN_ROUNDS: u32 = 3;

/// Measures all formats and the bare libraries over `rows` bids, each for about `time`; only work whose name contains `filter`.
pub fn measure(rows: usize, time: Duration, filter: &str) -> FormatResult<Vec<Rate>> {
    let schema = sample::schema();
    let columns = sample::columns(rows);
    let mut meter = Meter {
        time,
        filter,
        rates: Vec::new(),
    };

    let json = FormatSpec::Json { wrapped: true };
    let records = meter.format(&json, &schema, &columns)?;
    meter.run(
        "simd-json, parse to a tape".to_owned(),
        &records,
        bare::simd_json(&records),
    )?;
    meter.run(
        "arrow-json, decode all columns".to_owned(),
        &records,
        bare::arrow_json(&schema, &records),
    )?;
    meter.run(
        "memcpy of the JSON".to_owned(),
        &records,
        bare::copy(&records),
    )?;

    let delimited = FormatSpec::Delimited { delimiter: b',' };
    let records = meter.format(&delimited, &schema, &columns)?;
    meter.run(
        "csv, split into fields".to_owned(),
        &records,
        bare::csv(&records),
    )?;
    meter.run(
        "memcpy of the DELIMITED".to_owned(),
        &records,
        bare::copy(&records),
    )?;

    for index in [sample::BIGINT_COLUMN, sample::STRING_COLUMN] {
        let one = Arc::new(schema.project(&[index])?);
        let records = meter.encode(&FormatSpec::Kafka, &one, &columns[index..=index])?;
        meter.decode(&FormatSpec::Kafka, &one, &[0], &records)?;
        let work = format!("memcpy of the KAFKA, {}", what(&one, 1));
        meter.run(work, &records, bare::copy(&records))?;
    }
    Ok(meter.rates)
}

/// Runs work and notes its rate.
struct Meter<'f> {
    /// Time for one piece of work.
    time: Duration,
    filter: &'f str,
    rates: Vec<Rate>,
}

impl Meter<'_> {
    /// Both directions of a format with all columns, and reading two of them.
    fn format(
        &mut self,
        spec: &FormatSpec,
        schema: &SchemaRef,
        columns: &[ArrayRef],
    ) -> FormatResult<EncodedRecords> {
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        let records = self.encode(spec, schema, columns)?;
        self.decode(spec, schema, &all, &records)?;
        self.decode(spec, schema, &sample::TWO_COLUMNS, &records)?;
        Ok(records)
    }

    /// Encodes the columns, measuring it, and gives the records.
    fn encode(
        &mut self,
        spec: &FormatSpec,
        schema: &SchemaRef,
        columns: &[ArrayRef],
    ) -> FormatResult<EncodedRecords> {
        let mut encoder = encoder(spec, Arc::clone(schema))?;
        let mut records = EncodedRecords::new();
        encoder.encode(columns, &mut records)?;
        let mut out = EncodedRecords::new();
        let work = format!(
            "{} encode, {}",
            spec.name(),
            what(schema, schema.fields().len())
        );
        self.run(work, &records, || {
            out.clear();
            encoder.encode(columns, &mut out)?;
            black_box(&out);
            Ok(())
        })?;
        Ok(records)
    }

    fn decode(
        &mut self,
        spec: &FormatSpec,
        schema: &SchemaRef,
        projection: &[usize],
        records: &EncodedRecords,
    ) -> FormatResult<()> {
        let mut decoder = projected_decoder(spec, Arc::clone(schema), projection)?;
        let slices: Vec<_> = records.iter().collect();
        let work = format!("{} decode, {}", spec.name(), what(schema, projection.len()));
        self.run(work, records, || {
            let decoded = black_box(decoder.decode(&slices)?);
            match decoded.errors.first() {
                None => Ok(()),
                Some(error) => {
                    let reason = format!("row {}: {}", error.index, error.reason);
                    Err(FormatError::ColumnMismatch { reason })
                }
            }
        })
    }

    /// Repeats `run` over the records until the time is up and takes the best round.
    fn run(
        &mut self,
        work: String,
        records: &EncodedRecords,
        mut run: impl FnMut() -> FormatResult<()>,
    ) -> FormatResult<()> {
        if !work.contains(self.filter) {
            return Ok(());
        }
        let mut best = f64::INFINITY;
        let begin = Instant::now();
        for round in 0.. {
            if round >= MIN_ROUNDS && begin.elapsed() >= self.time {
                break;
            }
            let start = Instant::now();
            run()?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        self.rates.push(Rate {
            work,
            rows_per_second: records.len() as f64 / best,
            megabytes_per_second: records.byte_len() as f64 / best / 1e6,
        });
        Ok(())
    }
}

/// The columns in words.
fn what(schema: &SchemaRef, wanted: usize) -> String {
    match (schema.fields().as_ref(), wanted) {
        ([field], _) if field.data_type() == &DataType::Utf8 => "one STRING".to_owned(),
        ([_], _) => "one BIGINT".to_owned(),
        (all, wanted) => format!("{wanted} of {} columns", all.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_and_library_gives_a_rate() {
        let rates = measure(100, Duration::from_millis(5), "").unwrap();
        for part in [
            "JSON decode, 2 of 7",
            "DELIMITED encode, 7 of 7",
            "simd-json",
            "arrow-json",
            "csv",
            "memcpy",
            "KAFKA decode, one STRING",
        ] {
            assert!(rates.iter().any(|rate| rate.work.contains(part)), "{part}");
        }
        assert!(
            rates
                .iter()
                .all(|rate| rate.rows_per_second > 0.0 && rate.megabytes_per_second > 0.0)
        );
        let lines = table(&rates);
        assert_eq!(lines.lines().count(), rates.len() + 1);
        assert!(lines.lines().all(|line| line.len() <= 80), "{lines}");
        let some = measure(100, Duration::from_millis(5), "DELIMITED decode").unwrap();
        assert_eq!(some.len(), 2);
    }
}
