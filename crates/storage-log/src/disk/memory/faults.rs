//! What a test makes a disk do wrong.

use std::io;

#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Changes that still go through before the power goes.
    pub(super) changes_left: Option<u64>,
    /// Syncs that still succeed before one fails.
    pub(super) syncs_left: Option<u64>,
    /// Syncs answer at once and do nothing.
    pub(super) lying_syncs: bool,
    /// Bytes that fit.
    pub(super) capacity: Option<u64>,
    pub(super) changes_seen: u64,
    pub(super) syncs_seen: u64,
}

impl Faults {
    /// Counts a change; fails when the power is off.
    pub(super) fn change(&mut self) -> io::Result<()> {
        match &mut self.changes_left {
            Some(0) => return Err(io::Error::other("the power is off")),
            Some(left) => *left -= 1,
            None => {}
        }
        self.changes_seen += 1;
        Ok(())
    }

    /// The power is on and a sync would fail.
    pub(super) fn next_sync_fails(&self) -> bool {
        self.syncs_left == Some(0) && self.changes_left != Some(0)
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.change()?;
        self.syncs_seen += 1;
        match &mut self.syncs_left {
            Some(0) => Err(io::Error::other("injected sync failure")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}
