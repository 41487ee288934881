//! The demonstration: a month of flights, played as live events, and three continuous queries whose results change on the screen.
//!
//! It is a client like any other. On one connection, in turns, it sends the events that are due, asks for the results and
//! draws them; the session reads its own writes, so every frame shows all events sent before it. When the server is slower
//! than the clock, events wait and the month takes longer; nothing is skipped.
//!
//! - `feed` holds the events in the order of their time;
//! - `clock` says how far the played time has come;
//! - `view` asks the server and `frame` turns the answers into lines;
//! - `screen` draws them and reads keys.

mod clock;
mod feed;
mod frame;
mod screen;
mod view;

use futures::future::BoxFuture;
use std::{
    io::{self, Cursor},
    net::SocketAddr,
    pin::pin,
    time::Duration,
};

use anyhow::Context;
use futures::SinkExt;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_postgres::Client;

use crate::{
    client::{Connection, Endpoint},
    input::Scanner,
    render::Diagnostic,
};
use clock::Clock;
use feed::Feed;
use frame::Progress;
use screen::Screen;

/// The statements that the demonstration runs first.
const FLIGHTS_SQL: &str = include_str!("../../../../examples/flights/flights.sql");
/// Events go out this often.
const SEND_INTERVAL: Duration = Duration::from_millis(50);
/// The screen changes this often; four times a second can still be read.
const DRAW_INTERVAL: Duration = Duration::from_millis(250);
/// Without a terminal, a block of text this often.
const PRINT_INTERVAL: Duration = Duration::from_secs(1);
/// Events in one COPY. A slow server is asked for results between two of them.
const BATCH: usize = 1_000;
/// Hours of flights that pass in a second, unless the options say otherwise: the month takes some 40 seconds.
const DEFAULT_SPEED: f64 = 18.0;

/// What `highwater demo` was asked to do.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// The server, which should have no streams and tables of the demonstration's names.
    pub address: SocketAddr,
    /// User name.
    pub user: String,
    /// Database name.
    pub database: String,
    /// Hours of flights that pass in a second.
    pub speed: f64,
    /// Ends the demonstration after so many seconds, even if the month is not over.
    pub seconds: Option<u64>,
}

impl DemoOptions {
    /// The whole month at its usual speed.
    pub fn new(address: SocketAddr) -> Self {
        let Endpoint { user, database, .. } = Endpoint::default();
        Self {
            address,
            user,
            database,
            speed: DEFAULT_SPEED,
            seconds: None,
        }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            host: self.address.ip().to_string(),
            port: self.address.port(),
            user: self.user.clone(),
            database: self.database.clone(),
            password: None,
        }
    }
}

/// How a demonstration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoOutcome {
    /// Events that the server acknowledged.
    pub events: u64,
    /// The whole month was played; false after `q`, Ctrl-C or when the time was up.
    pub complete: bool,
}

/// Plays the flights against a running server and shows the results changing, until the month is over, the time is up, or the
/// user ends it with `q` or Ctrl-C; then prints the last results and how to connect with psql. The server is left running.
///
/// Dropping the future restores the terminal.
pub fn demo(options: DemoOptions) -> BoxFuture<'static, anyhow::Result<DemoOutcome>> {
    // Boxed here, so that its code is made with this crate and not again with each program that awaits it.
    Box::pin(run_demo(options))
}

async fn run_demo(options: DemoOptions) -> anyhow::Result<DemoOutcome> {
    anyhow::ensure!(
        options.speed > 0.0 && options.speed.is_finite(),
        "the speed must be a positive number"
    );
    let endpoint = options.endpoint();
    let connection = Connection::open(&endpoint).await?;
    let client = connection.client();
    run_script(client, FLIGHTS_SQL).await?;
    copy(
        client,
        "COPY airlines FROM STDIN WITH (FORMAT csv, HEADER true)",
        feed::AIRLINES.to_vec(),
    )
    .await?;
    let mut player = Player::new(client, &options)?;
    let mut screen = Screen::open()?;
    let ended = player.play(&mut screen).await;
    drop(screen);
    let complete = ended?;
    player.print_summary(&endpoint).await?;
    Ok(DemoOutcome {
        events: player.progress.events,
        complete,
    })
}

/// Runs a script statement by statement; an error names the statement's line.
async fn run_script(client: &Client, script: &str) -> anyhow::Result<()> {
    let mut scanner = Scanner::default();
    let mut fragments = scanner.push(script);
    fragments.extend(scanner.finish());
    for fragment in fragments {
        client
            .batch_execute(&fragment.text)
            .await
            .map_err(|error| with_diagnostic(&error, &fragment.text))
            .with_context(|| format!("flights.sql, line {}", fragment.line))?;
    }
    Ok(())
}

