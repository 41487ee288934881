//! What every decoder and encoder does around its rows: bounds, column builders, error rows.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef},
    compute::{CastOptions, cast_with_options},
    datatypes::{DataType, FieldRef, Schema, SchemaRef, TimeUnit},
    util::display::FormatOptions,
};

use crate::{
    Decoded,
    column::ColumnBuilder,
    error::{FormatError, FormatResult, RecordError},
};

/// Bytes that one run may have. Text may grow while it is decoded (to three times its size at most), and Arrow's offsets have 31 bits.
pub(crate) const MAX_RUN_BYTES: usize = 512 << 20;

/// Refuses a run whose columns might not fit their offsets.
pub(crate) fn check_size(records: &[Option<&[u8]>]) -> FormatResult<()> {
    let bytes = records.iter().flatten().map(|record| record.len()).sum();
    if bytes > MAX_RUN_BYTES {
        return Err(FormatError::RunTooLarge {
            bytes,
            limit: MAX_RUN_BYTES,
        });
    }
    Ok(())
}

/// One builder per column.
pub(crate) fn builders(format: &'static str, schema: &Schema) -> FormatResult<Vec<ColumnBuilder>> {
    schema
        .fields()
        .iter()
        .map(|field| {
            ColumnBuilder::new(field.data_type()).ok_or_else(|| FormatError::UnsupportedType {
                format,
                column: field.name().clone(),
                data_type: field.data_type().to_string(),
            })
        })
        .collect()
}

/// Decodes a run with `decode_row`, which gets the row's index, appends that row to every builder or says why it cannot.
///
/// A failed row's remains are cut off and replaced by NULLs.
pub(crate) fn decode_rows(
    builders: &mut [ColumnBuilder],
    records: &[Option<&[u8]>],
    mut decode_row: impl FnMut(&mut [ColumnBuilder], usize, &[u8]) -> Result<(), String>,
) -> FormatResult<Decoded> {
    check_size(records)?;
    let mut errors = Vec::new();
    for builder in &mut *builders {
        builder.reserve(records.len());
    }
    for (index, record) in records.iter().enumerate() {
        let Some(record) = record else {
            builders.iter_mut().for_each(ColumnBuilder::push_null);
            continue;
        };
        if let Err(reason) = decode_row(builders, index, record) {
            for builder in &mut *builders {
                builder.truncate(index);
                builder.push_null();
            }
            errors.push(RecordError { index, reason });
        }
    }
    let columns = builders
        .iter_mut()
        .map(ColumnBuilder::finish)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Decoded { columns, errors })
}

/// The schema with every type brought to the form that encoders read: views, dictionaries and large offsets are representations of the same
/// values, and instants are written in milliseconds whatever unit they come in.
pub(crate) fn canonical(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(
        schema
            .fields()
            .iter()
            .map(canonical_field)
            .collect::<Vec<_>>(),
    ))
}

fn canonical_field(field: &FieldRef) -> FieldRef {
    Arc::new(
        field
            .as_ref()
            .clone()
            .with_data_type(canonical_type(field.data_type())),
    )
}

fn canonical_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        DataType::Dictionary(_, values) => canonical_type(values),
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            DataType::List(canonical_field(field))
        }
        DataType::Map(field, sorted) => DataType::Map(canonical_field(field), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(canonical_field).collect()),
        other => other.clone(),
    }
}

/// A value that the cast cannot hold is an error, never a silent NULL.
const STRICT: CastOptions<'_> = CastOptions {
    safe: false,
    format_options: FormatOptions::new(),
};

/// Checks the columns handed to an encoder against its schema, casts those of another representation and gives the
/// number of rows.
pub(crate) fn check_columns(
    schema: &SchemaRef,
    columns: &[ArrayRef],
) -> FormatResult<(Vec<ArrayRef>, usize)> {
    if columns.len() != schema.fields().len() {
        let reason = format!(
            "{} columns given, {} in the schema",
            columns.len(),
            schema.fields().len()
        );
        return Err(FormatError::ColumnMismatch { reason });
    }
    let rows = columns.first().map_or(0, |column| column.len());
    let mut checked = Vec::with_capacity(columns.len());
    for (column, field) in columns.iter().zip(schema.fields()) {
        if column.len() != rows {
            let reason = format!(
                "column \"{}\" has {} rows, others {rows}",
                field.name(),
                column.len()
            );
            return Err(FormatError::ColumnMismatch { reason });
        }
        checked.push(if column.data_type() == field.data_type() {
            ArrayRef::clone(column)
        } else {
            cast_with_options(column, field.data_type(), &STRICT)?
        });
    }
    Ok((checked, rows))
}
