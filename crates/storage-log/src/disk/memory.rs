//! A disk in memory that forgets what was not synced and fails on demand.
//!
//! Each file keeps, beside its current bytes, those that are on the medium and the writes in between. A crash builds a new disk:
//! names go back to the last folder sync plus some of the later changes, files to the last sync plus any choice of the later writes,
//! each whole, torn at a 512-byte sector, or lost. What a failed sync should have written is lost for good. [`MemoryDisk::new`] keeps the current
//! bytes only and is for engines that live in memory.

mod content;
mod faults;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use super::{Disk, DiskFile, DiskLock};
use content::Content;
use faults::Faults;

/// A disk in memory. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
    tracked: bool,
}

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<PathBuf, Arc<Inode>>,
    dirs: BTreeSet<PathBuf>,
    durable_names: BTreeMap<PathBuf, Arc<Inode>>,
    durable_dirs: BTreeSet<PathBuf>,
    /// Changes of names since the last sync of their folder, in order.
    changes: BTreeMap<PathBuf, Vec<NameChange>>,
    locks: BTreeMap<PathBuf, Weak<()>>,
    faults: Faults,
    used: u64,
}

#[derive(Debug, Clone)]
enum NameChange {
    Set(PathBuf, Arc<Inode>),
    Remove(PathBuf),
    SetDir(PathBuf),
    RemoveDir(PathBuf),
}

#[derive(Debug, Default)]
struct Inode {
    content: Mutex<Content>,
}

impl MemoryDisk {
    /// A disk that never crashes.
    pub fn new() -> Self {
        Self::default()
    }

    /// A disk for [`Self::crash`].
    pub fn with_crashes() -> Self {
        Self {
            tracked: true,
            ..Self::default()
        }
    }

    /// Every sync but the next `n` fails.
    pub fn fail_syncs_after(&self, n: Option<u64>) {
        self.state.lock().faults.syncs_left = n;
    }

    /// The power goes after `n` more changes (writes, syncs, renames, ..): all later ones fail.
    pub fn halt_after(&self, n: Option<u64>) {
        self.state.lock().faults.changes_left = n;
    }

    /// Syncs do nothing and say they did: what no checker may accept.
    pub fn ignore_syncs(&self) {
        self.state.lock().faults.lying_syncs = true;
    }

    /// Writes that would exceed so many bytes in all fail with [`io::ErrorKind::StorageFull`], after a part of them was written.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().faults.capacity = bytes;
    }

    /// Changes so far.
    pub fn changes(&self) -> u64 {
        self.state.lock().faults.changes_seen
    }

    /// Syncs so far.
    pub fn syncs(&self) -> u64 {
        self.state.lock().faults.syncs_seen
    }

    /// Bytes in all files.
    pub fn used(&self) -> u64 {
        self.state.lock().used
    }

    /// The disk after a power cut. `choose(n)` decides each uncertain point with a number below `n`; 0 always loses what can be lost.
    pub fn crash(&self, choose: &mut dyn FnMut(usize) -> usize) -> Self {
        assert!(
            self.tracked,
            "a disk that keeps the current bytes only cannot crash"
        );
        let state = self.state.lock();
        let mut names = state.durable_names.clone();
        let mut dirs = state.durable_dirs.clone();
        for changes in state.changes.values() {
            for change in surviving(changes, choose) {
                apply_name_change(&mut names, &mut dirs, change);
            }
        }
        // A folder that did not make it takes its files with it.
        dirs = dirs
            .iter()
            .filter(|dir| {
                dir.ancestors()
                    .skip(1)
                    .all(|up| is_root(up) || dirs.contains(up))
            })
            .cloned()
            .collect();
        names.retain(|path, _| {
            path.parent()
                .is_none_or(|dir| is_root(dir) || dirs.contains(dir))
        });

        let mut files = BTreeMap::new();
        let mut used = 0;
        for (path, inode) in names {
            let bytes = inode.content.lock().after_crash(choose);
            used += bytes.len() as u64;
            files.insert(
                path,
                Arc::new(Inode {
                    content: Mutex::new(Content::settled(bytes, true)),
                }),
            );
        }
        let survivor = State {
            names: files.clone(),
            dirs: dirs.clone(),
            durable_names: files,
            durable_dirs: dirs,
            used,
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(survivor)),
            tracked: true,
        }
    }

    /// Changes one byte of a file behind everybody's back.
    pub fn flip(&self, path: &Path, at: usize, mask: u8) -> io::Result<()> {
        let inode = self
            .state
            .lock()
            .names
            .get(path)
            .cloned()
            .ok_or(io::ErrorKind::NotFound)?;
        let mut content = inode.content.lock();
        let byte = content
            .bytes
            .get_mut(at)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        *byte ^= mask;
        Ok(())
    }

    /// All files with their lengths.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state.lock();
        state
            .names
            .iter()
            .map(|(path, inode)| (path.clone(), inode.content.lock().bytes.len() as u64))
            .collect()
    }

    /// A copy that shares nothing with this disk, without faults.
    pub fn deep_clone(&self) -> Self {
        let state = self.state.lock();
        let names: BTreeMap<_, _> = state
            .names
            .iter()
            .map(|(path, inode)| {
                let bytes = inode.content.lock().bytes.clone();
                (
                    path.clone(),
                    Arc::new(Inode {
                        content: Mutex::new(Content::settled(bytes, self.tracked)),
                    }),
                )
            })
            .collect();
        let copy = State {
            durable_names: names.clone(),
            names,
            dirs: state.dirs.clone(),
            durable_dirs: state.dirs.clone(),
            used: state.used,
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(copy)),
            tracked: self.tracked,
        }
    }

    fn handle(&self, inode: Arc<Inode>) -> Arc<dyn DiskFile> {
        Arc::new(MemoryFile {
            disk: self.clone(),
            inode,
        })
    }

    fn change_name(&self, state: &mut State, dir: &Path, change: NameChange) {
        let State {
            names,
            dirs,
            changes,
            ..
        } = state;
        apply_name_change(names, dirs, &change);
        if self.tracked {
            changes.entry(dir.to_path_buf()).or_default().push(change);
        }
    }
}

