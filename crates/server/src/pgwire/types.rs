//! Arrow types and PostgreSQL types: the one table behind RowDescription, ParameterDescription, encoding and decoding.
//!
//! PostgreSQL has no unsigned integers, so each goes to the next wider type; UInt64 becomes NUMERIC. It has no structs or maps without a
//! declared type, and its arrays of arrays must be rectangular: STRUCT, MAP and nested ARRAY are therefore JSON.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use pgwire::api::Type;

/// Precision of a NUMERIC parameter, whose type PostgreSQL does not limit.
const PARAMETER_PRECISION: u8 = 38;
/// Scale of a NUMERIC parameter: 20 digits before the point, 18 behind it.
const PARAMETER_SCALE: i8 = 18;

/// A PostgreSQL type that values are sent and received in.
struct Entry {
    wire: Type,
    array: Type,
    /// Bytes of the binary form; -1 when it varies.
    size: i16,
    /// The Arrow type that a parameter declared with this type has.
    arrow: fn() -> DataType,
}

const fn entry(wire: Type, array: Type, size: i16, arrow: fn() -> DataType) -> Entry {
    Entry {
        wire,
        array,
        size,
        arrow,
    }
}

const TABLE: &[Entry] = &[
    entry(Type::BOOL, Type::BOOL_ARRAY, 1, || DataType::Boolean),
    entry(Type::INT2, Type::INT2_ARRAY, 2, || DataType::Int16),
    entry(Type::INT4, Type::INT4_ARRAY, 4, || DataType::Int32),
    entry(Type::INT8, Type::INT8_ARRAY, 8, || DataType::Int64),
    entry(Type::OID, Type::OID_ARRAY, 4, || DataType::Int64),
    entry(Type::FLOAT4, Type::FLOAT4_ARRAY, 4, || DataType::Float32),
    entry(Type::FLOAT8, Type::FLOAT8_ARRAY, 8, || DataType::Float64),
    entry(Type::NUMERIC, Type::NUMERIC_ARRAY, -1, || {
        DataType::Decimal128(PARAMETER_PRECISION, PARAMETER_SCALE)
    }),
    entry(Type::TEXT, Type::TEXT_ARRAY, -1, || DataType::Utf8),
    entry(Type::VARCHAR, Type::VARCHAR_ARRAY, -1, || DataType::Utf8),
    entry(Type::BPCHAR, Type::BPCHAR_ARRAY, -1, || DataType::Utf8),
    entry(Type::NAME, Type::NAME_ARRAY, 64, || DataType::Utf8),
    entry(Type::CHAR, Type::CHAR_ARRAY, 1, || DataType::Utf8),
    entry(Type::JSON, Type::JSON_ARRAY, -1, || DataType::Utf8),
    entry(Type::JSONB, Type::JSONB_ARRAY, -1, || DataType::Utf8),
    entry(Type::UUID, Type::UUID_ARRAY, 16, || DataType::Utf8),
    entry(Type::BYTEA, Type::BYTEA_ARRAY, -1, || DataType::Binary),
    entry(Type::DATE, Type::DATE_ARRAY, 4, || DataType::Date32),
    entry(Type::TIME, Type::TIME_ARRAY, 8, || {
        DataType::Time64(TimeUnit::Microsecond)
    }),
    entry(Type::TIMESTAMP, Type::TIMESTAMP_ARRAY, 8, || {
        DataType::Timestamp(TimeUnit::Microsecond, None)
    }),
    entry(Type::TIMESTAMPTZ, Type::TIMESTAMPTZ_ARRAY, 8, || {
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    }),
    entry(Type::INTERVAL, Type::INTERVAL_ARRAY, 16, || {
        DataType::Interval(IntervalUnit::MonthDayNano)
    }),
];

/// The PostgreSQL type that values of an Arrow type are sent as.
pub(super) fn wire_type(data_type: &DataType) -> Type {
    match data_type {
        DataType::Boolean => Type::BOOL,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => Type::INT2,
        DataType::UInt16 | DataType::Int32 => Type::INT4,
        DataType::UInt32 | DataType::Int64 => Type::INT8,
        DataType::Float16 | DataType::Float32 => Type::FLOAT4,
        DataType::Float64 => Type::FLOAT8,
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => Type::NUMERIC,
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::TEXT,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Type::BYTEA,
        DataType::Date32 | DataType::Date64 => Type::DATE,
        DataType::Time32(_) | DataType::Time64(_) => Type::TIME,
        DataType::Timestamp(_, None) => Type::TIMESTAMP,
        DataType::Timestamp(_, Some(_)) => Type::TIMESTAMPTZ,
        DataType::Interval(_) | DataType::Duration(_) => Type::INTERVAL,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => {
            array_of(&wire_type(field.data_type())).unwrap_or(Type::JSON)
        }
        DataType::Dictionary(_, values) => wire_type(values),
        DataType::RunEndEncoded(_, values) => wire_type(values.data_type()),
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => Type::JSON,
    }
}

