//! The state database: RocksDB, written by checkpoints only.

use std::{path::Path, sync::Arc};

use highwater_planner::catalog::QueryId;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DEFAULT_COLUMN_FAMILY_NAME, Direction,
    IteratorMode, Options, Range, ReadOptions, WriteBatch, WriteBufferManager, WriteOptions,
    checkpoint::Checkpoint,
};
use self_cell::self_cell;

use super::{
    Run, StateChanges, StateId, StatePrefix,
    key::successor,
    sorted_files::{SortedFileFolder, SortedFiles},
};
use crate::error::{ExecError, ExecResult};

/// Bytes of changes to one prefix from which on they are written as sorted files: below that, the syncs that a file takes cost more than the
/// memtable does.
pub(super) const SORTED_FILE_MIN_BYTES: usize = 1 << 20;

/// The part of the memory for state that goes to blocks, indexes and filters of the database.
const CACHE_SHARE: usize = 4;

/// Bounds of that part: a few blocks of each file, and what is better left to the operating system's cache.
const CACHE_BYTES: std::ops::RangeInclusive<usize> = 4 << 20..=1 << 30;

/// The part for what waits in memtables, and its bounds: less than a megabyte of each change goes there.
const MEMTABLE_SHARE: usize = 32;
const MEMTABLE_BYTES: std::ops::RangeInclusive<usize> = 1 << 20..=32 << 20;

/// The part that is read ahead of each file that is merged, and its bounds: there are some dozens of them at a time.
const READ_AHEAD_SHARE: usize = 512;
const READ_AHEAD_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=2 << 20;

/// Files that wait in the first level before they are merged into the next. A checkpoint that finds keys of its range there already adds one for each slot and
/// table; merging each by itself would cost more than all else, while a look-up that finds a few more filters costs little.
const LEVEL_ZERO_FILES: i32 = 20;

/// Keys that are looked up at a time: the blocks that hold them stay in memory meanwhile.
const LOOKED_UP: usize = 512;

/// Bits a key in the Bloom filters: about one false hit in a hundred.
const BLOOM_BITS_PER_KEY: f64 = 10.0;

/// The live state database.
#[derive(Clone)]
pub struct RocksState {
    db: Arc<DB>,
    sorted_files: Arc<SortedFileFolder>,
}

/// A whole key and its value.
pub type Entry = (Box<[u8]>, Box<[u8]>);

type DbSnapshot<'a> = rocksdb::Snapshot<'a>;

self_cell!(
    struct SnapshotCell {
        owner: Arc<DB>,
        #[covariant]
        dependent: DbSnapshot,
    }
);

/// The database as it was after one checkpoint. Keeps the database open.
pub struct BaseSnapshot(SnapshotCell);

