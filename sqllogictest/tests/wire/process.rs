//! The process: stopping, health, metrics, the command line.

use std::{
    process::{Command, Output, Stdio},
    time::Duration,
};

use highwater_sqllogictest::{Endpoint, ServerProcess};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::server_with_stream;

#[tokio::test]
async fn sigterm_ends_the_server_cleanly_and_everything_is_there_again() {
    let (mut server, endpoint, client) = server_with_stream().await;
    client
        .batch_execute("CREATE TABLE t AS SELECT k, SUM(v) AS total FROM s GROUP BY k")
        .await
        .unwrap();
    client
        .batch_execute("INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3)")
        .await
        .unwrap();
    // An open push query must not hold the stop up.
    let _watch = highwater_sqllogictest::Watch::start(&endpoint, "SELECT k FROM s EMIT CHANGES")
        .await
        .unwrap();
    let status = server.stop().await.unwrap();
    assert!(status.success(), "{status}\n{}", server.log_tail());
    server.restart().await.unwrap();
    let client = endpoint.connect().await.unwrap();
    let rows = client
        .query("SELECT k, total FROM t ORDER BY k", &[])
        .await
        .unwrap();
    let rows: Vec<(String, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [("a".to_owned(), 4), ("b".to_owned(), 2)]);
    server.check_health().unwrap();
}

#[tokio::test]
async fn a_second_server_on_the_same_folder_is_refused() {
    let (server, _endpoint, _client) = server_with_stream().await;
    let output = highwater(&[
        "start",
        "--data",
        server.data().to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--http-listen",
        "127.0.0.1:0",
    ])
    .await;
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        message.contains("data") && message.contains("another"),
        "{message}"
    );
}

#[tokio::test]
async fn health_and_metrics_answer_over_http() {
    let (_server, endpoint, client) = server_with_stream().await;
    let (status, _) = http_get(&endpoint, "/healthz").await;
    assert_eq!(status, 200);
    client
        .batch_execute("INSERT INTO s VALUES ('first', 0)")
        .await
        .unwrap();
    let before = metric(&endpoint, "highwater_rows_written_total").await;
    client
        .batch_execute("INSERT INTO s VALUES ('a', 1), ('b', 2)")
        .await
        .unwrap();
    let after = metric(&endpoint, "highwater_rows_written_total").await;
    assert!(
        after - before >= 2.0,
        "{before} before two inserts, {after} after"
    );
    let (status, _) = http_get(&endpoint, "/nothing").await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn the_terminal_client_runs_a_statement_and_fails_with_its_error() {
    let (_server, endpoint, _client) = server_with_stream().await;
    let port = endpoint.port.to_string();
    let run = async |statement: &str| highwater(&["sql", "--port", &port, statement]).await;
    let output = run("INSERT INTO s VALUES ('tea', 42)").await;
    assert!(output.status.success(), "{output:?}");
    let output = run("SELECT k, v FROM s").await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("tea") && text.contains("42"),
        "{output:?}"
    );
    let output = run("SELECT nope FROM s").await;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && text.contains("nope") && text.contains("42703"),
        "{output:?}"
    );
}

#[tokio::test]
async fn the_demo_plays_flights_and_says_how_to_connect() {
    let output = highwater(&["demo", "--seconds", "4"]).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    for part in ["United Air Lines", "psql -h 127.0.0.1"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[tokio::test]
async fn help_and_version_are_everywhere() {
    for arguments in [
        vec!["--help"],
        vec!["start", "--help"],
        vec!["sql", "--help"],
        vec!["demo", "--help"],
    ] {
        let output = highwater(&arguments).await;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("Usage"),
            "{arguments:?}: {output:?}"
        );
    }
    assert!(highwater(&["--version"]).await.status.success());
    assert!(
        !highwater(&["start", "--no-such-option"])
            .await
            .status
            .success()
    );
}

/// A metric's value, summed over its labels.
pub async fn metric(endpoint: &Endpoint, name: &str) -> f64 {
    let (status, body) = http_get(endpoint, "/metrics").await;
    assert_eq!(status, 200);
    let named = |line: &&str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    let values: Vec<f64> = body
        .lines()
        .filter(named)
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(!values.is_empty(), "no metric {name} in\n{body}");
    values.iter().sum()
}

async fn http_get(endpoint: &Endpoint, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", endpoint.http_port))
        .await
        .unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(Duration::from_secs(20), stream.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .expect("an HTTP answer has a head");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .expect("an HTTP answer has a status");
    (status, body.to_owned())
}

/// Runs the binary to its end.
async fn highwater(arguments: &[&str]) -> Output {
    let mut command = Command::new(ServerProcess::binary().unwrap());
    command.args(arguments).stdin(Stdio::null());
    let run = tokio::task::spawn_blocking(move || command.output().unwrap());
    timeout(Duration::from_secs(60), run)
        .await
        .expect("the command ends")
        .unwrap()
}
