//! A position in a record's JSON text, and stepping over what nobody reads.
//!
//! Invariant: `pos` is at most the length of the text, and every method either moves it past what it read or fails. The text is UTF-8 (the
//! decoder checks a record before it looks at it), so any slice between two ASCII characters is UTF-8, too.

/// Levels of nesting that a record may have. Reading recurses once per level, so this bounds the stack.
pub(super) const MAX_DEPTH: usize = 256;

/// Why a record cannot be read, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    /// Byte in the record.
    pub(super) at: usize,
    pub(super) reason: &'static str,
}

/// Result of reading something.
pub(super) type Read<T> = Result<T, Fault>;

pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) pos: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0 }
    }

    /// The byte at the cursor; 0, which no JSON token has, at the end.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.bytes.get(self.pos).copied().unwrap_or(0)
    }

    /// What is not read yet.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.pos..]
    }

    /// Steps over white space.
    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.pos += 1;
        }
    }

    /// A fault at the cursor.
    #[cold]
    pub(super) fn fault(&self, reason: &'static str) -> Fault {
        Fault {
            at: self.pos,
            reason,
        }
    }

    #[cold]
    pub(super) fn fault_at(&self, at: usize, reason: &'static str) -> Fault {
        Fault { at, reason }
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8, reason: &'static str) -> Read<()> {
        if self.peek() != byte {
            return Err(self.fault(reason));
        }
        self.pos += 1;
        Ok(())
    }

    /// Reads `true`, `false` or `null`.
    #[inline]
    pub(super) fn literal(&mut self, text: &'static [u8]) -> Read<()> {
        if !self.rest().starts_with(text) {
            return Err(self.fault("not a JSON value"));
        }
        self.pos += text.len();
        Ok(())
    }

    /// Only white space may follow.
    pub(super) fn end(&mut self) -> Read<()> {
        self.skip_blanks();
        if self.pos == self.bytes.len() {
            Ok(())
        } else {
            Err(self.fault("text after the end of the value"))
        }
    }

    /// Steps over one value, checking it. The cursor stands on its first byte.
    pub(super) fn skip_value(&mut self, depth: usize) -> Read<()> {
        match self.peek() {
            b'"' => self.skip_string(),
            b'{' => self.object(
                depth,
                |cursor| cursor.skip_string(),
                |cursor, (), depth| cursor.skip_value(depth),
            ),
            b'[' => self.array(depth, |cursor, depth| cursor.skip_value(depth)),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' if self.short_integer().is_some() => Ok(()),
            b'-' | b'0'..=b'9' => self.number().map(|_| ()),
            _ => Err(self.fault("not a JSON value")),
        }
    }

    /// Reads an array; `element` reads one element at its first byte, one level deeper.
    pub(super) fn array(
        &mut self,
        depth: usize,
        mut element: impl FnMut(&mut Self, usize) -> Read<()>,
    ) -> Read<()> {
        self.check_depth(depth)?;
        self.expect(b'[', "expected an array")?;
        self.skip_blanks();
        if self.peek() == b']' {
            self.pos += 1;
            return Ok(());
        }
        loop {
            element(self, depth + 1)?;
            self.skip_blanks();
            match self.peek() {
                b',' => self.pos += 1,
                b']' => {
                    self.pos += 1;
                    return Ok(());
                }
                _ => return Err(self.fault("expected \",\" or \"]\" in an array")),
            }
            self.skip_blanks();
        }
    }

    /// Reads an object; `key` reads a name at its quote, `value` the value at its first byte, one level deeper.
    pub(super) fn object<K>(
        &mut self,
        depth: usize,
        mut key: impl FnMut(&mut Self) -> Read<K>,
        mut value: impl FnMut(&mut Self, K, usize) -> Read<()>,
    ) -> Read<()> {
        self.check_depth(depth)?;
        self.expect(b'{', "expected an object")?;
        self.skip_blanks();
        if self.peek() == b'}' {
            self.pos += 1;
            return Ok(());
        }
        loop {
            let name = key(self)?;
            self.colon()?;
            value(self, name, depth + 1)?;
            self.skip_blanks();
            match self.peek() {
                b',' => self.pos += 1,
                b'}' => {
                    self.pos += 1;
                    return Ok(());
                }
                _ => return Err(self.fault("expected \",\" or \"}\" in an object")),
            }
            self.skip_blanks();
        }
    }

    /// Reads the colon after a name and stops at the value's first byte.
    #[inline]
    pub(super) fn colon(&mut self) -> Read<()> {
        self.skip_blanks();
        self.expect(b':', "expected \":\" after a name")?;
        self.skip_blanks();
        Ok(())
    }

    pub(super) fn check_depth(&self, depth: usize) -> Read<()> {
        if depth >= MAX_DEPTH {
            Err(self.fault("nested too deep"))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Read<()> {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.skip_blanks();
        cursor.skip_value(0)?;
        cursor.end()
    }

    #[test]
    fn valid_json_is_stepped_over() {
        for text in [
            "null",
            " true ",
            "false",
            "0",
            "-0.5e-10",
            "1E+5",
            "\"\"",
            "\"a\\n\\u00e9\\ud83d\\ude00\"",
            "[]",
            "[ ]",
            "{}",
            "{ }",
            "[1,[2,[3]],{\"a\":{}}]",
            "{\"a\" : [ 1 , 2 ] , \"b\":null}",
            "123456789012345678901234567890",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in [
            "",
            " ",
            "nul",
            "nullx",
            "tru",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "\"",
            "\"\u{1}\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ud800\\u0041\"",
            "[",
            "[1",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\":1 \"b\":2}",
            "1 2",
            "{}}",
            "NaN",
            "Infinity",
            "'a'",
            "[1]]",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(check(&nested(MAX_DEPTH)), Ok(()));
        assert_eq!(
            check(&nested(MAX_DEPTH + 1)).unwrap_err().reason,
            "nested too deep"
        );
        assert!(check(&"{\"a\":".repeat(100_000)).is_err());
    }
}
