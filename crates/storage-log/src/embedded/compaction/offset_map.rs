//! The last offset of each key, in memory of a fixed size.
//!
//! Keys are known by a 128-bit hash alone. Its secret is drawn anew for each map, so nobody can choose keys that fall together; by chance two of a
//! billion keys do so less often than once in 10^20 compactions.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Words of an entry: the two halves of the hash, and the offset plus one (0 means free).
const WORDS: usize = 3;

/// A map of fixed size with open addressing.
#[derive(Debug)]
pub(super) struct OffsetMap {
    words: Vec<u64>,
    slots: usize,
    len: usize,
    secrets: [RandomState; 2],
}

impl OffsetMap {
    /// A map that takes so much memory, and at least a few keys.
    pub(super) fn with_bytes(bytes: usize) -> Self {
        let slots = (bytes / (WORDS * size_of::<u64>())).max(16);
        Self {
            words: vec![0; slots * WORDS],
            slots,
            len: 0,
            secrets: [RandomState::new(), RandomState::new()],
        }
    }

    /// No further key fits. A tenth stays free, for without gaps a search would not end.
    pub(super) fn is_full(&self) -> bool {
        self.len >= self.slots / 10 * 9
    }

    /// The key was last seen at `offset`. Offsets come in order.
    pub(super) fn put(&mut self, key: &[u8], offset: i64) {
        debug_assert!(!self.is_full(), "the caller asks first");
        let (at, found) = self.find(key);
        if !found {
            self.len += 1;
            let [high, low] = self.hash(key);
            self.words[at] = high;
            self.words[at + 1] = low;
        }
        self.words[at + 2] = offset.cast_unsigned() + 1;
    }

    /// Where the key was last seen.
    pub(super) fn get(&self, key: &[u8]) -> Option<i64> {
        let (at, found) = self.find(key);
        found.then(|| (self.words[at + 2] - 1).cast_signed())
    }

    /// The key's entry, or the free one that it would get.
    fn find(&self, key: &[u8]) -> (usize, bool) {
        let [high, low] = self.hash(key);
        // Below the number of slots.
        let mut slot = (high % self.slots as u64) as usize;
        loop {
            let at = slot * WORDS;
            if self.words[at + 2] == 0 {
                return (at, false);
            }
            if self.words[at] == high && self.words[at + 1] == low {
                return (at, true);
            }
            slot = (slot + 1) % self.slots;
        }
    }

    fn hash(&self, key: &[u8]) -> [u64; 2] {
        [0, 1].map(|half: usize| {
            let mut hasher = self.secrets[half].build_hasher();
            hasher.write(key);
            hasher.finish()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_offset_wins_until_the_map_is_full() {
        let mut map = OffsetMap::with_bytes(24_000);
        let mut taken = 0;
        while !map.is_full() {
            map.put(format!("key {taken}").as_bytes(), taken);
            taken += 1;
        }
        assert_eq!(taken, 900, "nine tenths of a thousand");
        assert_eq!(map.get(b"key 17"), Some(17));
        assert_eq!(map.get(b"key 900"), None);
        let mut map = OffsetMap::with_bytes(24_000);
        for offset in 0..10_000 {
            map.put(format!("key {}", offset % 50).as_bytes(), offset);
        }
        assert_eq!((map.len, map.get(b"key 7")), (50, Some(9_957)));
        assert_eq!(map.get(b""), None);
    }
}
