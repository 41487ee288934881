//! `consume`: prints records, from any offset or time, of one partition after the other.
//!
//! The folder is ours alone meanwhile, so nothing comes in that could be waited for: the command ends at the end of the log.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use crate::{
    EmbeddedLog, Isolation, Log, Offset, PartitionOffsets, RecordRef, TopicPartition,
    partition_for_key,
};

use super::{
    Outcome,
    error::ToolError,
    folder::{self, FolderArgs},
    format::Format,
    interrupt::Interrupt,
    output::{Output, put_bytes},
    progress::Progress,
    time,
};

/// Bytes that one read asks for.
const READ_BYTES: usize = 1 << 20;

/// Arguments of `consume`.
#[derive(Debug, Clone, Args)]
pub struct ConsumeArgs {
    /// The topic
    topic: String,
    #[command(flatten)]
    folder: FolderArgs,
    /// Only this partition; can be given several times
    #[arg(long = "partition", short, value_name = "NUMBER")]
    partitions: Vec<u32>,
    /// Where to begin: beginning, end, an offset, or -N for the last N offsets
    #[arg(
        long,
        short,
        value_name = "OFFSET",
        default_value = "beginning",
        allow_hyphen_values = true,
        conflicts_with = "from"
    )]
    offset: String,
    /// Begin with the first record of this time or later: milliseconds since 1970, or like 2026-12-01T13:45:00Z
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Leave out records of this time or later
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Print so many records at most
    #[arg(long, short = 'c', value_name = "COUNT")]
    max_messages: Option<u64>,
    /// Only records with this key; only the partition that such keys go to is read, unless --partition says otherwise
    #[arg(long, short = 'k')]
    key: Option<String>,
    /// Print the key and this text in front of each value
    #[arg(long, short = 'K', value_name = "TEXT")]
    key_delimiter: Option<String>,
    /// Pattern of a record: %t topic, %p partition, %o offset, %k key, %s value, %T time, %h headers, %K %S lengths, \n \t \xHH
    #[arg(long, short, value_name = "PATTERN", conflicts_with_all = ["key_delimiter", "json"])]
    format: Option<String>,
    /// One JSON document a record
    #[arg(long, short = 'J')]
    json: bool,
    /// What to see of transactions
    #[arg(long, value_enum, default_value_t = IsolationArg::Committed)]
    isolation: IsolationArg,
}

/// What to see of transactions.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum IsolationArg {
    /// What was committed
    Committed,
    /// Everything, aborted and unfinished transactions too
    Uncommitted,
}

impl From<IsolationArg> for Isolation {
    fn from(arg: IsolationArg) -> Self {
        match arg {
            IsolationArg::Committed => Self::ReadCommitted,
            IsolationArg::Uncommitted => Self::ReadUncommitted,
        }
    }
}

/// Where to begin in each partition.
enum Start {
    Beginning,
    End,
    At(i64),
    Last(i64),
    Time(i64),
}

/// How records are printed.
enum Shape {
    Json,
    Pattern(Format),
}

/// What is left to do, and how.
struct Consumer<'a> {
    log: &'a EmbeddedLog,
    isolation: Isolation,
    until: Option<i64>,
    key: Option<&'a [u8]>,
    shape: Shape,
    left: u64,
    out: Output,
    line: Vec<u8>,
    interrupt: Interrupt,
    /// Bytes of batches that were read.
    bytes: u64,
    progress: Progress,
}

/// Prints the records that are asked for.
pub(super) fn consume(args: &ConsumeArgs) -> Result<Outcome, ToolError> {
    let start = args.start()?;
    let until = args
        .until
        .as_deref()
        .map(|text| time::parse("--until", text))
        .transpose()?;
    let shape = args.shape()?;
    let log = args.folder.open()?;
    let topic = folder::topic(&log, &args.topic)?;
    let key = args.key.as_ref().map(String::as_bytes);
    let partitions = match (&args.partitions[..], key) {
        ([], Some(key)) => vec![partition_for_key(key, topic.config.partitions)],
        ([], None) => (0..topic.config.partitions).collect(),
        (given, _) => given.to_vec(),
    };
    let mut consumer = Consumer {
        log: &log,
        isolation: args.isolation.into(),
        until,
        key,
        shape,
        left: args.max_messages.unwrap_or(u64::MAX),
        out: Output::new(),
        line: Vec::new(),
        interrupt: Interrupt::listen()?,
        bytes: 0,
        progress: Progress::beside_output("read", None),
    };
    for number in partitions {
        let at = TopicPartition::new(topic.name.clone(), number);
        if consumer.partition(&at, &start)? == Outcome::Interrupted {
            return Ok(Outcome::Interrupted);
        }
    }
    Ok(Outcome::Done)
}

