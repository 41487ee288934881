//! SQL cursors over push queries, as psql's FETCH_COUNT and drivers' named cursors use them.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use tokio_postgres::SimpleQueryMessage;

use crate::server_with_stream;

#[tokio::test]
async fn fetch_waits_for_one_row_and_not_for_all_it_asked_for() {
    let (_server, endpoint, writer) = server_with_stream().await;
    let reader = endpoint.connect().await.unwrap();
    reader.batch_execute("BEGIN").await.unwrap();
    reader
        .batch_execute("DECLARE c NO SCROLL CURSOR FOR SELECT v FROM s EMIT CHANGES")
        .await
        .unwrap();
    let write = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        writer
            .batch_execute("INSERT INTO s VALUES ('a', 7)")
            .await
            .unwrap();
        Instant::now()
    };
    let fetch = async {
        let rows = fetch(&reader, "FETCH FORWARD 100 FROM c").await;
        (rows, Instant::now())
    };
    let ((rows, fetched), written) = timeout(Duration::from_secs(20), async {
        tokio::join!(fetch, write)
    })
    .await
    .unwrap();
    assert_eq!(rows, ["7"]);
    // The row can be there before the INSERT is acknowledged to the writer, but not before it was sent.
    assert!(
        fetched < written + Duration::from_secs(1),
        "the row came {:?} after its INSERT",
        fetched - written
    );
    writer
        .batch_execute("INSERT INTO s VALUES ('a', 8), ('a', 9)")
        .await
        .unwrap();
    assert_eq!(fetch_all(&reader, 2).await, ["8", "9"]);
    reader.batch_execute("CLOSE c; COMMIT").await.unwrap();
}

#[tokio::test]
async fn no_row_is_lost_between_fetches() {
    let (_server, endpoint, writer) = server_with_stream().await;
    let reader = endpoint.connect().await.unwrap();
    reader
        .batch_execute("DECLARE c CURSOR WITH HOLD FOR SELECT v FROM s EMIT CHANGES")
        .await
        .unwrap();
    let wanted: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    for chunk in wanted.chunks(10) {
        let rows: Vec<String> = chunk
            .iter()
            .map(|number| format!("('a', {number})"))
            .collect();
        writer
            .batch_execute(&format!("INSERT INTO s VALUES {}", rows.join(", ")))
            .await
            .unwrap();
    }
    let mut got = Vec::new();
    while got.len() < wanted.len() {
        let rows = fetch(&reader, "FETCH 3 FROM c").await;
        assert!(!rows.is_empty() && rows.len() <= 3, "{rows:?}");
        got.extend(rows);
    }
    assert_eq!(got, wanted);
}

/// Fetches until there are `count` rows.
async fn fetch_all(client: &tokio_postgres::Client, count: usize) -> Vec<String> {
    let mut rows = Vec::new();
    while rows.len() < count {
        rows.extend(fetch(client, "FETCH 100 FROM c").await);
    }
    rows
}

async fn fetch(client: &tokio_postgres::Client, sql: &str) -> Vec<String> {
    let messages = timeout(Duration::from_secs(20), client.simple_query(sql))
        .await
        .unwrap()
        .unwrap();
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap().to_owned()),
        _ => None,
    });
    rows.collect()
}
