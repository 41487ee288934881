//! Statements that show, explain, print and assert, and the ones that steer running queries.

use std::time::Duration;

use sqlparser::ast as std_ast;

use super::{CreateSource, Properties, SourceKind, Statement};

/// Which queries an administrative statement means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryTarget {
    /// One, by its id (compared without case).
    Id(String),
    /// Every one.
    All,
}

/// `SHOW` and `LIST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Show {
    /// `SHOW STREAMS [EXTENDED]`.
    Streams {
        /// With all that DESCRIBE tells of each.
        extended: bool,
    },
    /// `SHOW TABLES [EXTENDED]`.
    Tables {
        /// With all that DESCRIBE tells of each.
        extended: bool,
    },
    /// `SHOW [ALL] TOPICS [EXTENDED]`.
    Topics {
        /// Internal ones too.
        all: bool,
        /// With their readers.
        extended: bool,
    },
    /// `SHOW QUERIES [EXTENDED]`.
    Queries {
        /// With the plan of each.
        extended: bool,
    },
    /// `SHOW FUNCTIONS`.
    Functions,
    /// `SHOW TYPES`: what CREATE TYPE made.
    Types,
    /// `SHOW VARIABLES`: what DEFINE made.
    Variables,
    /// `SHOW name`: one session variable (also `SHOW TIME ZONE`, `SHOW TRANSACTION ISOLATION LEVEL` under PostgreSQL's names).
    Variable(String),
    /// `SHOW ALL` and `SHOW PROPERTIES`.
    All,
}

/// `DESCRIBE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Describe {
    /// `DESCRIBE name [EXTENDED]`.
    Source {
        /// The stream or table.
        name: String,
        /// Formats, topic, readers and writers too.
        extended: bool,
    },
    /// `DESCRIBE STREAMS|TABLES [EXTENDED]`: each as if by its name.
    Sources {
        /// Streams or tables.
        kind: SourceKind,
        /// Formats, topic, readers and writers too.
        extended: bool,
    },
    /// `DESCRIBE FUNCTION name`. The name is in lower case, as functions are found without regard to case.
    Function(String),
}

/// `EXPLAIN`.
#[derive(Debug, Clone, PartialEq)]
pub struct Explain {
    /// With counters of a running query.
    pub analyze: bool,
    /// What is explained.
    pub target: ExplainTarget,
}

/// What is explained.
#[derive(Debug, Clone, PartialEq)]
pub enum ExplainTarget {
    /// A statement that has not run.
    Statement(Box<Statement>),
    /// A running query.
    Query(String),
}

/// `PRINT topic`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Print {
    /// Topic name, as written.
    pub topic: String,
    /// From the first record instead of the next.
    pub from_beginning: bool,
    /// Every n-th record only.
    pub interval: Option<u64>,
    /// Stop after n records.
    pub limit: Option<u64>,
}

/// `ASSERT`: an error unless something holds. The first two wait for it, the others are for tests of pipelines.
#[derive(Debug, Clone, PartialEq)]
pub enum Assert {
    /// `ASSERT [NOT EXISTS] TOPIC name [WITH (..)] [TIMEOUT n unit]`.
    Topic {
        /// Topic name, as written.
        name: String,
        /// What it must have: PARTITIONS, REPLICAS.
        with: Properties,
        /// That it is there, or that it is not.
        exists: bool,
        /// How long to wait; `None` for the default.
        timeout: Option<Duration>,
    },
    /// `ASSERT [NOT EXISTS] SCHEMA [SUBJECT s] [ID n] [TIMEOUT n unit]`. At least one of subject and id is given.
    Schema {
        /// The registry's subject.
        subject: Option<String>,
        /// The registry's id.
        id: Option<u64>,
        /// That it is there, or that it is not.
        exists: bool,
        /// How long to wait; `None` for the default.
        timeout: Option<Duration>,
    },
    /// `ASSERT VALUES name [(columns)] VALUES (..)`: the next record is this one.
    Values {
        /// Stream or table.
        name: String,
        /// Named columns; empty for all in order.
        columns: Vec<String>,
        /// Their values.
        values: Vec<std_ast::Expr>,
    },
    /// `ASSERT NULL VALUES name [(columns)] KEY (..)`: the next record is a tombstone of this key.
    NullValues {
        /// Stream or table.
        name: String,
        /// Named key columns; empty for all in order.
        columns: Vec<String>,
        /// Their values.
        key: Vec<std_ast::Expr>,
    },
    /// `ASSERT STREAM|TABLE name (columns) WITH (..)`: it is declared like this.
    Source(CreateSource),
}
