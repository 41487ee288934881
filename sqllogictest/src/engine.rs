//! One client session as the `sqllogictest` crate wants it.
//!
//! Statements go out by the simple protocol, so values come as text. Each statement that gives rows is then prepared too, and the columns
//! that Describe tells must be those that the rows came with; their types are what the letters of a `query` line are checked against.
//!
//! After a restart that the test made, a session connects again and repeats its `SET` and `DEFINE` statements. A connection that is lost without such a
//! restart is a failure.

use std::collections::HashMap;

use async_trait::async_trait;
use futures::{SinkExt, TryStreamExt};
use sqllogictest::{AsyncDB, ColumnType, DBOutput};
use tokio_postgres::{Client, SimpleQueryMessage, types::Type};

use crate::{Endpoint, Watch, WireError, directive::Directive, watch::texts};

/// A column's type in a `query` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnLetter {
    /// `I`: SMALLINT, INTEGER, BIGINT.
    Integer,
    /// `R`: REAL, DOUBLE PRECISION, NUMERIC.
    Real,
    /// `B`: BOOLEAN.
    Boolean,
    /// `D`: DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL.
    Time,
    /// `T`: everything else.
    Text,
}

impl ColumnLetter {
    fn of(column: &Type) -> Self {
        match *column {
            Type::INT2 | Type::INT4 | Type::INT8 => Self::Integer,
            Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC => Self::Real,
            Type::BOOL => Self::Boolean,
            Type::DATE | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::INTERVAL => {
                Self::Time
            }
            _ => Self::Text,
        }
    }
}

impl ColumnType for ColumnLetter {
    fn from_char(letter: char) -> Option<Self> {
        match letter {
            'I' => Some(Self::Integer),
            'R' => Some(Self::Real),
            'B' => Some(Self::Boolean),
            'D' => Some(Self::Time),
            'T' => Some(Self::Text),
            _ => None,
        }
    }

    fn to_char(&self) -> char {
        match self {
            Self::Integer => 'I',
            Self::Real => 'R',
            Self::Boolean => 'B',
            Self::Time => 'D',
            Self::Text => 'T',
        }
    }
}

/// One client session.
pub struct Session {
    endpoint: Endpoint,
    client: Client,
    connected_at_start: u64,
    /// What set up the session, in order: `SET` and `DEFINE` with what undoes them.
    settings: Vec<String>,
    watches: HashMap<String, Watch>,
}

type Output = DBOutput<ColumnLetter>;

impl Session {
    /// Connects.
    pub async fn connect(endpoint: Endpoint) -> Result<Self, WireError> {
        let connected_at_start = endpoint.start_number();
        let client = endpoint.connect().await?;
        Ok(Self {
            endpoint,
            client,
            connected_at_start,
            settings: Vec::new(),
            watches: HashMap::new(),
        })
    }

    async fn follow_restart(&mut self) -> Result<(), WireError> {
        if self.endpoint.start_number() == self.connected_at_start {
            return Ok(());
        }
        let settings = std::mem::take(&mut self.settings);
        *self = Self::connect(self.endpoint.clone()).await?;
        // The session that inserted is gone, and with it the memory of what it wrote: ask for everything acknowledged to anyone.
        self.client
            .batch_execute("SET freshness = 'strong'")
            .await?;
        for statement in &settings {
            self.client.batch_execute(statement).await?;
        }
        self.settings = settings;
        Ok(())
    }

