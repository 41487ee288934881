//! COPY with data that comes in pieces, and with data that cannot be taken.

use std::pin::pin;

use bytes::Bytes;
use futures::SinkExt;

use crate::{assert_code, server_with_stream};

#[tokio::test]
async fn copy_takes_data_cut_anywhere() {
    const ROWS: usize = 2_000;
    let (_server, _endpoint, client) = server_with_stream().await;
    let text: String = (0..ROWS)
        .map(|row| format!("\"key, {row}\",{row}\n"))
        .collect();
    let mut sink = pin!(
        client
            .copy_in("COPY s FROM STDIN WITH (FORMAT csv)")
            .await
            .unwrap()
    );
    for piece in text.as_bytes().chunks(7) {
        sink.feed(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), ROWS as u64);
    let row = client
        .query_one("SELECT count(*), sum(v), min(k) FROM s", &[])
        .await
        .unwrap();
    let total: i64 = (0..ROWS as i64).sum();
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1)),
        (ROWS as i64, total)
    );
    assert_eq!(row.get::<_, &str>(2), "key, 0");
}

#[tokio::test]
async fn a_copy_that_the_client_gives_up_writes_nothing() {
    let (_server, _endpoint, client) = server_with_stream().await;
    {
        let mut sink = pin!(
            client
                .copy_in::<_, Bytes>("COPY s FROM STDIN")
                .await
                .unwrap()
        );
        sink.send(Bytes::from_static(b"a\t1\nb\t2\n"))
            .await
            .unwrap();
        // Dropping it unfinished sends CopyFail.
    }
    assert_eq!(count(&client).await, 0);
}

#[tokio::test]
async fn a_bad_line_is_named_and_refuses_the_whole_copy() {
    let (_server, _endpoint, client) = server_with_stream().await;
    let mut sink = pin!(
        client
            .copy_in::<_, Bytes>("COPY s FROM STDIN")
            .await
            .unwrap()
    );
    sink.send(Bytes::from_static(b"a\t1\nb\ttwo\n"))
        .await
        .unwrap();
    let error = sink.finish().await.unwrap_err();
    assert_code(&error, "22P02");
    let message = error.as_db_error().unwrap().to_string();
    assert!(message.contains("\"two\""), "{message}");
    let place = error
        .as_db_error()
        .unwrap()
        .where_()
        .unwrap_or_default()
        .to_owned()
        + &message;
    assert!(place.contains('2'), "the line is not named: {place}");
    assert_eq!(count(&client).await, 0);
}

async fn count(client: &tokio_postgres::Client) -> i64 {
    client
        .query_one("SELECT count(*) FROM s", &[])
        .await
        .unwrap()
        .get(0)
}
