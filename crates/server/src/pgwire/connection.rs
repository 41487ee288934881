//! One connection: greeting, message loop, errors.
//!
//! Answers collect in the output buffer and go out before the connection waits for the client, so a pipeline of small statements is
//! answered in few packets. After an error in a message of the extended protocol, messages are skipped up to the next Sync; after one in a
//! simple query the client is invited at once. Either way exactly one ReadyForQuery follows each Query and each Sync.

use std::time::{Duration, Instant};

use arrow::array::timezone::Tz;
use datafusion::scalar::ScalarValue;
use highwater_sql::ast::Statement;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};
use tracing::debug;

use super::{
    cancel::Registration,
    encode,
    extended::{PORTAL_LIMITS, Portal, PreparedStatement, STATEMENT_LIMITS},
    link::{Halt, Link},
    message::{Frame, Frontend, violation},
    metrics,
    named::Named,
    outbound::{Outbound, Severity},
    rows::Client,
};
use crate::{
    session::{Outcome, Prepared, Session, SourceStatement, TransactionStatus},
    sqlstate::SqlError,
};

/// How long the client is given to take the message that ends its connection.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// A client and its session.
pub(super) struct Connection {
    pub(super) session: Session,
    pub(super) link: Link,
    pub(super) outbound: Outbound,
    /// By name; the unnamed one has the empty name.
    pub(super) statements: Named<PreparedStatement>,
    /// By name; the unnamed one has the empty name.
    pub(super) portals: Named<Portal>,
    /// What the client was last told of the session's parameters.
    reported: Vec<(&'static str, String)>,
    /// An error came within a pipeline: nothing runs up to its Sync.
    skip_to_sync: bool,
    /// The last message was answered with ReadyForQuery.
    idle: bool,
}

/// Whether the loop goes on.
enum Next {
    Message,
    End,
}

impl Connection {
    /// A connection whose client has said who it is.
    pub(super) fn new(session: Session, link: Link, outbound: Outbound) -> Self {
        Self {
            session,
            link,
            outbound,
            statements: Named::new(STATEMENT_LIMITS),
            portals: Named::new(PORTAL_LIMITS),
            reported: Vec::new(),
            skip_to_sync: false,
            idle: true,
        }
    }

    /// Writes the messages that open a session.
    pub(super) fn greet(
        &mut self,
        registration: &Registration,
        minor: u32,
        negotiate: Option<Vec<String>>,
    ) -> Result<(), SqlError> {
        if let Some(unknown_options) = negotiate {
            let newest = (3 << 16) | minor;
            self.outbound.push(&NegotiateProtocolVersion::new(
                newest.cast_signed(),
                unknown_options,
            ))?;
        }
        self.outbound.push(&Authentication::Ok)?;
        self.report_parameters()?;
        let secret = SecretKey::Bytes(registration.secret.clone());
        self.outbound
            .push(&BackendKeyData::new(registration.process_id, secret))?;
        self.outbound.push_ready(self.session.transaction_status())
    }

    /// Serves the client until it leaves or the server stops.
    pub(super) async fn run(&mut self) {
        loop {
            match self.serve_one().await {
                Ok(Next::Message) => {}
                Ok(Next::End) | Err(Halt::Gone) => return,
                Err(Halt::Fatal(error) | Halt::Statement(error)) => {
                    return self.say_farewell(&error).await;
                }
            }
        }
    }

    /// Tells the client why its connection ends; one that does not read is not waited for.
    async fn say_farewell(&mut self, error: &SqlError) {
        debug!(
            code = error.code,
            message = error.message,
            "connection ends"
        );
        metrics::error(error.code);
        if self.outbound.push_error(Severity::Fatal, error).is_ok() {
            let _ = tokio::time::timeout(FAREWELL_TIMEOUT, self.outbound.flush()).await;
        }
    }

    /// Takes one message and answers it.
    async fn serve_one(&mut self) -> Result<Next, Halt> {
        let frame = self.link.next_frame(&mut self.outbound).await?;
        if std::mem::take(&mut self.idle) {
            self.link.forget_cancels();
        }
        if self.skip_to_sync && !matches!(frame.kind, b'S' | b'X') {
            return Ok(Next::Message);
        }
        let extended = frame.is_extended();
        match self.handle(frame).await {
            Err(Halt::Statement(error)) => {
                self.statement_failed(&error)?;
                if extended {
                    self.skip_to_sync = true;
                } else {
                    self.ready()?;
                }
                Ok(Next::Message)
            }
            handled => handled,
        }
    }

