//! NONE: the format of a key without columns.
//!
//! Whatever bytes a record has are ignored, and nothing is written.

use arrow::{array::ArrayRef, datatypes::SchemaRef};

use crate::{
    Decoded, Decoder, EncodedRecords, Encoder,
    error::{FormatError, FormatResult, RecordError},
};

const NAME: &str = "NONE";

/// Both directions; there is no state.
pub(crate) struct NoneFormat;

impl NoneFormat {
    pub(crate) fn new(schema: &SchemaRef) -> FormatResult<Self> {
        match schema.fields().len() {
            0 => Ok(Self),
            actual => Err(FormatError::ColumnCount {
                format: NAME,
                expected: "a schema without columns",
                actual,
            }),
        }
    }
}

impl Decoder for NoneFormat {
    fn decode(&mut self, _records: &[Option<&[u8]>]) -> FormatResult<Decoded> {
        Ok(Decoded {
            columns: Vec::new(),
            errors: Vec::new(),
        })
    }
}

impl Encoder for NoneFormat {
    /// Without columns there are no rows to count, so nothing is appended: every record's part is absent.
    fn encode(
        &mut self,
        _columns: &[ArrayRef],
        _out: &mut EncodedRecords,
    ) -> FormatResult<Vec<RecordError>> {
        Ok(Vec::new())
    }
}
