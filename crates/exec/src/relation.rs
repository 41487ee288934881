//! Records of a relation's topic to rows and back: key, value, window bounds and event time together.

mod decoder;
mod encoder;
pub(crate) mod headers;

pub use decoder::{DecodedRows, RelationDecoder};
pub use encoder::{EncodedRows, RelationEncoder};

use arrow::datatypes::{Schema, SchemaRef};
use highwater_formats::FormatSpec;
use highwater_planner::catalog::{FormatName, Relation, WINDOWEND, WINDOWSTART};

use crate::error::ExecResult;

/// Where each column of a relation stands in its records.
#[derive(Debug, Clone)]
struct RecordLayout {
    key_format: FormatSpec,
    value_format: FormatSpec,
    /// Columns in the record key, by position in the relation.
    key: Vec<usize>,
    /// Columns in the record value.
    value: Vec<usize>,
    /// The bounds, which stand behind the key's bytes.
    window: Option<BoundColumns>,
}

/// Where the bounds of a windowed relation stand.
#[derive(Debug, Clone, Copy)]
struct BoundColumns {
    /// Position of `windowstart`.
    start: usize,
    /// Position of `windowend`.
    end: usize,
    /// Length of the windows in milliseconds; `None` for sessions, whose record keys hold both bounds.
    size: Option<i64>,
}

impl RecordLayout {
    fn new(relation: &Relation) -> ExecResult<Self> {
        let position = |name: &str| {
            relation
                .columns
                .iter()
                .position(|column| column.name == name && column.key)
        };
        let window = match &relation.window {
            Some(window) => {
                let size = window.shape.size().map(crate::operators::millis);
                position(WINDOWSTART)
                    .zip(position(WINDOWEND))
                    .map(|(start, end)| BoundColumns { start, end, size })
            }
            None => None,
        };
        let bound = |column: &usize| {
            window.is_some_and(|bounds| *column == bounds.start || *column == bounds.end)
        };
        let key: Vec<usize> = relation
            .key_columns()
            .into_iter()
            .filter(|column| !bound(column))
            .collect();
        let value = (0..relation.columns.len())
            .filter(|&column| {
                let column = &relation.columns[column];
                !column.key && column.headers.is_none()
            })
            .collect();
        Ok(Self {
            key_format: key_format_spec(&relation.key_format, key.len())?,
            value_format: format_spec(&relation.value_format)?,
            key,
            value,
            window,
        })
    }
}

fn format_spec(name: &FormatName) -> ExecResult<FormatSpec> {
    let wrapped = name.wrapped.map(|wrapped| wrapped.to_string());
    Ok(FormatSpec::parse(
        &name.name,
        name.delimiter.as_deref(),
        wrapped.as_deref(),
    )?)
}

/// A key of one column is always bare, one of several always an object.
pub(crate) fn key_format_spec(name: &FormatName, columns: usize) -> ExecResult<FormatSpec> {
    Ok(match format_spec(name)? {
        FormatSpec::Json { .. } => FormatSpec::Json {
            wrapped: columns > 1,
        },
        other => other,
    })
}

/// The columns whose encoding places a row: the key without window bounds.
pub(crate) fn placing_columns(relation: &Relation) -> Vec<usize> {
    let bound = |column: &usize| {
        relation.window.is_some()
            && matches!(
                relation.columns[*column].name.as_str(),
                WINDOWSTART | WINDOWEND
            )
    };
    relation
        .key_columns()
        .into_iter()
        .filter(|column| !bound(column))
        .collect()
}

fn sub_schema(relation: &Relation, columns: &[usize]) -> ExecResult<SchemaRef> {
    let schema: Schema = relation.schema().project(columns)?;
    Ok(schema.into())
}
