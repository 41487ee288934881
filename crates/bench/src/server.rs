//! A server in this process, and its clients.

use std::{net::SocketAddr, path::Path};

use anyhow::{Context, Result, bail};
use highwater_server::{Listeners, config::Settings, error::ServerError, run};
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_postgres::{Client, NoTls};
use tokio_util::sync::CancellationToken;

/// A server that listens on a free port until it is stopped.
pub(crate) struct RunningServer {
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), ServerError>>,
}

impl RunningServer {
    /// Starts on a data folder, with these settings but for the addresses.
    pub(crate) async fn start(data: &Path, settings: Settings) -> Result<Self> {
        let any_port = "127.0.0.1:0".parse()?;
        let settings = Settings {
            data: Some(data.to_owned()),
            listen: Some(any_port),
            http_listen: Some(any_port),
            ..settings
        };
        let config = settings.validate()?;
        let listeners = Listeners::bind(&config).await?;
        let address = listeners.addresses()?.sql;
        let shutdown = CancellationToken::new();
        let (ready, is_ready) = oneshot::channel();
        let task = tokio::spawn(run(config, listeners, shutdown.clone(), move || {
            let _ = ready.send(());
        }));
        if is_ready.await.is_err() {
            task.await??;
            bail!("the server stopped before it was ready");
        }
        Ok(Self {
            address,
            shutdown,
            task,
        })
    }

    /// A connection.
    pub(crate) async fn connect(&self) -> Result<Client> {
        let mut config = tokio_postgres::Config::new();
        config
            .host(self.address.ip().to_string())
            .port(self.address.port())
            .user("highwater")
            .dbname("highwater");
        let (client, connection) = config
            .connect(NoTls)
            .await
            .context("cannot connect to the server")?;
        // Its errors reach the client's calls, too.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Stops it and waits for its last checkpoint.
    pub(crate) async fn stop(self) -> Result<()> {
        self.shutdown.cancel();
        Ok(self.task.await??)
    }
}

/// What the server says of a failed call, with its code and hint.
pub(crate) fn told(error: tokio_postgres::Error) -> anyhow::Error {
    let Some(server) = error.as_db_error() else {
        return error.into();
    };
    let hint = server
        .hint()
        .map(|hint| format!(" ({hint})"))
        .unwrap_or_default();
    anyhow::anyhow!("{}: {}{hint}", server.code().code(), server.message())
}
