//! Settings: where each comes from, its default, and what is refused.
//!
//! Every setting is a flag, an environment variable and a key of the TOML file, in this order of precedence; the one declaration in
//! [`Settings`] makes all three. [`Config`] is what is left after defaults and validation: nothing downstream checks a setting again.

mod machine;
mod units;

use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use highwater_exec::EngineOptions;
use serde::Deserialize;

pub use units::{ByteSize, HumanDuration};

/// Settings as they were given: absent ones are `None`.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Folder for topics, state and checkpoints; made if absent [default: ./highwater-data]
    #[arg(long, env = "HIGHWATER_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address for PostgreSQL clients [default: 127.0.0.1:7432]
    #[arg(long, env = "HIGHWATER_LISTEN", value_name = "HOST:PORT")]
    pub listen: Option<SocketAddr>,
    /// Address for HTTP: /healthz and /metrics [default: 127.0.0.1:8088]
    #[arg(long, env = "HIGHWATER_HTTP_LISTEN", value_name = "HOST:PORT")]
    pub http_listen: Option<SocketAddr>,
    /// Listen beyond this machine although there are no passwords: anyone who reaches the port can read and write everything
    #[arg(long, env = "HIGHWATER_INSECURE_ALLOW_REMOTE", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub insecure_allow_remote: Option<bool>,
    /// Most client connections at once; further ones are refused with 53300 [default: 200]
    #[arg(long, env = "HIGHWATER_MAX_CONNECTIONS", value_name = "N")]
    pub max_connections: Option<NonZeroUsize>,
    /// Partitions of a topic that a statement makes without saying how many [default: 4]
    #[arg(long, env = "HIGHWATER_DEFAULT_PARTITIONS", value_name = "N")]
    pub default_partitions: Option<u32>,
    /// Threads that run pull queries [default: the number of cores]
    #[arg(long, env = "HIGHWATER_WORKERS", value_name = "N")]
    pub workers: Option<NonZeroUsize>,
    /// What is logged to stderr: error, warn, info, debug, trace, or a filter such as info,highwater_exec=debug [default: info]
    #[arg(long, env = "HIGHWATER_LOG_LEVEL", value_name = "FILTER")]
    pub log_level: Option<String>,
    /// Section `[log]`.
    #[command(flatten)]
    pub log: LogSettings,
    /// Section `[step]`.
    #[command(flatten)]
    pub step: StepSettings,
    /// Section `[exec]`.
    #[command(flatten)]
    pub exec: ExecSettings,
    /// Section `[checkpoint]`.
    #[command(flatten)]
    pub checkpoint: CheckpointSettings,
    /// Section `[state]`.
    #[command(flatten)]
    pub state: StateSettings,
    /// Section `[push]`.
    #[command(flatten)]
    pub push: PushSettings,
}

/// Settings of the log.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// When records go to disk: always (before they are acknowledged), interval, or never (the operating system decides) [default: always]
    #[arg(
        id = "log.fsync",
        long = "log-fsync",
        env = "HIGHWATER_LOG_FSYNC",
        value_name = "POLICY"
    )]
    pub fsync: Option<Fsync>,
    /// Time between syncs under the policy interval [default: 1s]
    #[arg(
        id = "log.fsync_interval",
        long = "log-fsync-interval",
        env = "HIGHWATER_LOG_FSYNC_INTERVAL",
        value_name = "TIME"
    )]
    pub fsync_interval: Option<HumanDuration>,
    /// Size at which a segment file is closed and the next one begun [default: 1GiB]
    #[arg(
        id = "log.segment_bytes",
        long = "log-segment-bytes",
        env = "HIGHWATER_LOG_SEGMENT_BYTES",
        value_name = "SIZE"
    )]
    pub segment_bytes: Option<ByteSize>,
}

/// Settings of the step loop.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepSettings {
    /// Most rows that one step of the continuous queries takes from its sources [default: 65536]
    #[arg(
        id = "step.max_rows",
        long = "step-max-rows",
        env = "HIGHWATER_STEP_MAX_ROWS",
        value_name = "N"
    )]
    pub max_rows: Option<NonZeroUsize>,
}

/// Settings of the continuous queries.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecSettings {
    /// Threads that share the work of one step of the continuous queries; results do not depend on it [default: the number of cores]
    #[arg(
        id = "exec.workers",
        long = "exec-workers",
        env = "HIGHWATER_EXEC_WORKERS",
        value_name = "N"
    )]
    pub workers: Option<NonZeroUsize>,
}

