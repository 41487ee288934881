//! NUMERIC from text and from its binary form, as plain decimal text: the form that casts to any decimal type without loss.

use pgwire::api::Type;

use super::{invalid_binary, invalid_text, out_of_range};
use crate::sqlstate::SqlError;

/// Longest plain form: well beyond the 76 digits that any decimal type here holds, and a bound on what an exponent can blow up.
const MAX_DIGITS: usize = 1_000;
/// Decimal digits in one group of the binary form.
const GROUP_DIGITS: usize = 4;
const NEGATIVE: u16 = 0x4000;

/// Reads `-12.5e3`.
pub(super) fn from_text(text: &str) -> Result<String, SqlError> {
    let invalid = || invalid_text(text, &Type::NUMERIC);
    let lower = text.to_ascii_lowercase();
    if matches!(
        lower.trim_start_matches(['+', '-']),
        "nan" | "inf" | "infinity"
    ) {
        return Err(out_of_range(text, &Type::NUMERIC));
    }
    let (mantissa, exponent) = match lower.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().map_err(|_| invalid())?),
        None => (lower.as_str(), 0),
    };
    let (negative, mantissa) = match mantissa.as_bytes() {
        [b'-', ..] => (true, &mantissa[1..]),
        [b'+', ..] => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid());
    }
    plain(negative, &digits, whole.len() as i64 + exponent)
        .ok_or_else(|| out_of_range(text, &Type::NUMERIC))
}

/// Reads the binary form: see the encoder for its layout.
pub(super) fn from_binary(bytes: &[u8]) -> Result<String, SqlError> {
    let invalid = || invalid_binary(&Type::NUMERIC);
    let (header, groups) = bytes.split_first_chunk::<8>().ok_or_else(invalid)?;
    let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (count, weight, sign, scale) = (
        usize::from(field(0)),
        field(2) as i16,
        field(4),
        usize::from(field(6)),
    );
    if groups.len() != 2 * count {
        return Err(invalid());
    }
    if !matches!(sign, 0 | NEGATIVE) {
        return Err(out_of_range("NaN", &Type::NUMERIC));
    }
    let mut digits = Vec::with_capacity(GROUP_DIGITS * count);
    for group in groups.chunks_exact(2) {
        let group = u16::from_be_bytes([group[0], group[1]]);
        if group > 9_999 {
            return Err(invalid());
        }
        digits.extend(
            [group / 1_000, group / 100 % 10, group / 10 % 10, group % 10]
                .map(|digit| b'0' + digit as u8),
        );
    }
    let point = (i64::from(weight) + 1) * GROUP_DIGITS as i64;
    // Digits beyond the declared scale are padding of the last group; zeros up to it are implied.
    let wanted = usize::try_from(point + scale as i64).unwrap_or(0);
    if wanted > MAX_DIGITS {
        return Err(out_of_range(
            "a numeric of that many digits",
            &Type::NUMERIC,
        ));
    }
    digits.resize(wanted, b'0');
    plain(sign == NEGATIVE, &digits, point)
        .ok_or_else(|| out_of_range("a numeric of that many digits", &Type::NUMERIC))
}

/// The digits with the point after the first `point` of them, which may lie outside.
fn plain(negative: bool, digits: &[u8], point: i64) -> Option<String> {
    let before = usize::try_from(point.max(0))
        .ok()
        .filter(|before| *before <= MAX_DIGITS)?;
    let zeros_behind_point = usize::try_from((-point).max(0))
        .ok()
        .filter(|zeros| *zeros <= MAX_DIGITS)?;
    if digits.len() > MAX_DIGITS {
        return None;
    }
    let split = before.min(digits.len());
    let mut out = String::with_capacity(before + digits.len() + zeros_behind_point + 3);
    if negative {
        out.push('-');
    }
    let whole = std::str::from_utf8(&digits[..split])
        .ok()?
        .trim_start_matches('0');
    out.push_str(whole);
    out.extend(std::iter::repeat_n(
        '0',
        if whole.is_empty() { 0 } else { before - split },
    ));
    if out.is_empty() || out == "-" {
        out.push('0');
    }
    if split < digits.len() {
        out.push('.');
        out.extend(std::iter::repeat_n('0', zeros_behind_point));
        out.push_str(std::str::from_utf8(&digits[split..]).ok()?);
    }
    Some(out)
}
