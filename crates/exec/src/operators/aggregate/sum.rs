//! SUM and AVG.
//!
//! Integers are summed in 128 bits, so that a sum which leaves the range of its type and comes back is still right. Floating-point sums keep
//! what is not finite apart as counts: infinity minus infinity would never come back to a number.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array},
    compute,
    datatypes::{DataType, Decimal128Type, Float64Type, Int64Type},
};

use super::accumulator::{Accumulator, Input, read};
use crate::{
    error::{ExecError, ExecResult},
    operators::group_array::fit,
};

/// Digits that AVG of a decimal has more than its argument (DataFusion's rule).
const AVG_EXTRA_SCALE: i8 = 4;

/// Exact sums with the number of values.
#[derive(Default)]
struct ExactSums {
    sums: Vec<i128>,
    counts: Vec<i64>,
}

impl ExactSums {
    fn resize(&mut self, groups: usize) {
        fit(&mut self.sums, groups);
        fit(&mut self.counts, groups);
    }

    fn add(&mut self, group: usize, value: i128, diff: i64) {
        self.sums[group] = self.sums[group].wrapping_add(value.wrapping_mul(i128::from(diff)));
        self.counts[group] += diff;
    }

    fn get(&self, group: u32) -> Option<(i128, i64)> {
        let count = self.counts[group as usize];
        (count != 0).then(|| (self.sums[group as usize], count))
    }

    fn merge(&mut self, into: u32, from: u32) {
        let (sum, count) = (self.sums[from as usize], self.counts[from as usize]);
        self.sums[into as usize] = self.sums[into as usize].wrapping_add(sum);
        self.counts[into as usize] += count;
    }

    fn reset(&mut self, group: u32) {
        self.sums[group as usize] = 0;
        self.counts[group as usize] = 0;
    }

    fn group_bytes(&self) -> usize {
        size_of::<i128>() + size_of::<i64>()
    }

    fn save(&self, group: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sums[group as usize].to_le_bytes());
        out.extend_from_slice(&self.counts[group as usize].to_le_bytes());
    }

    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        self.sums[group as usize] = i128::from_le_bytes(read(bytes)?);
        self.counts[group as usize] = i64::from_le_bytes(read(bytes)?);
        Ok(())
    }
}

/// The part of [`Accumulator`] that only concerns where the sums are kept.
macro_rules! delegate_state {
    ($field:ident) => {
        fn resize(&mut self, groups: usize) {
            self.$field.resize(groups);
        }

        fn merge(&mut self, into: u32, from: u32) {
            self.$field.merge(into, from);
        }

        fn reset(&mut self, group: u32) {
            self.$field.reset(group);
        }

        fn group_bytes(&self) -> usize {
            self.$field.group_bytes()
        }

        fn save(&self, group: u32, out: &mut Vec<u8>) {
            self.$field.save(group, out);
        }

        fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
            self.$field.load(group, bytes)
        }
    };
}

/// SUM of integers as BIGINT. A sum beyond BIGINT is NULL.
#[derive(Default)]
pub struct SumInteger {
    exact: ExactSums,
}

impl Accumulator for SumInteger {
    delegate_state!(exact);

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let values = compute::cast(input.argument()?, &DataType::Int64)?;
        let values = values.as_primitive::<Int64Type>().values();
        input.for_each(|row, group, diff| self.exact.add(group, i128::from(values[row]), diff));
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let sums = groups.iter().map(|&group| {
            self.exact
                .get(group)
                .and_then(|(sum, _)| i64::try_from(sum).ok())
        });
        Ok(Arc::new(sums.collect::<Int64Array>()))
    }
}

/// SUM of decimals.
pub struct SumDecimal {
    exact: ExactSums,
    output_type: DataType,
}

impl SumDecimal {
    /// `output_type` has the argument's scale.
    pub fn new(output_type: DataType) -> Self {
        Self {
            exact: ExactSums::default(),
            output_type,
        }
    }
}

impl Accumulator for SumDecimal {
    delegate_state!(exact);

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let values = decimals(input.argument()?)?.values();
        input.for_each(|row, group, diff| self.exact.add(group, values[row], diff));
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let sums = groups
            .iter()
            .map(|&group| self.exact.get(group).map(|(sum, _)| sum));
        Ok(Arc::new(
            sums.collect::<Decimal128Array>()
                .with_data_type(self.output_type.clone()),
        ))
    }
}

/// AVG of decimals, truncated at the output's scale as DataFusion's batch AVG is.
pub struct AvgDecimal {
    exact: ExactSums,
    output_type: DataType,
    factor: i128,
}

