//! Putting one segment in the place of several, so that a crash leaves the old ones or the new one.
//!
//! ORDER: the new files are complete and durable under names of their own; then the plan of the exchange is made durable, and from then on it will
//! happen; then they are renamed over those of the first segment, and the files of the others go; after the folder is synced the plan goes. Every
//! step can be done again, and a start that finds a plan does just that. Without a plan the new files are leftovers.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use serde::{Deserialize, Serialize};

use crate::{
    disk::Disk,
    embedded::{
        Environment,
        layout::{self, CLEANED, SegmentFile},
        partition::Partition,
        removal::remove_segment_files,
        segment::SealedSegment,
        small_file::{self, FileKind},
    },
    error::{LogError, LogResult},
};

const KIND: FileKind = FileKind {
    name: "highwater-exchange",
    version: 1,
};

/// The files that an exchange replaces. The log goes last: who opens it later finds the other files beside it.
const KINDS: [SegmentFile; 5] = [
    SegmentFile::Seal,
    SegmentFile::OffsetIndex,
    SegmentFile::TimeIndex,
    SegmentFile::TransactionIndex,
    SegmentFile::Log,
];

/// An exchange that will happen.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Segment whose files are replaced.
    base: i64,
    /// Segments whose records it holds as well.
    absorbed: Vec<i64>,
}

/// Whether an exchange took place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exchange {
    Done,
    /// One of the old segments is gone meanwhile, or the partition is, or a backup began.
    Overtaken,
}

impl Partition {
    /// Puts a segment, complete under names of its own, in the place of `old`, which are neighbours.
    pub(super) fn exchange(
        &self,
        old: &[Arc<SealedSegment>],
        replacement: SealedSegment,
    ) -> LogResult<Exchange> {
        let _removing = self.removing.lock();
        let environment = &self.environment;
        let disk = &*environment.disk;
        let copied = environment.backups.load(Ordering::Acquire) > 0;
        let Some(first) = old.first().filter(|_| !copied && self.holds(old)) else {
            discard_leftovers(disk, &self.dir)?;
            return Ok(Exchange::Overtaken);
        };
        let plan = Plan {
            base: first.base(),
            absorbed: old[1..].iter().map(|segment| segment.base()).collect(),
        };
        plan.write(disk, &self.dir)?;
        let finished = self
            .swap(old, &plan, replacement)
            .and_then(|()| plan.finish(environment, &self.dir));
        if let Err(error) = finished {
            // Names and memory may differ now; recovery goes on from the plan.
            self.commit.note(
                &self.id,
                Err(std::io::Error::other(format!(
                    "segments could not be exchanged: {error}"
                ))),
            )?;
            return Err(error);
        }
        Ok(Exchange::Done)
    }

    fn holds(&self, old: &[Arc<SealedSegment>]) -> bool {
        let published = self.published.read();
        !self.is_over()
            && old.iter().all(|segment| {
                published
                    .sealed
                    .iter()
                    .any(|there| Arc::ptr_eq(there, segment))
            })
    }

    /// Renames under the lock of the readers: whoever looks for a file with the old list in hand finds the generation changed.
    fn swap(
        &self,
        old: &[Arc<SealedSegment>],
        plan: &Plan,
        replacement: SealedSegment,
    ) -> LogResult<()> {
        let mut published = self.published.write();
        plan.rename(&*self.environment.disk, &self.dir)?;
        self.environment
            .files
            .forget(&SegmentFile::Log.path(&self.dir, plan.base));
        published.exchange(old, replacement);
        Ok(())
    }
}

impl Plan {
    fn write(&self, disk: &dyn Disk, dir: &Path) -> LogResult<()> {
        let body = serde_json::to_vec(self).map_err(|error| LogError::Io {
            attempted: "encode an exchange of segments".into(),
            source: error.into(),
        })?;
        // ORDER: the new names are durable before the plan that speaks of them.
        small_file::sync_dir(disk, dir)?;
        small_file::replace(disk, &dir.join(layout::EXCHANGE), &KIND.frame(&body))?;
        small_file::sync_dir(disk, dir)
    }

    /// Gives the new files their names; those that have them already are passed over.
    fn rename(&self, disk: &dyn Disk, dir: &Path) -> LogResult<()> {
        for kind in KINDS {
            let target = kind.path(dir, self.base);
            match disk.rename(&kind.cleaned_path(dir, self.base), &target) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                renamed => {
                    renamed.map_err(LogError::io(|| format!("replace \"{}\"", target.display())))?
                }
            }
        }
        Ok(())
    }

    /// Removes what was absorbed, and in the end the plan.
    fn finish(&self, environment: &Environment, dir: &Path) -> LogResult<()> {
        let disk = &*environment.disk;
        for base in &self.absorbed {
            remove_segment_files(environment, dir, *base)?;
        }
        small_file::sync_dir(disk, dir)?;
        let path = dir.join(layout::EXCHANGE);
        small_file::remove_if_there(disk, &path)
            .map_err(LogError::io(|| format!("remove \"{}\"", path.display())))?;
        small_file::sync_dir(disk, dir)
    }
}

/// The plan in a file's body.
pub(crate) fn decode_plan(body: &[u8]) -> serde_json::Result<Plan> {
    serde_json::from_slice(body)
}

/// Finishes an exchange that a crash interrupted, or removes what is left of one that will not happen.
pub(crate) fn recover(environment: &Environment, dir: &Path) -> LogResult<()> {
    let disk = &*environment.disk;
    let path = dir.join(layout::EXCHANGE);
    if let Some(body) = KIND.read(disk, &path)? {
        let plan = decode_plan(&body).map_err(|error| LogError::CorruptFile {
            path,
            reason: error.to_string(),
        })?;
        plan.rename(disk, dir)?;
        plan.finish(environment, dir)?;
    }
    discard_leftovers(disk, dir)
}

/// Removes files of a segment that was being written.
pub(super) fn discard_leftovers(disk: &dyn Disk, dir: &Path) -> LogResult<()> {
    let names = disk
        .list(dir)
        .map_err(LogError::io(|| format!("list \"{}\"", dir.display())))?;
    for name in names {
        if name
            .rsplit_once('.')
            .is_some_and(|(_, extension)| extension == CLEANED)
        {
            let path = dir.join(name);
            small_file::remove_if_there(disk, &path)
                .map_err(LogError::io(|| format!("remove \"{}\"", path.display())))?;
        }
    }
    Ok(())
}
