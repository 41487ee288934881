//! Internal consistency: under load from several connections, every answer is the batch result over one and the same part of the input.
//!
//! A [`Workload`] is a set of queries over what the writers write, and what must hold of them: pairs of queries that answer the same when they are read in
//! one block (`BEGIN READ ONLY`), and a push query each of whose rows must be right by itself. An observer must see each pair in many states, else
//! it has looked at nothing but the end of the load. The controls below read or keep something wrong, and the same observers must report it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use bytes::Bytes;
use futures::SinkExt;
use highwater_sqllogictest::{Endpoint, ServerProcess, Watch};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::{sync::RwLock, task::JoinHandle};
use tokio_postgres::Client;

use crate::{catch_up::states, texts};

/// Connections that write at once.
const WRITERS: i64 = 4;

/// Rows of one INSERT at the most.
const BATCH: i64 = 8;

/// Rows of a second of event time, more or less.
const ROWS_OF_A_SECOND: i64 = 25;

/// Event time of the first rows, in milliseconds.
const BEGIN: i64 = 1_700_000_000_000;

/// In how many states each pair of queries must have been seen for every hundred looks.
const STATES_OF_A_HUNDRED: usize = 10;

/// How often each observer looks; `HIGHWATER_CONSISTENCY_LOOKS` for more.
fn looks() -> usize {
    std::env::var("HIGHWATER_CONSISTENCY_LOOKS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100)
}

/// A load, queries over it, and what must hold of every answer.
#[derive(Clone, Copy)]
struct Workload {
    /// Streams, tables and queries, in the order in which they are made.
    schema: &'static [&'static str],
    /// The relation that is written to, with the columns that [`Self::row`] gives.
    into: &'static str,
    /// A row in parentheses.
    row: fn(&Row, &mut StdRng) -> String,
    /// How many rows the answers know of.
    known: &'static str,
    /// Queries that answer the same.
    equal: &'static [(&'static str, &'static str)],
    watched: Option<Watched>,
}

/// A push query and what is true of each of its rows, whose first column is the operation.
#[derive(Clone, Copy)]
struct Watched {
    sql: &'static str,
    holds: fn(&[String]) -> bool,
}

/// What a row is made from.
struct Row {
    writer: i64,
    /// Rows are numbered from 1, over all writers.
    id: i64,
    /// Rows of an earlier second are acknowledged before one of a later second is written.
    second: i64,
}

/// Whether queries that must answer the same are read at one step.
#[derive(Clone, Copy, PartialEq)]
enum Reading {
    Together,
    Apart,
}

const STREAM: &str = "CREATE STREAM s (k INT KEY, g INT, v INT, id BIGINT)";
const STREAM_COLUMNS: &str = "s (rowtime, k, g, v, id)";

/// A row of [`STREAM`]; one of five has no `v`.
fn record(row: &Row, random: &mut StdRng) -> String {
    let at = BEGIN + row.second * 1000 + random.random_range(0..1000);
    let (k, g) = (random.random_range(0..8), random.random_range(0..10));
    let v = match random.random_bool(0.2) {
        true => "NULL".to_owned(),
        false => random.random_range(-100..100).to_string(),
    };
    format!("({at}, {k}, {g}, {v}, {})", row.id)
}

