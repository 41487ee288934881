//! Transactions: what drivers send round their statements.

use sqlparser::tokenizer::Token;

use crate::ast::{SavepointAction, Statement};
use crate::cursor::Cursor;
use crate::error::SqlError;

/// What may stand behind BEGIN.
#[derive(Debug, Default)]
pub(super) struct Modes {
    /// In PostgreSQL's words, lower case.
    pub isolation: Option<&'static str>,
    /// READ ONLY or READ WRITE.
    pub read_only: Option<bool>,
}

/// `BEGIN [WORK|TRANSACTION] modes`, `START TRANSACTION modes`.
pub(super) fn begin(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    match cursor.expect_one_of(&["begin", "start"])? {
        "start" => cursor.expect("transaction")?,
        _ => {
            cursor.accept_one_of(&["work", "transaction"]);
        }
    }
    let modes = accept_modes(cursor)?;
    Ok(Statement::Begin {
        read_only: modes.read_only.unwrap_or(false),
    })
}

/// `ISOLATION LEVEL ..`, `READ ONLY`, `READ WRITE`, `[NOT] DEFERRABLE`, with or without commas.
pub(super) fn accept_modes(cursor: &mut Cursor) -> Result<Modes, SqlError> {
    let mut modes = Modes::default();
    let mut due = false;
    loop {
        if cursor.accept_words(&["isolation", "level"]) {
            modes.isolation = Some(expect_level(cursor)?);
        } else if cursor.accept_words(&["read", "only"]) {
            modes.read_only = Some(true);
        } else if cursor.accept_words(&["read", "write"]) {
            modes.read_only = Some(false);
        } else if !cursor.accept("deferrable") && !cursor.accept_words(&["not", "deferrable"]) {
            if due {
                return Err(cursor.expected("ISOLATION LEVEL, READ ONLY, READ WRITE or DEFERRABLE"));
            }
            return Ok(modes);
        }
        due = cursor.accept_token(&Token::Comma);
    }
}

fn expect_level(cursor: &mut Cursor) -> Result<&'static str, SqlError> {
    for (words, level) in [
        (&["serializable"][..], "serializable"),
        (&["repeatable", "read"][..], "repeatable read"),
        (&["read", "committed"][..], "read committed"),
        (&["read", "uncommitted"][..], "read uncommitted"),
    ] {
        if cursor.accept_words(words) {
            return Ok(level);
        }
    }
    Err(cursor.expected("SERIALIZABLE, REPEATABLE READ, READ COMMITTED or READ UNCOMMITTED"))
}

/// `COMMIT|END [WORK|TRANSACTION] [AND NO CHAIN]`.
pub(super) fn commit(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let verb = cursor.expect_one_of(&["commit", "end"])?;
    if cursor.at_words(&["prepared"]) {
        return Err(cursor.unsupported(format!("{} PREPARED", verb.to_uppercase())));
    }
    cursor.accept_one_of(&["work", "transaction"]);
    refuse_chain(cursor)?;
    Ok(Statement::Commit)
}

/// `ROLLBACK|ABORT [WORK|TRANSACTION] [AND NO CHAIN]`, `ROLLBACK [WORK|TRANSACTION] TO [SAVEPOINT] name`.
pub(super) fn rollback(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let verb = cursor.expect_one_of(&["rollback", "abort"])?;
    if cursor.at_words(&["prepared"]) {
        return Err(cursor.unsupported("ROLLBACK PREPARED"));
    }
    cursor.accept_one_of(&["work", "transaction"]);
    if verb == "rollback" && cursor.accept("to") {
        return Ok(Statement::Savepoint(SavepointAction::RollbackTo(
            expect_savepoint(cursor)?,
        )));
    }
    refuse_chain(cursor)?;
    Ok(Statement::Rollback)
}

fn refuse_chain(cursor: &mut Cursor) -> Result<(), SqlError> {
    if cursor.at_words(&["and", "chain"]) {
        return Err(cursor
            .unsupported("AND CHAIN")
            .with_hint("begin the next transaction with BEGIN"));
    }
    cursor.accept_words(&["and", "no", "chain"]);
    Ok(())
}

/// `SAVEPOINT name`, `RELEASE [SAVEPOINT] name`.
pub(super) fn savepoint(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    let action = match cursor.expect_one_of(&["savepoint", "release"])? {
        "savepoint" => SavepointAction::Set(cursor.expect_name("the name of a savepoint")?),
        _ => SavepointAction::Release(expect_savepoint(cursor)?),
    };
    Ok(Statement::Savepoint(action))
}

/// `[SAVEPOINT] name`.
fn expect_savepoint(cursor: &mut Cursor) -> Result<String, SqlError> {
    if cursor.at_words(&["savepoint"]) && cursor.peek_at(1).is_some() {
        cursor.next();
    }
    cursor.expect_name("the name of a savepoint")
}
