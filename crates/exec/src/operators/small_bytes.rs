//! A byte string that never changes; a short one stands where it is owned.

use super::heap::block;

/// Bytes that need no memory of their own: two numbers in byte form, or a short text.
pub const INLINE: usize = 22;

/// See the module.
#[derive(Debug, Clone)]
pub enum SmallBytes {
    Inline { len: u8, bytes: [u8; INLINE] },
    Apart(Box<[u8]>),
}

impl SmallBytes {
    /// A copy of `value`.
    pub fn new(value: &[u8]) -> Self {
        if value.len() > INLINE {
            return Self::Apart(value.into());
        }
        let mut bytes = [0; INLINE];
        bytes[..value.len()].copy_from_slice(value);
        Self::Inline {
            len: value.len() as u8,
            bytes,
        }
    }

    /// About how much memory a string of `len` bytes takes beside this.
    pub fn apart(len: usize) -> usize {
        match len {
            0..=INLINE => 0,
            _ => block(len),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Self::Apart(bytes) => bytes,
        }
    }

    /// Becomes a copy of `value`, in the memory that is there if it has the length for it.
    pub fn replace(&mut self, value: &[u8]) {
        match self {
            Self::Apart(own) if own.len() == value.len() => own.copy_from_slice(value),
            _ => *self = Self::new(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_come_back() {
        let value = |len: usize| vec![len as u8; len];
        for from in 0..2 * INLINE {
            for to in [0, 1, INLINE, INLINE + 1, from] {
                let mut small = SmallBytes::new(&value(from));
                assert_eq!(small.bytes(), value(from));
                small.replace(&vec![9; to]);
                assert_eq!(small.bytes(), vec![9; to]);
            }
        }
        assert_eq!(size_of::<SmallBytes>(), 24);
        assert_eq!(size_of::<Option<SmallBytes>>(), 24);
    }
}
