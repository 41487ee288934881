//! DECLARE, FETCH, CLOSE.
//!
//! A cursor moves as its rows are taken, not as they are asked for: a FETCH that is cancelled or times out loses nothing. On an endless
//! query FETCH waits for at least one row and then gives what there is.

use std::{collections::HashMap, sync::Arc, time::Duration};

use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use datafusion::scalar::ScalarValue;
use futures::{FutureExt, StreamExt};
use highwater_sql::ast::Query;
use tokio::sync::Mutex;

use super::query;
use crate::{
    push::Audience,
    session::{Outcome, RowStream, Rows, Session, SessionResult, TransactionStatus},
    sqlstate::{SqlError, code},
};

/// Most cursors of a session: each may hold a running query.
const MAX_CURSORS: usize = 256;

/// The open cursors of a session.
#[derive(Default)]
pub(crate) struct Cursors {
    open: HashMap<String, Cursor>,
}

struct Cursor {
    schema: SchemaRef,
    endless: bool,
    hold: bool,
    rows: Arc<Mutex<CursorRows>>,
}

struct CursorRows {
    /// Taken from the query, not yet by a FETCH.
    left: Option<RecordBatch>,
    /// `None` after the end.
    stream: Option<RowStream>,
}

impl Cursors {
    /// Columns of an open cursor.
    pub fn schema(&self, name: &str) -> Option<SchemaRef> {
        self.open.get(name).map(|cursor| Arc::clone(&cursor.schema))
    }

    /// Closes what a transaction's end closes.
    pub fn close_without_hold(&mut self) {
        self.open.retain(|_, cursor| cursor.hold);
    }

    /// Closes all.
    pub fn close_all(&mut self) {
        self.open.clear();
    }
}

/// There is no such cursor.
pub(crate) fn unknown(name: &str) -> SqlError {
    SqlError::new(
        code::INVALID_CURSOR_NAME,
        format!("cursor \"{name}\" does not exist"),
    )
}

/// `DECLARE`: the query starts now.
pub(crate) async fn declare(
    session: &mut Session,
    name: &str,
    hold: bool,
    query: &Query,
    parameters: Vec<ScalarValue>,
    script: &Arc<str>,
) -> SessionResult<Outcome> {
    if !hold && session.transaction == TransactionStatus::Idle {
        return Err(SqlError::new(
            code::NO_ACTIVE_SQL_TRANSACTION,
            "DECLARE CURSOR can only be used in transaction blocks",
        )
        .with_hint("BEGIN first, or DECLARE .. CURSOR WITH HOLD FOR .."));
    }
    if session.cursors.open.contains_key(name) {
        return Err(SqlError::new(
            code::DUPLICATE_CURSOR,
            format!("cursor \"{name}\" already exists"),
        ));
    }
    if session.cursors.open.len() >= MAX_CURSORS {
        return Err(SqlError::new(
            code::PROGRAM_LIMIT_EXCEEDED,
            format!("a session can have {MAX_CURSORS} open cursors"),
        )
        .with_hint("CLOSE those that are not needed"));
    }
    let Rows {
        schema,
        stream,
        endless,
        ..
    } = query::rows(session, query, parameters, script, Audience::Piecewise).await?;
    let rows = Arc::new(Mutex::new(CursorRows {
        left: None,
        stream: Some(stream),
    }));
    session.cursors.open.insert(
        name.to_owned(),
        Cursor {
            schema,
            endless,
            hold,
            rows,
        },
    );
    Ok(Outcome::Done("DECLARE CURSOR".to_owned()))
}

/// `FETCH`.
pub(crate) async fn fetch(
    session: &mut Session,
    name: &str,
    count: Option<u64>,
    timeout: Option<Duration>,
) -> SessionResult<Outcome> {
    let cursor = session
        .cursors
        .open
        .get(name)
        .ok_or_else(|| unknown(name))?;
    let fetch = Fetch {
        rows: Arc::clone(&cursor.rows),
        left: count.unwrap_or(u64::MAX),
        early: cursor.endless,
        timeout,
        given: false,
    };
    let stream = futures::stream::unfold(fetch, |mut fetch| async move {
        let batch = fetch.next().await?;
        Some((batch, fetch))
    });
    Ok(Outcome::Rows(Rows {
        schema: Arc::clone(&cursor.schema),
        stream: Box::pin(stream),
        tag: "FETCH",
        endless: cursor.endless,
    }))
}

