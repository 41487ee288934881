//! Topics on disk: one file each. A topic exists once its file does.
//!
//! ORDER: create = folders, sync, then the file. Delete = the file is renamed to its tombstone, sync, then the folders go, then the tombstone. So a crash
//! leaves a whole topic, no topic (at most with empty folders), or a tombstone by which the next start finishes the deletion.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    embedded::{
        Environment,
        layout::{self, DELETED, TEMPORARY, TOPIC, TOPICS},
        partition::remove_partition_dir,
        recovery,
        settings::PartitionSettings,
        small_file::{self, FileKind},
    },
    error::{LogError, LogResult},
    log::{TopicConfig, TopicInfo, TopicPartition},
};

use super::partition::Partition;

const KIND: FileKind = FileKind {
    name: "highwater-topic",
    version: 1,
};

#[derive(Debug, Serialize, Deserialize)]
struct TopicFile {
    partitions: u32,
    settings: BTreeMap<String, String>,
}

/// A topic with its partitions.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) info: TopicInfo,
    partitions: Vec<Slot>,
}

/// A partition, or why it could not be opened. One that is damaged does not stop the others.
#[derive(Debug)]
enum Slot {
    Open(Box<Partition>),
    Stopped(Arc<LogError>),
}

impl Topic {
    /// One partition.
    pub(crate) fn partition(&self, partition: &TopicPartition) -> LogResult<&Partition> {
        match self.partitions.get(partition.partition.0 as usize) {
            None => Err(LogError::UnknownPartition {
                partition: partition.clone(),
            }),
            Some(Slot::Open(open)) => Ok(open),
            Some(Slot::Stopped(cause)) => Err(LogError::Stopped {
                partition: partition.clone(),
                cause: Arc::clone(cause),
            }),
        }
    }

    /// All partitions that are open.
    pub(crate) fn open_partitions(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter().filter_map(|slot| match slot {
            Slot::Open(open) => Some(&**open),
            Slot::Stopped(_) => None,
        })
    }
}

/// What a data folder holds.
pub(crate) struct StoredTopics {
    pub(crate) topics: Vec<Topic>,
    /// Topics whose file is damaged.
    pub(crate) damaged: Vec<(String, LogError)>,
}

/// Opens every topic; finishes deletions that a crash interrupted.
pub(crate) fn open_all(environment: &Arc<Environment>) -> LogResult<StoredTopics> {
    let disk = &*environment.disk;
    let dir = environment.root.join(TOPICS);
    let mut stored = StoredTopics {
        topics: Vec::new(),
        damaged: Vec::new(),
    };
    let mut names = disk
        .list(&dir)
        .map_err(LogError::io(|| format!("list \"{}\"", dir.display())))?;
    names.sort_unstable();
    for file in &names {
        match file.rsplit_once('.') {
            Some((name, DELETED)) => finish_deletion(environment, name)?,
            Some((_, TEMPORARY)) => {
                small_file::remove_if_there(disk, &dir.join(file))
                    .map_err(LogError::io(|| format!("remove \"{file}\"")))?;
            }
            Some((name, TOPIC)) => match open(environment, name) {
                Ok(topic) => stored.topics.push(topic),
                Err(error @ LogError::CorruptFile { .. }) => {
                    tracing::error!(topic = name, %error, "topic is not available");
                    stored.damaged.push((name.to_owned(), error));
                }
                Err(error) => return Err(error),
            },
            _ => {}
        }
    }
    Ok(stored)
}

fn open(environment: &Arc<Environment>, name: &str) -> LogResult<Topic> {
    let path = topic_path(environment, name, TOPIC);
    let damaged = |reason: String| LogError::CorruptFile {
        path: path.clone(),
        reason,
    };
    let body = KIND
        .read(&*environment.disk, &path)?
        .ok_or_else(|| damaged("it vanished".into()))?;
    let file: TopicFile =
        serde_json::from_slice(&body).map_err(|error| damaged(error.to_string()))?;
    let config = TopicConfig {
        partitions: file.partitions,
        settings: file.settings,
    };
    let settings = PartitionSettings::resolve(&config, &environment.options)
        .map_err(|error| damaged(error.to_string()))?;
    Ok(open_partitions(environment, name, config, settings))
}

