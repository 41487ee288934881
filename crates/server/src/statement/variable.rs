//! SET, RESET, DISCARD. (SHOW is in `show`.)

use crate::{
    session::{Outcome, Session, SessionResult, TransactionStatus},
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

/// `DISCARD ALL`: the session as it was at its start. Connection pools send it.
pub fn discard(session: &mut Session) -> SessionResult<Outcome> {
    if session.transaction != TransactionStatus::Idle {
        return Err(SqlError::new(
            code::ACTIVE_SQL_TRANSACTION,
            "DISCARD ALL cannot run inside a transaction block",
        ));
    }
    session.variables.reset_all();
    session.cursors.close_all();
    Ok(Outcome::Done("DISCARD ALL".to_owned()))
}