/// Whether values of an Arrow type are sent as JSON.
pub(super) fn is_json(data_type: &DataType) -> bool {
    wire_type(data_type) == Type::JSON
}

/// The array type of a type; `None` when it is an array itself.
fn array_of(wire: &Type) -> Option<Type> {
    TABLE
        .iter()
        .find(|entry| entry.wire == *wire)
        .map(|entry| entry.array.clone())
}

/// The element type of an array type.
pub(super) fn element_of(wire: &Type) -> Option<Type> {
    TABLE
        .iter()
        .find(|entry| entry.array == *wire)
        .map(|entry| entry.wire.clone())
}

/// The Arrow type of a parameter that is declared with a type; `None` for types that are not known here.
pub(super) fn arrow_type(wire: &Type) -> Option<DataType> {
    if let Some(entry) = TABLE.iter().find(|entry| entry.wire == *wire) {
        return Some((entry.arrow)());
    }
    let element = TABLE.iter().find(|entry| entry.array == *wire)?;
    Some(DataType::new_list((element.arrow)(), true))
}

/// Bytes of a type's binary form; -1 when it varies.
pub(super) fn type_size(wire: &Type) -> i16 {
    TABLE
        .iter()
        .find(|entry| entry.wire == *wire)
        .map_or(-1, |entry| entry.size)
}

/// PostgreSQL's type modifier: precision and scale of a NUMERIC, otherwise -1.
pub(super) fn type_modifier(data_type: &DataType) -> i32 {
    match data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale)
            if *scale >= 0 =>
        {
            ((i32::from(*precision) << 16) | i32::from(*scale)) + 4
        }
        _ => -1,
    }
}

/// The name of a type as PostgreSQL's messages have it.
pub(super) fn display_name(wire: &Type) -> &str {
    match *wire {
        Type::BOOL => "boolean",
        Type::INT2 => "smallint",
        Type::INT4 => "integer",
        Type::INT8 => "bigint",
        Type::FLOAT4 => "real",
        Type::FLOAT8 => "double precision",
        Type::VARCHAR => "character varying",
        Type::BPCHAR => "character",
        Type::TIMESTAMPTZ => "timestamp with time zone",
        _ => wire.name(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn every_declared_type_is_sent_back_in_a_compatible_type() {
        for entry in TABLE {
            let sent = wire_type(&(entry.arrow)());
            let same_family = sent == entry.wire
                || matches!(
                    entry.wire,
                    Type::OID
                        | Type::VARCHAR
                        | Type::BPCHAR
                        | Type::NAME
                        | Type::CHAR
                        | Type::JSON
                        | Type::JSONB
                        | Type::UUID
                );
            assert!(same_family, "{} comes back as {}", entry.wire, sent);
            assert_eq!(element_of(&entry.array).as_ref(), Some(&entry.wire));
        }
    }

    #[test]
    fn nested_types_are_json() {
        let list = DataType::new_list(DataType::Int64, true);
        assert_eq!(wire_type(&list), Type::INT8_ARRAY);
        assert_eq!(wire_type(&DataType::new_list(list, true)), Type::JSON);
        let fields = vec![Field::new("a", DataType::Int32, true)];
        let record = DataType::Struct(fields.into());
        assert_eq!(wire_type(&record), Type::JSON);
        assert_eq!(
            wire_type(&DataType::new_list(record, true)),
            Type::JSON_ARRAY
        );
        assert_eq!(
            wire_type(&DataType::Dictionary(
                Box::new(DataType::Int32),
                Box::new(DataType::Utf8)
            )),
            Type::TEXT
        );
        let runs = DataType::RunEndEncoded(
            Arc::new(Field::new("run_ends", DataType::Int32, false)),
            Arc::new(Field::new("values", DataType::UInt64, true)),
        );
        assert_eq!(wire_type(&runs), Type::NUMERIC);
    }

    #[test]
    fn a_numeric_tells_its_precision_and_scale() {
        assert_eq!(
            type_modifier(&DataType::Decimal128(12, 4)),
            ((12 << 16) | 4) + 4
        );
        assert_eq!(type_modifier(&DataType::Int64), -1);
    }
}
