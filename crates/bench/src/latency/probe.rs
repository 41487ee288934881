//! Rows that are timed.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use futures::TryStreamExt;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_postgres::{Client, Statement, types::ToSql};

use crate::server::{RunningServer, told};

/// The key of rows that are timed.
const KEY: &str = "probe";
/// A row that takes longer ends the measurement.
const PATIENCE: Duration = Duration::from_secs(30);
/// Rows that may wait between the subscriber and the measurement; it takes one at a time.
const WAITING: usize = 1_024;

/// Milliseconds, one a row.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) acknowledged: Vec<f64>,
    pub(crate) send_to_push: Vec<f64>,
    /// Below 0 where the subscriber had the row before the writer had its answer.
    pub(crate) acknowledged_to_push: Vec<f64>,
    pub(crate) send_to_pull: Vec<f64>,
    pub(crate) acknowledged_to_pull: Vec<f64>,
}

/// A writer and a subscriber.
pub(crate) struct Probe {
    writer: Client,
    insert: Statement,
    pull: Statement,
    arrivals: mpsc::Receiver<(i64, Instant)>,
    subscriber: JoinHandle<Result<()>>,
    next: i64,
}

impl Probe {
    pub(crate) async fn start(server: &RunningServer) -> Result<Self> {
        let writer = server.connect().await?;
        let insert = writer
            .prepare("INSERT INTO events (k, id, payload) VALUES ($1, $2, $3)")
            .await
            .map_err(told)?;
        let pull = writer
            .prepare("SELECT id FROM latest WHERE k = $1")
            .await
            .map_err(told)?;
        let reader = server.connect().await?;
        let rows = reader
            .query_raw(
                "SELECT id FROM events WHERE id >= 0 EMIT CHANGES",
                Vec::<&(dyn ToSql + Sync)>::new(),
            )
            .await
            .map_err(told)?;
        let (send, arrivals) = mpsc::channel(WAITING);
        let subscriber = tokio::spawn(async move {
            // The connection lives as long as its client.
            let _reader = reader;
            let mut rows = pin!(rows);
            while let Some(row) = rows.try_next().await.map_err(told)? {
                let arrival = (row.try_get(0)?, Instant::now());
                if send.send(arrival).await.is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(Self {
            writer,
            insert,
            pull,
            arrivals,
            subscriber,
            next: 0,
        })
    }

    /// Times rows for so long, with a pause before each.
    pub(crate) async fn run(&mut self, time: Duration, pause: Duration) -> Result<Waits> {
        let begin = Instant::now();
        let mut waits = Waits::default();
        while begin.elapsed() < time || waits.send_to_push.is_empty() {
            tokio::time::sleep(pause).await;
            timeout(PATIENCE, self.one(&mut waits))
                .await
                .with_context(|| format!("a row did not arrive within {PATIENCE:?}"))??;
        }
        Ok(waits)
    }

    async fn one(&mut self, waits: &mut Waits) -> Result<()> {
        let id = self.next;
        self.next += 1;
        let sent = Instant::now();
        self.writer
            .execute(&self.insert, &[&KEY, &id, &"timed"])
            .await
            .map_err(told)?;
        let acknowledged = Instant::now();
        let row = self
            .writer
            .query_one(&self.pull, &[&KEY])
            .await
            .map_err(told)?;
        let pulled = Instant::now();
        let seen: i64 = row.try_get(0)?;
        if seen != id {
            bail!("a pull query saw row {seen} after row {id} was acknowledged");
        }
        let Some((arrived, pushed)) = self.arrivals.recv().await else {
            let ended = (&mut self.subscriber).await?;
            bail!("the push query ended: {ended:?}");
        };
        if arrived != id {
            bail!("the push query gave row {arrived} instead of row {id}");
        }
        waits.acknowledged.push(millis(sent, acknowledged));
        waits.send_to_push.push(millis(sent, pushed));
        waits
            .acknowledged_to_push
            .push(millis(acknowledged, pushed));
        waits.send_to_pull.push(millis(sent, pulled));
        waits
            .acknowledged_to_pull
            .push(millis(acknowledged, pulled));
        Ok(())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.subscriber.abort();
    }
}

fn millis(from: Instant, to: Instant) -> f64 {
    let late = to.saturating_duration_since(from).as_secs_f64();
    let early = from.saturating_duration_since(to).as_secs_f64();
    (late - early) * 1_000.0
}
