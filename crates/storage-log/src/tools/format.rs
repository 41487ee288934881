//! How `consume` prints a record: a pattern with kcat's letters.
//!
//! | letter | stands for |
//! |---|---|
//! | `%t` `%p` `%o` | topic, partition, offset |
//! | `%k` `%K` | key, and its length (-1 for none) |
//! | `%s` `%S` | value, and its length (-1 for a tombstone) |
//! | `%T` | time in milliseconds since 1970 |
//! | `%h` | headers: `name=value,..` |
//! | `%%` `\n` `\r` `\t` `\0` `\\` `\xHH` | themselves |

use crate::{LogResult, RecordRef, TopicPartition};

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(Vec<u8>),
    Topic,
    Partition,
    Offset,
    Key,
    KeyLength,
    Value,
    ValueLength,
    Timestamp,
    Headers,
}

impl Format {
    /// Reads a pattern; the error says what is wrong with it.
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            match c {
                '%' => {
                    let letter = chars.next().ok_or("\"%\" at the end")?;
                    if letter == '%' {
                        literal.push(b'%');
                        continue;
                    }
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(
                        Piece::of(letter).ok_or(format!("\"%{letter}\" stands for nothing"))?,
                    );
                }
                '\\' => literal.push(escaped(&mut chars)?),
                c => literal.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self(pieces))
    }

    /// Key, delimiter, value, end of line.
    pub(super) fn with_key(delimiter: &str) -> Self {
        Self(vec![
            Piece::Key,
            Piece::Literal(delimiter.into()),
            Piece::Value,
            Piece::Literal(b"\n".into()),
        ])
    }

    /// Value, end of line.
    pub(super) fn value() -> Self {
        Self(vec![Piece::Value, Piece::Literal(b"\n".into())])
    }

    /// Appends a record to `out`.
    pub(super) fn put(
        &self,
        at: &TopicPartition,
        record: &RecordRef<'_>,
        out: &mut Vec<u8>,
    ) -> LogResult<()> {
        for piece in &self.0 {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Topic => out.extend_from_slice(at.topic.as_bytes()),
                Piece::Partition => put_number(out, at.partition.0.into()),
                Piece::Offset => put_number(out, record.offset.0),
                Piece::Key => out.extend_from_slice(record.key.unwrap_or_default()),
                Piece::KeyLength => put_length(out, record.key),
                Piece::Value => out.extend_from_slice(record.value.unwrap_or_default()),
                Piece::ValueLength => put_length(out, record.value),
                Piece::Timestamp => put_number(out, record.timestamp),
                Piece::Headers => put_headers(out, record)?,
            }
        }
        Ok(())
    }
}

impl Piece {
    fn of(letter: char) -> Option<Self> {
        Some(match letter {
            't' => Self::Topic,
            'p' => Self::Partition,
            'o' => Self::Offset,
            'k' => Self::Key,
            'K' => Self::KeyLength,
            's' => Self::Value,
            'S' => Self::ValueLength,
            'T' => Self::Timestamp,
            'h' => Self::Headers,
            _ => return None,
        })
    }
}

fn escaped(chars: &mut std::str::Chars<'_>) -> Result<u8, String> {
    Ok(match chars.next().ok_or("\"\\\" at the end")? {
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        '0' => 0,
        '\\' => b'\\',
        'x' => {
            let digits: String = chars.take(2).collect();
            u8::from_str_radix(&digits, 16).map_err(|_| format!("\"\\x{digits}\" is no byte"))?
        }
        other => return Err(format!("\"\\{other}\" stands for nothing")),
    })
}

fn put_number(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(number.to_string().as_bytes());
}

fn put_length(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    // A record is smaller than a batch, which is smaller than 2 GiB.
    put_number(out, bytes.map_or(-1, |bytes| bytes.len() as i64));
}

fn put_headers(out: &mut Vec<u8>, record: &RecordRef<'_>) -> LogResult<()> {
    for (i, header) in record.headers().enumerate() {
        let (name, value) = header?;
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(name);
        out.push(b'=');
        out.extend_from_slice(value.unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchBuilder, BatchView, EncodedBatch};

    fn stored(batch: EncodedBatch) -> BatchView {
        BatchView::parse(batch.as_bytes().to_vec().into()).expect("valid")
    }

    #[test]
    fn every_letter_is_filled_in() {
        let mut builder = BatchBuilder::new();
        builder.push(
            5,
            Some(b"k"),
            Some(b"val"),
            &[("a", Some(b"1")), ("b", None)],
        );
        builder.push(6, None, None, &[]);
        let batch = stored(builder.finish(None));
        let format = Format::parse(r"%t/%p@%o %T [%k:%K] [%s:%S] %h %%\x41\n").expect("pattern");
        let mut out = Vec::new();
        for record in &batch.records().expect("records") {
            let at = TopicPartition::new("topic", 3);
            format
                .put(&at, &record.expect("record"), &mut out)
                .expect("headers");
        }
        let expected = "topic/3@0 5 [k:1] [val:3] a=1,b= %A\ntopic/3@1 6 [:-1] [:-1]  %A\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    #[test]
    fn a_wrong_pattern_is_refused() {
        for pattern in ["%", "%z", r"\", r"\q", r"\xzz"] {
            assert!(Format::parse(pattern).is_err(), "{pattern}");
        }
    }
}
