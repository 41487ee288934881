//! What one connection has, and how a statement is prepared and run on it.
//!
//! The protocol code (`pgwire/`) knows messages, this module knows statements; they meet in [`Prepared`] and [`Outcome`].

mod outcome;

use std::{sync::Arc, time::Duration};

use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use highwater_sql::ParsedStatement;

pub use outcome::{
    CopyIn, Notice, Outcome, Prepared, RowStream, Rows, StartupParameters, TransactionStatus,
};

use crate::{server::Server, sqlstate::SqlError};

/// Result of session operations: errors carry SQLSTATE, position, detail and hint.
pub type SessionResult<T> = Result<T, SqlError>;

/// One connection's session.
pub struct Session {
    _server: Arc<Server>,
    transaction: TransactionStatus,
    notices: Vec<Notice>,
}

impl Session {
    /// Begins a session.
    pub async fn start(server: Arc<Server>, _startup: StartupParameters) -> SessionResult<Session> {
        Ok(Self { _server: server, transaction: TransactionStatus::Idle, notices: Vec::new() })
    }

    /// What ParameterStatus reports after start-up, by PostgreSQL's names.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![("server_encoding", "UTF8".to_owned())]
    }

    /// The statements of a simple query.
    pub fn parse(&self, _sql: &str) -> SessionResult<Vec<ParsedStatement>> {
        Ok(Vec::new())
    }

    /// Makes a statement ready: parameter types and result columns.
    pub async fn prepare(
        &mut self,
        statement: ParsedStatement,
        declared: &[Option<DataType>],
    ) -> SessionResult<Prepared> {
        let parameters = declared.iter().map(|declared| declared.clone().unwrap_or(DataType::Utf8)).collect();
        Ok(Prepared { statement: Arc::new(statement), parameters, schema: None })
    }

    /// Runs a statement and moves the transaction state.
    pub async fn execute(&mut self, _prepared: &Prepared, _parameters: Vec<ScalarValue>) -> SessionResult<Outcome> {
        Ok(Outcome::Empty)
    }

    /// What ReadyForQuery reports.
    pub fn transaction_status(&self) -> TransactionStatus {
        self.transaction
    }

    /// Called after any error that the client was sent: a transaction block is then failed.
    pub fn statement_failed(&mut self) {
        if self.transaction == TransactionStatus::InBlock {
            self.transaction = TransactionStatus::Failed;
        }
    }

    /// Notices since the last call; they go out before the rows.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// `statement_timeout`, when set.
    pub fn statement_timeout(&self) -> Option<Duration> {
        None
    }

    /// `TimeZone`: how TIMESTAMPTZ is shown.
    pub fn time_zone(&self) -> &str {
        "UTC"
    }
}
