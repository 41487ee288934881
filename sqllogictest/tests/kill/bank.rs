//! The bank: money that is only moved, so that it adds up to nothing in every answer, before a kill and after it.
//!
//! A transfer is one INSERT of two entries for two accounts, as a rule in two partitions: a crash must leave both or neither. Over the entries stand
//! credits and debits as tables, balances as their join, and totals over these, all as chained continuous queries; they are read together, in one
//! transaction block, and each must be what the entries of that moment make.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::{Result, ensure};
use highwater_sqllogictest::Endpoint;
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio_postgres::{Client, SimpleQueryMessage};

/// Streams and queries.
pub const SCHEMA: &str = "
    CREATE STREAM entries (account BIGINT KEY, transfer BIGINT, amount BIGINT)
        WITH (kafka_topic = 'entries', partitions = 4, value_format = 'JSON');
    CREATE TABLE books AS SELECT COUNT(*) AS n, SUM(amount) AS total FROM entries;
    CREATE TABLE credits AS SELECT account, SUM(amount) AS amount FROM entries WHERE amount > 0 GROUP BY account;
    CREATE TABLE debits AS SELECT account, SUM(-amount) AS amount FROM entries WHERE amount < 0 GROUP BY account;
    CREATE TABLE balances AS
        SELECT COALESCE(c.account, d.account) AS account, COALESCE(c.amount, 0) AS credit, COALESCE(d.amount, 0) AS debit,
               COALESCE(c.amount, 0) - COALESCE(d.amount, 0) AS balance
        FROM credits c FULL JOIN debits d ON c.account = d.account;
    CREATE TABLE total AS SELECT SUM(balance) AS balance, SUM(credit) AS credit, SUM(debit) AS debit FROM balances;
";

const ACCOUNTS: i64 = 10;

/// Most transfers of one INSERT.
const MOST_TRANSFERS: i64 = 3;

/// Most INSERTs of a cycle. It bounds what checks must read back.
const MOST_INSERTS: i64 = 40;

/// What the client knows of its transfers.
#[derive(Debug, Default)]
pub struct Bank {
    next: i64,
    /// First transfer of the last cycle.
    cycle: i64,
    acknowledged: BTreeSet<i64>,
    /// Transfers of INSERTs whose answer never came: each is there as a whole or not at all.
    in_flight: Vec<Vec<i64>>,
    /// Observations that were made while money moved.
    observations: u64,
    /// Most entries that a reader has seen in the books.
    seen: i64,
}

/// What a reader saw before the server was gone.
#[derive(Debug, Default)]
pub struct Observed {
    observations: u64,
    entries: i64,
}

/// One cycle's transfers, on their own task.
pub struct Moves {
    endpoint: Endpoint,
    random: StdRng,
    next: i64,
}

/// What became of a cycle's transfers.
pub struct Moved {
    next: i64,
    acknowledged: Vec<i64>,
    in_flight: Option<Vec<i64>>,
}

impl Moves {
    /// Moves money until the server is gone.
    pub async fn run(mut self) -> Moved {
        let mut moved = Moved {
            next: self.next,
            acknowledged: Vec::new(),
            in_flight: None,
        };
        let Ok(client) = self.endpoint.connect().await else {
            return moved;
        };
        for _ in 0..MOST_INSERTS {
            let (ids, sql) = self.insert();
            moved.next = self.next;
            if client.batch_execute(&sql).await.is_err() {
                moved.in_flight = Some(ids);
                break;
            }
            moved.acknowledged.extend(ids);
        }
        moved
    }

    fn insert(&mut self) -> (Vec<i64>, String) {
        let count = self.random.random_range(1..=MOST_TRANSFERS);
        let ids: Vec<i64> = (self.next..self.next + count).collect();
        self.next += count;
        let rows: Vec<String> = ids
            .iter()
            .map(|id| {
                let from = self.random.random_range(0..ACCOUNTS);
                let to = (from + self.random.random_range(1..ACCOUNTS)) % ACCOUNTS;
                let amount = self.random.random_range(1..100);
                format!("({from}, {id}, -{amount}), ({to}, {id}, {amount})")
            })
            .collect();
        (
            ids,
            format!("INSERT INTO entries VALUES {}", rows.join(", ")),
        )
    }
}

impl fmt::Display for Bank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} transfers acknowledged, {} INSERTs were in flight at a kill, the books were read {} times meanwhile",
            self.acknowledged.len(),
            self.in_flight.len(),
            self.observations
        )
    }
}

impl Bank {
    /// Transfers for another cycle.
    pub fn moves(&self, endpoint: &Endpoint, random: &mut StdRng) -> Moves {
        Moves {
            endpoint: endpoint.clone(),
            random: StdRng::seed_from_u64(random.random()),
            next: self.next,
        }
    }

    /// Notes what became of them.
    pub fn add(&mut self, moved: Moved) {
        self.cycle = std::mem::replace(&mut self.next, moved.next);
        self.acknowledged.extend(moved.acknowledged);
        self.in_flight.extend(moved.in_flight);
    }

