//! What a case cannot say: latency, cancellation, drivers' ways of reading, answers under load, the process, and the flights example.

mod backup;
mod bank;
mod catch_up;
mod consistency;
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
use tokio_postgres::{Client, SimpleQueryMessage};

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

/// The rows of an answer as texts, NULL by its name.
async fn texts(client: &Client, sql: &str) -> Vec<Vec<String>> {
    let messages = client
        .simple_query(sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let mut rows = Vec::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            let text = |column| row.get(column).unwrap_or("NULL").to_owned();
            rows.push((0..row.len()).map(text).collect());
        }
    }
    rows
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
