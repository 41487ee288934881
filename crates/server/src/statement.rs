//! Running statements: each family in its own file, chosen here.

mod assert;
mod backup;
mod copy;
mod copy_text;
pub(crate) mod cursor;
mod ddl;
mod describe;
mod explain;
mod functions;
mod insert;
mod print;
mod query;
mod show;
mod topics;
pub(crate) mod transaction;
pub(crate) mod types;
mod value;
mod variable;
mod write;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::scalar::ScalarValue;
use highwater_sql::{InsertSource, Statement};

use crate::{
    session::{Inferred, Outcome, Session, SessionResult, SourceStatement},
    sqlstate::{SqlError, code},
};

/// What a client can learn of a statement before it runs.
#[derive(Debug, Default)]
pub(crate) struct Described {
    /// Parameters by number with their inferred types.
    pub parameters: Inferred,
    /// Columns of the rows; `None` when there are none.
    pub schema: Option<SchemaRef>,
}

impl Described {
    fn rows(schema: SchemaRef) -> Self {
        Self {
            parameters: Inferred::new(),
            schema: Some(schema),
        }
    }
}

/// Runs a statement.
pub(crate) async fn run(
    session: &mut Session,
    source: &Arc<SourceStatement>,
    parameters: Vec<ScalarValue>,
) -> SessionResult<Outcome> {
    let script = &source.script;
    let statement = &source.parsed.statement;
    if changes_data(statement) {
        transaction::check_writable(session, statement)?;
    }
    match statement {
        Statement::CreateSource(_) | Statement::CreateAs(_) => ddl::create(session, source).await,
        Statement::Drop(drop) => ddl::drop_relation(session, drop.clone()).await,
        Statement::Terminate(target) => {
            ddl::change_queries(session, target, ddl::Verb::Terminate).await
        }
        Statement::Pause(target) => ddl::change_queries(session, target, ddl::Verb::Pause).await,
        Statement::Resume(target) => ddl::change_queries(session, target, ddl::Verb::Resume).await,
        Statement::Insert(insert) if matches!(insert.source, InsertSource::Query(_)) => {
            ddl::insert(session, source).await
        }
        Statement::Insert(insert) => insert::run(session, insert, &parameters, script).await,
        Statement::Copy(copy) => copy::run(session, copy, &parameters, script).await,
        Statement::Query(query) => Ok(Outcome::Rows(
            query::run(session, query, parameters, script).await?,
        )),
        Statement::Show(show) => show::run(session, show).map(Outcome::Rows),
        Statement::Describe(describe) => describe::run(session, describe).map(Outcome::Rows),
        Statement::Explain(explain) => explain::run(session, explain, script)
            .await
            .map(Outcome::Rows),
        Statement::Print(print) => print::run(session, print).map(Outcome::Rows),
        Statement::Set { name, value } => variable::set(session, name, value.as_deref()),
        Statement::Unset(name) => variable::reset(session, name.as_deref()),
        Statement::Declare { name, hold, query } => {
            cursor::declare(session, name, *hold, query, parameters, script).await
        }
        Statement::Fetch {
            count,
            name,
            timeout,
        } => cursor::fetch(session, name, *count, *timeout).await,
        Statement::Close(name) => cursor::close(session, name.as_deref()),
        Statement::Begin { read_only } => Ok(transaction::begin(session, *read_only)),
        Statement::Commit => Ok(transaction::commit(session)),
        Statement::Rollback => Ok(transaction::rollback(session)),
        Statement::Savepoint(action) => transaction::savepoint(session, action),
        // The protocol layer owns prepared statements and has dropped what it had under these names.
        Statement::Deallocate(name) => Ok(Outcome::Done(match name {
            Some(_) => "DEALLOCATE".to_owned(),
            None => "DEALLOCATE ALL".to_owned(),
        })),
        Statement::Discard => variable::discard(session),
        // There is no LISTEN, so there is nothing to end; pools send it on release.
        Statement::Unlisten(_) => Ok(Outcome::Done("UNLISTEN".to_owned())),
        Statement::CreateType(create) => types::create(session, create.clone()).await,
        Statement::DropType(drop) => types::drop_type(session, drop.clone()).await,
        Statement::Alter(alter) => ddl::alter(session, alter.clone()).await,
        Statement::AlterSystem { name, value } => {
            variable::alter_system(session, name, value.clone()).await
        }
        Statement::Backup(folder) => backup::run(session, folder).await,
        Statement::AlterTopic(alter) => topics::alter(session, alter).await,
        Statement::Assert(assert) => assert::run(session, assert).await,
        Statement::RunScript(_) => Err(SqlError::unsupported(
            "RUN SCRIPT is not supported by the server",
        )
        .with_hint(
            "the file is on the client: highwater sql runs it with RUN SCRIPT or \\i, psql with \\i",
        )),
        Statement::Define { name, value } => variable::define(session, name, value),
        Statement::Undefine(name) => variable::undefine(session, name),
        Statement::Empty => Ok(Outcome::Empty),
    }
}

