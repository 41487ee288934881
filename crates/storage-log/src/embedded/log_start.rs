//! The first offset that is kept, in a small file, once something was dropped.

use std::path::Path;

use crate::{
    disk::Disk,
    embedded::{
        layout,
        small_file::{self, FileKind},
    },
    error::{LogError, LogResult},
};

const KIND: FileKind = FileKind {
    name: "highwater-log-start",
    version: 1,
};

/// The stored log start; `None` while nothing was ever dropped.
pub(crate) fn read(disk: &dyn Disk, dir: &Path) -> LogResult<Option<i64>> {
    let path = dir.join(layout::LOG_START);
    KIND.read(disk, &path)?
        .map(|body| {
            let number = std::str::from_utf8(&body)
                .ok()
                .and_then(|text| text.parse().ok());
            number.ok_or_else(|| LogError::CorruptFile {
                path,
                reason: "it is not a number".into(),
            })
        })
        .transpose()
}

/// Makes the log start durable.
pub(crate) fn write(disk: &dyn Disk, dir: &Path, offset: i64) -> LogResult<()> {
    let path = dir.join(layout::LOG_START);
    small_file::replace(disk, &path, &KIND.frame(offset.to_string().as_bytes()))?;
    small_file::sync_dir(disk, dir)
}
