//! Producers that write until their server is gone.

use highwater_sqllogictest::Endpoint;
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::task::JoinSet;

use crate::ledger::{Acknowledged, Cycle};

/// Producers at the same time; each has a key, so that they spread over the partitions.
const PRODUCERS: i64 = 4;
/// Most rows of one INSERT.
const MOST_ROWS: usize = 8;
/// Most INSERTs of one producer in a cycle. It bounds what checks must read back over all cycles.
const MOST_INSERTS: usize = 60;
/// Amounts are below this, so every group gets rows.
const AMOUNTS: i64 = 10;

/// What producers have written.
#[derive(Debug, Default)]
pub struct Written {
    /// The server has answered.
    pub acknowledged: Vec<i64>,
    /// The answer never came.
    pub in_flight: Vec<i64>,
}

/// Running producers.
pub struct Load {
    producers: JoinSet<Written>,
}

impl Load {
    /// Starts the producers of one cycle.
    pub fn start(
        endpoint: &Endpoint,
        cycle: Cycle,
        random: &mut StdRng,
        acknowledged: Acknowledged,
    ) -> Self {
        let mut producers = JoinSet::new();
        for number in 0..PRODUCERS {
            let producer = Producer {
                endpoint: endpoint.clone(),
                name: format!("p{number}"),
                next_id: cycle.first_id + number * 100_000,
                random: StdRng::seed_from_u64(random.random()),
                acknowledged,
            };
            producers.spawn(producer.run());
        }
        Self { producers }
    }

    /// Waits until every producer has ended, which they do when the server is gone.
    pub async fn finish(self) -> Written {
        let mut all = Written::default();
        for written in self.producers.join_all().await {
            all.acknowledged.extend(written.acknowledged);
            all.in_flight.extend(written.in_flight);
        }
        all
    }
}

struct Producer {
    endpoint: Endpoint,
    name: String,
    next_id: i64,
    random: StdRng,
    acknowledged: Acknowledged,
}

impl Producer {
    async fn run(mut self) -> Written {
        let mut written = Written::default();
        let Ok(client) = self.endpoint.connect().await else {
            return written;
        };
        for _ in 0..MOST_INSERTS {
            let (ids, sql) = self.insert();
            match (client.batch_execute(&sql).await, self.acknowledged) {
                (Ok(()), _) | (Err(_), Acknowledged::WhenSent) => written.acknowledged.extend(ids),
                (Err(_), Acknowledged::ByServer) => written.in_flight.extend(ids),
            }
            if client.is_closed() {
                break;
            }
        }
        written
    }

    /// An INSERT of one row or of several.
    fn insert(&mut self) -> (Vec<i64>, String) {
        let count = if self.random.random_bool(0.5) {
            1
        } else {
            self.random.random_range(2..=MOST_ROWS)
        };
        let ids: Vec<i64> = (self.next_id..).take(count).collect();
        self.next_id += count as i64;
        let rows: Vec<String> = ids
            .iter()
            .map(|id| {
                format!(
                    "('{}', {id}, {})",
                    self.name,
                    self.random.random_range(0..AMOUNTS)
                )
            })
            .collect();
        (
            ids,
            format!("INSERT INTO events VALUES {}", rows.join(", ")),
        )
    }
}
