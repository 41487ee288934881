//! Decimals as text, exactly.
//!
//! A decimal column holds `unscaled / 10^scale` with at most `precision` digits. Text is brought to the column's scale digit by digit, so no
//! binary floating point is involved; a value that would need rounding or more digits is refused, as ksqlDB does.

use arrow::datatypes::i256;

/// Why a text is not a value of a decimal column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecimalFault {
    /// Not a number.
    Syntax,
    /// More digits after the point than the column's scale.
    Inexact,
    /// More digits than the column's precision.
    Overflow,
}

/// An integer wide enough for the unscaled value.
pub(crate) trait Unscaled: Sized + Copy {
    const ZERO: Self;
    /// `self * 10 + digit`; the caller bounds the number of digits.
    fn push_digit(self, digit: u8) -> Self;
    fn negate(self) -> Self;
}

impl Unscaled for i128 {
    const ZERO: Self = 0;
    fn push_digit(self, digit: u8) -> Self {
        self.wrapping_mul(10).wrapping_add(i128::from(digit))
    }
    fn negate(self) -> Self {
        self.wrapping_neg()
    }
}

impl Unscaled for i256 {
    const ZERO: Self = i256::ZERO;
    fn push_digit(self, digit: u8) -> Self {
        self.wrapping_mul(i256::from_i128(10))
            .wrapping_add(i256::from_i128(i128::from(digit)))
    }
    fn negate(self) -> Self {
        self.wrapping_neg()
    }
}

/// Reads `[+-]digits[.digits][e[+-]digits]` into a column of `precision` digits, `scale` of them after the point.
pub(crate) fn parse<T: Unscaled>(text: &[u8], precision: u8, scale: i8) -> Result<T, DecimalFault> {
    let number = split(text)?;
    // The value is `digits * 10^-fraction_len * 10^exponent`; at the column's scale it is `digits * 10^shift`.
    let fraction_len = i64::try_from(number.fraction.len()).map_err(|_| DecimalFault::Overflow)?;
    let shift = number
        .exponent
        .saturating_sub(fraction_len)
        .saturating_add(i64::from(scale));
    let digit_count = number.whole.len() + number.fraction.len();
    let mut digits = number
        .whole
        .iter()
        .chain(number.fraction)
        .map(|byte| byte - b'0');

    // Digits that fall behind the column's last one must be zero.
    let dropped = usize::try_from(shift.saturating_neg())
        .unwrap_or(0)
        .min(digit_count);
    let mut value = T::ZERO;
    let mut significant = 0usize;
    for digit in digits.by_ref().take(digit_count - dropped) {
        if significant > 0 || digit != 0 {
            significant += 1;
            if significant > usize::from(precision) {
                return Err(DecimalFault::Overflow);
            }
            value = value.push_digit(digit);
        }
    }
    if digits.any(|digit| digit != 0) {
        return Err(DecimalFault::Inexact);
    }
    if significant > 0 && shift > 0 {
        let zeros = usize::try_from(shift).unwrap_or(usize::MAX);
        if zeros.saturating_add(significant) > usize::from(precision) {
            return Err(DecimalFault::Overflow);
        }
        for _ in 0..zeros {
            value = value.push_digit(0);
        }
    }
    Ok(if number.negative {
        value.negate()
    } else {
        value
    })
}

/// The whole part of a number's text, as Java's `Number.longValue` gives it but for wrapping: `None` when it does not fit.
pub(crate) fn whole_part(text: &[u8]) -> Option<i64> {
    let number = split(text).ok()?;
    let whole_len = i64::try_from(number.whole.len())
        .ok()?
        .saturating_add(number.exponent);
    let mut value = 0i64;
    let mut digits = number
        .whole
        .iter()
        .chain(number.fraction)
        .map(|byte| i64::from(byte - b'0'));
    let mut taken = 0;
    while taken < whole_len {
        match digits.next() {
            Some(digit) => value = value.checked_mul(10)?.checked_sub(digit)?,
            // Only zeros follow: nothing changes for zero, and anything else overflows after a few more.
            None if value == 0 => return Some(0),
            None => value = value.checked_mul(10)?,
        }
        taken += 1;
    }
    if number.negative {
        Some(value)
    } else {
        value.checked_neg()
    }
}

