//! Changes to one state prefix since its last checkpoint.
//!
//! Keys and values stand back to back in one arena, in the order in which they came: an operator hands its state over at the speed of a copy, and
//! whoever writes the checkpoint puts it into key order, on a thread of its own.
//!
//! INVARIANT: dropped ranges stand before everything else; of several changes to one key the last counts.

use super::key::{ORDER_BYTES, key_order};

/// See the module. Keys are without the prefix.
#[derive(Debug, Default)]
pub struct StateChanges {
    dropped: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// One change: its key, and behind that its value, which ends where the next key begins.
#[derive(Debug, Clone, Copy)]
struct Entry {
    key_start: usize,
    key_end: usize,
    /// Whether there is a value; without one the key goes.
    present: bool,
}

impl StateChanges {
    /// Removes all keys from `from` on, below `to`, before any other change.
    pub fn drop_range(&mut self, from: Vec<u8>, to: Vec<u8>) {
        debug_assert!(
            self.entries.is_empty(),
            "ranges are dropped before single keys change"
        );
        self.dropped.push((from, to));
    }

    /// Takes the changes of `other`, which follow those that are here.
    pub fn append(&mut self, other: &mut Self) {
        debug_assert!(
            other.dropped.is_empty() || self.entries.is_empty(),
            "ranges are dropped before single keys change"
        );
        self.dropped.append(&mut other.dropped);
        let start = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        let moved = other.entries.drain(..).map(|entry| Entry {
            key_start: start + entry.key_start,
            key_end: start + entry.key_end,
            ..entry
        });
        self.entries.extend(moved);
    }

    /// Sets the value of a key to what `write` appends.
    pub fn put(&mut self, key: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        self.push(key, true);
        write(&mut self.bytes);
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &[u8]) {
        self.push(key, false);
    }

    fn push(&mut self, key: &[u8], present: bool) {
        let key_start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.entries.push(Entry {
            key_start,
            key_end: self.bytes.len(),
            present,
        });
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.dropped.is_empty()
    }

    /// Bytes of all keys and values.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that it takes in memory, with what putting it into key order will take.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.entries.len() * ORDER_BYTES
    }

    /// The dropped ranges: from the first key on, below the second.
    pub fn dropped(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.dropped
            .iter()
            .map(|(from, to)| (from.as_slice(), to.as_slice()))
    }

    /// The changes in key order, the last of each key.
    pub fn sorted(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let key = |position: usize| {
            let entry = &self.entries[position];
            &self.bytes[entry.key_start..entry.key_end]
        };
        let mut order = key_order(self.entries.len(), key).into_iter().peekable();
        std::iter::from_fn(move || {
            loop {
                let position = order.next()?;
                if order.peek().is_none_or(|&next| key(next) != key(position)) {
                    return Some((key(position), self.value(position)));
                }
            }
        })
    }

    fn value(&self, position: usize) -> Option<&[u8]> {
        let entry = &self.entries[position];
        let end = self
            .entries
            .get(position + 1)
            .map_or(self.bytes.len(), |next| next.key_start);
        entry.present.then(|| &self.bytes[entry.key_end..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_of_each_key_counts() {
        let mut changes = StateChanges::default();
        assert!(changes.is_empty());
        changes.put(b"b", |out| out.extend_from_slice(b"1"));
        changes.put(b"a", |_| {});
        changes.delete(b"b");
        let mut more = StateChanges::default();
        more.delete(b"c");
        more.put(b"c", |out| out.extend_from_slice(b"22"));
        changes.append(&mut more);
        assert!(more.is_empty());
        let sorted: Vec<_> = changes.sorted().collect();
        let expected: [(&[u8], Option<&[u8]>); 3] =
            [(b"a", Some(b"")), (b"b", None), (b"c", Some(b"22"))];
        assert_eq!(sorted, expected);
        assert_eq!(changes.byte_len(), 8);
    }
}
