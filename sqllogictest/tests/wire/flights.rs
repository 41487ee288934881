//! The flights example: its continuous results equal a batch computation over the same rows.
//!
//! The batch side is computed twice: from the CSV file in this test, and by pull queries over the stream. The month is loaded in two parts
//! with a SIGKILL between them.

use std::{collections::BTreeMap, fs::File, io::Read, path::PathBuf, pin::pin};

use bytes::Bytes;
use flate2::read::GzDecoder;
use futures::SinkExt;
use highwater_sqllogictest::{ServerProcess, Watch};
use tokio_postgres::{Client, SimpleQueryMessage};

/// A result's rows as text, in the order of the query.
type Rows = Vec<Vec<String>>;

#[tokio::test]
async fn continuous_results_equal_the_batch_results() {
    let month = read_month();
    let flights = parse(&month);
    assert_eq!(flights.len(), 27_004, "the example has all of January 2013");

    let mut server = ServerProcess::start().await.unwrap();
    let endpoint = server.endpoint().clone();
    let client = endpoint.connect().await.unwrap();
    client.batch_execute(&example("flights.sql")).await.unwrap();
    copy(&client, "airlines", "", &example("airlines.csv")).await;

    let (header, lines) = month.split_once('\n').unwrap();
    let middle = lines.len() / 2 + lines[lines.len() / 2..].find('\n').unwrap() + 1;
    copy(&client, "flights", header, &lines[..middle]).await;
    server.restart().await.unwrap();
    let client = endpoint.connect().await.unwrap();
    let mut watch = Watch::start(
        &endpoint,
        "SELECT carrier, flights FROM carriers EMIT CHANGES",
    )
    .await
    .unwrap();
    copy(&client, "flights", header, &lines[middle..]).await;

    let hours = query(
        &client,
        "SELECT carrier, windowstart, flights, mean_delay, max_delay FROM delays_by_hour ORDER BY 1, 2",
    )
    .await;
    assert_same(&hours, &delays_by_hour(&flights));
    let routes = query(
        &client,
        "SELECT origin, dest, flights, mean_delay FROM routes ORDER BY 1, 2",
    )
    .await;
    assert_same(&routes, &routes_so_far(&flights));
    let carriers = query(
        &client,
        "SELECT carrier, flights, departed, mean_delay FROM carriers ORDER BY 1",
    )
    .await;
    assert_same(&carriers, &carriers_so_far(&flights));

    // The same by pull queries over the stream.
    let batch =
        "SELECT origin, dest, count(*), avg(arr_delay) FROM flights GROUP BY 1, 2 ORDER BY 1, 2";
    assert_same(&routes, &query(&client, batch).await);
    let batch = "SELECT carrier, count(*), count(dep_time), avg(dep_delay) FROM flights GROUP BY 1 ORDER BY 1";
    assert_same(&carriers, &query(&client, batch).await);
    let batch = "SELECT carrier, date_trunc('hour', rowtime), count(*), avg(dep_delay), max(dep_delay) \
                 FROM flights GROUP BY 1, 2 ORDER BY 1, 2";
    assert_same(&hours, &query(&client, batch).await);

    // Joined with the table of airlines, none is lost.
    let named = query(
        &client,
        "SELECT a.name, c.flights FROM carriers AS c JOIN airlines AS a ON a.carrier = c.carrier",
    )
    .await;
    assert_eq!(named.len(), carriers.len());
    assert!(named.iter().any(|row| row[0] == "United Air Lines Inc."));

    // The push query's last word on each carrier is the table's.
    let totals: BTreeMap<&str, &str> = carriers
        .iter()
        .map(|row| (row[0].as_str(), row[1].as_str()))
        .collect();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    while totals
        .iter()
        .any(|(carrier, total)| seen.get(*carrier).map(String::as_str) != Some(*total))
    {
        let row = watch
            .next()
            .await
            .unwrap()
            .expect("an endless query does not end");
        // The first column tells what happened: of a change, the row before and the row after.
        if row[0] != "update_before" {
            seen.insert(row[1].clone(), row[2].clone());
        }
    }
    server.check_health().unwrap();
}

/// The columns that the three queries read.
struct Flight {
    hour: String,
    carrier: String,
    origin: String,
    dest: String,
    departed: bool,
    dep_delay: Option<i64>,
    arr_delay: Option<i64>,
}

