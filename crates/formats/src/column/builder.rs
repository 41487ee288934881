//! One column of any SQL type.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, BooleanArray, BooleanBufferBuilder, ListArray, MapArray, StructArray},
    buffer::{OffsetBuffer, ScalarBuffer},
    datatypes::{
        BinaryType, DataType, Date32Type, Decimal128Type, Decimal256Type, FieldRef, Fields,
        Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType, TimeUnit,
        TimestampMillisecondType, Utf8Type,
    },
    error::ArrowError,
};

use super::{fixed::FixedColumn, validity::Validity, varlen::VarlenColumn};

/// A column that grows row by row. The nested kinds own their children.
#[derive(Debug)]
pub(crate) enum ColumnBuilder {
    Boolean {
        values: BooleanBufferBuilder,
        validity: Validity,
    },
    Int16(FixedColumn<Int16Type>),
    Int32(FixedColumn<Int32Type>),
    Int64(FixedColumn<Int64Type>),
    Float32(FixedColumn<Float32Type>),
    Float64(FixedColumn<Float64Type>),
    Decimal128(FixedColumn<Decimal128Type>, u8, i8),
    Decimal256(FixedColumn<Decimal256Type>, u8, i8),
    Date(FixedColumn<Date32Type>),
    Time(FixedColumn<Time32MillisecondType>),
    Timestamp(FixedColumn<TimestampMillisecondType>),
    Utf8(VarlenColumn),
    Binary(VarlenColumn),
    List(Box<ListColumn>),
    Map(Box<MapColumn>),
    Struct(Box<StructColumn>),
    /// Nobody reads it: its values are judged in a column that is always empty again afterwards. It counts no rows.
    Judged(Box<ColumnBuilder>),
}

/// Lists: offsets into one child column.
#[derive(Debug)]
pub(crate) struct ListColumn {
    field: FieldRef,
    offsets: Vec<i32>,
    validity: Validity,
    pub(crate) values: ColumnBuilder,
}

/// Maps: offsets into a key and a value column.
#[derive(Debug)]
pub(crate) struct MapColumn {
    field: FieldRef,
    entry_fields: Fields,
    sorted: bool,
    offsets: Vec<i32>,
    validity: Validity,
    pub(crate) keys: VarlenColumn,
    pub(crate) values: ColumnBuilder,
}

/// Structs: children of the same length.
#[derive(Debug)]
pub(crate) struct StructColumn {
    fields: Fields,
    validity: Validity,
    pub(crate) children: Vec<ColumnBuilder>,
}

