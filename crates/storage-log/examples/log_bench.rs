//! `highwater bench log` without the rest of the program, for work on the log alone.

use std::process::ExitCode;

use clap::Parser;
use highwater_storage_log::tools::bench::{self, BenchArgs};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: BenchArgs,
}

fn main() -> ExitCode {
    match bench::run(&Cli::parse().args) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("log_bench: {error}");
            ExitCode::from(2)
        }
    }
}
