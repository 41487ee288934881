//! The offset below which everything was synced, in a file of its own. It tells damage from a torn tail: an invalid batch at or above it was never
//! acknowledged and is cut, one below it is a loss that must be reported.
//!
//! The file is overwritten in place after each sync and never synced itself, so it costs one small write. ORDER: it is written after the sync that it
//! speaks of, so whatever version of it survives a power cut, it claims too little rather than too much. After a mere crash of the process it is exact.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    disk::{Disk, DiskFile},
    embedded::{layout, small_file::FileKind},
    error::{LogError, LogResult},
};

const KIND: FileKind = FileKind {
    name: "highwater-recovery-point",
    version: 1,
};

/// The recovery point of a partition.
#[derive(Debug)]
pub(crate) struct RecoveryPoint {
    path: PathBuf,
    file: Mutex<Option<Arc<dyn DiskFile>>>,
}

impl RecoveryPoint {
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            path: dir.join(layout::RECOVERY_POINT),
            file: Mutex::new(None),
        }
    }

    /// The last recovery point that is readable; `None` claims nothing.
    pub(crate) fn read(disk: &dyn Disk, dir: &Path) -> LogResult<Option<i64>> {
        match KIND.read(disk, &dir.join(layout::RECOVERY_POINT)) {
            // It may have been torn by the crash.
            Err(LogError::CorruptFile { .. }) => Ok(None),
            read => Ok(read?.and_then(|body| std::str::from_utf8(&body).ok()?.trim().parse().ok())),
        }
    }

    /// Everything below `offset` is on disk. A failure is no harm: the point just stays behind.
    pub(crate) fn write(&self, disk: &dyn Disk, offset: i64) {
        if let Err(error) = self.try_write(disk, offset) {
            tracing::debug!(path = %self.path.display(), %error, "recovery point stays behind");
        }
    }

    fn try_write(&self, disk: &dyn Disk, offset: i64) -> io::Result<()> {
        let mut file = self.file.lock();
        let file = match &*file {
            Some(file) => file,
            None => file.insert(disk.open(&self.path).or_else(|_| disk.create(&self.path))?),
        };
        // Always the same length, below one sector.
        file.write_at(&KIND.frame(format!("{offset:020}\n").as_bytes()), 0)
    }
}
