//! What must hold after every restart.
//!
//! 1. Every acknowledged record is in the stream exactly once, and the stream holds nothing that was not sent.
//! 2. A record stays where it was first seen; offsets of a partition are dense.
//! 3. Every table equals the batch result over its stream, read in the same statement.
//! 4. The stream that a query makes holds exactly the records that its filter lets through, each once.
//! 5. Every query runs, and counts a new record.

use std::{collections::HashSet, fmt};

use highwater_sqllogictest::Endpoint;
use tokio_postgres::{Client, Row, SimpleQueryMessage};

use crate::{
    ledger::{Ledger, PROBE},
    load::Written,
    world::World,
};

/// A promise that was broken.
#[derive(Debug)]
pub enum Fault {
    /// The check came to a result.
    Broken(String),
    /// The server did not answer the check.
    NoAnswer(anyhow::Error),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(what) => f.write_str(what),
            Self::NoAnswer(error) => write!(f, "no answer to a check: {error:?}"),
        }
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::NoAnswer(error.into())
    }
}

/// Tables and the batch result each must equal: name, columns of both sides in order (the first ones named `key`), batch query.
const TABLES: [(&str, &str, &str); 5] = [
    (
        "totals",
        "SELECT producer AS key, n, total, newest AS extra FROM totals",
        "SELECT producer AS key, count(*) AS n, sum(amount) AS total, max(id) AS extra FROM events GROUP BY producer",
    ),
    (
        "amounts",
        "SELECT amount AS key, n, total, 0 AS extra FROM amounts",
        "SELECT amount AS key, count(*) AS n, sum(id) AS total, 0 AS extra FROM events GROUP BY amount",
    ),
    (
        "large_totals",
        "SELECT amount AS key, n, total, 0 AS extra FROM large_totals",
        "SELECT amount AS key, count(*) AS n, sum(id) AS total, 0 AS extra FROM events WHERE amount >= 5 GROUP BY amount",
    ),
    (
        "large",
        "SELECT amount AS key, count(*) AS n, count(DISTINCT id) AS total, sum(id) AS extra FROM large GROUP BY amount",
        "SELECT amount AS key, count(*) AS n, count(*) AS total, sum(id) AS extra FROM events WHERE amount >= 5 GROUP BY amount",
    ),
    (
        "minutes",
        "SELECT producer AS key, sum(n) AS n, 0 AS total, 0 AS extra FROM minutes GROUP BY producer",
        "SELECT producer AS key, count(*) AS n, 0 AS total, 0 AS extra FROM events GROUP BY producer",
    ),
];

/// How much is compared one by one.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    all: bool,
}

impl Check {
    /// Records of the last cycle one by one, all others by count and sum.
    pub fn quick() -> Self {
        Self { all: false }
    }

    /// Every record one by one.
    pub fn full() -> Self {
        Self { all: true }
    }

    /// Runs all checks.
    pub async fn run(self, world: &World, ledger: &mut Ledger) -> Result<(), Fault> {
        let client = world.connect().await.map_err(Fault::NoAnswer)?;
        insert_probe(&client, ledger).await?;
        check_earlier_records(&client, ledger).await?;
        let first = if self.all { 0 } else { ledger.cycle().first_id };
        check_records(&client, ledger, first).await?;
        check_offsets(&client).await?;
        for (name, continuous, batch) in TABLES {
            check_table(&client, name, continuous, batch).await?;
        }
        check_queries(&client).await
    }
}