/// Tells parameters and columns of a statement without running it.
pub(crate) async fn describe(
    session: &mut Session,
    source: &SourceStatement,
    declared: &[Option<arrow::datatypes::DataType>],
) -> SessionResult<Described> {
    let script = &source.script;
    match &source.parsed.statement {
        Statement::Query(query) => query::describe(session, query, declared, script).await,
        Statement::Insert(insert) => insert::describe(session, insert),
        // These look things up and change nothing, so running them tells their columns.
        Statement::Show(show) => Ok(Described::rows(show::run(session, show)?.schema)),
        Statement::Describe(describe) => {
            Ok(Described::rows(describe::run(session, describe)?.schema))
        }
        Statement::Explain(_) => Ok(Described::rows(explain::schema())),
        Statement::Print(_) => Ok(Described::rows(print::schema())),
        Statement::Fetch { name, .. } => {
            let schema = session
                .cursors
                .schema(name)
                .ok_or_else(|| cursor::unknown(name))?;
            Ok(Described::rows(schema))
        }
        Statement::Declare { query, .. } => {
            let described = query::describe(session, query, declared, script).await?;
            Ok(Described {
                schema: None,
                ..described
            })
        }
        Statement::Copy(copy) => copy::describe(copy),
        Statement::CreateSource(_)
        | Statement::CreateAs(_)
        | Statement::Drop(_)
        | Statement::Terminate(_)
        | Statement::Pause(_)
        | Statement::Resume(_)
        | Statement::Set { .. }
        | Statement::Unset(_)
        | Statement::Close(_)
        | Statement::Begin { .. }
        | Statement::Commit
        | Statement::Rollback
        | Statement::Savepoint(_)
        | Statement::Deallocate(_)
        | Statement::Discard
        | Statement::Unlisten(_)
        | Statement::CreateType(_)
        | Statement::DropType(_)
        | Statement::Alter(_)
        | Statement::AlterSystem { .. }
        | Statement::AlterTopic(_)
        | Statement::Backup(_)
        | Statement::Define { .. }
        | Statement::Undefine(_)
        | Statement::Assert(_)
        | Statement::RunScript(_)
        | Statement::Empty => Ok(Described::default()),
    }
}

fn changes_data(statement: &Statement) -> bool {
    match statement {
        Statement::CreateSource(_)
        | Statement::CreateAs(_)
        | Statement::Drop(_)
        | Statement::Terminate(_)
        | Statement::Pause(_)
        | Statement::Resume(_)
        | Statement::CreateType(_)
        | Statement::DropType(_)
        | Statement::Alter(_)
        | Statement::AlterSystem { .. }
        | Statement::AlterTopic(_)
        | Statement::Insert(_) => true,
        Statement::Copy(copy) => copy.direction == highwater_sql::CopyDirection::FromStdin,
        _ => false,
    }
}

/// There is no such stream or table.
pub(crate) fn unknown_relation(name: &str) -> SqlError {
    SqlError::new(
        code::UNDEFINED_TABLE,
        format!("relation \"{name}\" does not exist"),
    )
    .with_hint("SHOW STREAMS and SHOW TABLES list what there is")
}
