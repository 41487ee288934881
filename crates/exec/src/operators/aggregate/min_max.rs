//! MIN and MAX: the extreme alone where rows are only added, all values with their counts where they can be taken back.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray},
    datatypes::{ArrowNativeTypeOp, DataType, ToByteSlice},
};

use super::{
    accumulator::{Accumulator, Input, read_bytes, write_bytes},
    ordered_bytes::OrderedBytes,
    ordered_counts::{OrderedCounts, delegate_counts},
};
use crate::{
    error::{ExecError, ExecResult},
    operators::{
        group_array::fit,
        heap::{HeapBytes, block},
    },
};

/// MIN or MAX of a fixed-width type, over rows that are only added.
pub struct PrimitiveExtreme<T: ArrowPrimitiveType> {
    max: bool,
    data_type: DataType,
    extremes: Vec<Option<T::Native>>,
}

impl<T: ArrowPrimitiveType> PrimitiveExtreme<T> {
    /// MAX when `max`, else MIN.
    pub fn new(max: bool, data_type: &DataType) -> Self {
        Self {
            max,
            data_type: data_type.clone(),
            extremes: Vec::new(),
        }
    }
}

impl<T: ArrowPrimitiveType> Accumulator for PrimitiveExtreme<T>
where
    T::Native: ArrowNativeTypeOp,
{
    fn resize(&mut self, groups: usize) {
        fit(&mut self.extremes, groups);
    }

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let values = input.argument()?;
        let values = values
            .as_primitive_opt::<T>()
            .ok_or_else(|| ExecError::Internal(format!("MIN or MAX got {}", values.data_type())))?
            .values();
        let max = self.max;
        input.for_each(|row, group, _| {
            let value = values[row];
            let extreme = &mut self.extremes[group];
            if extreme.is_none_or(|extreme| {
                if max {
                    value.is_gt(extreme)
                } else {
                    value.is_lt(extreme)
                }
            }) {
                *extreme = Some(value);
            }
        });
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let values: PrimitiveArray<T> = groups
            .iter()
            .map(|&group| self.extremes[group as usize])
            .collect();
        Ok(Arc::new(values.with_data_type(self.data_type.clone())))
    }

    fn merge(&mut self, into: u32, from: u32) {
        let Some(other) = self.extremes[from as usize] else {
            return;
        };
        let extreme = &mut self.extremes[into as usize];
        *extreme = Some(match *extreme {
            Some(own) if self.max == own.is_gt(other) => own,
            _ => other,
        });
    }

    fn reset(&mut self, group: u32) {
        self.extremes[group as usize] = None;
    }

    fn group_bytes(&self) -> usize {
        size_of::<Option<T::Native>>()
    }

    fn save(&self, group: u32, out: &mut Vec<u8>) {
        match self.extremes[group as usize] {
            Some(value) => write_bytes(value.to_byte_slice(), out),
            None => write_bytes(&[], out),
        }
    }

    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        let stored = read_bytes(bytes)?;
        self.extremes[group as usize] = if stored.is_empty() {
            None
        } else if stored.len() == size_of::<T::Native>() {
            // A buffer of one value: aligned, and checked for length above.
            let buffer = arrow::buffer::Buffer::from(stored);
            arrow::buffer::ScalarBuffer::<T::Native>::new(buffer, 0, 1)
                .first()
                .copied()
        } else {
            return Err(ExecError::Corrupt {
                what: "stored MIN or MAX".into(),
                detail: format!("{} bytes for {}", stored.len(), self.data_type),
            });
        };
        Ok(())
    }
}

/// MIN or MAX of any other type, over rows that are only added.
pub struct BytesExtreme {
    max: bool,
    ordered: OrderedBytes,
    extremes: Vec<Option<Box<[u8]>>>,
    heap: HeapBytes,
}

impl BytesExtreme {
    /// MAX when `max`, else MIN.
    pub fn new(data_type: &DataType, max: bool) -> ExecResult<Self> {
        Ok(Self {
            max,
            ordered: OrderedBytes::new(data_type)?,
            extremes: Vec::new(),
            heap: HeapBytes::default(),
        })
    }
}

/// Bytes of an extreme beside its place.
fn boxed(extreme: &Option<Box<[u8]>>) -> usize {
    extreme.as_ref().map_or(0, |value| block(value.len()))
}

impl Accumulator for BytesExtreme {
    fn resize(&mut self, groups: usize) {
        fit(&mut self.extremes, groups);
    }

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let rows = self.ordered.encode(input.argument()?)?;
        let max = self.max;
        let heap = &mut self.heap;
        input.for_each(|row, group, _| {
            let value = rows.row(row).data();
            let extreme = &mut self.extremes[group];
            if extreme.as_deref().is_none_or(|extreme| {
                if max {
                    value > extreme
                } else {
                    value < extreme
                }
            }) {
                heap.change(boxed(extreme), block(value.len()));
                *extreme = Some(value.into());
            }
        });
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        self.ordered.decode(
            groups
                .iter()
                .map(|&group| self.extremes[group as usize].as_deref()),
        )
    }

    fn merge(&mut self, into: u32, from: u32) {
        let Some(other) = self.extremes[from as usize].clone() else {
            return;
        };
        let extreme = &mut self.extremes[into as usize];
        if extreme
            .as_ref()
            .is_none_or(|own| self.max == (other > *own))
        {
            self.heap.change(boxed(extreme), block(other.len()));
            *extreme = Some(other);
        }
    }

    fn reset(&mut self, group: u32) {
        let extreme = self.extremes[group as usize].take();
        self.heap.subtract(boxed(&extreme));
    }

    fn group_bytes(&self) -> usize {
        size_of::<Option<Box<[u8]>>>()
    }

    fn heap_bytes(&self) -> usize {
        self.heap.get()
    }

    fn save(&self, group: u32, out: &mut Vec<u8>) {
        // An encoded value is never empty, so the empty string stands for none.
        write_bytes(
            self.extremes[group as usize].as_deref().unwrap_or_default(),
            out,
        );
    }

    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        let stored = read_bytes(bytes)?;
        self.reset(group);
        self.heap.add(block(stored.len()));
        self.extremes[group as usize] = (!stored.is_empty()).then(|| stored.into());
        Ok(())
    }
}

/// MIN or MAX over rows that can be taken back: every value with its count.
pub struct Multiset {
    max: bool,
    ordered: OrderedBytes,
    counts: OrderedCounts,
}

impl Multiset {
    /// MAX when `max`, else MIN.
    pub fn new(data_type: &DataType, max: bool) -> ExecResult<Self> {
        Ok(Self {
            max,
            ordered: OrderedBytes::new(data_type)?,
            counts: OrderedCounts::default(),
        })
    }
}

impl Accumulator for Multiset {
    delegate_counts!();

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let rows = self.ordered.encode(input.argument()?)?;
        let counts = &mut self.counts;
        // A value may go below zero within a step, when its removal comes before its arrival.
        input.for_each(|row, group, diff| {
            counts.add(group, rows.row(row).data(), diff, usize::MAX);
        });
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        self.ordered.decode(groups.iter().map(|&group| {
            let mut present = self
                .counts
                .of(group)
                .iter()
                .filter(|(_, count)| **count > 0);
            let extreme = if self.max {
                present.next_back()
            } else {
                present.next()
            };
            extreme.map(|(value, _)| value.as_ref())
        }))
    }
}
