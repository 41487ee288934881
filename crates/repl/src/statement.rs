//! Running one statement: its rows are written as they come, its notices too, and Ctrl-C ends it.
//!
//! Rows go through the simple query protocol, which sends each value as text and each row on its own, so an endless result
//! needs no cursor. A row is on the screen [`FLUSH_DELAY`] after it arrived at the latest; until then it waits for others to be
//! measured with.
//!
//! Ctrl-C asks the server to cancel. The server answers with error 57014, which is then no error but the statement's end. When
//! it does not answer, a second Ctrl-C gives the connection up ([`Failure::GivenUp`]).

use std::{
    io::{self, Cursor, Write},
    pin::pin,
    time::Duration,
};

use futures::{SinkExt, StreamExt};
use tokio::{signal::ctrl_c, time::Instant};
use tokio_postgres::{
    Client, SimpleQueryMessage,
    error::{DbError, SqlState},
};

use crate::{
    client::{self, Connection},
    input,
    render::{ColumnKind, Diagnostic, OutputFormat, ResultPrinter, Row, Style},
    source::{self, Source},
};

/// How long a row may wait for others before it is written. A row has to show within 100 ms of its INSERT, and most of that
/// belongs to the server.
const FLUSH_DELAY: Duration = Duration::from_millis(30);

/// How a statement ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with a result that is already written.
    Result,
    /// By itself, without a result.
    Done {
        /// Rows it wrote, where the server counts them.
        affected: u64,
    },
    /// By Ctrl-C.
    Cancelled {
        /// Rows that came before.
        rows: u64,
    },
}

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    /// The server refused it, or went away.
    #[error(transparent)]
    Server(#[from] tokio_postgres::Error),
    /// The result could not be written.
    #[error("could not write the result")]
    Output(#[from] io::Error),
    /// The data to send could not be read.
    #[error("could not read the data: {0}")]
    Data(anyhow::Error),
    /// The user did not wait for the server to answer the cancel request.
    #[error("the server did not answer the cancel request; the connection is given up")]
    GivenUp,
}

/// Which way the data of a statement goes beside rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copying {
    /// `COPY .. FROM STDIN`.
    In,
    /// `COPY .. TO STDOUT`.
    Out,
}

impl Copying {
    /// What a statement's words say; `None` when it is no COPY.
    pub fn of(statement: &str) -> Option<Self> {
        let words = input::words(statement);
        if words.first()? != "COPY" {
            return None;
        }
        let has = |first: &str, second: &str| {
            words
                .windows(2)
                .any(|pair| pair[0] == first && pair[1] == second)
        };
        if has("FROM", "STDIN") {
            Some(Self::In)
        } else if has("TO", "STDOUT") {
            Some(Self::Out)
        } else {
            None
        }
    }
}

