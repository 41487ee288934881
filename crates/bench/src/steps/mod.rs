//! `highwater bench steps`: what a step costs by itself, and what a checkpoint of much state does to it.
//!
//! - `rate`: steps of one record each, on a server without sockets, so that nothing but the step is measured;
//! - `stalls`: rows that are timed through the wire while a table of many keys is updated, with checkpoints every second and without;
//! - `recovery`: the time from a start after that, as after `kill -9`, to the first correct answer.

mod rate;
mod recovery;
mod stalls;

use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use clap::Args;
use highwater_storage_log::FsyncPolicy;
use serde::Serialize;

/// Options of `highwater bench steps`.
#[derive(Debug, Clone, Args)]
pub struct StepsArgs {
    /// Steps of each measurement of the rate
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub steps: u64,
    /// Keys of the table that is updated while rows are timed; 0 leaves that out
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub keys: u64,
    /// Seconds that rows are timed, once with checkpoints and once without
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub seconds: u64,
    /// Folder to measure in; a subfolder is made and removed again [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Write all figures to a file, too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// All figures.
#[derive(Debug, Default, Serialize)]
struct Figures {
    rates: Vec<rate::Rate>,
    stalls: Vec<stalls::Waits>,
    recovery: Option<recovery::Recovery>,
}

/// Measures and prints.
pub fn run(args: &StepsArgs) -> Result<ExitCode> {
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new()
        .prefix("highwater-steps-")
        .tempdir_in(parent)
        .context("no temporary folder")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("io")
        .build()
        .context("cannot start threads")?;
    let mut figures = Figures::default();

    println!(
        "{:44} {:>9} {:>10} {:>11}",
        "steps of one record", "steps", "steps/s", "CPU us/step"
    );
    for (policy, fsync) in [
        ("never", FsyncPolicy::Never),
        ("always", FsyncPolicy::Always),
    ] {
        for (what, query) in rate::QUERIES {
            let measured = rate::measure(
                &folder.path().join(format!("{policy}-{what}")),
                &runtime,
                query,
                fsync,
                args.steps,
            )?;
            let rate = rate::Rate {
                what: format!("{what}, log.fsync = {policy}"),
                ..measured
            };
            println!(
                "{:44} {:>9} {:>10.0} {:>11.1}",
                rate.what, rate.steps, rate.steps_per_second, rate.cpu_micros
            );
            figures.rates.push(rate);
        }
    }
    if args.keys > 0 {
        println!(
            "\n{:44} {:>6}   p50 ms   p99 ms   max ms",
            format!("send to push subscriber, {} keys updated", args.keys),
            "rows"
        );
        let time = Duration::from_secs(args.seconds);
        let (data, image) = (folder.path().join("stalls"), folder.path().join("image"));
        let measured = runtime.block_on(stalls::measure(&data, &image, args.keys, time))?;
        for waits in &measured {
            println!(
                "{:44} {:>6} {:>8.2} {:>8.2} {:>8.2}",
                waits.what, waits.rows, waits.p50, waits.p99, waits.max
            );
        }
        figures.stalls = measured;
        let recovery = runtime.block_on(recovery::measure(&image, args.keys))?;
        println!(
            "\nfirst answer after a start with {} keys, {:.0} MB of state and {:.0} MB of log: {:.2} s",
            recovery.keys,
            recovery.state_bytes as f64 / 1e6,
            recovery.log_bytes as f64 / 1e6,
            recovery.seconds
        );
        figures.recovery = Some(recovery);
    }
    if let Some(path) = &args.json {
        fs::write(path, serde_json::to_vec_pretty(&figures)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_and_every_row_is_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let document = folder.path().join("figures.json");
        let args = StepsArgs {
            steps: 200,
            keys: 5_000,
            seconds: 1,
            dir: Some(folder.path().to_owned()),
            json: Some(document.clone()),
        };
        run(&args).expect("it measures");
        let figures: serde_json::Value =
            serde_json::from_slice(&fs::read(document).expect("written")).expect("JSON");
        let rates = figures["rates"].as_array().expect("a list");
        assert_eq!(rates.len(), 2 * rate::QUERIES.len());
        for rate in rates {
            assert_eq!(rate["steps"], 200, "{rate}");
        }
        assert_eq!(figures["stalls"].as_array().map(Vec::len), Some(2));
        assert_eq!(figures["recovery"]["keys"], 5_000);
    }
}
