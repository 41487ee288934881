//! CREATE, ALTER, DROP, TERMINATE, PAUSE, RESUME.

use std::sync::Arc;

use highwater_exec::OffsetReset;
use highwater_sql::{SourceKind, Statement, ast::Alter, ast::Drop, ast::QueryTarget};

use crate::{
    coordinator::{Created, Dropped, QueryChange},
    planning::StatementStyle,
    session::{Notice, Outcome, Session, SessionResult, SourceStatement, blocking},
    sqlstate::{SqlError, code},
};

/// The statements about queries.
#[derive(Debug, Clone, Copy)]
pub enum Verb {
    /// `TERMINATE`.
    Terminate,
    /// `PAUSE`.
    Pause,
    /// `RESUME`.
    Resume,
}

fn kind_tag(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Stream => "STREAM",
        SourceKind::Table => "TABLE",
    }
}

/// `CREATE STREAM|TABLE`, with or without `AS`. A continuous query has caught up with its sources when this returns.
pub async fn create(
    session: &mut Session,
    source: &Arc<SourceStatement>,
) -> SessionResult<Outcome> {
    let (kind, name) = match &source.parsed.statement {
        Statement::CreateSource(create) => (create.kind, create.name.clone()),
        Statement::CreateAs(create) => (create.kind, create.name.clone()),
        _ => return Err(SqlError::internal("not a CREATE statement")),
    };
    let (reset, style) = manner(session, source);
    let (server, source) = (Arc::clone(&session.server), Arc::clone(source));
    let created = blocking(move || {
        server
            .coordinator
            .create(&source.parsed.statement, &style, &source.script, reset)
    })
    .await??;
    if created == Created::Kept {
        session.notice(Notice {
            severity: "NOTICE",
            code: code::DUPLICATE_TABLE,
            message: format!("relation \"{name}\" already exists, skipping"),
            hint: None,
        });
    }
    Ok(Outcome::Done(format!("CREATE {}", kind_tag(kind))))
}

/// Where the query of a statement begins, and how the statement is read.
fn manner(session: &Session, source: &SourceStatement) -> (OffsetReset, StatementStyle) {
    // A continuous query stands for the batch query over all its input, so it begins with the first record unless told otherwise.
    let reset = session
        .variables
        .offset_reset()
        .unwrap_or(OffsetReset::Earliest);
    let style = StatementStyle {
        language: source.parsed.language,
        ..session.variables.style()
    };
    (reset, style)
}

/// `INSERT INTO .. SELECT`. The query has caught up with its sources when this returns.
pub async fn insert(
    session: &mut Session,
    source: &Arc<SourceStatement>,
) -> SessionResult<Outcome> {
    let (reset, style) = manner(session, source);
    let (server, source) = (Arc::clone(&session.server), Arc::clone(source));
    let name = blocking(move || {
        server
            .coordinator
            .insert(&source.parsed.statement, &style, &source.script, reset)
    })
    .await??;
    session.notice(Notice {
        severity: "NOTICE",
        code: code::SUCCESSFUL_COMPLETION,
        message: format!("query {name} inserts from now on"),
        hint: Some(format!("TERMINATE {name} ends it")),
    });
    Ok(Outcome::Done("INSERT INTO".to_owned()))
}

/// `DROP STREAM|TABLE`.
pub async fn drop_relation(session: &mut Session, drop: Drop) -> SessionResult<Outcome> {
    let (kind, name) = (drop.kind, drop.name.clone());
    let server = Arc::clone(&session.server);
    let dropped = blocking(move || server.coordinator.drop_relation(&drop)).await??;
    if dropped == Dropped::Absent {
        session.notice(Notice {
            severity: "NOTICE",
            code: code::SUCCESSFUL_COMPLETION,
            message: format!(
                "{} \"{name}\" does not exist, skipping",
                kind_tag(kind).to_lowercase()
            ),
            hint: None,
        });
    }
    Ok(Outcome::Done(format!("DROP {}", kind_tag(kind))))
}

/// `ALTER STREAM|TABLE`. A table has its rows with the new columns when this returns.
pub async fn alter(session: &mut Session, alter: Alter) -> SessionResult<Outcome> {
    let tag = format!("ALTER {}", kind_tag(alter.kind));
    let server = Arc::clone(&session.server);
    blocking(move || server.coordinator.alter(&alter)).await??;
    Ok(Outcome::Done(tag))
}

/// `TERMINATE`, `PAUSE` and `RESUME`.
pub async fn change_queries(
    session: &mut Session,
    target: &QueryTarget,
    verb: Verb,
) -> SessionResult<Outcome> {
    let (change, tag) = match verb {
        Verb::Terminate => (QueryChange::Terminate, "TERMINATE"),
        Verb::Pause => (QueryChange::Pause, "PAUSE"),
        Verb::Resume => (QueryChange::Resume, "RESUME"),
    };
    let (server, target) = (Arc::clone(&session.server), target.clone());
    blocking(move || server.coordinator.change_queries(&target, change)).await??;
    Ok(Outcome::Done(tag.to_owned()))
}
