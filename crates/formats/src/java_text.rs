//! Numbers as Java prints them, for functions that make text of values.

use crate::scalar::{decimal, double};

/// Appends a DOUBLE as `Double.toString` does: `1.0`, `1.0E7`, `NaN`.
pub fn write_double(out: &mut String, value: f64) {
    let mut bytes = Vec::with_capacity(MAX_DOUBLE);
    double::write_f64(&mut bytes, value);
    push_ascii(out, &bytes);
}

/// Appends a DECIMAL with all its places and without an exponent; `unscaled` is the decimal text of the integer behind it.
pub fn write_decimal(out: &mut String, unscaled: &str, scale: i8) {
    let mut bytes = Vec::with_capacity(unscaled.len() + 2);
    decimal::write(&mut bytes, unscaled.as_bytes(), scale);
    push_ascii(out, &bytes);
}

/// Appends the text of a number with any number of digits as `BigDecimal.toString` does.
pub fn write_big_decimal(out: &mut String, text: &str) {
    let mut bytes = Vec::with_capacity(text.len());
    decimal::write_big_decimal_text(&mut bytes, text.as_bytes());
    push_ascii(out, &bytes);
}

/// The longest text of a double.
const MAX_DOUBLE: usize = 25;

/// Appends bytes that are ASCII, as digits are.
fn push_ascii(out: &mut String, bytes: &[u8]) {
    out.extend(bytes.iter().copied().map(char::from));
}
