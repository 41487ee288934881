//! Rows that come as they happen, and every way to end them.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt};
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls, error::SqlState, types::ToSql};

use super::{
    harness::{PATIENCE, TestServer, assert_usable, create_stream, from_the_beginning, state},
    raw::{Raw, V3_0, errors, kinds, message},
};

/// No parameters.
fn none() -> Vec<&'static (dyn ToSql + Sync)> {
    Vec::new()
}

async fn insert(client: &Client, stream: &str, id: i64) {
    client
        .batch_execute(&format!("INSERT INTO {stream} VALUES ({id}, 'word')"))
        .await
        .expect("a row");
}

#[tokio::test]
async fn a_row_shows_as_soon_as_it_is_inserted() {
    let server = TestServer::start().await;
    let (reader, writer) = (server.connect().await, server.connect().await);
    create_stream(&writer, "events").await;
    from_the_beginning(&reader).await;
    insert(&writer, "events", 0).await;
    let rows = reader
        .query_raw("SELECT id FROM events EMIT CHANGES", none())
        .await
        .expect("a push query");
    let mut rows = pin!(rows);
    for id in 0..5 {
        let inserted = Instant::now();
        if id > 0 {
            insert(&writer, "events", id).await;
        }
        let row = timeout(PATIENCE, rows.next())
            .await
            .expect("in time")
            .expect("no end")
            .expect("a row");
        assert_eq!(row.get::<_, i64>(0), id);
        assert!(
            inserted.elapsed() < Duration::from_secs(5),
            "row {id} took {:?}",
            inserted.elapsed()
        );
    }
}

#[tokio::test]
async fn cancel_ends_a_push_query_and_the_session_goes_on() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    create_stream(&client, "events").await;
    let rows = client
        .query_raw("SELECT id FROM events EMIT CHANGES", none())
        .await
        .expect("a push query");
    let cancel = client.cancel_token();
    let asked = Instant::now();
    cancel.cancel_query(NoTls).await.expect("a cancel request");
    let error = timeout(PATIENCE, rows.try_collect::<Vec<_>>())
        .await
        .expect("in time")
        .expect_err("cancelled");
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "it took {:?}",
        asked.elapsed()
    );
    assert_eq!(state(&error), SqlState::QUERY_CANCELED);
    assert!(
        error
            .as_db_error()
            .expect("from the server")
            .message()
            .contains("user request")
    );
    assert_usable(&client).await;
    // A request that comes while nothing runs is forgotten.
    cancel.cancel_query(NoTls).await.expect("a cancel request");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_usable(&client).await;
}

#[tokio::test]
async fn a_limited_execute_suspends_when_nothing_more_is_there() {
    let server = TestServer::start().await;
    let (mut reader, writer) = (server.connect().await, server.connect().await);
    create_stream(&writer, "events").await;
    from_the_beginning(&reader).await;
    insert(&writer, "events", 0).await;
    let block = reader.transaction().await.expect("a block");
    let portal = block
        .bind("SELECT id FROM events EMIT CHANGES", &[])
        .await
        .expect("a portal");
    for id in 0..3 {
        if id > 0 {
            insert(&writer, "events", id).await;
        }
        let rows = timeout(PATIENCE, block.query_portal(&portal, 10))
            .await
            .expect("in time")
            .expect("rows");
        assert_eq!(
            rows.iter()
                .map(|row| row.get::<_, i64>(0))
                .collect::<Vec<_>>(),
            [id]
        );
    }
}

#[tokio::test]
async fn a_limit_ends_a_push_query() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    create_stream(&client, "events").await;
    from_the_beginning(&client).await;
    client
        .batch_execute("INSERT INTO events VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        .await
        .expect("rows");
    let rows = timeout(
        PATIENCE,
        client.query("SELECT id FROM events EMIT CHANGES LIMIT 2", &[]),
    )
    .await;
    assert_eq!(rows.expect("in time").expect("rows").len(), 2);
    assert_usable(&client).await;
}

