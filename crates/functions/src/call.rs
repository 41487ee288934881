//! One call over a batch: arguments by row, results into arrays.
//!
//! A constant argument is an array of one row; [`Values::get`] gives it for every row. Arguments have the types that the overload was resolved to,
//! so taking one as another type is a mistake of ours and panics in the first test that calls the function.

use std::{ops::Range, sync::Arc};

use arrow::{
    array::{
        Array, ArrayAccessor, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BinaryBuilder,
        BooleanArray, BooleanBuilder, ListArray, MapArray, PrimitiveArray, PrimitiveBuilder,
        StringArray, StringBuilder,
    },
    datatypes::{
        DataType, Date32Type, Float64Type, Int32Type, Int64Type, Time32MillisecondType,
        TimestampMillisecondType,
    },
};

use crate::row_errors::report;

/// What a row gives: a value, NULL, or the reason why it has no value.
pub(crate) type Row<T> = Result<Option<T>, String>;

/// Takes a value out of an option, or makes the row NULL.
macro_rules! value {
    ($option:expr) => {
        match $option {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}
pub(crate) use value;

/// An argument.
pub(crate) struct Arg {
    pub array: ArrayRef,
    /// It has one row that stands for all.
    pub constant: bool,
}

/// Typed access to an argument.
pub(crate) struct Values<'a, A> {
    array: &'a A,
    constant: bool,
}

impl<A> Clone for Values<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Values<'_, A> {}

impl<'a, A> Values<'a, A>
where
    &'a A: ArrayAccessor,
{
    /// The value of a row, unless it is NULL.
    pub fn get(&self, row: usize) -> Option<<&'a A as ArrayAccessor>::Item> {
        let row = if self.constant { 0 } else { row };
        self.array.is_valid(row).then(|| self.array.value(row))
    }
}

/// A list argument: where each row's elements stand among all of them.
pub(crate) struct Lists<'a> {
    array: &'a ListArray,
    elements: ArrayRef,
    constant: bool,
}

impl<'a> Lists<'a> {
    fn new(array: &'a ListArray, constant: bool) -> Self {
        Self {
            array,
            elements: in_use(array.values(), array.value_offsets()),
            constant,
        }
    }

    /// The elements of all rows.
    pub fn elements(&self) -> &ArrayRef {
        &self.elements
    }

    /// Where the row's elements are, unless it is NULL.
    pub fn get(&self, row: usize) -> Option<Range<usize>> {
        let row = if self.constant { 0 } else { row };
        self.array
            .is_valid(row)
            .then(|| range_of(self.array.value_offsets(), row))
    }
}

/// A map argument: where each row's entries stand among all of them.
pub(crate) struct Maps<'a> {
    array: &'a MapArray,
    keys: ArrayRef,
    values: ArrayRef,
    constant: bool,
}

impl<'a> Maps<'a> {
    fn new(array: &'a MapArray, constant: bool) -> Self {
        Self {
            array,
            keys: in_use(array.keys(), array.value_offsets()),
            values: in_use(array.values(), array.value_offsets()),
            constant,
        }
    }

    /// The keys of all rows.
    pub fn keys(&self) -> &ArrayRef {
        &self.keys
    }

    /// The values of all rows.
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Where the row's entries are, unless it is NULL.
    pub fn get(&self, row: usize) -> Option<Range<usize>> {
        let row = if self.constant { 0 } else { row };
        self.array
            .is_valid(row)
            .then(|| range_of(self.array.value_offsets(), row))
    }
}

/// The part of the elements that the rows refer to: a slice of a batch refers to a few of them, and must not pay for all.
pub(crate) fn in_use(elements: &ArrayRef, offsets: &[i32]) -> ArrayRef {
    match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => elements.slice(position(*first), position(last - first)),
        _ => elements.slice(0, 0),
    }
}

/// Where a row's elements are among those [`in_use`].
pub(crate) fn range_of(offsets: &[i32], row: usize) -> Range<usize> {
    position(offsets[row] - offsets[0])..position(offsets[row + 1] - offsets[0])
}

/// An offset of a list; Arrow's are never negative.
fn position(offset: i32) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

/// See the module.
pub(crate) struct Call<'a> {
    args: Vec<Arg>,
    rows: usize,
    return_type: &'a DataType,
}

impl<'a> Call<'a> {
    pub fn new(args: Vec<Arg>, rows: usize, return_type: &'a DataType) -> Self {
        Self {
            args,
            rows,
            return_type,
        }
    }

    /// Number of rows that the result must have.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of arguments.
    pub fn count(&self) -> usize {
        self.args.len()
    }

