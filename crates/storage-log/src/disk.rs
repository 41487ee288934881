//! The disk as the log sees it: two small traits, so that every write, sync and rename can be recorded, failed or lost in a test.
//!
//! What the log assumes of a medium, and what [`MemoryDisk::crash`] takes away accordingly:
//! - bytes written are safe after [`DiskFile::sync_data`]; before it any part of them may be missing after a crash, in any order;
//! - a name created, renamed or removed is safe after [`Disk::sync_dir`] of its folder; before it a crash keeps some of the folder's changes,
//!   of each name those up to some moment;
//! - after a failed sync nothing is known about what was written since the last good one;
//! - a removed file stays readable through handles that are open.

mod file;
mod memory;

use std::{fmt, io, path::Path, sync::Arc};

pub use file::FileDisk;
pub use memory::MemoryDisk;

/// A tree of folders and files.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Creates a file, which must not exist.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name in the same folder; replaces what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Creates a folder; fine if it exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Names in a folder, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Takes the lock file for this process and writes `owner` into it. Fails with [`io::ErrorKind::WouldBlock`] when somebody has it.
    /// Dropping the lock, or the process ending in any way, frees it.
    fn lock(&self, path: &Path, owner: &str) -> io::Result<Box<dyn DiskLock>>;
}

/// An open file. Positions are explicit: handles are shared between threads.
pub trait DiskFile: Send + Sync + fmt::Debug {
    /// Fills `buf` from `position`; fewer bytes only at the end of the file.
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize>;

    /// Whether the byte at `position` can be read without the medium, as far as it is known.
    fn is_cached(&self, _position: u64) -> bool {
        true
    }

    /// Writes all of `bytes` at `position`. After an error any part of them may have been written.
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;

    /// Cuts or extends the file.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes content and length durable.
    fn sync_data(&self) -> io::Result<()>;

    /// Current length.
    fn len(&self) -> io::Result<u64>;

    /// The file holds nothing.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A lock that is held as long as it lives.
pub trait DiskLock: Send + Sync + fmt::Debug {}
