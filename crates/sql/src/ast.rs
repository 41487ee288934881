//! Statements beyond standard SQL: sources, windows, EMIT, administration, cursors.
//!
//! Standard parts (queries, expressions) stay in [`sqlparser::ast`], since DataFusion binds exactly that tree. Names in this module are
//! already folded by the dialect: an unquoted identifier in the default dialect is lower case, a quoted one is as it was written.

use std::time::Duration;

use sqlparser::ast as std_ast;

/// Whether a source or a result is a stream (append-only facts) or a table (the last row of each key).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// Append-only facts.
    Stream,
    /// The last row of each key.
    Table,
}

/// One statement of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// `CREATE STREAM|TABLE name (columns) WITH (..)`.
    CreateSource(CreateSource),
    /// `CREATE STREAM|TABLE name WITH (..) AS SELECT ..`.
    CreateAs(CreateAs),
    /// `INSERT INTO name (columns) VALUES ..`.
    Insert(Insert),
    /// `COPY .. FROM STDIN` and `COPY .. TO STDOUT`.
    Copy(Copy),
    /// `DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC]`.
    Drop(Drop),
    /// `TERMINATE id|ALL`.
    Terminate(QueryTarget),
    /// `PAUSE id|ALL`.
    Pause(QueryTarget),
    /// `RESUME id|ALL`.
    Resume(QueryTarget),
    /// `SHOW ..` and `LIST ..`.
    Show(Show),
    /// `DESCRIBE name [EXTENDED]`.
    Describe {
        /// The source or table.
        name: String,
        /// Formats, topic, readers and writers too.
        extended: bool,
    },
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

/// A type as the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SqlType {
    /// BOOLEAN, BOOL.
    Boolean,
    /// SMALLINT, INT2.
    SmallInt,
    /// INT, INTEGER, INT4.
    Int,
    /// BIGINT, INT8.
    BigInt,
    /// REAL, FLOAT4.
    Real,
    /// DOUBLE, DOUBLE PRECISION, FLOAT, FLOAT8.
    Double,
    /// DECIMAL(p, s), NUMERIC(p, s).
    Decimal(u8, i8),
    /// STRING, VARCHAR, VARCHAR(n), TEXT.
    String,
    /// BYTES, BYTEA.
    Bytes,
    /// TIME: milliseconds of the day.
    Time,
    /// DATE: days since 1970-01-01.
    Date,
    /// TIMESTAMP: milliseconds since the epoch, without a zone.
    Timestamp,
    /// TIMESTAMPTZ: milliseconds since the epoch, shown in the session's zone.
    TimestampTz,
    /// `ARRAY<T>`, `T ARRAY`, `T[]`.
    Array(Box<SqlType>),
    /// `MAP<K, V>`.
    Map(Box<SqlType>, Box<SqlType>),
    /// `STRUCT<name T, ..>`.
    Struct(Vec<(String, SqlType)>),
}

/// The role of a column of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnRole {
    /// A value column.
    Value,
    /// `KEY` of a stream.
    Key,
    /// `PRIMARY KEY` of a table.
    PrimaryKey,
}

/// A column of `CREATE STREAM|TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    /// Folded name.
    pub name: String,
    /// Declared type.
    pub data_type: SqlType,
    /// Key or value.
    pub role: ColumnRole,
}

/// `WITH (name = literal, ..)`: names lower case, values as text, in written order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties(pub Vec<(String, PropertyValue)>);

/// A property's literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PropertyValue {
    /// `'text'`.
    String(String),
    /// A number, as written.
    Number(String),
    /// TRUE or FALSE.
    Boolean(bool),
}

/// `CREATE STREAM|TABLE name (columns) WITH (..)`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSource {
    /// Stream or table.
    pub kind: SourceKind,
    /// `OR REPLACE` was given.
    pub or_replace: bool,
    /// `IF NOT EXISTS` was given.
    pub if_not_exists: bool,
    /// Folded name.
    pub name: String,
    /// Columns in written order.
    pub columns: Vec<ColumnDef>,
    /// WITH clause.
    pub with: Properties,
}

