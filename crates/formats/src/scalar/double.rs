//! Doubles as text, in Java's layout.
//!
//! The digits are the fewest that read back as the same number. Their layout is that of `Double.toString`: plain from 10^-3 up to 10^7 with at
//! least one digit after the point, else `d.dddE±n` without a plus sign.

/// Appends `value` as Java prints a `double`.
pub(crate) fn write_f64(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        out.extend_from_slice(not_finite(value).as_bytes());
        return;
    }
    let mut buffer = ryu::Buffer::new();
    write_java_layout(out, buffer.format_finite(value).as_bytes());
}

/// Appends `value` as Java prints a `float`.
pub(crate) fn write_f32(out: &mut Vec<u8>, value: f32) {
    if !value.is_finite() {
        out.extend_from_slice(not_finite(f64::from(value)).as_bytes());
        return;
    }
    let mut buffer = ryu::Buffer::new();
    write_java_layout(out, buffer.format_finite(value).as_bytes());
}

/// Java's name of a number that is not finite.
pub(crate) fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// Reads what `Double.parseDouble` reads: decimal forms and the three names, blanks around them allowed.
pub(crate) fn parse(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text)
        .ok()?
        .trim_matches(|c: char| c <= ' ');
    match text.strip_prefix(['+', '-']).unwrap_or(text) {
        "NaN" => return Some(f64::NAN),
        "Infinity" => {
            return Some(if text.starts_with('-') {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            });
        }
        _ => {}
    }
    // Rust would also read `inf` and `nan` in any case.
    if !text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
    {
        return None;
    }
    text.parse().ok()
}

/// Largest width of digits that stay in Java's plain form, with room for the sign.
const MAX_DIGITS: usize = 24;

/// Lays out the number in `text` (plain or with `e`, as ryu writes it) as Java does.
fn write_java_layout(out: &mut Vec<u8>, text: &[u8]) {
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if negative {
        out.push(b'-');
    }
    let (mantissa, exponent) = match unsigned.iter().position(|&byte| byte == b'e') {
        Some(at) => (
            &unsigned[..at],
            super::integer::parse(&unsigned[at + 1..]).unwrap_or(0),
        ),
        None => (unsigned, 0),
    };
    let point = mantissa
        .iter()
        .position(|&byte| byte == b'.')
        .unwrap_or(mantissa.len());
    // Plain text below 10^7 with a point is already in Java's layout, unless it is smaller than 10^-3.
    let small =
        mantissa.starts_with(b"0.000") && mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9'));
    if exponent == 0 && point <= 7 && point < mantissa.len() && !small {
        out.extend_from_slice(mantissa);
        return;
    }

    // Otherwise: significant digits and the power of ten of the first one.
    let mut digits = [b'0'; MAX_DIGITS];
    let mut count = 0;
    let mut leading_zeros = 0i64;
    for &byte in mantissa.iter().filter(|&&byte| byte != b'.') {
        if count == 0 && byte == b'0' {
            leading_zeros += 1;
        } else if count < MAX_DIGITS {
            digits[count] = byte;
            count += 1;
        }
    }
    while count > 1 && digits[count - 1] == b'0' {
        count -= 1;
    }
    if count == 0 {
        out.extend_from_slice(b"0.0");
        return;
    }
    let power = exponent + i64::try_from(point).unwrap_or(0) - 1 - leading_zeros;
    if (-3..7).contains(&power) {
        write_plain(out, &digits[..count], power);
    } else {
        out.push(digits[0]);
        out.push(b'.');
        out.extend_from_slice(if count > 1 { &digits[1..count] } else { b"0" });
        out.push(b'E');
        super::integer::write(out, power);
    }
}

/// Writes digits of which the first stands for 10^`power`, -3 <= power < 7.
fn write_plain(out: &mut Vec<u8>, digits: &[u8], power: i64) {
    let Ok(whole) = usize::try_from(power + 1) else {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(
            b'0',
            usize::try_from(-power - 1).unwrap_or(0),
        ));
        out.extend_from_slice(digits);
        return;
    };
    if whole == 0 {
        out.extend_from_slice(b"0.");
        out.extend_from_slice(digits);
    } else if digits.len() <= whole {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', whole - digits.len()));
        out.extend_from_slice(b".0");
    } else {
        out.extend_from_slice(&digits[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits[whole..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: f64) -> String {
        let mut out = Vec::new();
        write_f64(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn layout_is_java_s() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (1234567.0, "1234567.0"),
            (9999999.5, "9999999.5"),
            (1e7, "1.0E7"),
            (12345678.9, "1.23456789E7"),
            (123456789012345680.0, "1.23456789012345677E17"),
            (1e21, "1.0E21"),
            (1.5e300, "1.5E300"),
            (0.001, "0.001"),
            (0.00123, "0.00123"),
            (0.0009, "9.0E-4"),
            (1e-5, "1.0E-5"),
            (1.25e-10, "1.25E-10"),
            (f64::MAX, "1.7976931348623157E308"),
            (5e-324, "5.0E-324"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, expected) in cases {
            // Two shortest texts of one number may differ in the last digit; compare numbers there.
            if expected == "1.23456789012345677E17" {
                assert_eq!(text(value).parse::<f64>().unwrap(), value);
            } else {
                assert_eq!(text(value), expected);
            }
        }
    }

    #[test]
    fn reads_java_s_forms_only() {
        for good in ["1", "-1.5", "+2.0", " 3 ", "1e5", "1.0E-5", ".5", "5."] {
            assert!(parse(good.as_bytes()).is_some(), "{good}");
        }
        assert!(parse(b"NaN").is_some_and(f64::is_nan));
        assert_eq!(parse(b"-Infinity"), Some(f64::NEG_INFINITY));
        for bad in ["", "inf", "nan", "abc", "1,5", "1_000", "--1", "0x10"] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn text_reads_back(bits: u64) {
            let value = f64::from_bits(bits);
            let back = parse(text(value).as_bytes()).unwrap();
            prop_assert!(back == value || (back.is_nan() && value.is_nan()));
        }

        #[test]
        fn float_text_reads_back(bits: u32) {
            let value = f32::from_bits(bits);
            let mut out = Vec::new();
            write_f32(&mut out, value);
            let back = parse(&out).unwrap() as f32;
            prop_assert!(back == value || (back.is_nan() && value.is_nan()));
        }
    }
}