/// Two tables of one stream have a record in the same step, so neither is ever without the other.
const OUTER_JOIN: Workload = Workload {
    schema: &[
        STREAM,
        "CREATE TABLE lefts AS SELECT id, SUM(v) AS total FROM s GROUP BY id",
        "CREATE TABLE rights AS SELECT id, COUNT(*) AS n FROM s GROUP BY id",
        "CREATE TABLE left_joined AS SELECT l.id, r.id AS other FROM lefts l LEFT JOIN rights r ON l.id = r.id",
        "CREATE TABLE self_joined AS SELECT l.id, r.id AS other FROM lefts l LEFT JOIN lefts r ON l.id = r.id",
        "CREATE TABLE full_joined AS SELECT COALESCE(l.id, r.id) AS id, l.id AS left_id, r.id AS right_id \
         FROM lefts l FULL JOIN rights r ON l.id = r.id",
    ],
    into: STREAM_COLUMNS,
    row: record,
    known: "SELECT COUNT(*) FROM lefts",
    equal: &[
        (
            "SELECT COUNT(*) AS n, COUNT(id) AS matched FROM lefts",
            "SELECT COUNT(*) AS n, COUNT(CASE WHEN other = id THEN 1 END) AS matched FROM left_joined",
        ),
        (
            "SELECT COUNT(*) AS n, COUNT(id) AS matched FROM lefts",
            "SELECT COUNT(*) AS n, COUNT(CASE WHEN other = id THEN 1 END) AS matched FROM self_joined",
        ),
        (
            "SELECT COUNT(*) AS n, COUNT(id) AS matched FROM rights",
            "SELECT COUNT(*) AS n, COUNT(CASE WHEN left_id = right_id THEN 1 END) AS matched FROM full_joined",
        ),
    ],
    watched: Some(Watched {
        sql: "SELECT id, other FROM left_joined EMIT CHANGES",
        holds: |row| row[1] == row[2],
    }),
};

/// Sum, count and mean of one stream, kept apart and joined again.
const DIAMOND: Workload = Workload {
    schema: &[
        STREAM,
        "CREATE TABLE sums AS SELECT g, SUM(v) AS total FROM s GROUP BY g",
        "CREATE TABLE counts AS SELECT g, COUNT(v) AS n, COUNT(*) AS everything FROM s GROUP BY g",
        "CREATE TABLE means AS SELECT g, AVG(v) AS mean FROM s GROUP BY g",
        "CREATE TABLE diamond AS SELECT a.g, a.total, b.n, c.mean, b.everything \
         FROM sums a JOIN counts b ON a.g = b.g JOIN means c ON a.g = c.g",
    ],
    into: STREAM_COLUMNS,
    row: record,
    known: "SELECT COALESCE(SUM(everything), 0) FROM counts",
    equal: &[
        (
            "SELECT g, total, n, mean FROM diamond",
            "SELECT a.g, a.total, b.n, c.mean FROM sums a JOIN counts b ON a.g = b.g JOIN means c ON a.g = c.g",
        ),
        (
            "SELECT g, total FROM diamond",
            "SELECT g, CAST(ROUND(mean * n) AS BIGINT) FROM diamond",
        ),
        (
            "SELECT g, total, n FROM diamond",
            "SELECT g, SUM(v), COUNT(v) FROM s GROUP BY g",
        ),
    ],
    watched: Some(Watched {
        sql: "SELECT g, total, n, mean FROM diamond EMIT CHANGES",
        holds: |row| match (row[2].parse::<f64>(), row[4].parse::<f64>()) {
            (Ok(total), Ok(mean)) => {
                let n: f64 = row[3].parse().expect("a count");
                (mean * n - total).abs() < 1e-3
            }
            // Nothing has a value in the group yet.
            _ => row[2..] == ["NULL", "0", "NULL"],
        },
    }),
};

