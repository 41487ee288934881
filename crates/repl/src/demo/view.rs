//! The questions that a frame asks: plain pull queries over the tables that the continuous queries keep.

use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

/// The latest hours, busiest carriers first.
const DELAYS: &str = "SELECT windowstart, carrier, flights, mean_delay, max_delay FROM delays_by_hour \
                      ORDER BY windowstart DESC, flights DESC, carrier LIMIT 7";
/// The busiest routes.
const ROUTES: &str = "SELECT origin, dest, flights, mean_delay FROM routes ORDER BY flights DESC, origin, dest LIMIT 8";
/// The biggest carriers, by the names that the table of airlines has.
const AIRLINES: &str = "SELECT a.name, c.flights, c.mean_delay FROM carriers c JOIN airlines a ON a.carrier = c.carrier \
                        ORDER BY c.flights DESC, a.name LIMIT 8";

/// The delays of one carrier in one hour.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HourDelay {
    /// Start of the hour, like `2013-01-01 10:00:00`.
    pub hour: String,
    /// Carrier code.
    pub carrier: String,
    /// Flights in this hour.
    pub flights: i64,
    /// Minutes; `None` when no flight has left.
    pub mean: Option<f64>,
    /// Minutes.
    pub max: Option<f64>,
}

/// A running count and mean.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Total {
    /// A route or an airline.
    pub name: String,
    /// Flights so far.
    pub flights: i64,
    /// Mean delay in minutes.
    pub mean: Option<f64>,
}

/// The answers of one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Results {
    /// The latest hours.
    pub delays: Vec<HourDelay>,
    /// The busiest routes.
    pub routes: Vec<Total>,
    /// The biggest airlines.
    pub airlines: Vec<Total>,
}

/// Asks all three questions.
pub(super) async fn fetch(client: &Client) -> anyhow::Result<Results> {
    Ok(Results {
        delays: query(client, DELAYS, |row| HourDelay {
            hour: text(row, 0),
            carrier: text(row, 1),
            flights: number(row, 2).unwrap_or(0),
            mean: number(row, 3),
            max: number(row, 4),
        })
        .await?,
        routes: query(client, ROUTES, |row| Total {
            name: format!("{} → {}", text(row, 0), text(row, 1)),
            flights: number(row, 2).unwrap_or(0),
            mean: number(row, 3),
        })
        .await?,
        airlines: query(client, AIRLINES, |row| Total {
            name: text(row, 0),
            flights: number(row, 1).unwrap_or(0),
            mean: number(row, 2),
        })
        .await?,
    })
}

async fn query<T>(
    client: &Client,
    statement: &str,
    read: impl Fn(&SimpleQueryRow) -> T,
) -> anyhow::Result<Vec<T>> {
    let messages = client
        .simple_query(statement)
        .await
        .map_err(|error| super::with_diagnostic(&error, statement))?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(read(row)),
        _ => None,
    });
    Ok(rows.collect())
}

fn text(row: &SimpleQueryRow, column: usize) -> String {
    row.try_get(column)
        .ok()
        .flatten()
        .unwrap_or_default()
        .to_owned()
}

fn number<T: std::str::FromStr>(row: &SimpleQueryRow, column: usize) -> Option<T> {
    row.try_get(column).ok().flatten()?.parse().ok()
}