/// Runs a statement that sends rows, or nothing.
pub(crate) async fn run(
    connection: &mut Connection,
    statement: &str,
    style: Style,
    out: &mut (dyn Write + Send),
) -> Result<End, Failure> {
    let kinds = match style.format {
        OutputFormat::Json => column_kinds(connection.client(), statement).await,
        OutputFormat::Table | OutputFormat::Csv => Vec::new(),
    };
    let (client, notices) = connection.split();
    let mut messages = pin!(client.simple_query_raw(statement).await?);
    let mut interrupt = pin!(ctrl_c());
    let mut printer: Option<ResultPrinter> = None;
    let mut flush_at: Option<Instant> = None;
    let mut end = None;
    let mut cancelled = false;
    loop {
        let wait_for_others = tokio::time::sleep_until(flush_at.unwrap_or_else(Instant::now));
        tokio::select! {
            biased;
            _ = &mut interrupt => {
                if cancelled {
                    return Err(Failure::GivenUp);
                }
                cancelled = true;
                client::cancel(client.cancel_token());
                interrupt.set(ctrl_c());
            }
            Some(notice) = notices.recv() => print_notice(&notice, statement),
            () = wait_for_others, if flush_at.is_some() => {
                flush(printer.as_mut(), out)?;
                flush_at = None;
            }
            message = messages.next() => match message {
                None => break,
                Some(Ok(SimpleQueryMessage::RowDescription(columns))) => {
                    let names = columns.iter().map(|column| column.name().to_owned()).collect();
                    printer = Some(ResultPrinter::new(style, names, kinds.clone()));
                }
                Some(Ok(SimpleQueryMessage::Row(row))) => {
                    let Some(printer) = &mut printer else { continue };
                    printer.push(values(&row));
                    if printer.is_full() {
                        printer.flush(out)?;
                        flush_at = None;
                    } else {
                        flush_at.get_or_insert_with(|| Instant::now() + FLUSH_DELAY);
                    }
                }
                Some(Ok(SimpleQueryMessage::CommandComplete(affected))) => {
                    flush_at = None;
                    end = Some(match &mut printer {
                        Some(printer) if !cancelled => {
                            printer.finish(out)?;
                            End::Result
                        }
                        Some(_) => continue,
                        None => End::Done { affected },
                    });
                }
                Some(Ok(_)) => {}
                Some(Err(error)) if cancelled && error.code() == Some(&SqlState::QUERY_CANCELED) => break,
                Some(Err(error)) => {
                    flush(printer.as_mut(), out)?;
                    drain_notices(notices, statement);
                    return Err(error.into());
                }
            },
        }
    }
    flush(printer.as_mut(), out)?;
    drain_notices(notices, statement);
    let rows = printer.as_ref().map_or(0, ResultPrinter::count);
    Ok(match end {
        Some(end) => end,
        None if cancelled => End::Cancelled { rows },
        // An empty query, which the server answers with nothing at all.
        None => End::Done { affected: 0 },
    })
}

fn values(row: &tokio_postgres::SimpleQueryRow) -> Row {
    (0..row.len())
        .map(|index| row.try_get(index).ok().flatten().map(str::to_owned))
        .collect()
}

fn flush(printer: Option<&mut ResultPrinter>, out: &mut (dyn Write + Send)) -> io::Result<()> {
    match printer {
        Some(printer) if printer.is_pending() => printer.flush(out),
        _ => Ok(()),
    }
}

fn print_notice(notice: &DbError, statement: &str) {
    eprintln!("{}", Diagnostic::new(notice, statement));
}

/// Notices are queued before the message that follows them, so at a statement's end all of its notices are here.
fn drain_notices(notices: &mut tokio::sync::mpsc::Receiver<DbError>, statement: &str) {
    while let Ok(notice) = notices.try_recv() {
        print_notice(&notice, statement);
    }
}

/// What the columns of a query become in JSON. Only a query is described ahead; without an answer all columns are text.
async fn column_kinds(client: &Client, statement: &str) -> Vec<ColumnKind> {
    let words = input::words(statement);
    let is_query = matches!(
        words.first().map(String::as_str),
        Some("SELECT" | "WITH" | "VALUES")
    );
    if !is_query {
        return Vec::new();
    }
    match client.prepare(statement).await {
        Ok(prepared) => prepared
            .columns()
            .iter()
            .map(|column| ColumnKind::of(column.type_()))
            .collect(),
        // The statement itself will report the error.
        Err(_) => Vec::new(),
    }
}

/// Where the data of a `COPY .. FROM STDIN` is.
pub(crate) enum CopyData<'a> {
    /// In the lines that follow the statement.
    Lines(&'a mut Source),
    /// In a local file.
    File(Box<dyn io::Read + Send>),
}

impl CopyData<'_> {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        match self {
            Self::Lines(source) => source.next_data().await.map_err(Failure::Data),
            Self::File(file) => {
                source::read_data(file.as_mut()).map_err(|error| Failure::Data(error.into()))
            }
        }
    }
}

