//! The Highwater server: process, sessions, serving.
//!
//! [`run`] is the life of a server: the data folder is locked, the log opened, the catalog folded from the command topic, the engine
//! recovered, and only then are clients let in; at the end clients go first and the engine writes its last checkpoint.
//!
//! Below it, three layers know only the one beneath: `pgwire` and `http` (protocols), `session` and `statement` (what a statement means),
//! `coordinator`, `pull` and `push` (catalog, snapshots, change feeds).

mod append_signal;
pub mod backup;
mod catalog;
mod clock;
pub mod config;
mod coordinator;
mod data_folder;
pub mod error;
mod functions;
mod http;
pub mod local;
mod pgwire;
mod planning;
mod pull;
mod purify;
mod push;
mod server;
mod session;
mod size_text;
mod small_result;
mod sqlstate;
mod statement;
pub mod telemetry;
mod topic_settings;
mod worker;

use std::{net::SocketAddr, path::Path, sync::Arc};

use futures::future::BoxFuture;
use highwater_exec::EngineOptions;
use highwater_storage_log::{EmbeddedLog, FsyncPolicy, Log, LogOptions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use append_signal::AppendSignal;
use catalog::builtin::PROCESSING_LOG_TOPIC;
use config::{Config, Fsync};
use coordinator::Coordinator;
use data_folder::DataFolder;
use error::ServerError;
use planning::Planner;
use server::Server;
pub use sqlstate::SqlError;
use worker::Workers;

/// The sockets that a server listens on.
#[derive(Debug)]
pub struct Listeners {
    /// PostgreSQL clients.
    pub sql: TcpListener,
    /// HTTP.
    pub http: TcpListener,
}

impl Listeners {
    /// Binds the configured addresses.
    pub async fn bind(config: &Config) -> Result<Self, ServerError> {
        Ok(Self {
            sql: listen(config.listen).await?,
            http: listen(config.http_listen).await?,
        })
    }

    /// The addresses, with the ports that port 0 became.
    pub fn addresses(&self) -> std::io::Result<Addresses> {
        Ok(Addresses {
            sql: self.sql.local_addr()?,
            http: self.http.local_addr()?,
        })
    }
}

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// PostgreSQL clients.
    pub sql: SocketAddr,
    /// HTTP.
    pub http: SocketAddr,
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| ServerError::Listen { address, source })
}

/// Runs a server until `shutdown` is cancelled. `ready` is called once, when the first statement can be answered.
pub fn run(
    config: Config,
    listeners: Listeners,
    shutdown: CancellationToken,
    ready: impl FnOnce() + Send + 'static,
) -> BoxFuture<'static, Result<(), ServerError>> {
    boxed(config, listeners, shutdown, Box::new(ready))
}

/// Boxed and without type parameters: the code of the whole server is made once, with this crate, and not again with each program and test
/// that awaits it.
fn boxed(
    config: Config,
    listeners: Listeners,
    shutdown: CancellationToken,
    ready: Box<dyn FnOnce() + Send>,
) -> BoxFuture<'static, Result<(), ServerError>> {
    Box::pin(serve(config, listeners, shutdown, ready))
}

async fn serve(
    config: Config,
    listeners: Listeners,
    shutdown: CancellationToken,
    ready: Box<dyn FnOnce() + Send>,
) -> Result<(), ServerError> {
    telemetry::metrics();
    let folder = DataFolder::open(&config.data)?;
    let (log_folder, state_folder) = (folder.log(), folder.state());
    let server = blocking("start the server", move || {
        open(config, &log_folder, &state_folder)
    })
    .await??;
    let server = Arc::new(server);

    let http = tokio::spawn(http::serve(
        listeners.http,
        Arc::clone(&server),
        shutdown.clone(),
    ));
    let sql = tokio::spawn(pgwire::serve(
        listeners.sql,
        Arc::clone(&server),
        shutdown.clone(),
    ));
    ready();
    shutdown.cancelled().await;

    // ORDER: no statement runs any more when the engine writes its last checkpoint, and the folder is free after that.
    if let Err(error) = sql.await {
        tracing::error!(%error, "serving PostgreSQL clients ended early");
    }
    match http.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "serving HTTP failed"),
        Err(error) => tracing::error!(%error, "serving HTTP ended early"),
    }
    blocking("stop the server", move || server.coordinator.stop()).await??;
    drop(folder);
    tracing::info!("stopped");
    Ok(())
}

/// Recovers everything from the data folder.
fn open(config: Config, log_folder: &Path, state_folder: &Path) -> Result<Server, ServerError> {
    let options = LogOptions {
        fsync: match config.fsync {
            Fsync::Always => FsyncPolicy::Always,
            Fsync::Interval => FsyncPolicy::Interval(config.fsync_interval),
            Fsync::Never => FsyncPolicy::Never,
        },
        segment_bytes: config.segment_bytes,
        ..LogOptions::default()
    };
    let embedded = Arc::new(EmbeddedLog::open(log_folder, options)?);
    let log: Arc<dyn Log> = Arc::clone(&embedded) as _;
    let appended = Arc::new(AppendSignal::new());
    log.add_listener(Arc::clone(&appended) as _);
    let engine_options = EngineOptions {
        catch_up_tail: EngineOptions::CATCH_UP_TAIL,
        state_dir: state_folder.to_owned(),
        step_max_rows: config.step_max_rows,
        workers: config.exec_workers,
        checkpoint_interval: config.checkpoint_interval,
        state_memory: config.state_memory,
        feed_history: config.push_history_steps,
        processing_log_topic: PROCESSING_LOG_TOPIC.to_owned(),
    };
    let planner = Planner::new(config.default_partitions);
    let coordinator = Coordinator::open(Arc::clone(&log), planner, engine_options)?;
    // ORDER: the engine has said by now what it will read again.
    embedded.start_maintenance()?;
    let workers = Workers::start(config.workers)?;
    Ok(Server {
        engine: coordinator.engine(),
        config,
        log,
        embedded: Some(embedded),
        coordinator,
        workers,
        appended,
    })
}

async fn blocking<T: Send + 'static>(
    action: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServerError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ServerError::System {
            action,
            source: std::io::Error::other(error),
        })
}
