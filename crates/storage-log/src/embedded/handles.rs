//! Open files, shared by readers and writers and bounded in number.
//!
//! A handle may be closed whenever nobody uses it, with one exception: a file with bytes that are not synced stays open in the hands of its
//! partition, because an error in writing those bytes back is only sure to be reported to a handle that was open at the time.

use std::{collections::HashMap, io, path::Path, sync::Arc};

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
    files: HashMap<Arc<Path>, (u64, Arc<dyn DiskFile>)>,
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
    pub(crate) fn get(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.get_with(path, || self.disk.open(path))
    }

    /// The file at `path`, created if it does not exist.
    pub(crate) fn get_or_create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.get_with(path, || match self.disk.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.disk.create(path),
            opened => opened,
        })
    }

    fn get_with(
        &self,
        path: &Path,
        open: impl FnOnce() -> io::Result<Arc<dyn DiskFile>>,
    ) -> io::Result<Arc<dyn DiskFile>> {
        let mut cache = self.open.lock();
        cache.clock += 1;
        let now = cache.clock;
        if let Some((used, file)) = cache.files.get_mut(path) {
            *used = now;
            return Ok(Arc::clone(file));
        }
        if cache.files.len() >= self.limit {
            let oldest = cache
                .files
                .iter()
                .min_by_key(|(_, (used, _))| *used)
                .map(|(path, _)| Arc::clone(path));
            if let Some(oldest) = oldest {
                cache.files.remove(&oldest);
            }
        }
        let file = open()?;
        cache.files.insert(path.into(), (now, Arc::clone(&file)));
        Ok(file)
    }

    /// Closes all files of a folder.
    pub(crate) fn forget_below(&self, dir: &Path) {
        self.open
            .lock()
            .files
            .retain(|path, _| path.parent() != Some(dir));
    }

    /// Closes the file for all who ask from now on.
    pub(crate) fn forget(&self, path: &Path) {
        self.open.lock().files.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::MemoryDisk;

    #[test]
    fn the_longest_unused_file_is_closed() {
        let disk = Arc::new(MemoryDisk::new());
        let cache = FileCache::new(disk, 2);
        let [a, b, c] = ["/a", "/b", "/c"].map(Path::new);
        assert!(cache.get(a).is_err(), "there is no such file");
        let first = cache.get_or_create(a).expect("create");
        cache.get_or_create(b).expect("create");
        assert!(Arc::ptr_eq(&first, &cache.get(a).expect("open")));
        cache.get_or_create(c).expect("create");
        assert_eq!(cache.open.lock().files.len(), 2);
        assert!(
            Arc::ptr_eq(&first, &cache.get(a).expect("still open")),
            "b was used longest ago"
        );
    }
}
