//! Casts to stored types where values become part of a relation or of a key.
//!
//! Functions give types that no column is declared with, such as timestamps in nanoseconds. The result's columns are cast, since the record
//! in the topic is what a later query reads. Group columns are cast before grouping: two groups that differ only below the stored precision
//! would be one row of the result table.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::{
    common::{
        Column, Result,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{Aggregate, Distinct, Expr, ExprSchemable, LogicalPlan, Projection, cast},
};

use crate::{
    error::{PlanError, PlanResult},
    types::{sql_name, stored_type},
};

/// Casts group columns everywhere and the columns of the result.
pub(crate) fn cast_stored(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    check_result(&plan)?;
    let grouped = plan
        .transform_up(cast_groups)
        .map_err(PlanError::DataFusion)?
        .data;
    let types = stored_types(&grouped);
    cast_columns(grouped, &types).map_err(PlanError::DataFusion)
}

/// Names the first column whose type nothing can hold.
fn check_result(plan: &LogicalPlan) -> PlanResult<()> {
    for field in plan.schema().fields() {
        if stored_type(field.data_type()).is_none() {
            return Err(PlanError::TypeMismatch {
                message: format!(
                    "column \"{}\" is {}, which no stream or table can hold",
                    field.name(),
                    sql_name(field.data_type())
                ),
                position: None,
                hint: Some("write a CAST".to_owned()),
            });
        }
    }
    Ok(())
}

fn stored_types(plan: &LogicalPlan) -> Vec<DataType> {
    let stored = |data_type: &DataType| stored_type(data_type).unwrap_or_else(|| data_type.clone());
    plan.schema()
        .fields()
        .iter()
        .map(|field| stored(field.data_type()))
        .collect()
}

/// A projection that gives the columns these types under the same names; the plan itself when they have them.
fn cast_columns(plan: LogicalPlan, types: &[DataType]) -> Result<LogicalPlan> {
    let same = plan
        .schema()
        .fields()
        .iter()
        .zip(types)
        .all(|(field, data_type)| field.data_type() == data_type);
    if same {
        return Ok(plan);
    }
    let expressions = plan
        .schema()
        .iter()
        .zip(types)
        .map(|((qualifier, field), data_type)| {
            let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            if field.data_type() == data_type {
                column
            } else {
                cast(column, data_type.clone()).alias_qualified(qualifier.cloned(), field.name())
            }
        })
        .collect();
    Ok(LogicalPlan::Projection(Projection::try_new(
        expressions,
        Arc::new(plan),
    )?))
}

fn cast_groups(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => cast_aggregate(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let original: Vec<DataType> = input
                .schema()
                .fields()
                .iter()
                .map(|field| field.data_type().clone())
                .collect();
            let types = stored_types(&input);
            if original == types {
                return Ok(Transformed::no(LogicalPlan::Distinct(Distinct::All(input))));
            }
            let cast_input = cast_columns(Arc::unwrap_or_clone(input), &types)?;
            let distinct = LogicalPlan::Distinct(Distinct::All(Arc::new(cast_input)));
            Ok(Transformed::yes(cast_columns(distinct, &original)?))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn cast_aggregate(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let input_schema = aggregate.input.schema().clone();
    let mut group = Vec::with_capacity(aggregate.group_expr.len());
    let mut changed = false;
    for expr in &aggregate.group_expr {
        let data_type = expr.get_type(&input_schema)?;
        match stored_type(&data_type) {
            Some(stored) if stored != data_type => {
                changed = true;
                group.push(cast(expr.clone(), stored));
            }
            _ => group.push(expr.clone()),
        }
    }
    if !changed {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let outer = aggregate.schema.clone();
    let cast_plan = LogicalPlan::Aggregate(Aggregate::try_new(
        aggregate.input,
        group,
        aggregate.aggr_expr,
    )?);
    let expressions = outer
        .iter()
        .zip(cast_plan.schema().iter())
        .map(|((qualifier, field), (own_qualifier, own_field))| {
            let column = Expr::Column(Column::new(own_qualifier.cloned(), own_field.name()));
            if own_field == field && own_qualifier == qualifier {
                column
            } else if own_field.data_type() == field.data_type() {
                column.alias_qualified(qualifier.cloned(), field.name())
            } else {
                cast(column, field.data_type().clone())
                    .alias_qualified(qualifier.cloned(), field.name())
            }
        })
        .collect();
    Ok(Transformed::yes(LogicalPlan::Projection(
        Projection::try_new(expressions, Arc::new(cast_plan))?,
    )))
}
