//! Push queries that go on behind a step, as a program on a driver uses them: it keeps the rows of a step once it has the row that ends it, and
//! names that step when it comes back.

use std::{
    io::{Read, Write},
    net::TcpStream,
    pin::pin,
    time::Duration,
};

use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use highwater_sqllogictest::{Endpoint, ServerProcess, Watch, WireError};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio_postgres::Client;

use crate::{assert_code, server_with_stream};

/// What a program keeps of a feed.
#[derive(Default)]
struct Kept {
    rows: Vec<String>,
    step: Option<i64>,
    open: Vec<String>,
}

impl Kept {
    /// Takes a row with its step in front; rows of a step that does not end are forgotten by [`Self::cut_off`].
    fn take(&mut self, step: Option<&str>, ends: bool, row: String) {
        self.open.push(row);
        if ends {
            let step = step.expect("a step").parse().expect("a number");
            assert!(
                self.step.is_none_or(|last| last < step),
                "step {step} again"
            );
            self.step = Some(step);
            self.rows.append(&mut self.open);
        }
    }

    fn cut_off(&mut self) {
        self.open.clear();
    }

    /// The query that goes on.
    fn query(&self, query: &str) -> String {
        match self.step {
            Some(step) => format!("{query} EMIT CHANGES WITH STEP AFTER STEP {step}"),
            None => format!("{query} EMIT CHANGES WITH SNAPSHOT, STEP"),
        }
    }

    /// Reads so many rows more, or to the end of the query, which is an error.
    async fn read(
        &mut self,
        endpoint: &Endpoint,
        query: &str,
        rows: usize,
    ) -> Result<(), WireError> {
        let mut watch = Watch::start(endpoint, &self.query(query)).await?;
        assert_eq!(watch.columns[..2], ["step", "step_ends"]);
        let wanted = self.rows.len() + rows;
        while self.rows.len() + self.open.len() < wanted {
            let row = watch.next().await?.expect("an endless query");
            self.take(Some(&row[0]), row[1] == "t", row[2].clone());
        }
        Ok(())
    }
}