/// Runs a `COPY .. FROM STDIN`. Ctrl-C before its end leaves nothing behind: the server gets no end of the data.
pub(crate) async fn copy_in(
    connection: &mut Connection,
    statement: &str,
    mut data: CopyData<'_>,
) -> Result<End, Failure> {
    if let CopyData::Lines(source) = &mut data {
        source.begin_data();
    }
    let (client, notices) = connection.split();
    let send = async {
        let mut sink = pin!(client.copy_in::<_, Cursor<Vec<u8>>>(statement).await?);
        while let Some(chunk) = data.next().await? {
            sink.send(Cursor::new(chunk)).await?;
        }
        Ok::<u64, Failure>(sink.finish().await?)
    };
    let result = tokio::select! {
        biased;
        _ = ctrl_c() => Ok(End::Cancelled { rows: 0 }),
        sent = send => sent.map(|affected| End::Done { affected }),
    };
    drain_notices(notices, statement);
    result
}

/// Runs a `COPY .. TO STDOUT`. What arrives is written at once.
pub(crate) async fn copy_out(
    connection: &mut Connection,
    statement: &str,
    out: &mut (dyn Write + Send),
) -> Result<End, Failure> {
    let (client, notices) = connection.split();
    let mut rows = 0;
    let mut cancelled = false;
    let mut interrupt = pin!(ctrl_c());
    let mut chunks = pin!(client.copy_out(statement).await?);
    loop {
        tokio::select! {
            biased;
            _ = &mut interrupt => {
                if cancelled {
                    return Err(Failure::GivenUp);
                }
                cancelled = true;
                client::cancel(client.cancel_token());
                interrupt.set(ctrl_c());
            }
            Some(notice) = notices.recv() => print_notice(&notice, statement),
            chunk = chunks.next() => match chunk {
                None => break,
                Some(Ok(chunk)) => {
                    // One message of the protocol is one row.
                    rows += 1;
                    out.write_all(&chunk)?;
                    out.flush()?;
                }
                Some(Err(error)) if cancelled && error.code() == Some(&SqlState::QUERY_CANCELED) => {
                    drain_notices(notices, statement);
                    return Ok(End::Cancelled { rows });
                }
                Some(Err(error)) => return Err(error.into()),
            },
        }
    }
    drain_notices(notices, statement);
    Ok(End::Result)
}

/// What a statement without a result is called when it is done: `CREATE STREAM`, `INSERT 3`.
pub(crate) fn completion(statement: &str, affected: u64) -> String {
    let words = input::words(statement);
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    match word(0) {
        "" => String::new(),
        verb @ ("INSERT" | "COPY" | "DELETE" | "UPDATE" | "FETCH" | "MOVE") => {
            format!("{verb} {affected}")
        }
        verb @ ("CREATE" | "DROP" | "ALTER") => {
            let skipped = if word(1) == "OR" { 3 } else { 1 };
            format!("{verb} {}", word(skipped)).trim_end().to_owned()
        }
        verb => verb.to_owned(),
    }
}

/// Whether a statement changes what can be completed.
pub(crate) fn changes_names(statement: &str) -> bool {
    matches!(
        input::words(statement).first().map(String::as_str),
        Some("CREATE" | "DROP" | "ALTER")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_of_copy() {
        assert_eq!(
            Copying::of("copy t (a, b) from stdin with (format csv)"),
            Some(Copying::In)
        );
        assert_eq!(
            Copying::of("COPY (SELECT 1 FROM stdin) TO STDOUT"),
            Some(Copying::Out)
        );
        assert_eq!(Copying::of("-- note\nCOPY t FROM 'file'"), None);
        assert_eq!(Copying::of("SELECT 'COPY t FROM STDIN'"), None);
    }

    #[test]
    fn completions() {
        for (statement, expected) in [
            ("create or replace stream s AS SELECT 1", "CREATE STREAM"),
            ("CREATE TABLE t (a INT)", "CREATE TABLE"),
            ("INSERT INTO t VALUES (1)", "INSERT 3"),
            ("/* x */ terminate all", "TERMINATE"),
            ("", ""),
        ] {
            assert_eq!(completion(statement, 3), expected);
        }
    }

    #[test]
    fn what_changes_names() {
        assert!(changes_names("DROP STREAM s") && !changes_names("SELECT 1"));
    }
}
