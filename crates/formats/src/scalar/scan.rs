//! Looking at eight bytes at once.
//!
//! A word holds eight bytes, the first in the lowest place. The tests below mark bytes by their high bit and are exact for the lowest marked byte; above
//! it a borrow or carry may mark bytes that mean nothing, so only the lowest mark is ever used.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Marks the bytes that are `byte`.
#[inline]
pub(crate) const fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * byte as u64);
    difference.wrapping_sub(ONES) & !difference & HIGH_BITS
}

/// Marks the bytes that are less than `byte`, which is at most 128.
#[inline]
pub(crate) const fn less(word: u64, byte: u8) -> u64 {
    word.wrapping_sub(ONES * byte as u64) & !word & HIGH_BITS
}

/// Index of the first byte that `marks` marks in a word, or else `in_byte` accepts in the rest; the length when there is none.
#[inline(always)]
pub(crate) fn first(
    bytes: &[u8],
    marks: impl Fn(u64) -> u64,
    in_byte: impl Fn(u8) -> bool,
) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let marked = marks(u64::from_le_bytes(*word));
        if marked != 0 {
            return index * 8 + marked.trailing_zeros() as usize / 8;
        }
    }
    words.len() * 8
        + tail
            .iter()
            .position(|&byte| in_byte(byte))
            .unwrap_or(tail.len())
}

/// Whether all bytes are ASCII.
#[inline]
pub(crate) fn is_ascii(bytes: &[u8]) -> bool {
    let (words, tail) = bytes.as_chunks::<8>();
    let all = words
        .iter()
        .fold(0, |all, word| all | u64::from_ne_bytes(*word));
    // The last word covers what is left over, some bytes of it twice.
    match bytes.last_chunk::<8>() {
        Some(last) => (all | u64::from_ne_bytes(*last)) & HIGH_BITS == 0,
        None => tail.is_ascii(),
    }
}

/// How many of the eight bytes are digits before one that is not.
#[inline]
pub(crate) fn leading_digits(word: u64) -> usize {
    const HIGH_NIBBLES: u64 = ONES * 0xF0;
    const DIGITS: u64 = ONES * b'0' as u64;
    // A digit has the high nibble 3 and keeps it when 6 is added.
    let odd = (word & HIGH_NIBBLES) ^ DIGITS;
    let above_nine = (word.wrapping_add(ONES * 6) & HIGH_NIBBLES) ^ DIGITS;
    (odd | above_nine).trailing_zeros() as usize / 8
}

/// The number that the first `count` bytes, all digits, write; `count` is at most 8.
#[inline]
pub(crate) fn value_of_digits(word: u64, count: usize) -> u64 {
    if count == 0 {
        return 0;
    }
    // Moved up, the digits end in the highest byte, and zeros come in front of them.
    let digits = (word << (64 - 8 * count)) & (ONES * 0x0F);
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xFFFF_FFFF
}

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

/// Adds the digits from `at` on to `value` and gives where they end. Wraps beyond 19 digits; callers count.
#[inline(always)]
pub(crate) fn accumulate(bytes: &[u8], at: usize, mut value: u64) -> (u64, usize) {
    let mut end = at;
    while let Some(word) = bytes.get(end..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*word);
        let count = leading_digits(word);
        value = value
            .wrapping_mul(POWERS_OF_TEN[count])
            .wrapping_add(value_of_digits(word, count));
        end += count;
        if count < 8 {
            return (value, end);
        }
    }
    while let Some(&byte) = bytes.get(end) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    (value, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_agree_with_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..40), wanted: u8, below in 0u8..=128) {
            let expected = bytes.iter().position(|&byte| byte == wanted || byte < below).unwrap_or(bytes.len());
            let found = first(&bytes, |word| equal(word, wanted) | less(word, below), |byte| byte == wanted || byte < below);
            prop_assert_eq!(found, expected);
            prop_assert_eq!(is_ascii(&bytes), bytes.is_ascii());
        }

        #[test]
        fn eight_digits_at_once_agree_with_one_at_a_time(bytes: [u8; 8], digits in "[0-9]{0,8}") {
            let mut word = bytes;
            word[..digits.len()].copy_from_slice(digits.as_bytes());
            let count = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let value = word[..count].iter().fold(0, |value, byte| value * 10 + u64::from(byte - b'0'));
            let word = u64::from_le_bytes(word);
            prop_assert_eq!((leading_digits(word), value_of_digits(word, count)), (count, value));
        }

        #[test]
        fn numbers_are_accumulated(value: u64, tail in "[^0-9]{0,12}") {
            let text = format!("x{value}{tail}");
            prop_assert_eq!(accumulate(text.as_bytes(), 1, 0), (value, 1 + value.to_string().len()));
        }
    }

    #[test]
    fn ascii_is_seen_everywhere() {
        for len in 0..40 {
            let mut bytes = vec![b'a'; len];
            assert!(is_ascii(&bytes));
            for at in 0..len {
                bytes[at] = 0x80;
                assert!(!is_ascii(&bytes), "{at} of {len}");
                bytes[at] = b'a';
            }
        }
    }
}
