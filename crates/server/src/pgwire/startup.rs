//! The first packets of a connection: refusing encryption, cancel requests, and who wants to talk in which protocol version.
//!
//! Layout: a big-endian `i32` length that counts itself, an `i32` code, then what the code asks for. A packet has 8 to 10,000 bytes;
//! anything else is no PostgreSQL client and is dropped without an answer. Each packet is read exactly to its end.

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::message::{utf8, violation};
use crate::{
    session::StartupParameters,
    sqlstate::{SqlError, code},
};

const MIN_PACKET_BYTES: usize = 8;
const MAX_PACKET_BYTES: usize = 10_000;

const CANCEL_REQUEST: u32 = (1234 << 16) | 5678;
const SSL_REQUEST: u32 = (1234 << 16) | 5679;
const GSS_ENCRYPTION_REQUEST: u32 = (1234 << 16) | 5680;
const PROTOCOL_MAJOR: u32 = 3;
/// Newest protocol: 3.2, with secrets of variable length.
const NEWEST_MINOR: u32 = 2;

/// What a new connection wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// To cancel what another session runs.
    Cancel {
        /// Which session.
        process_id: i32,
        /// Its secret.
        secret: Bytes,
    },
    /// A session.
    Session(Startup),
}

/// Who wants a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Startup {
    /// User, database and settings; the process id is not given yet.
    pub(super) parameters: StartupParameters,
    /// Minor version of protocol 3 that both sides speak: 0 or 2.
    pub(super) minor: u32,
    /// Set when the client must be told of another version, or of options that are not known here.
    pub(super) negotiate: Option<Vec<String>>,
}

/// Why there is no session.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The client is told.
    Error(SqlError),
    /// Nobody is there, or no PostgreSQL client.
    Silent,
}

impl From<std::io::Error> for Refusal {
    fn from(_: std::io::Error) -> Self {
        Self::Silent
    }
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Self {
        Self::Error(error)
    }
}

/// Reads packets until the client says what it wants.
pub(super) async fn open(socket: &mut TcpStream) -> Result<Opening, Refusal> {
    let (mut ssl_refused, mut gss_refused) = (false, false);
    loop {
        let (request, body) = read_packet(socket).await?;
        let refused = match request {
            SSL_REQUEST => &mut ssl_refused,
            GSS_ENCRYPTION_REQUEST => &mut gss_refused,
            CANCEL_REQUEST => return read_cancel(body),
            version => return Ok(Opening::Session(read_startup(version, &body)?)),
        };
        if std::mem::replace(refused, true) || !body.is_empty() {
            return Err(violation("encryption was asked for twice").into());
        }
        socket.write_all(b"N").await?;
    }
}

async fn read_packet(socket: &mut TcpStream) -> Result<(u32, Bytes), Refusal> {
    let length = usize::try_from(socket.read_i32().await?).map_err(|_| Refusal::Silent)?;
    if !(MIN_PACKET_BYTES..=MAX_PACKET_BYTES).contains(&length) {
        return Err(Refusal::Silent);
    }
    let request = socket.read_u32().await?;
    let mut body = vec![0; length - MIN_PACKET_BYTES];
    socket.read_exact(&mut body).await?;
    Ok((request, body.into()))
}

fn read_cancel(mut body: Bytes) -> Result<Opening, Refusal> {
    if body.len() < 8 {
        return Err(Refusal::Silent);
    }
    let secret = body.split_off(4);
    let process_id = i32::from_be_bytes([body[0], body[1], body[2], body[3]]);
    Ok(Opening::Cancel { process_id, secret })
}

