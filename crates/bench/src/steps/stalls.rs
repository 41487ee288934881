//! Rows that are timed while a table of many keys is updated, with checkpoints and without.

use std::{collections::HashMap, path::Path, time::Duration};

use anyhow::Result;
use highwater_server::config::{CheckpointSettings, Fsync, HumanDuration, LogSettings, Settings};
use highwater_storage_log::{
    BatchBuilder, EmbeddedLog, Log, LogOptions, TopicConfig, TopicPartition, partition_for_key,
    tools::bench::meter::percentile,
};
use serde::Serialize;

use super::recovery::copy;
use crate::{
    latency::{SETUP, load, probe::Probe},
    server::{RunningServer, told},
};

/// Time between checkpoints: once short, once longer than any measurement, so that a recovery has all of that to run again.
const INTERVALS: [(&str, Duration); 2] = [
    ("a checkpoint every second", Duration::from_secs(1)),
    ("no checkpoint", Duration::from_secs(86_400)),
];
/// Time between two rows.
const PAUSE: Duration = Duration::from_millis(2);
/// Partitions of the topic.
const PARTITIONS: u32 = 4;
/// Bytes of a record batch.
const BATCH_BYTES: usize = 256 << 10;

/// Milliseconds from a row's INSERT to its push subscriber.
#[derive(Debug, Serialize)]
pub(super) struct Waits {
    pub(super) what: String,
    pub(super) rows: usize,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// Fills a table with so many keys and times rows while they are updated at half of the rate that the server takes at most. In the end `image` is
/// what a killed server would leave.
pub(super) async fn measure(
    data: &Path,
    image: &Path,
    keys: u64,
    time: Duration,
) -> Result<Vec<Waits>> {
    fill(data, keys)?;
    let mut measured = Vec::new();
    let mut peak = None;
    for (what, interval) in INTERVALS {
        let settings = Settings {
            log: LogSettings {
                // The disk's own waits would hide those that are looked for.
                fsync: Some(Fsync::Never),
                ..LogSettings::default()
            },
            checkpoint: CheckpointSettings {
                interval: Some(HumanDuration(interval)),
            },
            ..Settings::default()
        };
        let server = RunningServer::start(data, settings).await?;
        let client = server.connect().await?;
        if peak.is_none() {
            client.batch_execute(SETUP).await.map_err(told)?;
        }
        let rate = match peak {
            Some(rate) => rate,
            None => *peak.insert(load::peak(&server, keys, time / 4).await?),
        };
        let mut probe = Probe::start(&server).await?;
        let half = load::Load::start(&server, keys, rate / 2.0).await?;
        let mut waits = probe.run(time, PAUSE).await?.send_to_push;
        let reached = half.stop().await?;
        measured.push(Waits {
            what: format!("{what}, {reached:.0} rows/s beside"),
            rows: waits.len(),
            p50: percentile(&mut waits, 0.5),
            p99: percentile(&mut waits, 0.99),
            max: percentile(&mut waits, 1.0),
        });
        drop(probe);
        if measured.len() == INTERVALS.len() {
            // Everything that was sent is read by now, and no checkpoint is under way.
            copy(data, image)?;
        }
        drop(client);
        server.stop().await?;
    }
    Ok(measured)
}

/// One record of each key, as a producer would have put them there.
fn fill(data: &Path, keys: u64) -> Result<()> {
    let log = EmbeddedLog::open(&data.join("log"), LogOptions::default())?;
    log.create_topic("events", TopicConfig::with_partitions(PARTITIONS))?;
    let mut builders: HashMap<u32, BatchBuilder> = HashMap::new();
    for number in 0..keys {
        let key = format!("k{number}");
        let value = r#"{"id":-1,"payload":"a payload of some forty characters"}"#;
        let partition = partition_for_key(key.as_bytes(), PARTITIONS);
        let builder = builders.entry(partition).or_default();
        builder.push(0, Some(key.as_bytes()), Some(value.as_bytes()), &[]);
        if builder.byte_len() >= BATCH_BYTES {
            log.append(
                &TopicPartition::new("events", partition),
                builder.finish(None),
            )?;
        }
    }
    for (partition, mut builder) in builders {
        if !builder.is_empty() {
            log.append(
                &TopicPartition::new("events", partition),
                builder.finish(None),
            )?;
        }
    }
    Ok(())
}
