//! COPY.
//!
//! FROM STDIN appends in batches of bounded size as data comes and answers when all of it is on disk. A row that cannot be taken ends the
//! statement: its batch and everything behind it is not written; batches before it are, and the error says how many rows that is.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{array::timezone::Tz, datatypes::DataType};
use bytes::Bytes;
use datafusion::scalar::ScalarValue;
use highwater_planner::catalog::Relation;
use highwater_sql::{
    CopyDirection, Statement,
    ast::{Copy, CopyTarget, Query},
    parse_statement, quote_name,
};
use highwater_storage_log::{Offset, TopicPartition};

use super::{
    Described,
    copy_text::{Row, RowSplitter, at_line},
    query,
    value::{ColumnBuilder, in_column},
    write::{RelationWriter, RowSet, Target, relation, sync, targets},
};
use crate::{
    push::Audience,
    server::Server,
    session::{CopyIn, Outcome, Session, SessionResult, Written, blocking},
    sqlstate::{SqlError, code},
};

/// Rows of a batch: enough that encoding and appending cost little per row.
const BATCH_ROWS: usize = 8192;
/// Bytes of text of a batch, for rows that are large.
const BATCH_BYTES: usize = 4 << 20;

/// COPY has no columns to tell beforehand.
pub fn describe(copy: &Copy) -> SessionResult<Described> {
    match (&copy.target, copy.direction) {
        (CopyTarget::Query(_), CopyDirection::FromStdin) => Err(query_from_stdin()),
        _ => Ok(Described::default()),
    }
}

/// Starts to copy.
pub async fn run(
    session: &mut Session,
    copy: &Copy,
    parameters: &[ScalarValue],
    script: &Arc<str>,
) -> SessionResult<Outcome> {
    match (copy.direction, &copy.target) {
        (CopyDirection::FromStdin, CopyTarget::Relation { name, columns }) => Ok(Outcome::CopyIn(
            Box::new(CopyFrom::new(session, copy, name, columns)?),
        )),
        (CopyDirection::FromStdin, CopyTarget::Query(_)) => Err(query_from_stdin()),
        (CopyDirection::ToStdout, target) => {
            let query = match target {
                CopyTarget::Query(query) => query.clone(),
                CopyTarget::Relation { name, columns } => whole_relation(session, name, columns)?,
            };
            let rows = query::rows(
                session,
                &query,
                parameters.to_vec(),
                script,
                Audience::Piecewise,
            )
            .await?;
            Ok(Outcome::CopyOut(rows, copy.options.clone()))
        }
    }
}

fn query_from_stdin() -> SqlError {
    SqlError::new(
        code::SYNTAX_ERROR,
        "COPY FROM STDIN needs the name of a stream or table, not a query",
    )
}

/// `COPY name (a, b) TO STDOUT` as a query.
fn whole_relation(session: &Session, name: &str, columns: &[String]) -> SessionResult<Query> {
    let relation = relation(&session.server, name)?;
    targets(&relation, columns)?;
    let list = match columns {
        [] => "*".to_owned(),
        columns => columns
            .iter()
            .map(|column| quote_name(column).to_string())
            .collect::<Vec<_>>()
            .join(", "),
    };
    let text = format!("SELECT {list} FROM {}", quote_name(name));
    let parsed = parse_statement(&text).map_err(|error| SqlError::from_sql(&error, &text))?;
    match parsed.statement {
        Statement::Query(query) => Ok(query),
        _ => Err(SqlError::internal("a SELECT is a query")),
    }
}

/// COPY FROM STDIN under way.
struct CopyFrom {
    server: Arc<Server>,
    session_written: Arc<Written>,
    relation: Arc<Relation>,
    /// `None` while a batch is being appended, and for ever when that was cut off.
    writer: Option<RelationWriter>,
    targets: Vec<Target>,
    splitter: RowSplitter,
    batch: Batch,
    ends: BTreeMap<TopicPartition, Offset>,
    appended: u64,
}

/// Rows that are not yet appended.
struct Batch {
    columns: Vec<ColumnBuilder>,
    times: ColumnBuilder,
    timestamps: Option<Vec<Option<i64>>>,
    rows: usize,
    bytes: usize,
}

impl CopyFrom {
    fn new(session: &Session, copy: &Copy, name: &str, columns: &[String]) -> SessionResult<Self> {
        let server = Arc::clone(&session.server);
        let relation = relation(&server, name)?;
        let targets = targets(&relation, columns)?;
        let zone: Tz = session.time_zone().parse().map_err(SqlError::from)?;
        let batch = Batch {
            columns: relation
                .columns
                .iter()
                .map(|column| ColumnBuilder::new(column.data_type.clone(), zone))
                .collect(),
            times: ColumnBuilder::new(rowtime_type(), zone),
            timestamps: targets.contains(&Target::RowTime).then(Vec::new),
            rows: 0,
            bytes: 0,
        };
        Ok(Self {
            writer: Some(RelationWriter::new(&server, Arc::clone(&relation))?),
            session_written: Arc::clone(&session.written),
            splitter: RowSplitter::new(copy.options.clone()),
            server,
            relation,
            targets,
            batch,
            ends: BTreeMap::new(),
            appended: 0,
        })
    }

