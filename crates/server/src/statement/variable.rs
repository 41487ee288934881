//! SET, RESET, ALTER SYSTEM, DISCARD; DEFINE and UNDEFINE. (SHOW is in `show`.)

use std::sync::Arc;

use highwater_sql::Definitions;

use crate::{
    session::{Outcome, Session, SessionResult, TransactionStatus, blocking, check_setting},
    sqlstate::{SqlError, code},
};

/// `SET name = value`.
pub fn set(session: &mut Session, name: &str, value: Option<&str>) -> SessionResult<Outcome> {
    session.variables.set(name, value)?;
    Ok(Outcome::Done("SET".to_owned()))
}

/// `RESET name`, `UNSET 'name'`; `None` for all.
pub fn reset(session: &mut Session, name: Option<&str>) -> SessionResult<Outcome> {
    match name {
        Some(name) => session.variables.reset(name)?,
        None => session.variables.reset_all(),
    }
    Ok(Outcome::Done("RESET".to_owned()))
}

/// `ALTER SYSTEM SET name = value`: what sessions begin with from now on, this one included.
pub async fn alter_system(
    session: &mut Session,
    name: &str,
    value: Option<String>,
) -> SessionResult<Outcome> {
    let (name, value) = check_setting(name, value.as_deref())?;
    let server = Arc::clone(&session.server);
    let recorded = value.clone();
    blocking(move || server.coordinator.alter_system(name, recorded)).await??;
    session.variables.set_system(name, value);
    Ok(Outcome::Done("ALTER SYSTEM".to_owned()))
}

/// `DEFINE name = 'value'`.
pub fn define(session: &mut Session, name: &str, value: &str) -> SessionResult<Outcome> {
    match session.definitions.define(name, value) {
        Ok(()) => Ok(Outcome::Done("DEFINE".to_owned())),
        Err(limit) => Err(SqlError::new(
            code::PROGRAM_LIMIT_EXCEEDED,
            format!("the values of all variables would take more than {limit} bytes"),
        )
        .with_hint("UNDEFINE those that are not needed any more")),
    }
}

/// `UNDEFINE name`.
pub fn undefine(session: &mut Session, name: &str) -> SessionResult<Outcome> {
    if session.definitions.undefine(name) {
        return Ok(Outcome::Done("UNDEFINE".to_owned()));
    }
    Err(SqlError::new(
        code::UNDEFINED_OBJECT,
        format!("variable \"{name}\" is not defined"),
    )
    .with_hint("SHOW VARIABLES lists those that are"))
}

/// `DISCARD ALL`: the session as it was at its start. Connection pools send it.
pub fn discard(session: &mut Session) -> SessionResult<Outcome> {
    if session.transaction != TransactionStatus::Idle {
        return Err(SqlError::new(
            code::ACTIVE_SQL_TRANSACTION,
            "DISCARD ALL cannot run inside a transaction block",
        ));
    }
    session.variables.reset_all();
    session.definitions = Definitions::default();
    session.cursors.close_all();
    Ok(Outcome::Done("DISCARD ALL".to_owned()))
}
