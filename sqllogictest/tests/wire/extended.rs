//! The extended protocol: parameters, types in binary, statements that live on, errors and what follows them.

use std::time::{Duration, UNIX_EPOCH};

use tokio_postgres::types::Type;

use crate::{assert_code, server_with_stream};

#[tokio::test]
async fn parameters_are_inferred_bound_and_checked() {
    let (_server, _endpoint, client) = server_with_stream().await;
    let insert = client
        .prepare("INSERT INTO s (k, v) VALUES ($1, $2)")
        .await
        .unwrap();
    assert_eq!(insert.params()[1], Type::INT4);
    assert!(
        [Type::TEXT, Type::VARCHAR].contains(&insert.params()[0]),
        "{:?}",
        insert.params()
    );
    for number in 0..5_i32 {
        assert_eq!(
            client
                .execute(&insert, &[&format!("k{number}"), &number])
                .await
                .unwrap(),
            1
        );
    }
    assert_eq!(
        client
            .execute(&insert, &[&"none", &None::<i32>])
            .await
            .unwrap(),
        1
    );
    let select = client
        .prepare("SELECT k, v FROM s WHERE v >= $1 ORDER BY v")
        .await
        .unwrap();
    for (least, count) in [(3_i32, 2), (0, 5), (9, 0)] {
        assert_eq!(client.query(&select, &[&least]).await.unwrap().len(), count);
    }
    let missing = client
        .query("SELECT v FROM s WHERE k = $1", &[&"none"])
        .await
        .unwrap();
    assert_eq!(missing[0].get::<_, Option<i32>>(0), None);
}

#[tokio::test]
async fn values_come_in_binary_as_their_types() {
    let (_server, _endpoint, client) = server_with_stream().await;
    let row = client
        .query_one(
            "SELECT TRUE, CAST(-2 AS SMALLINT), CAST(-3 AS INT), CAST(-4 AS BIGINT), CAST(1.5 AS REAL), \
             CAST(2.5 AS DOUBLE), CAST('text' AS VARCHAR), CAST('2024-02-29 12:00:00.125' AS TIMESTAMP), \
             CAST(NULL AS INT)",
            &[],
        )
        .await
        .unwrap();
    assert!(row.get::<_, bool>(0));
    assert_eq!(row.get::<_, i16>(1), -2);
    assert_eq!(row.get::<_, i32>(2), -3);
    assert_eq!(row.get::<_, i64>(3), -4);
    assert_eq!(row.get::<_, f32>(4), 1.5);
    assert_eq!(row.get::<_, f64>(5), 2.5);
    assert_eq!(row.get::<_, &str>(6), "text");
    let noon = UNIX_EPOCH + Duration::from_millis(1_709_208_000_125);
    assert_eq!(row.get::<_, std::time::SystemTime>(7), noon);
    assert_eq!(row.get::<_, Option<i32>>(8), None);
}

#[tokio::test]
async fn a_failed_statement_leaves_the_session_usable() {
    let (_server, _endpoint, client) = server_with_stream().await;
    assert_code(
        &client.query("SELECT nope FROM s", &[]).await.unwrap_err(),
        "42703",
    );
    assert_code(&client.prepare("SELEC 1").await.unwrap_err(), "42601");
    assert_code(
        &client
            .batch_execute("INSERT INTO s VALUES ('a', 'b')")
            .await
            .unwrap_err(),
        "22P02",
    );
    assert_eq!(client.query("SELECT k FROM s", &[]).await.unwrap().len(), 0);
}

#[tokio::test]
async fn pipelined_statements_answer_in_order() {
    let (_server, _endpoint, client) = server_with_stream().await;
    let inserts = (0..50_i32).map(|number| {
        let client = &client;
        async move {
            client
                .execute("INSERT INTO s (k, v) VALUES ('a', $1)", &[&number])
                .await
        }
    });
    for written in futures::future::join_all(inserts).await {
        assert_eq!(written.unwrap(), 1);
    }
    // Each pipelined insert has its own value.
    let row = client
        .query_one("SELECT count(*), count(DISTINCT v), sum(v) FROM s", &[])
        .await
        .unwrap();
    assert_eq!(
        (
            row.get::<_, i64>(0),
            row.get::<_, i64>(1),
            row.get::<_, i64>(2)
        ),
        (50, 50, 1225)
    );
}

#[tokio::test]
async fn several_statements_in_one_simple_query_stop_at_the_first_error() {
    let (_server, _endpoint, client) = server_with_stream().await;
    let script =
        "INSERT INTO s VALUES ('a', 1); SELECT * FROM nowhere; INSERT INTO s VALUES ('b', 2)";
    assert_code(&client.batch_execute(script).await.unwrap_err(), "42P01");
    let rows = client.query("SELECT k FROM s", &[]).await.unwrap();
    assert_eq!(
        rows.iter()
            .map(|row| row.get::<_, &str>(0))
            .collect::<Vec<_>>(),
        ["a"]
    );
}
