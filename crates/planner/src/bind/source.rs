//! `CREATE STREAM|TABLE` over a topic.

use arrow::datatypes::{DataType, Fields, TimeUnit};
use highwater_sql::{ColumnDef, ColumnRole, CreateSource, SourceKind};

use crate::{
    PlanContext,
    catalog::{
        Column, HeaderColumn, ROWOFFSET, ROWPARTITION, ROWTIME, Relation, RelationId, WINDOWEND,
        WINDOWSTART,
    },
    error::{PlanError, PlanResult},
    types::{arrow_type, has_map, sql_name},
    with::WithClause,
};

/// Names that no column can have, since every query can already mean something by them.
const RESERVED: [&str; 5] = [ROWTIME, ROWPARTITION, ROWOFFSET, WINDOWSTART, WINDOWEND];

/// Checks columns, keys and properties, and describes the relation they make.
pub fn plan_create_source(
    create: &CreateSource,
    ctx: &PlanContext,
    id: RelationId,
) -> PlanResult<Relation> {
    refuse_existing(&create.name, create.or_replace, ctx)?;
    let mut columns = columns(create)?;
    let with = WithClause::read(&create.with, ctx.identifier_case)?;
    if create.kind == SourceKind::Table && with.retention_ms.is_some() {
        return Err(PlanError::InvalidProperty {
            name: "retention_ms".to_owned(),
            reason: "a table keeps the last row of each key for ever".to_owned(),
            hint: None,
        });
    }
    let keys: Vec<&Column> = columns.iter().filter(|column| column.key).collect();
    let values: Vec<&Column> = columns
        .iter()
        .filter(|column| !column.key && column.headers.is_none())
        .collect();
    let window = with.window(&keys)?;
    let key_format = with.source_key_format(&keys, ctx)?;
    let value_format = with.value_format(&values, None, ctx)?;
    let timestamp = with.timestamp(&columns)?;
    let topic = topic_of(&create.name, &with);
    let partitions = partitions_of(&topic, &with, ctx, ctx.default_partitions)?;
    if window.is_some() {
        columns.extend([WINDOWSTART, WINDOWEND].map(|name| Column {
            headers: None,
            name: name.to_owned(),
            data_type: DataType::Timestamp(TimeUnit::Millisecond, None),
            key: true,
        }));
    }
    Ok(Relation {
        id,
        name: create.name.clone(),
        kind: create.kind,
        columns,
        topic,
        partitions,
        key_format,
        value_format,
        timestamp,
        window,
        read_only: create.read_only,
        query: None,
    })
}

/// Refuses a name that is taken. Whether IF NOT EXISTS makes that a success is the caller's to say.
pub(crate) fn refuse_existing(name: &str, or_replace: bool, ctx: &PlanContext) -> PlanResult<()> {
    if ctx.catalog.relation(name).is_none() {
        return Ok(());
    }
    if or_replace {
        let hint = "DROP it first, or choose another name";
        return Err(PlanError::unsupported(
            "CREATE OR REPLACE of an existing relation",
            None,
            Some(hint),
        ));
    }
    Err(PlanError::DuplicateRelation {
        name: name.to_owned(),
    })
}

/// Whether a column name is reserved.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED
        .iter()
        .any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// The topic's name: as given, else the relation's.
pub(crate) fn topic_of(name: &str, with: &WithClause) -> String {
    with.topic.clone().unwrap_or_else(|| name.to_owned())
}

/// The number of partitions: the existing topic's, else as given, else `default`.
pub(crate) fn partitions_of(
    topic: &str,
    with: &WithClause,
    ctx: &PlanContext,
    default: u32,
) -> PlanResult<u32> {
    match (ctx.catalog.topic_partitions(topic), with.partitions) {
        (Some(existing), Some(given)) if existing != given => Err(PlanError::InvalidProperty {
            name: "partitions".to_owned(),
            reason: format!("topic \"{topic}\" exists and has {existing} partitions, not {given}"),
            hint: Some("leave the property out, or choose another topic".to_owned()),
        }),
        (Some(existing), _) => Ok(existing),
        (None, given) => Ok(given.unwrap_or(default)),
    }
}

