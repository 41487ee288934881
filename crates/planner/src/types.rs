//! SQL types and Arrow types.
//!
//! A *stored* type is one that a column of a stream or table can have: the image of [`arrow_type`]. Expressions may pass through other Arrow
//! types; [`stored_type`] says which stored type their values take when they reach a relation.

use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
pub use highwater_functions::types::sql_name;
use highwater_functions::types::{list, map};
use highwater_sql::SqlType;

use crate::error::{PlanError, PlanResult};

/// Most digits of a DECIMAL that fits 128 bits.
const DECIMAL128_DIGITS: u8 = 38;
/// Most digits of a DECIMAL at all: 256 bits.
pub(crate) const MAX_DECIMAL_DIGITS: u8 = 76;
/// Zone of TIMESTAMPTZ values; sessions convert for display.
const UTC: &str = "UTC";

/// The Arrow type of a declared column.
pub fn arrow_type(sql: &SqlType) -> PlanResult<DataType> {
    Ok(match sql {
        SqlType::Boolean => DataType::Boolean,
        SqlType::SmallInt => DataType::Int16,
        SqlType::Int => DataType::Int32,
        SqlType::BigInt => DataType::Int64,
        SqlType::Real => DataType::Float32,
        SqlType::Double => DataType::Float64,
        SqlType::Decimal(precision, scale) => decimal(*precision, *scale)?,
        SqlType::String => DataType::Utf8,
        SqlType::Bytes => DataType::Binary,
        SqlType::Time => DataType::Time32(TimeUnit::Millisecond),
        SqlType::Date => DataType::Date32,
        SqlType::Timestamp => DataType::Timestamp(TimeUnit::Millisecond, None),
        SqlType::TimestampTz => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
        SqlType::Array(element) => list(arrow_type(element)?),
        SqlType::Map(key, value) => {
            let (key, value) = (arrow_type(key)?, arrow_type(value)?);
            if key != DataType::Utf8 {
                let name = format!("MAP<{}, {}>", sql_name(&key), sql_name(&value));
                return Err(PlanError::InvalidType {
                    name,
                    reason: "a map's keys must be VARCHAR".to_owned(),
                });
            }
            map(key, value)
        }
        SqlType::Struct(fields) => {
            let fields: Vec<Field> = fields
                .iter()
                .map(|(name, sql)| Ok(Field::new(name, arrow_type(sql)?, true)))
                .collect::<PlanResult<_>>()?;
            DataType::Struct(Fields::from(fields))
        }
        SqlType::Named(name) => return Err(PlanError::UnknownType { name: name.clone() }),
    })
}

fn decimal(precision: u8, scale: i8) -> PlanResult<DataType> {
    let refuse = |reason: String| {
        Err(PlanError::InvalidType {
            name: format!("DECIMAL({precision}, {scale})"),
            reason,
        })
    };
    if precision == 0 || precision > MAX_DECIMAL_DIGITS {
        return refuse(format!(
            "the precision must be between 1 and {MAX_DECIMAL_DIGITS}"
        ));
    }
    if scale < 0 || scale.unsigned_abs() > precision {
        return refuse("the scale must be between 0 and the precision".to_owned());
    }
    if precision <= DECIMAL128_DIGITS {
        Ok(DataType::Decimal128(precision, scale))
    } else {
        Ok(DataType::Decimal256(precision, scale))
    }
}

/// Whether values of one type go into another without a cast being written: whole numbers into wider ones, all numbers into DOUBLE, and
/// whatever is the same. A DECIMAL goes into one that has room for its digits on both sides of the point.
pub fn widens_to(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (from, to) if from == to => true,
        (DataType::Null, _) => true,
        (DataType::Int16, DataType::Int32 | DataType::Int64 | DataType::Float64)
        | (DataType::Int32, DataType::Int64 | DataType::Float64)
        | (DataType::Int64 | DataType::Float32, DataType::Float64)
        | (DataType::Decimal128(..), DataType::Float64) => true,
        (DataType::Int32, DataType::Decimal128(precision, scale)) => {
            i16::from(*precision) - i16::from(*scale) >= 10
        }
        (DataType::Int64, DataType::Decimal128(precision, scale)) => {
            i16::from(*precision) - i16::from(*scale) >= 19
        }
        (DataType::List(from), DataType::List(to)) => widens_to(from.data_type(), to.data_type()),
        (DataType::Map(from, _), DataType::Map(to, _)) => {
            widens_to(from.data_type(), to.data_type())
        }
        (DataType::Struct(from), DataType::Struct(to)) => {
            from.len() == to.len()
                && from.iter().zip(to).all(|(from, to)| {
                    from.name() == to.name() && widens_to(from.data_type(), to.data_type())
                })
        }
        (DataType::Decimal128(p1, s1), DataType::Decimal128(p2, s2)) => {
            s2 >= s1 && i16::from(*p2) - i16::from(*s2) >= i16::from(*p1) - i16::from(*s1)
        }
        _ => false,
    }
}