    async fn run_sql(&mut self, sql: &str) -> Result<Output, WireError> {
        let mut names: Option<Vec<String>> = None;
        let mut rows = Vec::new();
        let mut count = 0;
        for message in self.client.simple_query(sql).await? {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    names = Some(
                        columns
                            .iter()
                            .map(|column| column.name().to_owned())
                            .collect(),
                    );
                }
                SimpleQueryMessage::Row(row) => rows.push(texts(&row)),
                SimpleQueryMessage::CommandComplete(affected) => count = affected,
                _ => {}
            }
        }
        if is_setting(sql) {
            self.settings.push(sql.to_owned());
        }
        match names {
            Some(names) => Ok(DBOutput::Rows {
                types: self.described_types(sql, &names).await?,
                rows,
            }),
            None => Ok(DBOutput::StatementComplete(count)),
        }
    }

    /// Column types as Describe tells them; an error when it disagrees with the columns that the rows came with.
    async fn described_types(
        &self,
        sql: &str,
        names: &[String],
    ) -> Result<Vec<ColumnLetter>, WireError> {
        let statement = self.client.prepare(sql).await?;
        let described: Vec<&str> = statement
            .columns()
            .iter()
            .map(|column| column.name())
            .collect();
        if described != names {
            let message =
                format!("Describe tells columns {described:?}, the rows came with {names:?}");
            return Err(WireError::client(message));
        }
        Ok(statement
            .columns()
            .iter()
            .map(|column| ColumnLetter::of(column.type_()))
            .collect())
    }

    async fn watched(&mut self, name: &str, wanted: usize) -> Result<Output, WireError> {
        let watch = self
            .watches
            .get_mut(name)
            .ok_or_else(|| WireError::client(format!("no watch {name}")))?;
        let mut rows = Vec::new();
        while rows.len() < wanted {
            match watch.next().await? {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        // A push query is described by its own statement's tests; here the letters of the `query` line only tell their number.
        let types = vec![ColumnLetter::Text; watch.columns.len()];
        Ok(DBOutput::Rows { types, rows })
    }

    async fn unwatch(&mut self, name: &str) -> Result<Output, WireError> {
        let watch = self
            .watches
            .remove(name)
            .ok_or_else(|| WireError::client(format!("no watch {name}")))?;
        let answer = watch.cancel().await?;
        match answer.code() {
            Some("57014") => Ok(DBOutput::StatementComplete(0)),
            _ => Err(answer),
        }
    }

    async fn copy_in(&self, sql: &str, data: String) -> Result<Output, WireError> {
        let sink = self.client.copy_in(sql).await?;
        let mut sink = std::pin::pin!(sink);
        sink.send(std::io::Cursor::new(data)).await?;
        Ok(DBOutput::StatementComplete(sink.finish().await?))
    }

    async fn copy_out(&self, sql: &str) -> Result<Output, WireError> {
        let pieces: Vec<_> = self.client.copy_out(sql).await?.try_collect().await?;
        let text = String::from_utf8(pieces.concat())
            .map_err(|error| WireError::client(format!("COPY data is not UTF-8: {error}")))?;
        let rows = text.lines().map(|line| vec![line.to_owned()]).collect();
        Ok(DBOutput::Rows {
            types: vec![ColumnLetter::Text],
            rows,
        })
    }
}

#[async_trait]
impl AsyncDB for Session {
    type Error = WireError;
    type ColumnType = ColumnLetter;

    async fn run(&mut self, text: &str) -> Result<Output, WireError> {
        self.follow_restart().await?;
        match Directive::parse(text)? {
            Directive::Watch { name, sql } => {
                let watch = Watch::start_with(&self.endpoint, &self.settings, sql).await?;
                self.watches.insert(name.to_owned(), watch);
                Ok(DBOutput::StatementComplete(0))
            }
            Directive::Watched { name, rows } => self.watched(name, rows).await,
            Directive::Unwatch { name } => self.unwatch(name).await,
            Directive::CopyIn { sql, data } => self.copy_in(sql, data).await,
            Directive::CopyOut { sql } => self.copy_out(sql).await,
            Directive::Sql(sql) => self.run_sql(sql).await,
        }
    }

    async fn shutdown(&mut self) {
        self.watches.clear();
    }

    fn engine_name(&self) -> &str {
        "highwater"
    }

    async fn sleep(duration: std::time::Duration) {
        tokio::time::sleep(duration).await;
    }

    fn error_sql_state(error: &WireError) -> Option<String> {
        error.code().map(str::to_owned)
    }
}

fn is_setting(sql: &str) -> bool {
    let word = sql.split_whitespace().next().unwrap_or_default();
    ["set", "unset", "reset", "define", "undefine", "discard"]
        .iter()
        .any(|verb| word.eq_ignore_ascii_case(verb))
}
