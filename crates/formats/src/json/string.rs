//! JSON strings.

use crate::scalar::scan;

use super::cursor::{Cursor, Fault, Read};

/// A string's text between its quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawString<'a> {
    pub(super) raw: &'a [u8],
    /// Whether escapes must be resolved; without them `raw` is the text.
    pub(super) escaped: bool,
    /// Where `raw` begins in the record.
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    /// Reads a string without escapes: its text. `None` leaves the cursor where it was.
    ///
    /// Nearly all strings are such. A slice travels in registers, which the result of [`Self::string`] is too large for.
    #[inline(always)]
    pub(super) fn plain_string(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest().strip_prefix(b"\"")?;
        let len = plain_run(rest);
        if rest.get(len) != Some(&b'"') {
            return None;
        }
        self.pos += len + 2;
        Some(&rest[..len])
    }

    /// Reads a string at its opening quote, leaving escapes as they are.
    #[inline]
    pub(super) fn string(&mut self) -> Read<RawString<'a>> {
        self.expect(b'"', "expected a string")?;
        let at = self.pos;
        let len = plain_run(self.rest());
        if self.bytes.get(at + len) == Some(&b'"') {
            self.pos = at + len + 1;
            return Ok(RawString {
                raw: &self.bytes[at..at + len],
                escaped: false,
                at,
            });
        }
        self.escaped_string(at, at + len)
    }

    /// Goes on behind the first `end - at` plain bytes of a string.
    fn escaped_string(&mut self, at: usize, mut end: usize) -> Read<RawString<'a>> {
        loop {
            match self.bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => return Err(self.fault_at(end, "a control character in a string")),
                None => {
                    return Err(
                        self.fault_at(self.bytes.len(), "a string without its closing quote")
                    );
                }
            }
            end += plain_run(self.bytes.get(end..).unwrap_or_default());
        }
        self.pos = end + 1;
        Ok(RawString {
            raw: &self.bytes[at..end],
            escaped: true,
            at,
        })
    }

    /// Steps over a string, checking its escapes.
    #[inline]
    pub(super) fn skip_string(&mut self) -> Read<()> {
        if self.plain_string().is_some() {
            return Ok(());
        }
        let string = self.string()?;
        if string.escaped {
            string.unescape(|_| {})
        } else {
            Ok(())
        }
    }
}

impl RawString<'_> {
    /// Appends the text to `out`.
    #[inline]
    pub(super) fn append_to(&self, out: &mut Vec<u8>) -> Read<()> {
        if self.escaped {
            return self.unescape(|piece| out.extend_from_slice(piece));
        }
        out.extend_from_slice(self.raw);
        Ok(())
    }

    /// Gives the text to `sink`, piece by piece, with escapes resolved.
    fn unescape(&self, mut sink: impl FnMut(&[u8])) -> Read<()> {
        let mut rest = self.raw;
        while let Some(backslash) = rest.iter().position(|&byte| byte == b'\\') {
            let (plain, escape) = rest.split_at(backslash);
            sink(plain);
            let fault = || Fault {
                at: self.at + (self.raw.len() - escape.len()),
                reason: "an invalid escape in a string",
            };
            let (byte, len) = match escape.get(1).ok_or_else(fault)? {
                b'"' => (b'"', 2),
                b'\\' => (b'\\', 2),
                b'/' => (b'/', 2),
                b'b' => (8, 2),
                b'f' => (12, 2),
                b'n' => (b'\n', 2),
                b'r' => (b'\r', 2),
                b't' => (b'\t', 2),
                b'u' => {
                    let (character, len) = unicode_escape(escape).ok_or_else(fault)?;
                    sink(character.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = &escape[len..];
                    continue;
                }
                _ => return Err(fault()),
            };
            sink(&[byte]);
            rest = &escape[len..];
        }
        sink(rest);
        Ok(())
    }
}

/// Reads `\uXXXX`, or two of them that are a surrogate pair, and gives the character and the length of its escape. A surrogate alone is none.
fn unicode_escape(escape: &[u8]) -> Option<(char, usize)> {
    let first = code_unit(escape)?;
    if !(0xD800..0xE000).contains(&first) {
        return Some((char::from_u32(first)?, 6));
    }
    let second = code_unit(escape.get(6..)?)?;
    if first >= 0xDC00 || !(0xDC00..0xE000).contains(&second) {
        return None;
    }
    Some((
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))?,
        12,
    ))
}

fn code_unit(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &byte| {
        Some(unit << 4 | char::from(byte).to_digit(16)?)
    })
}

/// Bytes up to the first quote, backslash or control character.
#[inline(always)]
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    scan::first(
        bytes,
        |word| scan::less(word, b' ') | scan::equal(word, b'"') | scan::equal(word, b'\\'),
        |byte| byte < b' ' || byte == b'"' || byte == b'\\',
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(json: &str) -> Read<String> {
        let mut out = Vec::new();
        Cursor::new(json.as_bytes()).string()?.append_to(&mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(
            text(r#""\"\\\/\b\f\n\r\t""#).unwrap(),
            "\"\\/\u{8}\u{c}\n\r\t"
        );
        assert_eq!(
            text(r#""a\u0041\u00e9\u20AC\ud83d\ude00z""#).unwrap(),
            "aAé€😀z"
        );
        assert_eq!(text(r#""\u0000""#).unwrap(), "\0");
    }

    #[test]
    fn faults_say_where() {
        assert_eq!(text(r#""ab\x""#).unwrap_err().at, 3);
        assert_eq!(text(r#""ab\ud800""#).unwrap_err().at, 3);
        assert_eq!(
            text("\"ab\ncd\"").unwrap_err(),
            Fault {
                at: 3,
                reason: "a control character in a string"
            }
        );
        assert_eq!(
            text("\"ab\\").unwrap_err().reason,
            "a string without its closing quote"
        );
    }

    proptest! {
        #[test]
        fn plain_run_agrees_with_a_byte_loop(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let expected = bytes.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(bytes.len());
            prop_assert_eq!(plain_run(&bytes), expected);
        }
    }
}
