//! Keys of the state database: byte order is (query, state table, slot, key) order, so that one query, one operator or one slot is one range.
//!
//! ```text
//! query u64 BE | node u16 BE | slot u16 BE | key bytes in SQL order
//! ```
//!
//! A query's result table has node [`StateId::RESULT`] and slot 0: it is ordered by its key alone, so that a range of keys is one seek.

use highwater_planner::{catalog::QueryId, dataflow::NodeId};

/// One state table of one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateId {
    query: QueryId,
    node: u16,
}

impl StateId {
    /// Node number of the result table.
    pub const RESULT: u16 = u16::MAX;

    /// State of an operator.
    pub fn operator(query: QueryId, node: NodeId) -> Self {
        debug_assert!(
            node.0 < u32::from(Self::RESULT),
            "plans have far fewer nodes"
        );
        Self {
            query,
            node: node.0 as u16,
        }
    }

    /// The result table of a query.
    pub fn result(query: QueryId) -> Self {
        Self {
            query,
            node: Self::RESULT,
        }
    }

    /// The range of all its keys: first key, and the first behind.
    pub fn range(self) -> (Vec<u8>, Vec<u8>) {
        let mut first = self.query.0.to_be_bytes().to_vec();
        first.extend_from_slice(&self.node.to_be_bytes());
        let behind = successor(&first);
        (first, behind)
    }

    /// The prefix of one slot.
    pub fn slot(self, slot: u32) -> StatePrefix {
        let mut bytes = [0; StatePrefix::LEN];
        bytes[..8].copy_from_slice(&self.query.0.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.node.to_be_bytes());
        bytes[10..].copy_from_slice(&(slot as u16).to_be_bytes());
        StatePrefix(bytes)
    }

    /// The query that a key of the database belongs to.
    pub fn query_of(key: &[u8]) -> Option<QueryId> {
        key.first_chunk()
            .map(|bytes| QueryId(u64::from_be_bytes(*bytes)))
    }

    /// The range of all keys of a query: first key, and the first behind.
    pub fn query_range(query: QueryId) -> ([u8; 8], [u8; 8]) {
        (
            query.0.to_be_bytes(),
            query.0.saturating_add(1).to_be_bytes(),
        )
    }
}

/// The leading bytes of all keys of one slot of one state table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatePrefix([u8; Self::LEN]);

impl StatePrefix {
    /// Length in bytes.
    pub const LEN: usize = 12;

    /// Whether the state is a query's.
    pub fn belongs_to(&self, query: QueryId) -> bool {
        self.0[..8] == query.0.to_be_bytes()
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The whole key for `key`.
    pub fn key(&self, key: &[u8]) -> Vec<u8> {
        let mut whole = Vec::with_capacity(Self::LEN + key.len());
        whole.extend_from_slice(&self.0);
        whole.extend_from_slice(key);
        whole
    }

    /// The first key behind every key with this prefix.
    pub fn end(&self) -> Vec<u8> {
        successor(&self.0)
    }
}

/// The first byte string behind all that begin with `prefix`; empty when there is none.
pub fn successor(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    end
}

/// The first sixteen bytes of a key as a number. Numbers that differ have the order of their keys, so most comparisons of a sort need nothing else.
fn leading(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let len = key.len().min(bytes.len());
    bytes[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(bytes)
}

/// Bits of a position beside the leading bytes of its key.
const POSITION_BITS: u32 = 32;

/// Bytes that [`key_order`] takes for a key while it sorts.
pub const ORDER_BYTES: usize = size_of::<u128>() + size_of::<usize>();

/// The positions `0..count` in the order of their keys, those of equal keys in their own order.
///
/// What is sorted is one number for each: twelve leading bytes of the key and the position, so that few comparisons read a key.
pub fn key_order<'a>(count: usize, key: impl Fn(usize) -> &'a [u8]) -> Vec<usize> {
    debug_assert!(
        count <= 1 << POSITION_BITS,
        "what changes between two checkpoints has far fewer keys"
    );
    let head = |packed: u128| packed >> POSITION_BITS;
    let position = |packed: u128| packed as u32 as usize;
    let mut order: Vec<u128> = (0..count)
        .map(|position| {
            (head(leading(key(position))) << POSITION_BITS) | u128::from(position as u32)
        })
        .collect();
    order.sort_unstable_by(|&left, &right| {
        if head(left) == head(right) {
            let keys = || key(position(left)).cmp(key(position(right)));
            keys().then(left.cmp(&right))
        } else {
            left.cmp(&right)
        }
    });
    order.into_iter().map(position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_in_the_order_of_their_keys() {
        let keys: [&[u8]; 9] = [
            b"abcdefghijklmnopq",
            b"b",
            b"",
            b"abcdefghijklz",
            b"b",
            b"a\0",
            b"abcdefghijklmnop",
            b"a",
            b"",
        ];
        let order = key_order(keys.len(), |position| keys[position]);
        assert_eq!(order, [2, 8, 7, 5, 6, 0, 3, 1, 4]);
    }

    #[test]
    fn leading_bytes_have_the_order_of_their_keys() {
        let keys: [&[u8]; 7] = [
            b"",
            b"\0",
            b"\0\0",
            b"a",
            b"ab",
            b"abcdefghijklmnop",
            b"abcdefghijklmnopq",
        ];
        for pair in keys.windows(2) {
            assert!(leading(pair[0]) <= leading(pair[1]), "{pair:?}");
        }
        assert!(leading(b"b") > leading(b"abcdefghijklmnopq"));
    }
}
