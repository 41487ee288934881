//! `topics`, `describe`, `create`, `alter`, `delete`.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use crate::{EmbeddedLog, Log, LogResult, TopicChange, TopicConfig, TopicInfo, TopicPartition};

use super::{
    Outcome,
    error::ToolError,
    folder::{self, FolderArgs},
    output::Output,
};

/// Arguments of `topics`.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    #[command(flatten)]
    folder: FolderArgs,
    /// One JSON document a topic
    #[arg(long)]
    json: bool,
}

/// Arguments of `describe`.
#[derive(Debug, Clone, Args)]
pub struct DescribeArgs {
    /// The topic
    topic: String,
    #[command(flatten)]
    folder: FolderArgs,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

/// Arguments of `create`.
#[derive(Debug, Clone, Args)]
pub struct CreateArgs {
    /// Its name
    topic: String,
    #[command(flatten)]
    folder: FolderArgs,
    /// How many partitions
    #[arg(long, short, default_value_t = 1)]
    partitions: u32,
    /// A setting under Kafka's name, such as retention.ms=86400000; can be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

/// Arguments of `alter`.
#[derive(Debug, Clone, Args)]
pub struct AlterArgs {
    /// The topic
    topic: String,
    #[command(flatten)]
    folder: FolderArgs,
    /// So many partitions from now on; there can only be more than before
    #[arg(long, short)]
    partitions: Option<u32>,
    /// A new value of a setting; can be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// A setting that goes back to its default; can be given several times
    #[arg(long, value_name = "NAME")]
    reset: Vec<String>,
}

/// Arguments of `delete`.
#[derive(Debug, Clone, Args)]
pub struct DeleteArgs {
    /// The topic
    topic: String,
    #[command(flatten)]
    folder: FolderArgs,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    Ok((name.trim().into(), value.trim().into()))
}

#[derive(Debug, Serialize)]
struct Topic {
    topic: String,
    partitions: u32,
    settings: BTreeMap<String, String>,
    records: i64,
    bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by_partition: Vec<Partition>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Partition {
    Open {
        partition: u32,
        log_start: i64,
        last_stable: i64,
        log_end: i64,
        segments: usize,
        bytes: u64,
    },
    Stopped {
        partition: u32,
        stopped: String,
    },
}

/// Lists the topics. The number of records is that of offsets: markers and what was compacted away count too.
pub(super) fn list(args: &ListArgs) -> Result<Outcome, ToolError> {
    let log = args.folder.open()?;
    let mut out = Output::new();
    if !args.json {
        out.line(format!(
            "{:<40} {:>10} {:>14} {:>14}",
            "topic", "partitions", "records", "bytes"
        ))?;
    }
    let mut outcome = Outcome::Done;
    for info in log.topics() {
        let mut topic = look_at(&log, &info);
        if topic.has_stopped() {
            outcome = Outcome::Damaged;
        }
        if args.json {
            topic.by_partition.clear();
            out.json(&topic)?;
        } else {
            out.line(format!(
                "{:<40} {:>10} {:>14} {:>14}{}",
                topic.topic,
                topic.partitions,
                topic.records,
                topic.bytes,
                if topic.has_stopped() {
                    "  a partition is stopped"
                } else {
                    ""
                },
            ))?;
        }
    }
    out.flush()?;
    Ok(outcome)
}

/// Shows one topic.
pub(super) fn describe(args: &DescribeArgs) -> Result<Outcome, ToolError> {
    let log = args.folder.open()?;
    let topic = look_at(&log, &folder::topic(&log, &args.topic)?);
    let mut out = Output::new();
    if args.json {
        out.json(&topic)?;
    } else {
        out.line(format!("topic       {}", topic.topic))?;
        out.line(format!("partitions  {}", topic.partitions))?;
        for (name, value) in &topic.settings {
            out.line(format!("setting     {name} = {value}"))?;
        }
        out.line(format!(
            "\n{:>9} {:>14} {:>14} {:>14} {:>9} {:>14}",
            "partition", "log start", "last stable", "log end", "segments", "bytes"
        ))?;
        for partition in &topic.by_partition {
            out.line(partition.line())?;
        }
    }
    out.flush()?;
    Ok(if topic.has_stopped() {
        Outcome::Damaged
    } else {
        Outcome::Done
    })
}

fn look_at(log: &EmbeddedLog, info: &TopicInfo) -> Topic {
    let mut topic = Topic {
        topic: info.name.to_string(),
        partitions: info.config.partitions,
        settings: info.config.settings.clone(),
        records: 0,
        bytes: 0,
        by_partition: Vec::new(),
    };
    for number in 0..info.config.partitions {
        let at = TopicPartition::new(info.name.clone(), number);
        let partition = look_at_partition(log, &at).unwrap_or_else(|error| Partition::Stopped {
            partition: number,
            stopped: causes(&error),
        });
        if let Partition::Open {
            log_start,
            log_end,
            bytes,
            ..
        } = &partition
        {
            topic.records += log_end - log_start;
            topic.bytes += bytes;
        }
        topic.by_partition.push(partition);
    }
    topic
}

fn look_at_partition(log: &EmbeddedLog, at: &TopicPartition) -> LogResult<Partition> {
    let (offsets, usage) = (log.offsets(at)?, log.usage(at)?);
    Ok(Partition::Open {
        partition: at.partition.0,
        log_start: offsets.log_start.0,
        last_stable: offsets.last_stable.0,
        log_end: offsets.log_end.0,
        segments: usage.segments,
        bytes: usage.bytes,
    })
}

/// An error with what caused it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}

impl Topic {
    fn has_stopped(&self) -> bool {
        let mut partitions = self.by_partition.iter();
        partitions.any(|partition| matches!(partition, Partition::Stopped { .. }))
    }
}

impl Partition {
    fn line(&self) -> String {
        match self {
            Self::Open {
                partition,
                log_start,
                last_stable,
                log_end,
                segments,
                bytes,
            } => format!(
                "{partition:>9} {log_start:>14} {last_stable:>14} {log_end:>14} {segments:>9} {bytes:>14}"
            ),
            Self::Stopped { partition, stopped } => format!("{partition:>9} {stopped}"),
        }
    }
}

/// Creates a topic.
pub(super) fn create(args: &CreateArgs) -> Result<Outcome, ToolError> {
    let log = args.folder.open_or_create()?;
    let config = TopicConfig {
        partitions: args.partitions,
        settings: args.settings.iter().cloned().collect(),
    };
    log.create_topic(&args.topic, config)?;
    Ok(Outcome::Done)
}

/// Changes a topic.
pub(super) fn alter(args: &AlterArgs) -> Result<Outcome, ToolError> {
    let set = args
        .settings
        .iter()
        .map(|(name, value)| (name.clone(), Some(value.clone())));
    let reset = args.reset.iter().map(|name| (name.clone(), None));
    let change = TopicChange {
        partitions: args.partitions,
        settings: set.chain(reset).collect(),
    };
    args.folder.open()?.alter_topic(&args.topic, &change)?;
    Ok(Outcome::Done)
}

/// Deletes a topic.
pub(super) fn delete(args: &DeleteArgs) -> Result<Outcome, ToolError> {
    args.folder.open()?.delete_topic(&args.topic)?;
    Ok(Outcome::Done)
}
