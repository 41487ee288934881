//! Rows of both sides of a join by join key: the index that every join on equal keys shares.
//!
//! Each side is a bag: an input whose key was not selected can hold a row more than once. Rows are kept in encoded form, ordered, so that a walk
//! over the rows of a key takes them in an order that a replay repeats.
//!
//! State key: `side u8 | join key | row`, both encoded so that no one is the beginning of another; value: `count i64 | event time i64`. The rows of
//! one key are one range, read when a batch names a key that is not in memory: the first time after a restart, and again after it was evicted
//! because memory was short. Only keys are evicted that the database has with all their rows as they are.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::Side;
use crate::{
    error::{ExecError, ExecResult},
    operator::{StateMemory, StepContext},
    operators::{
        clock::Clock,
        groups::Groups,
        heap::{HeapBytes, block, tree},
        marked_groups::MarkedGroups,
        written_groups::WrittenGroups,
    },
    state::{SlotState, StateChanges},
};

/// Rows of one side for one join key.
pub(super) type KeyRows = BTreeMap<Arc<[u8]>, Stored>;

/// How often a row is there, and its event time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    pub count: i64,
    pub rowtime: i64,
}

/// See the module.
#[derive(Default)]
pub(super) struct JoinIndex {
    groups: Groups,
    /// By side and group.
    rows: [Vec<KeyRows>; 2],
    /// Rows that changed since the last checkpoint.
    dirty: HashSet<(u32, Side, Arc<[u8]>)>,
    /// Groups that were empty when a checkpoint took the changes. They are forgotten once it is written: until then the database still has
    /// their rows.
    leaving: Vec<u32>,
    /// Whether the database may know keys that memory does not.
    cold: Option<bool>,
    /// Groups with rows that changed since the last checkpoint.
    changed: MarkedGroups,
    /// Which groups to evict first.
    clock: Clock,
    /// Which groups the database has, if they have not changed since.
    written: WrittenGroups,
    /// Of the rows.
    heap: HeapBytes,
}

/// Bytes of a group beside its key and rows.
const GROUP_BYTES: usize = Groups::GROUP_BYTES
    + 2 * size_of::<KeyRows>()
    + MarkedGroups::GROUP_BYTES
    + Clock::GROUP_BYTES
    + WrittenGroups::GROUP_BYTES
    + 2 * size_of::<u32>();

/// Bytes of a note that a row has changed, at the load of a hash set.
const DIRTY_BYTES: usize = 2 * size_of::<(u32, Side, Arc<[u8]>)>();

/// Bytes of the tree of so many rows, without those of the rows.
fn tree_bytes(rows: usize) -> usize {
    tree(rows, size_of::<(Arc<[u8]>, Stored)>())
}

/// Bytes of a row that is shared by counting.
fn row_bytes(row: &[u8]) -> usize {
    block(row.len() + 2 * size_of::<usize>())
}

fn rows_bytes(rows: &KeyRows) -> usize {
    tree_bytes(rows.len()) + rows.keys().map(|row| row_bytes(row)).sum::<usize>()
}

impl JoinIndex {
    /// The group of a join key, read from the database where it is not in memory.
    pub fn group(&mut self, key: &[u8], context: &StepContext<'_>) -> ExecResult<u32> {
        let (group, new) = self.groups.intern(key);
        if !new {
            self.clock.name(group);
            return Ok(group);
        }
        let capacity = self.groups.capacity();
        for rows in &mut self.rows {
            rows.resize_with(capacity, KeyRows::new);
        }
        self.changed.make_room(capacity);
        self.clock.make_room(capacity);
        self.written.make_room(capacity);
        self.clock.name(group);
        if let Some(state) = &context.state {
            let cold = match self.cold {
                Some(cold) => cold,
                None => *self.cold.insert(!state.is_empty()?),
            };
            if cold {
                self.load(group, key, state)?;
            }
        }
        Ok(group)
    }

    fn load(&mut self, group: u32, key: &[u8], state: &SlotState<'_>) -> ExecResult<()> {
        for side in Side::BOTH {
            let prefix = state_key(side, key, &[]);
            for (stored_key, value) in state.scan(&prefix)? {
                let stored = Stored::decode(&value)?;
                let row = stored_key[prefix.len()..].into();
                self.rows[side as usize][group as usize].insert(row, stored);
            }
            self.heap
                .add(rows_bytes(&self.rows[side as usize][group as usize]));
        }
        Ok(())
    }

    /// The rows of one side.
    pub fn rows(&self, side: Side, group: u32) -> &KeyRows {
        &self.rows[side as usize][group as usize]
    }

