//! Input that is meant to hurt: each statement and each record ends in an error or a result, within a time and an amount of memory, and the
//! server answers others meanwhile.

use std::{
    fs,
    pin::pin,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::SinkExt;
use highwater_sqllogictest::{Endpoint, ServerProcess};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::server_with_stream;

/// What one hostile input may take.
const LONGEST: Duration = Duration::from_secs(20);
/// Resident memory that a run of inputs may add. The largest texts here have 10 MiB, and a few copies of one are alive at a time.
const MOST_MEMORY: u64 = 512 << 20;
/// How long another client may wait for `SELECT 1` meanwhile, on a machine that is busy with other tests.
const LONGEST_PROBE: Duration = Duration::from_secs(5);

fn resident(server: &ServerProcess) -> u64 {
    let pid = server.pid().expect("the server runs");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process of ours");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    kib.expect("in KiB") << 10
}

/// Asks `SELECT 1` again and again; ends with the longest time that an answer took.
fn probe(endpoint: &Endpoint) -> (JoinHandle<Duration>, tokio::sync::oneshot::Sender<()>) {
    let (stop, mut stopped) = tokio::sync::oneshot::channel();
    let endpoint = endpoint.clone();
    let task = tokio::spawn(async move {
        let client = endpoint.connect().await.expect("a connection");
        let mut longest = Duration::ZERO;
        while stopped.try_recv().is_err() {
            let began = Instant::now();
            client.simple_query("SELECT 1").await.expect("an answer");
            longest = longest.max(began.elapsed());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        longest
    });
    (task, stop)
}

/// Nobody waited long meanwhile, and the server has not grown much.
async fn check_after(
    server: &ServerProcess,
    before: u64,
    probe: JoinHandle<Duration>,
    stop: tokio::sync::oneshot::Sender<()>,
) {
    stop.send(()).expect("the probe runs");
    let longest = probe.await.expect("no panic");
    assert!(longest < LONGEST_PROBE, "others waited for {longest:?}");
    check_memory(server, before);
}

fn check_memory(server: &ServerProcess, before: u64) {
    let grown = resident(server).saturating_sub(before);
    assert!(grown < MOST_MEMORY, "{} MiB", grown >> 20);
}

/// The SQLSTATE of what a text gives, `00000` for success.
async fn state(client: &Client, sql: &str) -> String {
    let began = Instant::now();
    let outcome = tokio::time::timeout(LONGEST, client.simple_query(sql)).await;
    let start: String = sql.chars().take(60).collect();
    let outcome = outcome.unwrap_or_else(|_| panic!("{start} .. takes longer than {LONGEST:?}"));
    println!("{:>8.1?} {start}", began.elapsed());
    match outcome {
        Ok(_) => "00000".to_owned(),
        Err(error) => {
            let code = error.code().map(|state| state.code().to_owned());
            code.unwrap_or_else(|| panic!("{start} .. ends the connection: {error}"))
        }
    }
}

async fn one(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.expect("an answer");
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    row.expect("a row with a value")
}

fn columns(count: usize) -> String {
    let columns: Vec<String> = (0..count).map(|number| format!("c{number} INT")).collect();
    columns.join(", ")
}

#[tokio::test]
async fn statements_out_of_proportion_end_in_an_error() {
    let (server, endpoint, client) = server_with_stream().await;
    let before = resident(&server);
    let (probe, stop) = probe(&endpoint);
    let deep = |open: &str, middle: &str, close: &str| {
        format!(
            "SELECT {}{middle}{}",
            open.repeat(10_000),
            close.repeat(10_000)
        )
    };
    let many = |count: usize, item: &str| vec![item; count].join(", ");
    let joins: String = (0..10_000)
        .map(|number| format!(" JOIN s AS s{number} ON s.k = s{number}.k"))
        .collect();
    let ten_mib = "x".repeat(10 << 20);
    let statements = [
        (deep("(", "1", ")"), "54001"),
        (deep("NOT ", "TRUE", ""), "54001"),
        (deep("- ", "1", ""), "54001"),
        (deep("CASE WHEN ", "TRUE", " THEN TRUE END"), "54001"),
        (deep("ARRAY[", "1", "]"), "54001"),
        (deep("CAST(", "1", " AS INT)"), "54001"),
        (deep("1 + ", "1", ""), "54001"),
        (deep("STRUCT(a := ", "1", ")"), "54001"),
        (format!("SELECT * FROM s{joins}"), "54001"),
        (format!("SELECT '{ten_mib}'"), "54000"),
        (format!("INSERT INTO s VALUES ('{ten_mib}', 1)"), "54000"),
        (format!("SELECT {ten_mib}"), "54000"),
        (
            format!(
                "CREATE STREAM wide ({}) WITH (kafka_topic = 'wide')",
                columns(100_000)
            ),
            "54000",
        ),
        (
            format!(
                "CREATE STREAM d (a {}INT{}) WITH (kafka_topic = 'd')",
                "ARRAY<".repeat(10_000),
                ">".repeat(10_000)
            ),
            "54001",
        ),
        (
            format!("SELECT k FROM s WHERE v IN ({})", many(60_000, "1")),
            "00000",
        ),
        (format!("SELECT {}", many(2_000, "1")), "54000"),
    ];
    for (sql, expected) in statements {
        let start: String = sql.chars().take(60).collect();
        let got = state(&client, &sql).await;
        let refused = expected != "00000" && got.starts_with("54");
        assert!(got == expected || refused, "{start}: {got}");
    }
    check_after(&server, before, probe, stop).await;
}

#[tokio::test]
async fn expressions_out_of_proportion_end_in_an_error_or_a_value() {
    let (server, _endpoint, client) = server_with_stream().await;
    let before = resident(&server);
    for sql in [
        "SELECT REPEAT('x', 2147483647)",
        "SELECT REPEAT('xxxxxxxxxxxxxxxx', 200000000)",
        "SELECT LPAD('x', 2147483647, 'y')",
        "SELECT RPAD('x', 2147483647, 'y')",
        "SELECT GENERATE_SERIES(1, 1000000000000)",
        "SELECT GENERATE_SERIES(1, 1000000000)",
        "SELECT RANGE(1000000000)",
        "SELECT GENERATE_SERIES(DATE '0001-01-01', DATE '9999-12-31', INTERVAL '1 day')",
        "SELECT GENERATE_SERIES(TIMESTAMP '2000-01-01', TIMESTAMP '2200-01-01', INTERVAL '1 nanosecond')",
        "SELECT GENERATE_SERIES(DATE '2000-01-01', DATE '2001-01-01', INTERVAL '1 month -31 days')",
        "SELECT RANGE(TIMESTAMP '2000-01-01', TIMESTAMP '2001-01-01', INTERVAL '1 day -24 hours')",
        "SELECT ARRAY_REPEAT(1, 1000000000)",
        "SELECT ARRAY_RESIZE(ARRAY[1], 1000000000, 0)",
        "SELECT REGEXP_EXTRACT('(a*)*(a*)*(a*)*b', REPEAT('a', 10000))",
        "SELECT REGEXP_EXTRACT('((((a{1000}){1000}){1000}){1000})', 'a')",
        "SELECT CAST(1 AS DECIMAL(1000, 500))",
        "SELECT 1 / 0",
        "SELECT 1 % 0",
        "SELECT CAST(-9223372036854775808 AS BIGINT) / -1",
        "SELECT CAST(-9223372036854775808 AS BIGINT) % -1",
        "SELECT ABS(CAST(-9223372036854775808 AS BIGINT))",
        "SELECT 9223372036854775807 + 1",
        "SELECT 1e999999",
        "SELECT CAST('1e999999' AS DOUBLE)",
        "SELECT CAST('1e999999' AS DECIMAL(10, 2))",
    ] {
        let got = state(&client, sql).await;
        let is_mistake = ["22", "42", "53", "54", "0A"]
            .iter()
            .any(|class| got.starts_with(class));
        assert!(got == "00000" || is_mistake, "{sql}: {got}");
    }
    assert_eq!(
        one(
            &client,
            "SELECT LENGTH(REPEAT(LPAD('x', 1000, 'y'), 16000))"
        )
        .await,
        "16000000"
    );
    assert_eq!(one(&client, "SELECT 1").await, "1");
    check_memory(&server, before);
}

#[tokio::test]
async fn records_out_of_proportion_are_rejected_and_stop_nothing() {
    let (server, endpoint, client) = server_with_stream().await;
    client
        .batch_execute(
            "CREATE STREAM raw (line VARCHAR) WITH (kafka_topic = 's', value_format = 'KAFKA', key_format = 'NONE'); \
             CREATE STREAM tree (v ARRAY<STRUCT<a INT>>, m MAP<VARCHAR, INT>, t VARCHAR, d DECIMAL(38, 10), f DOUBLE) \
                WITH (kafka_topic = 's', value_format = 'JSON', key_format = 'NONE'); \
             CREATE STREAM copies AS SELECT * FROM tree; \
             CREATE TABLE sums AS SELECT k, SUM(v) AS total FROM s GROUP BY k",
        )
        .await
        .expect("the streams are made");
    let before = resident(&server);
    let (probe, stop) = probe(&endpoint);
    let keys: Vec<String> = (0..40_000)
        .map(|number| format!("\"k{number}\":{number}"))
        .collect();
    let records = [
        "[".repeat(100_000),
        "{\"v\":".repeat(100_000),
        format!("{{\"v\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{{\"t\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{{\"m\":{{{}}}}}", keys.join(",")),
        "{\"v\": 1, \"v\": 2}".to_owned(),
        format!("{{\"v\": {}}}", "9".repeat(500_000)),
        format!("{{\"d\": 0.{}}}", "9".repeat(500_000)),
        "{\"f\": 1e999999}".to_owned(),
        "{\"d\": 1e999999999999}".to_owned(),
        "{\"t\": \"\\ud800\"}".to_owned(),
        "{\"v\": 1} {\"v\": 2}".to_owned(),
        format!("{{\"t\": \"{}\"}}", "x".repeat(900_000)),
    ];
    for record in &records {
        let sql = format!("INSERT INTO raw VALUES ('{record}')");
        let got = state(&client, &sql).await;
        assert!(got == "00000" || got.starts_with("54"), "{got}");
    }
    client
        .batch_execute("INSERT INTO s VALUES ('after', 7)")
        .await
        .expect("the stream is as good as before");
    assert_eq!(
        one(&client, "SELECT total FROM sums WHERE k = 'after'").await,
        "7"
    );
    assert_ne!(one(&client, "SELECT COUNT(*) FROM copies").await, "0");
    let rejected = one(&client, "SELECT COUNT(*) FROM processing_log").await;
    assert!(rejected.parse::<u32>().expect("a count") >= 6, "{rejected}");
    check_after(&server, before, probe, stop).await;
}

/// Sends one record as a line of COPY; answers the SQLSTATE.
async fn copy(client: &Client, record: &str) -> String {
    let sink = client.copy_in("COPY raw FROM STDIN").await;
    let mut sink = pin!(sink.expect("COPY begins"));
    let line = format!("{record}\n");
    for piece in line.as_bytes().chunks(1 << 20) {
        // What the server has refused is read no further.
        if sink.send(Bytes::copy_from_slice(piece)).await.is_err() {
            break;
        }
    }
    match sink.finish().await {
        Ok(_) => "00000".to_owned(),
        Err(error) => {
            let code = error.code().map(|state| state.code().to_owned());
            code.unwrap_or_else(|| panic!("COPY ends the connection: {error}"))
        }
    }
}

/// What no statement can hold comes by COPY, into a topic that takes it.
#[tokio::test]
async fn records_of_many_megabytes_are_rejected_or_read() {
    let (server, endpoint, client) = server_with_stream().await;
    client
        .batch_execute(
            "ALTER TOPIC s SET (max_message_bytes = 33554432); \
             CREATE STREAM raw (line VARCHAR) WITH (kafka_topic = 's', value_format = 'KAFKA', key_format = 'NONE'); \
             CREATE STREAM tree (v BIGINT, m MAP<VARCHAR, INT>, t VARCHAR) \
                WITH (kafka_topic = 's', value_format = 'JSON', key_format = 'NONE'); \
             CREATE TABLE sizes AS SELECT v, COUNT(*) AS n FROM tree GROUP BY v",
        )
        .await
        .expect("the streams are made");
    let before = resident(&server);
    let (probe, stop) = probe(&endpoint);
    let keys: Vec<String> = (0..1_000_000)
        .map(|number| format!("\"{number}\":1"))
        .collect();
    let keys = keys.join(",");
    for (record, expected) in [
        (format!("{{\"v\": 1, \"m\": {{{keys}}}}}"), "00000"),
        (format!("{{\"v\": 2, {keys}}}"), "00000"),
        (format!("{{\"v\": {}}}", "9".repeat(1_000_000)), "00000"),
        (
            format!("{{\"v\": 3, \"t\": \"{}\"}}", "x".repeat(15 << 20)),
            "00000",
        ),
        ("[".repeat(10_000_000), "00000"),
        ("x".repeat(100 << 20), "54000"),
    ] {
        let start: String = record.chars().take(40).collect();
        assert_eq!(copy(&client, &record).await, expected, "{start}");
    }
    for v in 1..=3 {
        let sql = format!("SELECT n FROM sizes WHERE v = {v}");
        assert_eq!(one(&client, &sql).await, "1", "{v}");
    }
    let rejected = one(&client, "SELECT COUNT(*) FROM processing_log").await;
    assert_eq!(rejected, "2", "the number and the brackets");
    check_after(&server, before, probe, stop).await;
}

#[tokio::test]
async fn graphs_out_of_proportion_end_in_an_error_or_work() {
    let (server, _endpoint, client) = server_with_stream().await;
    let before = resident(&server);
    let mut last = "s".to_owned();
    for number in 0..40 {
        let next = format!("chain_{number}");
        let sql = format!("CREATE STREAM {next} AS SELECT k, v + 1 AS v FROM {last}");
        assert_eq!(state(&client, &sql).await, "00000");
        last = next;
    }
    client
        .batch_execute(
            "INSERT INTO s VALUES ('a', 0), ('b', CAST(NULL AS INT)); \
             CREATE TABLE tiny AS SELECT k, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 MILLISECOND) GROUP BY k",
        )
        .await
        .expect("windows of any size");
    let end = one(&client, &format!("SELECT v FROM {last} WHERE k = 'a'")).await;
    assert_eq!(end, "40");
    // No cycle: a replacement goes on reading what it read.
    let cycle = format!("CREATE OR REPLACE STREAM chain_0 AS SELECT k, v FROM {last}");
    assert_eq!(state(&client, &cycle).await, "0A000");
    let hops = "CREATE TABLE hops AS SELECT k, COUNT(*) AS n FROM s \
                WINDOW HOPPING (SIZE 3650 DAYS, ADVANCE BY 1 MILLISECOND) GROUP BY k";
    let got = state(&client, hops).await;
    assert!(
        got.starts_with("42") || got.starts_with("54") || got == "0A000",
        "{got}"
    );
    let cross =
        "SELECT COUNT(*) FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000) AS b";
    client
        .batch_execute("SET statement_timeout = 2000")
        .await
        .expect("a setting");
    assert_eq!(state(&client, cross).await, "57014");
    client
        .batch_execute("SET statement_timeout = 0")
        .await
        .expect("a setting");
    assert_eq!(one(&client, "SELECT 1").await, "1");
    check_memory(&server, before);
}

/// NaN is one key, 0.0 and -0.0 are what SQL says: equal.
#[tokio::test]
async fn strange_numbers_are_keys() {
    let (_server, _endpoint, client) = server_with_stream().await;
    client
        .batch_execute(
            "CREATE STREAM f (x DOUBLE) WITH (kafka_topic = 'f', partitions = 1, value_format = 'JSON'); \
             CREATE TABLE by_x AS SELECT x, COUNT(*) AS n FROM f GROUP BY x; \
             INSERT INTO f VALUES (CAST('NaN' AS DOUBLE)), (CAST('NaN' AS DOUBLE)), (0.0), (-0.0)",
        )
        .await
        .expect("runs");
    let nan = "SELECT n FROM by_x WHERE x = CAST('NaN' AS DOUBLE)";
    assert_eq!(one(&client, nan).await, "2");
    assert_eq!(one(&client, "SELECT SUM(n) FROM by_x").await, "4");
}