/// The changes of one folder that a crash keeps: as a journal keeps them, up to some moment, or for each name up to another.
fn surviving<'a>(
    changes: &'a [NameChange],
    choose: &mut dyn FnMut(usize) -> usize,
) -> Vec<&'a NameChange> {
    if choose(2) == 0 {
        let kept = choose(changes.len() + 1);
        return changes[..kept].iter().collect();
    }
    let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
    for change in changes {
        *counts.entry(change.path()).or_default() += 1;
    }
    for count in counts.values_mut() {
        *count = choose(*count + 1);
    }
    let mut kept = Vec::new();
    for change in changes {
        if let Some(left) = counts.get_mut(change.path()).filter(|left| **left > 0) {
            *left -= 1;
            kept.push(change);
        }
    }
    kept
}

impl NameChange {
    fn path(&self) -> &Path {
        match self {
            Self::Set(path, _)
            | Self::Remove(path)
            | Self::SetDir(path)
            | Self::RemoveDir(path) => path,
        }
    }
}

fn is_root(path: &Path) -> bool {
    path.parent().is_none()
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_path_buf()
}

fn apply_name_change(
    names: &mut BTreeMap<PathBuf, Arc<Inode>>,
    dirs: &mut BTreeSet<PathBuf>,
    change: &NameChange,
) {
    match change {
        NameChange::Set(path, inode) => {
            // A rename is one change, so that no crash can lose the file under both names.
            names.retain(|_, other| !Arc::ptr_eq(other, inode));
            names.insert(path.clone(), Arc::clone(inode));
        }
        NameChange::Remove(path) => {
            names.remove(path);
        }
        NameChange::SetDir(path) => {
            dirs.insert(path.clone());
        }
        NameChange::RemoveDir(path) => {
            dirs.remove(path);
        }
    }
}

