//! The terminal client: an interactive shell and a live demonstration, both over the PostgreSQL wire protocol.
//!
//! This crate knows a server only by its address. It sends text, gets rows and shows them; what a statement means is the
//! server's business. Text goes through these modules:
//!
//! - `input` cuts what was typed, piped or read from a file into statements and client commands;
//! - `command` parses the commands that never leave the client (`\d`, `\timing`, `set output json`, ..);
//! - `client` owns the connection: notices, cancellation, errors that say what to do;
//! - `statement` runs one statement and hands its rows on as they come;
//! - `render` turns rows and errors into text;
//! - `complete` proposes keywords and the server's names while a statement is typed;
//! - `shell` ties them together; `source` is where its lines come from.
//!
//! `demo()` is a client of its own on top of `client`.

mod client;
mod command;
mod complete;
mod demo;
mod input;
mod render;
mod shell;
mod source;
mod statement;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

pub use client::Endpoint;
pub use demo::{DemoOptions, DemoOutcome, demo};
pub use render::OutputFormat;

use client::Connection;
use futures::future::BoxFuture;
use shell::{Interrupted, Outcome, Shell};
use source::Source;

/// Exit code when no server answers, as psql has it.
const EXIT_NO_CONNECTION: u8 = 2;
/// Exit code after Ctrl-C ended a statement that was not typed at the prompt.
const EXIT_INTERRUPTED: u8 = 130;

/// What `highwater sql` was asked to do.
#[derive(Debug, Clone, Default)]
pub struct ReplOptions {
    /// The server and who connects.
    pub endpoint: Endpoint,
    /// Statements to run instead of reading the terminal or standard input. One text may hold several statements.
    pub statements: Vec<String>,
    /// How results are shown at first; `set output` changes it.
    pub format: OutputFormat,
}

/// Runs the client until its input ends.
///
/// Statements on the command line come first and alone; else a terminal gets the interactive shell, and anything piped in is
/// run as a script. A script and the command line stop at the first error with exit code 1; a server that cannot be reached
/// gives exit code 2 and one message that says how to start one.
pub fn run(options: ReplOptions) -> BoxFuture<'static, anyhow::Result<ExitCode>> {
    // Boxed here, so that its code is made with this crate and not again with each program that awaits it.
    Box::pin(run_client(options))
}

async fn run_client(options: ReplOptions) -> anyhow::Result<ExitCode> {
    let connection = match Connection::open(&options.endpoint).await {
        Ok(connection) => connection,
        Err(error) => {
            eprintln!("{error}");
            return Ok(ExitCode::from(EXIT_NO_CONNECTION));
        }
    };
    let interactive = options.statements.is_empty() && io::stdin().is_terminal();
    let mut shell = Shell::new(options.endpoint, connection, options.format, interactive);
    let outcome = if interactive {
        shell.interact().await
    } else if options.statements.is_empty() {
        shell.run_source(&mut Source::stdin(), None).await
    } else {
        run_arguments(&mut shell, &options.statements).await
    };
    match outcome {
        Ok(Outcome::Continue | Outcome::Quit) => Ok(ExitCode::SUCCESS),
        Ok(Outcome::Failed) => Ok(ExitCode::FAILURE),
        Ok(Outcome::Interrupted) => Ok(ExitCode::from(EXIT_INTERRUPTED)),
        Err(error) if error.is::<Interrupted>() => Ok(ExitCode::from(EXIT_INTERRUPTED)),
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
    }
}

async fn run_arguments(shell: &mut Shell, statements: &[String]) -> anyhow::Result<Outcome> {
    for statement in statements {
        let outcome = shell
            .run_source(&mut Source::argument(statement), None)
            .await?;
        if outcome != Outcome::Continue {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Continue)
}

/// The reader of our output has seen enough, as in `highwater sql .. | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The caller may run both on any task of its runtime.
    #[test]
    fn both_clients_can_be_spawned() {
        fn assert_send<T: Send>(_future: T) {}
        assert_send(run(ReplOptions::default()));
        assert_send(demo(DemoOptions::new(([127, 0, 0, 1], 1).into())));
    }

    #[test]
    fn a_broken_pipe_is_found_below_its_context() {
        let error =
            anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing");
        assert!(is_broken_pipe(&error));
        assert!(!is_broken_pipe(&anyhow::anyhow!("broken pipe")));
    }
}
