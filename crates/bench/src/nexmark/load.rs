//! Events into topics, as producers that keep an auction's bids in order would have put them there.
//!
//! Records have no key. What is about one auction or person is in one partition, in the order in which it was sent, so that "the latest" has
//! one meaning. A folder remembers which events it holds and is used again for the same ones.

use std::{collections::HashMap, fs, path::Path};

use anyhow::{Context, Result, bail};
use highwater_storage_log::{
    BatchBuilder, EmbeddedLog, Log, LogOptions, Offset, TopicConfig, TopicPartition,
};
use serde::{Deserialize, Serialize};

use super::generator::{Generator, Kind, mixed};

/// Bytes of a record batch: what a producer that sends much at once would make.
const BATCH_BYTES: usize = 256 << 10;
/// Name of the file that says what a folder holds.
const MANIFEST: &str = "nexmark.json";

/// Which events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EventSet {
    pub(super) events: u64,
    pub(super) partitions: u32,
    pub(super) seed: u64,
    pub(super) disorder_ms: u64,
}

/// What was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Loaded {
    pub(super) set: EventSet,
    pub(super) bids: u64,
    /// Bytes of the bids' JSON.
    pub(super) bid_bytes: u64,
}

/// Puts the events into the topics of a data folder, unless they are there.
pub(super) fn load(data: &Path, set: &EventSet) -> Result<Loaded> {
    let manifest = data.join(MANIFEST);
    if manifest.exists() {
        let loaded: Loaded = serde_json::from_slice(&fs::read(&manifest)?)
            .with_context(|| format!("cannot read {}", manifest.display()))?;
        if loaded.set != *set {
            bail!("{} holds other events: {:?}", data.display(), loaded.set);
        }
        return Ok(loaded);
    }
    if data.join("log").exists() {
        bail!("{} is the data folder of something else", data.display());
    }
    let loaded = write(data, set)?;
    fs::write(&manifest, serde_json::to_vec_pretty(&loaded)?)?;
    Ok(loaded)
}

fn write(data: &Path, set: &EventSet) -> Result<Loaded> {
    let log = EmbeddedLog::open(&data.join("log"), LogOptions::default())?;
    let mut builders: HashMap<TopicPartition, BatchBuilder> = HashMap::new();
    for kind in Kind::ALL {
        log.create_topic(kind.stream(), TopicConfig::with_partitions(set.partitions))?;
        for number in 0..set.partitions {
            let partition = TopicPartition::new(kind.stream(), number);
            builders.insert(partition, BatchBuilder::new());
        }
    }
    let partitions =
        |kind: Kind| (0..set.partitions).map(move |n| TopicPartition::new(kind.stream(), n));
    let by_kind = Kind::ALL.map(|kind| partitions(kind).collect::<Vec<_>>());

    let generator = Generator::new(set.seed);
    let mut loaded = Loaded {
        set: set.clone(),
        bids: 0,
        bid_bytes: 0,
    };
    let mut line = Vec::new();
    for event in generator.events(set.events, set.disorder_ms) {
        line.clear();
        generator.write(&event, &mut line);
        if event.kind == Kind::Bid {
            loaded.bids += 1;
            loaded.bid_bytes += line.len() as u64;
        }
        // By a hash: hot auctions have round numbers.
        let number = mixed(event.subject) % u64::from(set.partitions);
        let partition = &by_kind[event.kind as usize][number as usize];
        let builder = builders.entry(partition.clone()).or_default();
        builder.push(event.time, None, Some(&line), &[]);
        if builder.byte_len() >= BATCH_BYTES {
            log.append(partition, builder.finish(None))?;
        }
    }
    for (partition, mut builder) in builders {
        if !builder.is_empty() {
            log.append(&partition, builder.finish(None))?;
        }
        let end: Offset = log.offsets(&partition)?.log_end;
        log.sync(&partition, end)?;
    }
    Ok(loaded)
}
