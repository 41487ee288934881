//! Streams, tables, their columns, types and properties.

use std::fmt::{self, Display, Formatter};

use super::{comma_separated, if_exists, if_not_exists};
use crate::ast::{
    Alter, ColumnDef, ColumnRole, CreateAs, CreateSource, CreateType, Drop, DropType, Properties,
    PropertyValue, SourceKind, SqlType,
};
use crate::name::{force_quote_name, is_plain_word, quote_literal, quote_name};

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
pub(super) fn declaration(source: &CreateSource) -> String {
    let columns = match source.columns.as_slice() {
        [] => String::new(),
        columns => format!(" ({})", comma_separated(columns)),
    };
    format!("{}{columns}{}", quote_name(&source.name), source.with)
}

impl Display for CreateSource {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "{} {}{} {}{}",
            create(self.or_replace),
            if self.read_only { "SOURCE " } else { "" },
            self.kind,
            if_not_exists(self.if_not_exists),
            declaration(self)
        )
    }
}

impl Display for CreateAs {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "{} {} {}{}{} AS {}",
            create(self.or_replace),
            self.kind,
            if_not_exists(self.if_not_exists),
            quote_name(&self.name),
            self.with,
            self.query
        )
    }
}

impl Display for CreateType {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "CREATE TYPE {}{} AS {}",
            if_not_exists(self.if_not_exists),
            quote_name(&self.name),
            self.data_type
        )
    }
}

impl Display for Alter {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let additions = self
            .columns
            .iter()
            .map(|(name, data_type)| format!("ADD COLUMN {} {data_type}", quote_name(name)));
        write!(
            f,
            "ALTER {} {} {}",
            self.kind,
            quote_name(&self.name),
            comma_separated(additions)
        )
    }
}

impl Display for Drop {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "DROP {} {}{}{}",
            self.kind,
            if_exists(self.if_exists),
            quote_name(&self.name),
            if self.delete_topic {
                " DELETE TOPIC"
            } else {
                ""
            }
        )
    }
}

impl Display for DropType {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let exists = if_exists(self.if_exists);
        write!(f, "DROP TYPE {exists}{}", quote_name(&self.name))
    }
}

impl Display for ColumnDef {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{} {}", quote_name(&self.name), self.data_type)?;
        match &self.role {
            ColumnRole::Value => Ok(()),
            ColumnRole::Key => f.write_str(" KEY"),
            ColumnRole::PrimaryKey => f.write_str(" PRIMARY KEY"),
            ColumnRole::Headers => f.write_str(" HEADERS"),
            ColumnRole::Header(key) => write!(f, " HEADER({})", quote_literal(key)),
        }
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

impl Display for SqlType {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "BOOLEAN",
            Self::SmallInt => "SMALLINT",
            Self::Int => "INT",
            Self::BigInt => "BIGINT",
            Self::Real => "REAL",
            Self::Double => "DOUBLE",
            Self::Decimal(precision, scale) => return write!(f, "DECIMAL({precision}, {scale})"),
            Self::String => "STRING",
            Self::Bytes => "BYTES",
            Self::Time => "TIME",
            Self::Date => "DATE",
            Self::Timestamp => "TIMESTAMP",
            Self::TimestampTz => "TIMESTAMPTZ",
            Self::Array(element) => return write!(f, "ARRAY<{element}>"),
            Self::Map(key, value) => return write!(f, "MAP<{key}, {value}>"),
            Self::Struct(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, data_type)| format!("{} {data_type}", quote_name(name)));
                return write!(f, "STRUCT<{}>", comma_separated(fields));
            }
            // In quotes, so that no later type of ours can take the name away.
            Self::Named(name) => return f.write_str(&force_quote_name(name)),
        })
    }
}
