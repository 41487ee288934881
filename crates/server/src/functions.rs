//! Functions that statements may call.
//!
//! One library serves every statement: DataFusion's functions, ksqlDB's (of a dialect), and `->` for structs. Sessions add the functions that tell about themselves
//! (`current_user`, `pg_backend_pid()`, ..); continuous queries do not get those, since their meaning would change with the session.

mod session_facts;
mod struct_access;

use std::sync::Arc;

use datafusion::{
    config::Dialect,
    execution::{FunctionRegistry, SessionState, SessionStateBuilder},
    prelude::SessionConfig,
};

use highwater_planner::{CastTypes, ksql_operators};

use crate::{
    pull::{DATABASE, SCHEMA},
    session::Session,
};

/// The library of a dialect, as a state that queries are planned with.
pub fn library(dialect: highwater_functions::Dialect) -> SessionState {
    let mut config = SessionConfig::new()
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(DATABASE, SCHEMA);
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    options.sql_parser.collect_spans = true;
    // The parser has folded all names.
    options.sql_parser.enable_ident_normalization = false;
    // Stored text is Utf8; a second text type would make results differ from declared types.
    options.sql_parser.map_string_types_to_utf8view = false;
    options.execution.time_zone = Some("UTC".to_owned());
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .build();
    let planners = [
        vec![Arc::new(struct_access::StructAccess) as _],
        highwater_functions::expr_planners(dialect),
        state.expr_planners().to_vec(),
    ]
    .concat();
    state = SessionStateBuilder::new_from_existing(state)
        .with_expr_planners(planners)
        .with_type_planner(Arc::new(CastTypes))
        .build();
    if let Err(error) = highwater_functions::register(&mut state, dialect) {
        tracing::error!(%error, "the function library is not complete");
    }
    state
}

/// The library of dialect ksql for what DataFusion plans by itself: pull queries, and the expressions of INSERT.
///
/// The binder of continuous queries brings the operators of dialect ksql, and its numbers with a point, along.
pub fn ksql_pull_library() -> SessionState {
    let mut state = library(highwater_functions::Dialect::Ksql);
    let sql = &mut state.config_mut().options_mut().sql_parser;
    sql.parse_float_as_decimal = true;
    // Not by a builder: it would put DataFusion's functions back in the place of ours, by their other names.
    let operators = ksql_operators(&state);
    if let Err(error) = state.register_expr_planner(operators) {
        tracing::error!(%error, "the operators of dialect ksql are missing in pull queries");
    }
    state
}

/// The library with what the session's own functions tell, and its time zone.
pub fn session_state(session: &Session) -> SessionState {
    let planner = session.server.coordinator.planner();
    let dialect = session.variables.language().dialect;
    let mut state = planner.pull_functions(dialect).clone();
    state.config_mut().options_mut().execution.time_zone = Some(session.time_zone().to_owned());
    for function in session_facts::functions(session) {
        let name = function.name().to_owned();
        if let Err(error) = state.register_udf(Arc::new(function)) {
            tracing::warn!(name, %error, "a session function is missing");
        }
    }
    // now() is this moment for the whole statement.
    state.mark_start_execution();
    state
}
