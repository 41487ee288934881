//! Values of one type in a byte form whose order is SQL order, and back.

use arrow::{
    array::{ArrayRef, new_null_array},
    datatypes::DataType,
    row::{RowConverter, Rows, SortField},
};

use crate::error::{ExecError, ExecResult};

/// See the module.
pub struct OrderedBytes {
    converter: RowConverter,
    null: Box<[u8]>,
}

impl OrderedBytes {
    /// Of this type.
    pub fn new(data_type: &DataType) -> ExecResult<Self> {
        let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
        let null = converter.convert_columns(&[new_null_array(data_type, 1)])?;
        Ok(Self {
            null: null.row(0).data().into(),
            converter,
        })
    }

    /// The byte form of each value; NULL has one too.
    pub fn encode(&self, values: &ArrayRef) -> ExecResult<Rows> {
        Ok(self
            .converter
            .convert_columns(std::slice::from_ref(values))?)
    }

    /// One value an entry, NULL for none.
    pub fn decode<'a>(
        &self,
        values: impl Iterator<Item = Option<&'a [u8]>>,
    ) -> ExecResult<ArrayRef> {
        let parser = self.converter.parser();
        let rows = values.map(|value| parser.parse(value.unwrap_or(&self.null)));
        let column = self.converter.convert_rows(rows)?.pop();
        column.ok_or_else(|| ExecError::Internal("a row converter lost its column".into()))
    }
}