/// Whether values of a type hold a map somewhere.
pub fn has_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::List(field) => has_map(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_map(field.data_type())),
        _ => false,
    }
}

/// The stored type that values of `from` take in a relation; `None` when they have none (intervals, durations, unions).
pub fn stored_type(from: &DataType) -> Option<DataType> {
    Some(match from {
        DataType::Boolean
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32
        | DataType::Decimal128(_, _)
        | DataType::Decimal256(_, _) => from.clone(),
        DataType::Null | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Timestamp(_, Some(_)) => {
            DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into()))
        }
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => list(stored_type(field.data_type())?),
        DataType::Struct(fields) => {
            let fields: Vec<Field> = fields
                .iter()
                .map(|field| {
                    Some(Field::new(
                        field.name(),
                        stored_type(field.data_type())?,
                        true,
                    ))
                })
                .collect::<Option<_>>()?;
            DataType::Struct(Fields::from(fields))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => map(
                stored_type(fields[0].data_type())?,
                stored_type(fields[1].data_type())?,
            ),
            _ => return None,
        },
        DataType::Dictionary(_, value) => stored_type(value)?,
        DataType::RunEndEncoded(_, value) => stored_type(value.data_type())?,
        DataType::Duration(_) | DataType::Interval(_) | DataType::Union(_, _) => return None,
    })
}

/// Whether a type is made of other types.
pub(crate) fn is_nested(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::List(_) | DataType::Struct(_) | DataType::Map(_, _)
    )
}

/// Whether the KAFKA format can hold a single column of this type.
pub(crate) fn is_simple(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int32 | DataType::Int64 | DataType::Float64 | DataType::Utf8 | DataType::Binary
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sql_type_is_stored_as_itself() {
        let types = [
            SqlType::Boolean,
            SqlType::SmallInt,
            SqlType::Int,
            SqlType::BigInt,
            SqlType::Real,
            SqlType::Double,
            SqlType::Decimal(10, 2),
            SqlType::Decimal(60, 0),
            SqlType::String,
            SqlType::Bytes,
            SqlType::Time,
            SqlType::Date,
            SqlType::Timestamp,
            SqlType::TimestampTz,
            SqlType::Array(Box::new(SqlType::Map(
                Box::new(SqlType::String),
                Box::new(SqlType::BigInt),
            ))),
            SqlType::Struct(vec![
                ("a".to_owned(), SqlType::Int),
                ("b".to_owned(), SqlType::String),
            ]),
        ];
        for sql in types {
            let arrow = arrow_type(&sql).expect("a valid type");
            assert_eq!(stored_type(&arrow), Some(arrow.clone()), "{sql:?}");
        }
    }

    #[test]
    fn names_are_sql() {
        let sql = SqlType::Struct(vec![
            ("tags".to_owned(), SqlType::Array(Box::new(SqlType::String))),
            ("price".to_owned(), SqlType::Decimal(10, 2)),
        ]);
        assert_eq!(
            sql_name(&arrow_type(&sql).expect("valid")),
            "STRUCT<tags ARRAY<VARCHAR>, price DECIMAL(10, 2)>"
        );
    }

    #[test]
    fn decimals_are_bounded() {
        let message = |precision, scale| {
            arrow_type(&SqlType::Decimal(precision, scale))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            message(77, 0),
            "type DECIMAL(77, 0) is not valid: the precision must be between 1 and 76"
        );
        assert_eq!(
            message(4, 5),
            "type DECIMAL(4, 5) is not valid: the scale must be between 0 and the precision"
        );
    }

    #[test]
    fn intervals_are_not_stored() {
        assert_eq!(
            stored_type(&DataType::Interval(arrow::datatypes::IntervalUnit::DayTime)),
            None
        );
    }
}
