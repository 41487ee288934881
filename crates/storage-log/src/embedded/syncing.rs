//! Bringing what is written to the disk, for callers who wait and for those who are told.

use std::time::{Duration, Instant};

use crate::{
    embedded::{group_commit::Round, partition::Partition},
    error::{LogError, LogResult},
    log::{Offset, SyncWaiter},
    options::FsyncPolicy,
};

/// After a sync that several had waited for, the next one waits for them, but no longer than this part of what the sync took: those who were told
/// come back at once, as a rule, and would take turns otherwise, most of them waiting for several syncs.
const GATHERING_PART: u32 = 2;

/// It never waits longer than this.
const LONGEST_GATHERING: Duration = Duration::from_micros(500);

impl Partition {
    /// Waits until everything below `up_to` is on disk, if that is the policy.
    pub(crate) fn sync(&self, up_to: Offset) -> LogResult<()> {
        let log_end = self.published.read().log_end;
        if up_to.0 > log_end {
            return Err(self.out_of_range(up_to.0));
        }
        match self.environment.options.fsync {
            FsyncPolicy::Always => self.sync_to(up_to.0),
            FsyncPolicy::Interval(_) | FsyncPolicy::Never => self.commit.check(&self.id),
        }
    }

    /// Tells `waiter` when everything below `up_to` is on disk, if that is the policy. True if [`Self::serve_waiters`] has to be called for it.
    pub(crate) fn when_synced(&self, up_to: Offset, waiter: SyncWaiter) -> bool {
        let log_end = self.published.read().log_end;
        if up_to.0 > log_end {
            waiter(Err(self.out_of_range(up_to.0)));
            return false;
        }
        match self.environment.options.fsync {
            FsyncPolicy::Always => self.commit.leave_word(&self.id, up_to.0, waiter),
            FsyncPolicy::Interval(_) | FsyncPolicy::Never => {
                waiter(self.commit.check(&self.id));
                false
            }
        }
    }

    /// Writes and syncs once for those who are told. False once nobody waits.
    pub(crate) fn serve_waiters(&self) -> bool {
        let _ = self.write_handed_over();
        match self.commit.next_round() {
            Round::Over => {
                self.release_desk();
                return false;
            }
            Round::Write => {}
            Round::Sync(waiting, up_to) => {
                let began = Instant::now();
                // A failure is noted, and told.
                let _ = self.sync_to(up_to);
                // A segment may have been sealed meanwhile, so that there was nothing left to sync.
                self.commit.tell(&self.id);
                if waiting > 1 {
                    let at_most = (began.elapsed() / GATHERING_PART).min(LONGEST_GATHERING);
                    self.commit.gather(waiting, at_most);
                }
            }
        }
        true
    }

    /// Tells those who wait that nobody can sync for them.
    pub(crate) fn dismiss_waiters(&self, error: &LogError) {
        self.commit.dismiss(&self.id, &error.to_string());
    }

    /// Syncs whatever is not on disk yet, whatever the policy.
    pub(crate) fn sync_all(&self) -> LogResult<()> {
        let log_end = self.published.read().log_end;
        self.sync_to(log_end)
    }

    pub(super) fn sync_to(&self, up_to: i64) -> LogResult<()> {
        self.commit.wait_for(&self.id, up_to, || {
            let (unsynced, mark) = {
                let published = self.published.read();
                (published.unsynced_file(), published.sync_mark())
            };
            if let Some(file) = unsynced {
                self.environment.pace.sync(&*file)?;
                self.published.write().note_synced(mark);
            }
            self.write_recovery_point(mark.end);
            Ok(mark.end)
        })
    }
}
