//! `highwater bench formats`: decoding and encoding of every format, beside bare libraries on the same bytes in the same run.

use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use clap::Args;
use highwater_formats::rates::{self, Rate};

/// Options of `highwater bench formats`.
#[derive(Debug, Clone, Args)]
pub struct BenchFormatsArgs {
    /// Rows of the sample, which every measurement goes over again and again
    #[arg(long, default_value_t = 8_192)]
    pub rows: usize,
    /// Milliseconds of each measurement
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pub time: u64,
    /// Only measurements whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub filter: String,
    /// Write the rates into a file, too, as one JSON array
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Measures and prints; a filter that fits nothing is an error.
pub fn run(args: &BenchFormatsArgs) -> anyhow::Result<ExitCode> {
    let time = Duration::from_millis(args.time);
    let rates = rates::measure(args.rows, time, &args.filter)?;
    anyhow::ensure!(
        !rates.is_empty(),
        "no measurement has \"{}\" in its name",
        args.filter
    );
    println!("{}", rates::table(&rates));
    if let Some(path) = &args.json {
        fs::write(path, json(&rates)?)
            .with_context(|| format!("cannot write \"{}\"", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn json(rates: &[Rate]) -> anyhow::Result<String> {
    let rates: Vec<_> = rates
        .iter()
        .map(|rate| {
            serde_json::json!({
                "work": rate.work,
                "rows_per_second": rate.rows_per_second.round(),
                "megabytes_per_second": rate.megabytes_per_second,
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&rates)? + "\n")
}
