//! What a case cannot say: latency, cancellation, drivers' ways of reading, the process, and the flights example.

mod backup;
mod bank;
mod catch_up;
mod copy;
mod cursor;
mod extended;
mod flights;
mod hostile;
mod log_tool;
mod monitoring;
mod process;
mod push;
mod resume;

use highwater_sqllogictest::{Endpoint, ServerProcess};
use tokio_postgres::Client;

/// A server with a stream `s (k VARCHAR KEY, v INT)` on one partition, and a connection to it. The server must be kept.
async fn server_with_stream() -> (ServerProcess, Endpoint, Client) {
    let server = ServerProcess::start().await.expect("the server starts");
    let endpoint = server.endpoint().clone();
    let client = endpoint
        .connect()
        .await
        .expect("the server takes a connection");
    client
        .batch_execute(
            "CREATE STREAM s (k VARCHAR KEY, v INT) \
             WITH (kafka_topic = 's', partitions = 1, value_format = 'JSON')",
        )
        .await
        .expect("the stream is made");
    (server, endpoint, client)
}

/// Asserts that an error carries this SQLSTATE.
#[track_caller]
fn assert_code(error: &tokio_postgres::Error, code: &str) {
    assert_eq!(
        error.code().map(|state| state.code()),
        Some(code),
        "{error:?}"
    );
}
