//! A query over much history: its progress can be watched, and it holds nobody up.

use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::server_with_stream;

const ROWS: usize = 400_000;

/// What each query is doing.
pub async fn states(client: &Client) -> Vec<String> {
    let messages = client
        .simple_query("SHOW QUERIES")
        .await
        .expect("an answer");
    messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get("state").map(str::to_owned),
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_tells_how_far_it_has_caught_up_and_holds_nobody_up() {
    let (_server, endpoint, client) = server_with_stream().await;
    let sink = client
        .copy_in::<_, Bytes>("COPY s FROM STDIN WITH (FORMAT csv)")
        .await
        .expect("a COPY");
    let mut sink = std::pin::pin!(sink);
    for chunk in 0..ROWS / 10_000 {
        let mut text = String::new();
        for row in 0..10_000 {
            text.push_str(&format!("k{},{}\n", row % 1000, chunk));
        }
        sink.send(text.into()).await.expect("rows");
    }
    assert_eq!(sink.finish().await.expect("the end"), ROWS as u64);

    client
        .batch_execute("CREATE TABLE other (id INT PRIMARY KEY, v INT) WITH (partitions = 1)")
        .await
        .expect("a table");
    let creating = tokio::spawn({
        let second = endpoint.connect().await.expect("a connection");
        async move {
            second
                .batch_execute(
                    "CREATE TABLE t AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY k",
                )
                .await
        }
    });
    let mut seen = Vec::new();
    let mut beside = 0;
    while !creating.is_finished() {
        seen.extend(states(&client).await);
        beside += 1;
        client
            .batch_execute(&format!("INSERT INTO other VALUES (1, {beside})"))
            .await
            .expect("an insert");
        let row = client
            .query_one("SELECT v FROM other", &[])
            .await
            .expect("a row");
        assert_eq!(row.get::<_, i32>(0), beside);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    creating.await.expect("no panic").expect("the query starts");
    assert!(
        seen.iter().any(|state| state.starts_with("catching up: ")),
        "{seen:?}"
    );
    assert_eq!(states(&client).await, ["running"]);
    let row = client
        .query_one("SELECT count(*), sum(n)::BIGINT FROM t", &[])
        .await
        .expect("a row");
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1)),
        (1000, ROWS as i64)
    );
}
