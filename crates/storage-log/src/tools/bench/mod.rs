//! `highwater bench log`: what the log does, beside what the machine can do, in one run on one folder.
//!
//! Rates of the log and limits of the machine are taken one right after the other, so that a machine that is busy with something else changes
//! both. A figure "per core" divides by CPU time instead of wall time.

mod append;
mod consume;
mod figures;
pub mod machine;
pub mod meter;

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, ValueEnum};

use crate::LogError;
use append::Producers;
use figures::Figures;

/// What a producer of Kafka's has on its way by default (`max.in.flight.requests.per.connection`).
const KAFKA_IN_FLIGHT: usize = 5;

/// Partitions of a topic where a statement does not say how many.
const SERVER_PARTITIONS: u32 = 4;

/// Options of `highwater bench log`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// Folder to measure in; a subfolder is made and removed again [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// MiB written or read by each throughput measurement
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub size: usize,
    /// Seconds of each latency measurement
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// GB appended while memory is watched; 0 leaves that out
    #[arg(long, value_name = "GB", default_value_t = 10)]
    pub memory: usize,
    /// Measure only these parts, several separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    pub only: Vec<Part>,
    /// Print one JSON document in the end instead of lines
    #[arg(long)]
    pub json: bool,
}

/// What can be measured. The machine's own limits always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Memory while much is appended
    Memory,
    /// Large batches and small records from one producer
    Append,
    /// Many producers that wait until their records are on disk
    Always,
    /// Reading, cold and warm
    Consume,
    /// Producers beside a reader of cold data
    Disturb,
}

/// Why a measurement ended early.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file outside the log failed.
    #[error("could not use \"{}\"", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
}

impl BenchError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

/// Measures everything and prints it. The exit code is 1 when a bar was missed.
pub fn run(args: &BenchArgs) -> Result<ExitCode, BenchError> {
    let parent = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let dir = parent.join(format!("highwater-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).map_err(BenchError::file(&dir))?;
    let measured = measure(&dir, args);
    std::fs::remove_dir_all(&dir).map_err(BenchError::file(&dir))?;
    let figures = measured?;
    figures
        .finish()
        .map_err(BenchError::file(Path::new("standard output")))?;
    Ok(ExitCode::from(u8::from(figures.missed() > 0)))
}

fn measure(dir: &Path, args: &BenchArgs) -> Result<Figures, BenchError> {
    let bytes = args.size << 20;
    let seconds = Duration::from_secs(args.seconds);
    let mut out = Figures::new(args.json);
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    // First, while this process has used no memory for anything else.
    if args.memory > 0 && wanted(Part::Memory) {
        append::memory(dir, args.memory * 1_000_000_000, &mut out)?;
    }
    let limits = machine::measure(dir, bytes, seconds, &mut out)?;
    if wanted(Part::Append) {
        append::sequential(dir, bytes, limits, &mut out)?;
    }
    for record_bytes in [100, 1024] {
        if wanted(Part::Append) {
            append::records(dir, bytes, record_bytes, &mut out)?;
        }
        if wanted(Part::Always) {
            for (producers, in_flight, partitions) in [
                (16, 1, 1),
                (256, 1, 1),
                (256, 1, SERVER_PARTITIONS),
                (256, KAFKA_IN_FLIGHT, 1),
            ] {
                let producers = Producers {
                    producers,
                    in_flight,
                    record_bytes,
                    partitions,
                };
                append::always(dir, producers, seconds, &mut out)?;
            }
        }
        if wanted(Part::Consume) {
            consume::consume(dir, bytes, record_bytes, limits, &mut out)?;
        }
    }
    if wanted(Part::Disturb) {
        consume::disturb(dir, bytes, seconds, &mut out)?;
    }
    Ok(out)
}
