//! Small metadata files: one line that says what the file is and carries a checksum, then the body.
//!
//! ```text
//! highwater-topic 1 crc32c=9ae0daaf
//! {"partitions":3,"settings":{}}
//! ```
//!
//! They are replaced as a whole. ORDER: the new content is synced under a temporary name, then renamed, then the folder is synced, so that
//! after a crash the file has either content.

use std::{io, path::Path};

use crate::{
    disk::Disk,
    embedded::layout::TEMPORARY,
    error::{LogError, LogResult},
};

/// Largest file that is read as a whole; the largest real ones are snapshots of some thousand producers.
const MAX_BYTES: u64 = 64 << 20;

/// What a file is: its first word, and the version that this release writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileKind {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
}

impl FileKind {
    /// Header line and body.
    pub(crate) fn frame(self, body: &[u8]) -> Vec<u8> {
        let line = format!(
            "{} {} crc32c={:08x}\n",
            self.name,
            self.version,
            checksum(self.version, body)
        );
        [line.as_bytes(), body].concat()
    }

    /// The body of a framed file.
    pub(crate) fn unframe(self, path: &Path, bytes: &[u8]) -> LogResult<Vec<u8>> {
        let damaged = |reason: &str| LogError::CorruptFile {
            path: path.into(),
            reason: reason.into(),
        };
        let end = bytes
            .iter()
            .position(|b| *b == b'\n')
            .ok_or_else(|| damaged("it has no header line"))?;
        let line = std::str::from_utf8(&bytes[..end])
            .map_err(|_| damaged("its header line is not text"))?;
        let body = &bytes[end + 1..];
        let mut words = line.split(' ');
        if words.next() != Some(self.name) {
            return Err(damaged("its header line does not name its kind"));
        }
        let version: u32 = words
            .next()
            // One spelling only, so that no other bytes pass for the same.
            .and_then(|word| word.parse().ok().filter(|n: &u32| n.to_string() == word))
            .ok_or_else(|| damaged("it has no version"))?;
        let stored = words.next().and_then(|word| word.strip_prefix("crc32c="));
        // The version is part of the checksum, so a damaged digit does not pass as a newer release.
        if stored != Some(&format!("{:08x}", checksum(version, body))) || words.next().is_some() {
            return Err(damaged("its checksum does not match"));
        }
        if version > self.version {
            return Err(LogError::NewerFormat {
                path: path.into(),
                version,
                supported: self.version,
            });
        }
        Ok(body.to_vec())
    }

    /// Reads a framed file; `None` when it does not exist.
    pub(crate) fn read(self, disk: &dyn Disk, path: &Path) -> LogResult<Option<Vec<u8>>> {
        read_whole(disk, path)?
            .map(|bytes| self.unframe(path, &bytes))
            .transpose()
    }
}

fn checksum(version: u32, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&version.to_be_bytes()), body)
}

/// A whole file; `None` when it does not exist.
pub(crate) fn read_whole(disk: &dyn Disk, path: &Path) -> LogResult<Option<Vec<u8>>> {
    let failed = || LogError::io(|| format!("read \"{}\"", path.display()));
    let file = match disk.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed())?,
    };
    let len = file.len().map_err(failed())?;
    if len > MAX_BYTES {
        return Err(LogError::CorruptFile {
            path: path.into(),
            reason: format!("it has {len} bytes"),
        });
    }
    // Bounded by the check above.
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(&mut bytes, 0).map_err(failed())?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// Gives the file this content; the name is durable only after [`sync_dir`].
pub(crate) fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> LogResult<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".");
    temporary.push(TEMPORARY);
    let temporary = Path::new(&temporary);
    let written = || -> io::Result<()> {
        remove_if_there(disk, temporary)?;
        let file = disk.create(temporary)?;
        file.write_at(bytes, 0)?;
        file.sync_data()?;
        disk.rename(temporary, path)
    };
    written().map_err(LogError::io(|| format!("write \"{}\"", path.display())))
}

/// Removes a file that need not exist.
pub(crate) fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_dir(disk: &dyn Disk, dir: &Path) -> LogResult<()> {
    disk.sync_dir(dir).map_err(LogError::io(|| {
        format!("sync folder \"{}\"", dir.display())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::MemoryDisk;

    const KIND: FileKind = FileKind {
        name: "highwater-test",
        version: 2,
    };

    #[test]
    fn every_flipped_bit_is_noticed() {
        let path = Path::new("/f");
        let good = KIND.frame(b"some body");
        assert_eq!(KIND.unframe(path, &good).expect("unharmed"), b"some body");
        for at in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[at / 8] ^= 1 << (at % 8);
            assert!(KIND.unframe(path, &bad).is_err(), "bit {at}");
        }
    }

    #[test]
    fn a_newer_file_is_refused_as_such() {
        let newer = FileKind { version: 3, ..KIND }.frame(b"x");
        let refused = KIND.unframe(Path::new("/f"), &newer);
        assert!(
            matches!(
                refused,
                Err(LogError::NewerFormat {
                    version: 3,
                    supported: 2,
                    ..
                })
            ),
            "{refused:?}"
        );
    }

    #[test]
    fn a_crash_leaves_either_content() {
        let path = Path::new("/f");
        for seed in 0..200u64 {
            let disk = MemoryDisk::with_crashes();
            replace(&disk, path, b"old").expect("write");
            sync_dir(&disk, Path::new("/")).expect("sync");
            disk.halt_after(Some(seed % 6));
            let _ = replace(&disk, path, b"new!").and_then(|()| sync_dir(&disk, Path::new("/")));
            let mut state = seed;
            let after = disk.crash(&mut |n| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) as usize % n
            });
            let content = read_whole(&after, path).expect("read").expect("there");
            assert!(
                content == b"old" || content == b"new!",
                "seed {seed}: {content:?}"
            );
        }
    }
}
