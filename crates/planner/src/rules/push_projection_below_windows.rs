//! Moves projections below the node that assigns windows.
//!
//! Column pruning may put a projection between an aggregate and its windows: a filter's column that nothing above needs. An aggregate must
//! stand directly on its windows, so the projection goes below. It never computes with the bounds, since an expression over them can stand only
//! above the aggregate.

use std::sync::Arc;

use datafusion::{
    common::{
        Result,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{Expr, Extension, LogicalPlan, Projection, UserDefinedLogicalNodeCore},
};

use crate::{
    bind::AssignWindows,
    catalog::{WINDOWEND, WINDOWSTART},
    error::{PlanError, PlanResult},
};

/// Moves them all.
pub(crate) fn push_projection_below_windows(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    Ok(plan
        .transform_down(swap)
        .map_err(PlanError::DataFusion)?
        .data)
}

fn swap(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = &plan else {
        return Ok(Transformed::no(plan));
    };
    let LogicalPlan::Extension(extension) = projection.input.as_ref() else {
        return Ok(Transformed::no(plan));
    };
    let Some(windows) = extension.node.as_any().downcast_ref::<AssignWindows>() else {
        return Ok(Transformed::no(plan));
    };
    let [columns @ .., start, end] = projection.expr.as_slice() else {
        return Ok(Transformed::no(plan));
    };
    if !is_column(start, WINDOWSTART) || !is_column(end, WINDOWEND) {
        return Ok(Transformed::no(plan));
    }
    let below = Projection::try_new(columns.to_vec(), Arc::new(windows.input.clone()))?;
    let node = windows.with_exprs_and_inputs(Vec::new(), vec![LogicalPlan::Projection(below)])?;
    Ok(Transformed::yes(LogicalPlan::Extension(Extension {
        node: Arc::new(node),
    })))
}

fn is_column(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Column(column) if column.name == name)
}
