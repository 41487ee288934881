//! `/healthz`: whether the server does its work.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use highwater_exec::QueryState;
use serde_json::{Value, json};

use crate::server::Server;

/// 200 when the engine runs and every continuous query runs or is paused on purpose; 503 with what is wrong otherwise.
pub(super) async fn get(State(server): State<Arc<Server>>) -> (StatusCode, Json<Value>) {
    let catalog = server.coordinator.catalog();
    let failed: Vec<Value> = server
        .engine
        .queries()
        .into_iter()
        .filter_map(|status| match status.state {
            QueryState::Failed(reason) => {
                Some(json!({ "query": catalog.query_name(status.id), "error": reason }))
            }
            QueryState::Running | QueryState::Paused | QueryState::CatchingUp(_) => None,
        })
        .collect();
    let stopped = server.engine.stopped();
    let (code, status) = match &stopped {
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "stopped"),
        None if !failed.is_empty() => (StatusCode::SERVICE_UNAVAILABLE, "degraded"),
        None => (StatusCode::OK, "ok"),
    };
    let body = json!({
        "status": status,
        "version": env!("CARGO_PKG_VERSION"),
        "engine_error": stopped,
        "failed_queries": failed,
    });
    (code, Json(body))
}
