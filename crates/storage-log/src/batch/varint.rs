//! Zigzag varints, and a reader over borrowed bytes that never runs past their end.

/// Appends a zigzag varint.
pub(super) fn put(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest as u8) | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Bytes that [`put`] needs.
pub(super) fn len(value: i64) -> usize {
    let zigzag = ((value << 1) ^ (value >> 63)).cast_unsigned();
    // One byte per started seven bits; zero needs one too.
    (70 - (zigzag | 1).leading_zeros() as usize) / 7
}

/// Reads forward over borrowed bytes; every method answers `None` at the end or on a number that is too long.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// A zigzag varint of up to 64 bits.
    #[inline]
    pub(super) fn varlong(&mut self) -> Option<i64> {
        // Lengths and deltas mostly take one byte or two.
        let (raw, len) = match *self.rest {
            [first, ..] if first < 0x80 => (u64::from(first), 1),
            [first, second, ..] if second < 0x80 => {
                (u64::from(first & 0x7f) | u64::from(second) << 7, 2)
            }
            _ => return self.long_varlong(),
        };
        self.rest = &self.rest[len..];
        Some((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed()))
    }

    fn long_varlong(&mut self) -> Option<i64> {
        let mut raw = 0u64;
        for (i, byte) in self.rest.iter().take(10).enumerate() {
            // The tenth byte holds the last bit only.
            if i == 9 && *byte > 1 {
                return None;
            }
            raw |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[i + 1..];
                return Some((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed()));
            }
        }
        None
    }

    /// A zigzag varint that fits 32 bits.
    pub(super) fn varint(&mut self) -> Option<i32> {
        i32::try_from(self.varlong()?).ok()
    }

    /// A length, then so many bytes; -1 is null, anything below is malformed.
    pub(super) fn nullable(&mut self) -> Option<Option<&'a [u8]>> {
        match self.varint()? {
            -1 => Some(None),
            len => Some(Some(self.take(usize::try_from(len).ok()?)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_have_the_length_foretold() {
        let mut samples = vec![
            0,
            1,
            -1,
            i64::MIN,
            i64::MAX,
            i64::from(i32::MIN),
            i64::from(i32::MAX),
        ];
        for bit in 0..63 {
            samples.extend([1 << bit, (1 << bit) - 1, -(1 << bit), -(1 << bit) - 1]);
        }
        for value in samples {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(bytes.len(), len(value), "{value}");
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.varlong(), Some(value));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn known_encodings_are_those_of_kafka() {
        for (value, bytes) in [
            (0, &[0u8][..]),
            (-1, &[1]),
            (1, &[2]),
            (63, &[0x7e]),
            (-64, &[0x7f]),
            (64, &[0x80, 1]),
        ] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out, bytes, "{value}");
        }
    }

    #[test]
    fn overlong_and_cut_numbers_are_refused() {
        assert_eq!(Reader::new(&[0x80; 11]).varlong(), None);
        assert_eq!(Reader::new(&[0x80]).varlong(), None);
        assert_eq!(
            Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varlong(),
            None
        );
        assert_eq!(
            Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).varint(),
            None,
            "beyond 32 bits"
        );
        assert_eq!(Reader::new(&[3]).nullable(), None, "length -2");
        assert_eq!(
            Reader::new(&[4, 1]).nullable(),
            None,
            "two bytes announced, one there"
        );
    }
}
