//! The state database: RocksDB, written by checkpoints only.

use std::{path::Path, sync::Arc};

use highwater_planner::catalog::QueryId;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Direction, IteratorMode, Options, Range,
    ReadOptions, WriteBatch, WriteOptions, checkpoint::Checkpoint,
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

/// Bytes of uncompressed blocks that reads keep in memory.
const BLOCK_CACHE_BYTES: usize = 128 << 20;

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
    /// Opens or makes the database in `path`.
    pub fn open(path: &Path) -> ExecResult<Self> {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&Cache::new_lru_cache(BLOCK_CACHE_BYTES));
        blocks.set_bloom_filter(BLOOM_BITS_PER_KEY, false);
        blocks.set_format_version(5);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_max_background_jobs(2);
        options.set_max_open_files(256);
        options.set_keep_log_file_num(2);
        options.set_paranoid_checks(true);
        let db = DB::open(&options, path)?;
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
