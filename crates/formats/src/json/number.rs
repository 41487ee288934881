//! JSON numbers.
//!
//! Each has a fast way for the ordinary case (up to 18 digits, no exponent) and one careful way for the rest, which starts from the number's text.

use super::cursor::{Cursor, Read};

/// Digits that surely fit an `i64`.
const SAFE_DIGITS: usize = 18;

/// Powers of ten that an `f64` holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Powers of ten by which a value moves when up to eight digits follow.
const POWERS_OF_TEN: [u64; 9] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
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
    #[inline]
    pub(super) fn short_integer(&mut self) -> Option<i64> {
        let start = self.pos;
        let negative = self.peek() == b'-';
        let first = start + usize::from(negative);
        let (value, end) = self.accumulate(first, 0);
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
        let (mut value, mut end) = self.accumulate(first, 0);
        let whole = end - first;
        if whole == 0 || (whole > 1 && self.bytes[first] == b'0') {
            return None;
        }
        let mut fraction = 0;
        if self.bytes.get(end) == Some(&b'.') {
            let point = end + 1;
            (value, end) = self.accumulate(point, value);
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

    /// Adds the digits from `at` on to `value` and gives the end of them. Wraps beyond 19 digits; callers count.
    #[inline]
    fn accumulate(&self, at: usize, mut value: u64) -> (u64, usize) {
        let mut end = at;
        while let Some(word) = self.bytes.get(end..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_le_bytes(*word);
            let count = leading_digits(word);
            if count < 8 {
                value = value
                    .wrapping_mul(POWERS_OF_TEN[count])
                    .wrapping_add(value_of_digits(word, count));
                return (value, end + count);
            }
            value = value
                .wrapping_mul(POWERS_OF_TEN[8])
                .wrapping_add(value_of_digits(word, 8));
            end += 8;
        }
        while let Some(&byte) = self.bytes.get(end) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            end += 1;
        }
        (value, end)
    }

    fn digits(&mut self) -> usize {
        let start = self.pos;
        while self.peek().is_ascii_digit() {
            self.pos += 1;
        }
        self.pos - start
    }
}

/// How many of the eight characters (the first in the lowest byte) are digits before one that is not.
#[inline]
fn leading_digits(word: u64) -> usize {
    const HIGH_NIBBLES: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    const DIGITS: u64 = 0x3030_3030_3030_3030;
    // A digit has the high nibble 3 and keeps it when 6 is added. A carry out of a byte only reaches bytes above it, and a byte that carries is
    // no digit itself, so the lowest byte that is no digit is told right.
    let odd = (word & HIGH_NIBBLES) ^ DIGITS;
    let above_nine = (word.wrapping_add(0x0606_0606_0606_0606) & HIGH_NIBBLES) ^ DIGITS;
    (odd | above_nine).trailing_zeros() as usize / 8
}

/// The value of the first `count` characters, which are digits; 1 <= `count` <= 8, or 0 for nothing.
#[inline]
fn value_of_digits(word: u64, count: usize) -> u64 {
    if count == 0 {
        return 0;
    }
    // Moved up, the digits end in the highest byte, and zeros come in front of them.
    let digits = (word << (64 - 8 * count)) & 0x0F0F_0F0F_0F0F_0F0F;
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xFFFF_FFFF
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
        fn eight_characters_at_once_agree_with_one_at_a_time(bytes: [u8; 8], digits in "[0-9]{0,8}") {
            let mut word = bytes;
            word[..digits.len()].copy_from_slice(digits.as_bytes());
            let count = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let value = word[..count].iter().fold(0, |value, byte| value * 10 + u64::from(byte - b'0'));
            let word = u64::from_le_bytes(word);
            prop_assert_eq!((leading_digits(word), value_of_digits(word, count)), (count, value));
        }

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