/// Appends `unscaled` (an integer's decimal text) with `scale` digits after the point, without an exponent.
pub(crate) fn write(out: &mut Vec<u8>, unscaled: &[u8], scale: i8) {
    let (sign, digits) = match unscaled {
        [b'-', rest @ ..] => (&b"-"[..], rest),
        _ => (&b""[..], unscaled),
    };
    out.extend_from_slice(sign);
    match usize::try_from(scale) {
        Err(_) => {
            out.extend_from_slice(digits);
            if digits != b"0" {
                out.extend(std::iter::repeat_n(b'0', usize::from(scale.unsigned_abs())));
            }
        }
        Ok(0) => out.extend_from_slice(digits),
        Ok(scale) => {
            let whole = digits.len().saturating_sub(scale);
            if whole == 0 {
                out.extend_from_slice(b"0.");
                out.extend(std::iter::repeat_n(b'0', scale - digits.len()));
                out.extend_from_slice(digits);
            } else {
                out.extend_from_slice(&digits[..whole]);
                out.push(b'.');
                out.extend_from_slice(&digits[whole..]);
            }
        }
    }
}

/// Appends a number's text as Java's `BigDecimal` prints it: as written where there is no exponent, else normalised.
pub(crate) fn write_big_decimal_text(out: &mut Vec<u8>, text: &[u8]) {
    let Ok(number) = split(text) else {
        out.extend_from_slice(text);
        return;
    };
    if !text.iter().any(|byte| matches!(byte, b'e' | b'E')) && !number.is_tiny() {
        out.extend_from_slice(text);
        return;
    }
    number.write_java(out);
}

/// The parts of a number's text.
struct Number<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl Number<'_> {
    /// Whether Java would use an exponent though the text has none: below 10^-6.
    fn is_tiny(&self) -> bool {
        self.fraction.len() > 6
            && self.whole.iter().all(|&byte| byte == b'0')
            && self.fraction[..6].iter().all(|&byte| byte == b'0')
    }

    /// `BigDecimal.toString`: plain when the scale is not negative and the first digit is not behind the sixth place.
    fn write_java(&self, out: &mut Vec<u8>) {
        let scale = i64::try_from(self.fraction.len())
            .unwrap_or(i64::MAX)
            .saturating_sub(self.exponent);
        let all: Vec<u8> = self.whole.iter().chain(self.fraction).copied().collect();
        let first = all
            .iter()
            .position(|&byte| byte != b'0')
            .unwrap_or(all.len() - 1);
        let digits = &all[first..];
        let adjusted = i64::try_from(digits.len())
            .unwrap_or(i64::MAX)
            .saturating_sub(1)
            .saturating_sub(scale);
        if self.negative && digits != b"0" {
            out.push(b'-');
        }
        if scale >= 0 && adjusted >= -6 {
            // `adjusted >= -6` bounds the scale by the number of digits, so this writes at most six zeros more than it was given.
            let scale = usize::try_from(scale).unwrap_or(0);
            let whole = digits.len().saturating_sub(scale);
            if scale == 0 {
                out.extend_from_slice(digits);
            } else if whole == 0 {
                out.extend_from_slice(b"0.");
                out.extend(std::iter::repeat_n(b'0', scale - digits.len()));
                out.extend_from_slice(digits);
            } else {
                out.extend_from_slice(&digits[..whole]);
                out.push(b'.');
                out.extend_from_slice(&digits[whole..]);
            }
            return;
        }
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        if adjusted != 0 {
            out.push(b'E');
            if adjusted > 0 {
                out.push(b'+');
            }
            super::integer::write(out, adjusted);
        }
    }
}

