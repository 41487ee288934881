//! The extended protocol: statements are prepared once, bound to values, and run in portions.
//!
//! A portal is a statement with its values. Its rows stay open between two Executes with a row limit; it ends with its transaction, which
//! outside a block is the next Sync.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::scalar::ScalarValue;
use highwater_sql::ast::Statement;
use pgwire::{
    api::Type,
    messages::{data, extendedquery, response},
};

use super::{
    connection::{Connection, wrong_parameter_count},
    decode,
    encode::{Format, row_description},
    link::Halt,
    message::{Bind, MAX_MESSAGE_BYTES, Target},
    named::{Full, NamedLimits},
    rows::{OpenRows, RowFormat, Sent, formats},
    types::{arrow_type, wire_type},
};
use crate::{
    session::{Outcome, Prepared, Rows, TransactionStatus},
    sqlstate::{SqlError, code},
};

/// Prepared statements of one connection: a driver that never closes them is told so after hours, and does not fill the memory in days.
/// The bytes are those of their texts; two of the longest messages fit.
pub(super) const STATEMENT_LIMITS: NamedLimits = NamedLimits {
    values: 10_000,
    bytes: 2 * MAX_MESSAGE_BYTES,
};
/// Portals of one connection, with the bytes of their values.
pub(super) const PORTAL_LIMITS: NamedLimits = NamedLimits {
    values: 1_000,
    bytes: 2 * MAX_MESSAGE_BYTES,
};

/// A statement that Parse has made.
pub(super) struct PreparedStatement {
    /// `None` for an empty text.
    prepared: Option<Arc<Prepared>>,
    /// The types its parameters are sent as: declared, or from the inferred ones.
    parameter_types: Vec<Type>,
}

/// A statement with values, from Bind.
pub(super) struct Portal {
    prepared: Option<Arc<Prepared>>,
    result_formats: Vec<i16>,
    state: PortalState,
}

enum PortalState {
    /// Not run yet.
    Bound(Vec<ScalarValue>),
    /// Some of its rows have gone out.
    Open(Box<OpenRows>),
    /// All rows have gone out; the command tag of an Execute that finds no more.
    Drained(String),
    /// Run, or failed while it ran.
    Done,
}

