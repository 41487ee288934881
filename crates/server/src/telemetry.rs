//! Logs and metrics of the process.
//!
//! Logs go to stderr through `tracing`. Metrics go to one recorder for the process; this file declares the server's own, with help texts.

use std::{io::IsTerminal, sync::OnceLock};

use metrics::{describe_counter, describe_gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::{EnvFilter, filter::ParseError};

/// Rows written by INSERT and COPY.
pub const ROWS_WRITTEN: &str = "highwater_rows_written_total";
/// Rows that a continuous query took from its sources.
pub const QUERY_ROWS_IN: &str = "highwater_query_rows_in_total";
/// Rows of change that a continuous query made.
pub const QUERY_ROWS_OUT: &str = "highwater_query_rows_out_total";
/// Rows that came after their window had closed.
pub const QUERY_ROWS_LATE: &str = "highwater_query_rows_late_total";
/// Rows that an operator of a continuous query took.
pub const OPERATOR_ROWS_IN: &str = "highwater_operator_rows_in_total";
/// Rows that it gave.
pub const OPERATOR_ROWS_OUT: &str = "highwater_operator_rows_out_total";
/// Time that it was busy.
pub const OPERATOR_SECONDS: &str = "highwater_operator_busy_seconds";
/// What an operator's state, or a query's table, takes on disk.
pub const STATE_STORED: &str = "highwater_state_stored_bytes";
/// What they take in memory.
pub const STATE_MEMORY: &str = "highwater_state_memory_bytes";
/// Continuous queries by state.
pub const QUERIES: &str = "highwater_queries";
/// Next offset that the continuous queries read of a partition.
pub const SOURCE_POSITION: &str = "highwater_source_position";
/// Records between that position and the end of the partition.
pub const SOURCE_LAG: &str = "highwater_source_lag";
/// Records that could not be decoded.
pub const SOURCE_REJECTED: &str = "highwater_source_rejected_total";
/// The last committed step.
pub const STEP: &str = "highwater_step";
/// Time of the steps, as a histogram.
pub const STEP_SECONDS: &str = "highwater_step_seconds";
/// What it says of itself.
pub const STEP_SECONDS_HELP: &str =
    "Time of a step from its cut to its commit, since the process began";

/// Sends logs to stderr. Fails when `filter` cannot be read; a second call keeps the first subscriber.
pub fn init_logs(filter: &str) -> Result<(), ParseError> {
    let filter = EnvFilter::try_new(filter)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(true)
        .finish();
    if tracing::subscriber::set_global_default(subscriber).is_err() {
        tracing::debug!("logs were set up before");
    }
    Ok(())
}

/// The process's metrics; the first call installs the recorder.
pub fn metrics() -> &'static PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is installed; /metrics stays empty");
        }
        describe();
        handle
    })
}

fn describe() {
    crate::pgwire::describe_metrics();
    describe_counter!(ROWS_WRITTEN, "Rows written by INSERT and COPY");
    describe_counter!(
        QUERY_ROWS_IN,
        "Rows that a continuous query took from its sources since the process began"
    );
    describe_counter!(
        QUERY_ROWS_OUT,
        "Rows of change that a continuous query made since the process began"
    );
    describe_counter!(
        QUERY_ROWS_LATE,
        "Rows that came after their window had closed since the process began"
    );
    describe_counter!(
        OPERATOR_ROWS_IN,
        "Rows that an operator took since the process began; the nodes are those of hw_catalog.operators"
    );
    describe_counter!(
        OPERATOR_ROWS_OUT,
        "Rows that an operator gave since the process began"
    );
    describe_gauge!(
        OPERATOR_SECONDS,
        "Time that an operator was busy since the process began"
    );
    describe_gauge!(
        STATE_STORED,
        "About what an operator's state, or a query's table (node \"result\"), takes on disk since the last checkpoint"
    );
    describe_gauge!(
        STATE_MEMORY,
        "About what an operator's state, or the rows of a query's table (node \"result\") since the last checkpoint, take in memory"
    );
    describe_gauge!(QUERIES, "Continuous queries by state");
    describe_gauge!(
        SOURCE_POSITION,
        "Next offset that the continuous queries read of a partition"
    );
    describe_gauge!(
        SOURCE_LAG,
        "Records between a partition's end and the queries' position"
    );
    describe_counter!(
        SOURCE_REJECTED,
        "Records that could not be decoded since the process began"
    );
    describe_gauge!(STEP, "The last committed step");
}
