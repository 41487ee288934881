//! Topics on disk: one file each. A topic exists once its file does.
//!
//! ORDER: create = folders, sync, then the file. Delete = the file is renamed to its tombstone, sync, then the folders go, then the tombstone. So a crash
//! leaves a whole topic, no topic (at most with empty folders), or a tombstone by which the next start finishes the deletion. Alter = folders of new
//! partitions, sync, then the file is replaced: either all of the change took place or none of it.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::{
    batch::EncodedBatch,
    disk::Disk,
    embedded::{
        Environment,
        group_commit::MustDo,
        layout::{self, DELETED, TEMPORARY, TOPIC, TOPICS},
        recovery,
        removal::remove_partition_dir,
        settings::PartitionSettings,
        small_file::{self, FileKind},
        waiting::Refusal,
    },
    error::{LogError, LogResult},
    log::{AppendWaiter, TopicChange, TopicConfig, TopicInfo, TopicPartition},
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
    name: Arc<str>,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    config: TopicConfig,
    partitions: Vec<Slot>,
}

/// A partition, or why it could not be opened. One that is damaged does not stop the others.
#[derive(Debug)]
enum Slot {
    Open(Arc<Partition>),
    Stopped(Arc<LogError>),
}

impl Topic {
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Name and settings.
    pub(crate) fn info(&self) -> TopicInfo {
        TopicInfo {
            name: Arc::clone(&self.name),
            config: self.state.read().config.clone(),
        }
    }

    /// One partition.
    pub(crate) fn partition(&self, partition: &TopicPartition) -> LogResult<Arc<Partition>> {
        match self
            .state
            .read()
            .partitions
            .get(partition.partition.0 as usize)
        {
            None => Err(LogError::UnknownPartition {
                partition: partition.clone(),
            }),
            Some(Slot::Open(open)) => Ok(Arc::clone(open)),
            Some(Slot::Stopped(cause)) => Err(LogError::Stopped {
                partition: partition.clone(),
                cause: Arc::clone(cause),
            }),
        }
    }

    /// Hands a batch over to a partition. Answers with the partition if something has to be done there now, and with the waiter if the batch is refused.
    /// Nothing is cloned as a rule: counts that all producers touch would be what they wait for most.
    pub(crate) fn hand_over(
        &self,
        partition: &TopicPartition,
        batch: EncodedBatch,
        waiter: AppendWaiter,
    ) -> Result<Option<(Arc<Partition>, MustDo)>, Refusal> {
        let state = self.state.read();
        let Some(Slot::Open(open)) = state.partitions.get(partition.partition.0 as usize) else {
            drop(state);
            return match self.partition(partition) {
                Err(error) => Err((error, waiter)),
                // It was opened again just now.
                Ok(open) => open
                    .hand_over(batch, waiter)
                    .map(|must_do| Some((open, must_do))),
            };
        };
        let must_do = open.hand_over(batch, waiter)?;
        Ok((!must_do.is_done()).then(|| (Arc::clone(open), must_do)))
    }

    /// All partitions that are open.
    pub(crate) fn open_partitions(&self) -> Vec<Arc<Partition>> {
        let state = self.state.read();
        let open = state.partitions.iter().filter_map(|slot| match slot {
            Slot::Open(open) => Some(Arc::clone(open)),
            Slot::Stopped(_) => None,
        });
        open.collect()
    }

    /// Applies a change that was asked for. One caller at a time.
    pub(crate) fn alter(
        &self,
        environment: &Arc<Environment>,
        change: &TopicChange,
    ) -> LogResult<()> {
        let mut config = self.state.read().config.clone();
        let before = config.partitions;
        change.apply_to(&mut config)?;
        let settings = PartitionSettings::resolve(&config, &environment.options)?;
        make_folders(environment, &self.name, before..config.partitions)?;
        // ORDER: the folders are there before the file speaks of them.
        write_file(environment, &self.name, &config)?;
        for partition in self.open_partitions() {
            partition.change_settings(settings);
        }
        let added: Vec<_> = (before..config.partitions)
            .map(|number| open_slot(environment, &self.name, number, settings))
            .collect();
        let mut state = self.state.write();
        state.partitions.extend(added);
        state.config = config;
        Ok(())
    }

    /// Recovers a partition that is stopped; does nothing about one that works. One caller at a time.
    pub(crate) fn reopen(
        &self,
        environment: &Arc<Environment>,
        partition: &TopicPartition,
    ) -> LogResult<()> {
        let held_from = match self.partition(partition) {
            Ok(open) if !open.is_poisoned() => return Ok(()),
            Ok(open) => {
                open.abandon();
                open.held_from()
            }
            Err(LogError::Stopped { .. }) => None,
            Err(error) => return Err(error),
        };
        let settings = PartitionSettings::resolve(&self.info().config, &environment.options)?;
        let number = partition.partition.0;
        let slot = open_slot(environment, &self.name, number, settings);
        let outcome = match &slot {
            Slot::Open(open) => {
                open.hold_from(held_from);
                Ok(())
            }
            Slot::Stopped(cause) => Err(LogError::Stopped {
                partition: partition.clone(),
                cause: Arc::clone(cause),
            }),
        };
        if let Some(old) = self.state.write().partitions.get_mut(number as usize) {
            *old = slot;
        }
        outcome
    }
}

