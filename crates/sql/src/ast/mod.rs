//! Statements beyond standard SQL: sources, windows, EMIT, administration, cursors.
//!
//! Standard parts (queries, expressions) stay in [`sqlparser::ast`], since DataFusion binds exactly that tree. Names in this module are
//! already folded by the dialect: an unquoted identifier in the default dialect is lower case, a quoted one is as it was written.

mod admin;
mod query;
mod source;
mod write;

pub use admin::{Assert, Describe, Explain, ExplainTarget, Print, QueryTarget, Show};
pub use query::{Changes, ChangesStart, Emit, Query, Window, WindowKind, Within};
pub use source::{
    Alter, AlterTopic, ColumnDef, ColumnRole, CreateAs, CreateSource, CreateType, Drop, DropType,
    Properties, PropertyValue, SourceKind, SqlType,
};
pub use write::{Copy, CopyDirection, CopyFormat, CopyOptions, CopyTarget, Insert, InsertSource};

use std::time::Duration;

/// One statement of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// `CREATE [SOURCE] STREAM|TABLE name [(columns)] WITH (..)`.
    CreateSource(CreateSource),
    /// `CREATE STREAM|TABLE name WITH (..) AS SELECT ..`.
    CreateAs(CreateAs),
    /// `CREATE TYPE name AS type`.
    CreateType(CreateType),
    /// `ALTER STREAM|TABLE name ADD COLUMN ..`.
    Alter(Alter),
    /// `INSERT INTO name (columns) VALUES ..` and `INSERT INTO name SELECT ..`.
    Insert(Insert),
    /// `COPY .. FROM STDIN` and `COPY .. TO STDOUT`.
    Copy(Copy),
    /// `DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC]`.
    Drop(Drop),
    /// `DROP TYPE [IF EXISTS] name`.
    DropType(DropType),
    /// `TERMINATE id|ALL`.
    Terminate(QueryTarget),
    /// `PAUSE id|ALL`.
    Pause(QueryTarget),
    /// `RESUME id|ALL`.
    Resume(QueryTarget),
    /// `SHOW ..` and `LIST ..`.
    Show(Show),
    /// `DESCRIBE name`, `DESCRIBE STREAMS|TABLES`, `DESCRIBE FUNCTION name`.
    Describe(Describe),
    /// `EXPLAIN [ANALYZE] statement` or `EXPLAIN query_id`.
    Explain(Explain),
    /// `PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n]`.
    Print(Print),
    /// `SET name = value`, `SET 'name' = 'value'`, `SET name TO value`; `None` is DEFAULT.
    Set {
        /// Variable name, lower case.
        name: String,
        /// New value as text; `None` for DEFAULT.
        value: Option<String>,
    },
    /// `UNSET 'name'` and `RESET name`; `None` for `RESET ALL`.
    Unset(Option<String>),
    /// `ALTER SYSTEM 'name' = 'value'`, `ALTER SYSTEM SET name = value`; `None` is DEFAULT.
    AlterSystem {
        /// Setting, lower case.
        name: String,
        /// New value as text; `None` for DEFAULT.
        value: Option<String>,
    },
    /// `BACKUP TO 'folder'`: a copy of all topics and of the queries' state, on the server's disk.
    Backup(String),
    /// `ALTER TOPIC name SET (setting = value, ..)`, `ALTER TOPIC name RESET (setting, ..)`.
    AlterTopic(AlterTopic),
    /// `DEFINE name = 'value'`: what `${name}` stands for from now on.
    Define {
        /// Name in lower case, since such names are found without regard to case.
        name: String,
        /// The text that takes the reference's place.
        value: String,
    },
    /// `UNDEFINE name`.
    Undefine(String),
    /// `ASSERT ..`.
    Assert(Assert),
    /// `RUN SCRIPT 'file'`: an order to a client or a test tool, which have the file.
    RunScript(String),
    /// A pull query (no EMIT) or a push query (EMIT CHANGES).
    Query(Query),
    /// `DECLARE c CURSOR [WITH HOLD] FOR query`.
    Declare {
        /// Cursor name.
        name: String,
        /// Lives beyond the transaction.
        hold: bool,
        /// What it reads.
        query: Query,
    },
    /// `FETCH [FORWARD] n|ALL|NEXT [FROM|IN] c [WITH (timeout = '1s')]`.
    Fetch {
        /// How many rows at the most; `None` is ALL.
        count: Option<u64>,
        /// Cursor name.
        name: String,
        /// How long to wait for a first row; `None` waits for ever.
        timeout: Option<Duration>,
    },
    /// `CLOSE c`; `None` is ALL.
    Close(Option<String>),
    /// `BEGIN` and `START TRANSACTION` with any isolation level.
    Begin {
        /// `READ ONLY` was given.
        read_only: bool,
    },
    /// `COMMIT` and `END`.
    Commit,
    /// `ROLLBACK` and `ABORT`.
    Rollback,
    /// `SAVEPOINT n`, `RELEASE n`, `ROLLBACK TO n`: accepted since drivers send them; the text is kept for the command tag.
    Savepoint(SavepointAction),
    /// `DEALLOCATE name|ALL`; `None` is ALL.
    Deallocate(Option<String>),
    /// `DISCARD ALL`.
    Discard,
    /// `UNLISTEN channel|*`, which pools send when they take a connection back; `None` is `*`. There is no LISTEN, so it does nothing.
    Unlisten(Option<String>),
    /// An empty statement (`;`), which drivers use as a ping.
    Empty,
}

/// The three savepoint verbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SavepointAction {
    /// `SAVEPOINT name`.
    Set(String),
    /// `RELEASE [SAVEPOINT] name`.
    Release(String),
    /// `ROLLBACK TO [SAVEPOINT] name`.
    RollbackTo(String),
}