/// A condition, its opposite, and what is neither: each record passes one of the three filters.
const FILTERS: Workload = Workload {
    schema: &[
        STREAM,
        "CREATE STREAM positive AS SELECT k, v FROM s WHERE v > 0",
        "CREATE STREAM others AS SELECT k, v FROM s WHERE NOT (v > 0)",
        "CREATE STREAM unknowns AS SELECT k, v FROM s WHERE (v > 0) IS NULL",
        "CREATE STREAM united AS SELECT k, v FROM positive UNION ALL SELECT k, v FROM others UNION ALL SELECT k, v FROM unknowns",
        "CREATE TABLE whole AS SELECT COUNT(*) AS n, SUM(v) AS total FROM s",
        "CREATE TABLE with_p AS SELECT COUNT(*) AS n, SUM(v) AS total FROM positive",
        "CREATE TABLE without_p AS SELECT COUNT(*) AS n, SUM(v) AS total FROM others",
        "CREATE TABLE neither AS SELECT COUNT(*) AS n, SUM(v) AS total FROM unknowns",
        "CREATE TABLE all_parts AS SELECT COUNT(*) AS n, SUM(v) AS total FROM united",
    ],
    into: STREAM_COLUMNS,
    row: record,
    known: "SELECT COALESCE(SUM(n), 0) FROM whole",
    equal: &[
        (
            "SELECT SUM(n), SUM(total) FROM whole",
            "SELECT SUM(n), SUM(total) FROM (SELECT n, total FROM with_p UNION ALL SELECT n, total FROM without_p \
             UNION ALL SELECT n, total FROM neither) AS parts",
        ),
        (
            "SELECT SUM(n), SUM(total) FROM whole",
            "SELECT SUM(n), SUM(total) FROM all_parts",
        ),
        (
            "SELECT COALESCE(SUM(n), 0), SUM(total) FROM with_p",
            "SELECT COUNT(*), SUM(v) FROM s WHERE v > 0",
        ),
        ("SELECT COUNT(*) FROM s", "SELECT COUNT(*) FROM united"),
    ],
    watched: None,
};

/// One topic that is declared twice: both are read up to the same record in each step.
const DECLARED_TWICE: Workload = Workload {
    schema: &[
        STREAM,
        "CREATE STREAM again (k INT KEY, g INT, v INT, id BIGINT) WITH (kafka_topic = 's')",
        "CREATE TABLE counted AS SELECT COUNT(*) AS n, SUM(id) AS total FROM s",
        "CREATE TABLE counted_again AS SELECT COUNT(*) AS n, SUM(id) AS total FROM again",
    ],
    into: STREAM_COLUMNS,
    row: record,
    known: "SELECT COALESCE(SUM(n), 0) FROM counted",
    equal: &[(
        "SELECT SUM(n), SUM(total) FROM counted",
        "SELECT SUM(n), SUM(total) FROM counted_again",
    )],
    watched: None,
};

/// The early ones of pairs of queries that begin before the load and in its middle.
const EARLY_AND_LATE: Workload = Workload {
    schema: &[
        STREAM,
        "CREATE TABLE early_sums AS SELECT g, COUNT(*) AS n, SUM(v) AS total, MAX(id) AS newest FROM s GROUP BY g",
        "CREATE TABLE early_bands AS SELECT n % 10 AS band, COUNT(*) AS members, SUM(n) AS total FROM early_sums GROUP BY n % 10",
    ],
    into: STREAM_COLUMNS,
    row: record,
    known: "SELECT COALESCE(SUM(n), 0) FROM early_sums",
    equal: &[
        (
            "SELECT g, n, total, newest FROM early_sums",
            "SELECT g, n, total, newest FROM late_sums",
        ),
        (
            "SELECT band, members, total FROM early_bands",
            "SELECT band, members, total FROM late_bands",
        ),
    ],
    watched: None,
};

/// The late ones: over a stream, and over a table that changes.
const LATE: &str = "
    CREATE TABLE late_sums AS SELECT g, COUNT(*) AS n, SUM(v) AS total, MAX(id) AS newest FROM s GROUP BY g;
    CREATE TABLE late_bands AS SELECT n % 10 AS band, COUNT(*) AS members, SUM(n) AS total FROM early_sums GROUP BY n % 10;
";

const DROP_LATE: &str = "DROP TABLE late_bands DELETE TOPIC; DROP TABLE late_sums DELETE TOPIC;";

