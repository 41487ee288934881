//! `produce`: appends records, one a line, and ends when all of them are on disk.
//!
//! Lines go into batches. A batch is appended when it is large enough or when no further line is there yet, so what is typed or piped in slowly is
//! stored at once.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::{
    BatchBuilder, Compression, EmbeddedLog, Log, Offset, PartitionId, Partitioner, TopicPartition,
    clock::{Clock, SystemClock},
};

use super::{
    Outcome,
    error::ToolError,
    folder::{self, FolderArgs},
    interrupt::Interrupt,
    output::{Output, take_bytes},
    progress::Progress,
};

/// A batch is appended when it has so many bytes.
const BATCH_BYTES: usize = 256 << 10;
/// Longest line: the largest batch that a log takes by default.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// Arguments of `produce`.
#[derive(Debug, Clone, Args)]
pub struct ProduceArgs {
    /// The topic
    topic: String,
    #[command(flatten)]
    folder: FolderArgs,
    /// Read this file instead of standard input
    #[arg(long, short = 'l', value_name = "FILE")]
    file: Option<PathBuf>,
    /// All records go there; otherwise the key decides, and without one partitions take turns
    #[arg(long, short)]
    partition: Option<u32>,
    /// What stands between key and value in a line
    #[arg(long, short = 'K', value_name = "TEXT", conflicts_with = "json")]
    key_delimiter: Option<String>,
    /// Key of every record that does not bring its own
    #[arg(long, short)]
    key: Option<String>,
    /// An empty value is a tombstone
    #[arg(long, short = 'Z')]
    null: bool,
    /// A header of every record that does not bring its own; can be given several times
    #[arg(long = "header", short = 'H', value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Time of every record that does not bring its own, in milliseconds since 1970 [default: now]
    #[arg(long, short, allow_hyphen_values = true)]
    timestamp: Option<i64>,
    /// How batches are compressed
    #[arg(long, short = 'z', value_enum, default_value_t = CodecArg::None)]
    compression: CodecArg,
    /// Lines are JSON documents as `consume --json` prints them, and so is what is said in the end
    #[arg(long, short = 'J')]
    json: bool,
}

/// How batches are compressed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CodecArg {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl From<CodecArg> for Compression {
    fn from(arg: CodecArg) -> Self {
        match arg {
            CodecArg::None => Self::None,
            CodecArg::Gzip => Self::Gzip,
            CodecArg::Snappy => Self::Snappy,
            CodecArg::Lz4 => Self::Lz4,
            CodecArg::Zstd => Self::Zstd,
        }
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    Ok((name.into(), value.into()))
}

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Incoming {
    partition: Option<u32>,
    timestamp: Option<i64>,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

/// Reads lines and appends them.
pub(super) fn produce(args: &ProduceArgs) -> Result<Outcome, ToolError> {
    let log = args.folder.open()?;
    let topic = folder::topic(&log, &args.topic)?;
    let mut producer = Producer::new(&log, args, &topic.name, topic.config.partitions);
    let interrupt = Interrupt::listen()?;
    let mut progress = Progress::new("produced", None);
    let outcome = match &args.file {
        Some(path) => {
            let file = File::open(path).map_err(ToolError::file(path))?;
            producer.read(BufReader::new(file), args, &interrupt, &mut progress)
        }
        None => producer.read(BufReader::new(io::stdin()), args, &interrupt, &mut progress),
    };
    drop(progress);
    // What was read before a line that is wrong is kept, and said.
    producer.finish()?;
    producer.summary(args.json)?;
    outcome
}

struct Producer<'a> {
    log: &'a EmbeddedLog,
    partitioner: Partitioner,
    /// A topic's partitions, with the batch that is being filled.
    partitions: Vec<(TopicPartition, BatchBuilder)>,
    /// Ends of what was appended and not synced.
    ends: Vec<Option<Offset>>,
    records: u64,
    bytes: u64,
}

impl<'a> Producer<'a> {
    fn new(log: &'a EmbeddedLog, args: &ProduceArgs, topic: &str, partitions: u32) -> Self {
        let builder = || BatchBuilder::with_compression(args.compression.into());
        Self {
            log,
            partitioner: Partitioner::new(partitions),
            partitions: (0..partitions)
                .map(|number| (TopicPartition::new(topic, number), builder()))
                .collect(),
            ends: vec![None; partitions as usize],
            records: 0,
            bytes: 0,
        }
    }

    fn read(
        &mut self,
        mut input: BufReader<impl Read>,
        args: &ProduceArgs,
        interrupt: &Interrupt,
        progress: &mut Progress,
    ) -> Result<Outcome, ToolError> {
        let mut line = Vec::new();
        let mut number = 0;
        loop {
            if input.buffer().is_empty() {
                // The next line may be long in coming.
                self.finish()?;
            }
            line.clear();
            let read = input
                .by_ref()
                .take(MAX_LINE_BYTES + 1)
                .read_until(b'\n', &mut line);
            match read {
                Ok(0) => return Ok(Outcome::Done),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ToolError::Standard("read the input", error)),
            }
            if interrupt.was_asked() {
                return Ok(Outcome::Interrupted);
            }
            number += 1;
            let wrong = |reason: String| ToolError::Line {
                line: number,
                reason,
            };
            if line.len() as u64 > MAX_LINE_BYTES {
                return Err(wrong(format!("it is longer than {MAX_LINE_BYTES} bytes")));
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            let record = args.record(&line).map_err(wrong)?;
            self.add(record, args).map_err(|error| match error {
                ToolError::Argument { reason, .. } => wrong(reason),
                other => other,
            })?;
            progress.at(self.bytes);
        }
    }

