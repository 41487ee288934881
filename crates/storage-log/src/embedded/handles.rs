//! Open files of sealed segments, shared by all readers and bounded in number.

use std::{collections::HashMap, io, path::PathBuf, sync::Arc};

use parking_lot::Mutex;

use crate::disk::{Disk, DiskFile};

/// A cache of open files; the longest unused one is closed for a new one. Whoever holds a handle may go on using it.
#[derive(Debug)]
pub(crate) struct FileCache {
    disk: Arc<dyn Disk>,
    limit: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    files: HashMap<PathBuf, (u64, Arc<dyn DiskFile>)>,
    clock: u64,
}

impl FileCache {
    pub(crate) fn new(disk: Arc<dyn Disk>, limit: usize) -> Self {
        Self {
            disk,
            limit: limit.max(1),
            open: Mutex::default(),
        }
    }

    /// The file at `path`, opened if need be.
    pub(crate) fn get(&self, path: &PathBuf) -> io::Result<Arc<dyn DiskFile>> {
        let mut open = self.open.lock();
        open.clock += 1;
        let now = open.clock;
        if let Some((used, file)) = open.files.get_mut(path) {
            *used = now;
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open(path)?;
        if open.files.len() >= self.limit {
            let oldest = open
                .files
                .iter()
                .min_by_key(|(_, (used, _))| *used)
                .map(|(path, _)| path.clone());
            if let Some(oldest) = oldest {
                open.files.remove(&oldest);
            }
        }
        open.files.insert(path.clone(), (now, Arc::clone(&file)));
        Ok(file)
    }

    /// Closes the file for all who ask from now on.
    pub(crate) fn forget(&self, path: &PathBuf) {
        self.open.lock().files.remove(path);
    }
}
