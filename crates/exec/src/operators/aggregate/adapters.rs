//! Accumulators in front of another one: the elements of lists as values, and zero where there is nothing.

use arrow::{
    array::{ArrayRef, AsArray, Scalar, new_null_array},
    compute::{self, CastOptions, kernels::zip::zip},
    datatypes::DataType,
};
use datafusion::common::ScalarValue;

use super::accumulator::{Accumulator, Input};
use crate::error::{ExecError, ExecResult};

/// The part of [`Accumulator`] that the inner one does.
macro_rules! delegate_state {
    () => {
        fn resize(&mut self, groups: usize) {
            self.inner.resize(groups);
        }

        fn merge(&mut self, into: u32, from: u32) {
            self.inner.merge(into, from);
        }

        fn reset(&mut self, group: u32) {
            self.inner.reset(group);
        }

        fn group_bytes(&self) -> usize {
            self.inner.group_bytes()
        }

        fn heap_bytes(&self) -> usize {
            self.inner.heap_bytes()
        }

        fn save(&self, group: u32, out: &mut Vec<u8>) {
            self.inner.save(group, out);
        }

        fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
            self.inner.load(group, bytes)
        }
    };
}

/// Folds every element of a list: SUM_LIST.
pub struct Elements {
    inner: Box<dyn Accumulator>,
}

impl Elements {
    /// In front of the aggregate of the elements.
    pub fn new(inner: Box<dyn Accumulator>) -> Self {
        Self { inner }
    }
}

impl Accumulator for Elements {
    delegate_state!();

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let lists = input
            .argument()?
            .as_list_opt::<i32>()
            .ok_or_else(|| ExecError::Internal("an aggregate of lists got no list".into()))?;
        let (mut indices, mut groups, mut diffs) = (Vec::new(), Vec::new(), Vec::new());
        input.for_each(|row, group, diff| {
            let range = lists.value_offsets()[row]..lists.value_offsets()[row + 1];
            for element in range {
                indices.push(element as u32);
                groups.push(group as u32);
                diffs.push(if diff > 0 { 1 } else { -1 });
            }
        });
        let indices = arrow::array::UInt32Array::from(indices);
        let values = compute::take(lists.values(), &indices, None)?;
        self.inner.update(Input {
            groups: &groups,
            values: Some(&values),
            filter: None,
            diffs: Some(&diffs),
        })
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        self.inner.evaluate(groups)
    }
}

/// ksqlDB's SUM and AVG: of the type that the dialect says, and zero where no value is.
pub struct OrZero {
    inner: Box<dyn Accumulator>,
    zero: Scalar<ArrayRef>,
    output: DataType,
}

impl OrZero {
    /// In front of an aggregate that is NULL over nothing.
    pub fn new(inner: Box<dyn Accumulator>, output: &DataType) -> ExecResult<Self> {
        let zero = ScalarValue::new_zero(output)
            .and_then(|zero| zero.to_array())
            .map_err(|error| ExecError::Unsupported(error.to_string()))?;
        Ok(Self {
            inner,
            zero: Scalar::new(zero),
            output: output.clone(),
        })
    }
}

impl Accumulator for OrZero {
    delegate_state!();

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        self.inner.update(input)
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let values = self.inner.evaluate(groups)?;
        let empty = compute::is_null(&values)?;
        // A sum beyond the range of its type is NULL.
        let cast = compute::cast_with_options(&values, &self.output, &CastOptions::default())?;
        if empty.true_count() == 0 {
            return Ok(cast);
        }
        if groups.is_empty() {
            return Ok(new_null_array(&self.output, 0));
        }
        Ok(zip(&empty, &self.zero, &cast)?)
    }
}
