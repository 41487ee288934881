//! COPY FROM STDIN and TO STDOUT.

use std::pin::pin;

use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use tokio_postgres::Client;

use crate::support::{TestServer, rows, run_all};

async fn copy_in(
    client: &Client,
    statement: &str,
    pieces: &[&str],
) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in(statement).await?;
    let mut sink = pin!(sink);
    for piece in pieces {
        sink.send(Bytes::copy_from_slice(piece.as_bytes())).await?;
    }
    sink.finish().await
}

async fn with_measures() -> (TestServer, Client) {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &["CREATE STREAM measures (place VARCHAR KEY, celsius DOUBLE, note VARCHAR) WITH (value_format = 'JSON')"],
    )
    .await;
    (server, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn text_and_csv_in_pieces() {
    let (_server, client) = with_measures().await;
    let text = copy_in(
        &client,
        "COPY measures FROM STDIN",
        &["oslo\t-4.", "5\tsnow\nrome\t1", "5\t\\N\n"],
    )
    .await;
    assert_eq!(text.expect("copies"), 2);
    let csv = copy_in(
        &client,
        "COPY measures (note, place) FROM STDIN WITH (FORMAT csv, HEADER)",
        &["note,place\n\"hot, ", "dry\",cairo\n,bern"],
    );
    assert_eq!(csv.await.expect("copies"), 2);
    assert_eq!(
        rows(&client, "SELECT * FROM measures ORDER BY place").await,
        [
            "bern|NULL|NULL",
            "cairo|NULL|hot, dry",
            "oslo|-4.5|snow",
            "rome|15|NULL"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_line_is_named_and_nothing_behind_it_is_written() {
    let (_server, client) = with_measures().await;
    let failed = copy_in(
        &client,
        "COPY measures FROM STDIN CSV",
        &["oslo,1,a\nrome,warm,b\nbern,2,c\n"],
    )
    .await;
    let error = failed.expect_err("no number");
    let error = error.as_db_error().expect("from the server");
    assert_eq!(error.code().code(), "22P02");
    let detail = error.detail().unwrap_or_default();
    assert!(
        detail.contains("line 2") && detail.contains("\"celsius\""),
        "{detail}"
    );
    let narrow = copy_in(&client, "COPY measures FROM STDIN CSV", &["oslo,1\n"])
        .await
        .expect_err("too narrow");
    assert_eq!(narrow.code().map(|code| code.code()), Some("22P04"));
    assert_eq!(rows(&client, "SELECT count(*) FROM measures").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_rows_arrive_once_and_can_be_read_at_once() {
    let (_server, client) = with_measures().await;
    run_all(
        &client,
        &["CREATE TABLE means AS SELECT place, count(*) AS n FROM measures GROUP BY place"],
    )
    .await;
    let lines: String = (0..30_000)
        .map(|number| format!("p{},{number},\n", number % 7))
        .collect();
    let pieces: Vec<&str> = lines
        .as_bytes()
        .chunks(1 << 14)
        .map(|piece| std::str::from_utf8(piece).expect("ASCII"))
        .collect();
    assert_eq!(
        copy_in(&client, "COPY measures FROM STDIN CSV", &pieces)
            .await
            .expect("copies"),
        30_000
    );
    assert_eq!(
        rows(&client, "SELECT sum(n), count(*) FROM means").await,
        ["30000|7"]
    );
    assert_eq!(
        rows(&client, "SELECT count(*), sum(celsius) FROM measures").await,
        ["30000|449985000"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relation_and_a_query_go_out() {
    let (_server, client) = with_measures().await;
    run_all(&client, &["INSERT INTO measures VALUES ('oslo', 1, 'a,b')"]).await;
    let whole = |statement: &'static str| {
        let client = &client;
        async move {
            let stream = client.copy_out(statement).await.expect("starts");
            let bytes: Vec<Bytes> = stream.try_collect().await.expect("ends");
            String::from_utf8(bytes.concat()).expect("text")
        }
    };
    assert_eq!(
        whole("COPY measures (place, note) TO STDOUT").await,
        "oslo\ta,b\n"
    );
    assert_eq!(
        whole(
            "COPY (SELECT place, note, celsius FROM measures) TO STDOUT WITH (FORMAT csv, HEADER)"
        )
        .await,
        "place,note,celsius\noslo,\"a,b\",1\n"
    );
}
