//! The bytes of a file in memory, and how to take back what was not synced.

/// What the hardware promises to write as a whole.
const SECTOR: usize = 512;

/// Current bytes, and an undo record for each change since the last sync.
#[derive(Debug, Default, Clone)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    unsynced: Vec<Undo>,
}

/// How to take back one change of a file.
#[derive(Debug, Clone)]
enum Undo {
    Write {
        at: usize,
        len: usize,
        overwritten: Vec<u8>,
        old_len: usize,
    },
    Truncate {
        cut: Vec<u8>,
        old_len: usize,
        new_len: usize,
    },
}

/// A change since the last sync that a crash may keep.
enum Redo {
    Write { at: usize, bytes: Vec<u8> },
    Truncate { new_len: usize },
}

impl Content {
    /// Bytes without a past.
    pub(super) fn settled(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            unsynced: Vec::new(),
        }
    }

    /// Everything up to now is on the medium.
    pub(super) fn sync(&mut self) {
        self.unsynced.clear();
    }

    /// Cuts or extends.
    pub(super) fn truncate(&mut self, new_len: usize, tracked: bool) {
        if tracked {
            let old_len = self.bytes.len();
            let cut = self.bytes.get(new_len..).unwrap_or_default().to_vec();
            self.unsynced.push(Undo::Truncate {
                cut,
                old_len,
                new_len,
            });
        }
        self.bytes.resize(new_len, 0);
    }

    /// Writes at a position, which may lie behind the end.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8], tracked: bool) {
        let old_len = self.bytes.len();
        let end = at + bytes.len();
        if tracked {
            let overwritten = self
                .bytes
                .get(at..end.min(old_len))
                .unwrap_or_default()
                .to_vec();
            self.unsynced.push(Undo::Write {
                at,
                len: bytes.len(),
                overwritten,
                old_len,
            });
        }
        if at == old_len {
            self.bytes.extend_from_slice(bytes);
            return;
        }
        if end > old_len {
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(bytes);
    }

    /// The synced bytes plus what `choose` keeps of the rest.
    pub(super) fn after_crash(&self, choose: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let mut redo = Vec::new();
        for undo in self.unsynced.iter().rev() {
            redo.push(undo.apply(&mut bytes));
        }
        for change in redo.into_iter().rev() {
            match change {
                Redo::Write { at, bytes: new } => {
                    let kept = match choose(3) {
                        0 => 0,
                        1 => new.len(),
                        _ => torn_len(at, new.len(), choose),
                    };
                    if kept > 0 {
                        if bytes.len() < at + kept {
                            bytes.resize(at + kept, 0);
                        }
                        bytes[at..at + kept].copy_from_slice(&new[..kept]);
                    }
                }
                Redo::Truncate { new_len } => {
                    if choose(2) == 1 {
                        bytes.resize(new_len, 0);
                    }
                }
            }
        }
        bytes
    }
}

/// How much of a torn write stays: up to the end of some sector.
fn torn_len(at: usize, len: usize, choose: &mut dyn FnMut(usize) -> usize) -> usize {
    let sectors = (at + len).div_ceil(SECTOR) - at / SECTOR;
    let end = (at / SECTOR + choose(sectors.max(1))) * SECTOR;
    end.saturating_sub(at).min(len)
}

impl Undo {
    /// Takes the change back and tells how to make it again.
    fn apply(&self, bytes: &mut Vec<u8>) -> Redo {
        match self {
            Self::Write {
                at,
                len,
                overwritten,
                old_len,
            } => {
                let new = bytes[*at..at + len].to_vec();
                bytes[*at..at + overwritten.len()].copy_from_slice(overwritten);
                bytes.truncate(*old_len);
                Redo::Write {
                    at: *at,
                    bytes: new,
                }
            }
            Self::Truncate {
                cut,
                old_len,
                new_len,
            } => {
                bytes.truncate((*new_len).min(*old_len));
                bytes.extend_from_slice(cut);
                Redo::Truncate { new_len: *new_len }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_keeps_what_is_chosen_of_what_was_not_synced() {
        let mut content = Content::default();
        content.write(0, b"synced", true);
        content.sync();
        content.write(6, &[b'a'; 1_000], true);
        content.write(0, b"S", true);
        content.truncate(500, true);
        content.write(600, b"end", true);

        assert_eq!(content.after_crash(&mut |_| 0), b"synced", "all is lost");
        assert_eq!(
            content.after_crash(&mut |_| 1),
            content.bytes,
            "all is kept"
        );
        // The first write is torn at the first sector, the rest is lost.
        let mut choices = [2, 1, 0, 0, 0].into_iter();
        let torn = content.after_crash(&mut |_| choices.next().expect("as many as asked"));
        assert_eq!(torn.len(), SECTOR);
        // Only the last write is kept: what lies before it reads as zeros.
        let mut choices = [0, 0, 0, 1].into_iter();
        let hole = content.after_crash(&mut |_| choices.next().expect("as many as asked"));
        assert_eq!((&hole[..7], hole.len()), (&b"synced\0"[..], 603));
    }
}
