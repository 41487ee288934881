//! COPY data cut into rows and fields, in PostgreSQL's text and CSV formats.
//!
//! Data comes in pieces that are cut anywhere. Each byte is looked at twice: once to find where a row ends, once to take its fields apart.

use std::borrow::Cow;

use highwater_sql::{CopyFormat, CopyOptions};

use crate::{
    session::SessionResult,
    sqlstate::{SqlError, code},
};

/// Longest row: the log takes no larger record anyway, and a missing quote would otherwise swallow the whole input.
const MAX_ROW_BYTES: usize = 16 << 20;
/// Finished bytes are removed from the buffer when there are this many.
const COMPACT_BYTES: usize = 64 << 10;

/// Cuts data into rows.
pub struct RowSplitter {
    options: CopyOptions,
    buffer: Vec<u8>,
    /// Where the current row begins.
    start: usize,
    /// How far its end has been searched.
    scanned: usize,
    in_quotes: bool,
    escaped: bool,
    /// Line on which the current row begins, from 1.
    line: u64,
    /// Line ends within the current row so far.
    inner_lines: u64,
    ended: bool,
}

/// One row: its fields, NULL as `None`.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// Line on which it begins, from 1.
    pub line: u64,
    /// Fields.
    pub fields: Vec<Option<String>>,
}

impl RowSplitter {
    /// A splitter at the beginning of the data.
    pub fn new(options: CopyOptions) -> Self {
        Self {
            options,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            in_quotes: false,
            escaped: false,
            line: 1,
            inner_lines: 0,
            ended: false,
        }
    }

    /// Adds a piece of data.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start >= COMPACT_BYTES || self.start == self.buffer.len() {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole row, if it is there. `last` says that no more data comes, so what is left is a row without a line end.
    pub fn next_row(&mut self, last: bool) -> SessionResult<Option<Row>> {
        loop {
            if self.ended {
                return Ok(None);
            }
            let Some((start, end, line)) = self.next_record(last)? else {
                return Ok(None);
            };
            let record = &self.buffer[start..end];
            let record = record.strip_suffix(b"\r").unwrap_or(record);
            if record == b"\\." {
                self.ended = true;
                return Ok(None);
            }
            if line == 1 && self.options.header {
                continue;
            }
            let fields = match self.options.format {
                CopyFormat::Text => text_fields(record, &self.options),
                CopyFormat::Csv => csv_fields(record, &self.options),
            };
            let fields = fields.map_err(|error| at_line(error, line))?;
            return Ok(Some(Row { line, fields }));
        }
    }