/// Settings of checkpoints.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointSettings {
    /// Time between checkpoints of the queries' state: recovery replays what came after the last one [default: 10s]
    #[arg(
        id = "checkpoint.interval",
        long = "checkpoint-interval",
        env = "HIGHWATER_CHECKPOINT_INTERVAL",
        value_name = "TIME"
    )]
    pub interval: Option<HumanDuration>,
}

/// Settings of what queries keep.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateSettings {
    /// Memory for the state of continuous queries; what does not fit is read from disk when it is needed [default: half of the machine's memory]
    #[arg(
        id = "state.memory",
        long = "state-memory",
        env = "HIGHWATER_STATE_MEMORY",
        value_name = "SIZE"
    )]
    pub memory: Option<ByteSize>,
}

/// Settings of push queries.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PushSettings {
    /// How far a reader of a push query may fall behind before it loses its subscription [default: 64MiB]
    #[arg(
        id = "push.buffer_bytes",
        long = "push-buffer-bytes",
        env = "HIGHWATER_PUSH_BUFFER_BYTES",
        value_name = "SIZE"
    )]
    pub buffer_bytes: Option<ByteSize>,
    /// Steps that a push query can be resumed behind: so many are remembered at least [default: 1000000]
    #[arg(
        id = "push.history_steps",
        long = "push-history-steps",
        env = "HIGHWATER_PUSH_HISTORY_STEPS",
        value_name = "N"
    )]
    pub history_steps: Option<u32>,
}

/// When the log syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fsync {
    /// Before a record is acknowledged.
    Always,
    /// Every so often.
    Interval,
    /// When the operating system likes.
    Never,
}

/// Validated settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Folder for everything that lasts.
    pub data: PathBuf,
    /// Address for PostgreSQL clients.
    pub listen: SocketAddr,
    /// Address for HTTP.
    pub http_listen: SocketAddr,
    /// Most connections at once.
    pub max_connections: usize,
    /// Partitions of a topic when a statement does not say. Four lets a small machine use its cores, and a key's place survives a move to
    /// a bigger one; one total order needs `partitions = 1`.
    pub default_partitions: u32,
    /// Threads for pull queries.
    pub workers: usize,
    /// Filter of the log on stderr.
    pub log_level: String,
    /// When the log syncs.
    pub fsync: Fsync,
    /// Time between syncs under [`Fsync::Interval`].
    pub fsync_interval: Duration,
    /// Size of a segment file.
    pub segment_bytes: u64,
    /// Most rows of a step.
    pub step_max_rows: usize,
    /// Threads that share the work of a step.
    pub exec_workers: NonZeroUsize,
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
    /// Memory for the state of continuous queries. Half of the machine's by default: the other half is for the operating system's cache, which
    /// makes what does not fit quick to read, for the rows of the running step, and for pull queries.
    pub state_memory: usize,
    /// Bound on what waits for one push reader.
    pub push_buffer_bytes: usize,
    /// Steps that push queries can be resumed behind.
    pub push_history_steps: i64,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the config file \"{path}\"")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML, or has an unknown key or a value of a wrong type.
    #[error("cannot use the config file \"{path}\"")]
    Parse {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: toml::de::Error,
    },
    /// A value is outside its range.
    #[error("{key} must be {expected}, not {value}")]
    OutOfRange {
        /// Which key.
        key: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// What was given.
        value: String,
    },
    /// An address is reachable from other machines.
    #[error(
        "{key} = {address} would accept connections from other machines without a password; listen on 127.0.0.1 or [::1], or pass \
         --insecure-allow-remote if the network itself keeps strangers out"
    )]
    RemoteWithoutPassword {
        /// Which key.
        key: &'static str,
        /// Which address.
        address: SocketAddr,
    },
}

/// The bounds of `default_partitions` and of `PARTITIONS` in a statement: each partition holds a few open files.
const MAX_PARTITIONS: u32 = 1024;
/// Below this a segment would hold less than one full batch.
const MIN_SEGMENT_BYTES: u64 = 1 << 20;
/// The bounds of `state.memory`: with less, a step of the default size does not fit.
const MIN_STATE_MEMORY: usize = 16 << 20;
const MAX_STATE_MEMORY: usize = 1 << 46;
/// Kafka's index entries hold signed 32-bit positions.
const MAX_SEGMENT_BYTES: u64 = i32::MAX as u64;

