//! Keys of groups to group numbers, which index accumulators and rows.
//!
//! Numbers are dense and reused after a removal, in a fixed order, so that a replay numbers groups alike.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{heap::HeapBytes, small_bytes::SmallBytes};

/// See the module.
#[derive(Default)]
pub struct Groups {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Of the keys that are not part of their entries.
    heap: HeapBytes,
}

/// A group. Half a cache line, so that finding one costs one access to memory beside the table's.
struct Entry {
    hash: u64,
    key: SmallBytes,
}

/// What the table has for a group: a number and a byte of its hash, at a load between seven sixteenths and seven eighths.
const TABLE_BYTES: usize = 8;

impl Groups {
    /// Bytes that a group takes here, beside a key that is too long for its entry.
    pub const GROUP_BYTES: usize = size_of::<Entry>() + TABLE_BYTES;

    /// The group of `key`, and whether it was made now.
    pub fn intern(&mut self, key: &[u8]) -> (u32, bool) {
        let hash = self.hasher.hash_one(key);
        let entries = &self.entries;
        if let Some(&group) = self.table.find(hash, |&group| {
            let entry = &entries[group as usize];
            entry.hash == hash && entry.key.bytes() == key
        }) {
            return (group, false);
        }
        self.heap.add(SmallBytes::apart(key.len()));
        let entry = Entry {
            hash,
            key: SmallBytes::new(key),
        };
        let group = match self.free.pop() {
            Some(group) => {
                self.entries[group as usize] = entry;
                group
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        let entries = &self.entries;
        self.table
            .insert_unique(hash, group, |&group| entries[group as usize].hash);
        (group, true)
    }

    /// Forgets a group; its number will be used again.
    pub fn remove(&mut self, group: u32) {
        let hash = self.entries[group as usize].hash;
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == group) {
            entry.remove();
            self.heap.subtract(SmallBytes::apart(self.key(group).len()));
            self.entries[group as usize].key = SmallBytes::new(&[]);
            self.free.push(group);
        }
    }

    /// The key of a group.
    pub fn key(&self, group: u32) -> &[u8] {
        self.entries[group as usize].key.bytes()
    }

    /// A group gets another number, which is free.
    pub fn renumber(&mut self, from: u32, to: u32) {
        let hash = self.entries[from as usize].hash;
        if let Some(group) = self.table.find_mut(hash, |&group| group == from) {
            *group = to;
            self.entries.swap(from as usize, to as usize);
        }
    }

    /// Forgets the numbers that no group has, of which none may be below [`Self::len`].
    pub fn forget_free_numbers(&mut self) {
        self.entries.truncate(self.table.len());
        self.entries.shrink_to_fit();
        self.free = Vec::new();
        let entries = &self.entries;
        self.table
            .shrink_to(0, |&group| entries[group as usize].hash);
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes of keys that are too long for their entries.
    pub fn heap_bytes(&self) -> usize {
        self.heap.get()
    }

    /// One more than the highest number in use so far.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reused_after_removal() {
        let mut groups = Groups::default();
        assert_eq!(groups.intern(b"a"), (0, true));
        assert_eq!(groups.intern(b"b"), (1, true));
        assert_eq!(groups.intern(b"a"), (0, false));
        groups.remove(0);
        assert_eq!(groups.intern(b"c"), (0, true));
        assert_eq!(groups.intern(b"a"), (2, true));
        assert_eq!(groups.key(0), b"c");
        assert_eq!(groups.capacity(), 3);
    }
    #[test]
    fn groups_close_ranks() {
        let mut groups = Groups::default();
        for key in [b"a", b"b", b"c", b"d"] {
            groups.intern(key);
        }
        groups.remove(1);
        groups.remove(2);
        groups.renumber(3, 1);
        groups.forget_free_numbers();
        assert_eq!((groups.len(), groups.capacity()), (2, 2));
        assert_eq!(groups.intern(b"d"), (1, false));
        assert_eq!(groups.intern(b"b"), (2, true));
        assert_eq!([0, 1, 2].map(|group| groups.key(group)), [b"a", b"d", b"b"]);
    }

    #[test]
    fn keys_of_any_length_are_told_apart() {
        let mut groups = Groups::default();
        let key = |len: usize| vec![7; len];
        for len in 0..2 * crate::operators::small_bytes::INLINE {
            assert_eq!(groups.intern(&key(len)), (len as u32, true));
        }
        for len in 0..2 * crate::operators::small_bytes::INLINE {
            assert_eq!(groups.intern(&key(len)), (len as u32, false));
            assert_eq!(groups.key(len as u32), key(len));
        }
        assert_eq!(size_of::<Entry>(), 32);
    }
}
