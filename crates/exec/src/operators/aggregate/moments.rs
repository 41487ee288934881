//! Aggregates over sums of powers: sample variance, standard deviation and correlation.
//!
//! A group holds the count and the sums of x, y, x^2, y^2 and xy, so that values can be taken back and groups merged.
//!
//! State: the six numbers, little endian.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Float64Array},
    compute,
    datatypes::{DataType, Float64Type},
};

use super::accumulator::{Accumulator, Input, read};
use crate::{
    error::{ExecError, ExecResult},
    operators::group_array::fit,
};

/// What the result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Of a sample of numbers.
    Variance,
    /// Of a sample of numbers.
    StandardDeviation,
    /// Of pairs: a struct of two numbers.
    Correlation,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: i64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

/// See the module.
pub struct Moments {
    statistic: Statistic,
    groups: Vec<Sums>,
}

impl Moments {
    /// Over nothing yet.
    pub fn new(statistic: Statistic) -> Self {
        Self {
            statistic,
            groups: Vec::new(),
        }
    }

    fn result(&self, sums: &Sums) -> Option<f64> {
        let count = sums.count as f64;
        match self.statistic {
            Statistic::Variance | Statistic::StandardDeviation => {
                if sums.count < 2 {
                    return Some(0.0);
                }
                let squares = sums.xx - sums.x * sums.x / count;
                // Rounding can leave a little less than nothing.
                let variance = (squares / (count - 1.0)).max(0.0);
                Some(match self.statistic {
                    Statistic::StandardDeviation => variance.sqrt(),
                    _ => variance,
                })
            }
            Statistic::Correlation => {
                let covariance = count * sums.xy - sums.x * sums.y;
                let spread = (count * sums.xx - sums.x * sums.x).sqrt()
                    * (count * sums.yy - sums.y * sums.y).sqrt();
                Some(covariance / spread)
            }
        }
    }
}

fn doubles(values: &ArrayRef) -> ExecResult<Float64Array> {
    let cast = compute::cast(values, &DataType::Float64)?;
    Ok(cast.as_primitive::<Float64Type>().clone())
}

impl Accumulator for Moments {
    fn resize(&mut self, groups: usize) {
        fit(&mut self.groups, groups);
    }

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        let argument = input.argument()?;
        let (x, y) = match self.statistic {
            Statistic::Correlation => {
                let pairs = argument
                    .as_struct_opt()
                    .filter(|pairs| pairs.num_columns() == 2);
                let pairs =
                    pairs.ok_or_else(|| ExecError::Internal("a correlation needs pairs".into()))?;
                (doubles(pairs.column(0))?, doubles(pairs.column(1))?)
            }
            _ => {
                let x = doubles(argument)?;
                (x.clone(), x)
            }
        };
        let groups = &mut self.groups;
        input.for_each(|row, group, diff| {
            if x.is_null(row) || y.is_null(row) {
                return;
            }
            let (x, y, sign) = (x.value(row), y.value(row), diff as f64);
            let sums = &mut groups[group];
            sums.count += diff;
            sums.x += sign * x;
            sums.y += sign * y;
            sums.xx += sign * x * x;
            sums.yy += sign * y * y;
            sums.xy += sign * x * y;
        });
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        let results: Float64Array = groups
            .iter()
            .map(|&group| self.result(&self.groups[group as usize]))
            .collect();
        Ok(Arc::new(results))
    }

    fn merge(&mut self, into: u32, from: u32) {
        let other = self.groups[from as usize];
        let own = &mut self.groups[into as usize];
        own.count += other.count;
        own.x += other.x;
        own.y += other.y;
        own.xx += other.xx;
        own.yy += other.yy;
        own.xy += other.xy;
    }

    fn reset(&mut self, group: u32) {
        self.groups[group as usize] = Sums::default();
    }

    fn group_bytes(&self) -> usize {
        size_of::<Sums>()
    }

    fn save(&self, group: u32, out: &mut Vec<u8>) {
        let sums = &self.groups[group as usize];
        out.extend_from_slice(&sums.count.to_le_bytes());
        for sum in [sums.x, sums.y, sums.xx, sums.yy, sums.xy] {
            out.extend_from_slice(&sum.to_le_bytes());
        }
    }

    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        self.groups[group as usize] = Sums {
            count: i64::from_le_bytes(read(bytes)?),
            x: f64::from_le_bytes(read(bytes)?),
            y: f64::from_le_bytes(read(bytes)?),
            xx: f64::from_le_bytes(read(bytes)?),
            yy: f64::from_le_bytes(read(bytes)?),
            xy: f64::from_le_bytes(read(bytes)?),
        };
        Ok(())
    }
}
