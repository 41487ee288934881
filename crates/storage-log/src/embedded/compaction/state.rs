//! How far a partition is compacted, in a small file. When it is lost, everything is compacted once more.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{
    disk::Disk,
    embedded::{
        layout,
        small_file::{self, FileKind},
    },
    error::{LogError, LogResult},
};

const KIND: FileKind = FileKind {
    name: "highwater-compaction",
    version: 1,
};

/// How far a partition is compacted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CompactionState {
    /// Below this offset each key was seen by a compaction.
    pub(crate) clean_to: i64,
    /// Segments that begin below this offset may have gaps. ORDER: durable before the first such segment.
    pub(crate) gaps_below: i64,
    /// When the first tombstone may go (milliseconds since the epoch).
    pub(crate) next_horizon: Option<i64>,
}

impl CompactionState {
    /// The state that is stored; one that is damaged counts as none.
    pub(crate) fn read(disk: &dyn Disk, dir: &Path) -> LogResult<Self> {
        let body = match KIND.read(disk, &dir.join(layout::COMPACTION)) {
            Err(LogError::CorruptFile { path, reason }) => {
                tracing::warn!(path = %path.display(), reason, "the partition is compacted from its start");
                return Ok(Self::default());
            }
            read => read?,
        };
        Ok(body
            .and_then(|body| serde_json::from_slice(&body).ok())
            .unwrap_or_default())
    }

    /// Makes the state durable.
    pub(crate) fn write(&self, disk: &dyn Disk, dir: &Path) -> LogResult<()> {
        let body = serde_json::to_vec(self).map_err(|error| LogError::Io {
            attempted: "encode how far a partition is compacted".into(),
            source: error.into(),
        })?;
        small_file::replace(disk, &dir.join(layout::COMPACTION), &KIND.frame(&body))?;
        small_file::sync_dir(disk, dir)
    }
}
