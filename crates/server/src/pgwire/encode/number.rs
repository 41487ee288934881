//! Numbers as PostgreSQL writes them.

use std::fmt::Write;

use arrow::datatypes::i256;
use bytes::{BufMut, BytesMut};

use super::Unencodable;

/// Digits of an `i256`, with room for the sign.
const MAX_DIGITS: usize = 80;
/// Decimal digits that a binary NUMERIC packs into one 16-bit number.
const GROUP_DIGITS: i32 = 4;

/// Writes an integer.
pub(super) fn write_integer(mut value: u64, negative: bool, out: &mut BytesMut) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    if negative {
        out.put_u8(b'-');
    }
    out.put_slice(&digits[start..]);
}

/// Writes a signed integer.
pub(super) fn write_signed(value: i64, out: &mut BytesMut) {
    write_integer(value.unsigned_abs(), value < 0, out);
}

/// Writes a floating-point number with the fewest digits that read back as the same number: plain up to `plain_digits` digits before
/// the point and four zeros behind it, else with an exponent of at least two digits.
fn write_float(shortest: &str, plain_digits: i32, out: &mut BytesMut) {
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    out.put_slice(sign.as_bytes());
    if exponent >= plain_digits || exponent < -4 {
        out.put_slice(mantissa.as_bytes());
        out.put_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.abs() < 10 {
            out.put_u8(b'0');
        }
        write_integer(u64::from(exponent.unsigned_abs()), false, out);
    } else if exponent < 0 {
        out.put_slice(b"0.");
        out.put_bytes(b'0', (-exponent - 1) as usize);
        out.put_slice(first.as_bytes());
        out.put_slice(rest.as_bytes());
    } else {
        let before_point = (exponent as usize).min(rest.len());
        out.put_slice(first.as_bytes());
        out.put_slice(&rest.as_bytes()[..before_point]);
        out.put_bytes(b'0', exponent as usize - before_point);
        if before_point < rest.len() {
            out.put_u8(b'.');
            out.put_slice(&rest.as_bytes()[before_point..]);
        }
    }
}

/// Text on the stack: the longest that `{:e}` makes of a double has 24 characters.
struct Shortest {
    text: [u8; 32],
    length: usize,
}

impl Shortest {
    fn new(value: impl std::fmt::LowerExp) -> Self {
        let mut shortest = Self {
            text: [0; 32],
            length: 0,
        };
        let written = write!(shortest, "{value:e}");
        debug_assert!(written.is_ok(), "a number in shortest form fits 32 bytes");
        shortest
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length]).unwrap_or("0")
    }
}

impl Write for Shortest {
    fn write_str(&mut self, piece: &str) -> std::fmt::Result {
        let end = self.length + piece.len();
        self.text
            .get_mut(self.length..end)
            .ok_or(std::fmt::Error)?
            .copy_from_slice(piece.as_bytes());
        self.length = end;
        Ok(())
    }
}

fn write_not_finite(is_nan: bool, is_negative: bool, out: &mut BytesMut) {
    out.put_slice(match (is_nan, is_negative) {
        (true, _) => b"NaN".as_slice(),
        (false, true) => b"-Infinity",
        (false, false) => b"Infinity",
    });
}

/// Writes a double.
pub(super) fn write_f64(value: f64, out: &mut BytesMut) {
    if value.is_finite() {
        write_float(Shortest::new(value).as_str(), 15, out);
    } else {
        write_not_finite(value.is_nan(), value < 0.0, out);
    }
}

/// Writes a single-precision number.
pub(super) fn write_f32(value: f32, out: &mut BytesMut) {
    if value.is_finite() {
        write_float(Shortest::new(value).as_str(), 6, out);
    } else {
        write_not_finite(value.is_nan(), value < 0.0, out);
    }
}

/// A decimal's sign and digits, most significant first, without leading zeros (none for zero).
pub(super) struct Digits {
    digits: [u8; MAX_DIGITS],
    start: usize,
    negative: bool,
}

impl From<i128> for Digits {
    fn from(value: i128) -> Self {
        let mut digits = [0; MAX_DIGITS];
        let mut start = MAX_DIGITS;
        let mut rest = value.unsigned_abs();
        while rest != 0 {
            start -= 1;
            digits[start] = (rest % 10) as u8;
            rest /= 10;
        }
        Self {
            digits,
            start,
            negative: value < 0,
        }
    }
}

impl From<i256> for Digits {
    fn from(value: i256) -> Self {
        if let Some(small) = value.to_i128() {
            return small.into();
        }
        let text = value.to_string();
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let mut digits = [0; MAX_DIGITS];
        let start = MAX_DIGITS - text.len();
        for (digit, character) in digits[start..].iter_mut().zip(text.bytes()) {
            *digit = character - b'0';
        }
        Self {
            digits,
            start,
            negative,
        }
    }
}

impl Digits {
    fn as_slice(&self) -> &[u8] {
        &self.digits[self.start..]
    }

    /// Writes the decimal with `scale` digits behind the point; a negative scale appends zeros.
    pub(super) fn write_text(&self, scale: i8, out: &mut BytesMut) {
        let digits = self.as_slice();
        if self.negative {
            out.put_slice(b"-");
        }
        let put = |out: &mut BytesMut, digits: &[u8]| {
            digits.iter().for_each(|digit| out.put_u8(b'0' + digit))
        };
        let behind = usize::try_from(scale).unwrap_or(0);
        if digits.len() > behind {
            put(out, &digits[..digits.len() - behind]);
        } else {
            out.put_u8(b'0');
        }
        if !digits.is_empty() && scale < 0 {
            out.put_bytes(b'0', usize::from(scale.unsigned_abs()));
        }
        if behind > 0 {
            out.put_u8(b'.');
            out.put_bytes(b'0', behind.saturating_sub(digits.len()));
            put(out, &digits[digits.len().saturating_sub(behind)..]);
        }
    }

    /// Writes PostgreSQL's binary form: `i16` count of groups, `i16` weight of the first group, `u16` sign, `u16` scale, then groups of
    /// four decimal digits around the point.
    pub(super) fn write_binary(&self, scale: i8, out: &mut BytesMut) -> Result<(), Unencodable> {
        let digits = self.as_slice();
        let before_point = digits.len() as i32 - i32::from(scale);
        let weight = (before_point - 1).div_euclid(GROUP_DIGITS);
        // Zeros that fill the first group from the left, so that a group border falls on the point.
        let lead = (weight + 1) * GROUP_DIGITS - before_point;
        let digit = |position: i32| match usize::try_from(position - lead) {
            Ok(position) => i16::from(digits.get(position).copied().unwrap_or(0)),
            Err(_) => 0,
        };
        let all_groups = (lead + digits.len() as i32 + GROUP_DIGITS - 1) / GROUP_DIGITS;
        let group = |index: i32| {
            (0..GROUP_DIGITS).fold(0, |group, at| group * 10 + digit(index * GROUP_DIGITS + at))
        };
        let groups = (0..all_groups)
            .rev()
            .find(|index| group(*index) != 0)
            .map_or(0, |last| last + 1);
        let is_zero = groups == 0;

        out.put_i16(i16::try_from(groups).map_err(|_| Unencodable::Numeric)?);
        out.put_i16(if is_zero {
            0
        } else {
            i16::try_from(weight).map_err(|_| Unencodable::Numeric)?
        });
        out.put_u16(if self.negative { 0x4000 } else { 0 });
        out.put_u16(u16::try_from(scale).unwrap_or(0));
        (0..groups).for_each(|index| out.put_i16(group(index)));
        Ok(())
    }
}
