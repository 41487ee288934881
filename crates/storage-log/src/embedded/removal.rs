//! Removing files: of one segment, or of a whole partition.

use std::{io, path::Path};

use crate::{
    embedded::{Environment, layout::SegmentFile, small_file},
    error::{LogError, LogResult},
};

/// Removes the files of a segment, fine if they are gone.
pub(crate) fn remove_segment_files(
    environment: &Environment,
    dir: &Path,
    base: i64,
) -> LogResult<()> {
    environment.files.forget(&SegmentFile::Log.path(dir, base));
    // ORDER: the log goes last, so that what is left after a crash is found by it.
    for kind in SegmentFile::ALL.into_iter().rev() {
        if kind == SegmentFile::Snapshot {
            continue;
        }
        let path = kind.path(dir, base);
        small_file::remove_if_there(&*environment.disk, &path)
            .map_err(LogError::io(|| format!("remove \"{}\"", path.display())))?;
    }
    Ok(())
}

/// Removes the files of a segment that lies before the log start. What stays is removed when the partition is opened again.
pub(crate) fn remove_segment(environment: &Environment, dir: &Path, base: i64) {
    if let Err(error) = remove_segment_files(environment, dir, base) {
        tracing::warn!(%error, "a file of a dropped segment stays");
    }
}

/// Removes a partition's folder with all that is in it; fine if it is gone.
pub(crate) fn remove_partition_dir(environment: &Environment, dir: &Path) -> LogResult<()> {
    let failed = || LogError::io(|| format!("remove \"{}\"", dir.display()));
    let names = match environment.disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(failed())?,
    };
    for name in names {
        let path = dir.join(name);
        environment.files.forget(&path);
        environment.disk.remove(&path).map_err(failed())?;
    }
    environment.disk.remove_dir(dir).map_err(failed())
}