/// The server's whole message about a statement.
fn with_diagnostic(error: &tokio_postgres::Error, statement: &str) -> anyhow::Error {
    match error.as_db_error() {
        Some(db_error) => anyhow::anyhow!("{}", Diagnostic::new(db_error, statement)),
        None => anyhow::anyhow!("{}", crate::client::describe(error)),
    }
}

/// Sends CSV data; the rows are on disk when this returns their count.
async fn copy(client: &Client, statement: &str, data: Vec<u8>) -> anyhow::Result<u64> {
    let sending = async {
        let mut sink = pin!(client.copy_in::<_, Cursor<Vec<u8>>>(statement).await?);
        sink.send(Cursor::new(data)).await?;
        sink.finish().await
    };
    sending
        .await
        .map_err(|error| with_diagnostic(&error, statement))
}

/// Sends, asks and draws.
struct Player<'a> {
    client: &'a Client,
    feed: Feed,
    clock: Clock,
    time_limit: Option<Duration>,
    progress: Progress,
    start: Instant,
}

impl<'a> Player<'a> {
    fn new(client: &'a Client, options: &DemoOptions) -> anyhow::Result<Self> {
        let feed = Feed::bundled()?;
        let clock = Clock::new(feed.first_minute(), options.speed);
        let progress = Progress {
            total: feed.len() as u64,
            ..Progress::default()
        };
        let time_limit = options.seconds.map(Duration::from_secs);
        Ok(Self {
            client,
            feed,
            clock,
            time_limit,
            progress,
            start: Instant::now(),
        })
    }

    /// True when the whole month was played.
    async fn play(&mut self, screen: &mut Screen) -> anyhow::Result<bool> {
        self.start = Instant::now();
        let mut ticks = interval(SEND_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let draw_interval = if screen.is_terminal() {
            DRAW_INTERVAL
        } else {
            PRINT_INTERVAL
        };
        let mut next_draw = self.start;
        loop {
            tokio::select! {
                biased;
                () = screen.quit() => return Ok(false),
                _ = ticks.tick() => {}
            }
            let elapsed = self.start.elapsed();
            if self.time_limit.is_some_and(|limit| elapsed >= limit) {
                return Ok(false);
            }
            self.send_due(elapsed).await?;
            if Instant::now() >= next_draw {
                next_draw = Instant::now() + draw_interval;
                self.draw(screen).await?;
            }
            if self.feed.is_empty() {
                return Ok(true);
            }
        }
    }

    /// One batch of the events whose time has come.
    async fn send_due(&mut self, elapsed: Duration) -> anyhow::Result<()> {
        let due = self.feed.take_due(self.clock.minute_at(elapsed), BATCH)?;
        if let Some(batch) = due {
            self.progress.events += copy(self.client, feed::COPY_FLIGHTS, batch.csv).await?;
            self.progress.time = batch.last_time;
        }
        self.progress.elapsed = elapsed;
        Ok(())
    }

    async fn draw(&mut self, screen: &mut Screen) -> anyhow::Result<()> {
        let results = view::fetch(self.client).await?;
        let (columns, rows) = screen.size();
        screen.show(&frame::frame(&self.progress, &results, columns, rows))?;
        Ok(())
    }

    async fn print_summary(&mut self, endpoint: &Endpoint) -> anyhow::Result<()> {
        let results = view::fetch(self.client).await?;
        let mut text = frame::frame(
            &self.progress,
            &results,
            screen::DEFAULT_SIZE.0,
            screen::DEFAULT_SIZE.1,
        )
        .join("\n");
        text.push_str(&format!(
            "\n\nWhile the server runs, ask the tables yourself:\n\n    {}\n    SELECT * FROM routes ORDER BY flights DESC LIMIT 5;\n",
            endpoint.psql_command()
        ));
        io::Write::write_all(&mut io::stdout(), text.as_bytes())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_five_statements() {
        let mut scanner = Scanner::default();
        let fragments = scanner.push(FLIGHTS_SQL);
        assert!(
            scanner.finish().is_none(),
            "the last statement has its semicolon"
        );
        let starts: Vec<String> = fragments
            .iter()
            .map(|fragment| crate::statement::completion(&fragment.text, 0))
            .collect();
        assert_eq!(
            starts,
            [
                "CREATE STREAM",
                "CREATE TABLE",
                "CREATE TABLE",
                "CREATE TABLE",
                "CREATE TABLE"
            ]
        );
    }
}
