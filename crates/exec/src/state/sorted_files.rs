//! Sorted files: a large change goes into the database as files in key order, beside its memtable.
//!
//! What goes through the memtable is copied into a batch, sorted by a skip list, written to a file and compacted into the levels below. A change
//! that is in key order already needs only the file: the database takes it over by a link, into the lowest level that has nothing of its
//! range, and gives all of it one sequence number, so snapshots from before do not see it.
//!
//! The files are written in a folder below the live database and are as much scratch as that. Whatever fails, what was not taken over is
//! removed again: on a full disk it must not stand in the way of the next try.
//!
//! ORDER: a file is synced before the database names it; a checkpoint links files that are whole.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rocksdb::{DB, IngestExternalFileOptions, Options, SstFileWriter};

use crate::error::{ExecError, ExecResult};

/// Bytes of keys and values after which a file is closed: what the database itself makes its files by.
const FILE_BYTES: usize = 64 << 20;

/// Where sorted files are written, and how.
pub struct SortedFileFolder {
    path: PathBuf,
    options: Options,
    /// Number of the next file: several threads write at the same time.
    next: AtomicU64,
}

/// Files of one change, in key order.
pub struct SortedFiles<'a> {
    folder: &'a SortedFileFolder,
    open: Option<OpenFile<'a>>,
    /// All files so far, the open one last.
    paths: Vec<PathBuf>,
}

struct OpenFile<'a> {
    writer: SstFileWriter<'a>,
    bytes: usize,
}

impl SortedFileFolder {
    /// A folder below the database in `database`, which has the given options.
    pub fn new(database: &Path, options: Options) -> ExecResult<Self> {
        let path = database.join("sorted");
        fs::create_dir_all(&path).map_err(|source| ExecError::Io {
            action: "create",
            path: path.display().to_string(),
            source,
        })?;
        Ok(Self {
            path,
            options,
            next: AtomicU64::new(0),
        })
    }

    /// No file yet.
    pub fn files(&self) -> SortedFiles<'_> {
        SortedFiles {
            folder: self,
            open: None,
            paths: Vec::new(),
        }
    }
}

impl SortedFiles<'_> {
    /// Adds a key behind all that were added; without a value it removes the key.
    pub fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> ExecResult<()> {
        if self
            .open
            .as_ref()
            .is_some_and(|file| file.bytes >= FILE_BYTES)
        {
            self.close()?;
        }
        let file = match &mut self.open {
            Some(file) => file,
            None => {
                let number = self.folder.next.fetch_add(1, Ordering::Relaxed);
                let path = self.folder.path.join(format!("{number:06}.sst"));
                let writer = SstFileWriter::create(&self.folder.options);
                self.paths.push(path.clone());
                writer.open(&path)?;
                self.open.insert(OpenFile { writer, bytes: 0 })
            }
        };
        match value {
            Some(value) => file.writer.put(key, value)?,
            None => file.writer.delete(key)?,
        }
        file.bytes += key.len() + value.map_or(0, <[u8]>::len);
        Ok(())
    }

    fn close(&mut self) -> ExecResult<()> {
        if let Some(mut file) = self.open.take() {
            file.writer.finish()?;
        }
        Ok(())
    }

    /// Hands the files to the database: it has all of them, durably, or none.
    pub fn ingest(mut self, db: &DB) -> ExecResult<()> {
        self.close()?;
        if self.paths.is_empty() {
            return Ok(());
        }
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        db.ingest_external_file_opts(&options, self.paths.iter().collect())?;
        Ok(())
    }
}

impl Drop for SortedFiles<'_> {
    fn drop(&mut self) {
        self.open = None;
        for path in &self.paths {
            // Gone, as a rule: the database has unlinked what it took over.
            let _ = fs::remove_file(path);
        }
    }
}