/// `CLOSE name`, `CLOSE ALL`.
pub(crate) fn close(session: &mut Session, name: Option<&str>) -> SessionResult<Outcome> {
    match name {
        Some(name) => {
            session
                .cursors
                .open
                .remove(name)
                .ok_or_else(|| unknown(name))?;
            Ok(Outcome::Done("CLOSE CURSOR".to_owned()))
        }
        None => {
            session.cursors.close_all();
            Ok(Outcome::Done("CLOSE CURSOR ALL".to_owned()))
        }
    }
}

/// One FETCH under way.
struct Fetch {
    rows: Arc<Mutex<CursorRows>>,
    left: u64,
    /// Ends when nothing more is there at once.
    early: bool,
    /// How long the first row may take.
    timeout: Option<Duration>,
    given: bool,
}

impl Fetch {
    async fn next(&mut self) -> Option<SessionResult<RecordBatch>> {
        if self.left == 0 {
            return None;
        }
        let rows = Arc::clone(&self.rows);
        let mut rows = rows.lock().await;
        if rows.left.is_none() {
            let next = rows.next();
            let next = match (self.given && self.early, self.timeout) {
                (true, _) => next.now_or_never().flatten(),
                (false, Some(timeout)) if !self.given => {
                    tokio::time::timeout(timeout, next).await.ok().flatten()
                }
                (false, _) => next.await,
            };
            match next? {
                Ok(batch) => rows.left = Some(batch),
                Err(error) => {
                    self.left = 0;
                    return Some(Err(error));
                }
            }
        }
        self.given = true;
        let batch = rows.take(self.left)?;
        self.left -= batch.num_rows() as u64;
        Some(Ok(batch))
    }
}

impl CursorRows {
    /// The query's next batch. Loses nothing when it is dropped while it waits.
    async fn next(&mut self) -> Option<SessionResult<RecordBatch>> {
        let next = self.stream.as_mut()?.next().await;
        if !matches!(next, Some(Ok(_))) {
            self.stream = None;
        }
        next
    }

    /// At most `most` of the rows that wait.
    fn take(&mut self, most: u64) -> Option<RecordBatch> {
        let batch = self.left.take()?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if batch.num_rows() <= most {
            return Some(batch);
        }
        self.left = Some(batch.slice(most, batch.num_rows() - most));
        Some(batch.slice(0, most))
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{AsArray, Int64Array},
        datatypes::{DataType, Field, Int64Type, Schema},
    };
    use tokio::sync::mpsc;

    use super::*;

    fn batch(values: &[i64]) -> RecordBatch {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(values.to_vec()))])
            .expect("a batch")
    }

    fn cursor() -> (mpsc::UnboundedSender<RecordBatch>, Arc<Mutex<CursorRows>>) {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let stream = futures::stream::poll_fn(move |context| {
            receiver.poll_recv(context).map(|batch| batch.map(Ok))
        });
        (
            sender,
            Arc::new(Mutex::new(CursorRows {
                left: None,
                stream: Some(Box::pin(stream)),
            })),
        )
    }

    async fn fetch(rows: &Arc<Mutex<CursorRows>>, count: u64, early: bool) -> Vec<i64> {
        let timeout = Some(Duration::from_millis(20));
        let mut fetch = Fetch {
            rows: Arc::clone(rows),
            left: count,
            early,
            timeout,
            given: false,
        };
        let mut values = Vec::new();
        while let Some(batch) = fetch.next().await {
            values.extend_from_slice(
                batch
                    .expect("rows")
                    .column(0)
                    .as_primitive::<Int64Type>()
                    .values(),
            );
        }
        values
    }

    #[tokio::test]
    async fn an_endless_fetch_gives_what_there_is() {
        let (sender, rows) = cursor();
        sender.send(batch(&[1, 2, 3])).expect("open");
        sender.send(batch(&[4])).expect("open");
        assert_eq!(fetch(&rows, 2, true).await, [1, 2]);
        assert_eq!(fetch(&rows, 100, true).await, [3, 4]);
        assert_eq!(fetch(&rows, 100, true).await, [] as [i64; 0], "times out");
        sender.send(batch(&[5])).expect("open");
        assert_eq!(
            fetch(&rows, 100, true).await,
            [5],
            "and nothing is lost by it"
        );
    }

    #[tokio::test]
    async fn a_fetch_of_a_finite_query_fills_up() {
        let (sender, rows) = cursor();
        sender.send(batch(&[1])).expect("open");
        let later = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            sender.send(batch(&[2, 3])).expect("open");
        });
        assert_eq!(fetch(&rows, 2, false).await, [1, 2]);
        later.await.expect("sent");
        assert_eq!(fetch(&rows, u64::MAX, false).await, [3]);
        assert_eq!(fetch(&rows, u64::MAX, false).await, [] as [i64; 0]);
    }
}
