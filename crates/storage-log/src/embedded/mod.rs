//! The embedded log: partitions as folders of segment files on a [`Disk`].
//!
//! One lock per partition orders its writers; readers take what was published under another, short one, and read files without any. Topics are
//! a map behind a read-write lock that only creation and deletion write.

mod aborted;
mod admission;
mod backup;
pub(crate) mod compaction;
mod duplicates;
mod group_commit;
mod handles;
pub(crate) mod index;
pub(crate) mod layout;
mod listeners;
mod log;
mod log_start;
mod pace;
mod partition;
mod periodic;
mod produce;
mod published;
mod read;
mod read_caches;
mod recovery;
mod recovery_point;
mod removal;
mod retention;
mod rolling;
pub(crate) mod scan;
mod segment;
mod settings;
pub(crate) mod small_file;
pub(crate) mod snapshot;
mod sync_pool;
mod syncing;
mod tail;
mod topics;
mod verify;
mod waiting;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize},
    },
};

pub use backup::LogBackup;
pub use log::EmbeddedLog;
pub use verify::{Finding, Severity, VerifyReport, verify};

use crate::{clock::Clock, disk::Disk, options::LogOptions, producer::AbortedTransaction};
use handles::FileCache;
use index::SegmentIndex;
use listeners::Listeners;
use pace::Pace;
use read_caches::SegmentCache;
use tail::TailBudget;

/// What all partitions share.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) root: PathBuf,
    pub(crate) options: LogOptions,
    pub(crate) files: FileCache,
    pub(crate) tails: Arc<TailBudget>,
    pub(crate) indexes: SegmentCache<SegmentIndex>,
    pub(crate) aborted: SegmentCache<Vec<AbortedTransaction>>,
    pub(crate) pace: Pace,
    pub(crate) listeners: Listeners,
    /// The log is being dropped: long work ends as soon as it can.
    pub(crate) stopping: AtomicBool,
    /// Backups that are under way: what they copy stays where it is.
    pub(crate) backups: AtomicUsize,
}

/// Decodes the bodies of manifests, for the fuzz targets.
pub(crate) fn decode_manifests(body: &[u8]) {
    let _ = segment::SealedSegment::decode(body);
    let _ = topics::decode_topic(body);
    let _ = compaction::decode_plan(body);
}
