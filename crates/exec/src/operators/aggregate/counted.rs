//! Aggregates over how often each value occurs: HISTOGRAM and ATTR.
//!
//! State: `count u64 | values, each with its length and its count i64`.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{ArrayRef, Int64Array, MapArray, StructArray},
    buffer::OffsetBuffer,
    compute,
    datatypes::DataType,
};

use super::{
    accumulator::{Accumulator, Input, read, read_bytes, write_bytes},
    min_max::merge_counts,
    ordered_bytes::OrderedBytes,
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
    groups: Vec<BTreeMap<Box<[u8]>, i64>>,
}

impl Counted {
    /// Counts values of type `argument` for a result of type `output`.
    pub fn new(argument: &DataType, output: &DataType, shape: Shape) -> ExecResult<Self> {
        Ok(Self {
            shape,
            output: output.clone(),
            bytes: OrderedBytes::new(argument)?,
            groups: Vec::new(),
        })
    }

    fn histograms(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let DataType::Map(entries, _) = &self.output else {
            return Err(ExecError::Internal("a histogram is not a map".into()));
        };
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(ExecError::Internal("a map has no entries".into()));
        };
        let of = |group: &u32| &self.groups[*group as usize];
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
    fn resize(&mut self, groups: usize) {
        self.groups.resize_with(groups, BTreeMap::new);
    }

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let encoded = self.bytes.encode(input.argument()?)?;
        let limit = match self.shape {
            Shape::Histogram => MAX_ENTRIES,
            Shape::OnlyValue => usize::MAX,
        };
        let groups = &mut self.groups;
        let visit = |row: usize, group: usize, diff: i64| {
            let counts = &mut groups[group];
            let row = encoded.row(row);
            let full = counts.len() >= limit;
            match counts.get_mut(row.data()) {
                Some(count) if *count + diff == 0 => {
                    counts.remove(row.data());
                }
                Some(count) => *count += diff,
                None if !full => {
                    counts.insert(row.data().into(), diff);
                }
                None => {}
            }
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
                let counts = &self.groups[group as usize];
                match counts.len() {
                    1 => counts.keys().next().map(AsRef::as_ref),
                    _ => None,
                }
            })),
        }
    }

    fn merge(&mut self, into: u32, from: u32) {
        merge_counts(&mut self.groups, into, from);
    }

    fn reset(&mut self, group: u32) {
        self.groups[group as usize].clear();
    }

    fn save(&self, group: u32, out: &mut Vec<u8>) {
        let counts = &self.groups[group as usize];
        out.extend_from_slice(&(counts.len() as u64).to_le_bytes());
        for (value, count) in counts {
            write_bytes(value, out);
            out.extend_from_slice(&count.to_le_bytes());
        }
    }

    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        let counts = &mut self.groups[group as usize];
        counts.clear();
        for _ in 0..u64::from_le_bytes(read(bytes)?) {
            let value = read_bytes(bytes)?.into();
            counts.insert(value, i64::from_le_bytes(read(bytes)?));
        }
        Ok(())
    }
}
