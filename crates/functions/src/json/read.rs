//! Text to a tree.

use std::borrow::Cow;

use super::{Json, put};

/// Levels of arrays and objects: reading recurses once a level.
const MAX_DEPTH: usize = 256;

/// Reads the first value of a text.
pub(crate) fn read(text: &str) -> Result<Json<'_>, String> {
    let mut reader = Reader { text, at: 0 };
    reader.value(0)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn error<T>(&self, expected: &str) -> Result<T, String> {
        Err(format!(
            "no JSON at position {}: {expected} expected",
            self.at
        ))
    }

    /// Takes `byte` if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Json<'t>, String> {
        if depth > MAX_DEPTH {
            return Err(format!("JSON with more than {MAX_DEPTH} levels"));
        }
        self.skip_blanks();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, value) in [
                    ("null", Json::Null),
                    ("true", Json::Boolean(true)),
                    ("false", Json::Boolean(false)),
                ] {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                self.error("a value")
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json<'t>, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_blanks();
        if self.take(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_blanks();
            if self.take(b']') {
                return Ok(Json::Array(items));
            }
            if !self.take(b',') {
                return self.error("\",\" or \"]\"");
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'t>, String> {
        self.at += 1;
        let mut fields = Vec::new();
        self.skip_blanks();
        if self.take(b'}') {
            return Ok(Json::Object(fields));
        }
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'"') {
                return self.error("a key");
            }
            let key = self.string()?;
            self.skip_blanks();
            if !self.take(b':') {
                return self.error("\":\"");
            }
            let value = self.value(depth + 1)?;
            put(&mut fields, key, value);
            self.skip_blanks();
            if self.take(b'}') {
                return Ok(Json::Object(fields));
            }
            if !self.take(b',') {
                return self.error("\",\" or \"}\"");
            }
        }
    }

    fn digits(&mut self) -> Result<(), String> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return self.error("a digit");
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Json<'t>, String> {
        let start = self.at;
        self.take(b'-');
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.at;
        self.digits()?;
        if leading_zero && self.at > whole + 1 {
            return self.error("a number without a leading zero");
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'-') {
                self.take(b'+');
            }
            self.digits()?;
        }
        Ok(Json::Number(&self.text[start..self.at]))
    }

    fn string(&mut self) -> Result<Cow<'t, str>, String> {
        self.at += 1;
        let start = self.at;
        let mut owned: Option<String> = None;
        loop {
            let rest = &self.text[self.at..];
            let Some(stop) = rest.find(['"', '\\']) else {
                return self.error("the end of a string");
            };
            let plain = &rest[..stop];
            if plain.bytes().any(|byte| byte < b' ') {
                return self.error("an escape for a control character");
            }
            let end = self.at + stop;
            self.at = end + 1;
            if rest.as_bytes()[stop] == b'"' {
                return Ok(match owned {
                    None => Cow::Borrowed(&self.text[start..end]),
                    Some(mut text) => {
                        text.push_str(plain);
                        Cow::Owned(text)
                    }
                });
            }
            let text = owned.get_or_insert_default();
            text.push_str(plain);
            let character = self.escape()?;
            text.push(character);
        }
    }

    /// The character of an escape, behind its backslash.
    fn escape(&mut self) -> Result<char, String> {
        let Some(letter) = self.peek() else {
            return self.error("an escape");
        };
        self.at += 1;
        Ok(match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return self.error("an escape"),
        })
    }

    fn unicode_escape(&mut self) -> Result<char, String> {
        let first = self.four_digits()?;
        let mut units = vec![first];
        if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            units.push(self.four_digits()?);
        }
        match char::decode_utf16(units).next() {
            Some(Ok(character)) => Ok(character),
            // Half a pair stands for no character.
            _ => Ok(char::REPLACEMENT_CHARACTER),
        }
    }

    fn four_digits(&mut self) -> Result<u16, String> {
        let digits = self.text.get(self.at..self.at + 4);
        let unit = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u16::from_str_radix(digits, 16).ok());
        match unit {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => self.error("four hexadecimal digits"),
        }
    }
}
