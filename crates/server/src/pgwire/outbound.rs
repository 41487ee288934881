//! What goes to the client: one buffer of whole messages, and the socket's writing half.
//!
//! INVARIANT: the buffer begins where the client's stream stands, even when a flush was interrupted: [`Outbound::flush`] takes bytes out
//! of the buffer only after the socket took them. An error can therefore follow at any point.

use bytes::{Buf, BytesMut};
use pgwire::messages::{Message, response};
use tokio::{io::AsyncWriteExt, net::tcp::OwnedWriteHalf};

use crate::{
    session::{Notice, TransactionStatus},
    sqlstate::SqlError,
};

/// The buffer is sent when it has grown to this: large enough for one system call to carry hundreds of rows, small enough that a client
/// sees a long result move.
pub(super) const FLUSH_BYTES: usize = 64 << 10;
/// A buffer that one large row has made larger than this is given back.
const KEEP_BYTES: usize = 1 << 20;

/// How bad an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// The statement has failed.
    Error,
    /// The connection ends.
    Fatal,
}

/// The writing side of a connection.
#[derive(Debug)]
pub(super) struct Outbound {
    socket: OwnedWriteHalf,
    buffer: BytesMut,
}

impl Outbound {
    /// Takes the writing half.
    pub(super) fn new(socket: OwnedWriteHalf) -> Self {
        Self {
            socket,
            buffer: BytesMut::with_capacity(8 << 10),
        }
    }

    /// Adds a message.
    pub(super) fn push(&mut self, message: &impl Message) -> Result<(), SqlError> {
        let before = self.buffer.len();
        message.encode(&mut self.buffer).map_err(|error| {
            self.buffer.truncate(before);
            SqlError::internal(format!("could not write a message: {error}"))
        })
    }

    /// The buffer, for messages that are written by hand; the writer leaves whole messages only.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Whether enough has come together to be sent.
    pub(super) fn is_full(&self) -> bool {
        self.buffer.len() >= FLUSH_BYTES
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Adds an error.
    pub(super) fn push_error(
        &mut self,
        severity: Severity,
        error: &SqlError,
    ) -> Result<(), SqlError> {
        let severity = match severity {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
        };
        let mut fields = report(severity, error.code, &error.message);
        fields.extend(
            error
                .detail
                .as_deref()
                .map(|detail| (b'D', printable(detail))),
        );
        fields.extend(error.hint.as_deref().map(|hint| (b'H', printable(hint))));
        fields.extend(error.position.map(|position| (b'P', position.to_string())));
        self.push(&response::ErrorResponse::new(fields))
    }

    /// Adds a notice.
    pub(super) fn push_notice(&mut self, notice: &Notice) -> Result<(), SqlError> {
        let mut fields = report(notice.severity, notice.code, &notice.message);
        fields.extend(notice.hint.as_deref().map(|hint| (b'H', printable(hint))));
        self.push(&response::NoticeResponse::new(fields))
    }

    /// Adds the end of a statement.
    pub(super) fn push_complete(&mut self, tag: impl Into<String>) -> Result<(), SqlError> {
        self.push(&response::CommandComplete::new(tag.into()))
    }

    /// Adds the invitation for the next statement.
    pub(super) fn push_ready(&mut self, status: TransactionStatus) -> Result<(), SqlError> {
        let status = match status {
            TransactionStatus::Idle => response::TransactionStatus::Idle,
            TransactionStatus::InBlock => response::TransactionStatus::Transaction,
            TransactionStatus::Failed => response::TransactionStatus::Error,
        };
        self.push(&response::ReadyForQuery::new(status))
    }

    /// Sends everything. It can be dropped at any await and called again.
    pub(super) async fn flush(&mut self) -> std::io::Result<()> {
        while !self.buffer.is_empty() {
            let written = self.socket.write(&self.buffer).await?;
            if written == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            self.buffer.advance(written);
        }
        if self.buffer.capacity() > KEEP_BYTES {
            self.buffer = BytesMut::with_capacity(FLUSH_BYTES);
        }
        Ok(())
    }
}

/// The fields that every error and notice has.
fn report(severity: &str, code: &str, message: &str) -> Vec<(u8, String)> {
    vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', code.to_owned()),
        (b'M', printable(message)),
    ]
}

/// A zero byte would end the field, and what follows would be read as further fields.
fn printable(text: &str) -> String {
    if text.contains('\0') {
        text.replace('\0', "\\0")
    } else {
        text.to_owned()
    }
}
