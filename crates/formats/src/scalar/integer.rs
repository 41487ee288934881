//! Integers as decimal text.

use super::scan;

/// Digits that surely fit an `i64`.
pub(crate) const SAFE_DIGITS: usize = 18;

/// Appends `value` in decimal.
pub(crate) fn write<I: itoa::Integer>(out: &mut Vec<u8>, value: I) {
    let mut buffer = itoa::Buffer::new();
    out.extend_from_slice(buffer.format(value).as_bytes());
}

/// Reads an optional sign and digits, nothing else. `None` when it is something else or does not fit 64 bits.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    if digits.len() <= SAFE_DIGITS {
        let (value, end) = scan::accumulate(digits, 0, 0);
        let value = value.cast_signed();
        return (end == digits.len()).then_some(if negative { -value } else { value });
    }
    let mut value = 0i64;
    for &byte in digits {
        let digit = i64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        // Negative numbers reach one further than positive ones, so the sum is kept negative.
        value = value.checked_mul(10)?.checked_sub(digit)?;
    }
    if negative {
        Some(value)
    } else {
        value.checked_neg()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_whole_range_and_no_more() {
        let cases: [(&str, Option<i64>); 12] = [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("+17", Some(17)),
            ("007", Some(7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("", None),
            ("-", None),
            ("1.0", None),
            (" 1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
        }
    }
}
