//! EARLIEST_BY_OFFSET and LATEST_BY_OFFSET of one value, over rows that are only added: the value alone, beside those of all other groups.
//!
//! State: `count u32 | the value with its length`, as of a list of values of which one at the most is kept.

use arrow::{array::ArrayRef, datatypes::DataType};

use super::{
    accumulator::{Accumulator, Input, read, read_bytes, write_bytes},
    ordered_bytes::OrderedBytes,
};
use crate::{
    error::ExecResult,
    operators::{group_array::fit, heap::HeapBytes, small_bytes::SmallBytes},
};

/// See the module.
pub struct OneValue {
    /// The first value counts, else the last.
    first: bool,
    ignore_nulls: bool,
    bytes: OrderedBytes,
    values: Vec<Option<SmallBytes>>,
    heap: HeapBytes,
}

impl OneValue {
    /// Values of type `argument`, of which the first counts, or else the last.
    pub fn new(argument: &DataType, first: bool, ignore_nulls: bool) -> ExecResult<Self> {
        Ok(Self {
            first,
            ignore_nulls,
            bytes: OrderedBytes::new(argument)?,
            values: Vec::new(),
            heap: HeapBytes::default(),
        })
    }

    fn add(&mut self, group: usize, value: &[u8]) {
        let apart = SmallBytes::apart(value.len());
        match &mut self.values[group] {
            Some(_) if self.first => {}
            Some(own) => {
                self.heap
                    .change(SmallBytes::apart(own.bytes().len()), apart);
                own.replace(value);
            }
            none => {
                self.heap.add(apart);
                *none = Some(SmallBytes::new(value));
            }
        }
    }
}

impl Accumulator for OneValue {
    fn resize(&mut self, groups: usize) {
        fit(&mut self.values, groups);
    }

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let encoded = self.bytes.encode(input.argument()?)?;
        let ignore_nulls = self.ignore_nulls;
        let visit = |row: usize, group: usize, _| self.add(group, encoded.row(row).data());
        if ignore_nulls {
            input.for_each(visit);
        } else {
            input.for_each_with_nulls(visit);
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let value = |&group: &u32| self.values[group as usize].as_ref().map(SmallBytes::bytes);
        self.bytes.decode(groups.iter().map(value))
    }

    fn merge(&mut self, into: u32, from: u32) {
        // The session that is merged in is folded behind what is there; both are in the order of their times.
        if let Some(value) = self.values[from as usize].clone() {
            self.add(into as usize, value.bytes());
        }
    }

    fn reset(&mut self, group: u32) {
        if let Some(value) = self.values[group as usize].take() {
            self.heap.subtract(SmallBytes::apart(value.bytes().len()));
        }
    }

    fn group_bytes(&self) -> usize {
        size_of::<Option<SmallBytes>>()
    }

    fn heap_bytes(&self) -> usize {
        self.heap.get()
    }

    fn save(&self, group: u32, out: &mut Vec<u8>) {
        let value = &self.values[group as usize];
        out.extend_from_slice(&u32::from(value.is_some()).to_le_bytes());
        if let Some(value) = value {
            write_bytes(value.bytes(), out);
        }
    }

    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        self.reset(group);
        for _ in 0..u32::from_le_bytes(read(bytes)?) {
            self.add(group as usize, read_bytes(bytes)?);
        }
        Ok(())
    }
}