fn open_partitions(
    environment: &Arc<Environment>,
    name: &str,
    config: TopicConfig,
    settings: PartitionSettings,
) -> Topic {
    let name: Arc<str> = name.into();
    let open = |number| {
        let id = TopicPartition::new(Arc::clone(&name), number);
        match recovery::open_partition(environment, id.clone(), settings) {
            Ok(partition) => Slot::Open(Box::new(partition)),
            Err(error) => {
                tracing::error!(partition = %id, %error, "partition is stopped");
                Slot::Stopped(Arc::new(error))
            }
        }
    };
    let partitions = (0..config.partitions).map(open).collect();
    Topic {
        info: TopicInfo { name, config },
        partitions,
    }
}

/// Makes a new topic durable and opens it.
pub(crate) fn create(
    environment: &Arc<Environment>,
    name: &str,
    config: TopicConfig,
) -> LogResult<Topic> {
    let settings = PartitionSettings::resolve(&config, &environment.options)?;
    let disk = &*environment.disk;
    if exists(environment, &topic_path(environment, name, DELETED))? {
        finish_deletion(environment, name)?;
    }
    for dir in partition_dirs(environment, name, config.partitions) {
        disk.create_dir(&dir)
            .map_err(LogError::io(|| format!("create \"{}\"", dir.display())))?;
        let leftovers = disk
            .list(&dir)
            .map_err(LogError::io(|| format!("list \"{}\"", dir.display())))?;
        if !leftovers.is_empty() {
            return Err(LogError::FolderNotEmpty { folder: dir });
        }
    }
    small_file::sync_dir(disk, &environment.root)?;
    let file = TopicFile {
        partitions: config.partitions,
        settings: config.settings.clone(),
    };
    let body = serde_json::to_vec(&file).map_err(|error| LogError::Io {
        attempted: "encode a topic's settings".into(),
        source: error.into(),
    })?;
    small_file::replace(
        disk,
        &topic_path(environment, name, TOPIC),
        &KIND.frame(&body),
    )?;
    small_file::sync_dir(disk, &environment.root.join(TOPICS))?;
    Ok(open_partitions(environment, name, config, settings))
}

/// Makes the end of a topic durable. [`finish_deletion`] then removes its data.
pub(crate) fn begin_deletion(environment: &Environment, name: &str) -> LogResult<()> {
    let disk = &*environment.disk;
    disk.rename(
        &topic_path(environment, name, TOPIC),
        &topic_path(environment, name, DELETED),
    )
    .map_err(LogError::io(|| format!("delete topic \"{name}\"")))?;
    small_file::sync_dir(disk, &environment.root.join(TOPICS))
}

/// Removes the data of a topic that has a tombstone, then the tombstone.
pub(crate) fn finish_deletion(environment: &Environment, name: &str) -> LogResult<()> {
    let disk = &*environment.disk;
    let names = disk.list(&environment.root).map_err(LogError::io(|| {
        format!("list \"{}\"", environment.root.display())
    }))?;
    let is_ours = |folder: &String| {
        folder
            .rsplit_once('-')
            .is_some_and(|(topic, number)| topic == name && number.parse::<u32>().is_ok())
    };
    for folder in names.iter().filter(|folder| is_ours(folder)) {
        remove_partition_dir(environment, &environment.root.join(folder))?;
    }
    // ORDER: the tombstone outlives the data.
    small_file::sync_dir(disk, &environment.root)?;
    small_file::remove_if_there(disk, &topic_path(environment, name, DELETED))
        .map_err(LogError::io(|| format!("delete topic \"{name}\"")))?;
    small_file::sync_dir(disk, &environment.root.join(TOPICS))
}

fn partition_dirs(
    environment: &Environment,
    name: &str,
    partitions: u32,
) -> impl Iterator<Item = PathBuf> {
    let name: Arc<str> = name.into();
    (0..partitions).map(move |number| {
        layout::partition_dir(
            &environment.root,
            &TopicPartition::new(Arc::clone(&name), number),
        )
    })
}

fn topic_path(environment: &Environment, name: &str, extension: &str) -> PathBuf {
    environment
        .root
        .join(TOPICS)
        .join(format!("{name}.{extension}"))
}

fn exists(environment: &Environment, path: &Path) -> LogResult<bool> {
    match environment.disk.open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(LogError::io(|| format!("open \"{}\"", path.display()))(
            error,
        )),
    }
}
