//! A column of byte strings, back to back with 32-bit offsets.
//!
//! Invariant: `offsets` has one entry more than there are rows and never decreases. A value may be appended in pieces through
//! [`VarlenColumn::buffer`] and is closed by [`VarlenColumn::finish_value`]; bytes behind the last offset are not part of any row.

use arrow::{
    array::GenericByteArray,
    buffer::{Buffer, OffsetBuffer, ScalarBuffer},
    datatypes::ByteArrayType,
    error::ArrowError,
};

use super::validity::Validity;

/// Bytes that are reserved on a guess at most; larger runs grow as they go.
const MAX_GUESS: usize = 16 << 20;

/// Text or bytes. The sum of all values stays below `i32::MAX`: decoders bound a run before they start.
#[derive(Debug)]
pub(crate) struct VarlenColumn {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    validity: Validity,
    /// Bytes a row in the last finished run: a good guess for the next one.
    row_bytes: usize,
}

impl VarlenColumn {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            offsets: vec![0],
            validity: Validity::default(),
            row_bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.offsets.reserve(rows);
        self.bytes.reserve((rows * self.row_bytes).min(MAX_GUESS));
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.finish_value();
    }

    pub(crate) fn push_null(&mut self) {
        self.drop_unfinished();
        self.offsets.push(self.end());
        self.validity.push_null();
    }

    /// Where to append the next value's bytes.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends the value that was appended to [`Self::buffer`].
    #[inline(always)]
    pub(crate) fn finish_value(&mut self) {
        // A run is bounded to a quarter of `i32::MAX` bytes, and no value is decoded to more than three times its encoded size.
        self.offsets
            .push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
        self.validity.push_valid();
    }

    /// The value at `row`.
    pub(crate) fn value(&self, row: usize) -> &[u8] {
        let start = usize::try_from(self.offsets[row]).unwrap_or(0);
        let end = usize::try_from(self.offsets[row + 1]).unwrap_or(0);
        &self.bytes[start..end]
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len + 1);
        self.validity.truncate(len);
        self.drop_unfinished();
    }

    pub(crate) fn finish<T: ByteArrayType<Offset = i32>>(
        &mut self,
    ) -> Result<GenericByteArray<T>, ArrowError> {
        self.drop_unfinished();
        self.row_bytes = self.bytes.len().div_ceil(self.len().max(1));
        let bytes = Buffer::from_vec(std::mem::take(&mut self.bytes));
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        GenericByteArray::try_new(
            OffsetBuffer::new(ScalarBuffer::from(offsets)),
            bytes,
            self.validity.finish(),
        )
    }

    fn end(&self) -> i32 {
        self.offsets.last().copied().unwrap_or(0)
    }

    fn drop_unfinished(&mut self) {
        let end = usize::try_from(self.end()).unwrap_or(0);
        self.bytes.truncate(end);
    }
}
