//! Messages from the client, taken apart with every length checked.
//!
//! Layout after start-up: one byte of type, a big-endian `i32` length that counts itself but not the type, and the body. A body must be
//! used up exactly; names and SQL are zero-terminated UTF-8.

use bytes::{Buf, Bytes};

use crate::sqlstate::{SqlError, code};

/// Longest body of the messages that carry text or data.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Longest body of all others.
const MAX_SMALL_MESSAGE_BYTES: usize = 10_000;

/// A message whose end is known but whose body is not read yet.
#[derive(Debug)]
pub(super) struct Frame {
    /// The type byte.
    pub(super) kind: u8,
    /// What follows the length.
    pub(super) body: Bytes,
}

impl Frame {
    /// Whether the message belongs to the extended protocol: after an error in one, everything is skipped up to the next Sync.
    pub(super) fn is_extended(&self) -> bool {
        matches!(self.kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H')
    }
}

/// The length of the frame that begins with these five bytes, header included.
pub(super) fn frame_length(kind: u8, length: i32) -> Result<usize, SqlError> {
    let bound = match kind {
        b'Q' | b'P' | b'B' | b'd' | b'F' => MAX_MESSAGE_BYTES,
        b'D' | b'E' | b'C' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => MAX_SMALL_MESSAGE_BYTES,
        _ => return Err(violation(format!("invalid frontend message type {kind}"))),
    };
    match usize::try_from(length) {
        Ok(length) if length < 4 => Err(violation("invalid message length")),
        Ok(length) if length > bound => Err(SqlError::new(
            code::PROTOCOL_VIOLATION,
            format!(
                "a message of {length} bytes is longer than the {bound} that its type may have"
            ),
        )
        .with_hint("split the statement, or send the data with COPY in smaller pieces")),
        Ok(length) => Ok(length + 1),
        Err(_) => Err(violation("invalid message length")),
    }
}

/// What Describe and Close are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A prepared statement.
    Statement(String),
    /// A portal.
    Portal(String),
}

/// Bind's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bind {
    /// The portal to make.
    pub(super) portal: String,
    /// From this statement.
    pub(super) statement: String,
    /// 0 or 1 per parameter, or one for all, or none for text.
    pub(super) parameter_formats: Vec<i16>,
    /// The values; `None` is NULL.
    pub(super) parameters: Vec<Option<Bytes>>,
    /// 0 or 1 per column, or one for all, or none for text.
    pub(super) result_formats: Vec<i16>,
}

/// A message from the client after start-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frontend {
    /// `Q`: statements to run.
    Query(String),
    /// `P`: a statement to prepare, with the types that the client declares (0 for none).
    Parse {
        name: String,
        sql: String,
        types: Vec<u32>,
    },
    /// `B`: values for a statement.
    Bind(Bind),
    /// `D`: what are its parameters and columns.
    Describe(Target),
    /// `E`: run a portal, up to this many rows (0 for all).
    Execute { portal: String, max_rows: i32 },
    /// `C`: forget it.
    Close(Target),
    /// `H`: send what there is.
    Flush,
    /// `S`: end of a pipeline.
    Sync,
    /// `X`: the client leaves.
    Terminate,
    /// `d`: a piece of COPY data.
    CopyData(Bytes),
    /// `c`: the end of COPY data.
    CopyDone,
    /// `f`: the client gives up its COPY.
    CopyFail(String),
    /// `F`: the call of a function by its oid.
    FunctionCall,
}

impl Frontend {
    /// Reads the body.
    pub(super) fn parse(frame: Frame) -> Result<Self, SqlError> {
        let mut body = Body(frame.body);
        let message = match frame.kind {
            b'Q' => Self::Query(body.text()?),
            b'P' => Self::Parse {
                name: body.text()?,
                sql: body.text()?,
                types: body.oids()?,
            },
            b'B' => Self::Bind(Bind {
                portal: body.text()?,
                statement: body.text()?,
                parameter_formats: body.formats()?,
                parameters: body.values()?,
                result_formats: body.formats()?,
            }),
            b'D' => Self::Describe(body.target()?),
            b'E' => Self::Execute {
                portal: body.text()?,
                max_rows: body.int()?,
            },
            b'C' => Self::Close(body.target()?),
            b'H' => Self::Flush,
            b'S' => Self::Sync,
            b'X' => Self::Terminate,
            b'd' => return Ok(Self::CopyData(body.0)),
            b'c' => Self::CopyDone,
            b'f' => Self::CopyFail(body.text()?),
            b'F' => return Ok(Self::FunctionCall),
            kind => return Err(violation(format!("unexpected message type {kind}"))),
        };
        body.end()?;
        Ok(message)
    }
}

/// A protocol violation.
pub(super) fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(code::PROTOCOL_VIOLATION, message)
}

/// Text of the client, which must be UTF-8.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let bad = &bytes[error.valid_up_to()..];
        let shown = error.error_len().unwrap_or(bad.len()).min(4);
        let codes: Vec<String> = bad[..shown]
            .iter()
            .map(|byte| format!("0x{byte:02x}"))
            .collect();
        SqlError::new(
            code::CHARACTER_NOT_IN_REPERTOIRE,
            format!(
                "invalid byte sequence for encoding \"UTF8\": {}",
                codes.join(" ")
            ),
        )
    })
}

/// A body being read from its front.
pub(super) struct Body(pub(super) Bytes);

