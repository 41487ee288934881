//! The state database: RocksDB, written by checkpoints only.

use std::{path::Path, sync::Arc};

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Direction, IteratorMode, Options, ReadOptions,
    WriteBatch, WriteOptions, checkpoint::Checkpoint,
};
use self_cell::self_cell;

use super::{StateChange, StateChanges, StatePrefix, key::successor};
use crate::error::{ExecError, ExecResult};

/// Bytes of a write batch after which it is handed to RocksDB, so that a large checkpoint never holds all its changes twice.
const WRITE_BATCH_BYTES: usize = 4 << 20;

/// Bytes of uncompressed blocks that reads keep in memory.
const BLOCK_CACHE_BYTES: usize = 128 << 20;

/// Bits a key in the Bloom filters: about one false hit in a hundred.
const BLOOM_BITS_PER_KEY: f64 = 10.0;

/// The live state database.
#[derive(Clone)]
pub struct RocksState {
    db: Arc<DB>,
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
        Ok(Self { db: Arc::new(db) })
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
        let mut batch = WriteBatch::default();
        for (prefix, changes) in changes {
            for change in changes.iter() {
                match change {
                    StateChange::Put(key, value) => batch.put(prefix.key(key), value),
                    StateChange::Delete(key) => batch.delete(prefix.key(key)),
                    StateChange::DeleteRange(from, to) => {
                        batch.delete_range(prefix.key(from), prefix.key(to))
                    }
                }
                self.write_if_large(&mut batch)?;
            }
        }
        self.write_batch(batch)
    }

    /// Writes a run of a result table.
    pub fn write_run(&self, prefix: StatePrefix, run: &super::Run) -> ExecResult<()> {
        let mut batch = WriteBatch::default();
        for (key, value) in run.iter() {
            match value {
                Some(value) => batch.put(prefix.key(key), value),
                None => batch.delete(prefix.key(key)),
            }
            self.write_if_large(&mut batch)?;
        }
        self.write_batch(batch)
    }

    /// Removes every key from `from` on, below `to` (whole keys).
    pub fn delete_range(&self, from: &[u8], to: &[u8]) -> ExecResult<()> {
        let mut batch = WriteBatch::default();
        batch.delete_range(from, to);
        self.write_batch(batch)
    }

    fn write_if_large(&self, batch: &mut WriteBatch) -> ExecResult<()> {
        if batch.size_in_bytes() >= WRITE_BATCH_BYTES {
            self.write_batch(std::mem::take(batch))?;
        }
        Ok(())
    }

    fn write_batch(&self, batch: WriteBatch) -> ExecResult<()> {
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
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(self.prefix.end());
        let mut iterator = self.state.db.iterator_opt(
            IteratorMode::From(self.prefix.bytes(), Direction::Forward),
            options,
        );
        Ok(iterator.next().transpose()?.is_none())
    }
}
