//! Checking every byte of a data folder, without changing one.
//!
//! Every batch is decoded down to its records, indexes are compared with what the log gives, and small files with their checksums. What cannot be
//! noticed is a change of the leader epoch in a batch's header, which no checksum covers and nothing reads.
//!
//! The folder is locked meanwhile, so a log that is in use is not checked.

mod partition;
mod report;

use std::{collections::BTreeSet, path::Path};

use crate::{
    disk::Disk,
    embedded::{
        layout::{self, DELETED, TEMPORARY, TOPIC, TOPICS},
        log::lock_folder,
        small_file,
        topics::read_topic_file,
    },
    error::{LogError, LogResult},
    log::TopicPartition,
};

use partition::PartitionCheck;
use report::Checked;
pub use report::{Finding, Severity, VerifyReport};

/// Checks the log in `dir` of some disk. `progress` is told how many bytes were checked so far.
pub fn verify(
    disk: &dyn Disk,
    dir: &Path,
    progress: &mut dyn FnMut(u64),
) -> LogResult<VerifyReport> {
    let topics_dir = dir.join(TOPICS);
    let names = disk.list(&topics_dir).map_err(LogError::io(|| {
        format!("list \"{}\"", topics_dir.display())
    }))?;
    let _lock = lock_folder(disk, dir)?;
    let mut checked = Checked::new(progress);
    let mut expected = BTreeSet::from([TOPICS.to_owned(), layout::LOCK.to_owned()]);
    let mut names: Vec<_> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    for file in names {
        let path = topics_dir.join(file);
        match file.rsplit_once('.') {
            Some((topic, TOPIC)) => {
                checked.report.topics += 1;
                check_topic(disk, dir, topic, &path, &mut expected, &mut checked)?;
            }
            Some((_, DELETED)) => checked.note(&path, "a deletion that the next start finishes"),
            Some((_, TEMPORARY)) => checked.note(&path, "left from a write that was interrupted"),
            _ => checked.note(&path, "nothing that the log has written"),
        }
    }
    let root = disk
        .list(dir)
        .map_err(LogError::io(|| format!("list \"{}\"", dir.display())))?;
    for name in root.iter().filter(|name| !expected.contains(*name)) {
        checked.note(&dir.join(name), "belongs to no topic");
    }
    Ok(checked.report)
}

fn check_topic(
    disk: &dyn Disk,
    dir: &Path,
    topic: &str,
    path: &Path,
    expected: &mut BTreeSet<String>,
    checked: &mut Checked<'_>,
) -> LogResult<()> {
    let bytes = small_file::read_whole(disk, path)?.map_or(0, |bytes| bytes.len());
    checked.count(bytes as u64);
    let config = match read_topic_file(disk, path) {
        Ok(config) => config,
        Err(error @ (LogError::CorruptFile { .. } | LogError::NewerFormat { .. })) => {
            checked.damage(path, None, error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for number in 0..config.partitions {
        let id = TopicPartition::new(topic, number);
        expected.insert(id.to_string());
        checked.report.partitions += 1;
        PartitionCheck {
            disk,
            dir: &layout::partition_dir(dir, &id),
            id: &id,
        }
        .run(checked)?;
    }
    Ok(())
}
