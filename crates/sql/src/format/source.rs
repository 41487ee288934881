//! Streams, tables, their columns, types and properties.

use std::fmt::{self, Display, Formatter};

use super::{Spelled, comma_separated, if_exists, if_not_exists};
use crate::ast::{
    Alter, AlterTopic, ColumnDef, ColumnRole, CreateAs, CreateSource, CreateType, Drop, DropType,
    Properties, PropertyValue, SourceKind, SqlType,
};
use crate::name::{force_quote_name, is_plain_word, quote_literal};

impl Display for SourceKind {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Stream => "STREAM",
            Self::Table => "TABLE",
        })
    }
}

/// `CREATE [OR REPLACE]`.
fn create(or_replace: bool) -> &'static str {
    if or_replace {
        "CREATE OR REPLACE"
    } else {
        "CREATE"
    }
}

/// `name [(columns)] [WITH (..)]`, as in CREATE and in ASSERT.
pub(super) fn declaration(source: &Spelled<CreateSource>) -> String {
    let CreateSource {
        name,
        columns,
        with,
        ..
    } = source.part;
    let name = source.name(name);
    match columns.as_slice() {
        [] => format!("{name}{with}"),
        columns => format!("{name} ({}){with}", source.list(columns)),
    }
}

impl Display for Spelled<'_, CreateSource> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "{} {}{} {}{}",
            create(self.part.or_replace),
            if self.part.read_only { "SOURCE " } else { "" },
            self.part.kind,
            if_not_exists(self.part.if_not_exists),
            declaration(self)
        )
    }
}

impl Display for Spelled<'_, CreateAs> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "{} {} {}{}{} AS {}",
            create(self.part.or_replace),
            self.part.kind,
            if_not_exists(self.part.if_not_exists),
            self.name(&self.part.name),
            self.part.with,
            self.part.query
        )
    }
}

impl Display for Spelled<'_, CreateType> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "CREATE TYPE {}{} AS {}",
            if_not_exists(self.part.if_not_exists),
            self.name(&self.part.name),
            self.with(&self.part.data_type)
        )
    }
}

impl Display for Spelled<'_, Alter> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let additions = self.part.columns.iter().map(|(name, data_type)| {
            format!("ADD COLUMN {} {}", self.name(name), self.with(data_type))
        });
        write!(
            f,
            "ALTER {} {} {}",
            self.part.kind,
            self.name(&self.part.name),
            comma_separated(additions)
        )
    }
}

impl Display for Spelled<'_, Drop> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "DROP {} {}{}{}",
            self.part.kind,
            if_exists(self.part.if_exists),
            self.name(&self.part.name),
            if self.part.delete_topic {
                " DELETE TOPIC"
            } else {
                ""
            }
        )
    }
}

impl Display for Spelled<'_, DropType> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let exists = if_exists(self.part.if_exists);
        write!(f, "DROP TYPE {exists}{}", self.name(&self.part.name))
    }
}

impl Display for Spelled<'_, ColumnDef> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let data_type = self.with(&self.part.data_type);
        write!(f, "{} {data_type}", self.name(&self.part.name))?;
        match &self.part.role {
            ColumnRole::Value => Ok(()),
            ColumnRole::Key => f.write_str(" KEY"),
            ColumnRole::PrimaryKey => f.write_str(" PRIMARY KEY"),
            ColumnRole::Headers => f.write_str(" HEADERS"),
            ColumnRole::Header(key) => write!(f, " HEADER({})", quote_literal(key)),
        }
    }
}

impl Display for AlterTopic {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let changes = self.changes.iter().map(|(name, value)| {
            let value = value
                .as_deref()
                .map_or_else(|| "DEFAULT".to_owned(), quote_literal);
            format!("{} = {value}", quote_literal(name))
        });
        let topic = quote_literal(&self.topic);
        write!(f, "ALTER TOPIC {topic} SET ({})", comma_separated(changes))
    }
}

/// The clause with a blank in front; nothing for no properties.
impl Display for Properties {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let assignments = self.0.iter().map(|(name, value)| {
            let name = if is_plain_word(name) {
                name.clone()
            } else {
                quote_literal(name)
            };
            format!("{name} = {value}")
        });
        write!(f, " WITH ({})", comma_separated(assignments))
    }
}

impl Display for PropertyValue {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::String(text) => f.write_str(&quote_literal(text)),
            Self::Number(number) => f.write_str(number),
            Self::Boolean(true) => f.write_str("TRUE"),
            Self::Boolean(false) => f.write_str("FALSE"),
        }
    }
}

impl Display for Spelled<'_, SqlType> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self.part {
            SqlType::Boolean => "BOOLEAN",
            SqlType::SmallInt => "SMALLINT",
            SqlType::Int => "INT",
            SqlType::BigInt => "BIGINT",
            SqlType::Real => "REAL",
            SqlType::Double => "DOUBLE",
            SqlType::Decimal(precision, scale) => {
                return write!(f, "DECIMAL({precision}, {scale})");
            }
            SqlType::String => "STRING",
            SqlType::Bytes => "BYTES",
            SqlType::Time => "TIME",
            SqlType::Date => "DATE",
            SqlType::Timestamp => "TIMESTAMP",
            SqlType::TimestampTz => "TIMESTAMPTZ",
            SqlType::Array(element) => return write!(f, "ARRAY<{}>", self.with(&**element)),
            SqlType::Map(key, value) => {
                let (key, value) = (self.with(&**key), self.with(&**value));
                return write!(f, "MAP<{key}, {value}>");
            }
            SqlType::Struct(fields) => {
                let fields = fields.iter().map(|(name, data_type)| {
                    format!("{} {}", self.name(name), self.with(data_type))
                });
                return write!(f, "STRUCT<{}>", comma_separated(fields));
            }
            // In quotes, so that no later type of ours can take the name away.
            SqlType::Named(name) => return f.write_str(&force_quote_name(name)),
        })
    }
}