/// Rows that come, change, go and come again, with few values, so that many are alike: what stands over them, with the largest of each group and all
/// who have it, and a join by a column that is no key. `mirror` reads the changes of `live` from its topic, where a row that goes is a record without a value.
const CHANGING: Workload = Workload {
    schema: &[
        "CREATE TABLE items (id INT PRIMARY KEY, parent INT, score INT, alive BOOLEAN, written BIGINT)",
        "CREATE TABLE live AS SELECT id, parent, score FROM items WHERE alive",
        "CREATE TABLE best AS SELECT parent, MAX(score) AS score, COUNT(*) AS members FROM live GROUP BY parent",
        "CREATE TABLE winners AS SELECT l.id, l.parent, l.score FROM live l JOIN best b ON l.parent = b.parent AND l.score = b.score",
        "CREATE TABLE children AS SELECT l.id, l.parent, p.id AS found, p.score FROM live l LEFT JOIN live p ON l.parent = p.id",
        "CREATE TABLE mirror (id INT PRIMARY KEY, parent INT, score INT) WITH (kafka_topic = 'live')",
        "CREATE TABLE mirrored AS SELECT l.id, l.parent, p.id AS found, p.score FROM mirror l LEFT JOIN mirror p ON l.parent = p.id",
    ],
    into: "items",
    row: |row, random| {
        // A writer's own ids: what it wrote last is what is there.
        let id = row.writer + WRITERS * random.random_range(0..6);
        let parent = random.random_range(0..6 * WRITERS);
        let (score, alive) = (random.random_range(0..3), random.random_bool(0.7));
        format!("({id}, {parent}, {score}, {alive}, {})", row.id)
    },
    known: "SELECT COALESCE(MAX(written), 0) FROM items",
    equal: &[
        (
            "SELECT id, parent, score FROM live",
            "SELECT id, parent, score FROM items WHERE alive",
        ),
        (
            "SELECT parent, score, members FROM best",
            "SELECT parent, MAX(score), COUNT(*) FROM items WHERE alive GROUP BY parent",
        ),
        (
            "SELECT id, parent, score FROM winners",
            "WITH i AS (SELECT * FROM items WHERE alive) SELECT i.id, i.parent, i.score \
             FROM i JOIN (SELECT parent, MAX(score) AS score FROM i GROUP BY parent) AS b ON i.parent = b.parent AND i.score = b.score",
        ),
        (
            "SELECT id, parent, found, score FROM children",
            "WITH i AS (SELECT * FROM items WHERE alive) SELECT l.id, l.parent, p.id AS found, p.score FROM i AS l LEFT JOIN i AS p ON l.parent = p.id",
        ),
        (
            "SELECT id, parent, found, score FROM mirrored",
            "SELECT l.id, l.parent, p.id AS found, p.score FROM mirror AS l LEFT JOIN mirror AS p ON l.parent = p.id",
        ),
    ],
    watched: None,
};