impl ColumnBuilder {
    /// A column of `data_type`, or `None` for a type that no SQL type maps to.
    pub(crate) fn new(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Boolean {
                values: BooleanBufferBuilder::new(0),
                validity: Validity::default(),
            },
            DataType::Int16 => Self::Int16(FixedColumn::new(data_type.clone())),
            DataType::Int32 => Self::Int32(FixedColumn::new(data_type.clone())),
            DataType::Int64 => Self::Int64(FixedColumn::new(data_type.clone())),
            DataType::Float32 => Self::Float32(FixedColumn::new(data_type.clone())),
            DataType::Float64 => Self::Float64(FixedColumn::new(data_type.clone())),
            DataType::Decimal128(precision, scale) => {
                Self::Decimal128(FixedColumn::new(data_type.clone()), *precision, *scale)
            }
            DataType::Decimal256(precision, scale) => {
                Self::Decimal256(FixedColumn::new(data_type.clone()), *precision, *scale)
            }
            DataType::Date32 => Self::Date(FixedColumn::new(data_type.clone())),
            DataType::Time32(TimeUnit::Millisecond) => {
                Self::Time(FixedColumn::new(data_type.clone()))
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                Self::Timestamp(FixedColumn::new(data_type.clone()))
            }
            DataType::Utf8 => Self::Utf8(VarlenColumn::new()),
            DataType::Binary => Self::Binary(VarlenColumn::new()),
            DataType::List(field) => Self::List(Box::new(ListColumn::new(field)?)),
            DataType::Map(field, sorted) => Self::Map(Box::new(MapColumn::new(field, *sorted)?)),
            DataType::Struct(fields) => Self::Struct(Box::new(StructColumn::new(fields)?)),
            _ => return None,
        })
    }

    /// Rows so far.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Boolean { validity, .. } => validity.len(),
            Self::Int16(column) => column.len(),
            Self::Int32(column) => column.len(),
            Self::Int64(column) => column.len(),
            Self::Float32(column) => column.len(),
            Self::Float64(column) => column.len(),
            Self::Decimal128(column, ..) => column.len(),
            Self::Decimal256(column, ..) => column.len(),
            Self::Date(column) => column.len(),
            Self::Time(column) => column.len(),
            Self::Timestamp(column) => column.len(),
            Self::Utf8(column) | Self::Binary(column) => column.len(),
            Self::List(column) => column.validity.len(),
            Self::Map(column) => column.validity.len(),
            Self::Struct(column) => column.validity.len(),
            Self::Judged(_) => 0,
        }
    }

    /// Makes room for `rows` more.
    pub(crate) fn reserve(&mut self, rows: usize) {
        match self {
            Self::Boolean { values, .. } => values.reserve(rows),
            Self::Int16(column) => column.reserve(rows),
            Self::Int32(column) => column.reserve(rows),
            Self::Int64(column) => column.reserve(rows),
            Self::Float32(column) => column.reserve(rows),
            Self::Float64(column) => column.reserve(rows),
            Self::Decimal128(column, ..) => column.reserve(rows),
            Self::Decimal256(column, ..) => column.reserve(rows),
            Self::Date(column) => column.reserve(rows),
            Self::Time(column) => column.reserve(rows),
            Self::Timestamp(column) => column.reserve(rows),
            Self::Utf8(column) | Self::Binary(column) => column.reserve(rows),
            Self::List(column) => column.offsets.reserve(rows),
            Self::Map(column) => column.offsets.reserve(rows),
            Self::Struct(column) => column
                .children
                .iter_mut()
                .for_each(|child| child.reserve(rows)),
            Self::Judged(_) => {}
        }
    }

    /// Appends a NULL row.
    pub(crate) fn push_null(&mut self) {
        match self {
            Self::Boolean { values, validity } => {
                values.append(false);
                validity.push_null();
            }
            Self::Int16(column) => column.push_null(),
            Self::Int32(column) => column.push_null(),
            Self::Int64(column) => column.push_null(),
            Self::Float32(column) => column.push_null(),
            Self::Float64(column) => column.push_null(),
            Self::Decimal128(column, ..) => column.push_null(),
            Self::Decimal256(column, ..) => column.push_null(),
            Self::Date(column) => column.push_null(),
            Self::Time(column) => column.push_null(),
            Self::Timestamp(column) => column.push_null(),
            Self::Utf8(column) | Self::Binary(column) => column.push_null(),
            Self::List(column) => column.push_null(),
            Self::Map(column) => column.push_null(),
            Self::Struct(column) => column.push_null(),
            Self::Judged(_) => {}
        }
    }

    /// Drops the rows from `len` on, and whatever a half-written row left in the children.
    pub(crate) fn truncate(&mut self, len: usize) {
        match self {
            Self::Boolean { values, validity } => {
                values.truncate(len);
                validity.truncate(len);
            }
            Self::Int16(column) => column.truncate(len),
            Self::Int32(column) => column.truncate(len),
            Self::Int64(column) => column.truncate(len),
            Self::Float32(column) => column.truncate(len),
            Self::Float64(column) => column.truncate(len),
            Self::Decimal128(column, ..) => column.truncate(len),
            Self::Decimal256(column, ..) => column.truncate(len),
            Self::Date(column) => column.truncate(len),
            Self::Time(column) => column.truncate(len),
            Self::Timestamp(column) => column.truncate(len),
            Self::Utf8(column) | Self::Binary(column) => column.truncate(len),
            Self::List(column) => column.truncate(len),
            Self::Map(column) => column.truncate(len),
            Self::Struct(column) => column.truncate(len),
            Self::Judged(_) => {}
        }
    }

    /// Takes the rows as an array and starts over.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Boolean { values, validity } => {
                Arc::new(BooleanArray::new(values.finish(), validity.finish()))
            }
            Self::Int16(column) => Arc::new(column.finish()),
            Self::Int32(column) => Arc::new(column.finish()),
            Self::Int64(column) => Arc::new(column.finish()),
            Self::Float32(column) => Arc::new(column.finish()),
            Self::Float64(column) => Arc::new(column.finish()),
            Self::Decimal128(column, ..) => Arc::new(column.finish()),
            Self::Decimal256(column, ..) => Arc::new(column.finish()),
            Self::Date(column) => Arc::new(column.finish()),
            Self::Time(column) => Arc::new(column.finish()),
            Self::Timestamp(column) => Arc::new(column.finish()),
            Self::Utf8(column) => Arc::new(column.finish::<Utf8Type>()?),
            Self::Binary(column) => Arc::new(column.finish::<BinaryType>()?),
            Self::List(column) => Arc::new(column.finish()?),
            Self::Map(column) => Arc::new(column.finish()?),
            Self::Struct(column) => Arc::new(column.finish()?),
            Self::Judged(column) => column.finish()?,
        })
    }
}

