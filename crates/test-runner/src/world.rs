//! One run's server, alone in the world: a log in memory, state in a folder that goes away, and the records that went in and came out.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
    sync::Arc,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use highwater_planner::catalog::Relation;
use highwater_server::local::{LocalOptions, LocalServer, LocalSession};
use highwater_storage_log::{
    BatchBuilder, EmbeddedLog, FsyncPolicy, Isolation, Log, LogOptions, Offset, RecordRef,
    TopicConfig, TopicPartition, partition_for_key,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{case::Topic, json::Json, layout::Layout, record::TestRecord};

/// Where memory looks like a disk: state that lives for a moment is best kept there.
const MEMORY_FOLDER: &str = "/dev/shm";
/// Topics of the server itself begin so.
const INTERNAL_PREFIX: &str = "_highwater";
/// Bytes that one read of a topic takes at the most.
const READ_BYTES: usize = 1 << 20;
/// How long one record may take to go through all queries.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// A header's name and value as a record holds them.
type EncodedHeader<'a> = (&'a str, Option<Vec<u8>>);

/// Why a run cannot go on; the text is for people.
pub type Trouble = String;

/// See the module.
pub struct World {
    session: LocalSession,
    server: LocalServer,
    runtime: Runtime,
    topics: Vec<Topic>,
    /// Offsets of what was fed: it does not count as output where a topic is both.
    fed: HashSet<(TopicPartition, Offset)>,
    /// Up to where outputs are read.
    read: BTreeMap<TopicPartition, Offset>,
    /// Last, so that it goes away after what stands in it.
    _folder: TempDir,
}

impl World {
    /// A server with these topics and nothing else, and a session whose statements are in `dialect`.
    pub fn new(topics: &[Topic], dialect: &str) -> Result<Self, Trouble> {
        let folder = state_folder()?;
        let log_options = LogOptions {
            fsync: FsyncPolicy::Never,
            ..LogOptions::default()
        };
        let log: Arc<dyn Log> = Arc::new(EmbeddedLog::in_memory(log_options).map_err(text)?);
        for topic in topics {
            log.create_topic(&topic.name, TopicConfig::with_partitions(topic.partitions))
                .map_err(text)?;
        }
        let options = LocalOptions {
            state_folder: folder.path().to_owned(),
            default_partitions: 1,
            step_max_rows: 1,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(text)?;
        let server = LocalServer::open(log, &options).map_err(text)?;
        let session = runtime
            .block_on(server.session(vec![("dialect".to_owned(), dialect.to_owned())]))
            .map_err(text)?;
        Ok(Self {
            session,
            server,
            runtime,
            topics: topics.to_vec(),
            fed: HashSet::new(),
            read: BTreeMap::new(),
            _folder: folder,
        })
    }

    /// Runs the statements of a text.
    pub fn execute(&mut self, sql: &str) -> Result<(), Trouble> {
        self.runtime
            .block_on(self.session.run(sql))
            .map_err(|error| format!("{error} ({})", error.code))
    }

    /// The streams and tables that there are.
    pub fn relations(&self) -> Vec<Arc<Relation>> {
        self.server.relations()
    }

    /// Appends a record and waits until it has gone through all queries.
    pub fn feed(&mut self, record: &TestRecord) -> Result<(), Trouble> {
        let layout = self.layout(&record.topic, Direction::In);
        let log = self.server.log();
        if log.topic(&record.topic).is_none() {
            log.create_topic(&record.topic, TopicConfig::with_partitions(1))
                .map_err(text)?;
        }
        let partitions = log
            .topic(&record.topic)
            .map_or(1, |topic| topic.config.partitions);
        let key = layout.encode_key(&record.key, record.window)?;
        let value = layout.value.encode(&record.value)?;
        let headers = encode_headers(record)?;
        let headers: Vec<(&str, Option<&[u8]>)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_deref()))
            .collect();
        let number = key
            .as_deref()
            .map_or(0, |key| partition_for_key(key, partitions));
        let partition = TopicPartition::new(record.topic.as_str(), number);
        let mut batch = BatchBuilder::new();
        batch.push(
            record.timestamp.unwrap_or(0),
            key.as_deref(),
            value.as_deref(),
            &headers,
        );
        let appended = log.append(&partition, batch.finish(None)).map_err(text)?;
        self.fed.insert((partition, appended.base_offset));
        self.settle()
    }

    /// Waits until all queries have read everything.
    pub fn settle(&self) -> Result<(), Trouble> {
        self.server.settle(SETTLE_TIMEOUT).map_err(text)
    }

    /// What has come out since the last call, by topic; fed records are left out.
    pub fn outputs(&mut self) -> Result<Vec<TestRecord>, Trouble> {
        let mut records = Vec::new();
        for topic in self.server.log().topics() {
            if topic.name.starts_with(INTERNAL_PREFIX) {
                continue;
            }
            let layout = self.layout(&topic.name, Direction::Out);
            for number in 0..topic.config.partitions {
                let partition = TopicPartition::new(Arc::clone(&topic.name), number);
                self.read_partition(&partition, &layout, &mut records)?;
            }
        }
        Ok(records)
    }

    fn read_partition(
        &mut self,
        partition: &TopicPartition,
        layout: &Layout,
        records: &mut Vec<TestRecord>,
    ) -> Result<(), Trouble> {
        let log = self.server.log();
        let mut from = self.read.get(partition).copied().unwrap_or(Offset(0));
        loop {
            let fetch = log
                .read(partition, from, READ_BYTES, Isolation::ReadCommitted)
                .map_err(text)?;
            for batch in &fetch.batches {
                for record in batch.records().map_err(text)?.iter() {
                    let record = record.map_err(text)?;
                    let known = record.offset < from
                        || self.fed.contains(&(partition.clone(), record.offset));
                    if !known {
                        records.push(decode(&partition.topic, &record, layout)?);
                    }
                }
            }
            if fetch.next_offset <= from {
                break;
            }
            from = fetch.next_offset;
        }
        self.read.insert(partition.clone(), from);
        Ok(())
    }

    /// The error of a query that has stopped, if one has.
    pub fn trouble(&self) -> Option<Trouble> {
        let stopped = self.server.stopped_queries();
        let first = stopped.first()?;
        Some(format!(
            "query {} has stopped: {}",
            first.name, first.reason
        ))
    }

    /// How the records of a topic are written.
    pub fn layout(&self, topic: &str, direction: Direction) -> Layout {
        let relations = self.relations();
        let mut over: Vec<&Arc<Relation>> = relations
            .iter()
            .filter(|relation| relation.topic == topic)
            .collect();
        // Of several over one topic, what is fed is as declared, and what comes out is as a query writes it.
        over.sort_by_key(|relation| {
            let written = relation.query.is_some();
            (written != (direction == Direction::Out), relation.id)
        });
        match over.first() {
            Some(relation) => Layout::of_relation(relation),
            None => Layout::of_topic(self.topics.iter().find(|known| known.name == topic)),
        }
    }

    /// Stops the server. A run that ends without it leaves that to the process's end.
    pub fn stop(self) -> Result<(), Trouble> {
        self.server.stop().map_err(text)
    }
}