/// A window of two seconds holds what its two halves hold, while it is open and when it has closed. Rows come in the order of their seconds, so none is late.
const WINDOWS: Workload = Workload {
    schema: &[
        STREAM,
        "CREATE TABLE ones AS SELECT k, COUNT(*) AS n, SUM(id) AS total FROM s \
         WINDOW TUMBLING (SIZE 1 SECOND, GRACE PERIOD 2 SECONDS) GROUP BY k",
        "CREATE TABLE twos AS SELECT k, COUNT(*) AS n, SUM(id) AS total FROM s \
         WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 2 SECONDS) GROUP BY k",
        "CREATE TABLE closed_ones AS SELECT k, COUNT(*) AS n, SUM(id) AS total FROM s \
         WINDOW TUMBLING (SIZE 1 SECOND, GRACE PERIOD 2 SECONDS) GROUP BY k EMIT FINAL",
        "CREATE TABLE closed_twos AS SELECT k, COUNT(*) AS n, SUM(id) AS total FROM s \
         WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 2 SECONDS) GROUP BY k EMIT FINAL",
    ],
    into: STREAM_COLUMNS,
    row: record,
    // A late row would be missing at the end.
    known: "SELECT COALESCE(SUM(n), 0) FROM ones",
    equal: &[
        (
            "SELECT k, windowstart, n, total FROM closed_twos",
            "SELECT t.k, t.windowstart, COALESCE(a.n, 0) + COALESCE(b.n, 0), COALESCE(a.total, 0) + COALESCE(b.total, 0) FROM closed_twos AS t \
             LEFT JOIN closed_ones AS a ON a.k = t.k AND a.windowstart = t.windowstart \
             LEFT JOIN closed_ones AS b ON b.k = t.k AND b.windowend = t.windowend",
        ),
        (
            "SELECT k, windowstart, n, total FROM twos",
            "SELECT t.k, t.windowstart, COALESCE(a.n, 0) + COALESCE(b.n, 0), COALESCE(a.total, 0) + COALESCE(b.total, 0) FROM twos AS t \
             LEFT JOIN ones AS a ON a.k = t.k AND a.windowstart = t.windowstart \
             LEFT JOIN ones AS b ON b.k = t.k AND b.windowend = t.windowend",
        ),
        (
            "SELECT SUM(n), SUM(total) FROM twos",
            "SELECT SUM(n), SUM(total) FROM ones",
        ),
    ],
    watched: None,
};

/// The writers' side of a running workload.
struct Load {
    endpoint: Endpoint,
    workload: Workload,
    /// Rows that were given numbers.
    numbered: AtomicI64,
    /// The present second of event time. It is held for reading by who writes, so it moves on when all that was written before is acknowledged.
    second: RwLock<i64>,
    enough: AtomicBool,
}

impl Load {
    /// Writes until it is told to end.
    async fn write(self: Arc<Self>, writer: i64) {
        let client = self.endpoint.connect().await.expect("a connection");
        let mut random = StdRng::seed_from_u64(writer as u64);
        while !self.enough.load(Ordering::Relaxed) {
            let second = self.second.read().await;
            let count = random.random_range(1..=BATCH);
            let first = self.take_numbers(count);
            let rows: Vec<String> = (first..first + count)
                .map(|id| {
                    let row = Row {
                        writer,
                        id,
                        second: *second,
                    };
                    (self.workload.row)(&row, &mut random)
                })
                .collect();
            let sql = format!(
                "INSERT INTO {} VALUES {}",
                self.workload.into,
                rows.join(", ")
            );
            client.batch_execute(&sql).await.expect("an insert");
            let due = first / ROWS_OF_A_SECOND;
            let over = due > *second;
            drop(second);
            if over {
                let mut second = self.second.write().await;
                *second = due.max(*second);
            }
        }
    }

    /// The first of so many numbers that nobody else has.
    fn take_numbers(&self, count: i64) -> i64 {
        self.numbered.fetch_add(count, Ordering::Relaxed) + 1
    }
}

/// A server with a workload's queries and writers.
struct Running {
    /// Kept for its process.
    _server: ServerProcess,
    endpoint: Endpoint,
    client: Client,
    load: Arc<Load>,
    writers: Vec<JoinHandle<()>>,
}

impl Running {
    async fn start(workload: Workload, partitions: u32) -> Self {
        let partitions = partitions.to_string();
        let server = ServerProcess::start_with(&["--default-partitions", &partitions])
            .await
            .expect("the server starts");
        let endpoint = server.endpoint().clone();
        let client = endpoint.connect().await.expect("a connection");
        for statement in workload.schema {
            client
                .batch_execute(statement)
                .await
                .unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        }
        let load = Arc::new(Load {
            endpoint: endpoint.clone(),
            workload,
            numbered: AtomicI64::new(0),
            second: RwLock::new(0),
            enough: AtomicBool::new(false),
        });
        let writers = (0..WRITERS)
            .map(|writer| tokio::spawn(Arc::clone(&load).write(writer)))
            .collect();
        Self {
            _server: server,
            endpoint,
            client,
            load,
            writers,
        }
    }

