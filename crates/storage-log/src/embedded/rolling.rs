//! Sealing the active segment and starting the next one.
//!
//! ORDER: roll = sync the old segment, seal it, write the producer snapshot, create the new segment; each durable before the next.

use std::{path::Path, sync::Arc};

use crate::{
    disk::DiskFile,
    embedded::{
        aborted::MAX_IN_SEGMENT,
        layout::SegmentFile,
        partition::{Partition, Writer},
        published::ActiveSegment,
        segment::SegmentContent,
        small_file, snapshot,
    },
    error::LogResult,
};

/// Snapshots kept: the one that recovery uses, and one more should it be damaged.
const SNAPSHOTS_KEPT: usize = 2;

impl Partition {
    /// Seals an active segment with gaps, which only a folder that Kafka wrote can have: what we append is dense, and is checked to be.
    pub(crate) fn seal_foreign(&self) -> LogResult<()> {
        let mut writer = self.lock_writer()?;
        let active = self.published.read().active.clone();
        match active.filter(|active| !active.dense) {
            Some(active) => self.roll(&mut writer, &active).map(drop),
            None => Ok(()),
        }
    }

    /// Seals the active segment if it holds something and `due` says so.
    pub(super) fn roll_if(&self, due: impl FnOnce(&Writer) -> bool) -> LogResult<()> {
        let mut writer = self.lock_writer()?;
        let active = self.published.read().active.clone();
        match active.filter(|active| active.bytes > 0 && due(&writer)) {
            Some(active) => {
                let file = active
                    .file(&self.environment.files)
                    .map_err(self.io("open the active segment of"))?;
                self.cut_torn(&mut writer, &active, &*file)?;
                self.roll(&mut writer, &active).map(drop)
            }
            None => Ok(()),
        }
    }

    /// The active segment has been growing for longer than `segment.ms`, or for so long that its records should be compacted.
    pub(super) fn is_aged(&self, writer: &Writer) -> bool {
        let settings = self.settings();
        let mut limit = settings.segment_ms;
        if settings.cleanup.compact {
            limit = limit.min(settings.compaction.max_lag_ms);
        }
        writer
            .segment_began
            .is_some_and(|began| self.environment.clock.now_ms().saturating_sub(began) >= limit)
    }

    /// The file that takes so many bytes and offsets, and where.
    pub(super) fn make_room(
        &self,
        writer: &mut Writer,
        bytes: u64,
        offsets: i64,
    ) -> LogResult<(Arc<dyn DiskFile>, u64)> {
        let last_offset = writer.log_end + offsets - 1;
        let (active, fits) = {
            let published = self.published.read();
            let fits =
                published.index.can_hold(last_offset) && published.aborted.len() < MAX_IN_SEGMENT;
            (published.active.clone(), fits)
        };
        let Some(active) = active else {
            let file = self.start_first_segment(writer)?;
            writer.segment_began = Some(self.environment.clock.now_ms());
            return Ok((file, 0));
        };
        let file = active
            .file(&self.environment.files)
            .map_err(self.io("open the active segment of"))?;
        self.cut_torn(writer, &active, &*file)?;
        if active.bytes == 0 {
            writer.segment_began = Some(self.environment.clock.now_ms());
            return Ok((file, 0));
        }
        let has_room = active.bytes + bytes <= self.settings().segment_bytes;
        if fits && has_room && !self.is_aged(writer) {
            return Ok((file, active.bytes));
        }
        let file = self.roll(writer, &active)?;
        writer.segment_began = Some(self.environment.clock.now_ms());
        Ok((file, 0))
    }

    /// Takes away what a failed write left behind the last batch.
    fn cut_torn(
        &self,
        writer: &mut Writer,
        active: &ActiveSegment,
        file: &dyn DiskFile,
    ) -> LogResult<()> {
        if writer.torn {
            file.truncate(active.bytes)
                .map_err(self.io("cut a failed write off"))?;
            writer.torn = false;
        }
        Ok(())
    }

    fn start_first_segment(&self, writer: &Writer) -> LogResult<Arc<dyn DiskFile>> {
        let (path, file) = self.create_log_file(writer.log_end)?;
        self.published.write().start_segment(
            writer.log_end,
            path,
            self.settings().index_interval_bytes,
        );
        Ok(file)
    }

    /// Seals the active segment and starts the next one. When it fails, the old one goes on as the active one and the next append tries again.
    fn roll(&self, writer: &mut Writer, active: &ActiveSegment) -> LogResult<Arc<dyn DiskFile>> {
        if let Some(file) = &active.unsynced {
            let synced = file.sync_data().map(|()| writer.log_end);
            self.commit.note(&self.id, synced)?;
            let mut published = self.published.write();
            let mark = published.sync_mark();
            published.note_synced(mark);
        }
        let (index, aborted) = {
            let published = self.published.read();
            (published.index.clone(), published.aborted.clone())
        };
        let content = SegmentContent {
            base: active.base,
            end: writer.log_end,
            log_bytes: active.bytes,
            dense: active.dense,
            index: &index,
            aborted: &aborted,
        };
        let disk = &*self.environment.disk;
        let sealed = content.seal(disk, &self.dir)?;
        snapshot::write(disk, &self.dir, writer.log_end, &writer.producers)?;
        // ORDER: once the next segment exists, this one may be dropped, and then only the snapshot knows its producers.
        small_file::sync_dir(disk, &self.dir)?;
        let (path, file) = self.create_log_file(writer.log_end)?;
        {
            let mut published = self.published.write();
            published.sealed.push(Arc::new(sealed));
            published.start_segment(writer.log_end, path, self.settings().index_interval_bytes);
        }
        writer.segment_began = None;
        self.write_recovery_point(writer.log_end);
        self.retire_snapshots(writer);
        Ok(file)
    }

    fn create_log_file(&self, base: i64) -> LogResult<(Arc<Path>, Arc<dyn DiskFile>)> {
        let disk = &*self.environment.disk;
        let path = SegmentFile::Log.path(&self.dir, base);
        // An attempt that failed behind this point may have left it, empty.
        self.environment.files.forget(&path);
        small_file::remove_if_there(disk, &path).map_err(self.io("start a segment of"))?;
        let file = disk.create(&path).map_err(self.io("start a segment of"))?;
        small_file::sync_dir(disk, &self.dir)?;
        Ok((path.into(), file))
    }

    fn retire_snapshots(&self, writer: &mut Writer) {
        writer.snapshots.push(writer.log_end);
        while writer.snapshots.len() > SNAPSHOTS_KEPT {
            let oldest = writer.snapshots.remove(0);
            let path = SegmentFile::Snapshot.path(&self.dir, oldest);
            if let Err(error) = small_file::remove_if_there(&*self.environment.disk, &path) {
                tracing::warn!(path = %path.display(), %error, "an old snapshot stays");
            }
        }
    }
}
