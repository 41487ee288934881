//! State for a backup: the checkpoint of one step, held while it is copied.
//!
//! The checkpoint is linked under a name of its own between two steps, which takes no longer than writing it; newer checkpoints come and go
//! meanwhile. Its files never change.
//!
//! ORDER: the manifest is copied last, so a copy that was cut off holds no checkpoint.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    checkpoint::{self, CheckpointStore},
    error::{ExecError, ExecResult},
    pipeline::Pipeline,
};

/// Bytes that are copied at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The engine's state at one step, to be copied.
#[derive(Debug)]
pub struct FrozenState {
    folder: PathBuf,
    step: u64,
    bytes: u64,
}

impl Drop for FrozenState {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(folder = %self.folder.display(), %error, "the checkpoint that was copied stays until the next start");
        }
    }
}

impl FrozenState {
    /// The step.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Bytes that a copy takes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies the checkpoint into a state folder that has none. `copied` hears of each piece: its bytes; an error of it ends the copy.
    pub fn copy_to(
        &self,
        state_dir: &Path,
        copied: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> ExecResult<()> {
        let target = checkpoint::first_folder(state_dir);
        let database = target.join(checkpoint::DATABASE);
        fs::create_dir_all(&database).map_err(checkpoint::io("create", &database))?;
        for (from, name) in files(&self.folder.join(checkpoint::DATABASE))? {
            copy(&from, &database.join(name), copied)?;
        }
        checkpoint::sync_folder(&database)?;
        let manifest = checkpoint::MANIFEST;
        copy(&self.folder.join(manifest), &target.join(manifest), copied)?;
        for folder in target.ancestors().take(3) {
            checkpoint::sync_folder(folder)?;
        }
        Ok(())
    }
}

impl Pipeline {
    /// Writes a checkpoint and holds it. No step may be pending.
    pub fn freeze(&mut self) -> ExecResult<FrozenState> {
        self.checkpoint_now()?;
        self.checkpoints.freeze_newest()
    }
}

impl CheckpointStore {
    /// Links the newest checkpoint under a name of its own.
    fn freeze_newest(&self) -> ExecResult<FrozenState> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let newest = self.list()?.into_iter().next();
        let (_, newest) =
            newest.ok_or_else(|| ExecError::Internal("there is no checkpoint to copy".into()))?;
        let step = checkpoint::read_manifest(&newest)?.step;
        let folder = self.frozen(NEXT.fetch_add(1, Ordering::Relaxed));
        let mut frozen = FrozenState {
            folder: folder.clone(),
            step,
            bytes: 0,
        };
        for part in ["", checkpoint::DATABASE] {
            let (from, to) = (newest.join(part), folder.join(part));
            fs::create_dir_all(&to).map_err(checkpoint::io("create", &to))?;
            for (file, name) in files(&from)? {
                let link = to.join(name);
                fs::hard_link(&file, &link).map_err(checkpoint::io("link", &link))?;
                frozen.bytes += fs::metadata(&file)
                    .map_err(checkpoint::io("read", &file))?
                    .len();
            }
        }
        Ok(frozen)
    }
}

/// The files in a folder, with their names.
fn files(folder: &Path) -> ExecResult<Vec<(PathBuf, std::ffi::OsString)>> {
    let failed = || checkpoint::io("list", folder);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        if entry.file_type().map_err(failed())?.is_file() {
            files.push((entry.path(), entry.file_name()));
        }
    }
    Ok(files)
}

/// Copies a file that never changes; it is on disk then.
fn copy(from: &Path, to: &Path, copied: &mut dyn FnMut(u64) -> io::Result<()>) -> ExecResult<()> {
    let mut source = File::open(from).map_err(checkpoint::io("read", from))?;
    let mut target = File::create_new(to).map_err(checkpoint::io("create", to))?;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = io::Read::read(&mut source, &mut chunk).map_err(checkpoint::io("read", from))?;
        if read == 0 {
            break;
        }
        io::Write::write_all(&mut target, &chunk[..read])
            .and_then(|()| copied(read as u64))
            .map_err(checkpoint::io("write", to))?;
    }
    target.sync_all().map_err(checkpoint::io("sync", to))
}
