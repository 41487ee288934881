//! Push queries: each row at once, by every way of reading; their ends.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt};
use highwater_sqllogictest::{Endpoint, Watch};
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls, types::ToSql};

use crate::{assert_code, process::metric, server_with_stream};

/// What the product promises from before an INSERT is sent until its row is at the client.
const PROMISED: Duration = Duration::from_millis(100);
/// How many rows are timed. The median is held to the promise: one late row on a busy test machine is the machine's doing.
const TIMED: usize = 31;
/// For what must happen but is not timed.
const PATIENCE: Duration = Duration::from_secs(20);

const QUERY: &str = "SELECT k, v FROM s EMIT CHANGES";

#[tokio::test]
async fn a_simple_query_shows_a_row_within_100_ms_of_its_insert() {
    let (_server, endpoint, writer) = server_with_stream().await;
    let mut watch = Watch::start(&endpoint, QUERY).await.unwrap();
    let mut times = Vec::new();
    for number in 0..TIMED {
        let began = Instant::now();
        insert(&writer, "a", number as i32).await;
        let row = watch
            .next()
            .await
            .unwrap()
            .expect("an endless query does not end");
        times.push(began.elapsed());
        assert_eq!(row, ["a", &number.to_string()]);
    }
    assert_prompt(times);
}