    async fn handle(&mut self, frame: Frame) -> Result<Next, Halt> {
        match Frontend::parse(frame)? {
            Frontend::Query(sql) => {
                self.simple_query(&sql).await?;
                self.ready()?;
            }
            Frontend::Parse { name, sql, types } => self.parse(name, &sql, &types).await?,
            Frontend::Bind(bind) => self.bind(bind)?,
            Frontend::Describe(target) => self.describe(&target)?,
            Frontend::Execute { portal, max_rows } => {
                self.execute_portal(&portal, max_rows).await?
            }
            Frontend::Close(target) => self.close(&target)?,
            // The output is flushed whenever the loop waits for the client.
            Frontend::Flush => {}
            Frontend::Sync => {
                self.skip_to_sync = false;
                self.ready()?;
            }
            Frontend::Terminate => return Ok(Next::End),
            // What is left of a COPY that has failed.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => self.idle = true,
            Frontend::FunctionCall => {
                return Err(
                    SqlError::unsupported("the function call protocol is not supported")
                        .with_hint("call the function in a SELECT")
                        .into(),
                );
            }
        }
        Ok(Next::Message)
    }

    /// Ends a query or a pipeline: what changed in the session's parameters, then the invitation.
    fn ready(&mut self) -> Result<(), SqlError> {
        let status = self.session.transaction_status();
        if status == TransactionStatus::Idle {
            // A portal lives as long as its transaction, and outside a block that ends here.
            self.portals.clear();
        }
        self.report_parameters()?;
        self.outbound.push_ready(status)?;
        self.idle = true;
        Ok(())
    }

    /// Tells the client of an error in a statement.
    fn statement_failed(&mut self, error: &SqlError) -> Result<(), SqlError> {
        debug!(
            code = error.code,
            message = error.message,
            "statement failed"
        );
        metrics::error(error.code);
        self.link.forget_cancels();
        self.session.statement_failed();
        self.push_notices()?;
        self.outbound.push_error(Severity::Error, error)
    }

    /// Tells the client of parameters that are new or have changed.
    fn report_parameters(&mut self) -> Result<(), SqlError> {
        let current = self.session.parameters();
        if current == self.reported {
            return Ok(());
        }
        for (name, value) in current
            .iter()
            .filter(|parameter| !self.reported.contains(parameter))
        {
            self.outbound.push(&ParameterStatus::new(
                (*name).to_owned(),
                value.replace('\0', ""),
            ))?;
        }
        self.reported = current;
        Ok(())
    }

    /// Sends what the session has to say beside its answers.
    pub(super) fn push_notices(&mut self) -> Result<(), SqlError> {
        for notice in self.session.take_notices() {
            self.outbound.push_notice(&notice)?;
        }
        Ok(())
    }

    /// When the statement that begins now must have ended.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.session
            .statement_timeout()
            .and_then(|timeout| Instant::now().checked_add(timeout))
    }

    /// The way to the client for rows.
    pub(super) fn client(&mut self, deadline: Option<Instant>) -> Client<'_> {
        Client {
            link: &mut self.link,
            outbound: &mut self.outbound,
            deadline,
        }
    }

    /// The zone in which the client sees TIMESTAMPTZ.
    pub(super) fn zone(&self) -> Tz {
        encode::zone(self.session.time_zone())
    }

    /// Runs a prepared statement as far as its first answer.
    pub(super) async fn execute(
        &mut self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
        deadline: Option<Instant>,
    ) -> Result<Outcome, Halt> {
        let statement = &prepared.statement.parsed.statement;
        self.before(statement)?;
        let discards = matches!(statement, Statement::Discard);
        let started = Instant::now();
        let outcome = self
            .link
            .attend(deadline, self.session.execute(prepared, parameters))
            .await??;
        self.after(discards, started)?;
        Ok(outcome)
    }

    /// Runs a statement of a simple query as far as its first answer.
    pub(super) async fn run_statement(
        &mut self,
        source: SourceStatement,
        deadline: Option<Instant>,
    ) -> Result<Outcome, Halt> {
        self.before(&source.parsed.statement)?;
        let discards = matches!(source.parsed.statement, Statement::Discard);
        let started = Instant::now();
        let outcome = self
            .link
            .attend(deadline, self.session.run(source))
            .await??;
        self.after(discards, started)?;
        Ok(outcome)
    }

    /// What a statement does to the protocol's own objects before the session runs it.
    fn before(&mut self, statement: &Statement) -> Result<(), SqlError> {
        match statement {
            Statement::Deallocate(name)
                if self.session.transaction_status() != TransactionStatus::Failed =>
            {
                self.deallocate(name.as_deref())
            }
            _ => Ok(()),
        }
    }

    /// What is due once the session has run a statement.
    fn after(&mut self, discards: bool, started: Instant) -> Result<(), SqlError> {
        metrics::statement(started.elapsed());
        if discards {
            self.statements.clear();
            self.portals.clear();
        }
        self.push_notices()
    }

    /// DEALLOCATE: prepared statements belong to the protocol.
    fn deallocate(&mut self, name: Option<&str>) -> Result<(), SqlError> {
        match name {
            None => {
                self.statements.clear();
                Ok(())
            }
            Some(name) if self.statements.remove(name) => Ok(()),
            Some(name) => Err(super::extended::unknown_statement(name)),
        }
    }
}

/// A statement that this many parameters were given for needs others.
pub(super) fn wrong_parameter_count(given: usize, statement: &str, wanted: usize) -> SqlError {
    violation(format!(
        "bind message supplies {given} parameters, but prepared statement \"{statement}\" requires {wanted}"
    ))
}