async fn insert(client: &Client, from: usize, to: usize) {
    for number in from..to {
        // Two rows a step, so that a reader can be cut off within one.
        let sql = format!(
            "INSERT INTO s VALUES ('a', {}), ('b', {})",
            2 * number,
            2 * number + 1
        );
        client.batch_execute(&sql).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice() {
    const ROUNDS: usize = 8;
    const INSERTS: usize = 40;
    for (queries, query) in [
        ("", "SELECT v FROM s"),
        (
            "CREATE STREAM copies AS SELECT v FROM s",
            "SELECT v FROM copies",
        ),
    ] {
        let (mut server, _, client) = server_with_stream().await;
        client.batch_execute(queries).await.unwrap();
        drop(client);
        let mut random = StdRng::seed_from_u64(7);
        let mut kept = Kept::default();
        for round in 0..ROUNDS {
            let endpoint = server.endpoint().clone();
            let writer = endpoint.connect().await.unwrap();
            let first = round * INSERTS;
            let load = tokio::spawn(async move {
                insert(&writer, first, first + INSERTS / 2).await;
                writer
            });
            let rows = random.random_range(0..INSERTS);
            kept.read(&endpoint, query, rows).await.unwrap();
            let writer = load.await.unwrap();
            if round % 3 == 1 {
                // Something else changes among the queries meanwhile.
                let sql =
                    format!("CREATE TABLE t{round} AS SELECT k, COUNT(*) AS n FROM s GROUP BY k");
                writer.batch_execute(&sql).await.unwrap();
            }
            kept.cut_off();
            // Nobody reads now.
            insert(&writer, first + INSERTS / 2, first + INSERTS).await;
            if round % 2 == 1 {
                server.kill();
                server.spawn().unwrap();
                server.wait_until_ready().await.unwrap();
            }
        }
        let all: Vec<String> = (0..2 * ROUNDS * INSERTS)
            .map(|row| row.to_string())
            .collect();
        let left = all.len() - kept.rows.len();
        kept.read(server.endpoint(), query, left).await.unwrap();
        assert_eq!(kept.rows, all, "{query}");
    }
}

#[tokio::test]
async fn the_step_is_a_column_for_cursors_and_copy_too() {
    let (_server, endpoint, client) = server_with_stream().await;
    let reader = endpoint.connect().await.unwrap();
    reader
        .batch_execute("BEGIN; DECLARE c CURSOR FOR SELECT k, v FROM s EMIT CHANGES WITH STEP")
        .await
        .unwrap();
    insert(&client, 0, 1).await;
    let rows = reader.query("FETCH 2 FROM c", &[]).await.unwrap();
    let step = rows[0].get::<_, Option<i64>>("step").expect("a step");
    let parts: Vec<(Option<i64>, bool, i32)> = rows
        .iter()
        .map(|row| (row.get("step"), row.get("step_ends"), row.get("v")))
        .collect();
    assert_eq!(parts, [(Some(step), false, 0), (Some(step), true, 1)]);
    reader.batch_execute("COMMIT").await.unwrap();
    insert(&client, 1, 2).await;
    let copy = format!(
        "COPY (SELECT v FROM s EMIT CHANGES WITH STEP AFTER STEP {step} LIMIT 2) TO STDOUT"
    );
    let lines = reader.copy_out(&copy).await.unwrap();
    let lines: Vec<Bytes> = lines.try_collect().await.unwrap();
    let text = String::from_utf8(lines.concat()).unwrap();
    let (first, second) = text.trim_end().split_once('\n').unwrap();
    assert!(
        first.ends_with("\tf\t2") && second.ends_with("\tt\t3"),
        "{text}"
    );
}

#[tokio::test]
async fn what_cannot_go_on_says_why() {
    let (_server, endpoint, client) = server_with_stream().await;
    client
        .batch_execute("CREATE TABLE t AS SELECT k, SUM(v) AS total FROM s GROUP BY k")
        .await
        .unwrap();
    insert(&client, 0, 1).await;
    for (sql, code, told) in [
        (
            "SELECT * FROM t EMIT CHANGES AFTER STEP 1",
            "0A000",
            "table \"t\"",
        ),
        (
            "SELECT COUNT(*) FROM s EMIT CHANGES AFTER STEP 1",
            "0A000",
            "groups",
        ),
        (
            "SELECT v FROM s EMIT CHANGES AFTER STEP 99999",
            "22023",
            "step 99999",
        ),
        (
            "SELECT v FROM s EMIT CHANGES AFTER STEP 0",
            "55000",
            "step 0",
        ),
        (
            "SELECT v FROM s EMIT CHANGES AFTER STEP x",
            "42601",
            "\"x\"",
        ),
    ] {
        let reader = endpoint.connect().await.unwrap();
        let error = reader.simple_query(sql).await.unwrap_err();
        assert_code(&error, code);
        let answer = error.as_db_error().unwrap();
        assert!(answer.message().contains(told), "{sql}: {answer:?}");
        assert!(
            code == "42601" || answer.hint().is_some(),
            "{sql}: {answer:?}"
        );
    }
}

/// A client of its own making: it does not read before it is told to.
struct SlowReader(TcpStream);

impl SlowReader {
    fn start(endpoint: &Endpoint, sql: &str) -> Self {
        let mut socket = TcpStream::connect(("127.0.0.1", endpoint.port)).unwrap();
        let parameters = b"user\0highwater\0database\0highwater\0\0";
        let length = (8 + parameters.len()) as u32;
        socket.write_all(&length.to_be_bytes()).unwrap();
        socket.write_all(&0x0003_0000_u32.to_be_bytes()).unwrap();
        socket.write_all(parameters).unwrap();
        let mut reader = Self(socket);
        while reader.message().0 != b'Z' {}
        let length = (4 + sql.len() + 1) as u32;
        reader.0.write_all(b"Q").unwrap();
        reader.0.write_all(&length.to_be_bytes()).unwrap();
        reader.0.write_all(sql.as_bytes()).unwrap();
        reader.0.write_all(b"\0").unwrap();
        assert_eq!(reader.message().0, b'T');
        reader
    }

    fn message(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; length as usize - 4];
        self.0.read_exact(&mut body).unwrap();
        (head[0], body)
    }

    /// Reads to the end; answers the error.
    fn read(mut self, kept: &mut Kept) -> String {
        loop {
            match self.message() {
                (b'D', body) => {
                    let mut cells = Vec::new();
                    let mut rest = &body[2..];
                    while let Some((length, more)) = rest.split_first_chunk::<4>() {
                        let (cell, more) = more.split_at(i32::from_be_bytes(*length) as usize);
                        cells.push(String::from_utf8(cell.to_vec()).unwrap());
                        rest = more;
                    }
                    kept.take(Some(&cells[0]), cells[1] == "t", cells[2].clone());
                }
                (b'E', body) => return String::from_utf8_lossy(&body).into_owned(),
                (kind, _) => assert!(kind == b'N' || kind == b'S', "{kind}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_was_too_slow_is_told_where_to_go_on() {
    const ROWS: usize = 20_000;
    let server =
        ServerProcess::start_with(&["--push-buffer-bytes", "64KiB", "--step-max-rows", "100"])
            .await
            .unwrap();
    let client = server.endpoint().connect().await.unwrap();
    client
        .batch_execute("CREATE STREAM s (k VARCHAR, v INT) WITH (kafka_topic = 's', partitions = 1, value_format = 'JSON')")
        .await
        .unwrap();
    let endpoint = server.endpoint().clone();
    let query = "SELECT v, k FROM s";
    let sql = format!("{query} EMIT CHANGES WITH STEP");
    let reader = tokio::task::spawn_blocking(move || SlowReader::start(&endpoint, &sql))
        .await
        .unwrap();
    // More than the buffers of two sockets take.
    let copy = client.copy_in::<_, Bytes>("COPY s FROM STDIN WITH (FORMAT csv)");
    let mut sink = pin!(copy.await.unwrap());
    let wide = "x".repeat(2_000);
    for from in (0..ROWS).step_by(1000) {
        let lines: String = (from..from + 1000)
            .map(|row| format!("{wide},{row}\n"))
            .collect();
        sink.send(lines.into()).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), ROWS as u64);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (error, mut kept) = tokio::task::spawn_blocking(move || {
        let mut kept = Kept::default();
        (reader.read(&mut kept), kept)
    })
    .await
    .unwrap();
    assert!(error.contains("53400"), "{error}");
    let step = kept.step.expect("it has got something");
    assert!(kept.rows.len() < ROWS, "it was fast enough");
    assert!(kept.open.is_empty(), "a step is given whole");
    assert!(
        error.contains(&format!("EMIT CHANGES AFTER STEP {step};")),
        "{step}: {error}"
    );
    // A step is larger than the buffer, so it may be too slow again; each time it gets on.
    while kept.rows.len() < ROWS {
        let before = kept.rows.len();
        let read = kept.read(server.endpoint(), query, ROWS - before).await;
        kept.cut_off();
        match read {
            Ok(()) => {}
            Err(error) => assert_eq!(error.code(), Some("53400"), "{error}"),
        }
        assert!(
            kept.rows.len() > before,
            "it has got nothing: {:?}",
            kept.step
        );
    }
    let all: Vec<String> = (0..ROWS).map(|row| row.to_string()).collect();
    assert_eq!(kept.rows, all);
}
