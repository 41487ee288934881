//! Keys of groups to group numbers, which index accumulators and rows.
//!
//! Numbers are dense and reused after a removal, in a fixed order, so that a replay numbers groups alike.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// See the module.
#[derive(Default)]
pub struct Groups {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    keys: Vec<Box<[u8]>>,
    hashes: Vec<u64>,
    free: Vec<u32>,
}

impl Groups {
    /// The group of `key`, and whether it was made now.
    pub fn intern(&mut self, key: &[u8]) -> (u32, bool) {
        let hash = self.hasher.hash_one(key);
        let (keys, hashes) = (&self.keys, &self.hashes);
        if let Some(&group) = self.table.find(hash, |&group| {
            hashes[group as usize] == hash && *keys[group as usize] == *key
        }) {
            return (group, false);
        }
        let group = match self.free.pop() {
            Some(group) => {
                self.keys[group as usize] = key.into();
                self.hashes[group as usize] = hash;
                group
            }
            None => {
                self.keys.push(key.into());
                self.hashes.push(hash);
                (self.keys.len() - 1) as u32
            }
        };
        let hashes = &self.hashes;
        self.table
            .insert_unique(hash, group, |&group| hashes[group as usize]);
        (group, true)
    }

    /// Forgets a group; its number will be used again.
    pub fn remove(&mut self, group: u32) {
        let hash = self.hashes[group as usize];
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == group) {
            entry.remove();
            self.keys[group as usize] = Box::default();
            self.free.push(group);
        }
    }

    /// The key of a group.
    pub fn key(&self, group: u32) -> &[u8] {
        &self.keys[group as usize]
    }

    /// One more than the highest number in use so far.
    pub fn capacity(&self) -> usize {
        self.keys.len()
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
}
