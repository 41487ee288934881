//! Pull queries: joins, seeks, consistency, constants.

use crate::support::{TestServer, error, rows, run_all};

async fn with_routes() -> (TestServer, tokio_postgres::Client) {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "CREATE STREAM flights (carrier VARCHAR KEY, dest VARCHAR, delay INT) WITH (value_format = 'JSON')",
            "CREATE TABLE routes AS SELECT carrier, dest, count(*) AS n, avg(delay) AS mean FROM flights GROUP BY carrier, dest",
            "CREATE TABLE airlines (carrier VARCHAR PRIMARY KEY, name VARCHAR) WITH (value_format = 'JSON')",
            "INSERT INTO airlines VALUES ('UA', 'United'), ('AA', 'American'), ('DL', 'Delta')",
            "INSERT INTO flights VALUES ('UA', 'SFO', 10), ('UA', 'SFO', 20), ('UA', 'LAX', 0), ('AA', 'MIA', 5)",
        ],
    )
    .await;
    (server, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_streams_join_in_one_snapshot() {
    let (_server, client) = with_routes().await;
    assert_eq!(
        rows(&client, "SELECT a.name, r.dest, r.n, r.mean FROM routes r JOIN airlines a ON a.carrier = r.carrier ORDER BY 1, 2").await,
        ["American|MIA|1|5", "United|LAX|1|0", "United|SFO|2|15"]
    );
    let whole = "WITH batch AS (SELECT carrier, dest, count(*) AS n FROM flights GROUP BY carrier, dest) \
                 SELECT count(*) FROM batch b FULL JOIN routes r ON b.carrier = r.carrier AND b.dest = r.dest AND b.n = r.n \
                 WHERE b.n IS NULL OR r.n IS NULL";
    assert_eq!(
        rows(&client, whole).await,
        ["0"],
        "the table equals the batch query over its stream"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_row_replaces_the_old_one() {
    let (server, client) = with_routes().await;
    run_all(
        &client,
        &["INSERT INTO airlines VALUES ('UA', 'United Airlines')"],
    )
    .await;
    let united = "SELECT name FROM airlines WHERE carrier = 'UA'";
    assert_eq!(rows(&client, united).await, ["United Airlines"]);
    assert_eq!(rows(&client, "SELECT count(*) FROM airlines").await, ["3"]);
    let server = server.restart().await;
    assert_eq!(
        rows(&server.client().await, united).await,
        ["United Airlines"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_become_seeks() {
    let (_server, client) = with_routes().await;
    let plan = |query: &'static str| {
        let client = &client;
        async move { rows(client, &format!("EXPLAIN {query}")).await.join("\n") }
    };
    let point = plan("SELECT n FROM routes WHERE carrier = 'UA' AND dest = 'SFO'").await;
    assert!(point.contains("seek=[carrier = UA, dest = SFO]"), "{point}");
    let range = plan("SELECT n FROM routes WHERE carrier = 'UA' AND dest >= 'M'").await;
    assert!(range.contains("seek=[carrier = UA, dest >= M]"), "{range}");
    let full = plan("SELECT n FROM routes WHERE n > 1").await;
    assert!(full.contains("full scan"), "{full}");
    assert_eq!(
        rows(
            &client,
            "SELECT n FROM routes WHERE carrier = 'UA' AND dest >= 'M'"
        )
        .await,
        ["2"]
    );
    assert_eq!(
        rows(&client, "SELECT dest FROM routes WHERE carrier IN ('UA', 'AA', 'XX') AND dest < 'N' ORDER BY dest").await,
        ["LAX", "MIA"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn constants_need_no_table() {
    let server = TestServer::start().await;
    let client = server.client().await;
    assert_eq!(rows(&client, "SELECT 1").await, ["1"]);
    assert_eq!(
        rows(&client, "SELECT current_database(), current_schema(), current_user, pg_catalog.version() LIKE 'PostgreSQL %'").await,
        ["highwater|public|highwater|t"]
    );
    assert_eq!(
        rows(
            &client,
            "SELECT pg_backend_pid() > 0, current_setting('TimeZone')"
        )
        .await,
        ["t|UTC"]
    );
    assert_eq!(
        rows(
            &client,
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        )
        .await,
        ["processing_log"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_codes_and_places() {
    let (_server, client) = with_routes().await;
    for (query, code) in [
        ("SELECT nope FROM routes", "42703"),
        ("SELECT * FROM nowhere", "42P01"),
        ("SELECT frobnicate(n) FROM routes", "42883"),
        ("SELECT 1 / 0", "22012"),
        ("SELECT CAST('x' AS INT)", "22P02"),
        ("SELEC 1", "42601"),
        ("SELECT $1", "42P02"),
    ] {
        assert_eq!(error(&client, query).await.0, code, "{query}");
    }
    let failed = client
        .simple_query("SELECT 1,\n  nope FROM routes")
        .await
        .expect_err("no column");
    let position = failed
        .as_db_error()
        .and_then(|error| error.position().cloned());
    assert_eq!(
        position,
        Some(tokio_postgres::error::ErrorPosition::Original(13))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_query_is_cancelled() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let cancel = client.cancel_token();
    let endless = tokio::spawn(async move {
        let query = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b, generate_series(1, 100000) c";
        let outcome = client.simple_query(query).await;
        (client, outcome)
    });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    cancel
        .cancel_query(tokio_postgres::NoTls)
        .await
        .expect("sent");
    let (client, outcome) = endless.await.expect("no panic");
    let error = outcome.expect_err("cancelled");
    assert_eq!(error.code().map(|code| code.code()), Some("57014"));
    assert_eq!(
        rows(&client, "SELECT 1").await,
        ["1"],
        "the session goes on"
    );
}
