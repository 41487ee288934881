//! Keeps the rows for which a predicate is TRUE.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;

use crate::{
    delta::Delta,
    error::ExecResult,
    eval::evaluate_predicate,
    operator::{Operator, StepContext},
    operators::project::report_failures,
};

/// See the module.
pub struct Filter {
    predicate: Arc<dyn PhysicalExpr>,
}

impl Filter {
    /// A filter by a Boolean expression over the input's columns.
    pub fn new(predicate: Arc<dyn PhysicalExpr>) -> Self {
        Self { predicate }
    }
}

impl Operator for Filter {
    fn apply(
        &mut self,
        _input: usize,
        delta: Delta,
        context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        let mut failures = Vec::new();
        let keep = evaluate_predicate(&self.predicate, delta.batch(), &mut failures)?;
        report_failures(&failures, &delta, context)?;
        match keep.true_count() {
            0 => {}
            all if all == delta.rows() => output.push(delta),
            _ => output.push(delta.filter(&keep)?),
        }
        Ok(())
    }
}
