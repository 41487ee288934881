//! `highwater log` on the folder of a real server: refused while it runs, and after it has stopped everything is there, in both directions.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Command, Output, Stdio},
};

use highwater_sqllogictest::ServerProcess;

use crate::server_with_stream;

/// Runs `highwater log` with that on standard input.
fn log(data: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = command(data, arguments).spawn().expect("highwater runs");
    child
        .stdin
        .take()
        .expect("standard input")
        .write_all(input.as_bytes())
        .expect("write");
    child.wait_with_output().expect("highwater ends")
}

fn command(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(ServerProcess::binary().expect("binary"));
    command
        .arg("log")
        .args(arguments)
        .env("HIGHWATER_DATA", data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a command that succeeds prints.
#[track_caller]
fn printed(data: &Path, arguments: &[&str], input: &str) -> String {
    let output = log(data, arguments, input);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test]
async fn the_log_of_a_server_can_be_read_and_written_while_it_is_stopped() {
    let (mut server, endpoint, client) = server_with_stream().await;
    client
        .batch_execute(
            "CREATE STREAM kept (k VARCHAR KEY, v INT) \
             WITH (kafka_topic = 'kept', partitions = 2, value_format = 'JSON', retention_ms = 86400000); \
             INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3)",
        )
        .await
        .expect("statements");
    let data = server.data();
    let refused = log(&data, &["topics"], "");
    let message = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        message.contains("in use") && message.contains("pid "),
        "{message}"
    );
    server.stop().await.expect("stops");

    let topics = printed(&data, &["topics"], "");
    assert!(
        topics.contains("\ns ") && topics.contains("_highwater_journal"),
        "{topics}"
    );
    let kept = printed(&data, &["describe", "kept", "--json"], "");
    assert!(
        kept.contains(r#""partitions":2,"settings":{"retention.ms":"86400000"}"#),
        "{kept}"
    );
    let records = printed(&data, &["consume", "s", "-f", r"%p@%o %k\n"], "");
    assert_eq!(records, "0@0 a\n0@1 b\n0@2 a\n");
    let last = printed(&data, &["consume", "s", "--key", "a", "--offset", "-1"], "");
    assert_eq!(last.trim(), r#"{"v":3}"#);

    // As JSON a record goes out and comes in again.
    let document = printed(&data, &["consume", "s", "--json", "-c", "1"], "");
    printed(&data, &["produce", "s", "--json"], &document);
    printed(
        &data,
        &["produce", "s", "-K", "|"],
        "c|{\"v\":40}\nc|{\"v\":2}\n",
    );
    let wrong = log(&data, &["produce", "s", "--json"], "no document\n");
    assert!(
        String::from_utf8_lossy(&wrong.stderr).contains("line 1"),
        "{wrong:?}"
    );
    let sound = printed(&data, &["verify"], "");
    assert!(sound.trim_end().ends_with("sound"), "{sound}");

    server.restart().await.expect("starts again");
    let client = endpoint.connect().await.expect("connects");
    let rows = client
        .query("SELECT k, SUM(v) FROM s GROUP BY k ORDER BY k", &[])
        .await
        .expect("query");
    let sums: Vec<(String, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(sums, [("a".into(), 5), ("b".into(), 2), ("c".into(), 42)]);
}

#[tokio::test]
async fn damage_is_found_and_named() {
    let (mut server, _endpoint, client) = server_with_stream().await;
    client
        .batch_execute("INSERT INTO s VALUES ('a', 1), ('b', 2)")
        .await
        .expect("insert");
    server.stop().await.expect("stops");
    let data = server.data();
    let segment = data.join("log/s-0/00000000000000000000.log");
    let mut bytes = fs::read(&segment).expect("segment");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&segment, bytes).expect("write");

    let found = log(&data, &["verify", "--json"], "");
    assert_eq!(found.status.code(), Some(1));
    let report = String::from_utf8_lossy(&found.stdout);
    assert!(
        report.contains(r#""severity":"damage""#) && report.contains(r#""offsets":[0,2]"#),
        "{report}"
    );
    let dumped = log(&data, &["dump", segment.to_str().expect("path")], "");
    assert_eq!(dumped.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&dumped.stdout).contains("DAMAGED"));
    // The other topics can still be used.
    assert!(
        log(&data, &["consume", "_highwater_journal"], "")
            .status
            .success()
    );
    assert_eq!(log(&data, &["consume", "s"], "").status.code(), Some(1));
}

#[tokio::test]
async fn a_closed_pipe_and_wrong_arguments_have_exit_codes() {
    let (mut server, _endpoint, _client) = server_with_stream().await;
    server.stop().await.expect("stops");
    let data = server.data();
    let lines: String = (0..200_000).map(|i| format!("line {i}\n")).collect();
    printed(&data, &["produce", "s"], &lines);
    let mut consumer = command(&data, &["consume", "s"]).spawn().expect("runs");
    let mut first = [0; 7];
    let mut out = consumer.stdout.take().expect("standard output");
    out.read_exact(&mut first).expect("read");
    drop(out);
    let ended = consumer.wait_with_output().expect("ends");
    assert_eq!(
        (&first, ended.status.code()),
        (b"line 0\n", Some(0)),
        "{ended:?}"
    );
    assert_eq!(ended.stderr, b"");
    assert_eq!(log(&data, &["consume"], "").status.code(), Some(2));
    let unknown = log(&data, &["consume", "nowhere"], "");
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("\"nowhere\""));
}
