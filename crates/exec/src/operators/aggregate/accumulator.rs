//! Folding values into groups, and taking them back.
//!
//! An accumulator is columnar: it holds the state of one aggregate call for all groups of a slot, by group number. Reading a group does not
//! consume it, so each step can send the changed groups only.

use arrow::{
    array::{Array, ArrayRef, BooleanArray, Int64Array},
    datatypes::{
        DataType, Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
        Time32MillisecondType, TimeUnit, TimestampMillisecondType,
    },
};
use highwater_planner::dataflow::{AggregateCall, AggregateFunction};

use super::{
    adapters::{Elements, OrZero},
    collect::{Choice, Collect},
    counted::{Counted, Shape},
    distinct::Distinct,
    min_max::{BytesExtreme, Multiset, PrimitiveExtreme},
    moments::{Moments, Statistic},
    one_value::OneValue,
    sum::{AvgDecimal, AvgFloat, SumDecimal, SumFloat, SumInteger},
};
use crate::{
    error::{ExecError, ExecResult},
    operators::group_array::fit,
};

/// The rows of one batch as an accumulator sees them.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Group of each row.
    pub groups: &'a [u32],
    /// Argument of each row; `None` for COUNT(*).
    pub values: Option<&'a ArrayRef>,
    /// FILTER of the call.
    pub filter: Option<&'a BooleanArray>,
    /// +1 or -1 per row; `None` for all +1.
    pub diffs: Option<&'a [i8]>,
}

impl Input<'_> {
    /// Calls `visit(row, group, diff)` for each row that counts: the argument is not NULL and the filter holds.
    #[inline]
    pub fn for_each(&self, mut visit: impl FnMut(usize, usize, i64)) {
        let nulls = self.values.and_then(|values| values.nulls());
        if nulls.is_none() && self.filter.is_none() {
            match self.diffs {
                None => self
                    .groups
                    .iter()
                    .enumerate()
                    .for_each(|(row, &group)| visit(row, group as usize, 1)),
                Some(diffs) => {
                    for (row, (&group, &diff)) in self.groups.iter().zip(diffs).enumerate() {
                        visit(row, group as usize, i64::from(diff));
                    }
                }
            }
            return;
        }
        for (row, &group) in self.groups.iter().enumerate() {
            let null = nulls.is_some_and(|nulls| nulls.is_null(row));
            let filtered = self
                .filter
                .is_some_and(|filter| filter.is_null(row) || !filter.value(row));
            if !null && !filtered {
                visit(
                    row,
                    group as usize,
                    self.diffs.map_or(1, |diffs| i64::from(diffs[row])),
                );
            }
        }
    }

    /// As [`Input::for_each`], for rows without an argument too.
    pub fn for_each_with_nulls(&self, mut visit: impl FnMut(usize, usize, i64)) {
        for (row, &group) in self.groups.iter().enumerate() {
            let filtered = self
                .filter
                .is_some_and(|filter| filter.is_null(row) || !filter.value(row));
            if !filtered {
                let diff = self.diffs.map_or(1, |diffs| i64::from(diffs[row]));
                visit(row, group as usize, diff);
            }
        }
    }

    /// The argument; calls other than COUNT(*) have one.
    pub fn argument(&self) -> ExecResult<&ArrayRef> {
        self.values
            .ok_or_else(|| ExecError::Internal("an aggregate call lacks its argument".into()))
    }
}

/// One aggregate call over all groups.
pub trait Accumulator: Send {
    /// Makes room for groups below `groups`, of which new ones are empty, or gives back the room of those that are not.
    fn resize(&mut self, groups: usize);

