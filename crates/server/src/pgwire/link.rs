//! What comes from the client, and everything that can end a statement from outside.
//!
//! Work of a statement runs inside [`Link::attend`], which watches the socket meanwhile. Messages that the client sends ahead wait in the
//! input buffer, at most [`AHEAD_BYTES`] of them; beyond that the client is not read, and its end shows only when something is written.
//!
//! INVARIANT: attended work may be dropped at any await, so it must be cancel-safe: no half-written message, no half-moved state.

use std::{future::Future, pin::pin, time::Instant};

use bytes::BytesMut;
use tokio::{io::AsyncReadExt, net::tcp::OwnedReadHalf, sync::watch};
use tokio_util::sync::CancellationToken;

use super::{
    message::{Frame, frame_length},
    outbound::Outbound,
};
use crate::sqlstate::{SqlError, code};

/// Bytes read ahead while a statement runs: a pipeline of a few thousand small statements.
const AHEAD_BYTES: usize = 1 << 20;
/// Room made for each read.
const READ_BYTES: usize = 8 << 10;
/// Type byte and length.
const HEADER_BYTES: usize = 5;

/// Why a message's work ended early.
#[derive(Debug)]
pub(super) enum Halt {
    /// The client is told, and the session goes on.
    Statement(SqlError),
    /// The client is told, and the connection ends.
    Fatal(SqlError),
    /// There is no client any more.
    Gone,
}

impl From<SqlError> for Halt {
    fn from(error: SqlError) -> Self {
        Self::Statement(error)
    }
}

impl From<std::io::Error> for Halt {
    fn from(_: std::io::Error) -> Self {
        Self::Gone
    }
}

/// The reading side of a connection.
#[derive(Debug)]
pub(super) struct Link {
    socket: OwnedReadHalf,
    input: BytesMut,
    cancelled: watch::Receiver<u64>,
    shutdown: CancellationToken,
}

impl Link {
    /// Takes the reading half and the two signals from outside.
    pub(super) fn new(
        socket: OwnedReadHalf,
        cancelled: watch::Receiver<u64>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            socket,
            input: BytesMut::new(),
            cancelled,
            shutdown,
        }
    }

    /// The next message. What waits to be sent goes out before this waits for the client.
    pub(super) async fn next_frame(&mut self, outbound: &mut Outbound) -> Result<Frame, Halt> {
        self.frame_unless(std::future::pending(), outbound).await
    }

    /// The next message within a statement (COPY), which a cancel request or its deadline can end.
    pub(super) async fn next_frame_attended(
        &mut self,
        deadline: Option<Instant>,
        outbound: &mut Outbound,
    ) -> Result<Frame, Halt> {
        let interrupted = interrupted(self.cancelled.clone(), deadline);
        self.frame_unless(interrupted, outbound).await
    }

    async fn frame_unless(
        &mut self,
        interrupted: impl Future<Output = Halt>,
        outbound: &mut Outbound,
    ) -> Result<Frame, Halt> {
        let mut interrupted = pin!(interrupted);
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(frame);
            }
            if !outbound.is_empty() {
                self.watch(&mut interrupted, outbound.flush()).await??;
                continue;
            }
            tokio::select! {
                biased;
                halt = &mut interrupted => return Err(halt),
                () = self.shutdown.cancelled() => return Err(Halt::Fatal(stopping())),
                read = fill(&mut self.socket, &mut self.input) => read?,
            }
        }
    }

    /// Forgets cancel requests that came while nothing ran, or that have been answered.
    pub(super) fn forget_cancels(&mut self) {
        self.cancelled.mark_unchanged();
    }

    /// Runs a statement's work until it is done, or the client goes, or someone cancels it, or its time is over.
    pub(super) async fn attend<T>(
        &mut self,
        deadline: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> Result<T, Halt> {
        self.watch(interrupted(self.cancelled.clone(), deadline), work)
            .await
    }

    /// Runs work that no cancel request may end, since its outcome must be told: only the client's end or the server's.
    pub(super) async fn settle<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Halt> {
        self.watch(std::future::pending(), work).await
    }

    async fn watch<T>(
        &mut self,
        interrupted: impl Future<Output = Halt>,
        work: impl Future<Output = T>,
    ) -> Result<T, Halt> {
        let mut work = pin!(work);
        let mut interrupted = pin!(interrupted);
        loop {
            let room = self.input.len() < AHEAD_BYTES;
            // ORDER: interrupts first, since work that is always ready (a large result, a fast client) would never let them in.
            tokio::select! {
                biased;
                halt = &mut interrupted => return Err(halt),
                () = self.shutdown.cancelled() => return Err(Halt::Fatal(stopping())),
                done = &mut work => return Ok(done),
                read = fill(&mut self.socket, &mut self.input), if room => read?,
            }
        }
    }

    /// Cuts the next message out of the input, if it is whole.
    fn take_frame(&mut self) -> Result<Option<Frame>, Halt> {
        let [kind, length @ ..] = match self.input.first_chunk::<HEADER_BYTES>() {
            Some(header) => *header,
            None => return Ok(None),
        };
        let length = frame_length(kind, i32::from_be_bytes(length)).map_err(Halt::Fatal)?;
        if self.input.len() < length {
            return Ok(None);
        }
        let body = self.input.split_to(length).freeze().slice(HEADER_BYTES..);
        if self.input.is_empty() {
            // A buffer that grew for one long message is not kept.
            self.input = BytesMut::new();
        }
        Ok(Some(Frame { kind, body }))
    }
}

/// Reads what there is. Nothing is lost when it is dropped.
async fn fill(socket: &mut OwnedReadHalf, input: &mut BytesMut) -> Result<(), Halt> {
    input.reserve(READ_BYTES);
    match socket.read_buf(input).await {
        Ok(0) | Err(_) => Err(Halt::Gone),
        Ok(_) => Ok(()),
    }
}

/// Resolves when the running statement is to end, by request or by its deadline.
async fn interrupted(cancelled: watch::Receiver<u64>, deadline: Option<Instant>) -> Halt {
    let message = tokio::select! {
        () = cancel_request(cancelled) => "canceling statement due to user request",
        () = passed(deadline) => "canceling statement due to statement timeout",
    };
    Halt::Statement(SqlError::new(code::QUERY_CANCELED, message))
}

async fn cancel_request(mut cancelled: watch::Receiver<u64>) {
    if cancelled.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

fn stopping() -> SqlError {
    SqlError::new(
        code::ADMIN_SHUTDOWN,
        "terminating connection due to administrator command",
    )
}
