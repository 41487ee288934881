//! Dropping what is old: on request, by age and by size. Whole segments go; the log start moves first.
//!
//! Age is that of the newest record in a segment, by the record's own time, as in Kafka: history that is written today expires at once where the
//! retention is shorter than history is old. What an open transaction or [`crate::Log::hold_from`] holds stays.

use std::sync::{Arc, atomic::Ordering};

use crate::{
    embedded::{
        log_start, partition::Partition, removal::remove_segment, segment::SealedSegment,
        settings::PartitionSettings,
    },
    error::LogResult,
    log::Offset,
};

impl Partition {
    /// What is due: sealing a segment that has grown for long enough, retention, compaction.
    pub(crate) fn maintain(&self) -> LogResult<()> {
        if self.is_over() || self.is_poisoned() {
            return Ok(());
        }
        self.roll_if(|writer| self.is_aged(writer))?;
        self.expire()?;
        self.compact()
    }

    /// Applies `retention.ms` and `retention.bytes`.
    fn expire(&self) -> LogResult<()> {
        let settings = self.settings();
        if !settings.cleanup.delete {
            return Ok(());
        }
        // Records at or before this time are too old.
        let expired = settings
            .retention_ms
            .map(|ms| self.environment.clock.now_ms().saturating_sub(ms));
        let active_expired = {
            let published = self.published.read();
            is_expired(published.index.max_timestamp(), expired)
        };
        if active_expired {
            // A partition that nobody writes to would keep its last records for ever otherwise.
            self.roll_if(|_| true)?;
        }
        let settled = self.settled_below();
        let start = {
            let published = self.published.read();
            let active_bytes = published.active.as_ref().map_or(0, |active| active.bytes);
            start_after_expiry(&published.sealed, active_bytes, &settings, expired, settled)
        };
        start.map_or(Ok(()), |start| self.drop_below(Offset(start)))
    }

    /// Moves the log start and removes segments that lie before it as a whole.
    pub(crate) fn drop_below(&self, offset: Offset) -> LogResult<()> {
        let _removing = self.removing.lock();
        if offset.0 > self.lock_writer()?.log_end {
            return Err(self.out_of_range(offset.0));
        }
        if offset.0 <= self.published.read().log_start {
            return Ok(());
        }
        // ORDER: what lies below the new start is on disk before it, or a power cut could put the log's end before its start.
        self.sync_to(offset.0)?;
        let disk = &*self.environment.disk;
        // ORDER: the new start is durable before a segment goes, so recovery never finds a hole at the front.
        log_start::write(disk, &self.dir, offset.0)?;
        let dropped = self.published.write().drop_below(offset.0);
        if self.environment.backups.load(Ordering::Acquire) > 0 {
            // The next start removes the files.
            return Ok(());
        }
        for segment in dropped {
            remove_segment(&self.environment, &self.dir, segment.base());
        }
        Ok(())
    }
}

/// Where the log begins once all segments are gone that are too old or too much; `None` when nothing is. Nothing at or behind `settled` goes.
fn start_after_expiry(
    sealed: &[Arc<SealedSegment>],
    active_bytes: u64,
    settings: &PartitionSettings,
    expired: Option<i64>,
    settled: i64,
) -> Option<i64> {
    let mut bytes = active_bytes + sealed.iter().map(|s| s.log_bytes()).sum::<u64>();
    let mut start = None;
    for segment in sealed.iter().take_while(|s| s.end() <= settled) {
        // Compaction may have left nothing of it.
        let is_empty = segment.log_bytes() == 0;
        let too_old = is_expired(segment.max_timestamp(), expired);
        let rest = bytes - segment.log_bytes();
        let too_much = settings.retention_bytes.is_some_and(|limit| rest >= limit);
        if !is_empty && !too_old && !too_much {
            break;
        }
        bytes = rest;
        start = Some(segment.end());
    }
    start
}

/// A segment whose newest record was made then is too old. Records without a time (-1) are never.
fn is_expired(newest: Option<i64>, expired: Option<i64>) -> bool {
    matches!((newest, expired), (Some(newest), Some(expired)) if newest >= 0 && newest <= expired)
}
