//! The Arrow types of SQL values, how SQL spells them, and which type two values have in common.

use std::sync::Arc;

use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, Fields, TimeUnit,
};

/// Digits that an INT and a BIGINT count for where they meet a DECIMAL.
const INT_DIGITS: u8 = 10;
const BIGINT_DIGITS: u8 = 19;

/// `ARRAY<element>`.
pub fn list(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", element, true)))
}

/// `MAP<key, value>`.
pub fn map(key: DataType, value: DataType) -> DataType {
    let entries = map_fields(key, value);
    DataType::Map(
        Arc::new(Field::new("entries", DataType::Struct(entries), false)),
        false,
    )
}

/// The two fields of a map's entries.
pub(crate) fn map_fields(key: DataType, value: DataType) -> Fields {
    Fields::from(vec![
        Field::new("key", key, false),
        Field::new("value", value, true),
    ])
}

/// `TIMESTAMP`: milliseconds without a zone.
pub(crate) const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Millisecond, None);
/// `TIME`: milliseconds of the day.
pub(crate) const TIME: DataType = DataType::Time32(TimeUnit::Millisecond);

/// A decimal of `precision` digits in the narrower of the two widths; `None` beyond 76 digits.
pub(crate) fn decimal(precision: u8, scale: i8) -> Option<DataType> {
    if precision <= DECIMAL128_MAX_PRECISION {
        Some(DataType::Decimal128(precision.max(1), scale))
    } else if precision <= DECIMAL256_MAX_PRECISION {
        Some(DataType::Decimal256(precision, scale))
    } else {
        None
    }
}

/// Precision and scale of a number that a DECIMAL can hold exactly.
pub(crate) fn decimal_digits(data_type: &DataType) -> Option<(u8, i8)> {
    match data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => Some((*precision, *scale)),
        DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16 | DataType::Int32 => {
            Some((INT_DIGITS, 0))
        }
        DataType::UInt32 | DataType::Int64 => Some((BIGINT_DIGITS, 0)),
        DataType::UInt64 => Some((BIGINT_DIGITS + 1, 0)),
        _ => None,
    }
}

/// The types of a map's keys and values.
pub(crate) fn map_types(data_type: &DataType) -> Option<(&DataType, &DataType)> {
    match data_type {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                Some((fields[0].data_type(), fields[1].data_type()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The type of a list's elements.
pub(crate) fn element_type(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => Some(field.data_type()),
        _ => None,
    }
}

/// The type that functions work on: one of several Arrow types that stand for the same SQL type.
pub(crate) fn canonical(data_type: &DataType) -> DataType {
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 | DataType::Float32 => DataType::Float64,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => TIME,
        DataType::Timestamp(_, _) => TIMESTAMP,
        DataType::Dictionary(_, value) => canonical(value),
        DataType::RunEndEncoded(_, value) => canonical(value.data_type()),
        DataType::Struct(fields) => DataType::Struct(
            fields
                .iter()
                .map(|field| Field::new(field.name(), canonical(field.data_type()), true))
                .collect(),
        ),
        other => match (element_type(other), map_types(other)) {
            (Some(element), _) => list(canonical(element)),
            (_, Some((key, value))) => map(canonical(key), canonical(value)),
            _ => other.clone(),
        },
    }
}

/// Where a number stands in INT, BIGINT, DECIMAL, DOUBLE; each goes into the ones behind it without a cast being written.
fn number_rank(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::Int32 => Some(0),
        DataType::Int64 => Some(1),
        DataType::Decimal128(_, _) | DataType::Decimal256(_, _) => Some(2),
        DataType::Float64 => Some(3),
        _ => None,
    }
}

fn is_temporal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32) || *data_type == TIME || *data_type == TIMESTAMP
}

/// The narrowest type that holds values of both canonical types, if there is one. Text meets a date or time as one.
pub(crate) fn common_type(left: &DataType, right: &DataType) -> Option<DataType> {
    if left == right || *right == DataType::Null {
        return Some(left.clone());
    }
    if *left == DataType::Null {
        return Some(right.clone());
    }
    if let (Some(left_rank), Some(right_rank)) = (number_rank(left), number_rank(right)) {
        return match left_rank.max(right_rank) {
            0 => Some(DataType::Int32),
            1 => Some(DataType::Int64),
            2 => common_decimal(left, right),
            _ => Some(DataType::Float64),
        };
    }
    match (left, right) {
        (DataType::Utf8, temporal) | (temporal, DataType::Utf8) if is_temporal(temporal) => {
            Some(temporal.clone())
        }
        (DataType::Struct(left), DataType::Struct(right)) => common_struct(left, right),
        _ => match (element_type(left), element_type(right)) {
            (Some(left), Some(right)) => Some(list(common_type(left, right)?)),
            _ => {
                let ((left_key, left_value), (right_key, right_value)) =
                    (map_types(left)?, map_types(right)?);
                Some(map(
                    common_type(left_key, right_key)?,
                    common_type(left_value, right_value)?,
                ))
            }
        },
    }
}