#[tokio::test]
async fn the_extended_protocol_shows_a_row_within_100_ms_of_its_insert() {
    let (_server, endpoint, writer) = server_with_stream().await;
    let reader = endpoint.connect().await.unwrap();
    let rows = reader
        .query_raw(QUERY, Vec::<&(dyn ToSql + Sync)>::new())
        .await
        .unwrap();
    let mut rows = pin!(rows);
    let mut times = Vec::new();
    for number in 0..TIMED {
        let began = Instant::now();
        insert(&writer, "a", number as i32).await;
        let row = timeout(PATIENCE, rows.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        times.push(began.elapsed());
        assert_eq!(
            (row.get::<_, &str>(0), row.get::<_, i32>(1)),
            ("a", number as i32)
        );
    }
    assert_prompt(times);
}

#[tokio::test]
async fn copy_to_stdout_shows_a_row_within_100_ms_of_its_insert() {
    let (_server, endpoint, writer) = server_with_stream().await;
    let reader = endpoint.connect().await.unwrap();
    let lines = reader
        .copy_out("COPY (SELECT k, v FROM s EMIT CHANGES) TO STDOUT")
        .await
        .unwrap();
    let mut lines = pin!(lines);
    let mut times = Vec::new();
    for number in 0..TIMED {
        let began = Instant::now();
        insert(&writer, "a", number as i32).await;
        let line = timeout(PATIENCE, lines.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        times.push(began.elapsed());
        assert_eq!(line, format!("a\t{number}\n"));
    }
    assert_prompt(times);
}

#[tokio::test]
async fn a_table_sends_its_change_within_100_ms_of_the_insert() {
    let (_server, endpoint, writer) = server_with_stream().await;
    writer
        .batch_execute("CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k")
        .await
        .unwrap();
    let mut watch = Watch::start(&endpoint, "SELECT k, n FROM t EMIT CHANGES")
        .await
        .unwrap();
    let mut times = Vec::new();
    for count in 1..=TIMED {
        let began = Instant::now();
        insert(&writer, "a", 0).await;
        if count > 1 {
            let old = (count - 1).to_string();
            assert_eq!(
                watch.next().await.unwrap().unwrap(),
                ["update_before", "a", &old]
            );
        }
        let row = watch
            .next()
            .await
            .unwrap()
            .expect("an endless query does not end");
        times.push(began.elapsed());
        let operation = if count == 1 { "insert" } else { "update_after" };
        assert_eq!(row, [operation, "a", &count.to_string()]);
    }
    assert_prompt(times);
}

#[tokio::test]
async fn every_record_comes_once_and_in_order_under_load() {
    const ROWS: i32 = 3_000;
    let (_server, endpoint, writer) = server_with_stream().await;
    let mut watch = Watch::start(&endpoint, QUERY).await.unwrap();
    let load = tokio::spawn(async move {
        for first in (0..ROWS).step_by(30) {
            let rows: Vec<String> = (first..first + 30)
                .map(|number| format!("('a', {number})"))
                .collect();
            writer
                .batch_execute(&format!("INSERT INTO s VALUES {}", rows.join(", ")))
                .await
                .unwrap();
        }
    });
    for number in 0..ROWS {
        assert_eq!(
            watch.next().await.unwrap().unwrap(),
            ["a", &number.to_string()]
        );
    }
    load.await.unwrap();
    assert!(
        watch.is_quiet_for(Duration::from_millis(200)).await,
        "a row too many"
    );
}

#[tokio::test]
async fn cancel_ends_a_push_query_and_the_session_goes_on() {
    let (_server, endpoint, writer) = server_with_stream().await;
    let watch = Watch::start(&endpoint, QUERY).await.unwrap();
    insert(&writer, "a", 1).await;
    let began = Instant::now();
    // `cancel` also runs a statement on the session afterwards.
    let answer = watch.cancel().await.unwrap();
    assert_eq!(answer.code(), Some("57014"), "{answer}");
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "cancelling took {:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn cancel_ends_a_push_query_of_the_extended_protocol() {
    let (_server, endpoint, _writer) = server_with_stream().await;
    let reader = endpoint.connect().await.unwrap();
    let rows = reader
        .query_raw(QUERY, Vec::<&(dyn ToSql + Sync)>::new())
        .await
        .unwrap();
    reader.cancel_token().cancel_query(NoTls).await.unwrap();
    let error = timeout(PATIENCE, rows.try_collect::<Vec<_>>())
        .await
        .unwrap()
        .unwrap_err();
    assert_code(&error, "57014");
    assert_eq!(one(&reader).await, 1);
}

#[tokio::test]
async fn statement_timeout_ends_a_push_query() {
    let (_server, endpoint, _writer) = server_with_stream().await;
    let reader = endpoint.connect().await.unwrap();
    reader
        .batch_execute("SET statement_timeout = 200")
        .await
        .unwrap();
    let error = timeout(PATIENCE, reader.simple_query(QUERY))
        .await
        .unwrap()
        .unwrap_err();
    assert_code(&error, "57014");
    assert_eq!(one(&reader).await, 1);
}

#[tokio::test]
async fn a_disconnect_ends_a_push_query() {
    let (_server, endpoint, _writer) = server_with_stream().await;
    await_connections(&endpoint, 1.0).await;
    let watches = [
        Watch::start(&endpoint, QUERY).await.unwrap(),
        Watch::start(&endpoint, QUERY).await.unwrap(),
    ];
    await_connections(&endpoint, 3.0).await;
    drop(watches);
    // Nothing is inserted: the server must notice without a failing write.
    await_connections(&endpoint, 1.0).await;
}

/// A session's pull queries wait until what it wrote has been read by all who read it. What nobody reads any more is nothing to wait for.
#[tokio::test]
async fn a_push_query_that_has_gone_keeps_nobody_waiting() {
    let (_server, endpoint, writer) = server_with_stream().await;
    writer
        .batch_execute(
            "CREATE STREAM other (k VARCHAR KEY, v INT) \
             WITH (kafka_topic = 'other', partitions = 1, value_format = 'JSON'); \
             CREATE TABLE counts AS SELECT k, COUNT(*) AS n FROM other GROUP BY k; \
             INSERT INTO other VALUES ('a', 1); \
             SET statement_timeout = 2000",
        )
        .await
        .unwrap();
    let observer = endpoint.connect().await.unwrap();
    for is_cancelled in [true, false] {
        let mut watch = Watch::start(&endpoint, QUERY).await.unwrap();
        // From this row's step on, readers know how far the topic is read.
        insert(&writer, "a", 1).await;
        watch.next().await.unwrap().unwrap();
        await_sources(&observer, 1).await;
        if is_cancelled {
            watch.cancel().await.unwrap();
        } else {
            drop(watch);
        }
        await_sources(&observer, 0).await;
        // No step takes this row.
        insert(&writer, "a", 2).await;
        let count = writer.query_one("SELECT n FROM counts", &[]).await.unwrap();
        assert_eq!(count.get::<_, i64>(0), 1);
    }
}

#[tokio::test]
async fn limit_ends_a_push_query_when_its_rows_have_come() {
    let (_server, endpoint, writer) = server_with_stream().await;
    let mut watch = Watch::start(&endpoint, "SELECT v FROM s EMIT CHANGES LIMIT 2")
        .await
        .unwrap();
    for number in 0..5 {
        insert(&writer, "a", number).await;
    }
    assert_eq!(watch.next().await.unwrap().unwrap(), ["0"]);
    assert_eq!(watch.next().await.unwrap().unwrap(), ["1"]);
    assert_eq!(watch.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_suspended_portal_returns_as_soon_as_there_is_a_row() {
    let (_server, endpoint, writer) = server_with_stream().await;
    let mut reader = endpoint.connect().await.unwrap();
    let transaction = reader.transaction().await.unwrap();
    let portal = transaction.bind(QUERY, &[]).await.unwrap();
    let first = transaction.query_portal(&portal, 10);
    let write = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        insert(&writer, "a", 1).await;
    };
    let (rows, ()) = timeout(PATIENCE, async { tokio::join!(first, write) })
        .await
        .unwrap();
    assert_eq!(rows.unwrap().len(), 1);
    insert(&writer, "a", 2).await;
    let rows = timeout(PATIENCE, transaction.query_portal(&portal, 10))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        rows.iter()
            .map(|row| row.get::<_, i32>("v"))
            .collect::<Vec<_>>(),
        [2]
    );
}

#[tokio::test]
async fn psql_is_told_how_to_watch_before_the_rows() {
    use tokio_postgres::AsyncMessage;

    let (_server, endpoint, _writer) = server_with_stream().await;
    let parameters = format!(
        "host=127.0.0.1 port={} user=highwater dbname=highwater application_name=psql",
        endpoint.port
    );
    let (client, mut connection) = tokio_postgres::connect(&parameters, NoTls).await.unwrap();
    let (send, mut notices) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = pin!(futures::stream::poll_fn(
            move |context| connection.poll_message(context)
        ));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notice(notice) = message {
                send.send(notice).unwrap();
            }
        }
    });
    let mut rows = pin!(client.simple_query_raw(QUERY).await.unwrap());
    timeout(PATIENCE, rows.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let notice = timeout(PATIENCE, notices.recv()).await.unwrap().unwrap();
    let text = format!("{} {}", notice.message(), notice.hint().unwrap_or_default());
    assert!(
        text.contains("COPY") && text.contains("FETCH_COUNT"),
        "{text}"
    );
}

async fn insert(client: &Client, key: &str, value: i32) {
    client
        .batch_execute(&format!("INSERT INTO s VALUES ('{key}', {value})"))
        .await
        .unwrap();
}

async fn one(client: &Client) -> i64 {
    client
        .query_one("SELECT CAST(1 AS BIGINT)", &[])
        .await
        .unwrap()
        .get(0)
}

/// Waits until so many partitions of the stream's topic are read by queries.
async fn await_sources(client: &Client, wanted: i64) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let sources = "SELECT COUNT(*) FROM hw_catalog.sources WHERE topic = 's'";
        let read: i64 = client.query_one(sources, &[]).await.unwrap().get(0);
        if read == wanted {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{read} partitions are read instead of {wanted}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the server has so many connections; their ends reach it a little later than their clients know of them.
async fn await_connections(endpoint: &Endpoint, wanted: f64) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let open = metric(endpoint, "highwater_pgwire_connections").await;
        if open == wanted {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{open} connections are open instead of {wanted}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[track_caller]
fn assert_prompt(mut times: Vec<Duration>) {
    times.sort_unstable();
    let median = times[times.len() / 2];
    assert!(median < PROMISED, "median {median:?}, all: {times:?}");
}
