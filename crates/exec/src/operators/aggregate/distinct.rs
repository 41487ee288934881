//! DISTINCT: only the first of equal values is folded in, only the last one taken back.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, UInt32Array},
    compute,
    datatypes::DataType,
    row::{RowConverter, SortField},
};
use hashbrown::DefaultHashBuilder;

use super::{
    accumulator::{Accumulator, Input, read, read_bytes, write_bytes},
    value_counts::ValueCounts,
};
use crate::{
    error::{ExecError, ExecResult},
    operators::{group_array::fit, heap::HeapBytes, small_bytes::SmallBytes},
};

/// Counts values in front of another accumulator.
pub struct Distinct {
    converter: RowConverter,
    hasher: DefaultHashBuilder,
    seen: Vec<ValueCounts>,
    heap: HeapBytes,
    inner: Box<dyn Accumulator>,
}

impl Distinct {
    /// DISTINCT values of `data_type` in front of `inner`.
    pub fn new(data_type: &DataType, inner: Box<dyn Accumulator>) -> ExecResult<Self> {
        let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
        Ok(Self {
            converter,
            hasher: DefaultHashBuilder::default(),
            seen: Vec::new(),
            heap: HeapBytes::default(),
            inner,
        })
    }

    /// Adds `diff` to a value's count; answers the count before and after.
    fn add(&mut self, group: usize, value: &[u8], diff: i64) -> (i64, i64) {
        let seen = &mut self.seen[group];
        let table = seen.table_bytes();
        let (before, after) = seen.add(&self.hasher, value, diff);
        self.heap.change(table, seen.table_bytes());
        let apart = SmallBytes::apart(value.len());
        match (before, after) {
            (0, 0) => {}
            (0, _) => self.heap.add(apart),
            (_, 0) => self.heap.subtract(apart),
            _ => {}
        }
        (before, after)
    }
}

impl Accumulator for Distinct {
    fn resize(&mut self, groups: usize) {
        fit(&mut self.seen, groups);
        self.inner.resize(groups);
    }

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let values = input.argument()?;
        let encoded = self
            .converter
            .convert_columns(std::slice::from_ref(values))?;
        let (mut rows, mut groups, mut diffs) = (Vec::new(), Vec::new(), Vec::new());
        input.for_each(|row, group, diff| {
            let value = encoded.row(row).data();
            let (before, after) = self.add(group, value, diff);
            if (before > 0) != (after > 0) {
                rows.push(row as u32);
                groups.push(group as u32);
                diffs.push(if after > 0 { 1 } else { -1 });
            }
        });
        if rows.is_empty() {
            return Ok(());
        }
        let values: ArrayRef = compute::take(values, &UInt32Array::from(rows), None)?;
        self.inner.update(Input {
            groups: &groups,
            values: Some(&Arc::clone(&values)),
            filter: None,
            diffs: Some(&diffs),
        })
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        self.inner.evaluate(groups)
    }

    fn merge(&mut self, into: u32, from: u32) {
        // The inner aggregate of both together is not that of each: what both have seen would count twice. It is folded anew.
        let merged = self.seen[from as usize].clone();
        for (value, count) in merged.sorted() {
            self.add(into as usize, value, count);
        }
        self.inner.reset(into);
        let parser = self.converter.parser();
        let values = self.seen[into as usize]
            .sorted()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(value, _)| parser.parse(value));
        let folded = self
            .converter
            .convert_rows(values)
            .map_err(ExecError::from)
            .and_then(|columns| {
                let Some(values) = columns.first() else {
                    return Ok(());
                };
                self.inner.update(Input {
                    groups: &vec![into; values.len()],
                    values: Some(values),
                    filter: None,
                    diffs: None,
                })
            });
        debug_assert!(folded.is_ok(), "values that were folded once fold again");
    }

    fn reset(&mut self, group: u32) {
        let seen = std::mem::take(&mut self.seen[group as usize]);
        self.heap.subtract(seen.heap_bytes());
        self.inner.reset(group);
    }

    fn group_bytes(&self) -> usize {
        size_of::<ValueCounts>() + self.inner.group_bytes()
    }

    fn heap_bytes(&self) -> usize {
        self.heap.get() + self.inner.heap_bytes()
    }

    fn save(&self, group: u32, out: &mut Vec<u8>) {
        let seen = &self.seen[group as usize];
        out.extend_from_slice(&(seen.len() as u64).to_le_bytes());
        for (value, count) in seen.sorted() {
            write_bytes(value, out);
            out.extend_from_slice(&count.to_le_bytes());
        }
        self.inner.save(group, out);
    }

    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        self.reset(group);
        for _ in 0..u64::from_le_bytes(read(bytes)?) {
            let value = read_bytes(bytes)?;
            let count = i64::from_le_bytes(read(bytes)?);
            self.add(group as usize, value, count);
        }
        self.inner.load(group, bytes)
    }
}