    /// The type that the result must have.
    pub fn return_type(&self) -> &'a DataType {
        self.return_type
    }

    /// Runs `body` on the same arguments with another return type, for results that are cast afterwards.
    pub fn with_return_type<R>(&self, return_type: &DataType, body: impl FnOnce(&Call) -> R) -> R {
        let args = self
            .args
            .iter()
            .map(|arg| Arg {
                array: Arc::clone(&arg.array),
                constant: arg.constant,
            })
            .collect();
        body(&Call::new(args, self.rows, return_type))
    }

    /// An argument as it is.
    pub fn arg(&self, position: usize) -> &Arg {
        &self.args[position]
    }

    /// An argument with one row for each row of the call.
    pub fn expanded(&self, position: usize) -> datafusion::common::Result<ArrayRef> {
        let arg = &self.args[position];
        if !arg.constant || self.rows == 1 {
            return Ok(Arc::clone(&arg.array));
        }
        let zeros = arrow::array::UInt32Array::from_value(0, self.rows);
        Ok(arrow::compute::take(&arg.array, &zeros, None)?)
    }

    pub fn text(&self, position: usize) -> Values<'_, StringArray> {
        let arg = &self.args[position];
        Values {
            array: arg.array.as_string(),
            constant: arg.constant,
        }
    }

    /// All arguments from `first` on, as text.
    pub fn texts_from(&self, first: usize) -> Vec<Values<'_, StringArray>> {
        (first..self.count())
            .map(|position| self.text(position))
            .collect()
    }

    pub fn bytes(&self, position: usize) -> Values<'_, BinaryArray> {
        let arg = &self.args[position];
        Values {
            array: arg.array.as_binary(),
            constant: arg.constant,
        }
    }

    pub fn boolean(&self, position: usize) -> Values<'_, BooleanArray> {
        let arg = &self.args[position];
        Values {
            array: arg.array.as_boolean(),
            constant: arg.constant,
        }
    }

    /// An argument of any type that is stored as numbers.
    pub fn primitive<T: ArrowPrimitiveType>(
        &self,
        position: usize,
    ) -> Values<'_, PrimitiveArray<T>> {
        let arg = &self.args[position];
        Values {
            array: arg.array.as_primitive(),
            constant: arg.constant,
        }
    }

    pub fn int(&self, position: usize) -> Values<'_, PrimitiveArray<Int32Type>> {
        self.primitive(position)
    }

    pub fn bigint(&self, position: usize) -> Values<'_, PrimitiveArray<Int64Type>> {
        self.primitive(position)
    }

    pub fn double(&self, position: usize) -> Values<'_, PrimitiveArray<Float64Type>> {
        self.primitive(position)
    }

    pub fn date(&self, position: usize) -> Values<'_, PrimitiveArray<Date32Type>> {
        self.primitive(position)
    }

    pub fn time(&self, position: usize) -> Values<'_, PrimitiveArray<Time32MillisecondType>> {
        self.primitive(position)
    }

    pub fn timestamp(
        &self,
        position: usize,
    ) -> Values<'_, PrimitiveArray<TimestampMillisecondType>> {
        self.primitive(position)
    }

    pub fn list(&self, position: usize) -> Lists<'_> {
        let arg = &self.args[position];
        Lists::new(arg.array.as_list(), arg.constant)
    }

    pub fn map(&self, position: usize) -> Maps<'_> {
        let arg = &self.args[position];
        Maps::new(arg.array.as_map(), arg.constant)
    }

    /// A column of numbers (or dates, times, decimals) of the call's return type.
    pub fn numbers<T: ArrowPrimitiveType>(
        &self,
        mut row_value: impl FnMut(usize) -> Row<T::Native>,
    ) -> ArrayRef {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.rows);
        for row in 0..self.rows {
            builder.append_option(settle(row_value(row)));
        }
        Arc::new(builder.finish().with_data_type(self.return_type.clone()))
    }

    pub fn booleans(&self, mut row_value: impl FnMut(usize) -> Row<bool>) -> ArrayRef {
        let mut builder = BooleanBuilder::with_capacity(self.rows);
        for row in 0..self.rows {
            builder.append_option(settle(row_value(row)));
        }
        Arc::new(builder.finish())
    }

    /// A column of texts that exist already, whole.
    pub fn texts<S: AsRef<str>>(&self, mut row_value: impl FnMut(usize) -> Row<S>) -> ArrayRef {
        let mut builder = StringBuilder::with_capacity(self.rows, 0);
        for row in 0..self.rows {
            builder.append_option(settle(row_value(row)));
        }
        Arc::new(builder.finish())
    }

    /// A column of texts that are written into one buffer.
    pub fn write_texts(
        &self,
        mut write_row: impl FnMut(usize, &mut String) -> Row<()>,
    ) -> ArrayRef {
        let mut builder = StringBuilder::with_capacity(self.rows, 0);
        let mut text = String::new();
        for row in 0..self.rows {
            text.clear();
            match settle(write_row(row, &mut text)) {
                Some(()) => builder.append_value(&text),
                None => builder.append_null(),
            }
        }
        Arc::new(builder.finish())
    }

    /// A column of bytes that are written into one buffer.
    pub fn write_bytes(
        &self,
        mut write_row: impl FnMut(usize, &mut Vec<u8>) -> Row<()>,
    ) -> ArrayRef {
        let mut builder = BinaryBuilder::with_capacity(self.rows, 0);
        let mut bytes = Vec::new();
        for row in 0..self.rows {
            bytes.clear();
            match settle(write_row(row, &mut bytes)) {
                Some(()) => builder.append_value(&bytes),
                None => builder.append_null(),
            }
        }
        Arc::new(builder.finish())
    }
}

/// Reports a row without a value.
pub(crate) fn settle<T>(row: Row<T>) -> Option<T> {
    row.unwrap_or_else(|reason| {
        report(reason);
        None
    })
}
