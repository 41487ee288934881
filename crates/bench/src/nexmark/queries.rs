//! The queries, each as a continuous query, and as the batch query that must give the same.
//!
//! Every continuous query makes the stream or table `out`. Its answer is compared as text, so both sides name the same columns in the same order.

use std::fmt::Write;

/// The stream of bids. Event time is a column, as in the original.
pub(super) const CREATE_BID: &str = "CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, \
     channel VARCHAR, url VARCHAR, date_time TIMESTAMP, extra VARCHAR) \
     WITH (kafka_topic = 'bid', value_format = 'JSON', timestamp = 'date_time')";

/// What a query makes, and so what bounds its speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// Records are decoded and encoded.
    Stream,
    /// Records are decoded; what is written depends on the number of keys.
    Table,
}

/// A query of the benchmark.
#[derive(Debug, Clone)]
pub(super) struct Query {
    pub(super) name: String,
    /// What it does, in a few words.
    pub(super) what: String,
    pub(super) output: Output,
    /// The continuous query, which makes `out`.
    pub(super) create: String,
    /// What its answer is compared by, read from `out`.
    pub(super) answer: String,
    /// The same from the events, as a batch query.
    pub(super) batch: String,
}

/// Numbers of keys of the plain GROUP BY, with the names of these queries.
const KEYS: [(&str, u64); 5] = [
    ("g100", 100),
    ("g10k", 10_000),
    ("g1m", 1_000_000),
    ("g10m", 10_000_000),
    ("g100m", 100_000_000),
];

/// All queries, in the order in which they run.
pub(super) fn all() -> Vec<Query> {
    let mut queries = vec![
        projection(
            "q0",
            "pass through",
            "",
            "auction, bidder, price, date_time, extra",
            None,
        ),
        projection(
            "q1",
            "convert a currency",
            "",
            "auction, bidder, 0.908 * price AS price, date_time, extra",
            None,
        ),
        projection(
            "q2",
            "filter by auction",
            "",
            "auction, price",
            Some("auction % 123 = 0"),
        ),
        projection(
            "q10",
            "pass through to DELIMITED",
            "WITH (value_format = 'DELIMITED')",
            "auction, bidder, price, date_time, extra, \
             to_char(date_time, '%Y-%m-%d') AS day, to_char(date_time, '%H:%M') AS minute",
            None,
        ),
        sessions(),
        processing_time(),
        projection(
            "q14",
            "calculate, filter by price",
            "",
            "auction, bidder, 0.908 * price AS price, \
             CASE WHEN date_part('hour', date_time) BETWEEN 8 AND 18 THEN 'dayTime' \
             WHEN date_part('hour', date_time) <= 6 OR date_part('hour', date_time) >= 20 THEN 'nightTime' \
             ELSE 'otherTime' END AS bid_time_type, date_time, extra, \
             length(extra) - length(replace(extra, 'c', '')) AS c_counts",
            Some("0.908 * price > 1000000 AND 0.908 * price < 50000000"),
        ),
        grouped(
            "q15",
            "statistics per day",
            &[("to_char(date_time, '%Y-%m-%d')", "day")],
            &counts(""),
        ),
        grouped(
            "q16",
            "statistics per channel and day",
            &[
                ("channel", "channel"),
                ("to_char(date_time, '%Y-%m-%d')", "day"),
            ],
            &counts("MAX(to_char(date_time, '%H:%M')) AS minute, "),
        ),
        grouped(
            "q17",
            "statistics per auction and day",
            &[
                ("auction", "auction"),
                ("to_char(date_time, '%Y-%m-%d')", "day"),
            ],
            &format!(
                "COUNT(*) AS total_bids, {}, MIN(price) AS min_price, MAX(price) AS max_price, \
                 AVG(price) AS avg_price, SUM(price) AS sum_price",
                ranks("COUNT(*)", "bids")
            ),
        ),
        latest(),
        projection(
            "q21",
            "channel id by regular expression",
            "",
            &format!("auction, bidder, price, channel, {CHANNEL_ID} AS channel_id"),
            Some(&format!("{CHANNEL_ID} IS NOT NULL")),
        ),
        projection(
            "q22",
            "parts of a URL",
            "",
            "auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, \
             split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3",
            None,
        ),
    ];
    queries.extend(KEYS.map(|(name, keys)| {
        // Bids that are alike in two of the three spread by the third.
        let key = format!("(auction * 7919 + bidder * 104729 + price * 31) % {keys}");
        grouped(
            name,
            &format!("GROUP BY over up to {keys} keys"),
            &[(&key, "k")],
            "COUNT(*) AS n, SUM(price) AS total, MIN(price) AS low, MAX(price) AS high",
        )
    }));
    queries
}

const CHANNEL_ID: &str = "CASE WHEN lower(channel) = 'apple' THEN '0' \
     WHEN lower(channel) = 'google' THEN '1' WHEN lower(channel) = 'facebook' THEN '2' \
     WHEN lower(channel) = 'baidu' THEN '3' \
     ELSE regexp_extract('(&|^)channel_id=([^&]*)', url, 2) END";

