//! `INSERT INTO stream SELECT ..`: a second query that writes a stream.
//!
//! The result must have the stream's columns, by name, with types that go into the stream's without a cast being written, and its key. Its columns are
//! put into the stream's order; the stream's formats and partitions are kept.

use std::sync::Arc;

use datafusion::{
    common::Column,
    logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection},
};
use highwater_sql::{Dialect, Query, SourceKind};

use crate::{
    PlanContext,
    bind::{Located, Purpose, RelationSource, bind_query},
    catalog::Relation,
    dataflow::{DataflowPlan, Target, lower},
    error::{PlanError, PlanResult},
    rules,
    types::{sql_name, widens_to},
};

/// Plans the query of an INSERT into `target`.
pub fn plan_insert(
    query: &Query,
    target: &Arc<Relation>,
    ctx: &PlanContext,
) -> PlanResult<DataflowPlan> {
    if target.kind == SourceKind::Table {
        return Err(PlanError::invalid(
            format!(
                "\"{}\" is a table, and only streams take the rows of a query",
                target.name
            ),
            None,
            Some("a table's rows are what one query or its own topic says"),
        ));
    }
    if target.read_only {
        return Err(PlanError::invalid(
            format!(
                "\"{}\" was created with SOURCE, which makes it read-only",
                target.name
            ),
            None,
            None,
        ));
    }
    if target.columns.iter().any(|column| column.headers.is_some()) {
        return Err(PlanError::invalid(
            format!(
                "\"{}\" has columns of headers, which no query writes",
                target.name
            ),
            None,
            None,
        ));
    }
    let located = Located::new(&query.body);
    let bound = bind_query(query, ctx, Purpose::Persistent)?;
    let optimized = rules::optimize(bound.plan, ctx, Purpose::Persistent, &located)?;
    refuse_own_topic(&optimized, target)?;
    let keys: Vec<&str> = target
        .key_columns()
        .into_iter()
        .map(|column| target.columns[column].name.as_str())
        .collect();
    let partition = bound.partition.map(|mut partition| {
        partition.columns = (0..target.columns.len())
            .filter(|column| keys.contains(&target.columns[*column].name.as_str()))
            .collect();
        partition
    });
    let ordered = in_order_of(optimized, target)?;
    let lowering_target = Target {
        kind: Some(SourceKind::Stream),
        slots: Some(target.partitions),
        key_format: Some(target.key_format.clone()).filter(|_| !keys.is_empty()),
        ksql: ctx.dialect == Dialect::Ksql,
        partition,
        ..Target::default()
    };
    let plan = lower(&ordered, &lowering_target, &located)?.plan;
    if plan.key != target.key_columns() {
        return Err(PlanError::InvalidKey {
            message: format!("the result has another key than \"{}\"", target.name),
            position: None,
            hint: Some("PARTITION BY gives it one".to_owned()),
        });
    }
    Ok(plan)
}

/// A query that reads what it writes would never end.
fn refuse_own_topic(plan: &LogicalPlan, target: &Relation) -> PlanResult<()> {
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    let mut reads_itself = false;
    let visited = plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            reads_itself |= scan
                .source
                .downcast_ref::<RelationSource>()
                .is_some_and(|source| source.relation.topic == target.topic);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visited.map_err(PlanError::DataFusion)?;
    match reads_itself {
        true => Err(PlanError::invalid(
            format!(
                "the query reads topic \"{}\", which it would write",
                target.topic
            ),
            None,
            None,
        )),
        false => Ok(()),
    }
}

/// The result's columns in the stream's order and types.
fn in_order_of(plan: LogicalPlan, target: &Relation) -> PlanResult<LogicalPlan> {
    let schema = plan.schema().clone();
    if schema.fields().len() != target.columns.len() {
        return Err(mismatch(
            target,
            &format!(
                "{} columns instead of {}",
                schema.fields().len(),
                target.columns.len()
            ),
        ));
    }
    let mut expressions = Vec::with_capacity(target.columns.len());
    for column in &target.columns {
        let Some(position) = schema
            .fields()
            .iter()
            .position(|field| *field.name() == column.name)
        else {
            return Err(mismatch(target, &format!("no column \"{}\"", column.name)));
        };
        let from = schema.field(position).data_type();
        if !widens_to(from, &column.data_type) {
            let (from, to) = (sql_name(from), sql_name(&column.data_type));
            return Err(mismatch(
                target,
                &format!("column \"{}\" as {from} instead of {to}", column.name),
            ));
        }
        let (qualifier, _) = schema.qualified_field(position);
        let own = Expr::Column(Column::new(qualifier.cloned(), &column.name));
        let cast = own
            .cast_to(&column.data_type, &schema)
            .map_err(PlanError::DataFusion)?;
        expressions.push(match cast {
            plain @ Expr::Column(_) => plain,
            cast => cast.alias(&column.name),
        });
    }
    let projection =
        Projection::try_new(expressions, Arc::new(plan)).map_err(PlanError::DataFusion)?;
    Ok(LogicalPlan::Projection(projection))
}

fn mismatch(target: &Relation, what: &str) -> PlanError {
    PlanError::TypeMismatch {
        message: format!("the result does not fit \"{}\": it has {what}", target.name),
        position: None,
        hint: Some("DESCRIBE tells the columns of the stream".to_owned()),
    }
}
