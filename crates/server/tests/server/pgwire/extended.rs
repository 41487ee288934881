//! The extended protocol.

use futures::future::join_all;
use tokio_postgres::{error::SqlState, types::Type};

use super::{
    harness::{TestServer, assert_usable, state},
    raw::{Raw, errors, kinds, message},
};

#[tokio::test]
async fn parameters_and_results_are_binary_both_ways() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    let types = [
        Type::INT8,
        Type::INT4,
        Type::FLOAT8,
        Type::TEXT,
        Type::BOOL,
        Type::BYTEA,
    ];
    let statement = client
        .prepare_typed("SELECT $1, $2, $3, $4, $5, $6", &types)
        .await
        .expect("a statement");
    let told: Vec<_> = statement
        .columns()
        .iter()
        .map(|column| column.type_().clone())
        .collect();
    assert_eq!(told, types);
    let row = client
        .query_one(
            &statement,
            &[&i64::MIN, &7_i32, &-0.5_f64, &"ä", &true, &&b"\0\xff"[..]],
        )
        .await
        .expect("a row");
    assert_eq!(row.get::<_, i64>(0), i64::MIN);
    assert_eq!(row.get::<_, i32>(1), 7);
    assert_eq!(row.get::<_, f64>(2), -0.5);
    assert_eq!(row.get::<_, &str>(3), "ä");
    assert!(row.get::<_, bool>(4));
    assert_eq!(row.get::<_, &[u8]>(5), b"\0\xff");
    let row = client.query_one(
        &statement,
        &[
            &None::<i64>,
            &None::<i32>,
            &None::<f64>,
            &None::<&str>,
            &None::<bool>,
            &None::<&[u8]>,
        ],
    );
    let row = row.await.expect("a row of NULLs");
    assert!((0..6).all(|column| {
        row.try_get::<_, Option<&[u8]>>(column)
            .is_ok_and(|value| value.is_none())
            || column != 5
    }));
}

#[tokio::test]
async fn parameter_types_are_inferred() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    super::harness::create_stream(&client, "things").await;
    client
        .batch_execute("INSERT INTO things VALUES (1, 'one'), (2, 'two'), (3, 'three')")
        .await
        .expect("rows");
    let statement = client
        .prepare("SELECT word FROM things WHERE id = $1")
        .await
        .expect("a statement");
    assert_eq!(statement.params(), [Type::INT8]);
    for (id, word) in [(1_i64, "one"), (3, "three")] {
        let row = client.query_one(&statement, &[&id]).await.expect("a row");
        assert_eq!(row.get::<_, &str>(0), word);
    }
}

#[tokio::test]
async fn a_pipeline_is_answered_in_order_and_errors_stay_apart() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    let statement = client
        .prepare_typed("SELECT 100 / $1", &[Type::INT8])
        .await
        .expect("a statement");
    let divisors: Vec<i64> = (0..50).map(|number| number % 5).collect();
    let answers = join_all(
        divisors
            .iter()
            .map(async |divisor| client.query_one(&statement, &[divisor]).await),
    )
    .await;
    for (divisor, answer) in divisors.iter().zip(answers) {
        match (divisor, answer) {
            (0, answer) => assert_eq!(
                state(&answer.expect_err("division by zero")),
                SqlState::DIVISION_BY_ZERO
            ),
            (divisor, answer) => assert_eq!(answer.expect("a row").get::<_, i64>(0), 100 / divisor),
        }
    }
}

