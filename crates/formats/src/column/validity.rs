//! Which rows of a column are NULL.
//!
//! Most columns of most runs have no NULL, so the bitmap exists only from the first NULL on.

use arrow::{array::BooleanBufferBuilder, buffer::NullBuffer};

/// One bit per row, true where there is a value.
#[derive(Debug, Default)]
pub(crate) struct Validity {
    len: usize,
    bits: Option<BooleanBufferBuilder>,
}

impl Validity {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(crate) fn push_valid(&mut self) {
        self.len += 1;
        if let Some(bits) = &mut self.bits {
            bits.append(true);
        }
    }

    pub(crate) fn push_null(&mut self) {
        let len = self.len;
        let bits = self.bits.get_or_insert_with(|| {
            let mut bits = BooleanBufferBuilder::new(len + 1);
            bits.append_n(len, true);
            bits
        });
        bits.append(false);
        self.len += 1;
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        if let Some(bits) = &mut self.bits {
            bits.truncate(self.len);
        }
    }

    /// Takes the rows; the next run begins empty.
    pub(crate) fn finish(&mut self) -> Option<NullBuffer> {
        self.len = 0;
        let nulls = NullBuffer::new(self.bits.take()?.build());
        (nulls.null_count() > 0).then_some(nulls)
    }
}
