//! Encoded records, back to back in one buffer.
//!
//! Invariant: `ends` and `present` have one entry per record; record `i` is `bytes[ends[i - 1]..ends[i]]`, and an absent record is empty.
//! Bytes behind the last end belong to a record that is still being written.

/// A run of encoded records. A record may be absent (a tombstone, a NULL key, or one that could not be encoded).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct EncodedRecords {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    present: Vec<bool>,
}

impl EncodedRecords {
    /// An empty run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all records, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.present.clear();
    }

    /// Number of records, absent ones included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all records together.
    pub fn byte_len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The record at `index`; `None` when it is absent or out of range.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        if !*self.present.get(index)? {
            return None;
        }
        self.bytes.get(self.start(index)..self.ends[index])
    }

    /// All records in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Appends a whole record.
    pub fn push_bytes(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.finish_record();
    }

    /// Appends an absent record.
    pub fn push_absent(&mut self) {
        self.abandon_record();
    }

    /// The buffer to write the next record into, piece by piece; end it with [`Self::finish_record`] or [`Self::abandon_record`].
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Makes what was written since the last record a record.
    pub(crate) fn finish_record(&mut self) {
        self.ends.push(self.bytes.len());
        self.present.push(true);
    }

    /// Drops what was written since the last record; the record is absent.
    pub(crate) fn abandon_record(&mut self) {
        let end = self.byte_len();
        self.bytes.truncate(end);
        self.ends.push(end);
        self.present.push(false);
    }

    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends[index - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_their_bounds() {
        let mut records = EncodedRecords::new();
        records.push_bytes(b"one");
        records.push_absent();
        records.push_bytes(b"");
        records.buffer().extend_from_slice(b"half");
        records.abandon_record();
        records.push_bytes(b"two");
        let all: Vec<_> = records.iter().collect();
        assert_eq!(
            all,
            [
                Some(&b"one"[..]),
                None,
                Some(&b""[..]),
                None,
                Some(&b"two"[..])
            ]
        );
        assert_eq!((records.len(), records.byte_len()), (5, 6));
        assert_eq!(records.get(5), None);
        records.clear();
        assert!(records.is_empty());
    }
}