impl Body {
    /// Zero-terminated text.
    pub(super) fn text(&mut self) -> Result<String, SqlError> {
        let Some(end) = self.0.iter().position(|byte| *byte == 0) else {
            return Err(violation("invalid string in message"));
        };
        let bytes = self.0.split_to(end + 1);
        utf8(&bytes[..end]).map(str::to_owned)
    }

    /// A big-endian 32-bit number.
    pub(super) fn int(&mut self) -> Result<i32, SqlError> {
        self.0.try_get_i32().map_err(|_| too_short())
    }

    fn count(&mut self) -> Result<usize, SqlError> {
        self.0
            .try_get_u16()
            .map(usize::from)
            .map_err(|_| too_short())
    }

    /// A count of elements that have at least `size` bytes each, checked against what is left.
    fn count_of(&mut self, size: usize) -> Result<usize, SqlError> {
        let count = self.count()?;
        if count * size > self.0.len() {
            Err(too_short())
        } else {
            Ok(count)
        }
    }

    fn oids(&mut self) -> Result<Vec<u32>, SqlError> {
        let count = self.count_of(4)?;
        (0..count)
            .map(|_| self.0.try_get_u32().map_err(|_| too_short()))
            .collect()
    }

    fn formats(&mut self) -> Result<Vec<i16>, SqlError> {
        let count = self.count_of(2)?;
        (0..count)
            .map(|_| self.0.try_get_i16().map_err(|_| too_short()))
            .collect()
    }

    fn values(&mut self) -> Result<Vec<Option<Bytes>>, SqlError> {
        let count = self.count_of(4)?;
        (0..count).map(|_| self.value()).collect()
    }

    fn value(&mut self) -> Result<Option<Bytes>, SqlError> {
        match self.int()? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) if length <= self.0.len() => Ok(Some(self.0.split_to(length))),
                _ => Err(too_short()),
            },
        }
    }

    fn target(&mut self) -> Result<Target, SqlError> {
        let kind = self.0.try_get_u8().map_err(|_| too_short())?;
        let name = self.text()?;
        match kind {
            b'S' => Ok(Target::Statement(name)),
            b'P' => Ok(Target::Portal(name)),
            other => Err(violation(format!("invalid message subtype {other}"))),
        }
    }

    /// Nothing may be left.
    fn end(&self) -> Result<(), SqlError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(violation("invalid message format"))
        }
    }
}

fn too_short() -> SqlError {
    violation("insufficient data left in message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(kind: u8, body: &[u8]) -> Result<Frontend, SqlError> {
        Frontend::parse(Frame {
            kind,
            body: Bytes::copy_from_slice(body),
        })
    }

    #[test]
    fn reads_every_field_of_bind() {
        let body = b"p\0s\0\0\x02\0\0\0\x01\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0\0\x01\0\x01";
        let expected = Bind {
            portal: "p".into(),
            statement: "s".into(),
            parameter_formats: vec![0, 1],
            parameters: vec![Some(Bytes::from_static(b"ab")), None, Some(Bytes::new())],
            result_formats: vec![1],
        };
        assert_eq!(parse(b'B', body), Ok(Frontend::Bind(expected)));
    }

    #[test]
    fn every_truncation_of_every_message_is_an_error() {
        let whole: &[(u8, &[u8])] = &[
            (b'Q', b"SELECT 1\0"),
            (b'P', b"n\0SELECT $1\0\0\x01\0\0\0\x17"),
            (b'B', b"p\0s\0\0\x01\0\x01\0\x01\0\0\0\x02ab\0\x01\0\x01"),
            (b'D', b"Sname\0"),
            (b'E', b"p\0\0\0\0\x05"),
            (b'C', b"Pname\0"),
            (b'f', b"why\0"),
        ];
        for (kind, body) in whole {
            assert!(parse(*kind, body).is_ok(), "whole {}", *kind as char);
            for length in 0..body.len() {
                let error = parse(*kind, &body[..length]).expect_err("a truncated message");
                assert_eq!(error.code, code::PROTOCOL_VIOLATION);
            }
            let mut longer = body.to_vec();
            longer.push(b'x');
            assert!(parse(*kind, &longer).is_err(), "longer {}", *kind as char);
        }
    }

    #[test]
    fn counts_beyond_the_body_allocate_nothing() {
        for body in [
            &b"\0\0\xff\xff"[..],
            b"\0\0\0\0\xff\xff",
            b"\0\0\0\0\0\x01\x7f\xff\xff\xff",
            b"\0\0\0\0\0\x01\x80\0\0\0",
        ] {
            assert_eq!(
                parse(b'B', body).map_err(|error| error.code),
                Err(code::PROTOCOL_VIOLATION)
            );
        }
        assert!(parse(b'P', b"\0\0\xff\xff").is_err());
    }

    #[test]
    fn lengths_are_bounded_by_type() {
        assert_eq!(frame_length(b'Q', 4), Ok(5));
        for (kind, length) in [
            (b'Q', 3),
            (b'Q', 0),
            (b'Q', -1),
            (b'Q', i32::MIN),
            (b'Q', i32::MAX),
            (b'S', 10_001),
            (b'?', 4),
            (0, 4),
        ] {
            assert!(frame_length(kind, length).is_err(), "{kind} {length}");
        }
    }

    #[test]
    fn text_must_be_utf8() {
        let error = parse(b'Q', b"SELECT '\xff\xfe'\0").expect_err("invalid UTF-8");
        assert_eq!(error.code, code::CHARACTER_NOT_IN_REPERTOIRE);
        assert!(error.message.ends_with("0xff"), "{}", error.message);
    }
}