    /// Folds rows in, or takes them back where the diff is -1.
    fn update(&mut self, input: Input<'_>) -> ExecResult<()>;

    /// Results of the given groups.
    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef>;

    /// Folds what is in one group into another; the first keeps it until it is emptied.
    fn merge(&mut self, into: u32, from: u32);

    /// Empties a group, and gives back what it took beside the arrays.
    fn reset(&mut self, group: u32);

    /// Bytes that a group takes in the arrays, whatever is in it.
    fn group_bytes(&self) -> usize;

    /// About how many bytes all groups take beside the arrays.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Appends a group's state.
    fn save(&self, group: u32, out: &mut Vec<u8>);

    /// Reads what [`Accumulator::save`] wrote and moves `bytes` behind it.
    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()>;
}

/// Makes the accumulator of a call. `changing` says that rows can be taken back; `argument` is the argument's type.
pub fn accumulator(
    call: &AggregateCall,
    argument: Option<&DataType>,
    changing: bool,
) -> ExecResult<Box<dyn Accumulator>> {
    // A repeated value never changes an extreme, so DISTINCT only matters to the others.
    let extreme = matches!(
        call.function,
        AggregateFunction::Min | AggregateFunction::Max
    );
    if call.distinct && !extreme {
        let argument = argument.ok_or_else(|| {
            ExecError::Unsupported(format!("{}(DISTINCT) needs an argument", call.function))
        })?;
        return Ok(Box::new(Distinct::new(
            argument,
            plain(call, Some(argument), changing)?,
        )?));
    }
    plain(call, argument, changing)
}

fn plain(
    call: &AggregateCall,
    argument: Option<&DataType>,
    changing: bool,
) -> ExecResult<Box<dyn Accumulator>> {
    let unsupported = || {
        ExecError::Unsupported(format!(
            "{} of {} has no continuous form",
            call.function,
            argument.map_or_else(|| "*".to_owned(), ToString::to_string)
        ))
    };
    if call.function == AggregateFunction::Count {
        return Ok(Box::new(Count::default()));
    }
    let argument = argument.ok_or_else(unsupported)?;
    let output = &call.output_type;
    let collect = |choice, single, ignore_nulls| {
        Collect::new(argument, output, choice, single, ignore_nulls, changing)
            .map(|collect| Box::new(collect) as Box<dyn Accumulator>)
    };
    Ok(match call.function {
        AggregateFunction::Count => unreachable!("handled above"),
        AggregateFunction::SumOrZero => or_zero(call, AggregateFunction::Sum, argument, changing)?,
        AggregateFunction::AvgOrZero => or_zero(call, AggregateFunction::Avg, argument, changing)?,
        AggregateFunction::SumList => {
            let DataType::List(element) = argument else {
                return Err(unsupported());
            };
            let element = element.data_type();
            let sum = or_zero(call, AggregateFunction::Sum, element, changing)?;
            Box::new(Elements::new(sum))
        }
        AggregateFunction::CollectList { limit } => collect(Choice::First(limit), false, false)?,
        AggregateFunction::CollectSet { limit } => {
            collect(Choice::FirstDistinct(limit), false, false)?
        }
        AggregateFunction::Earliest {
            count: None,
            ignore_nulls,
        } if !changing => Box::new(OneValue::new(argument, true, ignore_nulls)?),
        AggregateFunction::Latest {
            count: None,
            ignore_nulls,
        } if !changing => Box::new(OneValue::new(argument, false, ignore_nulls)?),
        AggregateFunction::Earliest {
            count,
            ignore_nulls,
        } => collect(
            Choice::First(count.unwrap_or(1)),
            count.is_none(),
            ignore_nulls,
        )?,
        AggregateFunction::Latest {
            count,
            ignore_nulls,
        } => collect(
            Choice::Last(count.unwrap_or(1)),
            count.is_none(),
            ignore_nulls,
        )?,
        AggregateFunction::TopK { count } => collect(Choice::Greatest(count), false, true)?,
        AggregateFunction::TopKDistinct { count } => {
            collect(Choice::GreatestDistinct(count), false, true)?
        }
        AggregateFunction::Histogram => Box::new(Counted::new(argument, output, Shape::Histogram)?),
        AggregateFunction::Attr => Box::new(Counted::new(argument, output, Shape::OnlyValue)?),
        AggregateFunction::Variance => Box::new(Moments::new(Statistic::Variance)),
        AggregateFunction::StandardDeviation => {
            Box::new(Moments::new(Statistic::StandardDeviation))
        }
        AggregateFunction::Correlation => Box::new(Moments::new(Statistic::Correlation)),
        AggregateFunction::Sum => match (&call.output_type, argument) {
            (DataType::Int64, DataType::Int16 | DataType::Int32 | DataType::Int64) => {
                Box::new(SumInteger::default())
            }
            (DataType::Float64, DataType::Float32 | DataType::Float64) => {
                Box::new(SumFloat::default())
            }
            (DataType::Decimal128(..), DataType::Decimal128(..)) => {
                Box::new(SumDecimal::new(call.output_type.clone()))
            }
            _ => return Err(unsupported()),
        },
        AggregateFunction::Avg => match (&call.output_type, argument) {
            (
                DataType::Float64,
                DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::Float32
                | DataType::Float64
                | DataType::Decimal128(..),
            ) => Box::new(AvgFloat::default()),
            (DataType::Decimal128(..), DataType::Decimal128(_, scale)) => {
                Box::new(AvgDecimal::new(call.output_type.clone(), *scale))
            }
            _ => return Err(unsupported()),
        },
        AggregateFunction::Min | AggregateFunction::Max => {
            let max = call.function == AggregateFunction::Max;
            if changing {
                return Ok(Box::new(Multiset::new(argument, max)?));
            }
            match argument {
                DataType::Int16 => Box::new(PrimitiveExtreme::<Int16Type>::new(max, argument)),
                DataType::Int32 => Box::new(PrimitiveExtreme::<Int32Type>::new(max, argument)),
                DataType::Int64 => Box::new(PrimitiveExtreme::<Int64Type>::new(max, argument)),
                DataType::Float32 => Box::new(PrimitiveExtreme::<Float32Type>::new(max, argument)),
                DataType::Float64 => Box::new(PrimitiveExtreme::<Float64Type>::new(max, argument)),
                DataType::Date32 => Box::new(PrimitiveExtreme::<Date32Type>::new(max, argument)),
                DataType::Time32(TimeUnit::Millisecond) => {
                    Box::new(PrimitiveExtreme::<Time32MillisecondType>::new(
                        max, argument,
                    ))
                }
                DataType::Timestamp(TimeUnit::Millisecond, _) => {
                    Box::new(PrimitiveExtreme::<TimestampMillisecondType>::new(
                        max, argument,
                    ))
                }
                _ => Box::new(BytesExtreme::new(argument, max)?),
            }
        }
    })
}

/// SUM or AVG under ksqlDB's rules, over the one that sums widely enough.
fn or_zero(
    call: &AggregateCall,
    function: AggregateFunction,
    argument: &DataType,
    changing: bool,
) -> ExecResult<Box<dyn Accumulator>> {
    let wide = match (function, argument) {
        (AggregateFunction::Avg, _) => DataType::Float64,
        (_, DataType::Int16 | DataType::Int32) => DataType::Int64,
        (_, DataType::Float32) => DataType::Float64,
        (_, other) => other.clone(),
    };
    let inner = AggregateCall {
        function,
        output_type: wide,
        ..call.clone()
    };
    let inner = plain(&inner, Some(argument), changing)?;
    Ok(Box::new(OrZero::new(inner, &call.output_type)?))
}

/// COUNT(*) and COUNT(x).
#[derive(Default)]
struct Count {
    counts: Vec<i64>,
}

impl Accumulator for Count {
    fn resize(&mut self, groups: usize) {
        fit(&mut self.counts, groups);
    }

