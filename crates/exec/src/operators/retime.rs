//! Gives rows the event time that stands in one of their columns: TIMESTAMP of a query's result.
//!
//! A row whose column tells no time is dropped and reported, as a source's record without one is.

use arrow::{array::BooleanArray, datatypes::SchemaRef};
use highwater_formats::TimestampExtractor;

use crate::{
    delta::{Delta, rowtime_array},
    error::ExecResult,
    operator::{Operator, Rejected, StepContext},
};

/// See the module.
pub struct Retime {
    column: usize,
    extractor: TimestampExtractor,
    schema: SchemaRef,
}

impl Retime {
    /// By the column at a position of `schema`; `format` is the pattern of a text.
    pub fn new(schema: SchemaRef, column: usize, format: Option<&str>) -> ExecResult<Self> {
        let extractor = TimestampExtractor::new(schema.field(column).data_type(), format)?;
        Ok(Self {
            column,
            extractor,
            schema,
        })
    }
}

impl Operator for Retime {
    fn apply(
        &mut self,
        _input: usize,
        delta: Delta,
        context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        let before = delta.rowtime_millis()?;
        let (times, errors) = self
            .extractor
            .extract(&delta.columns()[self.column], before);
        let mut keep = vec![true; delta.rows()];
        let diffs = delta.diffs();
        for error in errors {
            keep[error.index] = false;
            // A row of a table that would take another's place leaves it there.
            let replaces = diffs.is_some_and(|diffs| {
                error.index > 0 && diffs[error.index] > 0 && diffs[error.index - 1] < 0
            });
            if replaces {
                keep[error.index - 1] = false;
            }
            context.rejected.push(Rejected {
                source: String::new(),
                position: None,
                reason: error.reason,
                key: None,
                value: None,
                timestamp: before[error.index],
            });
        }
        let timed = Delta::from_columns(
            &self.schema,
            delta.columns().to_vec(),
            rowtime_array(times),
            delta.shared_diffs(),
        )?
        .with_headers(delta.headers().cloned());
        output.push(match keep.contains(&false) {
            true => timed.filter(&BooleanArray::from(keep))?,
            false => timed,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{ArrayRef, Int64Array},
        datatypes::{DataType, Field, Schema},
    };

    use super::*;

    #[test]
    fn rows_without_a_time_are_reported() {
        let schema = Arc::new(Schema::new(vec![Field::new("at", DataType::Int64, true)]));
        let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None, Some(7)]));
        let delta = Delta::from_columns(&schema, vec![column], rowtime_array(vec![1, 2, 3]), None)
            .expect("columns fit");
        let (mut output, mut rejected) = (Vec::new(), Vec::new());
        let mut context = StepContext {
            state: None,
            late: &mut 0,
            rejected: &mut rejected,
        };
        Retime::new(schema, 0, None)
            .expect("BIGINT tells a time")
            .apply(0, delta, &mut context, &mut output)
            .expect("runs");
        assert_eq!(output[0].rowtime_millis().expect("times"), [5, 7]);
        assert_eq!(rejected.len(), 1);
        assert_eq!(rejected[0].timestamp, 2);
    }
}
