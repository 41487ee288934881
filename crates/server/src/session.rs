//! What one connection has, and how a statement is prepared and run on it.
//!
//! The protocol code (`pgwire/`) knows messages, this module knows statements; they meet in [`Prepared`] and [`Outcome`]. A client may go
//! away at any moment, so every future here may be dropped: what a statement started on a blocking thread then runs to its end, and the
//! session's own state is only changed between awaits.

mod freshness;
mod outcome;
mod parameters;
mod place;
mod variables;

use std::{sync::Arc, time::Duration};

use arrow::datatypes::DataType;
use datafusion::{execution::SessionState, scalar::ScalarValue};
use highwater_sql::{Definitions, Limits, Statement, ast::SavepointAction};

pub(crate) use freshness::{Written, blocking};
pub use outcome::{
    CopyIn, Notice, Outcome, Prepared, RowStream, Rows, SentScript, SourceStatement,
    StartupParameters, TransactionStatus,
};
pub(crate) use parameters::{Inferred, placeholder_number, placeholders, substitute, value_of};
pub(crate) use variables::check_setting;
pub use variables::{SERVER_VERSION, Variables};

use crate::{
    functions,
    pull::DATABASE,
    server::Server,
    sqlstate::{SqlError, code},
    statement::{self, cursor::Cursors, transaction::Block},
};

/// Result of session operations: errors carry SQLSTATE, position, detail and hint.
pub type SessionResult<T> = Result<T, SqlError>;

/// One connection's session.
pub struct Session {
    pub(crate) server: Arc<Server>,
    pub(crate) startup: StartupParameters,
    pub(crate) variables: Variables,
    /// What DEFINE defined.
    pub(crate) definitions: Definitions,
    pub(crate) written: Arc<Written>,
    pub(crate) cursors: Cursors,
    pub(crate) transaction: TransactionStatus,
    pub(crate) block: Block,
    notices: Vec<Notice>,
}

impl Session {
    /// Begins a session. Start-up settings that cannot be had are refused, unknown ones too, as PostgreSQL does.
    pub async fn start(server: Arc<Server>, startup: StartupParameters) -> SessionResult<Session> {
        if startup.database != DATABASE {
            let message = format!("database \"{}\" does not exist", startup.database);
            return Err(SqlError::new(code::INVALID_CATALOG_NAME, message)
                .with_hint(format!("there is one database, \"{DATABASE}\"")));
        }
        let mut variables = Variables::default();
        for (name, value) in server.coordinator.catalog().settings() {
            variables.set_system(name, Some(value.to_owned()));
        }
        variables.set_user(&startup.user);
        for (name, value) in &startup.settings {
            match name.as_str() {
                "options" => set_options(&mut variables, value)?,
                "replication" => {
                    return Err(SqlError::unsupported(
                        "replication connections are not supported",
                    ));
                }
                // Protocol extensions are for the protocol layer.
                name if name.starts_with("_pq_.") => {}
                name => variables.set_initial(name, value)?,
            }
        }
        Ok(Self {
            server,
            startup,
            variables,
            definitions: Definitions::default(),
            written: Arc::default(),
            cursors: Cursors::default(),
            transaction: TransactionStatus::Idle,
            block: Block::default(),
            notices: Vec::new(),
        })
    }

