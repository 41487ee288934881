//! The server under test with its streams and continuous queries.

use anyhow::Result;
use highwater_sqllogictest::ServerProcess;
use tokio_postgres::Client;

use crate::{bank, ledger::Ledger};

/// A chain of queries: counts on the producers' own partitions, counts that move rows between partitions, a stream made by a query, a table
/// over that stream, and windows.
const SCHEMA: &str = "
    CREATE STREAM events (producer VARCHAR KEY, id BIGINT, amount BIGINT)
        WITH (kafka_topic = 'events', partitions = 4, value_format = 'JSON');
    CREATE TABLE totals AS
        SELECT producer, COUNT(*) AS n, SUM(amount) AS total, MAX(id) AS newest FROM events GROUP BY producer;
    CREATE TABLE amounts AS
        SELECT amount, COUNT(*) AS n, SUM(id) AS total FROM events GROUP BY amount;
    CREATE STREAM large AS
        SELECT producer, id, amount FROM events WHERE amount >= 5;
    CREATE TABLE large_totals AS
        SELECT amount, COUNT(*) AS n, SUM(id) AS total FROM large GROUP BY amount;
    CREATE TABLE minutes AS
        SELECT producer, COUNT(*) AS n FROM events WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY producer;
";

/// The server and the connection that checks use.
pub struct World {
    pub server: ServerProcess,
}

impl World {
    /// An empty server with the streams and queries. Checkpoints come often, so that kills fall before, into and after them.
    pub async fn create() -> Result<Self> {
        let server =
            ServerProcess::start_with(&["--checkpoint-interval", "150ms", "--log-level", "warn"])
                .await?;
        let client = server.endpoint().connect().await?;
        client.batch_execute(SCHEMA).await?;
        client.batch_execute(bank::SCHEMA).await?;
        Ok(Self { server })
    }

    /// A connection that sees every record acknowledged to anyone.
    pub async fn connect(&self) -> Result<Client> {
        let client = self.server.endpoint().connect().await?;
        client.batch_execute("SET freshness = 'strong'").await?;
        Ok(client)
    }

    /// Appends a record that is there already.
    pub async fn repeat_a_record(&self) -> Result<()> {
        let client = self.connect().await?;
        let row = client
            .query_one("SELECT producer, id, amount FROM events LIMIT 1", &[])
            .await?;
        let (producer, id, amount): (&str, i64, i64) = (row.get(0), row.get(1), row.get(2));
        client
            .batch_execute(&format!(
                "INSERT INTO events VALUES ('{producer}', {id}, {amount})"
            ))
            .await?;
        Ok(())
    }

    /// Writes two records between which `totals` is dropped and made again, reading only what comes.
    pub async fn replace_totals_by_late_starter(&self, ledger: &mut Ledger) -> Result<()> {
        let client = self.connect().await?;
        let cycle = ledger.begin_cycle();
        let ids = [cycle.first_id, cycle.first_id + 1];
        client
            .batch_execute(&format!("INSERT INTO events VALUES ('p0', {}, 1)", ids[0]))
            .await?;
        client
            .batch_execute(
                "DROP TABLE totals;
                 SET 'auto.offset.reset' = 'latest';
                 CREATE TABLE totals AS SELECT producer, COUNT(*) AS n, SUM(amount) AS total, MAX(id) AS newest
                     FROM events GROUP BY producer;",
            )
            .await?;
        client
            .batch_execute(&format!("INSERT INTO events VALUES ('p0', {}, 1)", ids[1]))
            .await?;
        ledger.add(crate::load::Written {
            acknowledged: ids.to_vec(),
            in_flight: Vec::new(),
        });
        Ok(())
    }
}