impl RocksState {
    /// Opens or makes the database in `path`. It takes about a third of `memory`, and leaves the rest to what operators and tables keep.
    pub fn open(path: &Path, memory: usize) -> ExecResult<Self> {
        let cache = Cache::new_lru_cache(within(memory / CACHE_SHARE, CACHE_BYTES));
        let memtable = within(memory / MEMTABLE_SHARE, MEMTABLE_BYTES);
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&cache);
        // Indexes and filters count too: with many keys they are much.
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_cache_index_and_filter_blocks_with_high_priority(true);
        blocks.set_pin_top_level_index_and_filter(true);
        blocks.set_bloom_filter(BLOOM_BITS_PER_KEY, false);
        blocks.set_optimize_filters_for_memory(true);
        blocks.set_format_version(5);
        let mut options = Options::default();
        options.set_write_buffer_size(memtable);
        options.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager_with_cache(
            2 * memtable,
            false,
            cache,
        ));
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        options.set_level_zero_file_num_compaction_trigger(LEVEL_ZERO_FILES);
        options.set_level_zero_slowdown_writes_trigger(3 * LEVEL_ZERO_FILES);
        options.set_level_zero_stop_writes_trigger(4 * LEVEL_ZERO_FILES);
        options.set_compaction_readahead_size(within(memory / READ_AHEAD_SHARE, READ_AHEAD_BYTES));
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_max_background_jobs(2);
        options.set_max_open_files(256);
        options.set_keep_log_file_num(2);
        options.set_paranoid_checks(true);
        let db = DB::open_cf_with_opts(
            &options,
            path,
            [(DEFAULT_COLUMN_FAMILY_NAME, options.clone())],
        )?;
        Ok(Self {
            db: Arc::new(db),
            sorted_files: Arc::new(SortedFileFolder::new(path, options)?),
        })
    }

    /// The state of one slot.
    pub fn slot(&self, prefix: StatePrefix) -> SlotState<'_> {
        SlotState {
            state: self,
            prefix,
        }
    }

    /// Writes changes, in order. Not durable before [`RocksState::write_checkpoint`].
    pub fn write(&self, changes: &[(StatePrefix, StateChanges)]) -> ExecResult<()> {
        for (prefix, changes) in changes {
            let mut batch = WriteBatch::default();
            for (from, to) in changes.dropped() {
                batch.delete_range(prefix.key(from), prefix.key(to));
            }
            self.write_batch(batch)?;
            self.write_sorted(*prefix, changes.byte_len(), changes.sorted())?;
        }
        Ok(())
    }

    /// Writes the runs of a result table, oldest first.
    pub fn write_runs(&self, prefix: StatePrefix, runs: &[Arc<Run>]) -> ExecResult<()> {
        let bytes = runs.iter().map(|run| run.byte_len()).sum();
        self.write_sorted(prefix, bytes, Run::merged(runs))
    }

    /// Writes keys of one prefix, in key order, each once: much of it as files, little of it through the memtable.
    fn write_sorted<'k>(
        &self,
        prefix: StatePrefix,
        bytes: usize,
        entries: impl Iterator<Item = (&'k [u8], Option<&'k [u8]>)>,
    ) -> ExecResult<()> {
        let mut files: Option<SortedFiles> =
            (bytes >= SORTED_FILE_MIN_BYTES).then(|| self.sorted_files.files());
        let mut batch = WriteBatch::default();
        let mut whole = prefix.key(&[]);
        for (key, value) in entries {
            whole.truncate(StatePrefix::LEN);
            whole.extend_from_slice(key);
            match (&mut files, value) {
                (Some(files), value) => files.push(&whole, value)?,
                (None, Some(value)) => batch.put(&whole, value),
                (None, None) => batch.delete(&whole),
            }
        }
        match files {
            Some(files) => files.ingest(&self.db),
            None => self.write_batch(batch),
        }
    }

    /// Removes every key from `from` on, below `to` (whole keys).
    pub fn delete_range(&self, from: &[u8], to: &[u8]) -> ExecResult<()> {
        // A mark over nothing would keep later files of the range from going to the lowest level.
        if self.has_none(from, to)? {
            return Ok(());
        }
        let mut batch = WriteBatch::default();
        batch.delete_range(from, to);
        self.write_batch(batch)
    }

    fn has_none(&self, from: &[u8], to: &[u8]) -> ExecResult<bool> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(to);
        let mut iterator = self
            .db
            .iterator_opt(IteratorMode::From(from, Direction::Forward), options);
        Ok(iterator.next().transpose()?.is_none())
    }

    /// The queries that have anything stored, by one seek each.
    pub fn queries(&self) -> ExecResult<Vec<QueryId>> {
        let mut queries: Vec<QueryId> = Vec::new();
        let mut from = Some(0_u64);
        while let Some(first) = from {
            let mut iterator = self
                .db
                .iterator(IteratorMode::From(&first.to_be_bytes(), Direction::Forward));
            let Some(entry) = iterator.next() else { break };
            let Some(query) = StateId::query_of(&entry?.0) else {
                break;
            };
            queries.push(query);
            from = query.0.checked_add(1);
        }
        Ok(queries)
    }

    /// Reads all of it. An error tells of the first block that is damaged.
    pub fn verify(&self) -> ExecResult<()> {
        let mut options = ReadOptions::default();
        options.set_verify_checksums(true);
        options.fill_cache(false);
        let mut iterator = self.db.raw_iterator_opt(options);
        iterator.seek_to_first();
        while iterator.valid() {
            iterator.next();
        }
        Ok(iterator.status()?)
    }

    /// About how many bytes the files hold of each state table. What is in no file yet does not count.
    pub fn stored(&self, tables: &[StateId]) -> Vec<u64> {
        let bounds: Vec<(Vec<u8>, Vec<u8>)> = tables.iter().map(|table| table.range()).collect();
        let ranges: Vec<Range<'_>> = bounds
            .iter()
            .map(|(from, to)| Range::new(from, to))
            .collect();
        self.db.get_approximate_sizes(&ranges)
    }

    fn write_batch(&self, batch: WriteBatch) -> ExecResult<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.db.write_opt(batch, &options)?;
        Ok(())
    }

    /// Flushes what was written and hard-links the files into the new folder `path`.
    pub fn write_checkpoint(&self, path: &Path) -> ExecResult<()> {
        self.db.flush()?;
        Checkpoint::new(&self.db)?.create_checkpoint(path)?;
        Ok(())
    }

    /// The database as it is now.
    pub fn snapshot(&self) -> Arc<BaseSnapshot> {
        Arc::new(BaseSnapshot(SnapshotCell::new(
            Arc::clone(&self.db),
            |db| db.snapshot(),
        )))
    }
}

