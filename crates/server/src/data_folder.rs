//! The data folder: its layout, and the lock that keeps a second process out.
//!
//! ```text
//! LOCK     held by the running process; says nothing when nobody holds it
//! log/     topics
//! state/   checkpoints of the continuous queries
//! BACKUP   in a backup only: what it is of (see `restore`)
//! ```

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::error::ServerError;

/// Folder of the topics in a data folder.
pub const LOG: &str = "log";
/// Folder of the queries' state in a data folder.
pub const STATE: &str = "state";

/// A data folder that this process alone uses, until dropped.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    _lock: File,
}

impl DataFolder {
    /// Makes the folder if it is absent and locks it.
    pub fn open(path: &Path) -> Result<Self, ServerError> {
        let unusable = |source: io::Error| ServerError::DataFolder {
            path: path.to_owned(),
            source,
        };
        fs::create_dir_all(path).map_err(unusable)?;
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .read(true)
            .open(path.join("LOCK"))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ServerError::DataFolderInUse {
                    path: path.to_owned(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        // For people who look into the folder; nothing reads it.
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(unusable)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Folder of the topics.
    pub fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// Folder of the queries' state.
    pub fn state(&self) -> PathBuf {
        self.path.join(STATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_opener_is_refused_until_the_first_is_gone() {
        let parent = tempfile::tempdir().expect("temporary folder");
        let path = parent.path().join("data");
        let first = DataFolder::open(&path).expect("first opens");
        assert!(matches!(
            DataFolder::open(&path),
            Err(ServerError::DataFolderInUse { .. })
        ));
        drop(first);
        DataFolder::open(&path).expect("free again");
    }
}