fn read_startup(version: u32, body: &[u8]) -> Result<Startup, SqlError> {
    let (major, asked_minor) = (version >> 16, version & 0xffff);
    if major != PROTOCOL_MAJOR {
        return Err(SqlError::unsupported(format!(
            "unsupported frontend protocol {major}.{asked_minor}: server supports 3.0 to 3.{NEWEST_MINOR}"
        )));
    }
    // Version 3.1 was never used.
    let minor = if asked_minor >= NEWEST_MINOR {
        NEWEST_MINOR
    } else {
        0
    };

    let mut parameters = StartupParameters::default();
    let mut unknown_options = Vec::new();
    for (name, value) in read_pairs(body)? {
        match name {
            "user" => parameters.user = value.to_owned(),
            "database" => parameters.database = value.to_owned(),
            "replication" if !matches!(value, "false" | "off" | "no" | "0") => {
                return Err(SqlError::unsupported(
                    "replication connections are not supported",
                ));
            }
            option if option.starts_with("_pq_.") => unknown_options.push(option.to_owned()),
            _ => parameters
                .settings
                .push((name.to_owned(), value.to_owned())),
        }
    }
    if parameters.user.is_empty() {
        let message = "no PostgreSQL user name specified in startup packet";
        return Err(SqlError::new(
            code::INVALID_AUTHORIZATION_SPECIFICATION,
            message,
        ));
    }
    if parameters.database.is_empty() {
        parameters.database.clone_from(&parameters.user);
    }
    let negotiate =
        (minor != asked_minor || !unknown_options.is_empty()).then_some(unknown_options);
    Ok(Startup {
        parameters,
        minor,
        negotiate,
    })
}

/// Names and values, each ended by a zero byte, and one more zero byte at the end.
fn read_pairs(body: &[u8]) -> Result<Vec<(&str, &str)>, SqlError> {
    let invalid = || violation("invalid startup packet layout: expected terminator as last byte");
    let mut pairs = Vec::new();
    let mut rest = body;
    loop {
        let (name, after) = split_at_zero(rest).ok_or_else(invalid)?;
        if name.is_empty() {
            return if after.is_empty() {
                Ok(pairs)
            } else {
                Err(invalid())
            };
        }
        let (value, after) = split_at_zero(after).ok_or_else(invalid)?;
        pairs.push((utf8(name)?, utf8(value)?));
        rest = after;
    }
}

fn split_at_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V3_0: u32 = 3 << 16;

    #[test]
    fn reads_user_database_and_settings() {
        let startup =
            read_startup(V3_0, b"user\0ann\0database\0db\0TimeZone\0Asia/Kolkata\0\0").unwrap();
        assert_eq!(
            (
                startup.parameters.user.as_str(),
                startup.parameters.database.as_str()
            ),
            ("ann", "db")
        );
        assert_eq!(
            startup.parameters.settings,
            [("TimeZone".to_owned(), "Asia/Kolkata".to_owned())]
        );
        assert_eq!((startup.minor, startup.negotiate), (0, None));
        let startup = read_startup(V3_0, b"user\0ann\0\0").unwrap();
        assert_eq!(startup.parameters.database, "ann");
    }

    #[test]
    fn newer_versions_and_unknown_options_are_negotiated() {
        let newest = read_startup(V3_0 | 2, b"user\0u\0\0").unwrap();
        assert_eq!((newest.minor, newest.negotiate), (2, None));
        let future = read_startup(V3_0 | 9999, b"user\0u\0_pq_.x\0on\0\0").unwrap();
        assert_eq!(
            (future.minor, future.negotiate),
            (2, Some(vec!["_pq_.x".to_owned()]))
        );
        assert_eq!(read_startup(V3_0 | 1, b"user\0u\0\0").unwrap().minor, 0);
        assert_eq!(
            read_startup(2 << 16, b"user\0u\0\0").unwrap_err().code,
            code::FEATURE_NOT_SUPPORTED
        );
    }

    #[test]
    fn a_malformed_packet_is_an_error() {
        for body in [
            &b""[..],
            b"user",
            b"user\0",
            b"user\0ann",
            b"user\0ann\0",
            b"user\0ann\0\0more",
            b"user\0\xff\0\0",
        ] {
            assert!(read_startup(V3_0, body).is_err(), "{body:?}");
        }
        assert_eq!(
            read_startup(V3_0, b"\0").unwrap_err().code,
            code::INVALID_AUTHORIZATION_SPECIFICATION
        );
    }

    #[test]
    fn a_cancel_request_needs_a_secret() {
        let long = Bytes::from_static(b"\0\0\0\x07secret-secret");
        let expected = Opening::Cancel {
            process_id: 7,
            secret: Bytes::from_static(b"secret-secret"),
        };
        assert_eq!(read_cancel(long).unwrap(), expected);
        assert!(read_cancel(Bytes::from_static(b"\0\0\0\x07")).is_err());
    }
}