    /// Starts an observer of the workload's pairs.
    fn poll(&self, looks: usize, reading: Reading) -> JoinHandle<Result<(), String>> {
        tokio::spawn(poll(
            self.endpoint.clone(),
            self.load.workload,
            looks,
            reading,
        ))
    }

    /// Starts an observer of the workload's push query.
    fn watch(&self, looks: usize) -> JoinHandle<Result<(), String>> {
        tokio::spawn(watch(
            self.endpoint.clone(),
            self.load.workload.watched,
            looks,
        ))
    }

    /// Writes many rows to [`STREAM`] at once.
    async fn copy(&self, rows: i64) {
        let first = self.load.take_numbers(rows);
        let lines: String = (first..first + rows)
            .map(|id| format!("{},{},{},{id}\n", id % 8, id % 10, id % 7))
            .collect();
        let copy = "COPY s (k, g, v, id) FROM STDIN WITH (FORMAT csv)";
        let sink = self.client.copy_in::<_, Bytes>(copy).await.expect("a COPY");
        let mut sink = std::pin::pin!(sink);
        sink.send(lines.into()).await.expect("rows");
        assert_eq!(sink.finish().await.expect("the end"), rows as u64);
    }

    /// Ends the load; all that was written must be known then.
    async fn end(self) {
        self.load.enough.store(true, Ordering::Relaxed);
        for writer in self.writers {
            writer.await.expect("every row is written");
        }
        self.client
            .batch_execute("SET freshness = 'strong'")
            .await
            .expect("a setting");
        let written = self.load.numbered.load(Ordering::Relaxed);
        let known = texts(&self.client, self.load.workload.known).await;
        assert_eq!(known, [[written.to_string()]], "known = written");
    }
}

/// Reads the pairs so often; an error is what was seen and is wrong.
async fn poll(
    endpoint: Endpoint,
    workload: Workload,
    looks: usize,
    reading: Reading,
) -> Result<(), String> {
    let client = endpoint.connect().await.expect("a connection");
    let mut known = 0;
    let mut last = vec![Vec::new(); workload.equal.len()];
    let mut states = vec![0; workload.equal.len()];
    for _ in 0..looks {
        if reading == Reading::Together {
            client
                .batch_execute("BEGIN READ ONLY")
                .await
                .expect("a block");
        }
        let before = known;
        known = texts(&client, workload.known).await[0][0]
            .parse()
            .expect("a number");
        if known < before {
            return Err(format!("{known} rows were known after {before}"));
        }
        for (pair, (one, other)) in workload.equal.iter().enumerate() {
            let answer = sorted(&client, one).await;
            let same = sorted(&client, other).await;
            if answer != same {
                return Err(format!(
                    "with {known} rows known, {one}\nsays {answer:?}\nbut {other}\nsays {same:?}"
                ));
            }
            if answer != last[pair] {
                states[pair] += 1;
                last[pair] = answer;
            }
        }
        if reading == Reading::Together {
            client.batch_execute("COMMIT").await.expect("the end");
        }
    }
    for ((one, _), states) in workload.equal.iter().zip(states) {
        if states < looks * STATES_OF_A_HUNDRED / 100 {
            return Err(format!("{one}\nwas seen in {states} states only"));
        }
    }
    Ok(())
}

/// Reads so many rows of the push query; an error is one that is wrong.
async fn watch(endpoint: Endpoint, watched: Option<Watched>, looks: usize) -> Result<(), String> {
    let Some(Watched { sql, holds }) = watched else {
        return Ok(());
    };
    let mut watch = Watch::start(&endpoint, sql).await.expect("a watch");
    for _ in 0..looks {
        let row = watch.next().await.expect("a change").expect("no end");
        if !holds(&row) {
            return Err(format!("{sql}\nsent {row:?}"));
        }
    }
    Ok(())
}

