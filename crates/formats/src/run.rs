//! What every decoder and encoder does around its rows: bounds, column builders, error rows.

use arrow::{
    array::{Array, ArrayRef},
    datatypes::{Schema, SchemaRef},
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

/// Checks the columns handed to an encoder against its schema, casts those of another representation (say, a string view) and gives the
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
            arrow::compute::cast(column, field.data_type())?
        });
    }
    Ok((checked, rows))
}
