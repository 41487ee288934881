//! Push queries: rows as they come, operations, limits, cursors, COPY.

use std::{pin::pin, time::Duration};

use futures::{StreamExt, TryStreamExt};
use tokio::time::timeout;

use crate::support::{TestServer, rows, run_all};

/// Far more than a step takes, far less than for ever.
const SOON: Duration = Duration::from_secs(20);

async fn with_counts() -> (TestServer, tokio_postgres::Client) {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "CREATE STREAM s (k VARCHAR KEY, v INT) WITH (value_format = 'JSON', partitions = 1)",
            "CREATE TABLE counts AS SELECT k, count(*) AS n FROM s GROUP BY k",
        ],
    )
    .await;
    (server, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_as_they_happen() {
    let (server, writer) = with_counts().await;
    let watcher = server.client().await;
    let stream = watcher
        .query_raw("SELECT k, v FROM s EMIT CHANGES", Vec::<i32>::new())
        .await
        .expect("starts");
    let mut stream = pin!(stream);
    for number in 1..=3_i32 {
        run_all(&writer, &[&format!("INSERT INTO s VALUES ('a', {number})")]).await;
        let row = timeout(SOON, stream.next())
            .await
            .expect("in time")
            .expect("a row")
            .expect("no error");
        assert_eq!((row.get::<_, &str>(0), row.get::<_, i32>(1)), ("a", number));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_tells_its_operations_and_a_limit_ends_it() {
    let (server, writer) = with_counts().await;
    let watcher = server.client().await;
    let watching = tokio::spawn(async move {
        timeout(
            SOON,
            rows(&watcher, "SELECT * FROM counts EMIT CHANGES LIMIT 3"),
        )
        .await
        .expect("in time")
    });
    // The subscription begins with what comes after it; each insert is a step of its own since a pull query follows it.
    let mut given = 0;
    while !watching.is_finished() {
        given += 1;
        run_all(&writer, &["INSERT INTO s VALUES ('a', 1)"]).await;
        assert_eq!(
            rows(&writer, "SELECT n FROM counts").await,
            [given.to_string()]
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let changes = watching.await.expect("no panic");
    let operations: Vec<&str> = changes
        .iter()
        .filter_map(|row| row.split('|').next())
        .collect();
    assert!(
        operations == ["insert", "update_before", "update_after"]
            || operations == ["update_before", "update_after", "update_before"],
        "{changes:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_beginning() {
    let (_server, client) = with_counts().await;
    run_all(
        &client,
        &[
            "INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3)",
            "SET 'auto.offset.reset' = 'earliest'",
        ],
    )
    .await;
    let stream = timeout(
        SOON,
        rows(&client, "SELECT k, v FROM s EMIT CHANGES LIMIT 3"),
    )
    .await
    .expect("in time");
    assert_eq!(stream, ["a|1", "b|2", "a|3"]);
    let mut table = timeout(
        SOON,
        rows(&client, "SELECT * FROM counts EMIT CHANGES LIMIT 2"),
    )
    .await
    .expect("in time");
    table.sort();
    assert_eq!(table, ["insert|a|2", "insert|b|1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_waits_for_one_row_and_gives_what_there_is() {
    let (server, client) = with_counts().await;
    run_all(
        &client,
        &["BEGIN", "DECLARE c CURSOR FOR SELECT v FROM s EMIT CHANGES"],
    )
    .await;
    assert!(
        rows(&client, "FETCH 5 FROM c WITH (timeout = '100ms')")
            .await
            .is_empty()
    );
    run_all(
        &server.client().await,
        &["INSERT INTO s VALUES ('a', 1), ('a', 2), ('a', 3)"],
    )
    .await;
    let mut fetched = Vec::new();
    while fetched.len() < 3 {
        let batch = timeout(SOON, rows(&client, "FETCH 2 FROM c"))
            .await
            .expect("in time");
        assert!((1..=2).contains(&batch.len()));
        fetched.extend(batch);
    }
    assert_eq!(fetched, ["1", "2", "3"]);
    run_all(&client, &["COMMIT"]).await;
    assert_eq!(
        crate::support::error(&client, "FETCH 1 FROM c").await.0,
        "34000"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_to_stdout_streams() {
    let (server, writer) = with_counts().await;
    let watcher = server.client().await;
    let stream = watcher
        .copy_out("COPY (SELECT k, v FROM s EMIT CHANGES) TO STDOUT")
        .await
        .expect("starts");
    let mut stream = pin!(stream);
    run_all(&writer, &["INSERT INTO s VALUES ('a', 7)"]).await;
    let line = timeout(SOON, stream.try_next())
        .await
        .expect("in time")
        .expect("no error")
        .expect("a line");
    assert_eq!(&line[..], b"a\t7\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_is_told_how_to_watch() {
    let (server, _client) = with_counts().await;
    let (psql, mut notices) = server.client_as("psql").await;
    let cancel = psql.cancel_token();
    let watching =
        tokio::spawn(async move { psql.simple_query("SELECT * FROM s EMIT CHANGES").await });
    let notice = timeout(SOON, notices.recv())
        .await
        .expect("in time")
        .expect("a notice");
    assert!(notice.contains("does not end"), "{notice}");
    cancel
        .cancel_query(tokio_postgres::NoTls)
        .await
        .expect("sent");
    let error = timeout(SOON, watching)
        .await
        .expect("in time")
        .expect("no panic")
        .expect_err("cancelled");
    assert_eq!(error.code().map(|code| code.code()), Some("57014"));
}

#[tokio::test(flavor = "multi_thread")]
async fn print_follows_a_topic() {
    let (_server, client) = with_counts().await;
    run_all(&client, &["INSERT INTO s VALUES ('a', 1), ('b', 2)"]).await;
    let printed = timeout(SOON, rows(&client, "PRINT s FROM BEGINNING LIMIT 2"))
        .await
        .expect("in time");
    assert_eq!(printed.len(), 2);
    assert!(
        printed[0].contains("|a|{") && printed[0].ends_with("|0|0"),
        "{printed:?}"
    );
    assert!(
        printed[1].contains("|b|{") && printed[1].ends_with("|0|1"),
        "{printed:?}"
    );
}
