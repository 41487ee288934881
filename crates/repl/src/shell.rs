//! The loop: takes fragments from a source, runs them, says what happened.
//!
//! At the prompt an error is printed and the next statement is read. A script, a pipe and the command line stop at their first
//! error ([`Outcome::Failed`]), so that nothing runs on half of what it needs. A connection that was lost is opened again before
//! the next statement.

use std::{
    fs::{self, File},
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tokio::{signal::ctrl_c, sync::watch};

use crate::{
    client::{Connection, Endpoint, describe},
    command::{self, Command},
    complete::Names,
    input::{Fragment, FragmentKind, Scanner},
    render::{Diagnostic, OutputFormat, Style, row_count, visible},
    source::{Source, open_data},
    statement::{self, CopyData, Copying, End, Failure},
};

/// Scripts that run scripts: deeper than this is a loop.
const SCRIPT_DEPTH: usize = 16;

/// What the loop does after a fragment, and what its source ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Goes on.
    Continue,
    /// The user wants to leave.
    Quit,
    /// An error, already printed.
    Failed,
    /// Ctrl-C ended a statement.
    Interrupted,
}

/// Ctrl-C while no statement ran.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Where results go.
enum Output {
    /// Buffered by us, since standard output alone writes every line on its own.
    Stdout(BufWriter<io::Stdout>),
    File(BufWriter<File>),
}

impl Output {
    fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout()))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(file) => file.flush(),
        }
    }
}

/// A session with its settings.
pub(crate) struct Shell {
    endpoint: Endpoint,
    connection: Connection,
    output: Output,
    format: OutputFormat,
    expanded: bool,
    timing: bool,
    interactive: bool,
    names: watch::Sender<Names>,
    /// What `\watch` repeats.
    last_statement: Option<String>,
    depth: usize,
}

impl Shell {
    /// A session on an open connection.
    pub fn new(
        endpoint: Endpoint,
        connection: Connection,
        format: OutputFormat,
        interactive: bool,
    ) -> Self {
        Self {
            endpoint,
            connection,
            output: Output::stdout(),
            format,
            expanded: false,
            timing: false,
            interactive,
            names: watch::Sender::default(),
            last_statement: None,
            depth: 0,
        }
    }

    /// Reads and runs what is typed until the user leaves.
    pub async fn interact(&mut self) -> anyhow::Result<Outcome> {
        println!(
            "Connected to Highwater at {}. Type help for help, \\q to leave.",
            self.endpoint.address()
        );
        self.names
            .send_replace(Names::fetch(&self.connection).await);
        let mut source = Source::terminal(self.names.subscribe())?;
        self.run_source(&mut source, None).await
    }

    /// Runs everything a source has. `file` is named in error messages.
    pub async fn run_source(
        &mut self,
        source: &mut Source,
        file: Option<&Path>,
    ) -> anyhow::Result<Outcome> {
        let mut scanner = Scanner::default();
        while let Some(lines) = self.next_line(source).await? {
            for fragment in scanner.push(&lines) {
                let outcome = self.run_fragment(fragment, source, file).await?;
                if self.ends_source(outcome) {
                    return Ok(outcome);
                }
            }
        }
        match scanner.finish() {
            Some(fragment) => self.run_fragment(fragment, source, file).await,
            None => Ok(Outcome::Continue),
        }
    }

    /// The next line; at the prompt Ctrl-C is a key of the line editor, elsewhere it ends the wait and with it the source.
    async fn next_line(&self, source: &mut Source) -> anyhow::Result<Option<String>> {
        tokio::select! {
            biased;
            _ = ctrl_c(), if !source.is_terminal() => Err(Interrupted.into()),
            line = source.next_line() => line,
        }
    }

