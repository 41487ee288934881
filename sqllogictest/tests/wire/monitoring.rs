//! What operators see of a running server: hw_catalog, EXPLAIN ANALYZE and /metrics tell the same.

use std::time::{Duration, Instant};

use highwater_sqllogictest::ServerProcess;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::process::metric;

const INSERTS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(20);

async fn rows(client: &Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(sql).await.unwrap();
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    rows.map(|row| {
        (0..row.len())
            .map(|cell| row.get(cell).map(str::to_owned))
            .collect()
    })
    .collect()
}

async fn number(client: &Client, sql: &str) -> f64 {
    let rows = rows(client, sql).await;
    rows[0][0].as_deref().unwrap_or("0").parse().unwrap()
}

async fn plan(client: &Client, of: &str) -> Vec<String> {
    let lines = rows(client, &format!("EXPLAIN ANALYZE {of}")).await;
    lines.into_iter().flatten().flatten().collect()
}

#[tokio::test]
async fn steps_operators_and_state_are_told_alike() {
    let server = ServerProcess::start_with(&["--checkpoint-interval", "100ms"])
        .await
        .unwrap();
    let endpoint = server.endpoint();
    let client = endpoint.connect().await.unwrap();
    client
        .batch_execute(
            "CREATE STREAM s (k VARCHAR KEY, v INT) WITH (kafka_topic = 's', partitions = 1, value_format = 'JSON'); \
             CREATE TABLE sums AS SELECT k, SUM(v) AS total FROM s WHERE v >= 0 GROUP BY k",
        )
        .await
        .unwrap();
    for value in 0..INSERTS {
        // The first is filtered out.
        let insert = format!("INSERT INTO s VALUES ('x', -1), ('k{value}', {value})");
        client.batch_execute(&insert).await.unwrap();
        assert_eq!(
            number(&client, "SELECT COUNT(*) FROM sums").await,
            (value + 1) as f64
        );
    }
    // Counters may be a moment old.
    let deadline = Instant::now() + PATIENCE;
    let read = format!("rows in {}, rows out {INSERTS}, late 0", 2 * INSERTS);
    let lines = loop {
        let lines = plan(&client, "sums").await;
        let told = lines.iter().any(|line| line.contains(&read));
        let stored = lines
            .iter()
            .any(|line| line.contains("B on disk)") || line.contains("bytes on disk)"));
        let table = number(
            &client,
            "SELECT SUM(stored_bytes) FROM hw_catalog.state WHERE node IS NULL AND memory_bytes = 0",
        )
        .await;
        // Once all rows of the table are on disk, no checkpoint is under way and nothing changes any more.
        if told && stored && table > 0.0 {
            break lines;
        }
        assert!(Instant::now() < deadline, "{lines:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(
        lines.contains(&format!(
            "Reads: s-0 up to {}, 0 behind, 0 rejected",
            2 * INSERTS
        )),
        "{lines:#?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with(&format!("Table: rows {INSERTS}, "))),
        "{lines:#?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with(&format!("Memory: n3 groups {INSERTS}, "))),
        "{lines:#?}"
    );
    let id = rows(&client, "SELECT id FROM hw_catalog.queries").await;
    let by_id = plan(&client, id[0][0].as_deref().unwrap()).await;
    assert_eq!(by_id.len(), lines.len(), "{by_id:#?}");

    let steps = rows(
        &client,
        "SELECT steps, steps_per_second, step_ms_median, step_ms_p99, late, rejected FROM hw_catalog.pipelines",
    )
    .await;
    let told: Vec<f64> = steps[0]
        .iter()
        .map(|cell| cell.as_deref().unwrap().parse().unwrap())
        .collect();
    let [count, per_second, median, p99, late, rejected] = told[..] else {
        panic!("{steps:?}");
    };
    assert!(count >= INSERTS as f64 && per_second > 0.0, "{steps:?}");
    assert!(0.0 < median && median <= p99, "{steps:?}");
    assert_eq!((late, rejected), (0.0, 0.0));
    assert_eq!(
        metric(endpoint, "highwater_step_seconds_count").await,
        count
    );
    assert!(metric(endpoint, "highwater_step_seconds_sum").await > 0.0);
    // The last bucket has every step.
    assert!(metric(endpoint, "highwater_step_seconds_bucket").await >= count);
    let operators = "SELECT SUM(rows_out) FROM hw_catalog.operators";
    assert_eq!(
        metric(endpoint, "highwater_operator_rows_out_total").await,
        number(&client, operators).await
    );
    assert_eq!(
        metric(endpoint, "highwater_state_stored_bytes").await,
        number(&client, "SELECT SUM(stored_bytes) FROM hw_catalog.state").await
    );
    let groups = "SELECT SUM(groups_in_memory) FROM hw_catalog.state WHERE node = 3";
    assert_eq!(number(&client, groups).await, INSERTS as f64);
    let memory = number(&client, "SELECT SUM(memory_bytes) FROM hw_catalog.state").await;
    // A key and a sum take more than two numbers.
    assert!(memory > (16 * INSERTS) as f64, "{memory}");
    assert_eq!(
        metric(endpoint, "highwater_state_memory_bytes").await,
        memory
    );
    assert!(metric(endpoint, "highwater_operator_busy_seconds").await > 0.0);

    // A record that is none, and what the pipeline sums up.
    client
        .batch_execute(
            "CREATE STREAM raw (line VARCHAR) WITH (kafka_topic = 's', value_format = 'KAFKA')",
        )
        .await
        .unwrap();
    client
        .batch_execute("INSERT INTO raw VALUES ('no JSON'); SELECT COUNT(*) FROM sums")
        .await
        .unwrap();
    let rejected = "SELECT rejected FROM hw_catalog.pipelines";
    while number(&client, rejected).await != 1.0 {
        assert!(Instant::now() < deadline, "nothing was rejected");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(
        metric(endpoint, "highwater_source_rejected_total").await,
        1.0
    );
}

/// Rows of a table are in memory until a checkpoint has written them.
#[tokio::test]
async fn rows_that_no_checkpoint_has_are_in_memory() {
    let server = ServerProcess::start_with(&["--checkpoint-interval", "1h"])
        .await
        .unwrap();
    let client = server.endpoint().connect().await.unwrap();
    client
        .batch_execute(
            "CREATE TABLE t (k VARCHAR PRIMARY KEY, v INT) WITH (kafka_topic = 't', partitions = 1, value_format = 'JSON'); \
             INSERT INTO t VALUES ('a', 1)",
        )
        .await
        .unwrap();
    let memory = "SELECT memory_bytes FROM hw_catalog.state";
    let deadline = Instant::now() + PATIENCE;
    while number(&client, memory).await == 0.0 {
        assert!(Instant::now() < deadline, "the row is not in memory");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let bytes = number(&client, memory).await;
    assert_eq!(
        metric(server.endpoint(), "highwater_state_memory_bytes").await,
        bytes
    );
    let lines = plan(&client, "t").await;
    let told = format!(" on disk, {bytes} bytes in memory");
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("Table: rows 1, ") && line.ends_with(&told)),
        "{lines:#?}"
    );
}
