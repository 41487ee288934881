//! CREATE, DROP, TERMINATE, PAUSE, RESUME, SHOW, DESCRIBE, EXPLAIN, and the command topic behind them.

use highwater_server::error::ServerError;

use crate::support::{TestServer, error, rows, run_all};

const STREAM: &str =
    "CREATE STREAM s (k VARCHAR KEY, v INT) WITH (value_format = 'JSON', partitions = 1)";
const SUMS: &str = "CREATE TABLE sums AS SELECT k, sum(v) AS total FROM s GROUP BY k";

async fn query_id(client: &tokio_postgres::Client, sink: &str) -> String {
    let queries = rows(client, "SHOW QUERIES").await;
    let row = queries
        .iter()
        .find(|row| row.split('|').nth(2) == Some(sink))
        .unwrap_or_else(|| panic!("{queries:?}"));
    row.split('|').next().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn continuous_queries_go_on_after_a_restart() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            STREAM,
            "INSERT INTO s VALUES ('a', 1)",
            SUMS,
            "CREATE STREAM big AS SELECT k, v * 10 AS v FROM s WHERE v > 1",
            "INSERT INTO s VALUES ('a', 2), ('b', 3)",
        ],
    )
    .await;
    let sums = "SELECT k, total FROM sums ORDER BY k";
    let big = "SELECT k, v FROM big ORDER BY v";
    assert_eq!(rows(&client, sums).await, ["a|3", "b|3"], "history counts");
    assert_eq!(rows(&client, big).await, ["a|20", "b|30"]);
    let server = server.restart().await;
    let client = server.client().await;
    assert_eq!(rows(&client, sums).await, ["a|3", "b|3"]);
    run_all(&client, &["INSERT INTO s VALUES ('b', 4)"]).await;
    assert_eq!(rows(&client, sums).await, ["a|3", "b|7"]);
    assert_eq!(rows(&client, big).await, ["a|20", "b|30", "b|40"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_taken_once() {
    let server = TestServer::start().await;
    let (client, mut notices) = server.client_as("tests").await;
    run_all(&client, &[STREAM]).await;
    let (code, message, _) = error(&client, STREAM).await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("42P07", "stream \"s\" already exists")
    );
    run_all(
        &client,
        &["CREATE STREAM IF NOT EXISTS s (x INT) WITH (value_format = 'JSON')"],
    )
    .await;
    assert_eq!(
        notices.recv().await.as_deref(),
        Some("relation \"s\" already exists, skipping")
    );
    run_all(&client, &["CREATE OR REPLACE STREAM s (k VARCHAR KEY, v INT) WITH (value_format = 'JSON', partitions = 1)"]).await;
    let (code, ..) = error(
        &client,
        "CREATE OR REPLACE STREAM s (k VARCHAR KEY, v BIGINT) WITH (value_format = 'JSON')",
    )
    .await;
    assert_eq!(code, "0A000");
    run_all(&client, &["DROP STREAM IF EXISTS nowhere"]).await;
    assert_eq!(
        notices.recv().await.as_deref(),
        Some("stream \"nowhere\" does not exist, skipping")
    );
    assert_eq!(error(&client, "DROP TABLE s").await.0, "42809");
    assert_eq!(
        error(&client, "DROP STREAM processing_log").await.0,
        "42501"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_is_not_dropped() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(&client, &[STREAM, SUMS, "INSERT INTO s VALUES ('a', 1)"]).await;
    let (code, message, _) = error(&client, "DROP STREAM s").await;
    assert_eq!(code, "2BP01", "{message}");
    run_all(&client, &["DROP TABLE sums", "DROP STREAM s DELETE TOPIC"]).await;
    assert!(
        rows(&client, "SHOW TOPICS")
            .await
            .iter()
            .all(|row| !row.starts_with("s|"))
    );
    // A new stream of the same name is empty, now and after a restart.
    run_all(&client, &[STREAM]).await;
    assert_eq!(rows(&client, "SELECT count(*) FROM s").await, ["0"]);
    let server = server.restart().await;
    let client = server.client().await;
    assert_eq!(rows(&client, "SELECT count(*) FROM s").await, ["0"]);
    assert_eq!(error(&client, "SELECT * FROM sums").await.0, "42P01");
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_pause_resume_and_end() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(&client, &[STREAM, SUMS, "INSERT INTO s VALUES ('a', 1)"]).await;
    let id = query_id(&client, "sums").await;
    assert!(id.starts_with("CTAS_SUMS_"), "{id}");
    run_all(
        &client,
        &[
            &format!("PAUSE {id}"),
            "SET freshness = 'any'",
            "INSERT INTO s VALUES ('a', 2)",
        ],
    )
    .await;
    let state = rows(&client, "SHOW QUERIES").await;
    assert_eq!(state[0].split('|').nth(1), Some("paused"));
    assert_eq!(rows(&client, "SELECT total FROM sums").await, ["1"]);

    let server = server.restart().await;
    let client = server.client().await;
    assert_eq!(
        rows(&client, "SHOW QUERIES").await[0].split('|').nth(1),
        Some("paused"),
        "also after a restart"
    );
    run_all(
        &client,
        &[
            &format!("RESUME {}", id.to_lowercase()),
            "INSERT INTO s VALUES ('a', 4)",
        ],
    )
    .await;
    assert_eq!(rows(&client, "SELECT total FROM sums").await, ["7"]);

    run_all(&client, &[&format!("TERMINATE {id}")]).await;
    assert!(rows(&client, "SHOW QUERIES").await.is_empty());
    assert_eq!(error(&client, "SELECT total FROM sums").await.0, "55000");
    let (code, message, _) = error(&client, &format!("TERMINATE {id}")).await;
    assert_eq!(code, "42704", "{message}");
    let server = server.restart().await;
    assert!(
        rows(&server.client().await, "SHOW QUERIES")
            .await
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_can_be_looked_at() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(&client, &[STREAM, SUMS]).await;
    assert_eq!(
        rows(&client, "SHOW STREAMS").await,
        [
            "processing_log|_highwater_processing_log|NONE|JSON",
            "s|s|KAFKA|JSON"
        ]
    );
    assert_eq!(rows(&client, "SHOW TABLES").await.len(), 1);
    assert!(
        rows(&client, "SHOW TOPICS")
            .await
            .contains(&"s|1|0".to_owned())
    );
    assert!(rows(&client, "SHOW ALL TOPICS").await.len() >= 4);
    assert_eq!(
        rows(&client, "DESCRIBE s").await,
        ["k|VARCHAR|KEY", "v|INT|"]
    );
    assert_eq!(
        rows(&client, "DESCRIBE sums").await[0],
        "k|VARCHAR|PRIMARY KEY"
    );
    let id = query_id(&client, "sums").await;
    let extended = rows(&client, "DESCRIBE s EXTENDED").await;
    assert!(extended.contains(&format!("read by|{id}")), "{extended:?}");
    let plan = rows(&client, &format!("EXPLAIN {id}")).await;
    let statement = rows(
        &client,
        "EXPLAIN CREATE TABLE other AS SELECT k, sum(v) AS total FROM s GROUP BY k",
    )
    .await;
    assert!(
        plan.len() >= 3 && statement.len() == plan.len(),
        "{plan:?} {statement:?}"
    );
    let analyzed = rows(&client, &format!("EXPLAIN ANALYZE {id}")).await;
    assert!(
        analyzed
            .iter()
            .any(|line| line.starts_with("State: running")),
        "{analyzed:?}"
    );
    assert_eq!(error(&client, "DESCRIBE nowhere").await.0, "42P01");
    assert_eq!(error(&client, "EXPLAIN nothing_runs").await.0, "42704");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_records_are_kept_and_stop_nothing() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "CREATE STREAM good (k VARCHAR KEY, v INT) WITH (kafka_topic = 'mixed', partitions = 1, value_format = 'JSON')",
            "CREATE STREAM raw (k VARCHAR KEY, line VARCHAR) WITH (kafka_topic = 'mixed', value_format = 'KAFKA')",
            "CREATE TABLE sums AS SELECT k, sum(v) AS total FROM good GROUP BY k",
            "INSERT INTO raw VALUES ('a', '{\"v\": 1}'), ('a', 'not JSON'), ('a', '{\"v\": 10}')",
        ],
    )
    .await;
    assert_eq!(rows(&client, "SELECT total FROM sums").await, ["11"]);
    assert_eq!(
        rows(&client, "SELECT source, topic, partition, \"offset\", key, value, reason <> '' FROM processing_log").await,
        ["good|mixed|0|1|\\x61|\\x6e6f74204a534f4e|t"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_the_folder_is_refused() {
    let server = TestServer::start().await;
    let refused = server
        .start_another()
        .await
        .err()
        .expect("one folder, one server");
    assert!(
        matches!(refused, ServerError::DataFolderInUse { .. }),
        "{refused}"
    );
    assert!(server.data().join("LOCK").exists());
    assert_eq!(
        rows(&server.client().await, "SELECT 1").await,
        ["1"],
        "the first goes on"
    );
}
