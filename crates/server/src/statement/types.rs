//! CREATE TYPE, DROP TYPE, and what the names of types stand for in other statements.

use std::sync::Arc;

use highwater_sql::{CreateType, DropType, expand_types};

use crate::{
    coordinator::{Created, Dropped},
    session::{Notice, Outcome, Session, SessionResult, SourceStatement, blocking},
    sqlstate::code,
};

/// `CREATE TYPE`.
pub async fn create(session: &mut Session, create: CreateType) -> SessionResult<Outcome> {
    let name = create.name.clone();
    let server = Arc::clone(&session.server);
    let created = blocking(move || server.coordinator.create_type(&create)).await??;
    if created == Created::Kept {
        session.notice(Notice {
            severity: "NOTICE",
            code: code::DUPLICATE_OBJECT,
            message: format!("type \"{name}\" already exists, skipping"),
            hint: None,
        });
    }
    Ok(Outcome::Done("CREATE TYPE".to_owned()))
}

/// `DROP TYPE`.
pub async fn drop_type(session: &mut Session, drop: DropType) -> SessionResult<Outcome> {
    let name = drop.name.clone();
    let server = Arc::clone(&session.server);
    let dropped = blocking(move || server.coordinator.drop_type(&drop)).await??;
    if dropped == Dropped::Absent {
        session.notice(Notice {
            severity: "NOTICE",
            code: code::SUCCESSFUL_COMPLETION,
            message: format!("type \"{name}\" does not exist, skipping"),
            hint: None,
        });
    }
    Ok(Outcome::Done("DROP TYPE".to_owned()))
}

/// The statement with types in place of their names. A name in a declaration that stands for nothing is left for planning to refuse.
pub fn expand(session: &Session, source: Arc<SourceStatement>) -> Arc<SourceStatement> {
    let catalog = session.server.coordinator.catalog();
    if catalog.types().next().is_none() {
        return source;
    }
    let mut expanded = SourceStatement::clone(&source);
    let names = |name: &str| catalog.type_named(name).cloned();
    if let Err(unknown) = expand_types(&mut expanded.parsed.statement, &names) {
        tracing::debug!(unknown, "a type that is not in the catalog");
    }
    Arc::new(expanded)
}
