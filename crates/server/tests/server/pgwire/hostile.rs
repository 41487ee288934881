//! Clients that send what no client should: an error or a close, never a panic, and everyone else is served meanwhile.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::{
    harness::{TestServer, assert_usable},
    raw::{Raw, V3_0, errors, kinds, message},
};

const SSL_REQUEST: u32 = (1234 << 16) | 5679;
const GSS_REQUEST: u32 = (1234 << 16) | 5680;
const CANCEL_REQUEST: u32 = (1234 << 16) | 5678;

#[tokio::test]
async fn start_up_packets_of_any_length_are_survived() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    for length in [0, 1, 4, 7, 8, 9, 10_001, -1, i32::MIN, i32::MAX] {
        let mut raw = Raw::open(server.addresses.sql).await;
        raw.bytes(&length.to_be_bytes()).await;
        raw.bytes(&V3_0.to_be_bytes()).await;
        raw.bytes(b"\0").await;
        let answers = raw.until_closed().await;
        assert!(
            answers.iter().all(|answer| answer.kind == b'E'),
            "length {length}: {}",
            kinds(&answers)
        );
    }
    let mut browser = Raw::open(server.addresses.sql).await;
    browser
        .bytes(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert_eq!(browser.until_closed().await, []);
    assert_usable(&client).await;
}

#[tokio::test]
async fn encryption_is_refused_once_and_the_session_goes_on() {
    let server = TestServer::start().await;
    let mut raw = Raw::open(server.addresses.sql).await;
    raw.startup(GSS_REQUEST, b"").await;
    assert_eq!(raw.byte().await, b'N');
    raw.startup(SSL_REQUEST, b"").await;
    assert_eq!(raw.byte().await, b'N');
    raw.startup(V3_0, b"user\0raw\0database\0highwater\0\0")
        .await;
    assert_eq!(
        raw.until_ready().await.last().map(|message| message.kind),
        Some(b'Z')
    );

    let mut twice = Raw::open(server.addresses.sql).await;
    twice.startup(SSL_REQUEST, b"").await;
    assert_eq!(twice.byte().await, b'N');
    twice.startup(SSL_REQUEST, b"").await;
    assert_eq!(errors(&twice.until_closed().await), ["08P01"]);
}

#[tokio::test]
async fn newer_protocols_are_negotiated() {
    let server = TestServer::start().await;
    let mut raw = Raw::open(server.addresses.sql).await;
    raw.startup(
        V3_0 | 9999,
        b"user\0raw\0database\0highwater\0_pq_.shiny\0on\0\0",
    )
    .await;
    let greeting = raw.until_ready().await;
    assert_eq!(greeting[0].kind, b'v');
    assert_eq!(
        greeting[0].body,
        [&(V3_0 | 2).to_be_bytes()[..], b"\0\0\0\x01_pq_.shiny\0"].concat()
    );
    let key = greeting
        .iter()
        .find(|message| message.kind == b'K')
        .expect("a key");
    assert_eq!(key.body.len(), 4 + 32);

    let mut old = Raw::open(server.addresses.sql).await;
    old.startup(2 << 16, b"user\0raw\0database\0highwater\0\0")
        .await;
    assert_eq!(errors(&old.until_closed().await), ["0A000"]);
    let mut nobody = Raw::open(server.addresses.sql).await;
    nobody.startup(V3_0, b"database\0x\0\0").await;
    assert_eq!(errors(&nobody.until_closed().await), ["28000"]);
}

#[tokio::test]
async fn every_kind_of_message_with_a_short_body_is_an_error() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    for kind in *b"QPBDECf" {
        for body in [
            &b""[..],
            b"x",
            b"\xff\xff\xff\xff",
            b"\0\0\xff\xff",
            b"\0\0\0\0\xff\xff",
        ] {
            raw.bytes(&[message(kind, body), message(b'S', b"")].concat())
                .await;
            let mut answers = raw.until_ready().await;
            if matches!(kind, b'Q' | b'f') {
                // Not part of a pipeline: the error and the Sync are answered each.
                answers.extend(raw.until_ready().await);
            }
            let codes = errors(&answers);
            assert!(
                codes.len() == 1 && ["08P01", "22021"].contains(&codes[0].as_str()),
                "{} with {body:?}: {} {codes:?}",
                kind as char,
                kinds(&answers)
            );
        }
    }
}