impl AvgDecimal {
    /// `scale` is the argument's.
    pub fn new(output_type: DataType, scale: i8) -> Self {
        let output_scale = match output_type {
            DataType::Decimal128(_, scale) => scale,
            _ => scale.saturating_add(AVG_EXTRA_SCALE),
        };
        let factor = 10_i128
            .checked_pow(u32::try_from(output_scale - scale).unwrap_or(0))
            .unwrap_or(1);
        Self {
            exact: ExactSums::default(),
            output_type,
            factor,
        }
    }
}

impl Accumulator for AvgDecimal {
    delegate_state!(exact);

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let values = decimals(input.argument()?)?.values();
        input.for_each(|row, group, diff| self.exact.add(group, values[row], diff));
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let means = groups.iter().map(|&group| {
            let (sum, count) = self.exact.get(group)?;
            Some(sum.checked_mul(self.factor)? / i128::from(count))
        });
        Ok(Arc::new(
            means
                .collect::<Decimal128Array>()
                .with_data_type(self.output_type.clone()),
        ))
    }
}

fn decimals(values: &ArrayRef) -> ExecResult<&Decimal128Array> {
    values.as_primitive_opt::<Decimal128Type>().ok_or_else(|| {
        ExecError::Internal(format!("a decimal aggregate got {}", values.data_type()))
    })
}

/// Sum of finite values and counts of the others.
#[derive(Debug, Clone, Copy, Default)]
struct FloatSum {
    finite: f64,
    count: i64,
    nan: i64,
    positive: i64,
    negative: i64,
}

impl FloatSum {
    fn add(&mut self, value: f64, diff: i64) {
        self.count += diff;
        if value.is_finite() {
            self.finite += value * diff as f64;
        } else if value.is_nan() {
            self.nan += diff;
        } else if value > 0.0 {
            self.positive += diff;
        } else {
            self.negative += diff;
        }
    }

    fn sum(&self) -> f64 {
        match (self.nan > 0, self.positive > 0, self.negative > 0) {
            (true, _, _) | (_, true, true) => f64::NAN,
            (_, true, false) => f64::INFINITY,
            (_, false, true) => f64::NEG_INFINITY,
            (false, false, false) => self.finite,
        }
    }
}

#[derive(Default)]
struct FloatSums(Vec<FloatSum>);

impl FloatSums {
    fn resize(&mut self, groups: usize) {
        fit(&mut self.0, groups);
    }

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let argument = input.argument()?;
        let cast;
        let values = match argument.as_primitive_opt::<Float64Type>() {
            Some(values) => values.values(),
            None => {
                cast = compute::cast(argument, &DataType::Float64)?;
                cast.as_primitive::<Float64Type>().values()
            }
        };
        input.for_each(|row, group, diff| self.0[group].add(values[row], diff));
        Ok(())
    }

    fn merge(&mut self, into: u32, from: u32) {
        let other = self.0[from as usize];
        let own = &mut self.0[into as usize];
        own.finite += other.finite;
        own.count += other.count;
        own.nan += other.nan;
        own.positive += other.positive;
        own.negative += other.negative;
    }

    fn reset(&mut self, group: u32) {
        self.0[group as usize] = FloatSum::default();
    }

    fn group_bytes(&self) -> usize {
        size_of::<FloatSum>()
    }

    fn save(&self, group: u32, out: &mut Vec<u8>) {
        let sum = &self.0[group as usize];
        out.extend_from_slice(&sum.finite.to_le_bytes());
        for count in [sum.count, sum.nan, sum.positive, sum.negative] {
            out.extend_from_slice(&count.to_le_bytes());
        }
    }

    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        self.0[group as usize] = FloatSum {
            finite: f64::from_le_bytes(read(bytes)?),
            count: i64::from_le_bytes(read(bytes)?),
            nan: i64::from_le_bytes(read(bytes)?),
            positive: i64::from_le_bytes(read(bytes)?),
            negative: i64::from_le_bytes(read(bytes)?),
        };
        Ok(())
    }
}

/// SUM of floating-point numbers.
#[derive(Default)]
pub struct SumFloat {
    sums: FloatSums,
}

impl Accumulator for SumFloat {
    delegate_state!(sums);

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        self.sums.update(input)
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let sums = groups.iter().map(|&group| {
            let sum = &self.sums.0[group as usize];
            (sum.count != 0).then(|| sum.sum())
        });
        Ok(Arc::new(sums.collect::<Float64Array>()))
    }
}

/// AVG as a floating-point number.
#[derive(Default)]
pub struct AvgFloat {
    sums: FloatSums,
}

impl Accumulator for AvgFloat {
    delegate_state!(sums);

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        self.sums.update(input)
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let means = groups.iter().map(|&group| {
            let sum = &self.sums.0[group as usize];
            (sum.count != 0).then(|| sum.sum() / sum.count as f64)
        });
        Ok(Arc::new(means.collect::<Float64Array>()))
    }
}