    /// Adds a row `diff` times, or takes it away.
    pub fn change(&mut self, side: Side, group: u32, row: Arc<[u8]>, diff: i64, rowtime: i64) {
        let rows = &mut self.rows[side as usize][group as usize];
        let before = rows.len();
        let stored = rows.entry(row.clone()).or_insert(Stored {
            count: 0,
            rowtime: i64::MIN,
        });
        stored.count += diff;
        if diff > 0 {
            stored.rowtime = stored.rowtime.max(rowtime);
        }
        if stored.count == 0 {
            rows.remove(&row);
        }
        let after = rows.len();
        self.heap.change(tree_bytes(before), tree_bytes(after));
        match after.cmp(&before) {
            Ordering::Greater => self.heap.add(row_bytes(&row)),
            Ordering::Less => self.heap.subtract(row_bytes(&row)),
            Ordering::Equal => {}
        }
        self.changed.insert(group);
        self.dirty.insert((group, side, row));
    }

    /// Hands over what changed since the last call.
    pub fn checkpoint(&mut self, changes: &mut StateChanges) {
        self.written.begin();
        while let Some(group) = self.changed.pop() {
            self.written.take(group);
        }
        for (group, side, row) in self.dirty.drain() {
            let key = state_key(side, self.groups.key(group), &row);
            match self.rows[side as usize][group as usize].get(&row) {
                Some(stored) => changes.put(&key, |value| stored.encode(value)),
                None => {
                    changes.delete(&key);
                    self.leaving.push(group);
                }
            }
        }
    }

    /// The last changes are written: keys without rows can go.
    pub fn checkpointed(&mut self) {
        self.written.finish();
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.sort_unstable();
        leaving.dedup();
        for group in leaving {
            if self.is_empty(group) && !self.changed.contains(group) {
                self.forget(group);
            }
        }
    }

    fn is_empty(&self, group: u32) -> bool {
        self.rows.iter().all(|rows| rows[group as usize].is_empty())
    }

    /// Forgets a group of memory.
    fn forget(&mut self, group: u32) {
        for rows in &mut self.rows {
            let rows = std::mem::take(&mut rows[group as usize]);
            self.heap.subtract(rows_bytes(&rows));
        }
        self.groups.remove(group);
        self.clock.remove(group);
        self.written.forget(group);
    }

    /// Groups that the next checkpoint, or the one under way, makes evictable.
    fn unwritten(&self) -> usize {
        self.changed.len() + self.written.waiting()
    }

    /// What is in memory.
    pub fn memory(&self) -> StateMemory {
        let groups = self.groups.len();
        let bytes = groups * GROUP_BYTES + self.groups.heap_bytes() + self.heap.get();
        StateMemory {
            bytes: bytes + self.dirty.len() * DIRTY_BYTES,
            unwritten: bytes / groups.max(1) * self.unwritten() + self.dirty.len() * DIRTY_BYTES,
            groups,
        }
    }

    /// Lets go of about so many bytes of keys that the database has as they are; answers how many. A step must not be under way.
    pub fn evict(&mut self, bytes: usize) -> usize {
        let clean = self.groups.len().saturating_sub(self.unwritten());
        let (mut freed, mut evicted) = (0, 0);
        for _ in 0..self.clock.two_rounds() {
            if freed >= bytes || evicted == clean {
                break;
            }
            let Some(group) = self.clock.advance() else {
                continue;
            };
            let stays = self.changed.contains(group) || !self.written.contains(group);
            // One without rows is on its way out already.
            if stays || self.is_empty(group) {
                continue;
            }
            let heap = self.heap.get();
            self.forget(group);
            freed += GROUP_BYTES + heap - self.heap.get();
            evicted += 1;
        }
        if evicted > 0 {
            self.cold = Some(true);
        }
        freed
    }
}

fn state_key(side: Side, key: &[u8], row: &[u8]) -> Vec<u8> {
    [&[side as u8], key, row].concat()
}

impl Stored {
    fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.rowtime.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> ExecResult<Self> {
        let half = |from: usize| -> Option<i64> {
            let bytes = bytes.get(from..from + 8)?;
            Some(i64::from_le_bytes(bytes.try_into().ok()?))
        };
        match (half(0), half(8)) {
            (Some(count), Some(rowtime)) => Ok(Self { count, rowtime }),
            _ => Err(ExecError::Corrupt {
                what: "a joined row's state".into(),
                detail: "it ends too early".into(),
            }),
        }
    }
}
