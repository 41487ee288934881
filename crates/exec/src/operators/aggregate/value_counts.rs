//! The values of a group with how often each is there, in no order.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::operators::{heap::block, small_bytes::SmallBytes};

/// See the module. All sets of one accumulator share a hasher, which is given with each call.
#[derive(Debug, Default, Clone)]
pub struct ValueCounts {
    table: HashTable<(SmallBytes, i64)>,
}

impl ValueCounts {
    /// Adds `diff` to a value's count; answers the count before and after. A value whose count is zero is not there.
    pub fn add(&mut self, hasher: &DefaultHashBuilder, value: &[u8], diff: i64) -> (i64, i64) {
        let hash = hasher.hash_one(value);
        let entry = self.table.entry(
            hash,
            |(own, _)| own.bytes() == value,
            |(own, _)| hasher.hash_one(own.bytes()),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(mut entry) => {
                let count = &mut entry.get_mut().1;
                let before = *count;
                *count += diff;
                let after = *count;
                if after == 0 {
                    entry.remove();
                }
                (before, after)
            }
            hashbrown::hash_table::Entry::Vacant(entry) => {
                if diff != 0 {
                    entry.insert((SmallBytes::new(value), diff));
                }
                (0, diff)
            }
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes of the table, without values that are too long for their places.
    pub fn table_bytes(&self) -> usize {
        block(self.table.allocation_size())
    }

    /// Bytes of the table and all values.
    pub fn heap_bytes(&self) -> usize {
        let apart = |(value, _): &(SmallBytes, i64)| SmallBytes::apart(value.bytes().len());
        self.table_bytes() + self.table.iter().map(apart).sum::<usize>()
    }

    /// All values in the order of their bytes: whatever is made of them must not depend on the hasher.
    pub fn sorted(&self) -> Vec<(&[u8], i64)> {
        let mut values: Vec<(&[u8], i64)> = self
            .table
            .iter()
            .map(|(value, count)| (value.bytes(), *count))
            .collect();
        values.sort_unstable();
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_go_at_zero() {
        let hasher = DefaultHashBuilder::default();
        let mut counts = ValueCounts::default();
        let long = [7; 100];
        assert_eq!(counts.add(&hasher, b"b", 2), (0, 2));
        assert_eq!(counts.add(&hasher, &long, -1), (0, -1));
        assert_eq!(counts.add(&hasher, b"a", 1), (0, 1));
        assert_eq!(counts.add(&hasher, b"b", -1), (2, 1));
        assert_eq!(counts.add(&hasher, b"a", -1), (1, 0));
        assert_eq!(counts.heap_bytes(), counts.table_bytes() + 112);
        assert_eq!(counts.sorted(), [(&long[..], -1), (&b"b"[..], 1)]);
        assert_eq!(counts.add(&hasher, &long, 1), (-1, 0));
        assert_eq!(counts.len(), 1);
    }
}
