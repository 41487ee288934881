//! BACKUP while everything goes on, and what `highwater restore` makes of it: a server that goes on from one moment, exactly.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use highwater_sqllogictest::ServerProcess;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::assert_code;

const QUERIES: &str = "\
    CREATE STREAM transfers (id BIGINT KEY, source INT, target INT, amount BIGINT) \
        WITH (kafka_topic = 'transfers', partitions = 3, value_format = 'JSON'); \
    CREATE TABLE accepted AS SELECT COUNT(*) AS n FROM transfers; \
    CREATE TABLE credits AS SELECT target AS account, SUM(amount) AS amount FROM transfers GROUP BY target; \
    CREATE TABLE debits AS SELECT source AS account, SUM(amount) AS amount FROM transfers GROUP BY source; \
    CREATE TABLE balance AS SELECT COALESCE(c.account, d.account) AS account, \
        COALESCE(c.amount, 0) - COALESCE(d.amount, 0) AS balance FROM credits c FULL JOIN debits d ON c.account = d.account; \
    CREATE TABLE total AS SELECT SUM(balance) AS total FROM balance; \
    CREATE STREAM copies AS SELECT * FROM transfers";

/// Transfers of one INSERT: they go to several partitions, and are seen together or not at all.
const TOGETHER: i64 = 7;

async fn number(client: &Client, sql: &str) -> i64 {
    let messages = client.simple_query(sql).await.expect("an answer");
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    row.expect("a row").parse().expect("a number")
}

/// A session that sees what others have inserted.
async fn strong(server: &ServerProcess) -> Client {
    let client = server.endpoint().connect().await.expect("a connection");
    let set = client.batch_execute("SET freshness = 'strong'").await;
    set.expect("a setting");
    client
}

async fn insert(client: &Client, from: i64) {
    let rows: Vec<String> = (from..from + TOGETHER)
        .map(|id| format!("({id}, {}, {}, {})", id % 5, id * 3 % 7, id % 11))
        .collect();
    let sql = format!("INSERT INTO transfers VALUES {}", rows.join(", "));
    client.batch_execute(&sql).await.expect("an insert");
}

fn restore(backup: &Path, data: &Path) -> Output {
    Command::new(ServerProcess::binary().expect("the program"))
        .arg("restore")
        .arg(backup)
        .arg("--data")
        .arg(data)
        .output()
        .expect("the program runs")
}

/// A server on what a backup holds.
async fn restored(backup: &Path) -> (ServerProcess, Client) {
    let mut server = ServerProcess::start().await.expect("a server");
    server.kill();
    fs::remove_dir_all(server.data()).expect("its folder");
    let output = restore(backup, &server.data());
    assert!(output.status.success(), "{output:?}");
    server.spawn().expect("a start");
    server.wait_until_ready().await.expect("an answer");
    let client = strong(&server).await;
    (server, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_backup_goes_on_from_one_moment() {
    let server = ServerProcess::start_with(&["--log-segment-bytes", "1MiB"])
        .await
        .expect("a server");
    let client = strong(&server).await;
    client.batch_execute(QUERIES).await.expect("the queries");
    let (stop, acknowledged) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicI64::new(0)),
    );
    let load = {
        let (stop, acknowledged) = (Arc::clone(&stop), Arc::clone(&acknowledged));
        let client = server.endpoint().connect().await.expect("a connection");
        tokio::spawn(async move {
            let mut next = 0;
            while !stop.load(Ordering::Relaxed) {
                insert(&client, next).await;
                next += TOGETHER;
                acknowledged.store(next, Ordering::SeqCst);
            }
            next
        })
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut backups = Vec::new();
    for round in 0..4 {
        let wanted = acknowledged.load(Ordering::SeqCst) + 300;
        while acknowledged.load(Ordering::SeqCst) < wanted {
            tokio::task::yield_now().await;
        }
        let path = folder.path().join(format!("backup {round}"));
        let before = acknowledged.load(Ordering::SeqCst);
        client
            .batch_execute(&format!("BACKUP TO '{}'", path.display()))
            .await
            .expect("a backup");
        // The one that is on its way may be in it.
        let after = acknowledged.load(Ordering::SeqCst) + TOGETHER;
        backups.push((path, before, after));
    }
    stop.store(true, Ordering::Relaxed);
    let sent = load.await.expect("no panic");
    assert_eq!(number(&client, "SELECT n FROM accepted").await, sent);

    for (backup, before, after) in backups {
        let (_server, client) = restored(&backup).await;
        let n = number(&client, "SELECT n FROM accepted").await;
        assert!((before..=after).contains(&n), "{before} <= {n} <= {after}");
        assert_eq!(
            n % TOGETHER,
            0,
            "an INSERT is there as a whole or not at all"
        );
        for sql in [
            "SELECT COUNT(*) FROM transfers",
            "SELECT COUNT(DISTINCT id) FROM copies",
            "SELECT COUNT(*) FROM copies",
        ] {
            assert_eq!(number(&client, sql).await, n, "{sql}");
        }
        insert(&client, n).await;
        for sql in [
            "SELECT n FROM accepted",
            "SELECT COUNT(*) FROM copies",
            "SELECT COUNT(DISTINCT id) FROM copies",
        ] {
            assert_eq!(number(&client, sql).await, n + TOGETHER, "{sql}");
        }
        assert_eq!(number(&client, "SELECT total FROM total").await, 0);
        let kept = "SELECT SUM(amount) FROM credits";
        let batch = "SELECT SUM(amount) FROM transfers";
        assert_eq!(number(&client, kept).await, number(&client, batch).await);
    }
}

#[tokio::test]
async fn what_is_no_backup_or_no_place_for_one_is_refused() {
    let server = ServerProcess::start().await.expect("a server");
    let client = server.endpoint().connect().await.expect("a connection");
    client.batch_execute(QUERIES).await.expect("the queries");
    insert(&client, 0).await;
    let folder = tempfile::tempdir().expect("a folder");
    let backup = folder.path().join("backup");
    let to = |folder: &Path| format!("BACKUP TO '{}'", folder.display());
    let relative = client.batch_execute("BACKUP TO 'somewhere'").await;
    assert_code(&relative.expect_err("where?"), "42602");
    client.batch_execute(&to(&backup)).await.expect("a backup");
    let again = client.batch_execute(&to(&backup)).await;
    assert_code(&again.expect_err("it is there"), "58P02");
    fs::write(folder.path().join("file"), "text").expect("a file");
    let in_file = client
        .batch_execute(&to(&folder.path().join("file/in")))
        .await;
    assert_code(&in_file.expect_err("no folder"), "58P01");

    let told = |output: Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let data = folder.path().join("data");
    let no_backup = restore(folder.path(), &data);
    assert_eq!(no_backup.status.code(), Some(1));
    assert!(told(no_backup).contains("is no backup"));
    let occupied = restore(&backup, folder.path());
    assert_eq!(occupied.status.code(), Some(1));
    assert!(told(occupied).contains("not empty"));
    // Damage is found before anybody starts on it.
    let segment = backup.join("log/transfers-0/00000000000000000000.log");
    let mut bytes = fs::read(&segment).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, bytes).expect("a change");
    let damaged = restore(&backup, &data);
    assert_eq!(damaged.status.code(), Some(1));
    let told = told(damaged);
    assert!(
        told.contains("damaged") && told.contains("transfers-0"),
        "{told}"
    );
    assert!(!data.exists(), "nothing is left of it");
}
