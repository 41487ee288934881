//! COPY in both directions.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use futures::{SinkExt, StreamExt, TryStreamExt};
use tokio::time::timeout;
use tokio_postgres::Client;

use super::{
    harness::{PATIENCE, TestServer, assert_usable, create_stream, from_the_beginning, state},
    raw::{Raw, errors, kinds, message},
};

async fn copy_out(client: &Client, sql: &str) -> String {
    let data = client
        .copy_out(sql)
        .await
        .expect("a copy")
        .try_collect::<Vec<Bytes>>()
        .await
        .expect("data");
    String::from_utf8(data.concat()).expect("UTF-8")
}

#[tokio::test]
async fn what_goes_in_comes_out() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    create_stream(&client, "words").await;
    let sink = client
        .copy_in("COPY words FROM STDIN WITH (FORMAT csv)")
        .await
        .expect("a copy");
    let mut sink = pin!(sink);
    // Cut in the middle of a quoted field.
    for piece in ["1,one\n2,\"a,", "b\"\n3,\n4,\"\"\n"] {
        sink.send(Bytes::from(piece)).await.expect("a piece");
    }
    assert_eq!(sink.finish().await.expect("the end"), 4);
    assert_eq!(
        copy_out(&client, "COPY (SELECT * FROM words ORDER BY id) TO STDOUT").await,
        "1\tone\n2\ta,b\n3\t\\N\n4\t\n"
    );
    assert_eq!(
        copy_out(
            &client,
            "COPY (SELECT * FROM words ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER)"
        )
        .await,
        "id,word\n1,one\n2,\"a,b\"\n3,\n4,\"\"\n"
    );
    assert_usable(&client).await;
}

#[tokio::test]
async fn a_copy_that_the_client_gives_up_writes_nothing() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    let client = server.connect().await;
    create_stream(&client, "words").await;
    raw.send(b'Q', b"COPY words FROM STDIN\0").await;
    assert_eq!(raw.receive().await.map(|message| message.kind), Some(b'G'));
    raw.bytes(
        &[
            message(b'd', b"1\tone\n"),
            message(b'f', b"changed my mind\0"),
        ]
        .concat(),
    )
    .await;
    let answers = raw.until_ready().await;
    assert_eq!(
        (kinds(&answers).as_str(), errors(&answers)),
        ("EZ", vec!["57014".to_owned()])
    );
    let row = client
        .query_one("SELECT count(*) FROM words", &[])
        .await
        .expect("a count");
    assert_eq!(row.get::<_, i64>(0), 0);
}

#[tokio::test]
async fn bad_data_ends_a_copy_and_the_session_goes_on() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    let client = server.connect().await;
    create_stream(&client, "words").await;
    raw.send(b'Q', b"COPY words FROM STDIN\0").await;
    assert_eq!(raw.receive().await.map(|message| message.kind), Some(b'G'));
    // The client sends on before it sees the error; what is left of the copy is ignored.
    let pieces = [
        message(b'd', b"x\tone\n"),
        message(b'd', b"2\ttwo\n"),
        message(b'c', b""),
        message(b'Q', b"SELECT 1\0"),
    ];
    raw.bytes(&pieces.concat()).await;
    let answers = raw.until_ready().await;
    assert_eq!(errors(&answers).len(), 1, "{}", kinds(&answers));
    assert_eq!(kinds(&raw.until_ready().await), "TDCZ");
}

#[tokio::test]
async fn rows_of_a_push_query_come_one_by_one() {
    let server = TestServer::start().await;
    let (reader, writer) = (server.connect().await, server.connect().await);
    create_stream(&writer, "words").await;
    from_the_beginning(&reader).await;
    let rows = reader
        .copy_out("COPY (SELECT id FROM words EMIT CHANGES) TO STDOUT")
        .await
        .expect("a copy");
    let mut rows = pin!(rows);
    for id in 1..=3 {
        writer
            .batch_execute(&format!("INSERT INTO words VALUES ({id}, 'w')"))
            .await
            .expect("a row");
        let line = timeout(PATIENCE, rows.next())
            .await
            .expect("in time")
            .expect("no end")
            .expect("a line");
        assert_eq!(line, format!("{id}\n"));
    }
    reader
        .cancel_token()
        .cancel_query(tokio_postgres::NoTls)
        .await
        .expect("a cancel request");
    let end = timeout(Duration::from_secs(5), rows.next())
        .await
        .expect("in time")
        .expect("an error");
    assert_eq!(state(&end.expect_err("cancelled")).code(), "57014");
}
