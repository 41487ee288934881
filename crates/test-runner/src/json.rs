//! JSON that keeps what a comparison needs: the digits of numbers and the order of fields.
//!
//! `1.10` and `1.1` are different decimals and equal doubles; only the column's type can tell. A number therefore stays the text that it was.

use std::fmt;

/// Nesting beyond which a text is refused: recursion would not be safe.
const MAX_DEPTH: usize = 200;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` and `false`.
    Bool(bool),
    /// As it was written.
    Number(String),
    /// Unescaped.
    Text(String),
    /// In order.
    Array(Vec<Json>),
    /// In written order; names may repeat.
    Object(Vec<(String, Json)>),
}

/// A text that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {position}")]
pub struct JsonError {
    /// What was expected.
    pub reason: &'static str,
    /// Where.
    pub position: usize,
}

impl Json {
    /// Reads a whole text.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let mut parser = Parser {
            text,
            bytes: text.as_bytes(),
            position: 0,
        };
        let value = parser.value(0)?;
        parser.skip_blanks();
        match parser.position == parser.bytes.len() {
            true => Ok(value),
            false => Err(parser.error("expected the end")),
        }
    }

    /// The value of a field, if this is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Object(fields) => fields
                .iter()
                .find(|(field, _)| field == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, if this is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// The elements, if this is an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// A copy with every text replaced by what `replace` makes of it.
    pub fn map_texts(&self, replace: &dyn Fn(&str) -> String) -> Self {
        match self {
            Self::Text(text) => Self::Text(replace(text)),
            Self::Array(elements) => Self::Array(
                elements
                    .iter()
                    .map(|element| element.map_texts(replace))
                    .collect(),
            ),
            Self::Object(fields) => Self::Object(
                fields
                    .iter()
                    .map(|(name, value)| (name.clone(), value.map_texts(replace)))
                    .collect(),
            ),
            other => other.clone(),
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Self {
        Self::Number(number.to_string())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(digits) => f.write_str(digits),
            Self::Text(text) => write_text(text, f),
            Self::Array(elements) => {
                f.write_str("[")?;
                for (position, element) in elements.iter().enumerate() {
                    f.write_str(if position == 0 { "" } else { "," })?;
                    write!(f, "{element}")?;
                }
                f.write_str("]")
            }
            Self::Object(fields) => {
                f.write_str("{")?;
                for (position, (name, value)) in fields.iter().enumerate() {
                    f.write_str(if position == 0 { "" } else { "," })?;
                    write_text(name, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if u32::from(c) < 0x20 => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    position: usize,
}

impl Parser<'_> {
    fn error(&self, reason: &'static str) -> JsonError {
        JsonError {
            reason,
            position: self.position,
        }
    }

    fn skip_blanks(&mut self) {
        while matches!(
            self.bytes.get(self.position),
            Some(b' ' | b'\t' | b'\n' | b'\r')
        ) {
            self.position += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let found = self.bytes.get(self.position) == Some(&byte);
        self.position += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        if depth > MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.skip_blanks();
        match self.bytes.get(self.position) {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            // Not JSON, but what test files use for the doubles that JSON cannot write.
            Some(b'N') => self.word("NaN", Json::Number("NaN".to_owned())),
            Some(b'I') => self.word("Infinity", Json::Number("Infinity".to_owned())),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, JsonError> {
        if !self.text[self.position..].starts_with(word) {
            return Err(self.error("expected a value"));
        }
        self.position += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.position;
        while matches!(
            self.bytes.get(self.position),
            Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
        ) {
            self.position += 1;
        }
        let digits = &self.text[start..self.position];
        if digits == "-" && self.text[self.position..].starts_with("Infinity") {
            self.position += "Infinity".len();
            return Ok(Json::Number("-Infinity".to_owned()));
        }
        match digits.parse::<f64>() {
            Ok(_) => Ok(Json::Number(digits.to_owned())),
            Err(_) => Err(JsonError {
                reason: "expected a value",
                position: start,
            }),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.position += 1;
        let mut elements = Vec::new();
        if self.accept(b']') {
            return Ok(Json::Array(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            if self.accept(b']') {
                return Ok(Json::Array(elements));
            }
            if !self.accept(b',') {
                return Err(self.error("expected a comma or the end of the array"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.position += 1;
        let mut fields = Vec::new();
        if self.accept(b'}') {
            return Ok(Json::Object(fields));
        }
        loop {
            self.skip_blanks();
            if self.bytes.get(self.position) != Some(&b'"') {
                return Err(self.error("expected the name of a field"));
            }
            let name = self.string()?;
            if !self.accept(b':') {
                return Err(self.error("expected a colon"));
            }
            fields.push((name, self.value(depth + 1)?));
            if self.accept(b'}') {
                return Ok(Json::Object(fields));
            }
            if !self.accept(b',') {
                return Err(self.error("expected a comma or the end of the object"));
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.position += 1;
        let mut text = String::new();
        loop {
            let start = self.position;
            while !matches!(self.bytes.get(self.position), None | Some(b'"' | b'\\')) {
                self.position += 1;
            }
            text.push_str(&self.text[start..self.position]);
            match self.bytes.get(self.position) {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(text);
                }
                Some(_) => text.push(self.escape()?),
                None => return Err(self.error("expected the end of the text")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let escaped = self.bytes.get(self.position + 1).copied();
        self.position += 2;
        Ok(match escaped {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.code_unit()?;
                let mut units = vec![first];
                if (0xd800..0xdc00).contains(&first)
                    && self.text.get(self.position..self.position + 2) == Some("\\u")
                {
                    self.position += 2;
                    units.push(self.code_unit()?);
                }
                let decoded = char::decode_utf16(units).next();
                decoded
                    .and_then(Result::ok)
                    .unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return Err(self.error("expected an escaped character")),
        })
    }

    fn code_unit(&mut self) -> Result<u16, JsonError> {
        let digits = self.text.get(self.position..self.position + 4);
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.position += 4;
        unit.ok_or_else(|| self.error("expected four hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_objects_their_order() {
        let text = r#"{"b":1.10,"a":[1e3,-0,null],"c":{"":true}}"#;
        assert_eq!(Json::parse(text).expect("JSON").to_string(), text);
    }

    #[test]
    fn escapes_are_read_and_written() {
        let value = Json::parse(r#""a\"\\\/\u0041\ud83d\ude00\n\u0001""#).expect("JSON");
        assert_eq!(value.as_text(), Some("a\"\\/A\u{1f600}\n\u{1}"));
        assert_eq!(value.to_string(), "\"a\\\"\\\\/A\u{1f600}\\n\\u0001\"");
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        let place = |text: &str| Json::parse(text).expect_err("not JSON").position;
        assert_eq!(place("[1,]"), 3);
        assert_eq!(place("{\"a\" 1}"), 5);
        assert_eq!(place("1 2"), 2);
        assert_eq!(place("\"a"), 2);
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }
}