    fn next_record(&mut self, last: bool) -> SessionResult<Option<(usize, usize, u64)>> {
        while let Some(&byte) = self.buffer.get(self.scanned) {
            self.scanned += 1;
            if self.escaped {
                self.escaped = false;
                self.inner_lines += u64::from(byte == b'\n');
                continue;
            }
            if byte == b'\n' {
                if !self.in_quotes {
                    return Ok(Some(self.finish_record(self.scanned - 1)));
                }
                self.inner_lines += 1;
                continue;
            }
            match self.options.format {
                CopyFormat::Text => self.escaped = byte == b'\\',
                CopyFormat::Csv => {
                    if self.in_quotes
                        && byte == self.options.escape
                        && self.options.escape != self.options.quote
                    {
                        self.escaped = true;
                    } else if byte == self.options.quote {
                        self.in_quotes = !self.in_quotes;
                    }
                }
            }
        }
        if self.scanned - self.start > MAX_ROW_BYTES {
            let error = SqlError::new(
                code::PROGRAM_LIMIT_EXCEEDED,
                format!("a row is longer than {MAX_ROW_BYTES} bytes"),
            );
            return Err(at_line(error, self.line).with_hint("a quote may be missing its partner"));
        }
        if !last || self.start == self.buffer.len() {
            return Ok(None);
        }
        if self.in_quotes {
            let error = SqlError::new(code::BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field");
            return Err(at_line(error, self.line));
        }
        Ok(Some(self.finish_record(self.buffer.len())))
    }

    fn finish_record(&mut self, end: usize) -> (usize, usize, u64) {
        let record = (self.start, end, self.line);
        self.start = self.scanned;
        self.line += 1 + self.inner_lines;
        self.inner_lines = 0;
        self.escaped = false;
        record
    }
}

/// Says on which line something is wrong.
pub fn at_line(error: SqlError, line: u64) -> SqlError {
    let place = format!("line {line}");
    let detail = match &error.detail {
        Some(detail) => format!("{place}, {detail}"),
        None => place,
    };
    error.with_detail(detail)
}

fn utf8(bytes: Vec<u8>) -> SessionResult<String> {
    String::from_utf8(bytes).map_err(|_| {
        SqlError::new(
            code::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\"",
        )
    })
}

fn text_fields(record: &[u8], options: &CopyOptions) -> SessionResult<Vec<Option<String>>> {
    let mut fields = Vec::new();
    let mut start = 0;
    let mut at = 0;
    loop {
        match record.get(at) {
            Some(b'\\') => at += 2,
            Some(byte) if *byte != options.delimiter => at += 1,
            end => {
                let raw = &record[start..at.min(record.len())];
                let field = if raw == options.null.as_bytes() {
                    None
                } else {
                    Some(utf8(unescape(raw).into_owned())?)
                };
                fields.push(field);
                if end.is_none() {
                    return Ok(fields);
                }
                at += 1;
                start = at;
            }
        }
    }
}

/// `\t`, `\n`, `\\`, `\x41`, `\101`; a backslash before any other character is dropped.
fn unescape(raw: &[u8]) -> Cow<'_, [u8]> {
    if !raw.contains(&b'\\') {
        return Cow::Borrowed(raw);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some(&escaped) = raw.get(at) else {
            out.push(b'\\');
            break;
        };
        at += 1;
        match escaped {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let (value, used) = digits(&raw[at - 1..], 8, 3);
                out.push(value);
                at += used - 1;
            }
            b'x' if raw.get(at).is_some_and(u8::is_ascii_hexdigit) => {
                let (value, used) = digits(&raw[at..], 16, 2);
                out.push(value);
                at += used;
            }
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// The number at the start, of at most `most` digits, cut to a byte as PostgreSQL does; and how many digits it has.
fn digits(bytes: &[u8], radix: u32, most: usize) -> (u8, usize) {
    let mut value = 0_u32;
    let mut used = 0;
    while used < most
        && let Some(digit) = bytes
            .get(used)
            .and_then(|byte| char::from(*byte).to_digit(radix))
    {
        value = value * radix + digit;
        used += 1;
    }
    ((value & 0xff) as u8, used)
}

fn csv_fields(record: &[u8], options: &CopyOptions) -> SessionResult<Vec<Option<String>>> {
    let mut fields = Vec::new();
    let mut field = Vec::new();
    let (mut in_quotes, mut was_quoted) = (false, false);
    let mut at = 0;
    loop {
        let byte = record.get(at).copied();
        at += 1;
        match byte {
            Some(byte) if in_quotes => {
                let next = record.get(at).copied();
                let escapes = byte == options.escape
                    && (next == Some(options.quote) || next == Some(options.escape));
                if let (true, Some(next)) = (escapes, next) {
                    field.push(next);
                    at += 1;
                } else if byte == options.quote {
                    in_quotes = false;
                } else {
                    field.push(byte);
                }
            }
            Some(byte) if byte == options.quote => {
                in_quotes = true;
                was_quoted = true;
            }
            Some(byte) if byte != options.delimiter => field.push(byte),
            end => {
                let is_null = !was_quoted && field == options.null.as_bytes();
                let value = std::mem::take(&mut field);
                fields.push(if is_null { None } else { Some(utf8(value)?) });
                was_quoted = false;
                if end.is_none() {
                    return Ok(fields);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> CopyOptions {
        CopyOptions {
            format: CopyFormat::Text,
            header: false,
            delimiter: b'\t',
            null: "\\N".to_owned(),
            quote: b'"',
            escape: b'"',
        }
    }

    fn csv() -> CopyOptions {
        CopyOptions {
            format: CopyFormat::Csv,
            delimiter: b',',
            null: String::new(),
            ..text()
        }
    }

    /// All rows of `data`, given in pieces of every size in turn.
    fn rows(options: &CopyOptions, data: &[u8]) -> Vec<(u64, Vec<Option<String>>)> {
        let read = |piece: usize| {
            let mut splitter = RowSplitter::new(options.clone());
            let mut rows = Vec::new();
            for bytes in data.chunks(piece) {
                splitter.push(bytes);
                while let Some(row) = splitter.next_row(false).expect("valid") {
                    rows.push((row.line, row.fields));
                }
            }
            while let Some(row) = splitter.next_row(true).expect("valid") {
                rows.push((row.line, row.fields));
            }
            rows
        };
        let whole = read(data.len());
        for piece in 1..data.len() {
            assert_eq!(read(piece), whole, "pieces of {piece}");
        }
        whole
    }

    fn some(fields: &[&str]) -> Vec<Option<String>> {
        fields
            .iter()
            .map(|field| Some((*field).to_owned()))
            .collect()
    }

    #[test]
    fn text_has_escapes_and_nulls() {
        let rows = rows(
            &text(),
            b"a\tb\\tc\t\\N\r\nx\\\ny\t\\101\\x42\\q\t\\\\N\n\\.\nignored\n",
        );
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows[0],
            (1, vec![Some("a".into()), Some("b\tc".into()), None])
        );
        assert_eq!(rows[1], (2, some(&["x\ny", "ABq", "\\N"])));
    }

    #[test]
    fn csv_tells_empty_from_null() {
        let mut options = csv();
        options.header = true;
        let rows = rows(
            &options,
            b"h1,h2,h3\n1,,\"\"\n\"a \"\"b\"\", c\nd\",x,y\nlast,1,2",
        );
        assert_eq!(
            rows[0],
            (2, vec![Some("1".into()), None, Some(String::new())])
        );
        assert_eq!(rows[1], (3, some(&["a \"b\", c\nd", "x", "y"])));
        assert_eq!(rows[2], (5, some(&["last", "1", "2"])));
    }

    #[test]
    fn csv_with_its_own_escape() {
        let mut options = csv();
        options.escape = b'\\';
        assert_eq!(
            rows(&options, b"\"a\\\"b\\\\\",c\n"),
            [(1, some(&["a\"b\\", "c"]))]
        );
    }

    #[test]
    fn an_open_quote_and_bad_bytes_are_errors_with_a_line() {
        let mut splitter = RowSplitter::new(csv());
        splitter.push(b"a\n\"b");
        assert!(splitter.next_row(false).expect("first").is_some());
        let error = splitter.next_row(true).expect_err("open quote");
        assert_eq!(
            (error.code, error.detail.as_deref()),
            ("22P04", Some("line 2"))
        );
        let mut splitter = RowSplitter::new(text());
        splitter.push(b"\xff\n");
        assert_eq!(
            splitter.next_row(false).expect_err("no UTF-8").code,
            "22021"
        );
    }
}
