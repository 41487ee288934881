//! DELIMITED: one CSV line per record, flat columns only.
//!
//! Fields are separated by one delimiter. A field that begins with a double quote runs to the closing one, a doubled quote inside stands for one;
//! quotes inside other fields are ordinary characters. An empty field, quoted or not, is NULL. Numbers are decimal text, TIMESTAMP, TIME and
//! DATE are numbers (milliseconds, milliseconds, days), BYTES are base64. A record with another number of fields than there are columns is a
//! record error.

mod decode;
mod encode;
mod split;

pub(crate) use decode::DelimitedDecoder;
pub(crate) use encode::DelimitedEncoder;

use arrow::datatypes::{DataType, Schema};

use crate::error::{FormatError, FormatResult};

const NAME: &str = "DELIMITED";

/// A line has no form for nested values.
fn check_schema(schema: &Schema) -> FormatResult<()> {
    if schema.fields().is_empty() {
        return Err(FormatError::ColumnCount {
            format: NAME,
            expected: "at least one column",
            actual: 0,
        });
    }
    match schema.fields().iter().find(|field| {
        matches!(
            field.data_type(),
            DataType::List(_) | DataType::Map(..) | DataType::Struct(_)
        )
    }) {
        None => Ok(()),
        Some(field) => Err(FormatError::UnsupportedType {
            format: NAME,
            column: field.name().clone(),
            data_type: field.data_type().to_string(),
        }),
    }
}
