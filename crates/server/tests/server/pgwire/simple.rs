//! The simple protocol.

use tokio_postgres::{SimpleQueryMessage, error::SqlState};

use super::{
    harness::{TestServer, assert_usable, state},
    raw::{Raw, errors, kinds},
};

#[tokio::test]
async fn statements_are_answered_in_turn() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    let answers = client
        .simple_query("SELECT 1 AS a, NULL AS b; ; SELECT 'x' AS c WHERE false")
        .await
        .expect("answers");
    let mut rows = Vec::new();
    let mut completed = Vec::new();
    for answer in &answers {
        match answer {
            SimpleQueryMessage::Row(row) => rows.push((row.get(0), row.get(1))),
            SimpleQueryMessage::CommandComplete(count) => completed.push(*count),
            _ => {}
        }
    }
    assert_eq!(rows, [(Some("1"), None)]);
    assert_eq!(completed, [1, 0]);
}

#[tokio::test]
async fn the_first_error_ends_a_text_of_statements() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    raw.send(b'Q', b"SELECT 1; SELECT nothing; SELECT 2\0")
        .await;
    let answers = raw.until_ready().await;
    assert_eq!(kinds(&answers), "TDCEZ");
    assert_eq!(errors(&answers), ["42703"]);
    // Nothing runs when one of them cannot be parsed.
    raw.send(b'Q', b"SELECT 1; SELEC 2\0").await;
    let answers = raw.until_ready().await;
    assert_eq!(kinds(&answers), "EZ");
    assert_eq!(errors(&answers), ["42601"]);
    assert_eq!(answers[0].field(b'P').as_deref(), Some("11"));
}

#[tokio::test]
async fn an_empty_text_is_a_ping() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    for empty in [&b"\0"[..], b";\0", b" -- nothing\n\0"] {
        raw.send(b'Q', empty).await;
        assert_eq!(kinds(&raw.until_ready().await), "IZ");
    }
}

#[tokio::test]
async fn a_failed_block_takes_nothing_but_its_end() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    let mut run = async |sql: &str| {
        raw.send(b'Q', format!("{sql}\0").as_bytes()).await;
        let answers = raw.until_ready().await;
        let status = answers.last().map(|ready| ready.body[0] as char);
        (errors(&answers).pop(), status)
    };
    assert_eq!(run("BEGIN").await, (None, Some('T')));
    assert_eq!(
        run("SELECT nothing").await,
        (Some("42703".to_owned()), Some('E'))
    );
    assert_eq!(run("SELECT 1").await, (Some("25P02".to_owned()), Some('E')));
    assert_eq!(run("ROLLBACK").await, (None, Some('I')));
    assert_eq!(run("SELECT 1").await, (None, Some('I')));
}

#[tokio::test]
async fn a_changed_parameter_is_reported() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    raw.send(b'Q', b"SET TimeZone = 'Asia/Kolkata'\0").await;
    let answers = raw.until_ready().await;
    assert_eq!(kinds(&answers), "CSZ");
    assert_eq!(answers[1].body, b"TimeZone\0Asia/Kolkata\0");
    raw.send(b'Q', b"SET TimeZone = 'Asia/Kolkata'\0").await;
    assert_eq!(kinds(&raw.until_ready().await), "CZ");
}

#[tokio::test]
async fn statement_timeout_ends_a_statement() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    super::harness::create_stream(&client, "quiet").await;
    client
        .batch_execute("SET statement_timeout = '200ms'")
        .await
        .expect("a setting");
    let error = client
        .simple_query("SELECT * FROM quiet EMIT CHANGES")
        .await
        .expect_err("a timeout");
    assert_eq!(state(&error), SqlState::QUERY_CANCELED);
    assert!(
        error
            .as_db_error()
            .expect("from the server")
            .message()
            .contains("statement timeout")
    );
    assert_usable(&client).await;
}
