//! Aggregates that keep values: COLLECT_LIST, COLLECT_SET, EARLIEST_BY_OFFSET, LATEST_BY_OFFSET, TOPK, TOPKDISTINCT.
//!
//! A group is the list of its values in the order in which they came, in byte form. Where rows are only added, the list is cut to what a later
//! result can still need; where they can be taken back, it holds all, since what is taken back may uncover any of them.
//!
//! State: `count u32 | values, each with its length`.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, ListArray},
    buffer::{NullBuffer, OffsetBuffer},
    compute,
    datatypes::{DataType, FieldRef},
};

use super::{
    accumulator::{Accumulator, Input, read, read_bytes, write_bytes},
    ordered_bytes::OrderedBytes,
};
use crate::{
    error::{ExecError, ExecResult},
    operators::{
        group_array::fit,
        heap::{HeapBytes, block},
    },
};

/// Which of a group's values are its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The first so many, in order.
    First(usize),
    /// The first so many different ones, in order of their first arrival.
    FirstDistinct(usize),
    /// The last so many, in order.
    Last(usize),
    /// The greatest so many, from the greatest on.
    Greatest(usize),
    /// The greatest so many different ones.
    GreatestDistinct(usize),
}

/// See the module.
pub struct Collect {
    choice: Choice,
    ignore_nulls: bool,
    /// Rows can be taken back.
    changing: bool,
    /// The result is one value instead of a list.
    single: bool,
    element: Option<FieldRef>,
    bytes: OrderedBytes,
    groups: Vec<Values>,
    heap: HeapBytes,
}

/// The values of a group.
type Values = Vec<Box<[u8]>>;

/// Bytes of the list, without those of its values.
fn list_bytes(values: &Values) -> usize {
    block(values.capacity() * size_of::<Box<[u8]>>())
}

/// Lets the last value go if there are more than `count`; answers its bytes.
fn cut(values: &mut Values, count: usize) -> usize {
    if values.len() <= count {
        return 0;
    }
    values.pop().map_or(0, |last| block(last.len()))
}

impl Collect {
    /// Values of type `argument`; `output` is that type, for the one value chosen, or a list of it.
    pub fn new(
        argument: &DataType,
        output: &DataType,
        choice: Choice,
        single: bool,
        ignore_nulls: bool,
        changing: bool,
    ) -> ExecResult<Self> {
        let element = match output {
            DataType::List(element) if !single => Some(Arc::clone(element)),
            _ => None,
        };
        Ok(Self {
            choice,
            ignore_nulls,
            changing,
            single,
            element,
            bytes: OrderedBytes::new(argument)?,
            groups: Vec::new(),
            heap: HeapBytes::default(),
        })
    }

    fn add(&mut self, group: usize, value: &[u8]) {
        let values = &mut self.groups[group];
        let (list, length) = (list_bytes(values), values.len());
        let mut replaced = 0;
        match self.choice {
            _ if self.changing => values.push(value.into()),
            Choice::First(count) => {
                if values.len() < count {
                    values.push(value.into());
                }
            }
            Choice::FirstDistinct(count) => {
                if values.len() < count && !values.iter().any(|own| **own == *value) {
                    values.push(value.into());
                }
            }
            Choice::Last(count) => {
                let oldest = (values.len() == count && count > 0).then(|| values.remove(0));
                replaced = oldest.as_ref().map_or(0, |oldest| block(oldest.len()));
                match oldest {
                    // Values of one column often have one length in byte form.
                    Some(mut memory) if memory.len() == value.len() => {
                        memory.copy_from_slice(value);
                        values.push(memory);
                    }
                    _ if count > 0 => values.push(value.into()),
                    _ => {}
                }
            }
            Choice::Greatest(count) => {
                // Behind its equals, so that among them the order of arrival is kept.
                let at = values.partition_point(|own| **own >= *value);
                if at < count {
                    values.insert(at, value.into());
                    replaced = cut(values, count);
                }
            }
            Choice::GreatestDistinct(count) => {
                let at = values.partition_point(|own| **own > *value);
                let known = values.get(at).is_some_and(|own| **own == *value);
                if at < count && !known {
                    values.insert(at, value.into());
                    replaced = cut(values, count);
                }
            }
        }
        let added = values.len() > length || replaced > 0;
        self.heap
            .add(list_bytes(values) + if added { block(value.len()) } else { 0 });
        self.heap.subtract(list + replaced);
    }