    /// What ParameterStatus reports, by PostgreSQL's names. SET can change it.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        self.variables.reported()
    }

    /// The statements of a text, with the values of variables in it; at least one, since an empty text is an empty statement.
    pub fn parse(&self, sql: &str) -> SessionResult<Vec<SourceStatement>> {
        let language = self.variables.language();
        let limits = Limits::default();
        let substituted = highwater_sql::substitute(sql, &self.definitions, language, &limits)
            .map_err(|error| SqlError::from_sql(&error, sql))?;
        let script: Arc<str> = match &substituted {
            Some(substituted) => substituted.text.as_str().into(),
            None => sql.into(),
        };
        let sent = substituted.map(|substituted| {
            Arc::new(SentScript {
                text: sql.to_owned(),
                substituted,
            })
        });
        let parsed = highwater_sql::parse_script_in(&script, language).map_err(|error| {
            let error = SqlError::from_sql(&error, &script);
            match &sent {
                Some(sent) => place::as_sent(error, &script, sent),
                None => error,
            }
        })?;
        Ok(parsed
            .into_iter()
            .map(|parsed| SourceStatement {
                parsed,
                script: Arc::clone(&script),
                sent: sent.clone(),
            })
            .collect())
    }

    /// Makes a statement ready: parameter types and result columns.
    pub async fn prepare(
        &mut self,
        statement: SourceStatement,
        declared: &[Option<DataType>],
    ) -> SessionResult<Prepared> {
        self.check_transaction(&statement.parsed.statement)?;
        let statement = statement::types::expand(self, Arc::new(statement));
        let described = statement::describe(self, &statement, declared)
            .await
            .map_err(|error| place::locate(error, &statement))?;
        let parameters = parameters::settle(declared, &described.parameters);
        Ok(Prepared {
            statement,
            parameters,
            schema: described.schema,
        })
    }

    /// Runs a prepared statement and moves the transaction state.
    pub async fn execute(
        &mut self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
    ) -> SessionResult<Outcome> {
        if parameters.len() != prepared.parameters.len() {
            let (given, wanted) = (parameters.len(), prepared.parameters.len());
            return Err(SqlError::new(
                code::PROTOCOL_VIOLATION,
                format!("the statement has {wanted} parameters, but {given} values were bound"),
            ));
        }
        self.run_with(Arc::clone(&prepared.statement), parameters)
            .await
    }

    /// Runs a statement that was not prepared: one planning instead of two.
    pub async fn run(&mut self, statement: SourceStatement) -> SessionResult<Outcome> {
        self.run_with(Arc::new(statement), Vec::new()).await
    }

    async fn run_with(
        &mut self,
        source: Arc<SourceStatement>,
        parameters: Vec<ScalarValue>,
    ) -> SessionResult<Outcome> {
        self.check_transaction(&source.parsed.statement)?;
        let source = statement::types::expand(self, source);
        statement::run(self, &source, parameters)
            .await
            .map_err(|error| place::locate(error, &source))
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
        self.variables.statement_timeout()
    }

    /// `TimeZone`: how TIMESTAMPTZ is shown.
    pub fn time_zone(&self) -> &str {
        self.variables.time_zone()
    }

    /// `push.portal = 'fill'`: a push query's portal waits until it is full instead of giving what there is.
    pub fn push_portal_fill(&self) -> bool {
        self.variables.push_portal_fill()
    }

    /// Columns of an open SQL cursor, for Describe of a portal by its name.
    pub fn cursor_schema(&self, name: &str) -> Option<arrow::datatypes::SchemaRef> {
        self.cursors.schema(name)
    }

    /// Tells the client something beside the outcome.
    pub(crate) fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// Functions and settings for expressions and pull queries of this session.
    pub(crate) fn state(&self) -> SessionState {
        functions::session_state(self)
    }

    /// A failed block takes nothing but its end.
    fn check_transaction(&self, statement: &Statement) -> SessionResult<()> {
        let ends_block = matches!(
            statement,
            Statement::Commit
                | Statement::Rollback
                | Statement::Savepoint(SavepointAction::RollbackTo(_))
        );
        if self.transaction == TransactionStatus::Failed
            && !ends_block
            && *statement != Statement::Empty
        {
            return Err(SqlError::new(
                code::IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            ));
        }
        Ok(())
    }
}

/// `options`: `-c name=value` and `--name=value`, as libpq sends PGOPTIONS.
fn set_options(variables: &mut Variables, options: &str) -> SessionResult<()> {
    let mut words = options.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let setting = match word {
            "-c" => words.next(),
            word => word.strip_prefix("--").or_else(|| word.strip_prefix("-c")),
        };
        let pair = setting.and_then(|setting| setting.split_once('='));
        let Some((name, value)) = pair else {
            return Err(SqlError::new(
                code::INVALID_PARAMETER_VALUE,
                format!("invalid start-up option \"{word}\""),
            )
            .with_hint("write -c name=value"));
        };
        variables.set_initial(&name.replace('-', "_"), value)?;
    }
    Ok(())
}
