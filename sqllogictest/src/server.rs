//! A `highwater` process under test.
//!
//! INVARIANT: a process never outlives its [`ServerProcess`]; dropping it sends SIGKILL and waits.
//!
//! The ports stay the same over a restart, so a client reconnects to the address it knows, as a real one would. They are taken below the
//! kernel's ephemeral range: there, no outgoing connection of another test can take a port while its server is down.

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

/// How long a start may take. A start replays at most the steps since the last checkpoint, so seconds are already too many; the rest is
/// room for a loaded machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long a clean stop may take, for the same reasons.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Pause between two looks at a process that starts or stops.
const POLL: Duration = Duration::from_millis(5);
/// How much of the log goes into a failure report.
const LOG_TAIL_LINES: usize = 40;

/// Where a server listens, and how often it was started. Cheap to clone; clients keep one.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Port of the PostgreSQL protocol on 127.0.0.1.
    pub port: u16,
    /// Port of the HTTP interface on 127.0.0.1.
    pub http_port: u16,
    starts: Arc<AtomicU64>,
}

impl Endpoint {
    /// Number of the present start. It grows with every restart that the test made, so a client can tell these from a lost connection.
    pub fn start_number(&self) -> u64 {
        self.starts.load(Ordering::SeqCst)
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        // The task ends by itself when the client is dropped or the server is gone; its error also reaches every pending call of the client.
        let (client, _task) = self.connect_with_task().await?;
        Ok(client)
    }

    /// Opens a connection whose socket closes when the task is aborted.
    pub(crate) async fn connect_with_task(
        &self,
    ) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
        let parameters = format!(
            "host=127.0.0.1 port={} user=highwater dbname=highwater",
            self.port
        );
        let (client, connection) = tokio_postgres::connect(&parameters, NoTls).await?;
        let task = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok((client, task))
    }
}

/// A running server on a temporary folder.
#[derive(Debug)]
pub struct ServerProcess {
    folder: TempDir,
    endpoint: Endpoint,
    options: Vec<String>,
    child: Option<Child>,
}

impl ServerProcess {
    /// Starts a server with default settings on an empty folder and waits until it answers.
    pub async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    /// The same with more command-line options.
    pub async fn start_with(options: &[&str]) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("highwater-test-")
            .tempdir()?;
        let endpoint = Endpoint {
            port: free_port()?,
            http_port: free_port()?,
            starts: Arc::default(),
        };
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self {
            folder,
            endpoint,
            options,
            child: None,
        };
        server.spawn()?;
        server.wait_until_ready().await?;
        Ok(server)
    }

    /// The `highwater` binary: `HIGHWATER_BIN`, or what the build put into the profile's folder, above the test executable.
    pub fn binary() -> Result<PathBuf> {
        if let Some(path) = env::var_os("HIGHWATER_BIN") {
            return Ok(path.into());
        }
        let test = env::current_exe()?;
        let found = test
            .ancestors()
            .skip(1)
            .take(2)
            .map(|folder| folder.join("highwater"))
            .find(|path| path.is_file());
        match found {
            Some(path) => Ok(path),
            None => bail!(
                "no highwater binary near {}: run the tests with `./hw test`, which builds the workspace first",
                test.parent().unwrap_or(Path::new(".")).display()
            ),
        }
    }

    /// Where to connect.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The folder that holds everything the server keeps.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Ends the process at once, as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Fails only when the process has ended already, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts the process again without waiting for it to answer.
    pub fn spawn(&mut self) -> Result<()> {
        self.kill();
        let binary = Self::binary()?;
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.log_path())?;
        let child = Command::new(&binary)
            .arg("start")
            .arg("--data")
            .arg(self.data())
            .arg("--listen")
            .arg(format!("127.0.0.1:{}", self.endpoint.port))
            .arg("--http-listen")
            .arg(format!("127.0.0.1:{}", self.endpoint.http_port))
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        self.child = Some(child);
        self.endpoint.starts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Waits until the server takes a connection.
    pub async fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Some(status) = self.exit_status()? {
                bail!(
                    "the server ended with {status} while it started\n{}",
                    self.log_tail()
                );
            }
            // A server that recovers has bound its port already and keeps clients waiting.
            let left = deadline.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.endpoint.connect()).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(_)) => tokio::time::sleep(POLL).await,
                Err(_) => bail!("no connection within {START_LIMIT:?}\n{}", self.log_tail()),
            }
        }
    }

    /// SIGKILL and a new start on the same folder.
    pub async fn restart(&mut self) -> Result<()> {
        self.kill();
        self.spawn()?;
        self.wait_until_ready().await
    }

    /// SIGTERM; answers how the process ended.
    pub async fn stop(&mut self) -> Result<ExitStatus> {
        let Some(child) = &self.child else {
            bail!("the server is not running")
        };
        let status = Command::new("kill")
            .arg("-TERM")
            .arg(child.id().to_string())
            .status()?;
        if !status.success() {
            bail!("kill -TERM ended with {status}");
        }
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = self.exit_status()? {
                self.child = None;
                return Ok(status);
            }
            tokio::time::sleep(POLL).await;
        }
        bail!(
            "the server did not stop within {STOP_LIMIT:?}\n{}",
            self.log_tail()
        )
    }

    /// The process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// How the process ended, or `None` while it runs.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait()?),
            None => Ok(None),
        }
    }

    /// Fails when the process has ended by itself or a thread of it has panicked since the folder was made.
    pub fn check_health(&mut self) -> Result<()> {
        if let Some(status) = self.exit_status()? {
            bail!(
                "the server ended by itself with {status}\n{}",
                self.log_tail()
            );
        }
        let log = fs::read_to_string(self.log_path())?;
        if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
            bail!(
                "a thread of the server panicked: {line}\n{}",
                self.log_tail()
            );
        }
        Ok(())
    }

    /// The last lines of the server's output.
    pub fn log_tail(&self) -> String {
        let log = fs::read(self.log_path()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let first = lines.len().saturating_sub(LOG_TAIL_LINES);
        format!(
            "--- last lines of the server's output ---\n{}",
            lines[first..].join("\n")
        )
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that nobody listens on. Ports are handed out once per process; processes begin at different places.
fn free_port() -> Result<u16> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let spread = (std::process::id() % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let taken = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (spread + taken) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port between {FIRST} and {}", FIRST + COUNT)
}
