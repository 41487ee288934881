//! What a statement needs before it runs and what running it gives: the seam between `pgwire/` (messages) and `statement/` (meaning).

use std::{pin::Pin, sync::Arc};

use arrow::{
    datatypes::{DataType, SchemaRef},
    record_batch::RecordBatch,
};
use futures::Stream;
use highwater_sql::{CopyOptions, ParsedStatement, Substituted};

use super::SessionResult;

/// A statement with the script it stands in: errors tell positions in the script.
#[derive(Debug, Clone)]
pub struct SourceStatement {
    /// The statement.
    pub parsed: ParsedStatement,
    /// The whole text that was read.
    pub script: Arc<str>,
    /// What the client sent, where that is another text.
    pub sent: Option<Arc<SentScript>>,
}

/// A script with references to variables, as the client sent it.
#[derive(Debug, Clone)]
pub struct SentScript {
    /// The text.
    pub text: String,
    /// What became of it.
    pub substituted: Substituted,
}

/// A statement that is ready to run.
pub struct Prepared {
    /// The statement.
    pub statement: Arc<SourceStatement>,
    /// Types of `$1`, `$2`, .. as declared by the client or inferred.
    pub parameters: Vec<DataType>,
    /// Columns of the rows it gives; `None` for statements without rows.
    pub schema: Option<SchemaRef>,
}

/// Rows that go to the client together and are then flushed.
pub type RowStream = Pin<Box<dyn Stream<Item = SessionResult<RecordBatch>> + Send>>;

/// Rows of a query.
pub struct Rows {
    /// Columns.
    pub schema: SchemaRef,
    /// The rows. Dropping it ends the query.
    pub stream: RowStream,
    /// First word of the command tag: `SELECT`, `FETCH`, `SHOW`, ..
    pub tag: &'static str,
    /// Rows come as they happen (push queries, PRINT): each batch is flushed at once and a suspended portal returns early.
    pub endless: bool,
}

/// What running a statement gives.
pub enum Outcome {
    /// Done, with its command tag (`INSERT 0 3`).
    Done(String),
    /// Nothing was asked (empty statement).
    Empty,
    /// Rows follow.
    Rows(Rows),
    /// COPY .. FROM STDIN: the client sends data.
    CopyIn(Box<dyn CopyIn>),
    /// COPY .. TO STDOUT: rows go out in COPY format.
    CopyOut(Rows, CopyOptions),
}

/// Takes the data of COPY FROM STDIN.
#[async_trait::async_trait]
pub trait CopyIn: Send {
    /// How many columns the client is told of.
    fn columns(&self) -> usize;
    /// A piece of data, cut anywhere.
    async fn data(&mut self, bytes: bytes::Bytes) -> SessionResult<()>;
    /// The end: makes all rows durable and answers how many there were.
    async fn finish(self: Box<Self>) -> SessionResult<u64>;
}

/// The transaction state that ReadyForQuery reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// No transaction block.
    Idle,
    /// In a transaction block.
    InBlock,
    /// In a failed transaction block: everything but its end is refused with 25P02.
    Failed,
}

/// Something the client is told beside a statement's outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE` or `WARNING`.
    pub severity: &'static str,
    /// SQLSTATE.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// What a client sends first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartupParameters {
    /// `user`.
    pub user: String,
    /// `database`; the user's name when the client gives none.
    pub database: String,
    /// The number that `pg_backend_pid()` and BackendKeyData tell.
    pub backend_pid: i32,
    /// Everything else: `application_name`, `client_encoding`, `DateStyle`, `TimeZone`, `options`, .. as sent.
    pub settings: Vec<(String, String)>,
}
