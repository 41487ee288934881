//! How fast the formats are on this machine, beside what bare libraries do with the same bytes.
//!
//! Every figure is for one thread, the median of several rounds over the same rows. The rows are auction bids of seven columns; a rate in bytes counts
//! the encoded bytes of the format that is measured, so formats compare by rows and a format compares with its libraries by bytes.

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

/// Rounds of which the median counts.
const ROUNDS: usize = 5;

/// Measures all formats and the bare libraries over `rows` bids, each for about `time`.
pub fn measure(rows: usize, time: Duration) -> FormatResult<Vec<Rate>> {
    let schema = sample::schema();
    let columns = sample::columns(rows);
    let budget = time / u32::try_from(ROUNDS).unwrap_or(1);
    let mut rates = Vec::new();

    for spec in [
        FormatSpec::Json { wrapped: true },
        FormatSpec::Delimited { delimiter: b',' },
    ] {
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        let records = measure_encode(&spec, &schema, &columns, budget, &mut rates)?;
        measure_decode(&spec, &schema, &all, &records, budget, &mut rates)?;
        measure_decode(
            &spec,
            &schema,
            &sample::TWO_COLUMNS,
            &records,
            budget,
            &mut rates,
        )?;
        let libraries = match spec {
            FormatSpec::Json { .. } => bare::json(&schema, &records),
            _ => bare::csv(&records),
        };
        for (work, run) in libraries {
            rates.push(rate(work.to_owned(), &records, budget, run)?);
        }
        let copy = format!("{} memcpy", spec.name());
        rates.push(rate(copy, &records, budget, bare::copy(&records))?);
    }

    for index in [sample::BIGINT_COLUMN, sample::STRING_COLUMN] {
        let one = Arc::new(schema.project(&[index])?);
        let records = measure_encode(
            &FormatSpec::Kafka,
            &one,
            &columns[index..=index],
            budget,
            &mut rates,
        )?;
        measure_decode(&FormatSpec::Kafka, &one, &[0], &records, budget, &mut rates)?;
    }
    Ok(rates)
}

fn measure_encode(
    spec: &FormatSpec,
    schema: &SchemaRef,
    columns: &[ArrayRef],
    budget: Duration,
    rates: &mut Vec<Rate>,
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
    rates.push(rate(work, &records, budget, || {
        out.clear();
        encoder.encode(columns, &mut out)?;
        black_box(&out);
        Ok(())
    })?);
    Ok(records)
}

fn measure_decode(
    spec: &FormatSpec,
    schema: &SchemaRef,
    projection: &[usize],
    records: &EncodedRecords,
    budget: Duration,
    rates: &mut Vec<Rate>,
) -> FormatResult<()> {
    let mut decoder = projected_decoder(spec, Arc::clone(schema), projection)?;
    let slices: Vec<_> = records.iter().collect();
    let work = format!("{} decode, {}", spec.name(), what(schema, projection.len()));
    rates.push(rate(work, records, budget, || {
        let decoded = black_box(decoder.decode(&slices)?);
        match decoded.errors.first() {
            None => Ok(()),
            Some(error) => Err(FormatError::ColumnMismatch {
                reason: format!("row {}: {}", error.index, error.reason),
            }),
        }
    })?);
    Ok(())
}

/// The columns in words.
fn what(schema: &SchemaRef, wanted: usize) -> String {
    match (schema.fields().as_ref(), wanted) {
        ([field], _) if field.data_type() == &DataType::Utf8 => "one STRING".to_owned(),
        ([_], _) => "one BIGINT".to_owned(),
        (all, wanted) => format!("{wanted} of {} columns", all.len()),
    }
}

/// Repeats `run` over the records for `budget` a round and takes the median round.
fn rate(
    work: String,
    records: &EncodedRecords,
    budget: Duration,
    mut run: impl FnMut() -> FormatResult<()>,
) -> FormatResult<Rate> {
    run()?;
    let mut seconds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut runs = 0u32;
        while runs == 0 || start.elapsed() < budget {
            run()?;
            runs += 1;
        }
        seconds.push(start.elapsed().as_secs_f64() / f64::from(runs));
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[ROUNDS / 2];
    Ok(Rate {
        work,
        rows_per_second: records.len() as f64 / median,
        megabytes_per_second: records.byte_len() as f64 / median / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_and_library_gives_a_rate() {
        let rates = measure(100, Duration::from_millis(5)).unwrap();
        for part in [
            "JSON decode, 2 of 7",
            "DELIMITED encode, 7 of 7",
            "simd-json",
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
    }
}
