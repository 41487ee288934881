//! About how much memory the allocator gives for what stands beside an array, so that state can be counted without asking it.

/// Words that an allocation has beside what was asked for, and what its size is a multiple of.
const HEAD: usize = 8;
const GRAIN: usize = 16;
const LEAST: usize = 32;

/// Entries that a node of a B-tree has room for, and how many are there as a rule.
const NODE_ROOM: usize = 11;
const NODE_ENTRIES: usize = 7;

/// A block of so many bytes; none takes nothing.
pub fn block(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        _ => (bytes + HEAD).next_multiple_of(GRAIN).max(LEAST),
    }
}

/// A B-tree of so many entries.
pub fn tree(entries: usize, entry_bytes: usize) -> usize {
    entries.div_ceil(NODE_ENTRIES) * block(NODE_ROOM * entry_bytes + 2 * HEAD)
}

/// A running sum of such bytes.
#[derive(Debug, Default, Clone, Copy)]
pub struct HeapBytes(usize);

impl HeapBytes {
    /// So many more.
    pub fn add(&mut self, bytes: usize) {
        self.0 += bytes;
    }

    /// So many fewer. A sum that is wrong makes evictions come early or late and nothing else, so it stops nobody.
    pub fn subtract(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.0, "no more is given back than was taken");
        self.0 = self.0.saturating_sub(bytes);
    }

    /// Something has grown or shrunk.
    pub fn change(&mut self, before: usize, after: usize) {
        self.add(after);
        self.subtract(before);
    }

    /// The sum.
    pub fn get(self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_a_least_size_and_trees_whole_nodes() {
        assert_eq!([0, 1, 24, 25, 40, 41].map(block), [0, 32, 32, 48, 48, 64]);
        assert_eq!(tree(0, 24), 0);
        assert_eq!(tree(1, 24), tree(7, 24));
        assert_eq!(tree(8, 24), 2 * tree(7, 24));
    }
}