impl BaseSnapshot {
    /// The value of a whole key.
    pub fn get(&self, key: &[u8]) -> ExecResult<Option<Vec<u8>>> {
        Ok(self.0.borrow_dependent().get(key)?)
    }

    /// Up to `limit` entries from the whole key `from` on, below `to`. Paged, so that no iterator outlives the call.
    pub fn page(&self, from: &[u8], to: &[u8], limit: usize) -> ExecResult<Vec<Entry>> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(to.to_vec());
        let iterator = self
            .0
            .borrow_dependent()
            .iterator_opt(IteratorMode::From(from, Direction::Forward), options);
        iterator
            .take(limit)
            .map(|entry| entry.map_err(ExecError::from))
            .collect()
    }
}

fn within(bytes: usize, bounds: std::ops::RangeInclusive<usize>) -> usize {
    bytes.clamp(*bounds.start(), *bounds.end())
}

/// The durable state of one slot of one operator.
#[derive(Clone, Copy)]
pub struct SlotState<'a> {
    state: &'a RocksState,
    prefix: StatePrefix,
}

impl SlotState<'_> {
    /// The value of `key` as of the last checkpoint.
    pub fn get(&self, key: &[u8]) -> ExecResult<Option<Vec<u8>>> {
        Ok(self.state.db.get(self.prefix.key(key))?)
    }

    /// Looks up many keys, which stand in key order, and calls `found` with the position and the value of each that is there.
    pub fn get_sorted<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        mut found: impl FnMut(usize, &[u8]) -> ExecResult<()>,
    ) -> ExecResult<()> {
        let db = &self.state.db;
        let family = db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME).ok_or_else(|| {
            ExecError::Internal("the state database lacks its column family".into())
        })?;
        let (mut keys, mut first) = (keys.peekable(), 0);
        // Whole keys, back to back.
        let (mut whole, mut ends) = (Vec::new(), Vec::with_capacity(LOOKED_UP));
        while keys.peek().is_some() {
            whole.clear();
            ends.clear();
            for key in keys.by_ref().take(LOOKED_UP) {
                whole.extend_from_slice(self.prefix.bytes());
                whole.extend_from_slice(key);
                ends.push(whole.len());
            }
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let slices: Vec<&[u8]> = starts
                .zip(&ends)
                .map(|(start, end)| &whole[start..*end])
                .collect();
            let values = db.batched_multi_get_cf(&family, &slices, true);
            for (position, value) in values.into_iter().enumerate() {
                if let Some(value) = value? {
                    found(first + position, &value)?;
                }
            }
            first += ends.len();
        }
        Ok(())
    }

    /// The values of many keys, in their order.
    pub fn multi_get<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> ExecResult<Vec<Option<Vec<u8>>>> {
        self.state
            .db
            .multi_get(keys.map(|key| self.prefix.key(key)))
            .into_iter()
            .map(|value| value.map_err(ExecError::from))
            .collect()
    }

    /// Everything under the prefix, in the order of keys, which are without it.
    pub fn entries(&self) -> ExecResult<Vec<Entry>> {
        self.scan(&[])
    }

    /// All keys that begin with `beginning`, and their values, in key order. Keys are without the state prefix.
    pub fn scan(&self, beginning: &[u8]) -> ExecResult<Vec<Entry>> {
        let from = self.prefix.key(beginning);
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(successor(&from));
        self.state
            .db
            .iterator_opt(IteratorMode::From(&from, Direction::Forward), options)
            .map(|entry| {
                let (key, value) = entry?;
                Ok((key[StatePrefix::LEN..].into(), value))
            })
            .collect()
    }

    /// Whether nothing is stored under the prefix.
    pub fn is_empty(&self) -> ExecResult<bool> {
        self.state.has_none(self.prefix.bytes(), &self.prefix.end())
    }
}
