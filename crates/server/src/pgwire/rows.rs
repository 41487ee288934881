//! Rows on their way to the client.
//!
//! The pump takes every batch that is ready, writes its rows into the output buffer and sends it whenever it is full. As soon as no batch
//! is ready it flushes and waits, watching the socket: the first row of a push query is on the wire as soon as it exists, and a long result
//! still goes out in large pieces.
//!
//! An Execute with a row limit stops after that many rows and keeps the rest of the batch for the next one. On a query whose rows come as
//! they happen it stops earlier, once at least one row went out and nothing more is ready: a client that asked for ten rows sees the first
//! one when it happens and not with the tenth.

use std::time::Instant;

use arrow::{
    array::{ArrayRef, timezone::Tz},
    datatypes::FieldRef,
    record_batch::RecordBatch,
};
use bytes::{BufMut, BytesMut};
use futures::{FutureExt, StreamExt};
use highwater_sql::CopyOptions;

use super::{
    copy::CopyRowEncoder,
    encode::{Format, RowEncoder, Unencodable},
    link::{Halt, Link},
    metrics,
    outbound::Outbound,
    types::wire_type,
};
use crate::{
    session::Rows,
    sqlstate::{SqlError, code},
};

/// How rows are written.
pub(super) enum RowFormat {
    /// As DataRow messages, each column in its format.
    Data(Vec<Format>),
    /// As CopyData messages.
    Copy(CopyOptions),
}

/// The writer of one batch.
enum BatchEncoder {
    Data(RowEncoder),
    Copy(CopyRowEncoder),
}

impl BatchEncoder {
    fn write(&self, row: usize, out: &mut BytesMut) -> Result<(), Unencodable> {
        match self {
            Self::Data(encoder) => encoder.write(row, out),
            Self::Copy(encoder) => encoder.write(row, out),
        }
    }
}

/// Rows that have begun to go out.
pub(super) struct OpenRows {
    rows: Rows,
    format: RowFormat,
    zone: Tz,
    /// A portion ends as soon as no more rows are ready.
    early: bool,
    /// A batch whose rows have not all gone out.
    current: Option<CurrentBatch>,
}

struct CurrentBatch {
    encoder: BatchEncoder,
    next: usize,
    rows: usize,
}

/// How sending ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// There are no more rows.
    All(u64),
    /// There may be more; ask again.
    Some,
}

impl OpenRows {
    /// Begins to send.
    pub(super) fn new(rows: Rows, format: RowFormat, zone: Tz) -> Self {
        Self {
            early: rows.endless,
            rows,
            format,
            zone,
            current: None,
        }
    }

    /// Lets a portion wait until it is full, for clients that take a short one for the end.
    pub(super) fn fill_portions(&mut self) {
        self.early = false;
    }

    /// The command tag after this many rows.
    pub(super) fn tag(&self, count: u64) -> String {
        match self.rows.tag {
            counted @ ("SELECT" | "FETCH" | "MOVE" | "COPY") => format!("{counted} {count}"),
            plain => plain.to_owned(),
        }
    }

    /// Sends rows, at most `limit` of them.
    pub(super) async fn send(
        &mut self,
        limit: Option<u64>,
        client: Client<'_>,
    ) -> Result<Sent, Halt> {
        let mut sent = 0;
        let result = self
            .send_counted(limit.unwrap_or(u64::MAX), client, &mut sent)
            .await;
        metrics::rows(sent);
        result
    }

    async fn send_counted(
        &mut self,
        limit: u64,
        mut client: Client<'_>,
        sent: &mut u64,
    ) -> Result<Sent, Halt> {
        loop {
            self.send_current(limit, &mut client, sent).await?;
            if *sent >= limit {
                return Ok(Sent::Some);
            }
            let limited = limit < u64::MAX;
            let next = match self.rows.stream.next().now_or_never() {
                Some(next) => next,
                None if limited && self.early && *sent > 0 => return Ok(Sent::Some),
                None => {
                    client.flush().await?;
                    client
                        .link
                        .attend(client.deadline, self.rows.stream.next())
                        .await?
                }
            };
            match next {
                Some(batch) => self.current = Some(self.encode(&batch?)?),
                None => return Ok(Sent::All(*sent)),
            }
        }
    }

    /// Sends what is left of the batch at hand, as far as the limit allows.
    async fn send_current(
        &mut self,
        limit: u64,
        client: &mut Client<'_>,
        sent: &mut u64,
    ) -> Result<(), Halt> {
        let Some(batch) = &mut self.current else {
            return Ok(());
        };
        while batch.next < batch.rows {
            if *sent >= limit {
                return Ok(());
            }
            let written = batch.encoder.write(batch.next, client.outbound.buffer());
            written.map_err(SqlError::from)?;
            batch.next += 1;
            *sent += 1;
            if client.outbound.is_full() {
                client.flush().await?;
            }
        }
        self.current = None;
        Ok(())
    }

    /// Chooses the encoders of a batch, whose columns must be those that the client was told of.
    fn encode(&self, batch: &RecordBatch) -> Result<CurrentBatch, SqlError> {
        let told = self.rows.schema.fields();
        let as_told = |(array, field): (&ArrayRef, &FieldRef)| {
            array.data_type() == field.data_type()
                || wire_type(array.data_type()) == wire_type(field.data_type())
        };
        if batch.num_columns() != told.len() || !batch.columns().iter().zip(told).all(as_told) {
            return Err(SqlError::internal(
                "a query gave a batch with other columns than it announced",
            ));
        }
        let encoder = match &self.format {
            RowFormat::Data(formats) => {
                BatchEncoder::Data(RowEncoder::new(batch, formats, self.zone)?)
            }
            RowFormat::Copy(options) => {
                BatchEncoder::Copy(CopyRowEncoder::new(batch, options, self.zone)?)
            }
        };
        Ok(CurrentBatch {
            encoder,
            next: 0,
            rows: batch.num_rows(),
        })
    }
}

/// The way to the client, and when the statement must have ended.
pub(super) struct Client<'a> {
    pub(super) link: &'a mut Link,
    pub(super) outbound: &'a mut Outbound,
    pub(super) deadline: Option<Instant>,
}

impl Client<'_> {
    async fn flush(&mut self) -> Result<(), Halt> {
        Ok(self
            .link
            .attend(self.deadline, self.outbound.flush())
            .await??)
    }
}

/// The format of each of `columns` from the codes that Bind gave: none for text, one for all, or one each.
pub(super) fn formats(codes: &[i16], columns: usize) -> Result<Vec<Format>, SqlError> {
    let format = |code: &i16| match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        other => Err(SqlError::new(
            code::INVALID_PARAMETER_VALUE,
            format!("unsupported format code: {other}"),
        )),
    };
    match codes {
        [] => Ok(vec![Format::Text; columns]),
        [one] => Ok(vec![format(one)?; columns]),
        each if each.len() == columns => each.iter().map(format).collect(),
        other => Err(super::message::violation(format!(
            "bind message has {} formats but {columns} values",
            other.len()
        ))),
    }
}

/// Writes a message with this type around what `body` writes, or nothing if that fails.
pub(super) fn framed(
    kind: u8,
    out: &mut BytesMut,
    body: impl FnOnce(&mut BytesMut) -> Result<(), Unencodable>,
) -> Result<(), Unencodable> {
    let start = out.len();
    out.put_u8(kind);
    out.put_i32(0);
    let length = body(out)
        .and_then(|()| i32::try_from(out.len() - start - 1).map_err(|_| Unencodable::TooLarge));
    match length {
        Ok(length) => {
            out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}
