//! Rows of both sides of a join by join key: the index that every join on equal keys shares.
//!
//! Each side is a bag: an input whose key was not selected can hold a row more than once. Rows are kept in encoded form, ordered, so that a walk
//! over the rows of a key takes them in an order that a replay repeats.
//!
//! State key: `side u8 | join key | row`, both encoded so that no one is the beginning of another; value: `count i64 | event time i64`. The rows of
//! one key are one range, read the first time a batch names the key (only after a restart can the database know keys that memory does
//! not).

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::Side;
use crate::{
    error::{ExecError, ExecResult},
    operator::StepContext,
    operators::groups::Groups,
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
}

impl JoinIndex {
    /// The group of a join key, read from the database where it is not in memory.
    pub fn group(&mut self, key: &[u8], context: &StepContext<'_>) -> ExecResult<u32> {
        let (group, new) = self.groups.intern(key);
        if !new {
            return Ok(group);
        }
        for rows in &mut self.rows {
            rows.resize_with(self.groups.capacity(), KeyRows::new);
        }
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
        self.dirty.insert((group, side, row));
    }

    /// Hands over what changed since the last call.
    pub fn checkpoint(&mut self, changes: &mut StateChanges) {
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
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.sort_unstable();
        leaving.dedup();
        let changed: HashSet<u32> = self.dirty.iter().map(|(group, ..)| *group).collect();
        for group in leaving {
            let empty = self.rows.iter().all(|rows| rows[group as usize].is_empty());
            if empty && !changed.contains(&group) {
                self.groups.remove(group);
            }
        }
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
