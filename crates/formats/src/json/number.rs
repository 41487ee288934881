//! JSON numbers.
//!
//! Each has a fast way for the ordinary case (up to 18 digits, no exponent) and one careful way for the rest, which starts from the number's text.

use crate::scalar::{integer::SAFE_DIGITS, scan};

use super::cursor::{Cursor, Read};

/// Powers of ten that an `f64` holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Largest integer up to which every integer is an `f64`.
const EXACT_INTEGER: u64 = 1 << 53;

impl<'a> Cursor<'a> {
    /// Reads a number and gives its text.
    pub(super) fn number(&mut self) -> Read<&'a [u8]> {
        let start = self.pos;
        if self.peek() == b'-' {
            self.pos += 1;
        }
        let leading_zero = self.peek() == b'0';
        match self.digits() {
            0 => return Err(self.fault("a number without digits")),
            2.. if leading_zero => return Err(self.fault_at(start, "a number with a leading zero")),
            _ => {}
        }
        if self.peek() == b'.' {
            self.pos += 1;
            if self.digits() == 0 {
                return Err(self.fault("a number without digits after its point"));
            }
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.pos += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.pos += 1;
            }
            if self.digits() == 0 {
                return Err(self.fault("a number without digits in its exponent"));
            }
        }
        Ok(&self.bytes[start..self.pos])
    }

    /// Reads an integer of at most 18 digits. `None` leaves the cursor where it was: the careful way decides.
    #[inline(always)]
    pub(super) fn short_integer(&mut self) -> Option<i64> {
        let start = self.pos;
        let negative = self.peek() == b'-';
        let first = start + usize::from(negative);
        let (value, end) = scan::accumulate(self.bytes, first, 0);
        let count = end - first;
        let leading_zero = count > 1 && self.bytes[first] == b'0';
        let more = matches!(self.bytes.get(end), Some(b'.' | b'e' | b'E'));
        if count == 0 || count > SAFE_DIGITS || leading_zero || more {
            return None;
        }
        self.pos = end;
        let value = value.cast_signed();
        Some(if negative { -value } else { value })
    }

    /// Reads a double of at most 18 digits without an exponent, exactly. `None` leaves the cursor where it was.
    #[inline]
    pub(super) fn short_double(&mut self) -> Option<f64> {
        let start = self.pos;
        let negative = self.peek() == b'-';
        let first = start + usize::from(negative);
        let (mut value, mut end) = scan::accumulate(self.bytes, first, 0);
        let whole = end - first;
        if whole == 0 || (whole > 1 && self.bytes[first] == b'0') {
            return None;
        }
        let mut fraction = 0;
        if self.bytes.get(end) == Some(&b'.') {
            let point = end + 1;
            (value, end) = scan::accumulate(self.bytes, point, value);
            fraction = end - point;
            if fraction == 0 {
                return None;
            }
        }
        let exponent = matches!(self.bytes.get(end), Some(b'e' | b'E'));
        if exponent || whole + fraction > SAFE_DIGITS || value > EXACT_INTEGER {
            return None;
        }
        self.pos = end;
        // Both operands are exact, so one division rounds once: the nearest double.
        let magnitude = value as f64 / EXACT_POWERS[fraction];
        Some(if negative { -magnitude } else { magnitude })
    }

    fn digits(&mut self) -> usize {
        let start = self.pos;
        while self.peek().is_ascii_digit() {
            self.pos += 1;
        }
        self.pos - start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_forms_take_what_is_surely_exact() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-7,", Some(-7)),
            ("999999999999999999}", Some(999_999_999_999_999_999)),
            ("1000000000000000000", None),
            ("01", None),
            ("1.5", None),
            ("1e5", None),
            ("-", None),
            ("x", None),
        ] {
            let mut cursor = Cursor::new(text.as_bytes());
            assert_eq!(cursor.short_integer(), expected, "{text}");
            assert_eq!(cursor.pos > 0, expected.is_some(), "{text}");
        }
        assert_eq!(
            Cursor::new(b"-0").short_double().map(f64::to_bits),
            Some((-0.0f64).to_bits())
        );
        for text in ["1e5", "1.", "01.5", ".5", "1234567890.1234567890"] {
            assert_eq!(Cursor::new(text.as_bytes()).short_double(), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn short_doubles_are_the_nearest(whole in 0u32.., fraction in 0u32..) {
            let text = format!("-{whole}.{fraction}");
            if let Some(value) = Cursor::new(text.as_bytes()).short_double() {
                prop_assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits());
            }
        }

        #[test]
        fn short_integers_are_exact(value: i64) {
            if let Some(read) = Cursor::new(value.to_string().as_bytes()).short_integer() {
                prop_assert_eq!(read, value);
            }
        }
    }
}
