//! Adds the window's bounds to a result that leaves them out.
//!
//! A windowed table has one row per key *and window*, so its key is complete only with both bounds. Those that the SELECT list does not name
//! are added behind the key columns. A bound under another name is a copy; the key needs it under its own.

use std::sync::Arc;

use datafusion::{
    common::Column,
    logical_expr::{Aggregate, Expr, LogicalPlan, Projection},
};

use crate::{
    bind::AssignWindows,
    catalog::{WINDOWEND, WINDOWSTART},
    error::{PlanError, PlanResult},
};

/// Completes the outermost SELECT list when it is one over a windowed aggregate.
pub(crate) fn complete_window_key(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    let LogicalPlan::Projection(projection) = &plan else {
        return Ok(plan);
    };
    let Some(aggregate) = windowed_aggregate(&projection.input) else {
        return Ok(plan);
    };
    let mut expressions = projection.expr.clone();
    let missing: Vec<Expr> = [WINDOWSTART, WINDOWEND]
        .into_iter()
        .filter_map(|bound| Some((bound, bound_column(aggregate, bound)?)))
        .filter(|(bound, column)| !selects(projection, bound, column))
        .map(|(_, column)| Expr::Column(column))
        .collect();
    if missing.is_empty() {
        return Ok(plan);
    }
    refuse_other_meaning(projection, aggregate)?;
    let behind_keys = expressions
        .iter()
        .rposition(|expr| is_group_column(aggregate, expr))
        .map_or(0, |last| last + 1);
    expressions.splice(behind_keys..behind_keys, missing);
    let completed = Projection::try_new(expressions, projection.input.clone())
        .map_err(PlanError::DataFusion)?;
    Ok(LogicalPlan::Projection(completed))
}

/// The aggregate under a SELECT list, if it groups by windows.
fn windowed_aggregate(plan: &Arc<LogicalPlan>) -> Option<&Aggregate> {
    match plan.as_ref() {
        LogicalPlan::Filter(filter) => windowed_aggregate(&filter.input),
        LogicalPlan::Aggregate(aggregate) if is_windowed(&aggregate.input) => Some(aggregate),
        _ => None,
    }
}

fn is_windowed(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => is_windowed(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => is_windowed(&alias.input),
        LogicalPlan::Projection(projection) => is_windowed(&projection.input),
        LogicalPlan::Extension(extension) => extension.node.as_any().is::<AssignWindows>(),
        _ => false,
    }
}

/// The column of the aggregate's output that holds a bound.
fn bound_column(aggregate: &Aggregate, bound: &str) -> Option<Column> {
    let position = aggregate.group_expr.iter().position(|expr| match expr {
        Expr::Column(column) => column.name == bound,
        _ => false,
    })?;
    let (qualifier, field) = aggregate.schema.qualified_field(position);
    Some(Column::new(qualifier.cloned(), field.name()))
}

/// Whether the SELECT list has the bound under its own name.
fn selects(projection: &Projection, bound: &str, column: &Column) -> bool {
    projection
        .expr
        .iter()
        .zip(projection.schema.fields())
        .any(|(expr, field)| {
            field.name() == bound
                && matches!(expr.clone().unalias_nested().data, Expr::Column(own) if own == *column)
        })
}

/// A column named like a bound that is something else would hide it.
fn refuse_other_meaning(projection: &Projection, aggregate: &Aggregate) -> PlanResult<()> {
    for bound in [WINDOWSTART, WINDOWEND] {
        let named = projection
            .schema
            .fields()
            .iter()
            .any(|field| field.name() == bound);
        let own = bound_column(aggregate, bound)
            .is_some_and(|column| selects(projection, bound, &column));
        if named && !own {
            return Err(PlanError::ReservedName {
                name: bound.to_owned(),
                position: None,
                hint: Some("give the column another name with AS".to_owned()),
            });
        }
    }
    Ok(())
}

fn is_group_column(aggregate: &Aggregate, expr: &Expr) -> bool {
    let Expr::Column(column) = expr.clone().unalias_nested().data else {
        return false;
    };
    match aggregate.schema.maybe_index_of_column(&column) {
        Some(position) => position < aggregate.group_expr.len(),
        None => false,
    }
}
