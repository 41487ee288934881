//! Connections that insert beside the rows that are timed.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::server::{RunningServer, told};

/// Connections that write at the same time: each waits for its acknowledgement, so one alone would mostly wait for the disk.
const WRITERS: u64 = 4;
/// Rows of one INSERT.
const ROWS: u64 = 500;
/// Statements that a writer makes before it begins, at the most; it sends them again and again.
const STATEMENTS: u64 = 512;

/// Connections that insert at a given rate.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    rows: Arc<AtomicU64>,
    begin: Instant,
    writers: JoinSet<Result<()>>,
}

/// Rows a second that the server takes and all queries have read, when writers do not wait between two statements.
pub(crate) async fn peak(server: &RunningServer, keys: u64, time: Duration) -> Result<f64> {
    let load = Load::start(server, keys, f64::INFINITY).await?;
    tokio::time::sleep(time).await;
    load.stop().await
}

impl Load {
    /// Rows of so many keys in turns, as far as [`STATEMENTS`] statements reach.
    pub(crate) async fn start(
        server: &RunningServer,
        keys: u64,
        rows_per_second: f64,
    ) -> Result<Self> {
        let mut load = Self {
            stop: Arc::default(),
            rows: Arc::default(),
            begin: Instant::now(),
            writers: JoinSet::new(),
        };
        for number in 0..WRITERS {
            let client = server.connect().await?;
            let interval = WRITERS as f64 * ROWS as f64 / rows_per_second;
            load.writers.spawn(write(
                client,
                statements(number, keys),
                Duration::from_secs_f64(interval),
                Arc::clone(&load.stop),
                Arc::clone(&load.rows),
            ));
        }
        Ok(load)
    }

    /// Ends it; answers with the rows a second until all queries had read them.
    pub(crate) async fn stop(mut self) -> Result<f64> {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.writers.join_next().await {
            ended??;
        }
        Ok(self.rows.load(Ordering::Relaxed) as f64 / self.begin.elapsed().as_secs_f64())
    }
}

/// Inserts every `interval`, or as soon as it can when it is late. In the end it sees its rows in the table.
async fn write(
    client: Client,
    statements: Vec<String>,
    interval: Duration,
    stop: Arc<AtomicBool>,
    rows: Arc<AtomicU64>,
) -> Result<()> {
    let begin = Instant::now();
    let mut sent = 0;
    let mut next = statements.iter().cycle();
    while !stop.load(Ordering::Relaxed) {
        let due = interval * sent;
        tokio::time::sleep(due.saturating_sub(begin.elapsed())).await;
        let statement = next.next().expect("there is at least one");
        client.batch_execute(statement).await.map_err(told)?;
        rows.fetch_add(ROWS, Ordering::Relaxed);
        sent += 1;
    }
    client
        .query("SELECT n FROM latest WHERE k = 'k0'", &[])
        .await
        .map_err(told)?;
    Ok(())
}

/// The statements of one writer, which reach all keys together with the others'.
fn statements(writer: u64, keys: u64) -> Vec<String> {
    let rounds = keys.div_ceil(WRITERS * ROWS).clamp(1, STATEMENTS);
    (0..rounds)
        .map(|round| statement((round * WRITERS + writer) * ROWS, keys))
        .collect()
}

fn statement(first: u64, keys: u64) -> String {
    let mut statement = String::from("INSERT INTO events (k, id, payload) VALUES ");
    for row in 0..ROWS {
        let comma = if row > 0 { ", " } else { "" };
        let key = (first + row) % keys;
        write!(
            statement,
            "{comma}('k{key}', -1, 'a payload of some forty characters, {row:04}')"
        )
        .expect("a string takes all that is written");
    }
    statement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_all_their_rows_and_keys() {
        let texts = statements(3, 1_000);
        assert_eq!(texts.len(), 1);
        assert_eq!(texts[0].matches("-1").count() as u64, ROWS);
        assert!(texts[0].contains("('k500', -1,"), "{}", texts[0]);
        let texts = statements(1, 1_000_000);
        assert_eq!(texts.len(), 500);
        assert!(texts[499].contains("('k998500', -1,"), "{}", texts[499]);
    }
}
