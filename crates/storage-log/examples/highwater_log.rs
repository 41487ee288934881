//! `highwater log ..` and `highwater bench log` without the rest of the program, for work on the log alone.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use highwater_storage_log::tools::{
    self, LogCommand,
    bench::{self, BenchArgs},
};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Look at a log's folder and work with it
    #[command(subcommand)]
    Log(LogCommand),
    /// Measure the log beside the machine's limits
    Bench(BenchArgs),
}

fn main() -> ExitCode {
    let outcome: Result<ExitCode, anyhow::Error> = match &Cli::parse().command {
        Command::Log(command) => tools::run(command).map_err(Into::into),
        Command::Bench(args) => bench::run(args).map_err(Into::into),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("highwater: {error:#}");
        ExitCode::from(1)
    })
}