fn parse(month: &str) -> Vec<Flight> {
    let mut reader = csv::Reader::from_reader(month.as_bytes());
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|column| column == name).unwrap();
    let number = |text: &str| (text != "NA").then(|| text.parse().unwrap());
    let [hour, carrier, origin, dest, dep_time, dep_delay, arr_delay] = [
        "time_hour",
        "carrier",
        "origin",
        "dest",
        "dep_time",
        "dep_delay",
        "arr_delay",
    ]
    .map(column);
    let flight = |row: csv::StringRecord| Flight {
        hour: row[hour].trim_end_matches('Z').replace('T', " "),
        carrier: row[carrier].to_owned(),
        origin: row[origin].to_owned(),
        dest: row[dest].to_owned(),
        departed: &row[dep_time] != "NA",
        dep_delay: number(&row[dep_delay]),
        arr_delay: number(&row[arr_delay]),
    };
    reader.records().map(|row| flight(row.unwrap())).collect()
}

fn delays_by_hour(flights: &[Flight]) -> Rows {
    let groups = group(flights, |flight| {
        vec![flight.carrier.clone(), flight.hour.clone()]
    });
    let row = |(key, members): (Vec<String>, Vec<&Flight>)| {
        let delays: Vec<i64> = members
            .iter()
            .filter_map(|flight| flight.dep_delay)
            .collect();
        let latest = delays
            .iter()
            .max()
            .map_or("NULL".to_owned(), i64::to_string);
        [key, vec![members.len().to_string(), mean(&delays), latest]].concat()
    };
    groups.into_iter().map(row).collect()
}

fn routes_so_far(flights: &[Flight]) -> Rows {
    let groups = group(flights, |flight| {
        vec![flight.origin.clone(), flight.dest.clone()]
    });
    let row = |(key, members): (Vec<String>, Vec<&Flight>)| {
        let delays: Vec<i64> = members
            .iter()
            .filter_map(|flight| flight.arr_delay)
            .collect();
        [key, vec![members.len().to_string(), mean(&delays)]].concat()
    };
    groups.into_iter().map(row).collect()
}

fn carriers_so_far(flights: &[Flight]) -> Rows {
    let groups = group(flights, |flight| vec![flight.carrier.clone()]);
    let row = |(key, members): (Vec<String>, Vec<&Flight>)| {
        let delays: Vec<i64> = members
            .iter()
            .filter_map(|flight| flight.dep_delay)
            .collect();
        let departed = members.iter().filter(|flight| flight.departed).count();
        [
            key,
            vec![
                members.len().to_string(),
                departed.to_string(),
                mean(&delays),
            ],
        ]
        .concat()
    };
    groups.into_iter().map(row).collect()
}

fn group(
    flights: &[Flight],
    key: impl Fn(&Flight) -> Vec<String>,
) -> BTreeMap<Vec<String>, Vec<&Flight>> {
    let mut groups: BTreeMap<Vec<String>, Vec<&Flight>> = BTreeMap::new();
    for flight in flights {
        groups.entry(key(flight)).or_default().push(flight);
    }
    groups
}

/// The mean as the server prints a DOUBLE: the shortest text that reads back as the same number.
fn mean(values: &[i64]) -> String {
    if values.is_empty() {
        return "NULL".to_owned();
    }
    (values.iter().sum::<i64>() as f64 / values.len() as f64).to_string()
}

/// Compares row by row, so that a failure shows one row and not thousands.
#[track_caller]
fn assert_same(actual: &Rows, expected: &Rows) {
    for (actual, expected) in actual.iter().zip(expected) {
        assert_eq!(actual, expected);
    }
    assert_eq!(actual.len(), expected.len());
}

async fn query(client: &Client, sql: &str) -> Rows {
    let messages = client.simple_query(sql).await.unwrap();
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(
            (0..row.len())
                .map(|column| row.get(column).unwrap_or("NULL").to_owned())
                .collect(),
        ),
        _ => None,
    });
    rows.collect()
}

async fn copy(client: &Client, target: &str, header: &str, lines: &str) {
    let sql = format!("COPY {target} FROM STDIN WITH (FORMAT csv, HEADER true, NULL 'NA')");
    let mut sink = pin!(client.copy_in(&sql).await.unwrap());
    let data = if header.is_empty() {
        lines.to_owned()
    } else {
        format!("{header}\n{lines}")
    };
    sink.send(Bytes::from(data)).await.unwrap();
    sink.finish().await.unwrap();
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/flights")
}

fn example(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

fn read_month() -> String {
    let mut text = String::new();
    let file = File::open(folder().join("flights-2013-01.csv.gz")).unwrap();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}
