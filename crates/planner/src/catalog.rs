//! What planning may ask of the catalog, and the description of a stream or table.
//!
//! A catalog handed to the planner is a read-only snapshot: planning is a pure function of statement and snapshot. Mutation belongs to the
//! server's coordinator.

use std::{fmt, sync::Arc};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
pub use highwater_sql::SourceKind;

use crate::dataflow::WindowSpec;

/// Identity of a stream or table for its whole life; a name can be dropped and made again, an id never comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationId(pub u64);

/// Identity of a persistent query. Its state, its producer id and its name (`CTAS_ROUTES_7`) derive from the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(pub u64);

/// Name of the event-time column that every relation has beside its declared ones.
pub const ROWTIME: &str = "rowtime";
/// Name of the column with the partition a record came from (streams only).
pub const ROWPARTITION: &str = "rowpartition";
/// Name of the column with the offset a record has (streams only).
pub const ROWOFFSET: &str = "rowoffset";
/// Name of a window's first instant in a windowed relation.
pub const WINDOWSTART: &str = "windowstart";
/// Name of a window's end in a windowed relation.
pub const WINDOWEND: &str = "windowend";

/// A format by name with the properties that shape it; the same words as in a WITH clause.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FormatName {
    /// `JSON`, `DELIMITED`, `KAFKA` or `NONE`.
    pub name: String,
    /// `KEY_DELIMITER` or `VALUE_DELIMITER`.
    pub delimiter: Option<String>,
    /// `WRAP_SINGLE_VALUE`; only for values.
    pub wrapped: Option<bool>,
}

/// `TIMESTAMP` and `TIMESTAMP_FORMAT` of a WITH clause: where event time comes from when it is not the record's own timestamp.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TimestampColumn {
    /// Column name.
    pub column: String,
    /// Java date pattern for a text column.
    pub format: Option<String>,
}

/// What of a record's headers a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderColumn {
    /// `HEADERS`: all, as `ARRAY<STRUCT<KEY VARCHAR, VALUE BYTES>>`.
    All,
    /// `HEADER('name')`: the value of the last one of this name, as BYTES.
    Named(String),
}

/// A column of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Folded name.
    pub name: String,
    /// Arrow type, one of those that [`crate::types`] maps SQL types to.
    pub data_type: DataType,
    /// Part of the key: stored in the record's key.
    pub key: bool,
    /// Part of neither key nor value: it shows headers, and nothing writes it.
    pub headers: Option<HeaderColumn>,
}

/// A stream or a table over a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Identity.
    pub id: RelationId,
    /// Folded name.
    pub name: String,
    /// Stream or table.
    pub kind: SourceKind,
    /// Columns in declared or selected order. A windowed table has `windowstart` and `windowend` among its key columns; see
    /// [`Relation::key_columns`] for their place in the key.
    pub columns: Vec<Column>,
    /// Topic name.
    pub topic: String,
    /// Number of partitions of the topic: the number of slots of keyed work on it.
    pub partitions: u32,
    /// Format of record keys.
    pub key_format: FormatName,
    /// Format of record values.
    pub value_format: FormatName,
    /// Where event time comes from.
    pub timestamp: Option<TimestampColumn>,
    /// Set when each key stands once per window; the record key then ends with the window's start (8 bytes, big-endian).
    pub window: Option<WindowSpec>,
    /// `CREATE SOURCE`: it is read, and no statement writes or changes it.
    pub read_only: bool,
    /// The persistent query that writes it; `None` for a declared source.
    pub query: Option<QueryId>,
}

impl Relation {
    /// Arrow schema of the declared columns, in order, all nullable.
    pub fn schema(&self) -> SchemaRef {
        let fields: Vec<Field> = self
            .columns
            .iter()
            .map(|column| Field::new(&column.name, column.data_type.clone(), true))
            .collect();
        Arc::new(Schema::new(fields))
    }

    /// Positions of the key columns, in order; those of a windowed table's bounds come last wherever they stand.
    pub fn key_columns(&self) -> Vec<usize> {
        let is_bound = |column: &Column| {
            self.window.is_some() && matches!(column.name.as_str(), WINDOWSTART | WINDOWEND)
        };
        let mut keys: Vec<usize> = (0..self.columns.len())
            .filter(|position| self.columns[*position].key)
            .collect();
        keys.sort_by_key(|position| {
            let column = &self.columns[*position];
            (
                is_bound(column),
                is_bound(column) && column.name == WINDOWEND,
            )
        });
        keys
    }
}

impl fmt::Display for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A read-only snapshot of the catalog.
pub trait Catalog: Send + Sync {
    /// The relation with this folded name.
    fn relation(&self, name: &str) -> Option<Arc<Relation>>;

    /// All relations, by name.
    fn relations(&self) -> Vec<Arc<Relation>>;

    /// Whether a topic exists, and with how many partitions.
    fn topic_partitions(&self, topic: &str) -> Option<u32>;
}
