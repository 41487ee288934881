//! SELECT DISTINCT: a row is there as long as it came in more often than it was taken back.
//!
//! It is an aggregate over all columns without any call.

use arrow::datatypes::SchemaRef;

use super::Aggregate;
use crate::{
    delta::Delta,
    error::ExecResult,
    operator::{Operator, StepContext},
    state::StateChanges,
};

/// See the module.
pub struct Distinct {
    rows: Aggregate,
}

impl Distinct {
    /// Distinct rows of `schema`.
    pub fn new(schema: &SchemaRef, changing: bool) -> ExecResult<Self> {
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        Ok(Self {
            rows: Aggregate::new(schema, schema.clone(), &all, &[], None, changing)?,
        })
    }
}

impl Operator for Distinct {
    fn apply(
        &mut self,
        input: usize,
        delta: Delta,
        context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        self.rows.apply(input, delta, context, output)
    }

    fn step_end(
        &mut self,
        context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        self.rows.step_end(context, output)
    }

    fn checkpoint(&mut self, changes: &mut StateChanges) {
        self.rows.checkpoint(changes);
    }

    fn memory(&self) -> usize {
        self.rows.memory()
    }
}
