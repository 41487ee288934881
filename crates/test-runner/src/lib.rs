//! `highwater test-runner`: statements, records in, records out, compared exactly.
//!
//! Two forms: a script with its records in files (`script`), and suites of cases (`case`, `suite`). Both run on a `World`: a whole server
//! without sockets, on a log in memory, which takes one record a step. Planner, steps and operators are the ones that serve clients.
//!
//! INVARIANT: a record is processed to its end before the next is fed, so every change is a record of its own and results do not depend on
//! timing. A run can fail, but it can neither hang nor crash the others.

mod case;
mod compare;
mod json;
mod layout;
mod record;
mod run;
mod schema;
mod script;
mod suite;
mod world;

use std::{io, path::PathBuf, process::ExitCode, thread};

use clap::Args;

use case::Run;
use script::Script;
pub use suite::{Tally, Telling};

/// Arguments of `highwater test-runner`.
#[derive(Debug, Clone, Args)]
pub struct TestRunnerArgs {
    /// Statements to test
    #[arg(
        long,
        short,
        value_name = "FILE",
        requires = "input_file",
        required_unless_present = "suite"
    )]
    pub sql_file: Option<PathBuf>,
    /// Records that go in: {"inputs": [{"topic", "key", "value", "timestamp", ..}]}
    #[arg(long, short, value_name = "FILE", requires = "sql_file")]
    pub input_file: Option<PathBuf>,
    /// Records that must come out: {"outputs": [..]}; without it they are printed
    #[arg(long, short, value_name = "FILE", requires = "sql_file")]
    pub output_file: Option<PathBuf>,
    /// Where to write what came out
    #[arg(long, value_name = "FILE", requires = "sql_file")]
    pub actual_file: Option<PathBuf>,
    /// Dialect of the statements: ksql or postgres
    #[arg(
        long,
        value_name = "NAME",
        default_value = "ksql",
        requires = "sql_file"
    )]
    pub dialect: String,
    /// File with cases, or a folder of such files
    #[arg(long, value_name = "PATH", conflicts_with = "sql_file")]
    pub suite: Option<PathBuf>,
    /// Only cases whose name has this text in it
    #[arg(long, value_name = "TEXT", requires = "suite")]
    pub filter: Option<String>,
    /// No cases with this word in a statement or a topic's format; can be given several times
    #[arg(long, value_name = "WORD", requires = "suite")]
    pub without: Vec<String>,
    /// Cases that run at the same time [default: the number of cores]
    #[arg(long, value_name = "N", requires = "suite")]
    pub jobs: Option<usize>,
    /// Name the cases that pass, too
    #[arg(long, requires = "suite")]
    pub passed: bool,
    /// Count failures by kind
    #[arg(long, requires = "suite")]
    pub summary: bool,
}

/// Runs what the arguments say; the exit code is 0 when everything came out as expected, else 1.
pub fn run(args: &TestRunnerArgs) -> anyhow::Result<ExitCode> {
    let good = match (&args.suite, &args.sql_file, &args.input_file) {
        (Some(_), ..) => run_suite(args, &mut io::stdout().lock())?.failed == 0,
        (None, Some(sql), Some(input)) => {
            let failure = script::run(Script {
                sql,
                input,
                output: args.output_file.as_deref(),
                dialect: &args.dialect,
                actual: args.actual_file.as_deref(),
            })?;
            match (failure, &args.output_file) {
                (Some(failure), _) => {
                    println!("{failure}\nTest failed.");
                    false
                }
                (None, Some(_)) => {
                    println!("Test passed.");
                    true
                }
                (None, None) => true,
            }
        }
        _ => anyhow::bail!("give --suite, or --sql-file with --input-file"),
    };
    Ok(ExitCode::from(u8::from(!good)))
}

/// Runs the suite that the arguments name, and tells of it to `out`.
pub fn run_suite(args: &TestRunnerArgs, out: &mut dyn io::Write) -> anyhow::Result<Tally> {
    let Some(path) = &args.suite else {
        anyhow::bail!("there is no suite");
    };
    let filter = args.filter.as_deref().unwrap_or("");
    let runs: Vec<Run> = case::load(path)?
        .into_iter()
        .filter(|run| run.name.contains(filter))
        .filter(|run| !args.without.iter().any(|word| run.speaks_of(word)))
        .collect();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let telling = Telling {
        passed: args.passed,
        summary: args.summary,
    };
    Ok(suite::run_all(
        &runs,
        args.jobs.unwrap_or(cores),
        telling,
        out,
    )?)
}
