//! Variables, transactions, freshness.

use crate::support::{TestServer, error, rows, run_all};

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_set_shown_and_reset() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "SET TIME ZONE 'Asia/Kolkata'",
            "SET freshness TO strong",
            "SET extra_float_digits = 3",
        ],
    )
    .await;
    assert_eq!(rows(&client, "SHOW TimeZone").await, ["Asia/Kolkata"]);
    assert_eq!(rows(&client, "SHOW freshness").await, ["strong"]);
    assert_eq!(
        rows(&client, "SELECT TIMESTAMPTZ '2013-01-01 00:00:00+00'").await,
        ["2013-01-01 05:30:00+05:30"]
    );
    run_all(&client, &["RESET ALL"]).await;
    assert_eq!(rows(&client, "SHOW TimeZone").await, ["UTC"]);
    let (code, message, hint) = error(&client, "SET fresh = 'any'").await;
    assert_eq!(code, "42704", "{message}");
    assert!(hint.contains("SHOW ALL"), "{hint}");
    assert_eq!(error(&client, "SET freshness = 'soon'").await.0, "22023");
    assert!(rows(&client, "SHOW ALL").await.len() > 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_block_takes_nothing_but_its_end() {
    let server = TestServer::start().await;
    let (client, mut notices) = server.client_as("tests").await;
    run_all(
        &client,
        &[
            "CREATE STREAM s (v INT) WITH (value_format = 'JSON')",
            "BEGIN",
            "INSERT INTO s VALUES (1)",
        ],
    )
    .await;
    assert_eq!(error(&client, "SELECT * FROM nowhere").await.0, "42P01");
    assert_eq!(error(&client, "SELECT 1").await.0, "25P02");
    run_all(&client, &["ROLLBACK"]).await;
    let notice = notices.recv().await.expect("a warning");
    assert!(notice.contains("writes are immediate"), "{notice}");
    assert_eq!(rows(&client, "SELECT v FROM s").await, ["1"]);
    run_all(&client, &["BEGIN READ ONLY"]).await;
    assert_eq!(error(&client, "INSERT INTO s VALUES (2)").await.0, "25006");
    run_all(&client, &["ROLLBACK", "BEGIN", "SAVEPOINT a"]).await;
    assert_eq!(error(&client, "SELECT * FROM nowhere").await.0, "42P01");
    run_all(
        &client,
        &["ROLLBACK TO a", "INSERT INTO s VALUES (3)", "COMMIT"],
    )
    .await;
    assert_eq!(rows(&client, "SELECT sum(v) FROM s").await, ["4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn strong_reads_see_what_others_wrote() {
    let server = TestServer::start().await;
    let (writer, reader) = (server.client().await, server.client().await);
    run_all(
        &writer,
        &[
            "CREATE STREAM s (k INT KEY, v INT) WITH (value_format = 'JSON')",
            "CREATE TABLE counts AS SELECT k, count(*) AS n FROM s GROUP BY k",
        ],
    )
    .await;
    run_all(&reader, &["SET freshness = 'strong'"]).await;
    for number in 1..=50 {
        run_all(&writer, &["INSERT INTO s VALUES (1, 1), (2, 1), (3, 1)"]).await;
        let expected = [format!("{number}|{number}|3")];
        assert_eq!(
            rows(&reader, "SELECT min(n), max(n), count(*) FROM counts").await,
            expected
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_sessions_write_and_nothing_is_lost() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "CREATE STREAM s (k INT KEY, v INT) WITH (value_format = 'JSON', partitions = 3)",
            "CREATE TABLE sums AS SELECT k, count(*) AS n, sum(v) AS total FROM s GROUP BY k",
        ],
    )
    .await;
    let mut writers = Vec::new();
    for session in 0..16 {
        let writer = server.client().await;
        writers.push(tokio::spawn(async move {
            for number in 0..25 {
                run_all(
                    &writer,
                    &[&format!("INSERT INTO s VALUES ({session}, {number})")],
                )
                .await;
            }
            rows(
                &writer,
                &format!("SELECT n, total FROM sums WHERE k = {session}"),
            )
            .await
        }));
    }
    for writer in writers {
        assert_eq!(
            writer.await.expect("no panic"),
            ["25|300"],
            "each session reads what it wrote"
        );
    }
    run_all(&client, &["SET freshness = 'strong'"]).await;
    assert_eq!(
        rows(&client, "SELECT count(*), sum(n), sum(total) FROM sums").await,
        ["16|400|4800"]
    );
}
