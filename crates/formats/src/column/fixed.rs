//! A column of fixed-width values.

use arrow::{
    array::{ArrowPrimitiveType, PrimitiveArray},
    buffer::ScalarBuffer,
    datatypes::DataType,
};

use super::validity::Validity;

/// Values of one Arrow primitive type; a NULL row holds the default value.
#[derive(Debug)]
pub(crate) struct FixedColumn<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    validity: Validity,
    data_type: DataType,
}

impl<T: ArrowPrimitiveType> FixedColumn<T> {
    /// `data_type` carries what the primitive type leaves open: precision and scale, time zone.
    pub(crate) fn new(data_type: DataType) -> Self {
        Self {
            values: Vec::new(),
            validity: Validity::default(),
            data_type,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.values.reserve(rows);
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: T::Native) {
        self.values.push(value);
        self.validity.push_valid();
    }

    pub(crate) fn push_null(&mut self) {
        self.values.push(T::Native::default());
        self.validity.push_null();
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.validity.truncate(len);
    }

    pub(crate) fn finish(&mut self) -> PrimitiveArray<T> {
        let values = ScalarBuffer::from(std::mem::take(&mut self.values));
        PrimitiveArray::new(values, self.validity.finish()).with_data_type(self.data_type.clone())
    }
}
