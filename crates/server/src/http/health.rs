//! `/healthz`: whether the server does its work.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use highwater_exec::QueryState;
use serde_json::{Value, json};

use crate::server::Server;

/// 200 when every continuous query runs or is paused on purpose; 503 with their errors otherwise.
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
            QueryState::Running | QueryState::Paused => None,
        })
        .collect();
    let code = if failed.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let status = if failed.is_empty() { "ok" } else { "degraded" };
    (
        code,
        Json(
            json!({ "status": status, "version": env!("CARGO_PKG_VERSION"), "failed_queries": failed }),
        ),
    )
}