fn columns(create: &CreateSource) -> PlanResult<Vec<Column>> {
    if create.columns.is_empty() {
        let hint = "write the columns: CREATE STREAM name (column type, ..) WITH (..)";
        return Err(PlanError::unsupported(
            "a column list taken from a schema registry",
            None,
            Some(hint),
        ));
    }
    let mut columns: Vec<Column> = Vec::with_capacity(create.columns.len());
    for definition in &create.columns {
        if columns.iter().any(|column| column.name == definition.name) {
            return Err(PlanError::DuplicateColumn {
                name: definition.name.clone(),
                position: None,
            });
        }
        columns.push(column(create.kind, definition)?);
    }
    if create.kind == SourceKind::Table && !columns.iter().any(|column| column.key) {
        return Err(PlanError::InvalidKey {
            message: format!("table \"{}\" has no primary key", create.name),
            position: None,
            hint: Some("a table needs a key column: name type PRIMARY KEY".to_owned()),
        });
    }
    Ok(columns)
}

/// What a column shows of a record's headers. It can only have the type that headers have.
fn headers(definition: &ColumnDef, data_type: &DataType) -> PlanResult<Option<HeaderColumn>> {
    let is_header = |fields: &Fields| {
        matches!(fields.as_ref(), [key, value]
            if key.name().eq_ignore_ascii_case("key")
                && *key.data_type() == DataType::Utf8
                && value.name().eq_ignore_ascii_case("value")
                && *value.data_type() == DataType::Binary)
    };
    let (which, fits, wanted) = match &definition.role {
        ColumnRole::Headers => {
            let fits = match data_type {
                DataType::List(element) => {
                    matches!(element.data_type(), DataType::Struct(fields) if is_header(fields))
                }
                _ => false,
            };
            let wanted = "ARRAY<STRUCT<key VARCHAR, value BYTES>>";
            (HeaderColumn::All, fits, wanted)
        }
        ColumnRole::Header(name) => {
            let fits = *data_type == DataType::Binary;
            (HeaderColumn::Named(name.clone()), fits, "BYTES")
        }
        ColumnRole::Value | ColumnRole::Key | ColumnRole::PrimaryKey => return Ok(None),
    };
    match fits {
        true => Ok(Some(which)),
        false => Err(PlanError::InvalidType {
            name: sql_name(data_type),
            reason: format!(
                "column \"{}\" holds headers and must be {wanted}",
                definition.name
            ),
        }),
    }
}

fn column(kind: SourceKind, definition: &ColumnDef) -> PlanResult<Column> {
    if is_reserved(&definition.name) {
        return Err(PlanError::ReservedName {
            name: definition.name.clone(),
            position: None,
            hint: Some(
                "every relation has the columns rowtime, rowpartition and rowoffset by itself"
                    .to_owned(),
            ),
        });
    }
    let wrong_role = |written: &str, right: &str| PlanError::InvalidKey {
        message: format!("column \"{}\" is {written}", definition.name),
        position: None,
        hint: Some(right.to_owned()),
    };
    let key = match (kind, &definition.role) {
        (_, ColumnRole::Value) => false,
        (_, ColumnRole::Headers | ColumnRole::Header(_)) => false,
        (SourceKind::Stream, ColumnRole::Key) | (SourceKind::Table, ColumnRole::PrimaryKey) => true,
        (SourceKind::Stream, ColumnRole::PrimaryKey) => {
            return Err(wrong_role(
                "PRIMARY KEY, which only tables have",
                "write KEY",
            ));
        }
        (SourceKind::Table, ColumnRole::Key) => {
            return Err(wrong_role(
                "KEY, which only streams have",
                "write PRIMARY KEY",
            ));
        }
    };
    let data_type = arrow_type(&definition.data_type)?;
    if key && has_map(&data_type) {
        return Err(PlanError::InvalidKey {
            message: format!(
                "column \"{}\" is {}, which no key can hold",
                definition.name,
                sql_name(&data_type)
            ),
            position: None,
            hint: Some(
                "a map has no order, so equal keys could be written in different bytes".to_owned(),
            ),
        });
    }
    Ok(Column {
        name: definition.name.clone(),
        headers: headers(definition, &data_type)?,
        data_type,
        key,
    })
}
