//! Streams and tables as statements declare, change and drop them: columns, types, properties.

use super::Query;

/// Whether a source or a result is a stream (append-only facts) or a table (the last row of each key).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// Append-only facts.
    Stream,
    /// The last row of each key.
    Table,
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
    /// A name that `CREATE TYPE` gave to a type. See [`crate::expand_types`].
    Named(String),
}

/// The role of a column of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnRole {
    /// A value column.
    Value,
    /// `KEY` of a stream.
    Key,
    /// `PRIMARY KEY` of a table.
    PrimaryKey,
    /// `HEADERS`: all headers of the record.
    Headers,
    /// `HEADER('key')`: the last header with this key.
    Header(String),
}

/// A column of `CREATE STREAM|TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    /// Folded name.
    pub name: String,
    /// Declared type.
    pub data_type: SqlType,
    /// Key, value or header.
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

/// `CREATE [SOURCE] STREAM|TABLE name [(columns)] [WITH (..)]`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSource {
    /// Stream or table.
    pub kind: SourceKind,
    /// `OR REPLACE` was given.
    pub or_replace: bool,
    /// `SOURCE` was given: no statement may write to it, change it or delete its topic.
    pub read_only: bool,
    /// `IF NOT EXISTS` was given.
    pub if_not_exists: bool,
    /// Folded name.
    pub name: String,
    /// Columns in written order; none when the list is left out, to be taken from a schema registry.
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

/// `ALTER TOPIC name SET (setting = value, ..)`, `ALTER TOPIC name RESET (setting, ..)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterTopic {
    /// The topic, as written.
    pub topic: String,
    /// Settings in lower case with their new values as text; `None` for the default.
    pub changes: Vec<(String, Option<String>)>,
}

/// `ALTER STREAM|TABLE name ADD [COLUMN] name type, ..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alter {
    /// Stream or table.
    pub kind: SourceKind,
    /// Folded name.
    pub name: String,
    /// New value columns, at least one.
    pub columns: Vec<(String, SqlType)>,
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

/// `CREATE TYPE name AS type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateType {
    /// `IF NOT EXISTS` was given.
    pub if_not_exists: bool,
    /// Folded name.
    pub name: String,
    /// What it stands for.
    pub data_type: SqlType,
}

/// `DROP TYPE name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropType {
    /// No error when absent.
    pub if_exists: bool,
    /// Folded name.
    pub name: String,
}
