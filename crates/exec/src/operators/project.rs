//! Computes columns.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;

use crate::{
    delta::Delta,
    error::ExecResult,
    eval::{RowFailure, evaluate},
    operator::{Operator, Rejected, StepContext},
};

/// See the module.
pub struct Project {
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
}

impl Project {
    /// One expression per column of `schema`.
    pub fn new(expressions: Vec<Arc<dyn PhysicalExpr>>, schema: SchemaRef) -> Self {
        Self {
            expressions,
            schema,
        }
    }
}

impl Operator for Project {
    fn apply(
        &mut self,
        _input: usize,
        delta: Delta,
        context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        let mut failures = Vec::new();
        let columns = self
            .expressions
            .iter()
            .map(|expression| evaluate(expression, delta.batch(), &mut failures))
            .collect::<ExecResult<Vec<_>>>()?;
        report_failures(&failures, &delta, context)?;
        output.push(
            Delta::from_columns(
                &self.schema,
                columns,
                Arc::clone(delta.rowtime()),
                delta.shared_diffs(),
            )?
            .with_headers(delta.headers().cloned()),
        );
        Ok(())
    }
}

/// Sends failed rows to the processing log. The row itself goes on, with NULL where the expression failed.
pub fn report_failures(
    failures: &[RowFailure],
    delta: &Delta,
    context: &mut StepContext<'_>,
) -> ExecResult<()> {
    if failures.is_empty() {
        return Ok(());
    }
    let times = delta.rowtime_millis()?;
    for failure in failures {
        context.rejected.push(Rejected {
            source: String::new(),
            position: None,
            reason: failure.reason.clone(),
            key: None,
            value: None,
            timestamp: times[failure.row],
        });
    }
    Ok(())
}
