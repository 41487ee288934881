//! The protocol by hand: for what a driver would never send.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::harness::PATIENCE;

/// Protocol 3.0.
pub const V3_0: u32 = 3 << 16;

/// A socket that speaks messages.
pub struct Raw {
    socket: TcpStream,
}

/// A message from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub kind: u8,
    pub body: Vec<u8>,
}

impl Message {
    /// A field of an error or a notice.
    pub fn field(&self, code: u8) -> Option<String> {
        let fields = self.body.split(|byte| *byte == 0);
        let found = fields
            .into_iter()
            .find(|field| field.first() == Some(&code));
        found.map(|field| String::from_utf8_lossy(&field[1..]).into_owned())
    }
}

impl Raw {
    /// A socket on which nothing was said.
    pub async fn open(address: SocketAddr) -> Self {
        Self {
            socket: TcpStream::connect(address).await.expect("a socket"),
        }
    }

    /// A session.
    pub async fn session(address: SocketAddr) -> Self {
        let mut raw = Self::open(address).await;
        raw.startup(V3_0, b"user\0raw\0database\0highwater\0\0")
            .await;
        let greeting = raw.until_ready().await;
        assert_eq!(greeting.first().map(|message| message.kind), Some(b'R'));
        raw
    }

    /// Sends bytes as they are; a server that has closed already is no failure here.
    pub async fn bytes(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes).await;
    }

    /// Sends a start-up packet.
    pub async fn startup(&mut self, code: u32, body: &[u8]) {
        let length = u32::try_from(body.len() + 8).expect("a short packet");
        self.bytes(&[&length.to_be_bytes()[..], &code.to_be_bytes(), body].concat())
            .await;
    }

    /// Sends a message.
    pub async fn send(&mut self, kind: u8, body: &[u8]) {
        self.bytes(&message(kind, body)).await;
    }

    /// One byte: the answer to a request for encryption.
    pub async fn byte(&mut self) -> u8 {
        timeout(PATIENCE, self.socket.read_u8())
            .await
            .expect("in time")
            .expect("a byte")
    }

    /// The next message; `None` when the server has closed.
    pub async fn receive(&mut self) -> Option<Message> {
        let receive = async {
            let kind = self.socket.read_u8().await.ok()?;
            let length = self.socket.read_u32().await.ok()?;
            let mut body = vec![0; length as usize - 4];
            self.socket.read_exact(&mut body).await.ok()?;
            Some(Message { kind, body })
        };
        timeout(PATIENCE, receive).await.expect("in time")
    }

    /// Everything up to ReadyForQuery, which is the last.
    pub async fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while messages
            .last()
            .is_none_or(|message: &Message| message.kind != b'Z')
        {
            let message = self.receive().await;
            messages.push(message.unwrap_or_else(|| panic!("closed after {}", kinds(&messages))));
        }
        messages
    }

    /// Everything up to the server's close.
    pub async fn until_closed(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.receive().await {
            messages.push(message);
        }
        messages
    }
}

/// A message's bytes.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// The kinds of messages as text.
pub fn kinds(messages: &[Message]) -> String {
    messages
        .iter()
        .map(|message| message.kind as char)
        .collect()
}

/// The SQLSTATEs of the errors among them.
pub fn errors(messages: &[Message]) -> Vec<String> {
    messages
        .iter()
        .filter(|message| message.kind == b'E')
        .filter_map(|message| message.field(b'C'))
        .collect()
}