    async fn take_rows(&mut self, last: bool) -> SessionResult<()> {
        while let Some(row) = self.splitter.next_row(last)? {
            let line = row.line;
            self.take_row(row).map_err(|error| at_line(error, line))?;
            if self.batch.rows >= BATCH_ROWS || self.batch.bytes >= BATCH_BYTES {
                self.append_batch().await?;
            }
        }
        Ok(())
    }

    fn take_row(&mut self, row: Row) -> SessionResult<()> {
        let Self {
            relation,
            targets,
            batch,
            ..
        } = self;
        if row.fields.len() > targets.len() {
            return Err(SqlError::new(
                code::BAD_COPY_FILE_FORMAT,
                "extra data after last expected column",
            ));
        }
        for (at, target) in targets.iter().enumerate() {
            let name = match target {
                Target::Column(at) => relation.columns[*at].name.as_str(),
                Target::RowTime => highwater_planner::catalog::ROWTIME,
            };
            let Some(field) = row.fields.get(at) else {
                return Err(SqlError::new(
                    code::BAD_COPY_FILE_FORMAT,
                    format!("missing data for column \"{name}\""),
                ));
            };
            batch.bytes += field.as_ref().map_or(1, String::len);
            match target {
                Target::Column(at) => {
                    let pushed = match field {
                        Some(text) => batch.columns[*at].push_text(text),
                        None => batch.columns[*at].push_null(),
                    };
                    pushed.map_err(|error| in_column(error, &relation.columns[*at]))?;
                }
                Target::RowTime => {
                    let time = match field {
                        Some(text) => Some(batch.rowtime(text)?),
                        None => None,
                    };
                    batch.timestamps.get_or_insert_default().push(time);
                }
            }
        }
        for (at, column) in batch.columns.iter_mut().enumerate() {
            if !targets.contains(&Target::Column(at)) {
                column.push_null()?;
            }
        }
        batch.rows += 1;
        Ok(())
    }

    async fn append_batch(&mut self) -> SessionResult<()> {
        let rows = self.batch.take()?;
        if rows.rows == 0 {
            return Ok(());
        }
        let mut writer = self
            .writer
            .take()
            .ok_or_else(|| SqlError::internal("COPY was cut off"))?;
        let (writer, rows, ends) = blocking(move || {
            let ends = writer.append(&rows);
            (writer, rows, ends)
        })
        .await?;
        self.writer = Some(writer);
        self.ends.extend(ends?);
        self.appended += rows.rows as u64;
        Ok(())
    }

    /// Adds how much was written before the error.
    fn told(&self, error: SqlError) -> SqlError {
        if self.appended == 0 {
            return error;
        }
        let before = format!("the first {} rows were written and stay", self.appended);
        let detail = match &error.detail {
            Some(detail) => format!("{detail}; {before}"),
            None => before,
        };
        error.with_detail(detail)
    }
}

fn rowtime_type() -> DataType {
    DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, Some("UTC".into()))
}

impl Batch {
    fn rowtime(&mut self, text: &str) -> SessionResult<i64> {
        self.times.push_text(text)?;
        match ScalarValue::try_from_array(&self.times.finish()?, 0).map_err(SqlError::from)? {
            ScalarValue::TimestampMillisecond(Some(time), _) => Ok(time),
            _ => Err(SqlError::internal("rowtime is a timestamp")),
        }
    }

    fn take(&mut self) -> SessionResult<RowSet> {
        let columns = self
            .columns
            .iter_mut()
            .map(ColumnBuilder::finish)
            .collect::<SessionResult<Vec<_>>>()?;
        let timestamps = self.timestamps.as_mut().map(std::mem::take);
        self.bytes = 0;
        Ok(RowSet {
            columns,
            timestamps,
            rows: std::mem::take(&mut self.rows),
        })
    }
}

#[async_trait::async_trait]
impl CopyIn for CopyFrom {
    fn columns(&self) -> usize {
        self.targets.len()
    }

    async fn data(&mut self, bytes: Bytes) -> SessionResult<()> {
        self.splitter.push(&bytes);
        let taken = self.take_rows(false).await;
        taken.map_err(|error| self.told(error))
    }

    async fn finish(mut self: Box<Self>) -> SessionResult<u64> {
        let taken = match self.take_rows(true).await {
            Ok(()) => self.append_batch().await,
            Err(error) => Err(error),
        };
        taken.map_err(|error| self.told(error))?;
        let ends: Vec<_> = std::mem::take(&mut self.ends).into_iter().collect();
        sync(&self.server, &ends).await?;
        self.session_written.note(ends);
        Ok(self.appended)
    }
}