    fn add(&mut self, record: Incoming, args: &ProduceArgs) -> Result<(), ToolError> {
        let bytes =
            record.key.as_ref().map_or(0, Vec::len) + record.value.as_ref().map_or(0, Vec::len);
        let place = match args.partition.or(record.partition) {
            Some(number) => PartitionId(number),
            None => self.partitioner.partition(record.key.as_deref(), bytes),
        };
        let at = place.0 as usize;
        let Some((_, builder)) = self.partitions.get_mut(at) else {
            return Err(ToolError::Argument {
                argument: "--partition",
                value: place.0.to_string(),
                reason: format!("there is no partition {}", place.0),
            });
        };
        let headers: Vec<_> = record
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .collect();
        builder.push(
            record.timestamp.unwrap_or_else(|| SystemClock.now_ms()),
            record.key.as_deref(),
            record.value.as_deref(),
            &headers,
        );
        self.records += 1;
        self.bytes += bytes as u64;
        if builder.byte_len() >= BATCH_BYTES {
            self.append(at)?;
        }
        Ok(())
    }

    fn append(&mut self, at: usize) -> Result<(), ToolError> {
        let (partition, builder) = &mut self.partitions[at];
        if !builder.is_empty() {
            let appended = self.log.append(partition, builder.finish(None))?;
            self.ends[at] = Some(Offset(appended.last_offset.0 + 1));
        }
        Ok(())
    }

    /// Appends what was collected and waits until all is on disk.
    fn finish(&mut self) -> Result<(), ToolError> {
        for at in 0..self.partitions.len() {
            self.append(at)?;
        }
        for (end, (partition, _)) in self.ends.iter_mut().zip(&self.partitions) {
            if let Some(end) = end.take() {
                self.log.sync(partition, end)?;
            }
        }
        Ok(())
    }

    fn summary(&self, as_json: bool) -> Result<(), ToolError> {
        if as_json {
            let mut out = Output::new();
            out.json(&json!({ "records": self.records, "bytes": self.bytes }))?;
            out.flush()
        } else {
            eprintln!(
                "{} records, {} bytes of keys and values, all on disk",
                self.records, self.bytes
            );
            Ok(())
        }
    }
}

impl ProduceArgs {
    fn record(&self, line: &[u8]) -> Result<Incoming, String> {
        let mut record = if self.json {
            from_document(line)?
        } else {
            self.split_line(line)
        };
        record.key = record
            .key
            .or_else(|| self.key.clone().map(String::into_bytes));
        record.timestamp = record.timestamp.or(self.timestamp);
        if record.headers.is_empty() {
            let own = self.headers.iter();
            record.headers = own
                .map(|(name, value)| (name.clone(), Some(value.clone().into_bytes())))
                .collect();
        }
        if self.null {
            record.value = record.value.filter(|value| !value.is_empty());
        }
        Ok(record)
    }

    fn split_line(&self, line: &[u8]) -> Incoming {
        let delimiter = self.key_delimiter.as_ref().map(String::as_bytes);
        let split = delimiter
            .filter(|delimiter| !delimiter.is_empty())
            .and_then(|delimiter| {
                let at = line
                    .windows(delimiter.len())
                    .position(|window| window == delimiter)?;
                Some((&line[..at], &line[at + delimiter.len()..]))
            });
        let (key, value) = match split {
            Some((key, value)) => (Some(key.to_vec()), value),
            None => (None, line),
        };
        Incoming {
            partition: None,
            timestamp: None,
            key,
            value: Some(value.to_vec()),
            headers: Vec::new(),
        }
    }
}

fn from_document(line: &[u8]) -> Result<Incoming, String> {
    let document: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("it is no JSON object: {error}"))?;
    let number = |name: &str| match document.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_i64()
            .map(Some)
            .ok_or(format!("\"{name}\" is not a whole number")),
    };
    let partition = number("partition")?
        .map(u32::try_from)
        .transpose()
        .map_err(|_| "\"partition\" is out of range")?;
    let headers = match document.get("headers") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(headers)) => headers
            .iter()
            .map(|header| {
                let header = header.as_object().ok_or("a header is not an object")?;
                let name = take_bytes(header, "name")?.ok_or("a header has no name")?;
                let name = String::from_utf8(name).map_err(|_| "a header's name is not text")?;
                Ok((name, take_bytes(header, "value")?))
            })
            .collect::<Result<_, String>>()?,
        Some(_) => return Err("\"headers\" is not a list".into()),
    };
    Ok(Incoming {
        partition,
        timestamp: number("timestamp")?,
        key: take_bytes(&document, "key")?,
        value: take_bytes(&document, "value")?,
        headers,
    })
}
