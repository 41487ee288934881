//! `/metrics`: the process's metrics in Prometheus' text format.

use std::sync::Arc;

use ::metrics::{counter, gauge};
use axum::{
    extract::State,
    http::{HeaderName, header},
};
use highwater_exec::{QueryState, StepStats};

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
    let mut text = handle.render();
    append_steps(&server.engine.steps(), &mut text);
    (
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        text,
    )
}

/// The histogram of the steps' times, which the engine keeps by itself.
fn append_steps(steps: &StepStats, text: &mut String) {
    let name = telemetry::STEP_SECONDS;
    let help = telemetry::STEP_SECONDS_HELP;
    text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} histogram\n"));
    for (bound, count) in &steps.buckets {
        let bound = bound.as_secs_f64();
        text.push_str(&format!("{name}_bucket{{le=\"{bound}\"}} {count}\n"));
    }
    let (count, sum) = (steps.count, steps.total.as_secs_f64());
    text.push_str(&format!(
        "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}\n"
    ));
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
        counter!(telemetry::QUERY_ROWS_LATE, "query" => name.clone()).absolute(status.late);
        for (node, (rows_in, rows_out, nanos)) in status.operators.iter().enumerate() {
            let labels = [("query", name.clone()), ("node", node.to_string())];
            counter!(telemetry::OPERATOR_ROWS_IN, &labels).absolute(*rows_in);
            counter!(telemetry::OPERATOR_ROWS_OUT, &labels).absolute(*rows_out);
            gauge!(telemetry::OPERATOR_SECONDS, &labels).set(*nanos as f64 / 1e9);
        }
        let operators = status.stored.iter().zip(&status.memory).enumerate();
        let operators =
            operators.map(|(node, (stored, memory))| (node.to_string(), *stored, memory.bytes));
        let table = (
            "result".to_owned(),
            status.result_stored,
            status.table_bytes,
        );
        for (node, stored, memory) in operators.chain([table]) {
            if let Some(stored) = stored {
                let labels = [("query", name.clone()), ("node", node)];
                gauge!(telemetry::STATE_STORED, &labels).set(stored as f64);
                gauge!(telemetry::STATE_MEMORY, &labels).set(memory as f64);
            }
        }
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