impl Settings {
    /// Reads the settings of a TOML file.
    pub fn from_file(path: PathBuf) -> Result<Self, ConfigError> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => return Err(ConfigError::Read { path, source }),
        };
        toml::from_str(&text).map_err(|source| ConfigError::Parse { path, source })
    }

    /// These settings, with what they leave open taken from `fallback`.
    pub fn or(self, fallback: Self) -> Self {
        Self {
            data: self.data.or(fallback.data),
            listen: self.listen.or(fallback.listen),
            http_listen: self.http_listen.or(fallback.http_listen),
            insecure_allow_remote: self
                .insecure_allow_remote
                .or(fallback.insecure_allow_remote),
            max_connections: self.max_connections.or(fallback.max_connections),
            default_partitions: self.default_partitions.or(fallback.default_partitions),
            workers: self.workers.or(fallback.workers),
            log_level: self.log_level.or(fallback.log_level),
            log: LogSettings {
                fsync: self.log.fsync.or(fallback.log.fsync),
                fsync_interval: self.log.fsync_interval.or(fallback.log.fsync_interval),
                segment_bytes: self.log.segment_bytes.or(fallback.log.segment_bytes),
            },
            step: StepSettings {
                max_rows: self.step.max_rows.or(fallback.step.max_rows),
            },
            exec: ExecSettings {
                workers: self.exec.workers.or(fallback.exec.workers),
            },
            checkpoint: CheckpointSettings {
                interval: self.checkpoint.interval.or(fallback.checkpoint.interval),
            },
            state: StateSettings {
                memory: self.state.memory.or(fallback.state.memory),
            },
            push: PushSettings {
                buffer_bytes: self.push.buffer_bytes.or(fallback.push.buffer_bytes),
                history_steps: self.push.history_steps.or(fallback.push.history_steps),
            },
        }
    }

    /// Fills in defaults and checks every value.
    pub fn validate(self) -> Result<Config, ConfigError> {
        let config = Config {
            data: self
                .data
                .unwrap_or_else(|| PathBuf::from("./highwater-data")),
            listen: self
                .listen
                .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 7432))),
            http_listen: self
                .http_listen
                .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8088))),
            max_connections: self.max_connections.map_or(200, NonZeroUsize::get),
            default_partitions: self.default_partitions.unwrap_or(4),
            workers: self.workers.unwrap_or_else(cores).get(),
            log_level: self.log_level.unwrap_or_else(|| "info".to_owned()),
            fsync: self.log.fsync.unwrap_or(Fsync::Always),
            fsync_interval: self
                .log
                .fsync_interval
                .map_or(Duration::from_secs(1), |HumanDuration(time)| time),
            segment_bytes: self
                .log
                .segment_bytes
                .map_or(1 << 30, |ByteSize(bytes)| bytes),
            step_max_rows: self.step.max_rows.map_or(65_536, NonZeroUsize::get),
            exec_workers: self.exec.workers.unwrap_or_else(cores),
            checkpoint_interval: self
                .checkpoint
                .interval
                .map_or(Duration::from_secs(10), |HumanDuration(time)| time),
            state_memory: self
                .state
                .memory
                .map_or_else(half_of_memory, |ByteSize(bytes)| bytes as usize),
            push_buffer_bytes: self
                .push
                .buffer_bytes
                .map_or(64 << 20, |ByteSize(bytes)| bytes as usize),
            push_history_steps: self
                .push
                .history_steps
                .map_or(EngineOptions::FEED_HISTORY, i64::from),
        };
        config.check(self.insecure_allow_remote.unwrap_or(false))?;
        Ok(config)
    }
}

