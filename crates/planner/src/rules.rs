//! Rewrites of the logical plan.
//!
//! The list is fixed. A rule is on it when it holds for changing inputs as well as for one batch: it must not count on rows being complete,
//! ordered or read once. Rules that move work across limits and sorts have nothing to do here, and common subexpressions are left in
//! place, since the projection that would hold them could come between a window and its aggregate.

mod cast_stored;
mod complete_window_key;
mod push_projection_below_windows;

use std::sync::Arc;

use datafusion::{
    common::Result,
    logical_expr::LogicalPlan,
    optimizer::{
        Analyzer, Optimizer, OptimizerContext, OptimizerRule,
        eliminate_cross_join::EliminateCrossJoin,
        extract_equijoin_predicate::ExtractEquijoinPredicate,
        optimize_projections::OptimizeProjections, optimize_unions::OptimizeUnions,
        push_down_filter::PushDownFilter, simplify_expressions::SimplifyExpressions,
    },
};

use crate::{
    PlanContext,
    bind::{Located, Purpose},
    error::PlanResult,
};

/// Coerces types, then rewrites.
pub(crate) fn optimize(
    plan: LogicalPlan,
    ctx: &PlanContext,
    purpose: Purpose,
    located: &Located,
) -> PlanResult<LogicalPlan> {
    let options = ctx.functions.config_options();
    let coerced = Analyzer::new()
        .execute_and_check(plan, options, |_, _| {})
        .map_err(|error| located.error(error))?;
    let complete = match purpose {
        Purpose::Persistent => complete_window_key::complete_window_key(coerced)?,
        Purpose::Push => coerced,
    };
    let stored = cast_stored::cast_stored(complete)?;
    // Without a start time nothing can fold a clock into the plan.
    let context = OptimizerContext::new_with_config_options(options.clone())
        .without_query_execution_start_time();
    let rewritten = rewrite(stored, &context).map_err(|error| located.error(error))?;
    push_projection_below_windows::push_projection_below_windows(rewritten)
}

fn rewrite(plan: LogicalPlan, context: &OptimizerContext) -> Result<LogicalPlan> {
    let rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        // Before cross joins are looked at: what ON says is then no filter any more.
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(OptimizeProjections::new()),
    ];
    Optimizer::with_rules(rules).optimize(plan, context, |_, _| {})
}