async fn sorted(client: &Client, sql: &str) -> Vec<Vec<String>> {
    let mut rows = texts(client, sql).await;
    rows.sort_unstable();
    rows
}

/// Two observers ask and one watches while the writers write, with one partition and with four.
async fn hold(workload: Workload) {
    for partitions in [1, 4] {
        let running = Running::start(workload, partitions).await;
        let observers = [
            running.poll(looks(), Reading::Together),
            running.poll(looks(), Reading::Together),
            running.watch(2 * looks()),
        ];
        for observer in observers {
            if let Err(seen) = observer.await.expect("every query is answered") {
                panic!("{partitions} partitions: {seen}");
            }
        }
        running.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outer_join_never_lacks_a_side_that_comes_from_the_same_record() {
    hold(OUTER_JOIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mean_times_its_count_is_always_the_sum() {
    hold(DIAMOND).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_and_its_opposites_always_make_the_whole() {
    hold(FILTERS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_declared_twice_is_always_read_to_one_place() {
    hold(DECLARED_TWICE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_over_changing_rows_is_always_their_batch_result() {
    hold(CHANGING).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_always_holds_what_its_halves_hold() {
    hold(WINDOWS).await;
}

/// The late queries have so much behind them that they first catch up beside the steps.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_from_the_middle_of_the_load_says_what_one_from_before_says() {
    const ROUNDS: usize = 3;
    const HISTORY: i64 = 30_000;
    for partitions in [1, 4] {
        let running = Running::start(EARLY_AND_LATE, partitions).await;
        for round in 0..ROUNDS {
            running.copy(HISTORY).await;
            running
                .client
                .batch_execute(LATE)
                .await
                .expect("the late queries start");
            // They are ready when CREATE answers.
            let states = states(&running.client).await;
            assert!(states.iter().all(|state| state == "running"), "{states:?}");
            let observer = running.poll(looks() * 2 / ROUNDS, Reading::Together);
            if let Err(seen) = observer.await.expect("every query is answered") {
                panic!("{partitions} partitions, round {round}: {seen}");
            }
            running
                .client
                .batch_execute(DROP_LATE)
                .await
                .expect("the late queries go");
        }
        running.end().await;
    }
}

/// Control: queries that are read one by one, each at a step of its own.
#[tokio::test(flavor = "multi_thread")]
async fn tables_that_are_read_apart_are_caught() {
    let running = Running::start(FILTERS, 4).await;
    let seen = running.poll(looks(), Reading::Apart).await.unwrap();
    let seen = seen.expect_err("answers of different steps were not reported");
    assert!(seen.contains("says"), "{seen}");
    running.end().await;
}

/// Control: one side of the join has not got every record.
#[tokio::test(flavor = "multi_thread")]
async fn a_join_that_lacks_a_side_is_caught() {
    let lacking = Workload {
        schema: &[
            STREAM,
            "CREATE TABLE lefts AS SELECT id, SUM(v) AS total FROM s GROUP BY id",
            "CREATE TABLE rights AS SELECT id, COUNT(*) AS n FROM s WHERE g > 0 GROUP BY id",
            "CREATE TABLE left_joined AS SELECT l.id, r.id AS other FROM lefts l LEFT JOIN rights r ON l.id = r.id",
        ],
        equal: &OUTER_JOIN.equal[..1],
        ..OUTER_JOIN
    };
    let running = Running::start(lacking, 4).await;
    let observers = [
        running.poll(looks(), Reading::Together),
        running.watch(looks()),
    ];
    for (observer, told) in observers.into_iter().zip(["says", "sent"]) {
        let seen = observer.await.unwrap();
        let seen = seen.expect_err("rows without their other side were not reported");
        assert!(seen.contains(told), "{seen}");
    }
    running.end().await;
}
