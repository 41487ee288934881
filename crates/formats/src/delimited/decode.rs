//! Lines to columns.

use arrow::datatypes::Schema;

use crate::{
    Decoded, Decoder,
    column::ColumnBuilder,
    error::FormatResult,
    run,
    scalar::{push_text, scan},
};

use super::{
    NAME, check_schema,
    split::{Field, Fields},
};

/// Decodes lines of one schema.
pub(crate) struct DelimitedDecoder {
    delimiter: u8,
    /// For each field of a line its name and the builder that takes it, if any.
    targets: Vec<(String, Option<usize>)>,
    builders: Vec<ColumnBuilder>,
    scratch: Vec<u8>,
}

impl DelimitedDecoder {
    /// Lines have the columns of `schema`; those at `projection` are built.
    pub(crate) fn new(schema: &Schema, delimiter: u8, projection: &[usize]) -> FormatResult<Self> {
        check_schema(schema)?;
        let builders = run::builders(NAME, &schema.project(projection)?)?;
        let target = |column: usize| projection.iter().position(|&projected| projected == column);
        let targets = schema
            .fields()
            .iter()
            .enumerate()
            .map(|(column, field)| (field.name().clone(), target(column)))
            .collect();
        Ok(Self {
            delimiter,
            targets,
            builders,
            scratch: Vec::new(),
        })
    }
}

impl Decoder for DelimitedDecoder {
    fn decode(&mut self, records: &[Option<&[u8]>]) -> FormatResult<Decoded> {
        let Self {
            delimiter,
            targets,
            builders,
            scratch,
        } = self;
        run::decode_rows(builders, records, |builders, _, record| {
            decode_line(record, *delimiter, targets, builders, scratch)
        })
    }
}

fn decode_line(
    record: &[u8],
    delimiter: u8,
    targets: &[(String, Option<usize>)],
    builders: &mut [ColumnBuilder],
    scratch: &mut Vec<u8>,
) -> Result<(), String> {
    if !scan::is_ascii(record)
        && let Err(error) = std::str::from_utf8(record)
    {
        return Err(format!("not UTF-8 at byte {}", error.valid_up_to()));
    }
    let mut fields = Fields::new(record, delimiter);
    if fields.is_blank() && targets.len() > 1 {
        return Err(format!(
            "expected {} fields, got an empty line",
            targets.len()
        ));
    }
    let mut count = 0;
    while let Some(field) = fields.next(scratch)? {
        if let Some((name, Some(target))) = targets.get(count) {
            let text = match field {
                Field::Slice(text) => text,
                Field::Scratch => scratch.as_slice(),
            };
            let builder = &mut builders[*target];
            if text.is_empty() {
                builder.push_null();
            } else {
                push_text(builder, text).map_err(|reason| format!("field \"{name}\": {reason}"))?;
            }
        }
        count += 1;
    }
    if count != targets.len() {
        return Err(format!("expected {} fields, got {count}", targets.len()));
    }
    Ok(())
}