#[tokio::test]
async fn a_length_beyond_the_bound_ends_the_connection() {
    let server = TestServer::start().await;
    for (kind, length) in [
        (b'P', 1 << 30),
        (b'Q', i32::MAX),
        (b'S', 20_000),
        (b'Q', 3),
        (b'Q', -1),
        (b'!', 4),
    ] {
        let mut raw = Raw::session(server.addresses.sql).await;
        raw.bytes(&[&[kind][..], &i32::to_be_bytes(length)].concat())
            .await;
        let answers = raw.until_closed().await;
        assert_eq!(errors(&answers), ["08P01"], "{} {length}", kind as char);
        assert_eq!(answers[0].field(b'S').as_deref(), Some("FATAL"));
    }
}

#[tokio::test]
async fn text_that_is_not_utf8_and_zero_bytes_are_errors() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    for (sql, code) in [
        (&b"SELECT '\xff'\0"[..], "22021"),
        (b"SELECT 'a\0b'\0", "08P01"),
        (b"SELECT 1", "08P01"),
    ] {
        raw.send(b'Q', sql).await;
        assert_eq!(errors(&raw.until_ready().await), [code]);
    }
}

#[tokio::test]
async fn cancel_requests_with_a_wrong_key_do_nothing() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    let running = tokio::spawn(async move {
        client
            .query_one("SELECT count(*) FROM generate_series(1, 2000000)", &[])
            .await
            .map(|row| row.get::<_, i64>(0))
    });
    for attempt in 0_u32..200 {
        let mut raw = Raw::open(server.addresses.sql).await;
        raw.startup(
            CANCEL_REQUEST,
            &[&1_u32.to_be_bytes()[..], &attempt.to_be_bytes()].concat(),
        )
        .await;
        assert_eq!(raw.until_closed().await, []);
    }
    let mut short = Raw::open(server.addresses.sql).await;
    short.startup(CANCEL_REQUEST, b"").await;
    assert_eq!(short.until_closed().await, []);
    assert_eq!(
        running.await.expect("no panic").expect("not cancelled"),
        2_000_000
    );
}

#[tokio::test]
async fn silent_sockets_do_not_keep_clients_out() {
    let server = TestServer::start().await;
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(Raw::open(server.addresses.sql).await);
    }
    let begun = Instant::now();
    let client = timeout(Duration::from_secs(5), server.connect())
        .await
        .expect("in time");
    assert_usable(&client).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    // The oldest of them have been dropped to make room.
    assert_eq!(silent[0].until_closed().await, []);
}

#[tokio::test]
async fn a_storm_of_messages_that_nobody_reads_is_bounded() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    let storm = [
        message(b'S', b"").repeat(50_000),
        message(b'Q', b"SELECT 1\0").repeat(1_000),
    ]
    .concat();
    let sending = timeout(Duration::from_secs(10), raw.bytes(&storm)).await;
    assert_usable(&client).await;
    drop(sending);
    drop(raw);
    assert_usable(&client).await;
}

#[tokio::test]
async fn a_session_that_was_never_authenticated_runs_nothing() {
    let server = TestServer::start().await;
    let mut raw = Raw::open(server.addresses.sql).await;
    raw.send(b'Q', b"SELECT 1\0").await;
    assert_eq!(raw.until_closed().await, []);
}

#[tokio::test]
async fn prepared_statements_are_bounded() {
    let server = TestServer::start().await;
    let mut raw = Raw::session(server.addresses.sql).await;
    for hundred in 0..101 {
        let names = (0..100).map(|number| 100 * hundred + number);
        let parses = names.map(|number| message(b'P', format!("s{number}\0\0\0\0").as_bytes()));
        let mut pipeline: Vec<u8> = parses.flatten().collect();
        pipeline.extend(message(b'S', b""));
        raw.bytes(&pipeline).await;
        let expected: &[&str] = if hundred < 100 { &[] } else { &["54000"] };
        assert_eq!(errors(&raw.until_ready().await), expected);
    }
    raw.send(b'Q', b"DEALLOCATE ALL\0").await;
    assert_eq!(kinds(&raw.until_ready().await), "CZ");
    raw.bytes(&[message(b'P', b"s1\0SELECT 1\0\0\0"), message(b'S', b"")].concat())
        .await;
    assert_eq!(kinds(&raw.until_ready().await), "1Z");
}