    /// At the prompt, errors and Ctrl-C end nothing; within a script that the prompt runs, they end the script.
    fn ends_source(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Continue => false,
            Outcome::Quit => true,
            Outcome::Failed | Outcome::Interrupted => !self.interactive || self.depth > 0,
        }
    }

    async fn run_fragment(
        &mut self,
        fragment: Fragment,
        source: &mut Source,
        file: Option<&Path>,
    ) -> anyhow::Result<Outcome> {
        let place = file
            .map(|file| format!("{}:{}: ", file.display(), fragment.line))
            .unwrap_or_default();
        match fragment.kind {
            FragmentKind::Statement => self.run_statement(&fragment.text, source, &place).await,
            FragmentKind::Command => match command::parse(&fragment.text) {
                Ok(command) => self.run_command(command, source, &place).await,
                Err(problem) => Ok(fail(&place, &problem)),
            },
        }
    }

    async fn run_command(
        &mut self,
        command: Command,
        source: &mut Source,
        place: &str,
    ) -> anyhow::Result<Outcome> {
        match command {
            Command::Quit => return Ok(Outcome::Quit),
            Command::Help => self.print(command::HELP)?,
            Command::Statement(statement) => {
                return self.run_statement(&statement, source, place).await;
            }
            Command::ListSources => return self.list_sources(source, place).await,
            Command::Expanded(on) => {
                self.expanded = on.unwrap_or(!self.expanded);
                self.say(&format!("Expanded display is {}.", on_off(self.expanded)));
            }
            Command::Timing(on) => {
                self.timing = on.unwrap_or(!self.timing);
                self.say(&format!("Timing is {}.", on_off(self.timing)));
            }
            Command::Format(format) => {
                self.format = format;
                self.say(&format!("Output format is {format}."));
            }
            Command::Include(path) => return self.include(path, place).await,
            Command::Output(path) => return self.redirect(path, place),
            Command::History => {
                for entry in source.history() {
                    self.print(&format!("{entry}\n"))?;
                }
            }
            Command::Clear => self.clear_screen()?,
            Command::ConnectionInfo => {
                let Endpoint { user, database, .. } = &self.endpoint;
                let address = self.endpoint.address();
                self.print(&format!(
                    "Connected to {address}, database {database}, as user {user}.\n"
                ))?;
            }
            Command::Watch(interval) => return self.watch(interval, source, place).await,
            Command::CopyFrom { statement, path } => {
                return self.copy_from_file(&statement, &path, place).await;
            }
            Command::CopyTo { statement, path } => {
                return self.copy_to_file(&statement, &path, place).await;
            }
        }
        Ok(Outcome::Continue)
    }

    async fn run_statement(
        &mut self,
        text: &str,
        source: &mut Source,
        place: &str,
    ) -> anyhow::Result<Outcome> {
        if !self.reconnect(place).await {
            return Ok(Outcome::Failed);
        }
        let style = self.style();
        let start = Instant::now();
        let (connection, output) = (&mut self.connection, &mut self.output);
        let ended = match Copying::of(text) {
            Some(Copying::In) => {
                statement::copy_in(connection, text, CopyData::Lines(source)).await
            }
            Some(Copying::Out) => statement::copy_out(connection, text, output).await,
            None => statement::run(connection, text, style, output).await,
        };
        self.last_statement = Some(text.to_owned());
        self.conclude(text, ended, start.elapsed(), place).await
    }

    /// Says how a statement ended.
    async fn conclude(
        &mut self,
        text: &str,
        ended: Result<End, Failure>,
        elapsed: Duration,
        place: &str,
    ) -> anyhow::Result<Outcome> {
        let outcome = match ended {
            Ok(End::Result) => Outcome::Continue,
            Ok(End::Done { affected }) => {
                let completion = statement::completion(text, affected);
                if self.format == OutputFormat::Table && !completion.is_empty() {
                    self.print(&format!("{completion}\n"))?;
                }
                Outcome::Continue
            }
            Ok(End::Cancelled { rows }) => {
                eprintln!("Query ended, {}", row_count(rows));
                Outcome::Interrupted
            }
            Err(Failure::Server(error)) => {
                print_server_error(place, &error, text);
                Outcome::Failed
            }
            Err(Failure::Output(error)) => return Err(error.into()),
            Err(error @ Failure::Data(_)) => fail(place, &error.to_string()),
            Err(Failure::GivenUp) => {
                fail(place, &Failure::GivenUp.to_string());
                self.connection = match Connection::open(&self.endpoint).await {
                    Ok(connection) => connection,
                    Err(error) => anyhow::bail!("{error}"),
                };
                Outcome::Interrupted
            }
        };
        if self.timing {
            self.print(&format!(
                "Time: {:.3} ms\n",
                elapsed.as_secs_f64() * 1_000.0
            ))?;
        }
        if self.interactive && outcome == Outcome::Continue && statement::changes_names(text) {
            self.names
                .send_replace(Names::fetch(&self.connection).await);
        }
        Ok(outcome)
    }

    /// Opens the connection again when the server went away; false when it cannot be reached.
    async fn reconnect(&mut self, place: &str) -> bool {
        if !self.connection.is_closed() {
            return true;
        }
        match Connection::open(&self.endpoint).await {
            Ok(connection) => {
                self.connection = connection;
                eprintln!(
                    "The connection was lost and is open again. Session settings are back to their defaults."
                );
                true
            }
            Err(error) => {
                fail(place, &error.to_string());
                false
            }
        }
    }

    async fn list_sources(&mut self, source: &mut Source, place: &str) -> anyhow::Result<Outcome> {
        for list in ["SHOW STREAMS", "SHOW TABLES"] {
            let outcome = self.run_statement(list, source, place).await?;
            if outcome != Outcome::Continue {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Continue)
    }

    async fn include(&mut self, path: PathBuf, place: &str) -> anyhow::Result<Outcome> {
        if self.depth >= SCRIPT_DEPTH {
            return Ok(fail(
                place,
                &format!("scripts run scripts more than {SCRIPT_DEPTH} deep"),
            ));
        }
        let script = match fs::read_to_string(&path) {
            Ok(script) => script,
            Err(error) => {
                return Ok(fail(
                    place,
                    &format!("could not read {}: {error}", path.display()),
                ));
            }
        };
        self.depth += 1;
        let mut source = Source::text(&script);
        // A boxed future, since a script may run scripts.
        let outcome = Box::pin(self.run_source(&mut source, Some(&path))).await;
        self.depth -= 1;
        // A script that leaves leaves itself, not the one that runs it.
        outcome.map(|outcome| match outcome {
            Outcome::Quit => Outcome::Continue,
            outcome => outcome,
        })
    }

    fn redirect(&mut self, path: Option<PathBuf>, place: &str) -> anyhow::Result<Outcome> {
        self.output.flush()?;
        self.output = match path {
            None => Output::stdout(),
            Some(path) => match File::create(&path) {
                Ok(file) => Output::File(BufWriter::new(file)),
                Err(error) => {
                    return Ok(fail(
                        place,
                        &format!("could not write {}: {error}", path.display()),
                    ));
                }
            },
        };
        Ok(Outcome::Continue)
    }

    async fn watch(
        &mut self,
        interval: Duration,
        source: &mut Source,
        place: &str,
    ) -> anyhow::Result<Outcome> {
        let Some(statement) = self.last_statement.clone() else {
            return Ok(fail(
                place,
                "\\watch repeats the last statement, and there is none yet",
            ));
        };
        loop {
            self.clear_screen()?;
            let outcome = self.run_statement(&statement, source, place).await?;
            if outcome != Outcome::Continue {
                return Ok(outcome);
            }
            tokio::select! {
                _ = ctrl_c() => return Ok(Outcome::Continue),
                () = tokio::time::sleep(interval) => {}
            }
        }
    }

    async fn copy_from_file(
        &mut self,
        text: &str,
        path: &Path,
        place: &str,
    ) -> anyhow::Result<Outcome> {
        let data = match open_data(path) {
            Ok(data) => data,
            Err(error) => {
                return Ok(fail(
                    place,
                    &format!("could not read {}: {error}", path.display()),
                ));
            }
        };
        if !self.reconnect(place).await {
            return Ok(Outcome::Failed);
        }
        let start = Instant::now();
        let ended = statement::copy_in(&mut self.connection, text, CopyData::File(data)).await;
        self.conclude(text, ended, start.elapsed(), place).await
    }

    async fn copy_to_file(
        &mut self,
        text: &str,
        path: &Path,
        place: &str,
    ) -> anyhow::Result<Outcome> {
        let mut file = match File::create(path) {
            Ok(file) => BufWriter::new(file),
            Err(error) => {
                return Ok(fail(
                    place,
                    &format!("could not write {}: {error}", path.display()),
                ));
            }
        };
        if !self.reconnect(place).await {
            return Ok(Outcome::Failed);
        }
        let start = Instant::now();
        let ended = statement::copy_out(&mut self.connection, text, &mut file).await;
        self.conclude(text, ended, start.elapsed(), place).await
    }

    fn style(&self) -> Style {
        let on_terminal = matches!(self.output, Output::Stdout(_)) && io::stdout().is_terminal();
        let terminal_width = on_terminal
            .then(|| crossterm::terminal::size().ok())
            .flatten()
            .map(|(columns, _)| usize::from(columns))
            // A terminal that does not know its size reports none.
            .filter(|columns| *columns > 0);
        Style {
            format: self.format,
            expanded: self.expanded,
            terminal_width,
        }
    }

    fn print(&mut self, text: &str) -> io::Result<()> {
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }

    /// What only someone at the prompt wants to know.
    fn say(&self, text: &str) {
        if self.interactive {
            println!("{text}");
        }
    }

    fn clear_screen(&mut self) -> io::Result<()> {
        if !io::stdout().is_terminal() {
            return Ok(());
        }
        crossterm::execute!(
            io::stdout(),
            crossterm::terminal::Clear(crossterm::terminal::ClearType::All),
            crossterm::cursor::MoveTo(0, 0)
        )
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Prints a problem that the client found.
fn fail(place: &str, problem: &str) -> Outcome {
    eprintln!("{place}ERROR: {problem}");
    Outcome::Failed
}

fn print_server_error(place: &str, error: &tokio_postgres::Error, statement: &str) {
    match error.as_db_error() {
        Some(db_error) => eprintln!("{place}{}", Diagnostic::new(db_error, statement)),
        None if error.is_closed() => eprintln!("{place}ERROR: the server closed the connection"),
        None => eprintln!("{place}ERROR: {}", visible(&describe(error))),
    }
}
