//! A push query in the background, read row by row.

use std::{pin::Pin, time::Duration};

use futures::StreamExt;
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{
    CancelToken, Client, NoTls, SimpleQueryMessage, SimpleQueryRow, SimpleQueryStream,
};

use crate::{Endpoint, WireError};

/// How long a row that must come may take; only a wrong server takes so long.
const ROW_LIMIT: Duration = Duration::from_secs(20);

/// An open push query on a connection of its own. Dropping it closes the socket, as a client that dies does.
pub struct Watch {
    client: Client,
    connection: JoinHandle<()>,
    cancel: CancelToken,
    stream: Pin<Box<SimpleQueryStream>>,
    /// Names of the columns.
    pub columns: Vec<String>,
}

impl Watch {
    /// Starts the query and returns when the server has answered with its columns: what is inserted from then on must show.
    pub async fn start(endpoint: &Endpoint, sql: &str) -> Result<Self, WireError> {
        Self::start_with(endpoint, &[], sql).await
    }

    /// The same after some `SET` statements.
    pub(crate) async fn start_with(
        endpoint: &Endpoint,
        settings: &[String],
        sql: &str,
    ) -> Result<Self, WireError> {
        let (client, connection) = endpoint.connect_with_task().await?;
        for statement in settings {
            client.batch_execute(statement).await?;
        }
        let cancel = client.cancel_token();
        let mut stream = Box::pin(client.simple_query_raw(sql).await?);
        match next_message(&mut stream).await? {
            Some(SimpleQueryMessage::RowDescription(columns)) => {
                let columns = columns
                    .iter()
                    .map(|column| column.name().to_owned())
                    .collect();
                Ok(Self {
                    client,
                    connection,
                    cancel,
                    stream,
                    columns,
                })
            }
            other => Err(WireError::client(format!(
                "a push query began with {other:?} instead of its columns"
            ))),
        }
    }

    /// The next row; `None` when the query has ended.
    pub async fn next(&mut self) -> Result<Option<Vec<String>>, WireError> {
        loop {
            match next_message(&mut self.stream).await? {
                Some(SimpleQueryMessage::Row(row)) => return Ok(Some(texts(&row))),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// Whether no row comes within `pause`.
    pub async fn is_quiet_for(&mut self, pause: Duration) -> bool {
        timeout(pause, self.stream.next()).await.is_err()
    }

    /// Asks the server to cancel the query and answers what it says.
    pub async fn cancel(mut self) -> Result<WireError, WireError> {
        self.cancel.cancel_query(NoTls).await?;
        loop {
            match self.next().await {
                Ok(Some(_)) => {}
                Ok(None) => {
                    return Err(WireError::client(
                        "the cancelled query ended without an error",
                    ));
                }
                Err(error) => {
                    // The connection must be of use after a cancel.
                    self.client.simple_query("SELECT 1").await?;
                    return Ok(error);
                }
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Without this the connection would stay to read the rest of an endless result.
        self.connection.abort();
    }
}

/// A row's values as a case shows them: NULL by its name, an empty text as `(empty)`.
pub(crate) fn texts(row: &SimpleQueryRow) -> Vec<String> {
    let value = |position| match row.get(position) {
        None => "NULL".to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(text) => text.to_owned(),
    };
    (0..row.len()).map(value).collect()
}

async fn next_message(
    stream: &mut Pin<Box<SimpleQueryStream>>,
) -> Result<Option<SimpleQueryMessage>, WireError> {
    match timeout(ROW_LIMIT, stream.next()).await {
        Ok(message) => message.transpose().map_err(WireError::from),
        Err(_) => Err(WireError::client(format!(
            "nothing came within {ROW_LIMIT:?}"
        ))),
    }
}
