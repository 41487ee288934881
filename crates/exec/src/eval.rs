//! Expressions over whole batches, with a row-level way out.
//!
//! An expression that fails on a batch (a division by zero, a cast that overflows) is evaluated again row by row: rows that fail become NULL
//! and are reported, the others keep their values. So one bad row costs its batch some time and never stops a query.
//!
//! Functions of the library do not fail: they give NULL for a bad row and report why, without saying which row it was. Then the rows are found by
//! halving the batch, which evaluates a lone bad row about twice per level; the values are those of the first evaluation.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, new_null_array},
    compute,
    record_batch::RecordBatch,
};
use datafusion::{error::DataFusionError, physical_expr::PhysicalExpr};
use highwater_functions::{RowErrors, take_row_errors};

use crate::error::{ExecError, ExecResult};

/// A row for which an expression failed.
#[derive(Debug)]
pub struct RowFailure {
    /// Row in the batch.
    pub row: usize,
    /// Why.
    pub reason: String,
}

/// Evaluates `expression`; failures are appended to `failures`.
pub fn evaluate(
    expression: &Arc<dyn PhysicalExpr>,
    batch: &RecordBatch,
    failures: &mut Vec<RowFailure>,
) -> ExecResult<ArrayRef> {
    // Whatever another evaluation on this thread left behind is not about this one.
    take_row_errors();
    match expression
        .evaluate(batch)
        .and_then(|value| value.into_array(batch.num_rows()))
    {
        Ok(array) => {
            find_rows(expression, batch, 0, &take_row_errors(), failures);
            Ok(array)
        }
        Err(_) => evaluate_by_row(expression, batch, failures),
    }
}

/// Finds the rows that `errors` are about: those of `batch`, which begins at row `first` of the whole.
fn find_rows(
    expression: &Arc<dyn PhysicalExpr>,
    batch: &RecordBatch,
    first: usize,
    errors: &RowErrors,
    failures: &mut Vec<RowFailure>,
) {
    if errors.is_empty() {
        return;
    }
    let rows = batch.num_rows();
    if rows <= 1 {
        failures.extend(errors.reasons.iter().map(|reason| RowFailure {
            row: first,
            reason: reason.clone(),
        }));
        return;
    }
    let middle = rows / 2;
    for (start, length) in [(0, middle), (middle, rows - middle)] {
        let half = batch.slice(start, length);
        // The whole could be evaluated, so its parts can; only the reports are of interest.
        let _ = expression.evaluate(&half);
        let errors = take_row_errors();
        find_rows(expression, &half, first + start, &errors, failures);
    }
}

/// Evaluates a predicate; NULL and failed rows are FALSE.
pub fn evaluate_predicate(
    predicate: &Arc<dyn PhysicalExpr>,
    batch: &RecordBatch,
    failures: &mut Vec<RowFailure>,
) -> ExecResult<BooleanArray> {
    let array = evaluate(predicate, batch, failures)?;
    let booleans = array.as_boolean_opt().ok_or_else(|| {
        ExecError::Internal(format!("a predicate has type {}", array.data_type()))
    })?;
    Ok(if booleans.null_count() == 0 {
        booleans.clone()
    } else {
        compute::prep_null_mask_filter(booleans)
    })
}

fn evaluate_by_row(
    expression: &Arc<dyn PhysicalExpr>,
    batch: &RecordBatch,
    failures: &mut Vec<RowFailure>,
) -> ExecResult<ArrayRef> {
    let data_type = expression
        .data_type(batch.schema_ref())
        .map_err(ExecError::Evaluate)?;
    let mut rows: Vec<ArrayRef> = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let single = batch.slice(row, 1);
        take_row_errors();
        match expression
            .evaluate(&single)
            .and_then(|value| value.into_array(1))
        {
            Ok(array) => {
                find_rows(expression, &single, row, &take_row_errors(), failures);
                rows.push(array);
            }
            Err(error) => {
                failures.push(RowFailure {
                    row,
                    reason: innermost(&error),
                });
                rows.push(new_null_array(&data_type, 1));
            }
        }
    }
    let parts: Vec<&dyn Array> = rows.iter().map(AsRef::as_ref).collect();
    Ok(compute::concat(&parts)?)
}

/// The message a user can act on, without the layers that carried it.
fn innermost(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::ArrowError(error, _) => error.to_string(),
        root => root.strip_backtrace(),
    }
}
