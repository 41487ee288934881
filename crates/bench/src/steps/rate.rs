//! Steps of one record each.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use highwater_server::local::{LocalOptions, LocalServer};
use highwater_storage_log::{
    BatchBuilder, EmbeddedLog, FsyncPolicy, Log, LogOptions, TopicPartition,
    tools::bench::meter::Meter,
};
use serde::Serialize;
use tokio::runtime::Runtime;

/// What is run, by what it does.
pub(super) const QUERIES: [(&str, &str); 2] = [
    (
        "filter",
        "CREATE STREAM out AS SELECT id, payload FROM events WHERE id % 2 = 0",
    ),
    (
        "count by 1,000 keys",
        "CREATE TABLE out AS SELECT id % 1000 AS k, COUNT(*) AS n FROM events GROUP BY id % 1000",
    ),
];

/// The stream that is read. One partition, so that each record can be a step.
const EVENTS: &str = "CREATE STREAM events (id BIGINT, payload VARCHAR) \
     WITH (kafka_topic = 'events', value_format = 'JSON', partitions = 1)";
/// Longer than any measurement.
const PATIENCE: Duration = Duration::from_secs(600);

/// Steps a second.
#[derive(Debug, Default, Serialize)]
pub(super) struct Rate {
    pub(super) what: String,
    pub(super) steps: u64,
    pub(super) steps_per_second: f64,
    /// Of the whole process, the appends included.
    pub(super) cpu_micros: f64,
}

/// Appends records one by one and waits until the query has read them, each in a step of its own.
pub(super) fn measure(
    folder: &Path,
    runtime: &Runtime,
    query: &str,
    fsync: FsyncPolicy,
    steps: u64,
) -> Result<Rate> {
    let options = LogOptions {
        fsync,
        ..LogOptions::default()
    };
    let log: Arc<dyn Log> = Arc::new(EmbeddedLog::open(&folder.join("log"), options)?);
    let options = LocalOptions {
        state_folder: folder.join("state"),
        default_partitions: 1,
        step_max_rows: 1,
    };
    let server = LocalServer::open(Arc::clone(&log), &options)?;
    runtime
        .block_on(async {
            let mut session = server.session(Vec::new()).await?;
            session.run(EVENTS).await?;
            session.run(query).await
        })
        .map_err(|error| anyhow::anyhow!("{}", error.message))?;
    server.settle(PATIENCE)?;

    let events = TopicPartition::new("events", 0);
    let before = server.step();
    let meter = Meter::start();
    let mut builder = BatchBuilder::new();
    for id in 0..steps {
        let value = format!(r#"{{"id":{id},"payload":"a payload of some forty characters"}}"#);
        builder.push(id as i64, None, Some(value.as_bytes()), &[]);
        log.append(&events, builder.finish(None))?;
    }
    server.settle(PATIENCE)?;
    let taken = meter.stop();
    let made = server.step() - before;
    if made != steps {
        bail!("{steps} records took {made} steps");
    }
    server.stop().context("cannot stop")?;
    Ok(Rate {
        what: String::new(),
        steps,
        steps_per_second: steps as f64 / taken.wall,
        cpu_micros: taken.cpu * 1e6 / steps as f64,
    })
}