/// Splits and checks the text of a number.
fn split(text: &[u8]) -> Result<Number<'_>, DecimalFault> {
    let (negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let whole_len = digit_run(rest);
    let (whole, rest) = rest.split_at(whole_len);
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => rest.split_at(digit_run(rest)),
        _ => (&rest[..0], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DecimalFault::Syntax);
    }
    let exponent = match rest {
        [] => 0,
        [b'e' | b'E', rest @ ..] => {
            let unsigned = rest
                .strip_prefix(b"+")
                .or(rest.strip_prefix(b"-"))
                .unwrap_or(rest);
            if unsigned.is_empty() || digit_run(unsigned) != unsigned.len() {
                return Err(DecimalFault::Syntax);
            }
            // An exponent that does not fit is as good as one at the end of the range.
            super::integer::parse(rest).unwrap_or(if rest.starts_with(b"-") {
                -i64::from(i32::MAX)
            } else {
                i64::from(i32::MAX)
            })
        }
        _ => return Err(DecimalFault::Syntax),
    };
    Ok(Number {
        negative,
        whole,
        fraction,
        exponent,
    })
}

fn digit_run(text: &[u8]) -> usize {
    text.iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exactly_or_says_why_not() {
        use DecimalFault::*;
        let cases: [(&str, u8, i8, Result<i128, DecimalFault>); 20] = [
            ("0", 4, 2, Ok(0)),
            ("1", 4, 2, Ok(100)),
            ("-1.5", 4, 2, Ok(-150)),
            ("99.99", 4, 2, Ok(9999)),
            ("100", 4, 2, Err(Overflow)),
            ("1.234", 4, 2, Err(Inexact)),
            ("1.230000", 4, 2, Ok(123)),
            ("00012.3", 4, 2, Ok(1230)),
            ("1e1", 4, 2, Ok(1000)),
            ("1.5E-1", 4, 2, Ok(15)),
            ("1e2", 4, 2, Err(Overflow)),
            ("0e999999999999999999999", 4, 2, Ok(0)),
            ("1e999999999999999999999", 4, 2, Err(Overflow)),
            ("1e-999999999999999999999", 4, 2, Err(Inexact)),
            (
                "10.1234512345123451234",
                21,
                19,
                Ok(101_234_512_345_123_451_234),
            ),
            (
                "99999999999999999999999999999999999999",
                38,
                0,
                Ok(10i128.pow(38) - 1),
            ),
            ("", 4, 2, Err(Syntax)),
            (".", 4, 2, Err(Syntax)),
            ("1e", 4, 2, Err(Syntax)),
            ("1x", 4, 2, Err(Syntax)),
        ];
        for (text, precision, scale, expected) in cases {
            assert_eq!(
                parse::<i128>(text.as_bytes(), precision, scale),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn wide_decimals_use_256_bits() {
        let nines = "9".repeat(76);
        let value: i256 = parse(nines.as_bytes(), 76, 0).unwrap();
        assert_eq!(value.to_string(), nines);
        assert_eq!(
            parse::<i256>("1".repeat(77).as_bytes(), 76, 0),
            Err(DecimalFault::Overflow)
        );
    }

    #[test]
    fn whole_parts() {
        for (text, expected) in [
            ("1.9", Some(1)),
            ("-1.9", Some(-1)),
            ("0.5", Some(0)),
            ("1.5e3", Some(1500)),
            ("123e-1", Some(12)),
            ("1e-400", Some(0)),
            ("0e999999999", Some(0)),
            ("1e18", Some(10i64.pow(18))),
            ("1e19", None),
            ("-9223372036854775808.7", Some(i64::MIN)),
            ("9223372036854775808", None),
        ] {
            assert_eq!(whole_part(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn writes_plain_text() {
        for (unscaled, scale, expected) in [
            ("0", 2, "0.00"),
            ("5", 2, "0.05"),
            ("-5", 3, "-0.005"),
            ("1234", 2, "12.34"),
            ("-1234", 0, "-1234"),
            ("12", -2, "1200"),
            ("0", -2, "0"),
        ] {
            let mut out = Vec::new();
            write(&mut out, unscaled.as_bytes(), scale);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn number_text_is_big_decimal_s() {
        for (text, expected) in [
            ("1", "1"),
            ("1.500", "1.500"),
            ("-0.000001", "-0.000001"),
            ("0.0000001", "1E-7"),
            ("1e5", "1E+5"),
            ("12.5e3", "1.25E+4"),
            ("12.5e1", "125"),
            ("1.25e-3", "0.00125"),
            ("1e-7", "1E-7"),
            ("0e3", "0E+3"),
        ] {
            let mut out = Vec::new();
            write_big_decimal_text(&mut out, text.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{text}");
        }
    }
}