/// Asks for tables and their batch results until the server is gone.
pub async fn agree_until_gone(endpoint: Endpoint) -> Result<(), Fault> {
    let Ok(client) = endpoint.connect().await else {
        return Ok(());
    };
    for (name, continuous, batch) in TABLES.iter().cycle() {
        match check_table(&client, name, continuous, batch).await {
            Ok(()) => {}
            Err(Fault::NoAnswer(_)) if client.is_closed() => break,
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

/// A record that every later check must find and every query must count.
async fn insert_probe(client: &Client, ledger: &mut Ledger) -> Result<(), Fault> {
    let id = ledger.cycle().first_id + PROBE;
    client
        .batch_execute(&format!("INSERT INTO events VALUES ('probe', {id}, 9)"))
        .await?;
    ledger.add(Written {
        acknowledged: vec![id],
        in_flight: Vec::new(),
    });
    Ok(())
}

/// Records of earlier cycles have not changed in number or sum: one lost or doubled would show.
async fn check_earlier_records(client: &Client, ledger: &Ledger) -> Result<(), Fault> {
    let first = ledger.cycle().first_id;
    let sql = "SELECT count(*), coalesce(sum(id), 0) FROM events WHERE id < $1";
    let row = client.query_one(sql, &[&first]).await?;
    let found = (
        row.get::<_, i64>(0) as usize,
        i128::from(row.get::<_, i64>(1)),
    );
    let expected = ledger.seen_before(first);
    if found != expected {
        let message = format!(
            "records of earlier cycles were lost, changed or appended twice: {} with sum {} now, {} with sum {} before",
            found.0, found.1, expected.0, expected.1
        );
        return Err(Fault::Broken(message));
    }
    Ok(())
}

async fn check_records(client: &Client, ledger: &mut Ledger, first: i64) -> Result<(), Fault> {
    let sql = "SELECT id, rowpartition, rowoffset FROM events WHERE id >= $1";
    let rows = client.query(sql, &[&first]).await?;
    let mut found = HashSet::with_capacity(rows.len());
    for row in &rows {
        let (id, place) = (row.get::<_, i64>(0), place(row));
        if !found.insert(id) {
            return Err(Fault::Broken(format!("record {id} is in the stream twice")));
        }
        if !ledger.was_sent(id) {
            return Err(Fault::Broken(format!("record {id} was never sent")));
        }
        if let Some(before) = ledger.place(id, place) {
            return Err(Fault::Broken(format!(
                "record {id} moved from {before:?} to {place:?} (partition, offset)"
            )));
        }
    }
    let lost: Vec<i64> = ledger
        .acknowledged_from(first)
        .filter(|id| !found.contains(id))
        .collect();
    if !lost.is_empty() {
        return Err(Fault::Broken(format!(
            "{} acknowledged records are lost: {lost:?}",
            lost.len()
        )));
    }
    Ok(())
}

fn place(row: &Row) -> (i32, i64) {
    (row.get(1), row.get(2))
}

async fn check_offsets(client: &Client) -> Result<(), Fault> {
    let sql = "SELECT rowpartition, count(*), min(rowoffset), max(rowoffset) FROM events GROUP BY rowpartition";
    for row in client.query(sql, &[]).await? {
        let (partition, count): (i32, i64) = (row.get(0), row.get(1));
        let (lowest, highest): (i64, i64) = (row.get(2), row.get(3));
        if lowest != 0 || highest != count - 1 {
            let message = format!(
                "partition {partition} has {count} records at offsets {lowest} to {highest}"
            );
            return Err(Fault::Broken(message));
        }
    }
    Ok(())
}

/// Both sides are read by one statement, hence at one step.
async fn check_table(
    client: &Client,
    name: &str,
    continuous: &str,
    batch: &str,
) -> Result<(), Fault> {
    let differs = ["n", "total", "extra"]
        .map(|column| format!("(c.{column} IS DISTINCT FROM b.{column})"))
        .join(" OR ");
    let sql = format!(
        "SELECT c.key, b.key, c.n, b.n, c.total, b.total, c.extra, b.extra \
         FROM ({continuous}) AS c FULL JOIN ({batch}) AS b ON c.key = b.key WHERE {differs}"
    );
    let rows: Vec<String> = client
        .simple_query(&sql)
        .await?
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(
                (0..row.len())
                    .map(|column| row.get(column).unwrap_or("NULL"))
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            _ => None,
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let columns = "key, n, total, extra, each as the query has it and as the batch result has it";
    Err(Fault::Broken(format!(
        "{name} differs from its batch result ({columns}):\n{}",
        rows.join("\n")
    )))
}

async fn check_queries(client: &Client) -> Result<(), Fault> {
    let mut queries = 0;
    for message in client.simple_query("SHOW QUERIES").await? {
        if let SimpleQueryMessage::Row(row) = message {
            queries += 1;
            let state = row.get("state").unwrap_or("unknown");
            if !state.eq_ignore_ascii_case("running") {
                return Err(Fault::Broken(format!(
                    "query {} is {state}",
                    row.get(0).unwrap_or("?")
                )));
            }
        }
    }
    if queries < 5 {
        return Err(Fault::Broken(format!("{queries} queries are left")));
    }
    Ok(())
}
