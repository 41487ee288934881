//! /healthz and /metrics.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{TestServer, rows, run_all};

async fn get(server: &TestServer, path: &str) -> String {
    let mut socket = TcpStream::connect(server.addresses.http)
        .await
        .expect("connects");
    let request = format!("GET {path} HTTP/1.1\r\nHost: highwater\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("answered");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_metrics_tell_what_happens() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "CREATE STREAM metered (k INT KEY, v INT) WITH (value_format = 'JSON', partitions = 1)",
            "CREATE TABLE metered_sums AS SELECT k, sum(v) AS total FROM metered GROUP BY k",
            "INSERT INTO metered VALUES (1, 1), (2, 2), (3, 3)",
        ],
    )
    .await;
    assert_eq!(
        rows(&client, "SELECT count(*) FROM metered_sums").await,
        ["3"]
    );
    let health = get(&server, "/healthz").await;
    assert!(
        health.starts_with("HTTP/1.1 200") && health.contains("\"status\":\"ok\""),
        "{health}"
    );
    let metrics = get(&server, "/metrics").await;
    let query_rows = metrics
        .lines()
        .find(|line| line.starts_with("highwater_query_rows_in_total{query=\"CTAS_METERED_SUMS_"));
    assert!(
        query_rows.is_some_and(|line| line.ends_with(" 3")),
        "{metrics}"
    );
    assert!(
        metrics.contains("highwater_source_position{topic=\"metered\",partition=\"0\"} 3"),
        "{metrics}"
    );
    assert!(get(&server, "/nowhere").await.starts_with("HTTP/1.1 404"));
}