impl ListColumn {
    fn new(field: &FieldRef) -> Option<Self> {
        let values = ColumnBuilder::new(field.data_type())?;
        Some(Self {
            field: Arc::clone(field),
            offsets: vec![0],
            validity: Validity::default(),
            values,
        })
    }

    /// Ends a list: its elements are what was appended to `values` since the list before it.
    pub(crate) fn finish_row(&mut self) {
        self.offsets.push(offset(self.values.len()));
        self.validity.push_valid();
    }

    fn push_null(&mut self) {
        self.offsets.push(last(&self.offsets));
        self.validity.push_null();
    }

    fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len + 1);
        self.validity.truncate(len);
        self.values.truncate(as_len(last(&self.offsets)));
    }

    fn finish(&mut self) -> Result<ListArray, ArrowError> {
        let values = self.values.finish()?;
        ListArray::try_new(
            Arc::clone(&self.field),
            take_offsets(&mut self.offsets),
            values,
            self.validity.finish(),
        )
    }
}

impl MapColumn {
    fn new(field: &FieldRef, sorted: bool) -> Option<Self> {
        let DataType::Struct(entry_fields) = field.data_type() else {
            return None;
        };
        let [key, value] = entry_fields.as_ref() else {
            return None;
        };
        if key.data_type() != &DataType::Utf8 {
            return None;
        }
        let values = ColumnBuilder::new(value.data_type())?;
        Some(Self {
            field: Arc::clone(field),
            entry_fields: entry_fields.clone(),
            sorted,
            offsets: vec![0],
            validity: Validity::default(),
            keys: VarlenColumn::new(),
            values,
        })
    }

    /// Index of the first entry of the map that is being written.
    pub(crate) fn row_start(&self) -> usize {
        as_len(last(&self.offsets))
    }

    /// Ends a map: its entries are what was appended to `keys` and `values` since the map before it.
    pub(crate) fn finish_row(&mut self) {
        self.offsets.push(offset(self.values.len()));
        self.validity.push_valid();
    }

    fn push_null(&mut self) {
        self.offsets.push(last(&self.offsets));
        self.validity.push_null();
    }

    fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len + 1);
        self.validity.truncate(len);
        let entries = as_len(last(&self.offsets));
        self.keys.truncate(entries);
        self.values.truncate(entries);
    }

    fn finish(&mut self) -> Result<MapArray, ArrowError> {
        let keys: ArrayRef = Arc::new(self.keys.finish::<Utf8Type>()?);
        let entries = StructArray::try_new(
            self.entry_fields.clone(),
            vec![keys, self.values.finish()?],
            None,
        )?;
        MapArray::try_new(
            Arc::clone(&self.field),
            take_offsets(&mut self.offsets),
            entries,
            self.validity.finish(),
            self.sorted,
        )
    }
}

impl StructColumn {
    fn new(fields: &Fields) -> Option<Self> {
        let children = fields
            .iter()
            .map(|field| ColumnBuilder::new(field.data_type()))
            .collect::<Option<Vec<_>>>()?;
        Some(Self {
            fields: fields.clone(),
            validity: Validity::default(),
            children,
        })
    }

    /// Ends a struct; every child has its row by now.
    pub(crate) fn finish_row(&mut self) {
        self.validity.push_valid();
    }

    /// Rows that are complete.
    pub(crate) fn len(&self) -> usize {
        self.validity.len()
    }

    fn push_null(&mut self) {
        self.validity.push_null();
        for child in &mut self.children {
            child.push_null();
        }
    }

    fn truncate(&mut self, len: usize) {
        self.validity.truncate(len);
        for child in &mut self.children {
            child.truncate(len);
        }
    }

    fn finish(&mut self) -> Result<StructArray, ArrowError> {
        let len = self.validity.len();
        let children = self
            .children
            .iter_mut()
            .map(ColumnBuilder::finish)
            .collect::<Result<Vec<_>, _>>()?;
        StructArray::try_new_with_length(self.fields.clone(), children, self.validity.finish(), len)
    }
}

/// A child's length as an offset. A run is bounded far below `i32::MAX` bytes and an element takes at least one.
fn offset(len: usize) -> i32 {
    i32::try_from(len).unwrap_or(i32::MAX)
}

fn last(offsets: &[i32]) -> i32 {
    offsets.last().copied().unwrap_or(0)
}

fn as_len(offset: i32) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

fn take_offsets(offsets: &mut Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(offsets, vec![0])))
}
