//! `highwater bench latency`: how long a row takes from its INSERT to whoever waits for it, through the real wire.
//!
//! One writer inserts a row at a time. A push query gets it on a connection of its own; then the writer asks for it with a pull query, which by the
//! session's freshness waits for a step that has it. That is measured on an idle server and again while other connections insert at half of
//! the rate that the server just took at most. The disk's fdatasync is timed before and after.

pub(crate) mod load;
pub(crate) mod probe;
mod report;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::Args;
use highwater_server::config::Settings;
use highwater_storage_log::tools::bench::machine;

use crate::server::{RunningServer, told};
use report::Report;

/// The stream that is written, and the table that is pulled. Rows of the load have ids below 0, which the push query leaves out.
pub(crate) const SETUP: &str = "\
    CREATE STREAM events (k VARCHAR KEY, id BIGINT, payload VARCHAR) WITH (kafka_topic = 'events', value_format = 'JSON'); \
    CREATE TABLE latest AS SELECT k, LATEST_BY_OFFSET(id) AS id, COUNT(*) AS n FROM events GROUP BY k";

/// Keys of the load.
const KEYS: u64 = 1_000;

/// Options of `highwater bench latency`.
#[derive(Debug, Clone, Args)]
pub struct LatencyArgs {
    /// Seconds of each measurement
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub seconds: u64,
    /// Milliseconds between two rows that are timed
    #[arg(long, value_name = "MS", default_value_t = 10)]
    pub pause: u64,
    /// Folder to measure in; a subfolder is made and removed again [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Write all figures to a file, too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Measures and prints.
pub fn run(args: &LatencyArgs) -> Result<ExitCode> {
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new()
        .prefix("highwater-latency-")
        .tempdir_in(parent)
        .context("no temporary folder")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("io")
        .build()
        .context("cannot start threads")?;
    let mut report = Report::default();
    report.disk("before", syncs(folder.path(), args.seconds)?);
    runtime.block_on(measure(args, folder.path(), &mut report))?;
    report.disk("after", syncs(folder.path(), args.seconds)?);
    report.finish(args.json.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Milliseconds of fdatasyncs, one after the other.
fn syncs(folder: &Path, seconds: u64) -> Result<Vec<f64>> {
    let path = folder.join("disk-limit");
    let (_, waits) = machine::sync_rate(&path, Duration::from_secs(seconds.div_ceil(4)))?;
    std::fs::remove_file(&path)?;
    Ok(waits)
}

async fn measure(args: &LatencyArgs, folder: &Path, report: &mut Report) -> Result<()> {
    let time = Duration::from_secs(args.seconds);
    let pause = Duration::from_millis(args.pause);
    let server = RunningServer::start(&folder.join("data"), Settings::default()).await?;
    let client = server.connect().await?;
    client.batch_execute(SETUP).await.map_err(told)?;

    let mut probe = probe::Probe::start(&server).await?;
    report.waits("idle", &probe.run(time, pause).await?);

    let peak = load::peak(&server, KEYS, time).await?;
    let half = load::Load::start(&server, KEYS, peak / 2.0).await?;
    let waits = probe.run(time, pause).await?;
    let reached = half.stop().await?;
    report.load(peak, reached);
    report.waits("half of peak", &waits);
    drop((probe, client));
    server.stop().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_arrives() {
        let folder = tempfile::tempdir().expect("a folder");
        let document = folder.path().join("figures.json");
        let args = LatencyArgs {
            seconds: 1,
            pause: 5,
            dir: Some(folder.path().to_owned()),
            json: Some(document.clone()),
        };
        run(&args).expect("it measures");
        let figures: serde_json::Value =
            serde_json::from_slice(&std::fs::read(document).expect("written")).expect("JSON");
        // The disk twice, five kinds of waits idle and five under load.
        assert_eq!(figures["lines"].as_array().map(Vec::len), Some(12));
        assert!(figures["peak_rows_per_second"].as_f64() > Some(0.0));
    }
}