    fn update(&mut self, input: Input<'_>) -> ExecResult<()> {
        input.for_each(|_, group, diff| self.counts[group] += diff);
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<ArrayRef> {
        Ok(std::sync::Arc::new(Int64Array::from_iter_values(
            groups.iter().map(|&group| self.counts[group as usize]),
        )))
    }

    fn merge(&mut self, into: u32, from: u32) {
        self.counts[into as usize] += self.counts[from as usize];
    }

    fn reset(&mut self, group: u32) {
        self.counts[group as usize] = 0;
    }

    fn group_bytes(&self) -> usize {
        size_of::<i64>()
    }

    fn save(&self, group: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.counts[group as usize].to_le_bytes());
    }

    fn load(&mut self, group: u32, bytes: &mut &[u8]) -> ExecResult<()> {
        self.counts[group as usize] = i64::from_le_bytes(read(bytes)?);
        Ok(())
    }
}

/// Takes `N` bytes of a saved state.
pub fn read<const N: usize>(bytes: &mut &[u8]) -> ExecResult<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>().ok_or_else(short_state)?;
    *bytes = rest;
    Ok(*head)
}

/// Takes a length-prefixed byte string of a saved state.
pub fn read_bytes<'a>(bytes: &mut &'a [u8]) -> ExecResult<&'a [u8]> {
    let length = u32::from_le_bytes(read(bytes)?) as usize;
    let (head, rest) = bytes.split_at_checked(length).ok_or_else(short_state)?;
    *bytes = rest;
    Ok(head)
}

/// Appends a length-prefixed byte string. A value is far below 4 GiB, since records are.
pub fn write_bytes(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(value);
}

fn short_state() -> ExecError {
    ExecError::Corrupt {
        what: "stored aggregate".into(),
        detail: "it ends too early".into(),
    }
}