/// Whether a topic is fed or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Records go in.
    In,
    /// Records come out.
    Out,
}

fn state_folder() -> Result<TempDir, Trouble> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("highwater-test-");
    let memory = Path::new(MEMORY_FOLDER);
    if memory.is_dir()
        && let Ok(folder) = builder.tempdir_in(memory)
    {
        return Ok(folder);
    }
    builder.tempdir().map_err(text)
}

fn encode_headers(record: &TestRecord) -> Result<Vec<EncodedHeader<'_>>, Trouble> {
    let headers = record.headers.as_deref().unwrap_or_default();
    headers
        .iter()
        .map(|(name, value)| {
            let value = match value {
                Json::Text(base64) => Some(BASE64_STANDARD.decode(base64).map_err(text)?),
                _ => None,
            };
            Ok((name.as_str(), value))
        })
        .collect()
}

fn decode(topic: &str, record: &RecordRef<'_>, layout: &Layout) -> Result<TestRecord, Trouble> {
    let (key, window) = layout.decode_key(record.key);
    let mut headers = Vec::new();
    for header in record.headers() {
        let (name, value) = header.map_err(text)?;
        headers.push((
            String::from_utf8_lossy(name).into_owned(),
            value.map_or(Json::Null, |value| {
                Json::Text(BASE64_STANDARD.encode(value))
            }),
        ));
    }
    Ok(TestRecord {
        topic: topic.to_owned(),
        key,
        value: record
            .value
            .map_or(Json::Null, |value| layout.value.decode(value)),
        timestamp: Some(record.timestamp),
        window,
        headers: Some(headers),
    })
}

/// An error with its causes, in one line.
fn text(error: impl std::error::Error) -> Trouble {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}
