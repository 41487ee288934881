//! A server on free ports and a temporary folder.

use std::time::Duration;

use highwater_server::{Addresses, Listeners, config::Settings, run};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use tokio_postgres::{Client, Config, NoTls, error::SqlState};
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes on a busy machine; reached only when something hangs.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running server. Its folder goes with it.
pub struct TestServer {
    pub addresses: Addresses,
    shutdown: CancellationToken,
    running: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl TestServer {
    /// Starts with default settings.
    pub async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    /// Starts with these settings, on free ports and a folder of its own.
    pub async fn start_with(settings: Settings) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let any_port = Some("127.0.0.1:0".parse().expect("an address"));
        let data = Some(folder.path().to_owned());
        let config = Settings {
            data,
            listen: any_port,
            http_listen: any_port,
            ..settings
        }
        .validate()
        .expect("valid settings");
        let listeners = Listeners::bind(&config).await.expect("free ports");
        let addresses = listeners.addresses().expect("addresses");
        let shutdown = CancellationToken::new();
        let (ready, is_ready) = oneshot::channel();
        let stop = shutdown.clone();
        let running = tokio::spawn(async move {
            let ran = run(config, listeners, stop, move || {
                let _ = ready.send(());
            })
            .await;
            ran.expect("the server runs until it is stopped");
        });
        timeout(PATIENCE, is_ready)
            .await
            .expect("ready in time")
            .expect("the server started");
        Self {
            addresses,
            shutdown,
            running: Some(running),
            _folder: folder,
        }
    }

    /// How a driver connects.
    pub fn config(&self) -> Config {
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(self.addresses.sql.port())
            .user("tester")
            .dbname("highwater");
        config
    }

    /// A driver's connection.
    pub async fn connect(&self) -> Client {
        let (client, connection) = self.config().connect(NoTls).await.expect("a connection");
        tokio::spawn(async move {
            // Its end shows in the client.
            let _ = connection.await;
        });
        client
    }

    /// Stops the server and waits for its end.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        let running = self.running.take().expect("stopped once");
        timeout(PATIENCE, running)
            .await
            .expect("stopped in time")
            .expect("no panic");
    }

    /// Begins to stop the server.
    pub fn begin_stop(&self) {
        self.shutdown.cancel();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// The SQLSTATE of an error that the server sent.
pub fn state(error: &tokio_postgres::Error) -> SqlState {
    error
        .code()
        .unwrap_or_else(|| panic!("not the server's error: {error:?}"))
        .clone()
}

/// The connection still works.
pub async fn assert_usable(client: &Client) {
    let row = timeout(PATIENCE, client.query_one("SELECT 40 + 2", &[]))
        .await
        .expect("in time")
        .expect("an answer");
    assert_eq!(row.get::<_, i64>(0), 42);
}

/// A stream of numbers and names with one partition.
pub async fn create_stream(client: &Client, name: &str) {
    let create = format!(
        "CREATE STREAM {name} (id BIGINT, word VARCHAR) WITH (kafka_topic = '{name}', value_format = 'JSON', partitions = 1)"
    );
    client.batch_execute(&create).await.expect("a stream");
}

/// The client's push queries begin with the first record, so that a test need not know when they have begun.
pub async fn from_the_beginning(client: &Client) {
    client
        .batch_execute("SET 'auto.offset.reset' = 'earliest'")
        .await
        .expect("a setting");
}