/// `CREATE STREAM|TABLE name WITH (..) AS query`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateAs {
    /// Stream or table.
    pub kind: SourceKind,
    /// `OR REPLACE` was given.
    pub or_replace: bool,
    /// `IF NOT EXISTS` was given.
    pub if_not_exists: bool,
    /// Folded name.
    pub name: String,
    /// WITH clause.
    pub with: Properties,
    /// The continuous query; EMIT CHANGES is implied when absent.
    pub query: Query,
}

/// A query with the streaming clauses that standard SQL lacks.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The standard part, with the streaming clauses taken out.
    pub body: Box<std_ast::Query>,
    /// `WINDOW ..` of the outermost SELECT.
    pub window: Option<Window>,
    /// `PARTITION BY ..` of the outermost SELECT.
    pub partition_by: Vec<std_ast::Expr>,
    /// `EMIT ..`.
    pub emit: Option<Emit>,
}

/// What a push or persistent query sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emit {
    /// Every change.
    Changes,
    /// A window's result once, when it closes.
    Final,
}

/// A window clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its shape.
    pub kind: WindowKind,
    /// `RETENTION n unit`.
    pub retention: Option<Duration>,
    /// `GRACE PERIOD n unit`.
    pub grace: Option<Duration>,
}

/// A window's shape. Windows are aligned to the epoch, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowKind {
    /// `TUMBLING (SIZE n unit)`.
    Tumbling {
        /// Length.
        size: Duration,
    },
    /// `HOPPING (SIZE n unit, ADVANCE BY n unit)`.
    Hopping {
        /// Length.
        size: Duration,
        /// Distance between starts.
        advance: Duration,
    },
    /// `SESSION (n unit)`.
    Session {
        /// A session ends after this long without a record.
        gap: Duration,
    },
}

/// `INSERT INTO name (columns) VALUES ..` or `INSERT INTO name query`.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// Target.
    pub name: String,
    /// Named columns; empty for all in order.
    pub columns: Vec<String>,
    /// Rows, or a query.
    pub source: InsertSource,
}

/// What an INSERT writes.
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// `VALUES (..), (..)`.
    Values(Vec<Vec<std_ast::Expr>>),
    /// `INSERT INTO .. SELECT ..`: a second persistent query into a stream.
    Query(Query),
}

/// `COPY`.
#[derive(Debug, Clone, PartialEq)]
pub struct Copy {
    /// What is copied.
    pub target: CopyTarget,
    /// Direction.
    pub direction: CopyDirection,
    /// Options.
    pub options: CopyOptions,
}

/// What is copied.
#[derive(Debug, Clone, PartialEq)]
pub enum CopyTarget {
    /// `COPY name (columns)`.
    Relation {
        /// Stream or table.
        name: String,
        /// Named columns; empty for all in order.
        columns: Vec<String>,
    },
    /// `COPY (query)`.
    Query(Query),
}

/// Where COPY reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyDirection {
    /// FROM STDIN.
    FromStdin,
    /// TO STDOUT.
    ToStdout,
}

/// COPY's options, in both of PostgreSQL's spellings (`WITH (FORMAT csv, ..)` and `CSV HEADER`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOptions {
    /// Text or CSV.
    pub format: CopyFormat,
    /// A first line of names: skipped on the way in, written on the way out.
    pub header: bool,
    /// Field separator; default tab for text, comma for CSV.
    pub delimiter: u8,
    /// What stands for NULL; default `\N` for text, empty for CSV.
    pub null: String,
    /// CSV quote.
    pub quote: u8,
    /// CSV escape.
    pub escape: u8,
}

/// COPY's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFormat {
    /// PostgreSQL's text format.
    Text,
    /// CSV.
    Csv,
}

/// `DROP STREAM|TABLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drop {
    /// Stream or table.
    pub kind: SourceKind,
    /// No error when absent.
    pub if_exists: bool,
    /// Folded name.
    pub name: String,
    /// The topic goes too.
    pub delete_topic: bool,
}

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
    /// `SHOW STREAMS`.
    Streams,
    /// `SHOW TABLES`.
    Tables,
    /// `SHOW [ALL] TOPICS`.
    Topics {
        /// Internal ones too.
        all: bool,
    },
    /// `SHOW QUERIES`.
    Queries,
    /// `SHOW name`: one session variable (also `SHOW TIME ZONE`, `SHOW TRANSACTION ISOLATION LEVEL` under PostgreSQL's names).
    Variable(String),
    /// `SHOW ALL` and `SHOW PROPERTIES`.
    All,
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
