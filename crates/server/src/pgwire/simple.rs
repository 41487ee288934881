//! The simple protocol: a text of statements, each run and answered in turn.
//!
//! The whole text is parsed before anything runs. The first error ends it: the statements after it do not run.

use pgwire::messages::response;

use super::{
    connection::Connection,
    encode::{Format, row_description},
    link::Halt,
    rows::{OpenRows, RowFormat, Sent},
};
use crate::{
    session::{Outcome, Rows, SourceStatement},
    sqlstate::SqlError,
};

impl Connection {
    /// Runs the statements of one Query message.
    pub(super) async fn simple_query(&mut self, sql: &str) -> Result<(), Halt> {
        self.statements.remove("");
        self.portals.remove("");
        let statements = self.session.parse(sql)?;
        for statement in statements {
            self.run_simple(statement).await?;
        }
        Ok(())
    }

    async fn run_simple(&mut self, statement: SourceStatement) -> Result<(), Halt> {
        let deadline = self.deadline();
        match self.run_statement(statement, deadline).await? {
            Outcome::Done(tag) => self.outbound.push_complete(tag)?,
            Outcome::Empty => self.outbound.push(&response::EmptyQueryResponse::new())?,
            Outcome::Rows(rows) => self.send_all(rows, deadline).await?,
            Outcome::CopyIn(target) => {
                let rows = self.copy_in(target).await?;
                self.outbound.push_complete(format!("COPY {rows}"))?;
            }
            Outcome::CopyOut(rows, options) => {
                let rows = self.copy_out(rows, options).await?;
                self.outbound.push_complete(format!("COPY {rows}"))?;
            }
        }
        Ok(())
    }

    async fn send_all(
        &mut self,
        rows: Rows,
        deadline: Option<std::time::Instant>,
    ) -> Result<(), Halt> {
        let formats = vec![Format::Text; rows.schema.fields().len()];
        self.outbound
            .push(&row_description(rows.schema.fields(), &formats)?)?;
        let mut rows = OpenRows::new(rows, RowFormat::Data(formats), self.zone());
        match rows.send(None, self.client(deadline)).await? {
            Sent::All(count) => Ok(self.outbound.push_complete(rows.tag(count))?),
            Sent::Some => Err(SqlError::internal("rows stopped before their end").into()),
        }
    }
}