impl Connection {
    /// Parse: prepares a statement.
    pub(super) async fn parse(
        &mut self,
        name: String,
        sql: &str,
        declared: &[u32],
    ) -> Result<(), Halt> {
        if !name.is_empty() && self.statements.get(&name).is_some() {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(code::DUPLICATE_PREPARED_STATEMENT, message).into());
        }
        let declared: Vec<Option<Type>> = declared
            .iter()
            .map(|oid| declared_type(*oid))
            .collect::<Result<_, _>>()?;
        let mut statements = self.session.parse(sql)?;
        if statements.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(code::SYNTAX_ERROR, message).into());
        }
        let statement = match statements.pop() {
            None => PreparedStatement {
                prepared: None,
                parameter_types: Vec::new(),
            },
            Some(statement) => {
                let arrow: Vec<Option<DataType>> = declared
                    .iter()
                    .map(|declared| declared.as_ref().and_then(arrow_type))
                    .collect();
                let deadline = self.deadline();
                let prepared = self
                    .link
                    .attend(deadline, self.session.prepare(statement, &arrow))
                    .await??;
                let declared = declared.into_iter().chain(std::iter::repeat(None));
                let types = prepared.parameters.iter().zip(declared);
                let parameter_types = types
                    .map(|(inferred, declared)| declared.unwrap_or_else(|| wire_type(inferred)));
                let parameter_types = parameter_types.collect();
                PreparedStatement {
                    prepared: Some(Arc::new(prepared)),
                    parameter_types,
                }
            }
        };
        let kept = self.statements.insert(name, statement, sql.len());
        kept.map_err(|full| too_many("prepared statements", full))?;
        self.push_notices()?;
        Ok(self.outbound.push(&extendedquery::ParseComplete::new())?)
    }

    /// Bind: makes a portal.
    pub(super) fn bind(&mut self, bind: Bind) -> Result<(), Halt> {
        let zone = self.zone();
        let statement = self
            .statements
            .get(&bind.statement)
            .ok_or_else(|| unknown_statement(&bind.statement))?;
        let wanted = &statement.parameter_types;
        if bind.parameters.len() != wanted.len() {
            return Err(wrong_parameter_count(
                bind.parameters.len(),
                &bind.statement,
                wanted.len(),
            )
            .into());
        }
        if !bind.portal.is_empty() && self.portals.get(&bind.portal).is_some() {
            let message = format!("portal \"{}\" already exists", bind.portal);
            return Err(SqlError::new(code::DUPLICATE_CURSOR, message).into());
        }
        let given = formats(&bind.parameter_formats, wanted.len())?;
        let targets = statement
            .prepared
            .iter()
            .flat_map(|prepared| &prepared.parameters);
        let mut values = Vec::with_capacity(wanted.len());
        for (number, (((value, wire), format), target)) in bind
            .parameters
            .iter()
            .zip(wanted)
            .zip(given)
            .zip(targets)
            .enumerate()
        {
            let value = decode::parameter(value.as_deref(), wire, format, target, zone);
            values.push(value.map_err(|error| about_parameter(error, number + 1))?);
        }
        if let Some(schema) = statement.prepared.as_deref().and_then(row_schema) {
            formats(&bind.result_formats, schema.fields().len())?;
        }
        let portal = Portal {
            prepared: statement.prepared.clone(),
            result_formats: bind.result_formats,
            state: PortalState::Bound(values),
        };
        let bytes = bind
            .parameters
            .iter()
            .flatten()
            .map(|value| value.len())
            .sum();
        let kept = self.portals.insert(bind.portal, portal, bytes);
        kept.map_err(|full| too_many("portals", full))?;
        Ok(self.outbound.push(&extendedquery::BindComplete::new())?)
    }

    /// Describe: parameters and columns of a statement, or columns of a portal.
    pub(super) fn describe(&mut self, target: &Target) -> Result<(), Halt> {
        match target {
            Target::Statement(name) => {
                let statement = self
                    .statements
                    .get(name)
                    .ok_or_else(|| unknown_statement(name))?;
                let oids = statement.parameter_types.iter().map(Type::oid).collect();
                self.outbound.push(&data::ParameterDescription::new(oids))?;
                let schema = statement.prepared.as_deref().and_then(row_schema).cloned();
                self.describe_rows(schema, &[])
            }
            Target::Portal(name) => match self.portals.get(name) {
                Some(portal) => {
                    let schema = portal.prepared.as_deref().and_then(row_schema).cloned();
                    let codes = portal.result_formats.clone();
                    self.describe_rows(schema, &codes)
                }
                // DECLARE makes a portal too, and drivers ask for its columns by the cursor's name.
                None => match self.session.cursor_schema(name) {
                    Some(schema) => self.describe_rows(Some(schema), &[]),
                    None => Err(unknown_portal(name).into()),
                },
            },
        }
    }

    fn describe_rows(&mut self, schema: Option<SchemaRef>, codes: &[i16]) -> Result<(), Halt> {
        match schema {
            Some(schema) => {
                let formats = formats(codes, schema.fields().len())?;
                self.outbound
                    .push(&row_description(schema.fields(), &formats)?)?;
            }
            None => self.outbound.push(&data::NoData::new())?,
        }
        Ok(())
    }

    /// Execute: runs a portal, or goes on with it.
    pub(super) async fn execute_portal(&mut self, name: &str, max_rows: i32) -> Result<(), Halt> {
        let limit = u64::try_from(max_rows).ok().filter(|limit| *limit > 0);
        let deadline = self.deadline();
        let portal = self
            .portals
            .get_mut(name)
            .ok_or_else(|| unknown_portal(name))?;
        let state = std::mem::replace(&mut portal.state, PortalState::Done);
        let codes = portal.result_formats.clone();
        let rows = match state {
            PortalState::Open(rows) => rows,
            PortalState::Drained(tag) => {
                portal.state = PortalState::Drained(tag.clone());
                return Ok(self.outbound.push_complete(tag)?);
            }
            PortalState::Done => {
                let message = format!("portal \"{name}\" cannot be run");
                return Err(SqlError::new(code::OBJECT_NOT_IN_PREREQUISITE_STATE, message).into());
            }
            PortalState::Bound(values) => {
                let Some(prepared) = portal.prepared.clone() else {
                    return Ok(self.outbound.push(&response::EmptyQueryResponse::new())?);
                };
                let was_in_block = self.session.transaction_status() != TransactionStatus::Idle;
                match self.execute(&prepared, values, deadline).await? {
                    Outcome::Rows(rows) => {
                        let formats = result_formats(&prepared, &rows, &codes)?;
                        let mut rows = OpenRows::new(rows, RowFormat::Data(formats), self.zone());
                        if self.session.push_portal_fill() {
                            rows.fill_portions();
                        }
                        Box::new(rows)
                    }
                    other => return self.finish_portal(other, was_in_block).await,
                }
            }
        };
        self.send_portion(name, rows, limit, deadline).await
    }

    /// Sends a portion of a portal's rows.
    async fn send_portion(
        &mut self,
        name: &str,
        mut rows: Box<OpenRows>,
        limit: Option<u64>,
        deadline: Option<std::time::Instant>,
    ) -> Result<(), Halt> {
        let sent = rows.send(limit, self.client(deadline)).await?;
        let (state, complete) = match sent {
            Sent::All(count) => (PortalState::Drained(rows.tag(0)), Some(rows.tag(count))),
            Sent::Some => (PortalState::Open(rows), None),
        };
        if let Some(portal) = self.portals.get_mut(name) {
            portal.state = state;
        }
        match complete {
            Some(tag) => self.outbound.push_complete(tag)?,
            None => self.outbound.push(&extendedquery::PortalSuspended::new())?,
        }
        Ok(())
    }

    /// Answers a statement without rows.
    async fn finish_portal(&mut self, outcome: Outcome, was_in_block: bool) -> Result<(), Halt> {
        match outcome {
            Outcome::Done(tag) => self.outbound.push_complete(tag)?,
            Outcome::Empty => self.outbound.push(&response::EmptyQueryResponse::new())?,
            Outcome::CopyIn(target) => {
                let rows = self.copy_in(target).await?;
                self.outbound.push_complete(format!("COPY {rows}"))?;
            }
            Outcome::CopyOut(rows, options) => {
                let rows = self.copy_out(rows, options).await?;
                self.outbound.push_complete(format!("COPY {rows}"))?;
            }
            Outcome::Rows(_) => return Err(SqlError::internal("rows without a portal").into()),
        }
        if was_in_block && self.session.transaction_status() == TransactionStatus::Idle {
            self.portals.clear();
        }
        Ok(())
    }

    /// Close: forgets a statement or a portal; one that is not there is no error.
    pub(super) fn close(&mut self, target: &Target) -> Result<(), Halt> {
        match target {
            Target::Statement(name) => self.statements.remove(name),
            Target::Portal(name) => self.portals.remove(name),
        };
        Ok(self.outbound.push(&extendedquery::CloseComplete::new())?)
    }
}