fn common_decimal(left: &DataType, right: &DataType) -> Option<DataType> {
    let ((left_precision, left_scale), (right_precision, right_scale)) =
        (decimal_digits(left)?, decimal_digits(right)?);
    let scale = left_scale.max(right_scale);
    let whole = (i16::from(left_precision) - i16::from(left_scale))
        .max(i16::from(right_precision) - i16::from(right_scale));
    decimal(u8::try_from(whole + i16::from(scale)).ok()?, scale)
}

/// Structs have a common type when they have the same fields in the same order.
fn common_struct(left: &Fields, right: &Fields) -> Option<DataType> {
    if left.len() != right.len() {
        return None;
    }
    let fields = left
        .iter()
        .zip(right)
        .map(|(left, right)| {
            let data_type = common_type(left.data_type(), right.data_type())?;
            (left.name() == right.name()).then(|| Field::new(left.name(), data_type, true))
        })
        .collect::<Option<Vec<_>>>()?;
    Some(DataType::Struct(Fields::from(fields)))
}

/// How far a value of canonical type `from` is from a parameter of type `to`: `None` when it does not go there without a cast.
pub(crate) fn distance(from: &DataType, to: &DataType) -> Option<u32> {
    /// A number that may lose digits: DataFusion gives whole literals 64 bits where ksqlDB gives 32.
    const NARROWING: u32 = 20;
    /// Text that is read as a date or time.
    const READING: u32 = 50;
    if from == to || *from == DataType::Null {
        return Some(0);
    }
    if let (Some(from), Some(to)) = (number_rank(from), number_rank(to)) {
        return match (from, to) {
            (1, 0) => Some(NARROWING),
            _ if from <= to => Some(u32::from(to - from)),
            _ => None,
        };
    }
    (*from == DataType::Utf8 && is_temporal(to)).then_some(READING)
}

/// How SQL spells a type: what DESCRIBE prints and messages say.
pub fn sql_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => "SMALLINT".to_owned(),
        DataType::UInt16 | DataType::Int32 => "INT".to_owned(),
        DataType::UInt32 | DataType::UInt64 | DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float16 | DataType::Float32 => "REAL".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "BYTES".to_owned(),
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMPTZ".to_owned(),
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL".to_owned(),
        DataType::Null => "NULL".to_owned(),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => format!("ARRAY<{}>", sql_name(field.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{} {}", field.name(), sql_name(field.data_type())))
                .collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        DataType::Map(_, _) => match map_types(data_type) {
            Some((key, value)) => format!("MAP<{}, {}>", sql_name(key), sql_name(value)),
            None => "MAP".to_owned(),
        },
        DataType::Dictionary(_, value) => sql_name(value),
        DataType::RunEndEncoded(_, value) => sql_name(value.data_type()),
        DataType::Union(_, _) => "UNION".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_widen_in_one_direction() {
        let decimal = DataType::Decimal128(5, 2);
        assert_eq!(
            common_type(&DataType::Int32, &DataType::Int64),
            Some(DataType::Int64)
        );
        assert_eq!(
            common_type(&DataType::Int64, &decimal),
            Some(DataType::Decimal128(21, 2))
        );
        assert_eq!(
            common_type(&decimal, &DataType::Float64),
            Some(DataType::Float64)
        );
        assert_eq!(distance(&DataType::Float64, &decimal), None);
        assert_eq!(distance(&DataType::Int32, &DataType::Float64), Some(3));
    }

    #[test]
    fn nested_types_meet_part_by_part() {
        assert_eq!(
            common_type(&list(DataType::Int32), &list(DataType::Int64)),
            Some(list(DataType::Int64))
        );
        assert_eq!(
            common_type(
                &map(DataType::Utf8, DataType::Null),
                &map(DataType::Utf8, DataType::Int32)
            ),
            Some(map(DataType::Utf8, DataType::Int32))
        );
        assert_eq!(
            common_type(&list(DataType::Utf8), &list(DataType::Int32)),
            None
        );
    }
}