/// A query that makes a row of each bid, or of some.
fn projection(name: &str, what: &str, with: &str, columns: &str, filter: Option<&str>) -> Query {
    let mut batch = format!("SELECT {columns} FROM bid");
    if let Some(filter) = filter {
        write!(batch, " WHERE {filter}").expect("a string takes all that is written");
    }
    Query {
        name: name.into(),
        what: what.into(),
        output: Output::Stream,
        create: format!("CREATE STREAM out {with} AS {batch}"),
        answer: "SELECT * FROM out".into(),
        batch,
    }
}

/// A GROUP BY whose batch form is the query itself.
fn grouped(name: &str, what: &str, keys: &[(&str, &str)], columns: &str) -> Query {
    let selected: Vec<String> = keys
        .iter()
        .map(|(key, name)| format!("{key} AS {name}"))
        .collect();
    let names: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
    let batch = format!(
        "SELECT {}, {columns} FROM bid GROUP BY {}",
        selected.join(", "),
        names.join(", ")
    );
    Query {
        name: name.into(),
        what: what.into(),
        output: Output::Table,
        create: format!("CREATE TABLE out AS {batch}"),
        answer: "SELECT * FROM out".into(),
        batch,
    }
}

/// `call` over all bids of three ranks of prices.
fn ranks(call: &str, of: &str) -> String {
    format!(
        "{call} FILTER (WHERE price < 10000) AS rank1_{of}, \
         {call} FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_{of}, \
         {call} FILTER (WHERE price >= 1000000) AS rank3_{of}"
    )
}

/// Bids, bidders and auctions, in all and by rank of price.
fn counts(first: &str) -> String {
    let mut columns = format!(
        "{first}COUNT(*) AS total_bids, {}",
        ranks("COUNT(*)", "bids")
    );
    for (column, of) in [("bidder", "bidders"), ("auction", "auctions")] {
        let call = format!("COUNT(DISTINCT {column})");
        write!(columns, ", {call} AS total_{of}, {}", ranks(&call, of))
            .expect("a string takes all that is written");
    }
    columns
}

/// Bids of a bidder who has not paused for ten seconds.
fn sessions() -> Query {
    Query {
        name: "q11".into(),
        what: "bids per bidder's session".into(),
        output: Output::Table,
        create: "CREATE TABLE out AS SELECT bidder, COUNT(*) AS n FROM bid \
                 WINDOW SESSION (10 SECONDS) GROUP BY bidder"
            .into(),
        answer: "SELECT bidder, n, windowstart, windowend FROM out".into(),
        batch: "WITH steps AS (SELECT bidder, date_time AS t, LAG(date_time) OVER \
                (PARTITION BY bidder ORDER BY date_time) AS before FROM bid), \
                numbered AS (SELECT bidder, t, SUM(CASE WHEN before IS NULL \
                OR t - before > INTERVAL '10 seconds' THEN 1 ELSE 0 END) OVER \
                (PARTITION BY bidder ORDER BY t) AS session FROM steps) \
                SELECT bidder, COUNT(*) AS n, MIN(t), MAX(t) FROM numbered GROUP BY bidder, session"
            .into(),
    }
}

/// Bids of a bidder in ten seconds of processing time: which row falls into which window is the run's own affair, so only the sums over all
/// windows can be compared.
fn processing_time() -> Query {
    let window = "unix_timestamp() / 10000";
    Query {
        name: "q12".into(),
        what: "bids per bidder and 10 s of processing".into(),
        output: Output::Table,
        create: format!(
            "CREATE TABLE out AS SELECT bidder, {window} AS window_number, COUNT(*) AS n \
             FROM bid GROUP BY bidder, {window}"
        ),
        answer: "SELECT bidder, CAST(SUM(n) AS BIGINT) FROM out GROUP BY bidder".into(),
        batch: "SELECT bidder, COUNT(*) FROM bid GROUP BY bidder".into(),
    }
}

/// Each bidder's last bid for each auction. An auction's bids are in one partition, so its offsets have their order.
fn latest() -> Query {
    let columns = ["price", "channel", "url", "date_time", "extra"];
    let calls = columns.map(|column| format!("LATEST_BY_OFFSET({column}) AS {column}"));
    Query {
        name: "q18".into(),
        what: "last bid per bidder and auction".into(),
        output: Output::Table,
        create: format!(
            "CREATE TABLE out AS SELECT bidder, auction, {} FROM bid GROUP BY bidder, auction",
            calls.join(", ")
        ),
        answer: format!("SELECT bidder, auction, {} FROM out", columns.join(", ")),
        batch: format!(
            "SELECT bidder, auction, {0} FROM (SELECT bidder, auction, {0}, ROW_NUMBER() OVER \
             (PARTITION BY bidder, auction ORDER BY rowoffset DESC) AS age FROM bid) AS aged WHERE age = 1",
            columns.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queries_of_the_benchmark_are_there_once() {
        let names: Vec<String> = all().into_iter().map(|query| query.name).collect();
        let expected = "q0 q1 q2 q10 q11 q12 q14 q15 q16 q17 q18 q21 q22 g100 g10k g1m g10m g100m";
        assert_eq!(names.join(" "), expected);
    }
}
