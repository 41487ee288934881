//! A server in this process, and short ways to talk to it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use highwater_server::{
    Addresses, Listeners,
    config::{ByteSize, Settings},
    error::ServerError,
    run,
};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};
use tokio_util::sync::CancellationToken;

/// A running server.
pub struct TestServer {
    folder: Arc<TempDir>,
    pub addresses: Addresses,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), ServerError>>,
}

impl TestServer {
    /// A server on an empty folder.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        Self::start_in(Arc::new(folder))
            .await
            .expect("the server starts")
    }

    async fn start_in(folder: Arc<TempDir>) -> Result<Self, ServerError> {
        let config = settings(folder.path()).validate().expect("valid settings");
        let listeners = Listeners::bind(&config).await?;
        let addresses = listeners.addresses().expect("bound");
        let shutdown = CancellationToken::new();
        let (ready, is_ready) = oneshot::channel();
        let task = tokio::spawn(run(config, listeners, shutdown.clone(), move || {
            ready.send(()).expect("the test waits");
        }));
        match is_ready.await {
            Ok(()) => Ok(Self {
                folder,
                addresses,
                shutdown,
                task,
            }),
            Err(_) => Err(task
                .await
                .expect("no panic")
                .expect_err("it stopped before it was ready")),
        }
    }

    /// A second server on the same folder.
    pub async fn start_another(&self) -> Result<Self, ServerError> {
        Self::start_in(Arc::clone(&self.folder)).await
    }

    /// Where the data is.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Stops cleanly and starts again on the same folder.
    pub async fn restart(self) -> Self {
        let folder = self.stop().await;
        Self::start_in(folder)
            .await
            .expect("the server starts again")
    }

    async fn stop(self) -> Arc<TempDir> {
        self.shutdown.cancel();
        self.task.await.expect("no panic").expect("a clean stop");
        self.folder
    }

    /// A client.
    pub async fn client(&self) -> Client {
        self.client_as("highwater-tests").await.0
    }

    /// A client that says who it is, and the notices it gets.
    pub async fn client_as(
        &self,
        application: &str,
    ) -> (Client, tokio::sync::mpsc::UnboundedReceiver<String>) {
        let parameters = format!(
            "host={} port={} user=highwater dbname=highwater application_name={application}",
            self.addresses.sql.ip(),
            self.addresses.sql.port()
        );
        let (client, mut connection) = tokio_postgres::connect(&parameters, NoTls)
            .await
            .expect("connects");
        let (sender, notices) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(message) =
                std::future::poll_fn(|context| connection.poll_message(context)).await
            {
                match message {
                    Ok(AsyncMessage::Notice(notice)) => {
                        let _ = sender.send(notice.message().to_owned());
                    }
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
        });
        (client, notices)
    }
}

fn settings(folder: &Path) -> Settings {
    let any_port = "127.0.0.1:0".parse().expect("an address");
    let mut settings = Settings {
        data: Some(folder.join("data")),
        listen: Some(any_port),
        http_listen: Some(any_port),
        default_partitions: Some(2),
        ..Settings::default()
    };
    settings.log.segment_bytes = Some(ByteSize(4 << 20));
    settings
}

/// Runs statements that give no rows.
pub async fn run_all(client: &Client, statements: &[&str]) {
    for statement in statements {
        client
            .simple_query(statement)
            .await
            .unwrap_or_else(|error| panic!("{statement}: {}", describe(&error)));
    }
}

/// The rows of a query, each as its fields joined by `|`.
pub async fn rows(client: &Client, query: &str) -> Vec<String> {
    let messages = client
        .simple_query(query)
        .await
        .unwrap_or_else(|error| panic!("{query}: {}", describe(&error)));
    messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(
                (0..row.len())
                    .map(|at| row.get(at).unwrap_or("NULL"))
                    .collect::<Vec<_>>()
                    .join("|"),
            ),
            _ => None,
        })
        .collect()
}

/// SQLSTATE, message and hint of a statement that fails.
pub async fn error(client: &Client, statement: &str) -> (String, String, String) {
    match client.simple_query(statement).await {
        Ok(_) => panic!("{statement} succeeds"),
        Err(error) => {
            let database = error
                .as_db_error()
                .unwrap_or_else(|| panic!("{statement}: {error}"));
            (
                database.code().code().to_owned(),
                database.message().to_owned(),
                database.hint().unwrap_or_default().to_owned(),
            )
        }
    }
}

fn describe(error: &tokio_postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |error| format!("{error:?}"))
}
