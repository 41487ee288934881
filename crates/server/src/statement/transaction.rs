//! BEGIN, COMMIT, ROLLBACK, SAVEPOINT.
//!
//! A block is what drivers expect it to be as far as they can tell: its status is right, a failed one takes nothing but its end, cursors
//! without hold end with it. The queries of a read-only block see one step. Writes are immediate: each statement is durable when it is acknowledged, and ROLLBACK says so.

use highwater_exec::Snapshot;
use highwater_sql::{Statement, ast::SavepointAction};

use crate::{
    session::{Notice, Outcome, Session, SessionResult, TransactionStatus},
    sqlstate::{SqlError, code},
};

/// `BEGIN`.
pub fn begin(session: &mut Session, read_only: bool) -> Outcome {
    if session.transaction != TransactionStatus::Idle {
        warn(
            session,
            code::ACTIVE_SQL_TRANSACTION,
            "there is already a transaction in progress",
        );
    } else {
        session.transaction = TransactionStatus::InBlock;
        session.block = Block {
            read_only,
            ..Block::default()
        };
    }
    Outcome::Done("BEGIN".to_owned())
}

/// What a transaction block remembers.
#[derive(Default)]
pub struct Block {
    /// It refuses writes.
    pub read_only: bool,
    /// It has written.
    pub wrote: bool,
    /// What all queries of a read-only block see, once the first has asked.
    pub snapshot: Option<Snapshot>,
    savepoints: Vec<String>,
}

/// `COMMIT`; of a failed block it is a rollback.
pub fn commit(session: &mut Session) -> Outcome {
    match session.transaction {
        TransactionStatus::Failed => return rollback(session),
        TransactionStatus::InBlock => end(session),
        TransactionStatus::Idle => {
            warn(
                session,
                code::NO_ACTIVE_SQL_TRANSACTION,
                "there is no transaction in progress",
            );
        }
    }
    Outcome::Done("COMMIT".to_owned())
}

/// `ROLLBACK`.
pub fn rollback(session: &mut Session) -> Outcome {
    if session.transaction == TransactionStatus::Idle {
        warn(
            session,
            code::NO_ACTIVE_SQL_TRANSACTION,
            "there is no transaction in progress",
        );
    } else {
        if session.block.wrote {
            warn(
                session,
                code::WARNING,
                "what this transaction wrote stays: writes are immediate",
            );
        }
        end(session);
    }
    Outcome::Done("ROLLBACK".to_owned())
}

/// The three savepoint verbs. They keep a block usable after an error; they undo nothing.
pub fn savepoint(session: &mut Session, action: &SavepointAction) -> SessionResult<Outcome> {
    if session.transaction == TransactionStatus::Idle {
        return Err(SqlError::new(
            code::NO_ACTIVE_SQL_TRANSACTION,
            "savepoints can only be used in transaction blocks",
        ));
    }
    let savepoints = &mut session.block.savepoints;
    let position = |savepoints: &[String], name: &str| {
        savepoints
            .iter()
            .rposition(|savepoint| savepoint == name)
            .ok_or_else(|| {
                SqlError::new(
                    code::INVALID_SAVEPOINT_SPECIFICATION,
                    format!("savepoint \"{name}\" does not exist"),
                )
            })
    };
    let tag = match action {
        SavepointAction::Set(name) => {
            savepoints.push(name.clone());
            "SAVEPOINT"
        }
        SavepointAction::Release(name) => {
            let at = position(savepoints, name)?;
            savepoints.truncate(at);
            "RELEASE"
        }
        SavepointAction::RollbackTo(name) => {
            let at = position(savepoints, name)?;
            savepoints.truncate(at + 1);
            session.transaction = TransactionStatus::InBlock;
            "ROLLBACK"
        }
    };
    Ok(Outcome::Done(tag.to_owned()))
}

/// Refuses a write where only reads are allowed, and notes it where it is.
pub fn check_writable(session: &mut Session, statement: &Statement) -> SessionResult<()> {
    let in_block = session.transaction == TransactionStatus::InBlock;
    if session.variables.read_only() || (in_block && session.block.read_only) {
        let words = statement.to_string();
        let verb = words
            .split_ascii_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned();
        return Err(SqlError::new(
            code::READ_ONLY_SQL_TRANSACTION,
            format!("cannot execute {verb} in a read-only transaction"),
        ));
    }
    session.block.wrote |= in_block;
    Ok(())
}

fn end(session: &mut Session) {
    session.transaction = TransactionStatus::Idle;
    session.block = Block::default();
    session.cursors.close_without_hold();
}

fn warn(session: &mut Session, code: &'static str, message: &str) {
    session.notice(Notice {
        severity: "WARNING",
        code,
        message: message.to_owned(),
        hint: None,
    });
}
