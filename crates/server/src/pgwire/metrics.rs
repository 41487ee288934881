//! What the protocol counts.

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const CONNECTIONS: &str = "highwater_pgwire_connections";
const CONNECTIONS_TOTAL: &str = "highwater_pgwire_connections_total";
const REFUSED_TOTAL: &str = "highwater_pgwire_connections_refused_total";
const PANICS_TOTAL: &str = "highwater_pgwire_panics_total";
const STATEMENTS_TOTAL: &str = "highwater_pgwire_statements_total";
const ERRORS_TOTAL: &str = "highwater_pgwire_errors_total";
const ROWS_TOTAL: &str = "highwater_pgwire_rows_total";
const STATEMENT_SECONDS: &str = "highwater_pgwire_statement_seconds";

/// Tells the installed recorder the meaning of each metric.
pub fn describe() {
    describe_gauge!(CONNECTIONS, "Sessions that are open");
    describe_counter!(CONNECTIONS_TOTAL, "Sessions that were opened");
    describe_counter!(
        REFUSED_TOTAL,
        "Connections refused since every session was taken"
    );
    describe_counter!(
        PANICS_TOTAL,
        "Sessions ended by a panic, each of which is a bug"
    );
    describe_counter!(STATEMENTS_TOTAL, "Statements run");
    describe_counter!(ERRORS_TOTAL, "Errors sent to clients, by SQLSTATE class");
    describe_counter!(ROWS_TOTAL, "Rows sent to clients");
    describe_histogram!(
        STATEMENT_SECONDS,
        metrics::Unit::Seconds,
        "Time from a statement's start to its first answer"
    );
}

/// Counts an open session; it is closed on drop.
pub(super) struct OpenSession(());

impl OpenSession {
    pub(super) fn begin() -> Self {
        gauge!(CONNECTIONS).increment(1.0);
        counter!(CONNECTIONS_TOTAL).increment(1);
        Self(())
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        gauge!(CONNECTIONS).decrement(1.0);
    }
}

pub(super) fn refused() {
    counter!(REFUSED_TOTAL).increment(1);
}

pub(super) fn panicked() {
    counter!(PANICS_TOTAL).increment(1);
}

pub(super) fn statement(answered_after: std::time::Duration) {
    counter!(STATEMENTS_TOTAL).increment(1);
    histogram!(STATEMENT_SECONDS).record(answered_after.as_secs_f64());
}

pub(super) fn error(sqlstate: &'static str) {
    counter!(ERRORS_TOTAL, "class" => &sqlstate[..2]).increment(1);
}

pub(super) fn rows(count: u64) {
    counter!(ROWS_TOTAL).increment(count);
}
