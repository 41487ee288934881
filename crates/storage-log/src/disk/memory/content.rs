//! The bytes of a file in memory, and what of them a crash leaves.

/// What the hardware promises to write as a whole.
const SECTOR: usize = 512;

/// Current bytes, what of them is on the medium, and the changes in between.
#[derive(Debug, Default, Clone)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync, in order.
    unsynced: Vec<Change>,
}

/// One change of a file.
#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Truncate { len: usize },
}

impl Content {
    /// Bytes without a past.
    pub(super) fn settled(bytes: Vec<u8>, tracked: bool) -> Self {
        Self {
            durable: if tracked { bytes.clone() } else { Vec::new() },
            bytes,
            unsynced: Vec::new(),
        }
    }

    /// Everything up to now is on the medium, but what a failed sync lost.
    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// A sync failed: what it should have written still reads back, but no later sync brings it to the medium, as with the pages of a file that the
    /// operating system could not write.
    pub(super) fn fail_sync(&mut self) {
        self.unsynced.clear();
    }

    /// Cuts or extends.
    pub(super) fn truncate(&mut self, len: usize, tracked: bool) {
        self.change(Change::Truncate { len }, tracked);
    }

    /// Writes at a position, which may lie behind the end.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8], tracked: bool) {
        write(&mut self.bytes, at, bytes);
        if tracked {
            let bytes = bytes.to_vec();
            self.unsynced.push(Change::Write { at, bytes });
        }
    }

    fn change(&mut self, change: Change, tracked: bool) {
        change.apply(&mut self.bytes);
        if tracked {
            self.unsynced.push(change);
        }
    }

    /// The synced bytes plus what `choose` keeps of the rest.
    pub(super) fn after_crash(&self, choose: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for change in &self.unsynced {
            match change {
                Change::Write { at, bytes: new } => {
                    let kept = match choose(3) {
                        0 => 0,
                        1 => new.len(),
                        _ => torn_len(*at, new.len(), choose),
                    };
                    if kept > 0 {
                        write(&mut bytes, *at, &new[..kept]);
                    }
                }
                Change::Truncate { .. } => {
                    if choose(2) == 1 {
                        change.apply(&mut bytes);
                    }
                }
            }
        }
        bytes
    }
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => write(file, *at, bytes),
            Self::Truncate { len } => file.resize(*len, 0),
        }
    }
}

fn write(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if at == file.len() {
        file.extend_from_slice(bytes);
        return;
    }
    if end > file.len() {
        file.resize(end, 0);
    }
    file[at..end].copy_from_slice(bytes);
}

/// How much of a torn write stays: up to the end of some sector.
fn torn_len(at: usize, len: usize, choose: &mut dyn FnMut(usize) -> usize) -> usize {
    let sectors = (at + len).div_ceil(SECTOR) - at / SECTOR;
    let end = (at / SECTOR + choose(sectors.max(1))) * SECTOR;
    end.saturating_sub(at).min(len)
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

    #[test]
    fn what_a_failed_sync_lost_is_not_brought_back_by_the_next_one() {
        let mut content = Content::default();
        content.write(0, b"lost", true);
        content.fail_sync();
        content.write(4, b"kept", true);
        content.sync();
        assert_eq!(content.bytes, b"lostkept");
        assert_eq!(content.after_crash(&mut |_| 1), b"\0\0\0\0kept");
        content.write(0, b"lost", true);
        content.sync();
        assert_eq!(
            content.after_crash(&mut |_| 0),
            b"lostkept",
            "written again"
        );
    }
}
