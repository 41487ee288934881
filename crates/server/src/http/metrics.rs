//! `/metrics`: the process's metrics in Prometheus' text format.

use std::sync::Arc;

use ::metrics::{counter, gauge};
use axum::{
    extract::State,
    http::{HeaderName, header},
};
use highwater_exec::QueryState;

use crate::{server::Server, telemetry};

/// Everything recorded so far, with the engine's counters as they are now.
pub(super) async fn get(
    State(server): State<Arc<Server>>,
) -> ([(HeaderName, &'static str); 1], String) {
    let handle = telemetry::metrics();
    record_queries(&server);
    record_sources(&server);
    gauge!(telemetry::STEP).set(server.engine.snapshot().step() as f64);
    handle.run_upkeep();
    (
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        handle.render(),
    )
}

fn record_queries(server: &Server) {
    let catalog = server.coordinator.catalog();
    let (mut running, mut paused, mut failed) = (0, 0, 0);
    for status in server.engine.queries() {
        match status.state {
            QueryState::Running | QueryState::CatchingUp(_) => running += 1,
            QueryState::Paused => paused += 1,
            QueryState::Failed(_) => failed += 1,
        }
        let name = catalog.query_name(status.id);
        counter!(telemetry::QUERY_ROWS_IN, "query" => name.clone()).absolute(status.rows_in);
        counter!(telemetry::QUERY_ROWS_OUT, "query" => name.clone()).absolute(status.rows_out);
        counter!(telemetry::QUERY_ROWS_LATE, "query" => name).absolute(status.late);
    }
    for (state, count) in [("running", running), ("paused", paused), ("failed", failed)] {
        gauge!(telemetry::QUERIES, "state" => state).set(f64::from(count));
    }
}

fn record_sources(server: &Server) {
    for source in server.engine.sources() {
        let topic = source.partition.topic.to_string();
        let partition = source.partition.partition.0.to_string();
        let labels = [("topic", topic), ("partition", partition)];
        gauge!(telemetry::SOURCE_POSITION, &labels).set(source.position.0 as f64);
        counter!(telemetry::SOURCE_REJECTED, &labels).absolute(source.rejected);
        if let Ok(offsets) = server.log.offsets(&source.partition) {
            gauge!(telemetry::SOURCE_LAG, &labels)
                .set((offsets.last_stable.0 - source.position.0).max(0) as f64);
        }
    }
}
