//! The offset below which everything was synced, in a file of its own. It tells damage from a torn tail: an invalid batch at or above it was never
//! acknowledged and is cut, one below it is a loss that must be reported.
//!
//! The file is overwritten in place after each sync and never synced itself, so it costs one small write. ORDER: it is written after the sync that it
//! speaks of, so whatever version of it survives a power cut, it claims too little rather than too much. After a mere crash of the process it is exact.

use std::path::Path;

use crate::{
    disk::Disk,
    embedded::{
        handles::FileCache,
        layout,
        small_file::{self, FileKind},
    },
    error::{LogError, LogResult},
};

const KIND: FileKind = FileKind {
    name: "highwater-recovery-point",
    version: 1,
};

/// The last recovery point of a partition that is readable; `None` claims nothing.
pub(crate) fn read(disk: &dyn Disk, dir: &Path) -> LogResult<Option<i64>> {
    match KIND.read(disk, &dir.join(layout::RECOVERY_POINT)) {
        // It may have been torn by the crash.
        Err(LogError::CorruptFile { .. }) => Ok(None),
        read => Ok(read?.and_then(|body| std::str::from_utf8(&body).ok()?.trim().parse().ok())),
    }
}

/// Writes a durable one into a folder that has none; the caller syncs the folder.
pub(crate) fn create(disk: &dyn Disk, dir: &Path, offset: i64) -> LogResult<()> {
    let path = dir.join(layout::RECOVERY_POINT);
    small_file::replace(disk, &path, &frame(offset))
}

/// Everything below `offset` is on disk. A failure is no harm: the point just stays behind.
pub(crate) fn write(files: &FileCache, dir: &Path, offset: i64) {
    let path = dir.join(layout::RECOVERY_POINT);
    let content = frame(offset);
    if let Err(error) = files
        .get_or_create(&path)
        .and_then(|file| file.write_at(&content, 0))
    {
        tracing::debug!(path = %path.display(), %error, "recovery point stays behind");
    }
}

/// Always the same length, below one sector.
fn frame(offset: i64) -> Vec<u8> {
    KIND.frame(format!("{offset:020}\n").as_bytes())
}
