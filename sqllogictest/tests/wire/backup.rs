//! BACKUP while everything goes on, and what `highwater restore` makes of it: a server that goes on from one moment, exactly.

use std::{
    fs,
    path::Path,
    pin::pin,
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::SinkExt;
use highwater_sqllogictest::ServerProcess;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

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

/// A stream with so many records that reading them takes a while.
async fn with_history(server: &ServerProcess, rows: usize) -> Client {
    let client = strong(server).await;
    client
        .batch_execute(
            "CREATE STREAM s (k VARCHAR KEY, v INT) \
             WITH (kafka_topic = 's', partitions = 2, value_format = 'JSON')",
        )
        .await
        .expect("the stream");
    let copy = client.copy_in::<_, Bytes>("COPY s FROM STDIN WITH (FORMAT csv)");
    let sink = copy.await.expect("a COPY");
    let mut sink = pin!(sink);
    for from in (0..rows).step_by(10_000) {
        let lines: String = (from..from + 10_000)
            .map(|row| format!("k{},{row}\n", row % 1000))
            .collect();
        sink.send(lines.into()).await.expect("rows");
    }
    assert_eq!(sink.finish().await.expect("the end"), rows as u64);
    client
}

#[tokio::test]
async fn the_data_folder_takes_no_backup() {
    let server = ServerProcess::start().await.expect("a server");
    let client = strong(&server).await;
    let links = tempfile::tempdir().expect("a folder");
    let link = links.path().join("link");
    std::os::unix::fs::symlink(server.data(), &link).expect("a link");
    let parent = server.data().parent().map(Path::to_owned);
    for folder in [
        server.data().join("backups/monday"),
        server.data(),
        link.join("monday"),
        parent.expect("a parent"),
    ] {
        let backup = format!("BACKUP TO '{}'", folder.display());
        let error = client.batch_execute(&backup).await.expect_err("a refusal");
        assert_code(&error, "22023");
        let told = error.as_db_error().expect("an answer");
        assert!(told.message().contains("the data folder"), "{told:?}");
        assert!(told.hint().is_some(), "{told:?}");
    }
    assert!(!server.data().join("backups").exists());
}

#[tokio::test]
async fn a_backup_that_is_cancelled_is_none() {
    const ROWS: usize = 400_000;
    let server = ServerProcess::start().await.expect("a server");
    let client = with_history(&server, ROWS).await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut cut_off = 0;
    for round in 0..40 {
        let path = folder.path().join(format!("backup {round}"));
        let backup = format!("BACKUP TO '{}'", path.display());
        let cancel = async {
            // The first ones catch it at its beginning, the last ones at its end.
            tokio::time::sleep(Duration::from_millis(round)).await;
            client.cancel_token().cancel_query(NoTls).await
        };
        let (done, cancelled) = tokio::join!(client.batch_execute(&backup), cancel);
        cancelled.expect("a cancel request");
        // One that came too late must not hit what follows.
        let _ = client.batch_execute("SELECT 1").await;
        let Err(error) = done else {
            assert!(path.join("BACKUP").exists(), "it was told to be done");
            continue;
        };
        assert_code(&error, "57014");
        cut_off += 1;
        // The copy ends a little later than its client hears.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!path.join("BACKUP").exists(), "round {round}");
        let restored = restore(&path, &folder.path().join("data"));
        assert_eq!(restored.status.code(), Some(1), "{restored:?}");
        assert!(!folder.path().join("data").exists());
    }
    assert!(cut_off > 3, "only {cut_off} were cut off");
    let path = folder.path().join("whole");
    let backup = format!("BACKUP TO '{}'", path.display());
    client.batch_execute(&backup).await.expect("a backup");
    let (_server, client) = restored(&path).await;
    let count = number(&client, "SELECT COUNT(*) FROM s").await;
    assert_eq!(count, ROWS as i64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_beside_a_query_that_catches_up_holds_it_or_not() {
    const ROWS: usize = 400_000;
    let server = ServerProcess::start().await.expect("a server");
    let client = with_history(&server, ROWS).await;
    let creating = tokio::spawn({
        let second = server.endpoint().connect().await.expect("a connection");
        async move {
            second
                .batch_execute(
                    "CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k; \
                     CREATE STREAM c AS SELECT k, v FROM s",
                )
                .await
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let mut backups = Vec::new();
    while !creating.is_finished() {
        let path = folder.path().join(backups.len().to_string());
        let backup = format!("BACKUP TO '{}'", path.display());
        client.batch_execute(&backup).await.expect("a backup");
        backups.push(path);
    }
    creating.await.expect("no panic").expect("the queries");
    assert!(!backups.is_empty());
    // The first, and the last, which is of a moment about the end.
    for path in [&backups[0], &backups[backups.len() - 1]] {
        let (_server, client) = restored(path).await;
        let count = number(&client, "SELECT COUNT(*) FROM s").await;
        assert_eq!(count, ROWS as i64);
        for (relation, sum) in [
            ("t", "SELECT SUM(n) FROM t"),
            ("c", "SELECT COUNT(*) FROM c"),
        ] {
            let known =
                format!("SELECT COUNT(*) FROM hw_catalog.queries WHERE sink = '{relation}'");
            if number(&client, &known).await == 1 {
                assert_eq!(number(&client, sum).await, ROWS as i64, "{relation}");
            }
        }
        client
            .batch_execute("INSERT INTO s VALUES ('k1', 1)")
            .await
            .expect("an insert");
        let count = number(&client, "SELECT COUNT(*) FROM s").await;
        assert_eq!(count, ROWS as i64 + 1);
    }
}
