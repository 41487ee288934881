//! `highwater bench nexmark`: continuous queries over topics of auction events, each timed from its CREATE until it has read all of them.
//!
//! - `generator` makes the events, `load` puts them into a server's topics;
//! - `queries` are the queries with their batch forms, `answer` compares both;
//! - `limits` is what the same bytes cost without the system, `report` shows all of it.
//!
//! The server is a real one with its default settings: each query's state is in a checkpoint and its results are in their topic before its CREATE
//! is answered. Queries run one after the other, each alone. CPU time is that of the whole process.

mod answer;
mod generator;
mod limits;
mod load;
mod queries;
mod report;
mod text;

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use highwater_server::config::{ByteSize, ExecSettings, Settings, StateSettings};
use highwater_storage_log::tools::bench::meter::Meter;
use tokio_postgres::Client;

use crate::{
    process::{files, forget_peak_memory, peak_memory},
    server::{RunningServer, told},
};
use load::{EventSet, Loaded};
use queries::{Output, Query};
use report::{Measured, Report};

/// The database tidies up after a query that was dropped; the next one is not timed before that is over, or this long.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);
/// CPU seconds that are taken for nothing, in so much time.
const IDLE: (f64, Duration) = (0.025, Duration::from_millis(250));

/// Bytes that are written to see what the disk does.
const DISK_SAMPLE: usize = 256 << 20;

