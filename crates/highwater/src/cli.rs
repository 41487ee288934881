//! The command line: `highwater [start]`, `highwater sql`, `highwater demo`, `highwater test-runner`, `highwater restore`, `highwater log`, `highwater bench`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bench_formats::BenchFormatsArgs;
use highwater_bench::{LatencyArgs, NexmarkArgs, StepsArgs};
use highwater_server::config::{Config, ConfigError, Settings};
use highwater_storage_log::tools::{LogCommand, bench::BenchArgs};
use highwater_test_runner::TestRunnerArgs;

/// A streaming SQL database in one binary: PostgreSQL's protocol in front, a partitioned log below, continuous queries between.
#[derive(Debug, Parser)]
#[command(name = "highwater", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; without a command the server starts.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `start`, when no command is given.
    #[command(flatten)]
    pub start: StartArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server (this is what happens without a command, too)
    Start(StartArgs),
    /// Open a SQL shell on a running server, or run the given statements
    Sql(SqlArgs),
    /// Start a server on a temporary folder, play January 2013's flights into it and watch three continuous queries
    Demo(DemoArgs),
    /// Run statements over given records and compare what comes out with what is expected
    TestRunner(TestRunnerArgs),
    /// Make a data folder out of what the statement BACKUP TO 'folder' made
    Restore(RestoreArgs),
    /// Look at the topics in a data folder and work with them while no server runs
    #[command(subcommand)]
    Log(LogCommand),
    /// Measure a part of Highwater beside the machine's limits
    #[command(subcommand)]
    Bench(Bench),
}

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// The log: appending, reading, latency, memory
    Log(BenchArgs),
    /// The formats: decoding and encoding, beside bare libraries
    Formats(BenchFormatsArgs),
    /// Continuous queries over auction events, beside the bare decoder and encoder
    Nexmark(NexmarkArgs),
    /// From an INSERT to whoever waits for its row, idle and under load
    Latency(LatencyArgs),
    /// Steps of one record, and what checkpoints of much state do to those who wait for a row
    Steps(StepsArgs),
}

/// Options of `highwater start`.
#[derive(Debug, Clone, Args)]
pub struct StartArgs {
    /// TOML file with settings; flags and environment variables win over it
    #[arg(long, env = "HIGHWATER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The settings themselves.
    #[command(flatten)]
    pub settings: Settings,
}

/// Options of `highwater restore`.
#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    /// Folder of the backup; it stays as it is
    pub backup: PathBuf,
    /// Folder to make, for `highwater start --data DIR`; it must not exist or be empty
    #[arg(long, short, value_name = "DIR")]
    pub data: PathBuf,
}

/// Options of `highwater sql`.
#[derive(Debug, Clone, Args)]
pub struct SqlArgs {
    /// Statements to run; without any, a shell opens (or, in a pipe, standard input is run)
    pub statements: Vec<String>,
    /// Host of the server
    #[arg(long, short = 'H', env = "HIGHWATER_HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Port of the server
    #[arg(long, short, env = "HIGHWATER_PORT", default_value_t = 7432)]
    pub port: u16,
    /// User name
    #[arg(long, short = 'U', env = "HIGHWATER_USER", default_value = "highwater")]
    pub user: String,
    /// Database name
    #[arg(long, short, env = "HIGHWATER_DATABASE", default_value = "highwater")]
    pub database: String,
    /// How results are printed
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Forms of printed results.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Output {
    /// Aligned columns
    Table,
    /// One JSON object a line
    Json,
    /// Comma-separated values with a header
    Csv,
}

/// Options of `highwater demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Hours of flights that pass in a second
    #[arg(long, value_name = "HOURS")]
    pub speed: Option<f64>,
    /// Stop after so many seconds, even if the month is not over
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u64>,
}

impl StartArgs {
    /// Merges flags, environment and file, and validates the outcome.
    pub fn into_config(self) -> Result<Config, ConfigError> {
        let file = match self.config {
            Some(path) => Settings::from_file(path)?,
            None => Settings::default(),
        };
        self.settings.or(file).validate()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn start_is_the_default_command() {
        let bare = Cli::try_parse_from(["highwater", "--listen", "127.0.0.1:1"])
            .expect("flags without a command");
        assert!(bare.command.is_none());
        assert_eq!(
            bare.start.settings.listen.map(|address| address.port()),
            Some(1)
        );
        let named = Cli::try_parse_from(["highwater", "start", "--log-fsync", "never"])
            .expect("start with a flag");
        assert!(matches!(named.command, Some(Command::Start(_))));
    }

    #[test]
    fn flags_win_over_the_file() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("highwater.toml");
        std::fs::write(&path, "max_connections = 5\ndefault_partitions = 6\n").expect("written");
        let path = path.to_str().expect("UTF-8 path");
        let cli = Cli::try_parse_from(["highwater", "--config", path, "--max-connections", "7"])
            .expect("parses");
        let config = cli.start.into_config().expect("valid");
        assert_eq!((config.max_connections, config.default_partitions), (7, 6));
    }
}