    /// The last of equal values goes: those before it keep their places.
    fn take_back(&mut self, group: usize, value: &[u8]) {
        let values = &mut self.groups[group];
        if let Some(at) = values.iter().rposition(|own| **own == *value) {
            values.remove(at);
            self.heap.subtract(block(value.len()));
        }
    }

    /// The chosen values of a group.
    fn chosen(&self, group: u32) -> Vec<&[u8]> {
        let values = || self.groups[group as usize].iter().map(AsRef::as_ref);
        match self.choice {
            Choice::First(count) => values().take(count).collect(),
            Choice::Last(count) => {
                let skipped = values().len().saturating_sub(count);
                values().skip(skipped).collect()
            }
            Choice::FirstDistinct(count) => {
                let mut chosen: Vec<&[u8]> = Vec::new();
                for value in values() {
                    if chosen.len() < count && !chosen.contains(&value) {
                        chosen.push(value);
                    }
                }
                chosen
            }
            Choice::Greatest(count) | Choice::GreatestDistinct(count) => {
                let mut sorted: Vec<&[u8]> = values().collect();
                sorted.sort_by(|a, b| b.cmp(a));
                if matches!(self.choice, Choice::GreatestDistinct(_)) {
                    sorted.dedup();
                }
                sorted.truncate(count);
                sorted
            }
        }
    }
}

impl Accumulator for Collect {
    fn resize(&mut self, groups: usize) {
        fit(&mut self.groups, groups);
    }

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let encoded = self.bytes.encode(input.argument()?)?;
        let ignore_nulls = self.ignore_nulls;
        let visit = |row: usize, group: usize, diff: i64| {
            let value = encoded.row(row);
            if diff > 0 {
                self.add(group, value.data());
            } else {
                self.take_back(group, value.data());
            }
        };
        if ignore_nulls {
            input.for_each(visit);
        } else {
            input.for_each_with_nulls(visit);
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        if self.single {
            let values = groups.iter().map(|&group| match self.choice {
                Choice::Last(1) => self.groups[group as usize].last().map(AsRef::as_ref),
                _ => self.chosen(group).first().copied(),
            });
            return self.bytes.decode(values);
        }
        let element = self
            .element
            .as_ref()
            .ok_or_else(|| ExecError::Internal("a list of values has another type".into()))?;
        let chosen: Vec<Vec<&[u8]>> = groups.iter().map(|&group| self.chosen(group)).collect();
        let offsets = OffsetBuffer::from_lengths(chosen.iter().map(Vec::len));
        let values = self.bytes.decode(chosen.into_iter().flatten().map(Some))?;
        let values = compute::cast(&values, element.data_type())?;
        Ok(Arc::new(ListArray::try_new(
            Arc::clone(element),
            offsets,
            values,
            None::<NullBuffer>,
        )?))
    }

    fn merge(&mut self, into: u32, from: u32) {
        // The session that is merged in is folded behind what is there; both are in the order of their times.
        for value in self.groups[from as usize].clone() {
            self.add(into as usize, &value);
        }
    }

    fn reset(&mut self, group: u32) {
        let values = std::mem::take(&mut self.groups[group as usize]);
        let bytes = values.iter().map(|value| block(value.len()));
        self.heap
            .subtract(list_bytes(&values) + bytes.sum::<usize>());
    }

    fn group_bytes(&self) -> usize {
        size_of::<Values>()
    }

    fn heap_bytes(&self) -> usize {
        self.heap.get()
    }

    fn save(&self, group: u32, out: &mut Vec<u8>) {
        let values = &self.groups[group as usize];
        out.extend_from_slice(&(values.len() as u32).to_le_bytes());
        for value in values {
            write_bytes(value, out);
        }
    }

    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        let count = u32::from_le_bytes(read(bytes)?);
        self.reset(group);
        for _ in 0..count {
            let value = read_bytes(bytes)?;
            self.heap.add(block(value.len()));
            self.groups[group as usize].push(value.into());
        }
        self.heap.add(list_bytes(&self.groups[group as usize]));
        Ok(())
    }
}