impl TopicChange {
    fn apply_to(&self, config: &mut TopicConfig) -> LogResult<()> {
        if let Some(partitions) = self.partitions {
            if partitions < config.partitions {
                return Err(LogError::InvalidSetting {
                    name: "partitions".into(),
                    value: partitions.to_string(),
                    reason: format!("there are {} and none can be taken away", config.partitions),
                });
            }
            config.partitions = partitions;
        }
        for (name, value) in &self.settings {
            match value {
                Some(value) => drop(config.settings.insert(name.clone(), value.clone())),
                None => drop(config.settings.remove(name)),
            }
        }
        Ok(())
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

/// The settings in a topic's file.
pub(crate) fn read_topic_file(disk: &dyn Disk, path: &Path) -> LogResult<TopicConfig> {
    let damaged = |reason: String| LogError::CorruptFile {
        path: path.into(),
        reason,
    };
    let body = KIND
        .read(disk, path)?
        .ok_or_else(|| damaged("it vanished".into()))?;
    decode_topic(&body).map_err(|error| damaged(error.to_string()))
}

/// The settings in the body of a topic's file.
pub(crate) fn decode_topic(body: &[u8]) -> serde_json::Result<TopicConfig> {
    let file: TopicFile = serde_json::from_slice(body)?;
    Ok(TopicConfig {
        partitions: file.partitions,
        settings: file.settings,
    })
}

fn open(environment: &Arc<Environment>, name: &str) -> LogResult<Topic> {
    let path = topic_path(environment, name, TOPIC);
    let config = read_topic_file(&*environment.disk, &path)?;
    let settings = PartitionSettings::resolve(&config, &environment.options).map_err(|error| {
        LogError::CorruptFile {
            path,
            reason: error.to_string(),
        }
    })?;
    Ok(open_partitions(environment, name, config, settings))
}

fn open_partitions(
    environment: &Arc<Environment>,
    name: &str,
    config: TopicConfig,
    settings: PartitionSettings,
) -> Topic {
    let name: Arc<str> = name.into();
    let partitions = (0..config.partitions)
        .map(|number| open_slot(environment, &name, number, settings))
        .collect();
    Topic {
        name,
        state: RwLock::new(State { config, partitions }),
    }
}

fn open_slot(
    environment: &Arc<Environment>,
    name: &Arc<str>,
    number: u32,
    settings: PartitionSettings,
) -> Slot {
    let id = TopicPartition::new(Arc::clone(name), number);
    match recovery::open_partition(environment, id.clone(), settings) {
        Ok(partition) => Slot::Open(Arc::new(partition)),
        Err(error) => {
            tracing::error!(partition = %id, %error, "partition is stopped");
            Slot::Stopped(Arc::new(error))
        }
    }
}

/// Makes a new topic durable and opens it.
pub(crate) fn create(
    environment: &Arc<Environment>,
    name: &str,
    config: TopicConfig,
) -> LogResult<Topic> {
    let settings = PartitionSettings::resolve(&config, &environment.options)?;
    if exists(environment, &topic_path(environment, name, DELETED))? {
        finish_deletion(environment, name)?;
    }
    make_folders(environment, name, 0..config.partitions)?;
    write_file(environment, name, &config)?;
    Ok(open_partitions(environment, name, config, settings))
}

/// Makes the folders of new partitions durable; they must be new, or left empty by an attempt that failed.
fn make_folders(environment: &Environment, name: &str, numbers: Range<u32>) -> LogResult<()> {
    let disk = &*environment.disk;
    let name: Arc<str> = name.into();
    for number in numbers {
        let id = TopicPartition::new(Arc::clone(&name), number);
        let dir = layout::partition_dir(&environment.root, &id);
        disk.create_dir(&dir)
            .map_err(LogError::io(|| format!("create \"{}\"", dir.display())))?;
        let leftovers = disk
            .list(&dir)
            .map_err(LogError::io(|| format!("list \"{}\"", dir.display())))?;
        if !leftovers.is_empty() {
            return Err(LogError::FolderNotEmpty { folder: dir });
        }
    }
    small_file::sync_dir(disk, &environment.root)
}

fn write_file(environment: &Environment, name: &str, config: &TopicConfig) -> LogResult<()> {
    let (disk, root) = (&*environment.disk, &environment.root);
    write_file_in(disk, root, name, config)?;
    small_file::sync_dir(disk, &root.join(TOPICS))
}

/// Writes a topic's file below `root`; the caller syncs the folder.
pub(crate) fn write_file_in(
    disk: &dyn Disk,
    root: &Path,
    name: &str,
    config: &TopicConfig,
) -> LogResult<()> {
    let file = TopicFile {
        partitions: config.partitions,
        settings: config.settings.clone(),
    };
    let body = serde_json::to_vec(&file).map_err(|error| LogError::Io {
        attempted: "encode a topic's settings".into(),
        source: error.into(),
    })?;
    small_file::replace(disk, &path_below(root, name, TOPIC), &KIND.frame(&body))
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

fn topic_path(environment: &Environment, name: &str, extension: &str) -> PathBuf {
    path_below(&environment.root, name, extension)
}

fn path_below(root: &Path, name: &str, extension: &str) -> PathBuf {
    root.join(TOPICS).join(format!("{name}.{extension}"))
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