/// Columns of the rows that Execute sends as DataRow; COPY sends its rows otherwise.
fn row_schema(prepared: &Prepared) -> Option<&SchemaRef> {
    match prepared.statement.parsed.statement {
        Statement::Copy(_) => None,
        _ => prepared.schema.as_ref(),
    }
}

/// The formats of a result, which must have the columns that Describe told.
fn result_formats(
    prepared: &Prepared,
    rows: &Rows,
    codes: &[i16],
) -> Result<Vec<Format>, SqlError> {
    let types = |schema: &SchemaRef| -> Vec<Type> {
        schema
            .fields()
            .iter()
            .map(|field| wire_type(field.data_type()))
            .collect()
    };
    let unchanged = prepared
        .schema
        .as_ref()
        .is_some_and(|described| types(described) == types(&rows.schema));
    if !unchanged {
        return Err(
            SqlError::unsupported("cached plan must not change result type")
                .with_hint("prepare the statement again: what it reads was replaced"),
        );
    }
    formats(codes, rows.schema.fields().len())
}

/// A declared parameter type; 0 and `unknown` leave it to inference.
fn declared_type(oid: u32) -> Result<Option<Type>, SqlError> {
    if oid == 0 || oid == Type::UNKNOWN.oid() {
        return Ok(None);
    }
    match Type::from_oid(oid) {
        Some(wire) if arrow_type(&wire).is_some() => Ok(Some(wire)),
        Some(wire) => Err(SqlError::unsupported(format!(
            "parameters of type {} are not supported",
            wire.name()
        ))
        .with_hint("send the value as text and cast it in the statement")),
        None => Err(SqlError::new(
            code::UNDEFINED_OBJECT,
            format!("type with OID {oid} does not exist"),
        )),
    }
}

/// Says which parameter an error is about.
fn about_parameter(error: SqlError, number: usize) -> SqlError {
    let about = format!("parameter ${number}");
    let detail = match &error.detail {
        Some(detail) => format!("{about}: {detail}"),
        None => about,
    };
    error.with_detail(detail)
}

/// A connection keeps as much as it may.
fn too_many(what: &str, full: Full) -> SqlError {
    let message = match full {
        Full::Values(most) => format!("a connection can have at most {most} {what}"),
        Full::Bytes(most) => format!("the {what} of a connection can hold at most {most} bytes"),
    };
    SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message)
        .with_hint("close those that are not needed")
}

/// No prepared statement of this name.
pub(super) fn unknown_statement(name: &str) -> SqlError {
    let message = match name {
        "" => "unnamed prepared statement does not exist".to_owned(),
        name => format!("prepared statement \"{name}\" does not exist"),
    };
    SqlError::new(code::INVALID_SQL_STATEMENT_NAME, message)
}

fn unknown_portal(name: &str) -> SqlError {
    SqlError::new(
        code::INVALID_CURSOR_NAME,
        format!("portal \"{name}\" does not exist"),
    )
}