#[tokio::test]
async fn after_an_error_everything_is_skipped_up_to_sync() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    let pipeline = [
        message(b'P', b"\0SELECT nothing\0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'Q', b"SELECT 1\0"),
        message(b'S', b""),
        message(b'P', b"\0SELECT 1\0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'D', b"P\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ];
    raw.bytes(&pipeline.concat()).await;
    let first = raw.until_ready().await;
    assert_eq!(
        (kinds(&first).as_str(), errors(&first)),
        ("EZ", vec!["42703".to_owned()])
    );
    assert_eq!(kinds(&raw.until_ready().await), "12TDCZ");
}

#[tokio::test]
async fn a_portal_gives_its_rows_in_portions() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let transaction = client.transaction().await.expect("a block");
    let portal = transaction
        .bind(
            "SELECT * FROM (VALUES (1), (2), (3), (4), (5)) AS v(n) ORDER BY n",
            &[],
        )
        .await
        .expect("a portal");
    let mut portions = Vec::new();
    for _ in 0..3 {
        let rows = transaction.query_portal(&portal, 2).await.expect("rows");
        portions.push(
            rows.iter()
                .map(|row| row.get::<_, i64>(0))
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(portions, [vec![1, 2], vec![3, 4], vec![5]]);
    assert!(
        transaction
            .query_portal(&portal, 2)
            .await
            .expect("no rows")
            .is_empty()
    );
    transaction.commit().await.expect("the end");
    assert_usable(&client).await;
}

#[tokio::test]
async fn portals_end_with_their_transaction() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    let bind = [
        message(b'P', b"s\0SELECT 1\0\0\0"),
        message(b'B', b"p\0s\0\0\0\0\0\0\0"),
        message(b'S', b""),
    ];
    raw.bytes(&bind.concat()).await;
    assert_eq!(kinds(&raw.until_ready().await), "12Z");
    raw.bytes(&[message(b'E', b"p\0\0\0\0\0"), message(b'S', b"")].concat())
        .await;
    let answers = raw.until_ready().await;
    assert_eq!(
        (kinds(&answers).as_str(), errors(&answers)),
        ("EZ", vec!["34000".to_owned()])
    );
}

#[tokio::test]
async fn names_are_checked() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    let cases: &[(&[Vec<u8>], &str)] = &[
        (
            &[
                message(b'P', b"s\0SELECT 1\0\0\0"),
                message(b'P', b"s\0SELECT 1\0\0\0"),
            ],
            "42P05",
        ),
        (&[message(b'B', b"p\0nowhere\0\0\0\0\0\0\0")], "26000"),
        (&[message(b'D', b"Pnowhere\0")], "34000"),
        (
            &[
                message(b'B', b"p\0s\0\0\0\0\0\0\0"),
                message(b'B', b"p\0s\0\0\0\0\0\0\0"),
            ],
            "42P03",
        ),
        (&[message(b'B', b"\0s\0\0\0\0\x01\0\0\0\x01x\0\0")], "08P01"),
        (&[message(b'P', b"\0SELECT 1; SELECT 2\0\0\0")], "42601"),
        (
            &[message(b'P', b"\0SELECT $1\0\0\x01\0\0\x0f\xff")],
            "42704",
        ),
    ];
    for (messages, expected) in cases {
        raw.bytes(&[messages.concat(), message(b'S', b"")].concat())
            .await;
        let answers = raw.until_ready().await;
        assert_eq!(errors(&answers), [*expected], "{}", kinds(&answers));
    }
    raw.send(b'Q', b"DEALLOCATE s\0").await;
    assert_eq!(errors(&raw.until_ready().await), [""; 0]);
    raw.send(b'Q', b"DEALLOCATE s\0").await;
    assert_eq!(errors(&raw.until_ready().await), ["26000"]);
}

#[tokio::test]
async fn flush_answers_without_sync() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    raw.bytes(
        &[
            message(b'P', b"\0SELECT 1\0\0\0"),
            message(b'D', b"S\0"),
            message(b'H', b""),
        ]
        .concat(),
    )
    .await;
    for expected in *b"1tT" {
        assert_eq!(
            raw.receive().await.map(|message| message.kind),
            Some(expected)
        );
    }
    raw.send(b'S', b"").await;
    assert_eq!(kinds(&raw.until_ready().await), "Z");
}
