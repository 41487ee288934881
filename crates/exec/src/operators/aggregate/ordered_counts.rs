//! The values of each group with how often each is there, in the order of their byte form.
//!
//! State: `count u64 | values, each with its length and its count i64`.

use std::collections::BTreeMap;

use super::accumulator::{read, read_bytes, write_bytes};
use crate::{
    error::ExecResult,
    operators::{
        group_array::fit,
        heap::{HeapBytes, block, tree},
    },
};

/// Values with their counts; none of them is zero.
pub type Counts = BTreeMap<Box<[u8]>, i64>;

/// See the module.
#[derive(Default)]
pub struct OrderedCounts {
    groups: Vec<Counts>,
    heap: HeapBytes,
}

/// Bytes of the tree of so many values, without those of the values.
fn tree_bytes(values: usize) -> usize {
    tree(values, size_of::<(Box<[u8]>, i64)>())
}

impl OrderedCounts {
    /// Bytes that a group takes in the array.
    pub const GROUP_BYTES: usize = size_of::<Counts>();

    /// Makes room for groups below `groups`.
    pub fn resize(&mut self, groups: usize) {
        fit(&mut self.groups, groups);
    }

    /// What is in a group.
    pub fn of(&self, group: u32) -> &Counts {
        &self.groups[group as usize]
    }

    /// Adds `diff` to the count of a value. A group that has `limit` values takes no further one.
    pub fn add(&mut self, group: usize, value: &[u8], diff: i64, limit: usize) {
        let counts = &mut self.groups[group];
        let values = counts.len();
        match counts.get_mut(value) {
            Some(count) if *count + diff == 0 => {
                counts.remove(value);
                self.heap.change(
                    tree_bytes(values) + block(value.len()),
                    tree_bytes(values - 1),
                );
            }
            Some(count) => *count += diff,
            None if values < limit => {
                counts.insert(value.into(), diff);
                self.heap.change(
                    tree_bytes(values),
                    tree_bytes(values + 1) + block(value.len()),
                );
            }
            None => {}
        }
    }

    /// Adds the counts of one group to another's.
    pub fn merge(&mut self, into: u32, from: u32) {
        for (value, count) in self.groups[from as usize].clone() {
            self.add(into as usize, &value, count, usize::MAX);
        }
    }

    /// Empties a group.
    pub fn reset(&mut self, group: u32) {
        let counts = std::mem::take(&mut self.groups[group as usize]);
        let values = counts.keys().map(|value| block(value.len()));
        self.heap
            .subtract(tree_bytes(counts.len()) + values.sum::<usize>());
    }

    /// Bytes beside the array.
    pub fn heap_bytes(&self) -> usize {
        self.heap.get()
    }

    /// Appends a group's state.
    pub fn save(&self, group: u32, out: &mut Vec<u8>) {
        let counts = self.of(group);
        out.extend_from_slice(&(counts.len() as u64).to_le_bytes());
        for (value, count) in counts {
            write_bytes(value, out);
            out.extend_from_slice(&count.to_le_bytes());
        }
    }

    /// Reads what [`OrderedCounts::save`] wrote and moves `bytes` behind it.
    pub fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        self.reset(group);
        for _ in 0..u64::from_le_bytes(read(bytes)?) {
            let value = read_bytes(bytes)?;
            let count = i64::from_le_bytes(read(bytes)?);
            self.add(group as usize, value, count, usize::MAX);
        }
        Ok(())
    }
}

/// The part of `Accumulator` that only concerns where the counts are kept.
macro_rules! delegate_counts {
    () => {
        fn resize(&mut self, groups: usize) {
            self.counts.resize(groups);
        }

        fn merge(&mut self, into: u32, from: u32) {
            self.counts.merge(into, from);
        }

        fn reset(&mut self, group: u32) {
            self.counts.reset(group);
        }

        fn group_bytes(&self) -> usize {
            OrderedCounts::GROUP_BYTES
        }

        fn heap_bytes(&self) -> usize {
            self.counts.heap_bytes()
        }

        fn save(&self, group: u32, out: &mut Vec<u8>) {
            self.counts.save(group, out);
        }

        fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
            self.counts.load(group, bytes)
        }
    };
}

pub(super) use delegate_counts;
