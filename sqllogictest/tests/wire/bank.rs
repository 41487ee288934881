//! The bank: transfers between accounts, with credits, debits, balances and their total as chained continuous queries. Money is only moved, so
//! every answer, whenever it is asked, must show a total of zero, and must be the batch answer over a prefix of the transfers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use highwater_sqllogictest::{Endpoint, ServerProcess, Watch};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio_postgres::Client;

use crate::texts;

const ACCOUNTS: i64 = 10;

/// Transfers of one INSERT at the most.
const BATCH: usize = 20;

/// Answers that are looked at; `HIGHWATER_BANK_OBSERVATIONS` for more.
fn observations() -> u64 {
    std::env::var("HIGHWATER_BANK_OBSERVATIONS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_000)
}

const QUERIES: &[&str] = &[
    "CREATE TABLE accepted AS SELECT COUNT(*) AS n FROM transfers",
    "CREATE TABLE credits AS SELECT to_account AS account, SUM(amount) AS amount FROM transfers GROUP BY to_account",
    "CREATE TABLE debits AS SELECT from_account AS account, SUM(amount) AS amount FROM transfers GROUP BY from_account",
    "CREATE TABLE balance AS SELECT COALESCE(c.account, d.account) AS account, COALESCE(c.amount, 0) AS credit, \
     COALESCE(d.amount, 0) AS debit, COALESCE(c.amount, 0) - COALESCE(d.amount, 0) AS balance \
     FROM credits c FULL JOIN debits d ON c.account = d.account",
    "CREATE TABLE total AS SELECT COUNT(*) AS accounts, SUM(balance) AS total FROM balance",
];

/// What was sent, in order, and the balances after each transfer. Index 0 is before the first.
#[derive(Default)]
struct Ledger {
    balances: Vec<BTreeMap<i64, i64>>,
}

impl Ledger {
    fn push(&mut self, from: i64, to: i64, amount: i64) {
        let mut next = self.balances.last().cloned().unwrap_or_default();
        *next.entry(to).or_default() += amount;
        *next.entry(from).or_default() -= amount;
        self.balances.push(next);
    }
}

/// The rows of an answer as numbers, NULL as 0.
async fn rows(client: &Client, sql: &str) -> Vec<Vec<i64>> {
    let number = |text: &String| match text.as_str() {
        "NULL" => 0,
        text => text.parse().expect("a number"),
    };
    let rows = texts(client, sql).await;
    rows.iter()
        .map(|row| row.iter().map(number).collect())
        .collect()
}

struct Bank {
    endpoint: Endpoint,
    ledger: Mutex<Ledger>,
    looked: AtomicU64,
    enough: AtomicBool,
}

impl Bank {
    /// Moves money until enough answers were looked at.
    async fn load(self: Arc<Self>) {
        let client = self.endpoint.connect().await.expect("a connection");
        let mut random = StdRng::seed_from_u64(42);
        let mut id = 0;
        while !self.enough.load(Ordering::Relaxed) {
            let mut values = Vec::new();
            for _ in 0..random.random_range(1..=BATCH) {
                let (from, to) = (
                    random.random_range(0..ACCOUNTS),
                    random.random_range(0..ACCOUNTS),
                );
                let amount = random.random_range(1..100);
                // Noted before it is sent: an answer may hold it before its sender hears that it is stored.
                self.ledger
                    .lock()
                    .expect("the ledger")
                    .push(from, to, amount);
                values.push(format!("({id}, {from}, {to}, {amount})"));
                id += 1;
            }
            let sql = format!("INSERT INTO transfers VALUES {}", values.join(", "));
            client.batch_execute(&sql).await.expect("an insert");
        }
    }

    fn look(&self, answers: u64) -> bool {
        let looked = self.looked.fetch_add(answers, Ordering::Relaxed) + answers;
        if looked >= observations() {
            self.enough.store(true, Ordering::Relaxed);
        }
        !self.enough.load(Ordering::Relaxed)
    }

    /// Asks for one table at a time.
    async fn poll_single(self: Arc<Self>) {
        let client = self.endpoint.connect().await.expect("a connection");
        while self.look(2) {
            let total = rows(&client, "SELECT total FROM total").await;
            assert_eq!(total, [[0]], "the total");
            let balances = rows(&client, "SELECT balance FROM balance").await;
            let sum: i64 = balances.iter().flatten().sum();
            assert_eq!(sum, 0, "the sum of {balances:?}");
        }
    }

    /// Asks for several tables of one step: they must agree with each other, and be what a prefix of the transfers makes.
    async fn poll_together(self: Arc<Self>, one_partition: bool) {
        let client = self.endpoint.connect().await.expect("a connection");
        while self.look(4) {
            client
                .batch_execute("BEGIN READ ONLY")
                .await
                .expect("a block");
            let total = rows(&client, "SELECT accounts, total FROM total").await;
            let balances = rows(
                &client,
                "SELECT account, credit, debit, balance FROM balance",
            )
            .await;
            let credits = rows(&client, "SELECT account, amount FROM credits").await;
            let accepted = rows(&client, "SELECT n FROM accepted").await;
            client.batch_execute("COMMIT").await.expect("the end");
            assert_eq!(total, [[balances.len() as i64, 0]], "{balances:?}");
            let credit_of: BTreeMap<i64, i64> =
                credits.iter().map(|row| (row[0], row[1])).collect();
            for row in &balances {
                assert_eq!(row[3], row[1] - row[2], "{row:?}");
                assert_eq!(
                    row[1],
                    credit_of.get(&row[0]).copied().unwrap_or(0),
                    "{row:?}"
                );
            }
            if one_partition {
                let expected = match accepted[0][0] {
                    0 => BTreeMap::new(),
                    n => self.ledger.lock().expect("the ledger").balances[n as usize - 1].clone(),
                };
                let got: BTreeMap<i64, i64> = balances.iter().map(|row| (row[0], row[3])).collect();
                assert_eq!(got, expected, "after {} transfers", accepted[0][0]);
            }
        }
    }

    /// Watches the total change.
    async fn subscribe(self: Arc<Self>) {
        let sql = "SELECT total FROM total EMIT CHANGES";
        let mut watch = Watch::start(&self.endpoint, sql).await.expect("a watch");
        // The first column says whether the row goes or comes.
        while self.look(1) {
            let row = watch.next().await.expect("a change").expect("no end");
            assert!(
                row.last().is_some_and(|total| total == "0"),
                "a total of {row:?}"
            );
        }
    }
}

async fn run_bank(partitions: u32) {
    let server = ServerProcess::start().await.expect("the server starts");
    let client = server.endpoint().connect().await.expect("a connection");
    client
        .batch_execute(&format!(
            "CREATE STREAM transfers (id BIGINT, from_account BIGINT, to_account BIGINT, amount BIGINT) \
             WITH (kafka_topic = 'transfers', partitions = {partitions}, value_format = 'JSON')"
        ))
        .await
        .expect("the stream is made");
    for query in QUERIES {
        client.batch_execute(query).await.expect("the query starts");
    }
    // A total of nothing is NULL; it is 0 from the first transfer on.
    client
        .batch_execute("INSERT INTO transfers VALUES (-1, 0, 0, 0)")
        .await
        .expect("an insert");
    let bank = Arc::new(Bank {
        endpoint: server.endpoint().clone(),
        ledger: Mutex::default(),
        looked: AtomicU64::new(0),
        enough: AtomicBool::new(false),
    });
    bank.ledger.lock().expect("the ledger").push(0, 0, 0);
    let observers = [
        tokio::spawn(Arc::clone(&bank).poll_single()),
        tokio::spawn(Arc::clone(&bank).poll_together(partitions == 1)),
        tokio::spawn(Arc::clone(&bank).subscribe()),
    ];
    let load = tokio::spawn(Arc::clone(&bank).load());
    for observer in observers {
        let seen = observer.await;
        // Whoever fails ends the others.
        bank.enough.store(
            seen.is_err() || bank.enough.load(Ordering::Relaxed),
            Ordering::Relaxed,
        );
        seen.expect("every answer is consistent");
    }
    load.await.expect("the load ends");
    let sent = bank.ledger.lock().expect("the ledger").balances.clone();
    assert!(sent.len() > 100, "only {} transfers", sent.len());
    let accepted = rows(&client, "SELECT n FROM accepted").await;
    assert_eq!(accepted, [[sent.len() as i64]], "accepted = sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_only_moved_on_one_partition() {
    run_bank(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_only_moved_on_four_partitions() {
    run_bank(4).await;
}
