//! Aggregates over how often each value occurs: HISTOGRAM and ATTR.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Int64Array, MapArray, StructArray},
    buffer::OffsetBuffer,
    compute,
    datatypes::DataType,
};

use super::{
    accumulator::{Accumulator, Input},
    ordered_bytes::OrderedBytes,
    ordered_counts::{OrderedCounts, delegate_counts},
};
use crate::error::{ExecError, ExecResult};

/// Entries of a histogram; further values are not counted, so that a group's state is bounded.
const MAX_ENTRIES: usize = 1000;

/// What the result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A map of values to counts.
    Histogram,
    /// The one value that there is; NULL when there are several. NULL is a value, too.
    OnlyValue,
}

/// See the module.
pub struct Counted {
    shape: Shape,
    output: DataType,
    bytes: OrderedBytes,
    counts: OrderedCounts,
}

impl Counted {
    /// Counts values of type `argument` for a result of type `output`.
    pub fn new(argument: &DataType, output: &DataType, shape: Shape) -> ExecResult<Self> {
        Ok(Self {
            shape,
            output: output.clone(),
            bytes: OrderedBytes::new(argument)?,
            counts: OrderedCounts::default(),
        })
    }

    fn histograms(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let DataType::Map(entries, _) = &self.output else {
            return Err(ExecError::Internal("a histogram is not a map".into()));
        };
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(ExecError::Internal("a map has no entries".into()));
        };
        let of = |group: &u32| self.counts.of(*group);
        let offsets = OffsetBuffer::from_lengths(groups.iter().map(|group| of(group).len()));
        let keys = groups.iter().flat_map(|group| of(group).keys());
        let keys = self.bytes.decode(keys.map(|key| Some(key.as_ref())))?;
        let keys = compute::cast(&keys, fields[0].data_type())?;
        let counts: Int64Array = groups
            .iter()
            .flat_map(|group| of(group).values().copied())
            .collect();
        let structs = StructArray::try_new(fields.clone(), vec![keys, Arc::new(counts)], None)?;
        Ok(Arc::new(MapArray::try_new(
            Arc::clone(entries),
            offsets,
            structs,
            None,
            false,
        )?))
    }
}

impl Accumulator for Counted {
    delegate_counts!();

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let encoded = self.bytes.encode(input.argument()?)?;
        let limit = match self.shape {
            Shape::Histogram => MAX_ENTRIES,
            Shape::OnlyValue => usize::MAX,
        };
        let counts = &mut self.counts;
        let visit = |row: usize, group: usize, diff: i64| {
            counts.add(group, encoded.row(row).data(), diff, limit);
        };
        match self.shape {
            Shape::Histogram => input.for_each(visit),
            Shape::OnlyValue => input.for_each_with_nulls(visit),
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        match self.shape {
            Shape::Histogram => self.histograms(groups),
            Shape::OnlyValue => self.bytes.decode(groups.iter().map(|&group| {
                let counts = self.counts.of(group);
                match counts.len() {
                    1 => counts.keys().next().map(AsRef::as_ref),
                    _ => None,
                }
            })),
        }
    }
}
