//! JSON: objects by column name, or one bare value.
//!
//! # Reading
//! Records are read once, front to back, straight into the columns: no tree and no tape in between. A record is valid JSON (RFC 8259, UTF-8, at
//! most [`cursor::MAX_DEPTH`] levels) or it is a record error; that holds for the parts that no column takes, too.
//!
//! Field names match exactly, else by letter case ignored; unknown fields are skipped, missing ones are NULL, and a column that is given twice is
//! an error. Numbers may be numeric text; whole-number columns cut a fraction off; BOOLEAN is strict; DECIMAL is exact. STRING takes
//! anything: text as it is, numbers as written, `[a, b]` for an array, compact JSON with sorted names for an object. TIMESTAMP, DATE and TIME take a
//! number or ISO 8601 text, BYTES base64.
//!
//! # Writing
//! Names as in the schema, NULL fields written out, DECIMAL as a plain number, TIMESTAMP, TIME and DATE as numbers, BYTES as base64, doubles in
//! Java's shortest form and `"NaN"`, `"Infinity"` as text, since JSON has no such numbers.

mod cursor;
mod decode;
mod encode;
mod fields;
mod number;
mod string;
mod text;

pub(crate) use decode::JsonDecoder;
pub(crate) use encode::JsonEncoder;

use arrow::datatypes::Schema;

use crate::{
    column::ColumnBuilder,
    error::{FormatError, FormatResult},
    run,
};

const NAME: &str = "JSON";

/// Builders for the columns, which also checks that JSON has a form for each.
fn builders(schema: &Schema) -> FormatResult<Vec<ColumnBuilder>> {
    run::builders(NAME, schema)
}

/// A column that has no form.
fn unsupported(column: &str, data_type: &arrow::datatypes::DataType) -> FormatError {
    FormatError::UnsupportedType {
        format: NAME,
        column: column.to_owned(),
        data_type: data_type.to_string(),
    }
}
