//! The connection to a server.
//!
//! A [`Connection`] pairs the request half with what the server says unasked: notices wait in a bounded queue until the shell
//! prints them. When the server goes away the connection stays closed; [`Connection::is_closed`] says so and the shell opens a
//! new one before its next statement.

use std::{error::Error as _, future::poll_fn, io, time::Duration};

use tokio::sync::mpsc;
use tokio_postgres::{
    AsyncMessage, CancelToken, Client, Config, NoTls, config::SslMode, error::DbError,
};

/// How long a connect may take before the server counts as absent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Notices that wait to be printed. A statement rarely sends more than one; beyond this many the rest is dropped rather than kept.
const NOTICE_LIMIT: usize = 256;

/// A server, and who connects to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User name.
    pub user: String,
    /// Database name.
    pub database: String,
    /// Password, for servers that ask for one.
    pub password: Option<String>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 7432,
            user: "highwater".to_owned(),
            database: "highwater".to_owned(),
            password: None,
        }
    }
}

impl Endpoint {
    /// `host:port`, with brackets around an IPv6 address.
    pub fn address(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }

    /// The psql command that connects here.
    pub fn psql_command(&self) -> String {
        let Self {
            host,
            port,
            user,
            database,
            ..
        } = self;
        format!("psql -h {host} -p {port} -U {user} {database}")
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config
            .host(&self.host)
            .port(self.port)
            .user(&self.user)
            .dbname(&self.database)
            .application_name("highwater sql")
            .ssl_mode(SslMode::Disable)
            .connect_timeout(CONNECT_TIMEOUT);
        if let Some(password) = &self.password {
            config.password(password);
        }
        config
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ConnectError {
    /// Nobody listens there, or nobody that answers.
    #[error(
        "could not connect to {address}: {reason}\nStart a server with \"highwater start\", or name another with --host and --port."
    )]
    Unreachable {
        /// Where.
        address: String,
        /// What the operating system said.
        reason: String,
    },
    /// The server said no.
    #[error("the server at {address} refused the connection: {message} ({code})")]
    Refused {
        /// Where.
        address: String,
        /// The server's words.
        message: String,
        /// SQLSTATE.
        code: String,
    },
    /// Whatever listens there speaks something else.
    #[error("could not talk to {address}: {reason}")]
    Protocol {
        /// Where.
        address: String,
        /// What was wrong.
        reason: String,
    },
}

impl ConnectError {
    fn new(address: String, error: &tokio_postgres::Error) -> Self {
        if let Some(db_error) = error.as_db_error() {
            return Self::Refused {
                address,
                message: db_error.message().to_owned(),
                code: db_error.code().code().to_owned(),
            };
        }
        let io_error = error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>());
        match io_error {
            Some(io_error) => Self::Unreachable {
                address,
                reason: without_errno(io_error),
            },
            None => Self::Protocol {
                address,
                reason: describe(error),
            },
        }
    }
}

/// `Connection refused (os error 111)` without what only programmers read, in lower case.
fn without_errno(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

/// An error and its causes on one line.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// An open connection.
pub(crate) struct Connection {
    client: Client,
    notices: mpsc::Receiver<DbError>,
}

impl Connection {
    /// Connects and logs in.
    pub async fn open(endpoint: &Endpoint) -> Result<Self, ConnectError> {
        let (client, mut connection) = endpoint
            .config()
            .connect(NoTls)
            .await
            .map_err(|error| ConnectError::new(endpoint.address(), &error))?;
        let (sender, notices) = mpsc::channel(NOTICE_LIMIT);
        tokio::spawn(async move {
            // An error ends the loop as well: the client half then reports the closed connection.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notice(notice) = message {
                    // Full or closed: the notice is dropped, see NOTICE_LIMIT.
                    let _ = sender.try_send(notice);
                }
            }
        });
        Ok(Self { client, notices })
    }

    /// The request half.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Both halves, for a loop that waits for rows and notices alike.
    pub fn split(&mut self) -> (&Client, &mut mpsc::Receiver<DbError>) {
        (&self.client, &mut self.notices)
    }

    /// Whether the server went away.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// The first column of every row of a short result; NULLs are left out.
    pub async fn first_column(
        &self,
        statement: &str,
    ) -> Result<Vec<String>, tokio_postgres::Error> {
        let messages = self.client.simple_query(statement).await?;
        let rows = messages.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten(),
            _ => None,
        });
        Ok(rows.map(str::to_owned).collect())
    }
}

/// Asks the server to end what the connection runs, in the background: the answer comes as the statement's error 57014.
pub(crate) fn cancel(token: CancelToken) {
    tokio::spawn(async move {
        // A cancel that cannot be delivered leaves the query running; a second Ctrl-C gives the connection up.
        let _ = tokio::time::timeout(CONNECT_TIMEOUT, token.cancel_query(NoTls)).await;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_absent_server_is_named_with_the_way_to_start_one() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let endpoint = Endpoint {
            port,
            ..Endpoint::default()
        };
        let error = Connection::open(&endpoint)
            .await
            .err()
            .expect("nobody listens");
        let text = error.to_string();
        assert!(
            text.starts_with(&format!(
                "could not connect to 127.0.0.1:{port}: connection refused\n"
            )),
            "{text}"
        );
        assert!(text.contains("highwater start"), "{text}");
    }

    #[test]
    fn addresses() {
        let endpoint = Endpoint {
            host: "::1".to_owned(),
            ..Endpoint::default()
        };
        assert_eq!(endpoint.address(), "[::1]:7432");
        assert_eq!(
            Endpoint::default().psql_command(),
            "psql -h 127.0.0.1 -p 7432 -U highwater highwater"
        );
    }

    #[test]
    fn a_password_is_never_printed() {
        let endpoint = Endpoint {
            password: Some("hunter2".to_owned()),
            ..Endpoint::default()
        };
        assert!(!format!("{endpoint:?}").contains("hunter2"));
    }
}