impl ConsumeArgs {
    fn start(&self) -> Result<Start, ToolError> {
        if let Some(from) = &self.from {
            return Ok(Start::Time(time::parse("--from", from)?));
        }
        Ok(match self.offset.as_str() {
            "beginning" | "earliest" => Start::Beginning,
            "end" | "latest" => Start::End,
            text => match text.parse::<i64>() {
                // "-0" is the end as well.
                Ok(0) if text.starts_with('-') => Start::End,
                Ok(number) if number < 0 => Start::Last(number.saturating_neg()),
                Ok(number) => Start::At(number),
                Err(_) => {
                    return Err(ToolError::Argument {
                        argument: "--offset",
                        value: text.into(),
                        reason: "beginning, end, an offset, or -N".into(),
                    });
                }
            },
        })
    }

    fn shape(&self) -> Result<Shape, ToolError> {
        if self.json {
            return Ok(Shape::Json);
        }
        Ok(Shape::Pattern(match (&self.format, &self.key_delimiter) {
            (Some(pattern), _) => Format::parse(pattern).map_err(|reason| ToolError::Argument {
                argument: "--format",
                value: pattern.clone(),
                reason,
            })?,
            (None, Some(delimiter)) => Format::with_key(delimiter),
            (None, None) => Format::value(),
        }))
    }
}

impl Start {
    fn offset(
        &self,
        log: &EmbeddedLog,
        at: &TopicPartition,
        offsets: &PartitionOffsets,
    ) -> Result<Offset, ToolError> {
        let (start, end) = (offsets.log_start.0, offsets.log_end.0);
        Ok(Offset(match self {
            Self::Beginning => start,
            Self::End => end,
            Self::Last(count) => end.saturating_sub(*count).max(start),
            // An offset that is outside is an error that names what is inside.
            Self::At(offset) => *offset,
            Self::Time(ms) => log.offset_for_timestamp(at, *ms)?.0,
        }))
    }
}

impl Consumer<'_> {
    fn partition(&mut self, at: &TopicPartition, start: &Start) -> Result<Outcome, ToolError> {
        let offsets = self.log.offsets(at)?;
        let mut next = start.offset(self.log, at, &offsets)?;
        // The batch that holds the time may hold earlier records as well.
        let from = match start {
            Start::Time(ms) => *ms,
            _ => i64::MIN,
        };
        while self.left > 0 {
            if self.interrupt.was_asked() {
                self.out.flush()?;
                return Ok(Outcome::Interrupted);
            }
            let fetch = self.log.read(at, next, READ_BYTES, self.isolation)?;
            for batch in &fetch.batches {
                self.bytes += batch.byte_len() as u64;
                self.progress.at(self.bytes);
                for record in &batch.records()? {
                    let record = record?;
                    if record.offset >= next && record.timestamp >= from && self.wants(&record) {
                        self.print(at, &record)?;
                    }
                }
            }
            if fetch.next_offset == next {
                break;
            }
            next = fetch.next_offset;
        }
        self.out.flush()?;
        Ok(Outcome::Done)
    }

    fn wants(&self, record: &RecordRef<'_>) -> bool {
        self.left > 0
            && self.until.is_none_or(|until| record.timestamp < until)
            && self.key.is_none_or(|key| record.key == Some(key))
    }

    fn print(&mut self, at: &TopicPartition, record: &RecordRef<'_>) -> Result<(), ToolError> {
        self.left -= 1;
        match &self.shape {
            Shape::Json => self.out.json(&document(at, record)?),
            Shape::Pattern(format) => {
                self.line.clear();
                format.put(at, record, &mut self.line)?;
                self.out.bytes(&self.line)
            }
        }
    }
}

/// A record as `produce --json` takes it.
fn document(at: &TopicPartition, record: &RecordRef<'_>) -> Result<Value, ToolError> {
    let mut document = Map::new();
    document.insert("topic".into(), at.topic.as_ref().into());
    document.insert("partition".into(), at.partition.0.into());
    document.insert("offset".into(), record.offset.0.into());
    document.insert("timestamp".into(), record.timestamp.into());
    let mut headers = Vec::new();
    for header in record.headers() {
        let (name, value) = header?;
        let mut pair = Map::new();
        put_bytes(&mut pair, "name", Some(name));
        put_bytes(&mut pair, "value", value);
        headers.push(Value::Object(pair));
    }
    if !headers.is_empty() {
        document.insert("headers".into(), headers.into());
    }
    put_bytes(&mut document, "key", record.key);
    put_bytes(&mut document, "value", record.value);
    Ok(Value::Object(document))
}
