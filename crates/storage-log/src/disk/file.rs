//! The operating system's files.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
};

use super::{Disk, DiskFile, DiskLock};

/// Real files.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileDisk;

impl Disk for FileDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(path)?,
        ))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(
            OpenOptions::new().read(true).write(true).open(path)?,
        ))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        // A name that is not UTF-8 is not one of ours.
        let names = fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(io::Result::transpose).collect()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path, owner: &str) -> io::Result<Box<dyn DiskLock>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        file.try_lock().map_err(|refused| match refused {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })?;
        // In this order: whoever asks in between finds a name, at worst with the rest of another behind it.
        FileExt::write_all_at(&file, owner.as_bytes(), 0)?;
        file.set_len(owner.len() as u64)?;
        Ok(Box::new(FileLock { _file: file }))
    }
}

/// Holds the operating system's lock; closing the file frees it.
#[derive(Debug)]
struct FileLock {
    _file: File,
}

impl DiskLock for FileLock {}

impl DiskFile for File {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match FileExt::read_at(self, &mut buf[filled..], position + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    #[cfg(target_os = "linux")]
    fn is_cached(&self, position: u64) -> bool {
        use rustix::io::{Errno, ReadWriteFlags};

        let mut byte = [0];
        let read = rustix::io::preadv2(
            self,
            &mut [io::IoSliceMut::new(&mut byte)],
            position,
            ReadWriteFlags::NOWAIT,
        );
        // A file system that does not know the flag answers with another error.
        !matches!(read, Err(Errno::AGAIN))
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.write_all_at(bytes, position)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
