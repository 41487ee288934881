//! INSERT: values, types, keys, errors, what a restart keeps.

use crate::support::{TestServer, error, rows, run_all};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_inserted_can_be_read_and_survives_a_restart() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "CREATE STREAM events (k VARCHAR KEY, n BIGINT, d DOUBLE, ok BOOLEAN, at TIMESTAMP) WITH (value_format = 'JSON')",
            "INSERT INTO events VALUES ('a', 1, 1.5, true, '2013-01-01 10:00:00'), ('b', 2, NULL, false, NULL)",
            "INSERT INTO events (n, k) VALUES (1 + 2, upper('c'))",
        ],
    )
    .await;
    let query = "SELECT k, n, d, ok, at FROM events ORDER BY k";
    let expected = [
        "C|3|NULL|NULL|NULL",
        "a|1|1.5|t|2013-01-01 10:00:00",
        "b|2|NULL|f|NULL",
    ];
    assert_eq!(rows(&client, query).await, expected);
    let server = server.restart().await;
    assert_eq!(rows(&server.client().await, query).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_goes_in_and_comes_out() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "CREATE STREAM t (b BOOLEAN, s SMALLINT, i INT, l BIGINT, r REAL, d DOUBLE, n DECIMAL(12, 4), v VARCHAR, x BYTES, \
             dt DATE, tm TIME, ts TIMESTAMP, tz TIMESTAMPTZ, a INT[], m MAP<VARCHAR, INT>, st STRUCT<f INT, g VARCHAR>) \
             WITH (value_format = 'JSON', partitions = 1)",
            "INSERT INTO t VALUES (true, -1, 2, 3, 1.25, 2.5, '12345678.1234', 'text', '\\x01ff', '2013-01-31', '10:11:12', \
             '2013-01-31 10:11:12.345', '2013-01-31 10:11:12+01', '{1,2,NULL}', '{\"a\": 1}', '{\"f\": 7, \"g\": \"h\"}')",
        ],
    )
    .await;
    assert_eq!(
        rows(
            &client,
            "SELECT b, s, i, l, r, d, n, v, x, dt, tm, ts, tz, a FROM t"
        )
        .await,
        [
            "t|-1|2|3|1.25|2.5|12345678.1234|text|\\x01ff|2013-01-31|10:11:12|2013-01-31 10:11:12.345|2013-01-31 09:11:12+00|{1,2,NULL}"
        ]
    );
    assert_eq!(
        rows(&client, "SELECT m['a'], st->f, st->g FROM t").await,
        ["1|7|h"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn records_with_one_key_share_a_partition() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &["CREATE STREAM s (k INT KEY, v INT) WITH (partitions = 4, value_format = 'JSON')"],
    )
    .await;
    for value in 0..3 {
        let values: Vec<String> = (0..20).map(|key| format!("({key}, {value})")).collect();
        run_all(
            &client,
            &[&format!("INSERT INTO s VALUES {}", values.join(", "))],
        )
        .await;
    }
    let spread = "SELECT count(*), min(parts), max(parts) FROM (SELECT k, count(DISTINCT rowpartition) AS parts FROM s GROUP BY k)";
    assert_eq!(rows(&client, spread).await, ["20|1|1"]);
    assert_eq!(
        rows(&client, "SELECT count(DISTINCT rowpartition) FROM s").await,
        ["4"]
    );
    // Kafka's partitioner puts the four bytes of key 2 there, whatever runs it.
    assert_eq!(
        rows(&client, "SELECT DISTINCT rowpartition FROM s WHERE k = 2").await,
        ["3"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_time_can_be_given() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "CREATE STREAM s (v INT) WITH (value_format = 'JSON')",
            "INSERT INTO s (rowtime, v) VALUES (1700000000000, 1), ('2013-01-01 00:00:00', 2)",
        ],
    )
    .await;
    let times = "SELECT v, rowtime FROM s ORDER BY v";
    assert_eq!(
        rows(&client, times).await,
        ["1|2023-11-14 22:13:20", "2|2013-01-01 00:00:00"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn now_is_the_moment_of_the_statement() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "CREATE STREAM s (a TIMESTAMPTZ, b TIMESTAMP, c DATE) WITH (value_format = 'JSON')",
            "INSERT INTO s VALUES (now(), now(), current_date), (now() - INTERVAL '1 hour', NULL, NULL)",
        ],
    )
    .await;
    let recent = "SELECT count(*) FROM s WHERE a > now() - INTERVAL '1 minute' AND c = b::date";
    assert_eq!(rows(&client, recent).await, ["1"]);
    assert_eq!(
        rows(&client, "SELECT count(*) FROM s WHERE a < now()").await,
        ["2"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_the_place() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &[
            "CREATE STREAM s (k VARCHAR KEY, v SMALLINT) WITH (value_format = 'JSON')",
            "CREATE TABLE t (k VARCHAR PRIMARY KEY, v INT) WITH (value_format = 'JSON')",
            "CREATE TABLE counts AS SELECT k, count(*) AS n FROM s GROUP BY k",
        ],
    )
    .await;
    for (statement, code, part) in [
        ("INSERT INTO nowhere VALUES (1)", "42P01", "nowhere"),
        ("INSERT INTO s (k, w) VALUES ('a', 1)", "42703", "\"w\""),
        ("INSERT INTO s VALUES ('a')", "42601", "fewer"),
        ("INSERT INTO s VALUES ('a', 'x')", "22P02", "\"x\""),
        ("INSERT INTO s VALUES ('a', 40000)", "22003", "40000"),
        ("INSERT INTO s VALUES ('a', 40000 + 1)", "22003", "40001"),
        ("INSERT INTO s VALUES ('a', true)", "42804", "BOOLEAN"),
        ("INSERT INTO t VALUES (NULL, 1)", "23502", "\"k\""),
        ("INSERT INTO counts VALUES ('a', 1)", "55000", "CTAS_COUNTS"),
        (
            "INSERT INTO processing_log (reason) VALUES ('x')",
            "42501",
            "processing_log",
        ),
    ] {
        let (found, message, _) = error(&client, statement).await;
        assert_eq!(found, code, "{statement}: {message}");
        assert!(message.contains(part), "{statement}: {message}");
    }
    assert_eq!(
        rows(&client, "SELECT count(*) FROM s").await,
        ["0"],
        "nothing of a failed statement is written"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_have_the_types_of_their_columns() {
    let server = TestServer::start().await;
    let client = server.client().await;
    run_all(
        &client,
        &["CREATE STREAM s (k VARCHAR KEY, v BIGINT, d DOUBLE) WITH (value_format = 'JSON')"],
    )
    .await;
    let insert = client
        .prepare("INSERT INTO s VALUES ($1, $2, $3)")
        .await
        .expect("prepares");
    for number in 0..10_i64 {
        let written = client
            .execute(&insert, &[&format!("k{number}"), &number, &Some(0.5)])
            .await
            .expect("inserts");
        assert_eq!(written, 1);
    }
    let sum = client
        .query_one("SELECT sum(v) FROM s WHERE v > $1", &[&4_i64])
        .await
        .expect("a row");
    assert_eq!(sum.get::<_, i64>(0), 35);
}