impl Config {
    fn check(&self, allow_remote: bool) -> Result<(), ConfigError> {
        for (key, address) in [("listen", self.listen), ("http_listen", self.http_listen)] {
            if !allow_remote && !address.ip().is_loopback() {
                return Err(ConfigError::RemoteWithoutPassword { key, address });
            }
        }
        in_range(
            "default_partitions",
            self.default_partitions,
            1..=MAX_PARTITIONS,
            "between 1 and 1024",
        )?;
        in_range(
            "log.segment_bytes",
            self.segment_bytes,
            MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES,
            "between 1MiB and 2147483647",
        )?;
        let day = Duration::from_secs(86_400);
        let millisecond = Duration::from_millis(1);
        in_range(
            "log.fsync_interval",
            HumanDuration(self.fsync_interval),
            HumanDuration(millisecond)..=HumanDuration(day),
            "between 1ms and 1d",
        )?;
        in_range(
            "checkpoint.interval",
            HumanDuration(self.checkpoint_interval),
            HumanDuration(Duration::from_millis(100))..=HumanDuration(day),
            "between 100ms and 1d",
        )?;
        in_range(
            "push.buffer_bytes",
            self.push_buffer_bytes,
            1 << 16..=1 << 34,
            "between 64KiB and 16GiB",
        )?;
        in_range(
            "state.memory",
            self.state_memory,
            MIN_STATE_MEMORY..=MAX_STATE_MEMORY,
            "between 16MiB and 64TiB",
        )?;
        in_range("workers", self.workers, 1..=1024, "between 1 and 1024")?;
        in_range(
            "exec.workers",
            self.exec_workers.get(),
            1..=1024,
            "between 1 and 1024",
        )
    }
}

fn in_range<T: PartialOrd + ToString>(
    key: &'static str,
    value: T,
    range: std::ops::RangeInclusive<T>,
    expected: &'static str,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(ConfigError::OutOfRange {
        key,
        expected,
        value: value.to_string(),
    })
}

fn half_of_memory() -> usize {
    let half = machine::memory().map(|bytes| (bytes / 2) as usize);
    half.map_or(EngineOptions::STATE_MEMORY, |half| {
        half.clamp(MIN_STATE_MEMORY, MAX_STATE_MEMORY)
    })
}

fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<Settings, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn a_file_reaches_every_section() {
        let settings = file(
            "data = '/var/lib/highwater'\nlisten = '127.0.0.1:1'\nworkers = 3\n[log]\nfsync = 'interval'\nsegment_bytes = '8MiB'\n\
             [step]\nmax_rows = 7\n[exec]\nworkers = 5\n[checkpoint]\ninterval = '2s'\n[state]\nmemory = '3GiB'\n[push]\nbuffer_bytes = 100000\nhistory_steps = 9\n",
        )
        .expect("valid file");
        let config = settings.validate().expect("valid settings");
        assert_eq!(config.data, PathBuf::from("/var/lib/highwater"));
        assert_eq!(config.listen.port(), 1);
        assert_eq!(config.fsync, Fsync::Interval);
        assert_eq!(config.segment_bytes, 8 << 20);
        assert_eq!(config.step_max_rows, 7);
        assert_eq!(config.checkpoint_interval, Duration::from_secs(2));
        assert_eq!(config.state_memory, 3 << 30);
        assert_eq!(config.push_buffer_bytes, 100_000);
        assert_eq!(config.push_history_steps, 9);
        assert_eq!((config.workers, config.exec_workers.get()), (3, 5));
    }

    #[test]
    fn what_is_given_first_wins() {
        let first = file("default_partitions = 2").expect("valid");
        let second = file("default_partitions = 8\nmax_connections = 9").expect("valid");
        let config = first.or(second).validate().expect("valid settings");
        assert_eq!((config.default_partitions, config.max_connections), (2, 9));
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let error = file("[log]\nfsink = 'always'")
            .expect_err("unknown key")
            .to_string();
        assert!(error.contains("fsink"), "{error}");
    }

    #[test]
    fn an_open_address_needs_the_override() {
        let open = file("listen = '0.0.0.0:7432'").expect("valid");
        assert!(matches!(
            open.clone().validate(),
            Err(ConfigError::RemoteWithoutPassword { key: "listen", .. })
        ));
        let allowed = Settings {
            insecure_allow_remote: Some(true),
            ..open
        };
        assert!(allowed.validate().is_ok());
    }

    #[test]
    fn values_out_of_range_name_the_key() {
        let error = file("default_partitions = 0")
            .expect("valid")
            .validate()
            .expect_err("zero partitions");
        assert_eq!(
            error.to_string(),
            "default_partitions must be between 1 and 1024, not 0"
        );
        let error = file("[state]\nmemory = '1MiB'")
            .expect("valid")
            .validate()
            .expect_err("too little memory");
        assert_eq!(
            error.to_string(),
            "state.memory must be between 16MiB and 64TiB, not 1048576"
        );
    }
}
