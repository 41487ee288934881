//! Splitting one line into fields.
//!
//! Invariant: every call of [`Fields::next`] consumes at least one byte or ends the line, so a record is read once from front to back.

use crate::scalar::scan;

/// The fields of one record, from left to right.
pub(super) struct Fields<'a> {
    record: &'a [u8],
    delimiter: u8,
    pos: usize,
    /// Whether another field follows: true at the start and after a delimiter, even at the end of the record.
    more: bool,
}

/// One field's text. A quoted field with doubled quotes lies in the scratch buffer of the caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Slice(&'a [u8]),
    Scratch,
}

impl<'a> Fields<'a> {
    pub(super) fn new(record: &'a [u8], delimiter: u8) -> Self {
        // Blank lines in front of the record's line do not count.
        let pos = record
            .iter()
            .position(|&byte| !is_line_end(byte))
            .unwrap_or(record.len());
        Self {
            record,
            delimiter,
            pos,
            more: true,
        }
    }

    /// Whether there is no line at all.
    pub(super) fn is_blank(&self) -> bool {
        self.pos == self.record.len()
    }

    /// The next field, `None` at the end of the line.
    pub(super) fn next(
        &mut self,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Field<'a>>, &'static str> {
        if !self.more {
            return self.check_rest().map(|()| None);
        }
        let rest = &self.record[self.pos..];
        if rest.first() == Some(&b'"') {
            return self.quoted(scratch).map(Some);
        }
        let delimiter = self.delimiter;
        let len = scan::first(
            rest,
            |word| {
                scan::equal(word, delimiter) | scan::equal(word, b'\n') | scan::equal(word, b'\r')
            },
            |byte| byte == delimiter || is_line_end(byte),
        );
        self.pos += len;
        self.end_field();
        Ok(Some(Field::Slice(&rest[..len])))
    }

    /// Reads a field that begins with a quote.
    fn quoted(&mut self, scratch: &mut Vec<u8>) -> Result<Field<'a>, &'static str> {
        let start = self.pos + 1;
        let mut from = start;
        let mut doubled = false;
        scratch.clear();
        loop {
            let rest = &self.record[from..];
            let Some(len) = rest.iter().position(|&byte| byte == b'"') else {
                return Err("a quoted field without its closing quote");
            };
            let end = from + len;
            if self.record.get(end + 1) == Some(&b'"') {
                // The first of two quotes belongs to the text.
                doubled = true;
                scratch.extend_from_slice(&rest[..=len]);
                from = end + 2;
                continue;
            }
            if doubled {
                scratch.extend_from_slice(&rest[..len]);
            }
            self.pos = end + 1;
            self.skip_blanks()?;
            self.end_field();
            return Ok(if doubled {
                Field::Scratch
            } else {
                Field::Slice(&self.record[start..end])
            });
        }
    }

    /// Blanks may stand between a closing quote and the delimiter, nothing else.
    fn skip_blanks(&mut self) -> Result<(), &'static str> {
        while let Some(&byte) = self.record.get(self.pos) {
            if byte == self.delimiter || is_line_end(byte) {
                break;
            }
            if !byte.is_ascii_whitespace() {
                return Err("text between a closing quote and the delimiter");
            }
            self.pos += 1;
        }
        Ok(())
    }

    /// Steps over a delimiter; anything else ends the line.
    fn end_field(&mut self) {
        self.more = self.record.get(self.pos) == Some(&self.delimiter);
        self.pos += usize::from(self.more);
    }

    /// After the line there may only be line ends.
    fn check_rest(&self) -> Result<(), &'static str> {
        if self.record[self.pos..]
            .iter()
            .all(|&byte| is_line_end(byte))
        {
            Ok(())
        } else {
            Err("more than one line in one record")
        }
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(record: &str) -> Result<Vec<String>, &'static str> {
        let mut scratch = Vec::new();
        let mut fields = Fields::new(record.as_bytes(), b',');
        let mut out = Vec::new();
        while let Some(field) = fields.next(&mut scratch)? {
            let bytes = match field {
                Field::Slice(bytes) => bytes,
                Field::Scratch => &scratch,
            };
            out.push(String::from_utf8(bytes.to_vec()).unwrap());
        }
        Ok(out)
    }

    #[test]
    fn fields_and_quotes() {
        for (record, expected) in [
            ("a,b,c", vec!["a", "b", "c"]),
            ("a,,", vec!["a", "", ""]),
            ("", vec![""]),
            ("\"a,b\",c", vec!["a,b", "c"]),
            ("\"a\"\"b\",\"\"", vec!["a\"b", ""]),
            ("\"\"\"\"", vec!["\""]),
            ("a\"b\",c", vec!["a\"b\"", "c"]),
            ("\"line\nbreak\",x\r\n", vec!["line\nbreak", "x"]),
            ("\n\na,b\n", vec!["a", "b"]),
            ("\"a\"  ,b", vec!["a", "b"]),
            (" a , b ", vec![" a ", " b "]),
        ] {
            assert_eq!(split(record).unwrap(), expected, "{record:?}");
        }
    }

    #[test]
    fn broken_lines() {
        for record in ["\"a", "\"a\"b,c", "a,b\nc,d", "\"a\"\"", "a,\""] {
            assert!(split(record).is_err(), "{record:?}");
        }
    }
}