    /// Notes what was seen meanwhile.
    pub fn saw(&mut self, observed: &Observed) {
        self.observations += observed.observations;
        self.seen = self.seen.max(observed.entries);
    }

    /// Checks that who looks now sees nothing older than what was seen before, also before a restart.
    pub async fn check_monotonic(&mut self, client: &Client) -> Result<()> {
        let entries = observe(client).await?;
        ensure!(
            entries >= self.seen,
            "the books went back: {entries} entries after {} were seen",
            self.seen
        );
        self.seen = entries;
        Ok(())
    }

    /// Checks what is there after a restart, of the last cycle or of all: all that was acknowledged, transfers of one INSERT all or none, and the books.
    pub async fn check(&self, client: &Client, all: bool) -> Result<()> {
        let first = if all { 0 } else { self.cycle };
        let sql = format!(
            "SELECT transfer, count(*), sum(amount) FROM entries WHERE transfer >= {first} GROUP BY transfer"
        );
        let mut found = BTreeSet::new();
        for row in numbers(client, &sql).await? {
            let [transfer, entries, sum] = row[..] else {
                anyhow::bail!("{} columns", row.len());
            };
            ensure!(
                (entries, sum) == (2, 0),
                "transfer {transfer} has {entries} entries with sum {sum}: torn, lost or doubled"
            );
            found.insert(transfer);
        }
        let lost: Vec<&i64> = self
            .acknowledged
            .range(first..)
            .filter(|id| !found.contains(id))
            .collect();
        ensure!(lost.is_empty(), "acknowledged transfers are lost: {lost:?}");
        for insert in self.in_flight.iter().filter(|ids| ids[0] >= first) {
            let kept = insert.iter().filter(|id| found.contains(id)).count();
            ensure!(
                kept == 0 || kept == insert.len(),
                "an INSERT was torn: of transfers {insert:?}, {kept} are there"
            );
        }
        let sent = |id: &i64| {
            self.acknowledged.contains(id) || self.in_flight.iter().flatten().any(|sent| sent == id)
        };
        let unknown: Vec<&i64> = found.iter().filter(|id| !sent(id)).collect();
        ensure!(
            unknown.is_empty(),
            "transfers that nobody sent: {unknown:?}"
        );
        observe(client).await?;
        Ok(())
    }
}

/// Reads all tables of one moment until the server is gone. The books must not go back.
pub async fn observe_until_gone(endpoint: Endpoint) -> Result<Observed> {
    let mut observed = Observed::default();
    let Ok(client) = endpoint.connect().await else {
        return Ok(observed);
    };
    loop {
        match observe(&client).await {
            Ok(entries) => {
                let before = observed.entries;
                ensure!(entries >= before, "{entries} entries after {before}");
                observed.entries = entries;
                observed.observations += 1;
            }
            Err(_) if client.is_closed() => return Ok(observed),
            Err(fault) => return Err(fault),
        }
    }
}

/// One look at all tables, which must agree with each other and with the entries. Answers how many these are.
async fn observe(client: &Client) -> Result<i64> {
    client.batch_execute("BEGIN READ ONLY").await?;
    let books = numbers(client, "SELECT n, total FROM books").await?;
    let balances = numbers(
        client,
        "SELECT account, credit, debit, balance FROM balances",
    )
    .await?;
    let total = numbers(client, "SELECT balance, credit, debit FROM total").await?;
    let entries = numbers(
        client,
        "SELECT account, sum(greatest(amount, 0)), sum(greatest(-amount, 0)), count(*) FROM entries GROUP BY account",
    )
    .await?;
    client.batch_execute("COMMIT").await?;
    let Some([n, sum]) = books.first().map(|row| [row[0], row[1]]) else {
        anyhow::bail!("the books have no row");
    };
    ensure!(sum == 0 && n % 2 == 0, "{n} entries with sum {sum}");
    let counted: i64 = entries.iter().map(|row| row[3]).sum();
    ensure!(counted == n, "{counted} entries, but {n} in the books");
    let of_entries: BTreeMap<i64, (i64, i64)> = entries
        .iter()
        .map(|row| (row[0], (row[1], row[2])))
        .collect();
    let of_tables: BTreeMap<i64, (i64, i64)> = balances
        .iter()
        .map(|row| (row[0], (row[1], row[2])))
        .collect();
    ensure!(
        of_entries == of_tables,
        "credits and debits are {of_tables:?}, the entries make {of_entries:?}"
    );
    for row in &balances {
        ensure!(row[3] == row[1] - row[2], "a balance is wrong: {row:?}");
    }
    if let Some(total) = total.first().filter(|_| n > 0) {
        ensure!(
            total[0] == 0 && total[1] == total[2],
            "the totals are {total:?}"
        );
    }
    Ok(n)
}

async fn numbers(client: &Client, sql: &str) -> Result<Vec<Vec<i64>>> {
    let mut rows = Vec::new();
    for message in client.simple_query(sql).await? {
        if let SimpleQueryMessage::Row(row) = message {
            let cells = (0..row.len()).map(|column| Ok(row.get(column).unwrap_or("0").parse()?));
            rows.push(cells.collect::<Result<_>>()?);
        }
    }
    Ok(rows)
}
