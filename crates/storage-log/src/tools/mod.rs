//! Command-line tools for a log's folder: `highwater log ..` and `highwater bench log`. The program's `main` only parses and calls [`run`] and
//! [`bench::run`].
//!
//! All but `dump` open the folder as a server would, so they refuse while one is running; `dump` only reads the files that it is given.
//! Exit codes: 0 done, 1 failed or damage found, 2 wrong arguments, 130 interrupted.

pub mod bench;
mod consume;
mod dump;
mod error;
mod folder;
mod format;
mod interrupt;
mod output;
mod produce;
mod progress;
mod time;
mod topics;
mod verify;

use std::process::ExitCode;

use clap::Subcommand;

pub use error::ToolError;

/// The commands of `highwater log`.
#[derive(Debug, Clone, Subcommand)]
pub enum LogCommand {
    /// List the topics
    Topics(topics::ListArgs),
    /// Show a topic: settings, and of each partition offsets and size
    Describe(topics::DescribeArgs),
    /// Create a topic
    Create(topics::CreateArgs),
    /// Change a topic's settings, or give it more partitions
    Alter(topics::AlterArgs),
    /// Delete a topic with its data
    Delete(topics::DeleteArgs),
    /// Append records that are read from standard input or a file, one a line
    Produce(produce::ProduceArgs),
    /// Print records
    Consume(consume::ConsumeArgs),
    /// Print segment files, indexes and snapshots as they are; needs no lock
    Dump(dump::DumpArgs),
    /// Check every byte of a data folder without changing one
    Verify(verify::VerifyArgs),
}

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    /// Something is wrong with the data, and was shown.
    Damaged,
    Interrupted,
}

/// Runs a command.
pub fn run(command: &LogCommand) -> Result<ExitCode, ToolError> {
    let outcome = match command {
        LogCommand::Topics(args) => topics::list(args),
        LogCommand::Describe(args) => topics::describe(args),
        LogCommand::Create(args) => topics::create(args),
        LogCommand::Alter(args) => topics::alter(args),
        LogCommand::Delete(args) => topics::delete(args),
        LogCommand::Produce(args) => produce::produce(args),
        LogCommand::Consume(args) => consume::consume(args),
        LogCommand::Dump(args) => dump::dump(args),
        LogCommand::Verify(args) => verify::verify(args),
    };
    match outcome {
        Ok(Outcome::Done) => Ok(ExitCode::SUCCESS),
        Ok(Outcome::Damaged) => Ok(ExitCode::from(1)),
        Ok(Outcome::Interrupted) => Ok(ExitCode::from(130)),
        // Whoever read our output has seen enough (`| head`).
        Err(error) if error.is_closed_pipe() => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
    }
}
