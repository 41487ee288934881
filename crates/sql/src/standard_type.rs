//! Types of the standard tree as types of ours, so that a cast and a column's declaration mean the same by the same words.

use sqlparser::ast::{
    ArrayElemTypeDef, DataType, ExactNumberInfo, Ident, ObjectName, StructBracketKind, StructField,
    TimezoneInfo,
};

use crate::ast::SqlType;

/// Digits of a DECIMAL whose precision is not given, and those behind the point.
pub(crate) const DEFAULT_DECIMAL: (u8, i8) = (38, 10);

/// Our type for one that a cast in a standard tree names; `None` for one that no column can have, such as an interval.
pub fn sql_type_of(data_type: &DataType) -> Option<SqlType> {
    Some(match data_type {
        DataType::Boolean | DataType::Bool => SqlType::Boolean,
        DataType::SmallInt(_) | DataType::Int2(_) => SqlType::SmallInt,
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => SqlType::Int,
        DataType::BigInt(_) | DataType::Int8(_) => SqlType::BigInt,
        DataType::Real | DataType::Float4 => SqlType::Real,
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 => SqlType::Double,
        DataType::Float(ExactNumberInfo::Precision(1..=24)) => SqlType::Real,
        DataType::Float(_) => SqlType::Double,
        DataType::Decimal(size) | DataType::Numeric(size) | DataType::Dec(size) => decimal(size)?,
        DataType::String(_)
        | DataType::Text
        | DataType::Varchar(_)
        | DataType::CharacterVarying(_)
        | DataType::CharVarying(_) => SqlType::String,
        DataType::Bytea | DataType::Bytes(_) => SqlType::Bytes,
        DataType::Date => SqlType::Date,
        DataType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => SqlType::Time,
        DataType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            SqlType::Timestamp
        }
        DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            SqlType::TimestampTz
        }
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(element) | ArrayElemTypeDef::SquareBracket(element, _),
        ) => SqlType::Array(Box::new(sql_type_of(element)?)),
        DataType::Map(key, value) => {
            SqlType::Map(Box::new(sql_type_of(key)?), Box::new(sql_type_of(value)?))
        }
        DataType::Struct(fields, _) => {
            let fields = fields.iter().map(|field| {
                let name = field.field_name.as_ref()?.value.clone();
                Some((name, sql_type_of(&field.field_type)?))
            });
            SqlType::Struct(fields.collect::<Option<_>>()?)
        }
        DataType::Custom(name, modifiers) if modifiers.is_empty() => match name.0.as_slice() {
            [part] => named(part.as_ident()?),
            _ => return None,
        },
        _ => return None,
    })
}

/// The standard tree's type for one of ours, which [`sql_type_of`] turns back to it.
pub(crate) fn standard_type(sql_type: &SqlType) -> DataType {
    match sql_type {
        SqlType::Boolean => DataType::Boolean,
        SqlType::SmallInt => DataType::SmallInt(None),
        SqlType::Int => DataType::Int(None),
        SqlType::BigInt => DataType::BigInt(None),
        SqlType::Real => DataType::Real,
        SqlType::Double => DataType::Double(ExactNumberInfo::None),
        SqlType::Decimal(precision, scale) => DataType::Decimal(
            ExactNumberInfo::PrecisionAndScale(u64::from(*precision), i64::from(*scale)),
        ),
        SqlType::String => DataType::String(None),
        SqlType::Bytes => DataType::Bytes(None),
        SqlType::Time => DataType::Time(None, TimezoneInfo::None),
        SqlType::Date => DataType::Date,
        SqlType::Timestamp => DataType::Timestamp(None, TimezoneInfo::None),
        SqlType::TimestampTz => DataType::Timestamp(None, TimezoneInfo::Tz),
        SqlType::Array(element) => DataType::Array(ArrayElemTypeDef::AngleBracket(Box::new(
            standard_type(element),
        ))),
        SqlType::Map(key, value) => {
            DataType::Map(Box::new(standard_type(key)), Box::new(standard_type(value)))
        }
        SqlType::Struct(fields) => {
            let fields = fields.iter().map(|(name, field)| StructField {
                field_name: Some(Ident::with_quote('"', name)),
                field_type: standard_type(field),
                options: None,
            });
            DataType::Struct(fields.collect(), StructBracketKind::AngleBrackets)
        }
        SqlType::Named(name) => {
            let name = Ident::with_quote('"', name);
            DataType::Custom(ObjectName::from(vec![name]), Vec::new())
        }
    }
}

/// A word that the standard parser knows no type by.
fn named(name: &Ident) -> SqlType {
    let is_bytes = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("bytes");
    if is_bytes {
        return SqlType::Bytes;
    }
    SqlType::Named(name.value.clone())
}

fn decimal(size: &ExactNumberInfo) -> Option<SqlType> {
    let (precision, scale) = match size {
        ExactNumberInfo::None => {
            return Some(SqlType::Decimal(DEFAULT_DECIMAL.0, DEFAULT_DECIMAL.1));
        }
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    Some(SqlType::Decimal(
        u8::try_from(precision).ok()?,
        i8::try_from(scale).ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::Expr;

    use super::*;
    use crate::ast::Statement;
    use crate::language::Language;
    use crate::parser::{parse_statement_in, parse_type};

    /// The type of `CAST(1 AS ..)` in a standard tree.
    fn cast_type(text: &str) -> DataType {
        let text = format!("SELECT CAST(1 AS {text})");
        let parsed = parse_statement_in(&text, Language::KSQL).unwrap();
        let Statement::Query(query) = parsed.statement else {
            panic!("{text}");
        };
        match &query.body.body.as_select().unwrap().projection[0] {
            sqlparser::ast::SelectItem::UnnamedExpr(Expr::Cast { data_type, .. }) => {
                data_type.clone()
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn casts_and_declarations_mean_the_same() {
        for text in [
            "BOOLEAN",
            "SMALLINT",
            "INT",
            "INTEGER",
            "BIGINT",
            "REAL",
            "DOUBLE",
            "DOUBLE PRECISION",
            "FLOAT",
            "FLOAT(20)",
            "DECIMAL",
            "DECIMAL(4)",
            "DECIMAL(4, 2)",
            "NUMERIC(10, 3)",
            "STRING",
            "TEXT",
            "VARCHAR",
            "VARCHAR(3)",
            "BYTES",
            "BYTEA",
            "TIME",
            "DATE",
            "TIMESTAMP",
            "TIMESTAMPTZ",
            "TIMESTAMP WITH TIME ZONE",
            "ARRAY<INT>",
            "INT ARRAY",
            "INT[]",
            "ARRAY<ARRAY<MAP<STRING, BYTES>>>",
            "MAP<STRING, ARRAY<INT>>",
            "STRUCT<a INT, `b` MAP<STRING, STRUCT<c DATE>>>",
            "address",
            "`Address`",
        ] {
            let declared = parse_type(text, Language::KSQL).unwrap();
            assert_eq!(
                sql_type_of(&standard_type(&declared)).as_ref(),
                Some(&declared),
                "{text}"
            );
            assert_eq!(sql_type_of(&cast_type(text)), Some(declared), "{text}");
        }
    }

    #[test]
    fn other_types_are_none_of_ours() {
        for text in ["INTERVAL", "UUID", "pg_catalog.regclass", "ARRAY<JSON>"] {
            assert_eq!(sql_type_of(&cast_type(text)), None, "{text}");
        }
    }
}