#[tokio::test]
async fn pull_queries_see_what_is_written_after_a_push_query_ended() {
    let server = TestServer::start().await;
    let (reader, writer) = (server.connect().await, server.connect().await);
    create_stream(&writer, "events").await;
    from_the_beginning(&reader).await;
    insert(&writer, "events", 0).await;
    let query = reader.query("SELECT id FROM events EMIT CHANGES LIMIT 1", &[]);
    let rows = timeout(PATIENCE, query)
        .await
        .expect("in time")
        .expect("a row");
    assert_eq!(rows.len(), 1);
    insert(&writer, "events", 1).await;
    let counted = timeout(
        PATIENCE,
        writer.query_one("SELECT count(*) FROM events", &[]),
    );
    let counted = counted.await.expect("in time").expect("a count");
    assert_eq!(counted.get::<_, i64>(0), 2);
}

#[tokio::test]
async fn pipelined_messages_wait_for_the_query_to_end() {
    let server = TestServer::start().await;
    let writer = server.connect().await;
    create_stream(&writer, "events").await;
    let mut raw = Raw::session(server.addresses.sql).await;
    raw.send(b'Q', b"SET 'auto.offset.reset' = 'earliest'\0")
        .await;
    assert_eq!(kinds(&raw.until_ready().await), "CZ");
    raw.bytes(
        &[
            message(b'Q', b"SELECT id FROM events EMIT CHANGES LIMIT 1\0"),
            message(b'Q', b"SELECT 7\0"),
        ]
        .concat(),
    )
    .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    insert(&writer, "events", 5).await;
    let first = raw.until_ready().await;
    assert!(kinds(&first).ends_with("TDCZ"), "{}", kinds(&first));
    assert_eq!(kinds(&raw.until_ready().await), "TDCZ");
}

#[tokio::test]
async fn a_client_that_goes_away_frees_its_session() {
    let settings = highwater_server::config::Settings {
        max_connections: std::num::NonZeroUsize::new(2),
        ..Default::default()
    };
    let server = TestServer::start_with(settings).await;
    let writer = server.connect().await;
    create_stream(&writer, "events").await;
    for _ in 0..5 {
        let mut raw = Raw::session(server.addresses.sql).await;
        raw.send(b'Q', b"SELECT id FROM events EMIT CHANGES\0")
            .await;
        while raw.receive().await.expect("a message").kind != b'T' {}
        // Both sessions are taken.
        let mut refused = Raw::open(server.addresses.sql).await;
        refused
            .startup(V3_0, b"user\0raw\0database\0highwater\0\0")
            .await;
        assert_eq!(errors(&refused.until_closed().await), ["53300"]);
        drop(raw);
        // The query never writes anything, so only a watched socket shows that its client is gone.
        let freed = async {
            loop {
                let mut next = Raw::open(server.addresses.sql).await;
                next.startup(V3_0, b"user\0raw\0database\0highwater\0\0")
                    .await;
                match next.receive().await.map(|message| message.kind) {
                    Some(b'R') => break,
                    _ => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        timeout(Duration::from_secs(5), freed)
            .await
            .expect("the session ends with its client");
        // That one leaves as well.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn the_servers_end_is_told_to_clients() {
    let server = TestServer::start().await;
    let writer = server.connect().await;
    create_stream(&writer, "events").await;
    let mut idle = Raw::session(server.addresses.sql).await;
    let mut busy = Raw::session(server.addresses.sql).await;
    busy.send(b'Q', b"SELECT id FROM events EMIT CHANGES\0")
        .await;
    while busy.receive().await.expect("a message").kind != b'T' {}
    server.begin_stop();
    for raw in [&mut idle, &mut busy] {
        let last = raw.until_closed().await;
        assert_eq!(errors(&last), ["57P01"]);
        assert_eq!(last[0].field(b'S').as_deref(), Some("FATAL"));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_held_by_back_pressure() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    // Some 80 MB of rows: far more than sockets and buffers hold.
    let query = b"SELECT repeat('x', 1000) FROM generate_series(1, 80000)\0";
    raw.send(b'Q', query).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let client = server.connect().await;
    assert_usable(&client).await;
    let answers = raw.until_ready().await;
    assert_eq!(
        answers
            .iter()
            .filter(|message| message.kind == b'D')
            .count(),
        80_000
    );
}
