//! Variables of lambdas, numbered apart from columns.
//!
//! DataFusion numbers a lambda's variables behind the columns of the schema that it was planned with, and takes every smaller number for a column
//! that the lambda captures. Our batches can be wider than that schema: they carry event times, and a node may read more columns than the
//! logical node has. So the variables are moved far behind any column; their order, which is what counts, stays.

use std::sync::Arc;

use datafusion::{
    common::tree_node::{Transformed, TreeNode},
    physical_expr::{PhysicalExpr, expressions::LambdaVariable},
};

use crate::error::{PlanError, PlanResult};

/// More columns than any batch has.
const BEHIND_COLUMNS: usize = 1 << 24;

/// The same expression with its variables behind all columns.
pub(super) fn apart_from_columns(
    expression: Arc<dyn PhysicalExpr>,
) -> PlanResult<Arc<dyn PhysicalExpr>> {
    let moved = expression.transform_up(|part| {
        Ok(match part.downcast_ref::<LambdaVariable>() {
            Some(variable) => {
                let number = variable.index() + BEHIND_COLUMNS;
                let field = Arc::clone(variable.field());
                Transformed::yes(Arc::new(LambdaVariable::new(number, field)))
            }
            None => Transformed::no(part),
        })
    });
    Ok(moved.map_err(PlanError::DataFusion)?.data)
}