impl Disk for MemoryDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        state.faults.change()?;
        let dir = parent(path);
        if !is_root(&dir) && !state.dirs.contains(&dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = Arc::new(Inode::default());
        self.change_name(
            &mut state,
            &dir,
            NameChange::Set(path.to_path_buf(), Arc::clone(&inode)),
        );
        Ok(self.handle(inode))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self
            .state
            .lock()
            .names
            .get(path)
            .cloned()
            .ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(inode))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.faults.change()?;
        debug_assert_eq!(from.parent(), to.parent(), "renames stay in their folder");
        let inode = state
            .names
            .get(from)
            .cloned()
            .ok_or(io::ErrorKind::NotFound)?;
        let replaced = state
            .names
            .get(to)
            .map_or(0, |old| old.content.lock().bytes.len() as u64);
        state.used = state.used.saturating_sub(replaced);
        self.change_name(
            &mut state,
            &parent(to),
            NameChange::Set(to.to_path_buf(), inode),
        );
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.faults.change()?;
        let inode = state
            .names
            .get(path)
            .cloned()
            .ok_or(io::ErrorKind::NotFound)?;
        state.used = state
            .used
            .saturating_sub(inode.content.lock().bytes.len() as u64);
        self.change_name(
            &mut state,
            &parent(path),
            NameChange::Remove(path.to_path_buf()),
        );
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.faults.change()?;
        let missing: Vec<_> = path
            .ancestors()
            .filter(|dir| !is_root(dir) && !state.dirs.contains(*dir))
            .collect();
        for dir in missing.into_iter().rev() {
            self.change_name(
                &mut state,
                &parent(dir),
                NameChange::SetDir(dir.to_path_buf()),
            );
        }
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.faults.change()?;
        if state.names.keys().any(|name| name.parent() == Some(path)) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.change_name(
            &mut state,
            &parent(path),
            NameChange::RemoveDir(path.to_path_buf()),
        );
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        if !is_root(dir) && !state.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let children = state
            .names
            .keys()
            .chain(&state.dirs)
            .filter(|path| path.parent() == Some(dir));
        Ok(children
            .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
            .collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.faults.sync()?;
        if state.faults.lying_syncs {
            return Ok(());
        }
        let State {
            durable_names,
            durable_dirs,
            changes,
            ..
        } = &mut *state;
        for change in changes.remove(dir).unwrap_or_default() {
            apply_name_change(durable_names, durable_dirs, &change);
        }
        Ok(())
    }

    fn lock(&self, path: &Path, _owner: &str) -> io::Result<Box<dyn DiskLock>> {
        let mut state = self.state.lock();
        if state
            .locks
            .get(path)
            .is_some_and(|held| held.strong_count() > 0)
        {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let held = Arc::new(());
        state
            .locks
            .insert(path.to_path_buf(), Arc::downgrade(&held));
        Ok(Box::new(MemoryLock { _held: held }))
    }
}

#[derive(Debug)]
struct MemoryLock {
    _held: Arc<()>,
}

impl DiskLock for MemoryLock {}

#[derive(Debug)]
struct MemoryFile {
    disk: MemoryDisk,
    inode: Arc<Inode>,
}

impl DiskFile for MemoryFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        let content = self.inode.content.lock();
        let rest = usize::try_from(position)
            .ok()
            .and_then(|at| content.bytes.get(at..))
            .unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let at = usize::try_from(position).map_err(io::Error::other)?;
        let mut state = self.disk.state.lock();
        state.faults.change()?;
        let mut content = self.inode.content.lock();
        let growth = (at + bytes.len()).saturating_sub(content.bytes.len()) as u64;
        let free = state
            .faults
            .capacity
            .map_or(u64::MAX, |capacity| capacity.saturating_sub(state.used));
        if growth > free {
            // As real disks do, some of it was written before the disk was full.
            let fits = bytes.len()
                - usize::try_from(growth - free)
                    .unwrap_or(bytes.len())
                    .min(bytes.len());
            content.write(at, &bytes[..fits], self.disk.tracked);
            state.used += free;
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.used += growth;
        content.write(at, bytes, self.disk.tracked);
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let new_len = usize::try_from(len).map_err(io::Error::other)?;
        let mut state = self.disk.state.lock();
        state.faults.change()?;
        let mut content = self.inode.content.lock();
        let old_len = content.bytes.len();
        content.truncate(new_len, self.disk.tracked);
        state.used = (state.used + new_len as u64).saturating_sub(old_len as u64);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let mut content = self.inode.content.lock();
        if state.faults.next_sync_fails() {
            content.fail_sync();
        }
        state.faults.sync()?;
        if !state.faults.lying_syncs {
            content.sync();
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.inode.content.lock().bytes.len() as u64)
    }
}