/// Options of `highwater bench nexmark`.
#[derive(Debug, Clone, Args)]
pub struct NexmarkArgs {
    /// Events: of 50, one is a person, 3 are auctions and 46 are bids
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub events: u64,
    /// Queries to run, by their names [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub queries: Vec<String>,
    /// Compare each result with the batch engine's over the same events
    #[arg(long)]
    pub check: bool,
    /// Runs of each query, of which the one with the least CPU time counts
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub repeat: u32,
    /// Partitions of each topic
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub partitions: u32,
    /// Threads that share the work of a step [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroUsize>,
    /// Memory for the state of the queries [default: half of the machine's memory]
    #[arg(long, value_name = "SIZE")]
    pub state_memory: Option<ByteSize>,
    /// Which of all possible events
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub seed: u64,
    /// Milliseconds of event time by which an event may be sent too late
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub disorder: u64,
    /// Data folder that is kept, and used again for the same events [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Write all figures to a file, too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Loads, measures, prints. The exit code is 1 when a result was not the batch engine's.
pub fn run(args: &NexmarkArgs) -> Result<ExitCode> {
    let report = measure_and_print(args, &chosen(&args.queries)?)?;
    Ok(ExitCode::from(u8::from(report.wrong().next().is_some())))
}

fn measure_and_print(args: &NexmarkArgs, queries: &[Query]) -> Result<Report> {
    let set = EventSet {
        events: args.events,
        partitions: args.partitions.max(1),
        seed: args.seed,
        disorder_ms: args.disorder,
    };
    let temporary;
    let folder = match &args.data {
        Some(folder) => folder.as_path(),
        None => {
            temporary = tempfile::Builder::new()
                .prefix("highwater-nexmark-")
                .tempdir()
                .context("no temporary folder")?;
            temporary.path()
        }
    };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let loaded = load::load(folder, &set)?;

    let mut report = Report::begin(loaded, args.state_memory);
    report.limits(limits::measure(&set)?);
    report.disk(limits::disk(folder, DISK_SAMPLE)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("io")
        .build()
        .context("cannot start threads")?;
    runtime.block_on(measure_all(args, folder, queries, &mut report))?;
    report.limits(limits::measure(&set)?);
    report.finish(args.json.as_deref())?;
    Ok(report)
}

/// The queries of these names, in the order of the benchmark.
fn chosen(names: &[String]) -> Result<Vec<Query>> {
    let all = queries::all();
    if let Some(unknown) = names
        .iter()
        .find(|name| all.iter().all(|query| query.name != **name))
    {
        let known: Vec<&str> = all.iter().map(|query| query.name.as_str()).collect();
        bail!(
            "there is no query \"{unknown}\"; the queries are {}",
            known.join(", ")
        );
    }
    let wanted = |query: &Query| names.is_empty() || names.contains(&query.name);
    Ok(all.into_iter().filter(wanted).collect())
}

async fn measure_all(
    args: &NexmarkArgs,
    folder: &Path,
    queries: &[Query],
    report: &mut Report,
) -> Result<()> {
    let settings = Settings {
        exec: ExecSettings {
            workers: args.workers,
        },
        state: StateSettings {
            memory: args.state_memory,
        },
        ..Settings::default()
    };
    let server = RunningServer::start(folder, settings).await?;
    let client = server.connect().await?;
    // From a run of before that was ended early.
    for leftover in [
        "DROP TABLE IF EXISTS out DELETE TOPIC",
        "DROP STREAM IF EXISTS out DELETE TOPIC",
    ] {
        let _ = client.batch_execute(leftover).await;
    }
    let _ = client.batch_execute("DROP STREAM IF EXISTS bid").await;
    client
        .batch_execute(queries::CREATE_BID)
        .await
        .map_err(told)?;
    client
        .batch_execute("SET freshness = 'strong'; SET statement_timeout = 0")
        .await
        .map_err(told)?;
    for query in queries {
        let mut best: Option<Measured> = None;
        for _ in 0..args.repeat.max(1) {
            let check = args.check && best.is_none();
            let measured = measure(&client, folder, query, &report.loaded, check)
                .await
                .with_context(|| format!("query {}", query.name))?;
            let matches = best.as_ref().and_then(|best| best.matches);
            if best.as_ref().is_none_or(|best| measured.cpu < best.cpu) {
                best = Some(Measured {
                    matches: matches.or(measured.matches),
                    ..measured
                });
            }
        }
        report.query(query, best.expect("it ran at least once"));
    }
    server.stop().await
}

/// Runs a query over all events and takes it away again.
async fn measure(
    client: &Client,
    folder: &Path,
    query: &Query,
    loaded: &Loaded,
    check: bool,
) -> Result<Measured> {
    settle().await;
    let state = folder.join("state");
    let before = files(&state)?;
    forget_peak_memory();
    let memory_before = peak_memory();
    let meter = Meter::start();
    client.batch_execute(&query.create).await.map_err(told)?;
    // Under freshness = 'strong' this waits for a step that covers all events.
    let bids = count(
        client,
        "SELECT COUNT(*) FROM (SELECT 1 FROM out LIMIT 1) AS one",
    )
    .await?;
    let taken = meter.stop();
    let peak_memory = peak_memory();
    if bids == 0 && loaded.bids > 0 && query.output == Output::Table {
        bail!("the query has no result");
    }
    // Files of RocksDB do not change once they are written, so what is new is this query's.
    let state_bytes = files(&state)?
        .into_iter()
        .filter(|(file, _)| !before.contains_key(file))
        .map(|(_, bytes)| bytes)
        .sum();
    let rows = count(client, "SELECT COUNT(*) FROM out").await?;
    let matches = if check {
        let difference = answer::compare(client, &query.answer, &query.batch).await?;
        if let Some(difference) = &difference {
            report::show_difference(query, difference);
        }
        Some(difference.is_none())
    } else {
        None
    };
    let kind = match query.output {
        Output::Stream => "STREAM",
        Output::Table => "TABLE",
    };
    client
        .batch_execute(&format!("DROP {kind} out DELETE TOPIC"))
        .await
        .map_err(told)?;
    Ok(Measured {
        wall: taken.wall,
        cpu: taken.cpu,
        rows,
        state_bytes,
        memory_before,
        peak_memory,
        matches,
    })
}

/// Waits until this process does nothing.
async fn settle() {
    let begin = Instant::now();
    while begin.elapsed() < SETTLE_LIMIT {
        let meter = Meter::start();
        tokio::time::sleep(IDLE.1).await;
        if meter.stop().cpu < IDLE.0 {
            return;
        }
    }
}

async fn count(client: &Client, query: &str) -> Result<u64> {
    let row = client.query_one(query, &[]).await.map_err(told)?;
    let count: i64 = row.try_get(0)?;
    Ok(count.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some thousand events, with a part of them late.
    fn few_events() -> NexmarkArgs {
        NexmarkArgs {
            events: 5_000,
            queries: Vec::new(),
            check: true,
            repeat: 1,
            partitions: 3,
            workers: None,
            state_memory: None,
            seed: 7,
            disorder: 40,
            data: None,
            json: None,
        }
    }

    #[test]
    fn every_query_has_the_batch_engines_result() {
        let folder = tempfile::tempdir().expect("a folder");
        let document = folder.path().join("figures.json");
        let args = NexmarkArgs {
            json: Some(document.clone()),
            ..few_events()
        };
        let report = measure_and_print(&args, &queries::all()).expect("all queries run");
        assert_eq!(report.wrong().collect::<Vec<_>>(), Vec::<&str>::new());
        let figures: serde_json::Value =
            serde_json::from_slice(&std::fs::read(document).expect("written")).expect("JSON");
        assert_eq!(figures["bids"], 4_600);
        let lines = figures["queries"].as_array().expect("a list");
        assert_eq!(lines.len(), queries::all().len());
        for line in lines {
            assert_eq!(line["matches"], true, "{line}");
            assert!(line["rows"].as_u64() > Some(0), "{line}");
        }
    }

    #[test]
    fn a_query_has_the_same_result_in_little_memory() {
        let queries = chosen(&["q16".into(), "q18".into(), "g10m".into()]).expect("all are there");
        let args = NexmarkArgs {
            events: 60_000,
            state_memory: Some(ByteSize(16 << 20)),
            ..few_events()
        };
        let report = measure_and_print(&args, &queries).expect("all queries run");
        assert_eq!(report.wrong().collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[test]
    fn a_wrong_result_is_seen() {
        let mut wrong = chosen(&["q2".into(), "g100".into()]).expect("both are there");
        wrong[0].batch = wrong[0].batch.replace("% 123 = 0", "% 122 = 0");
        wrong[1].batch = wrong[1].batch.replace("MIN(price)", "MIN(price) + 1");
        let report = measure_and_print(&few_events(), &wrong).expect("both run");
        assert_eq!(report.wrong().collect::<Vec<_>>(), ["q2", "g100"]);
    }

    #[test]
    fn an_unknown_query_is_named() {
        let error = chosen(&["q0".into(), "q99".into()]).expect_err("there is none");
        assert!(error.to_string().contains("q99"), "{error}");
        let two = chosen(&["q2".into(), "q0".into()]).expect("both are there");
        assert_eq!(two.len(), 2);
        assert_eq!(two[0].name, "q0");
    }
}
