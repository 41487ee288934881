//! AST and catalog to dataflow plan. Pure functions: no I/O, no clock, no threads.
//!
//! A continuous query goes through five stages, each in its own module:
//!
//! 1. `bind`: names, functions and types, by DataFusion's binder over a [`Catalog`] snapshot;
//! 2. `rules`: rewrites of the logical plan that hold for streams as well as for tables;
//! 3. `dataflow::lower`: each logical node becomes operators of a [`DataflowPlan`], with exchanges where rows must move;
//! 4. `sink`: the relation that the result becomes, with its key and formats;
//! 5. the caller runs the plan, or prints it with [`explain_dataflow`].
//!
//! Planning the same statement against the same snapshot gives the same plan, node for node: state tables are named by position. What has no
//! continuous form is refused with [`PlanError::Unsupported`], never approximated. Pull queries are DataFusion's business whole; only
//! [`rewrite_pull`] prepares their text tree.

mod bind;
pub mod catalog;
pub mod dataflow;
pub mod defaults;
mod error;
mod explain;
mod insert;
mod nearest;
mod rules;
mod sink;
pub mod types;
mod with;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::execution::SessionState;
use highwater_sql::{CreateAs, Dialect, Emit, IdentifierCase, Query};

pub use bind::{CastTypes, ksql_operators, name_time_units, plan_create_source, rewrite_pull};
use bind::{Located, Purpose, bind_query};
use catalog::{Catalog, QueryId, Relation, RelationId};
pub use dataflow::plan_source_table;
use dataflow::{DataflowPlan, lower};
use defaults::PlanDefaults;
pub use error::{PlanError, PlanResult, Position};
pub use explain::explain_dataflow;
pub use insert::plan_insert;
use sink::SinkDraft;

/// What planning a statement needs beside its AST.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    /// The snapshot that names are resolved in.
    pub catalog: &'a dyn Catalog,
    /// The functions and expression planners of the session.
    pub functions: &'a SessionState,
    /// Partitions of a topic that a statement makes without saying how many.
    pub default_partitions: u32,
    /// Whose meaning the statement has.
    pub dialect: Dialect,
    /// The case that names without quotes in properties fold to.
    pub identifier_case: IdentifierCase,
    /// What holds where the statement says nothing.
    pub defaults: &'a PlanDefaults,
}

/// A persistent query: what it computes and the relation that it writes.
#[derive(Debug, Clone)]
pub struct PersistentPlan {
    /// The stream or table of the result.
    pub relation: Relation,
    /// How it is computed.
    pub plan: DataflowPlan,
}

/// A push query.
#[derive(Debug, Clone)]
pub struct PushPlan {
    /// How its rows are computed.
    pub plan: DataflowPlan,
    /// It ends after so many rows.
    pub limit: Option<u64>,
    /// The relations that it reads, each once.
    pub sources: Vec<Arc<Relation>>,
}

/// Plans `CREATE STREAM|TABLE .. AS SELECT ..`.
pub fn plan_create_as(
    create: &CreateAs,
    ctx: &PlanContext,
    relation: RelationId,
    query: QueryId,
) -> PlanResult<PersistentPlan> {
    bind::refuse_existing(&create.name, create.or_replace, ctx)?;
    let located = Located::new(&create.query.body);
    let bound = bind_query(&create.query, ctx, Purpose::Persistent)?;
    let optimized = rules::optimize(bound.plan, ctx, Purpose::Persistent, &located)?;
    let draft = SinkDraft::new(create, ctx, &optimized)?;
    let target = dataflow::Target {
        ksql: ctx.dialect == Dialect::Ksql,
        partition: bound.partition,
        ..draft.target()
    };
    let lowered = lower(&optimized, &target, &located)?;
    let relation = draft.finish(&lowered, relation, query, ctx)?;
    Ok(PersistentPlan {
        relation,
        plan: lowered.plan,
    })
}

/// Plans `SELECT .. EMIT CHANGES`.
pub fn plan_push(query: &Query, ctx: &PlanContext) -> PlanResult<PushPlan> {
    let located = Located::new(&query.body);
    let bound = bind_query(query, ctx, Purpose::Push)?;
    let optimized = rules::optimize(bound.plan, ctx, Purpose::Push, &located)?;
    let target = dataflow::Target {
        finals_only: query.emit == Some(Emit::Final),
        ksql: ctx.dialect == Dialect::Ksql,
        partition: bound.partition,
        ..dataflow::Target::default()
    };
    let plan = lower(&optimized, &target, &located)?.plan;
    let mut sources: Vec<Arc<Relation>> = Vec::new();
    for relation in plan.sources() {
        if !sources.iter().any(|source| source.id == relation.id) {
            sources.push(relation.clone());
        }
    }
    Ok(PushPlan {
        plan,
        limit: bound.limit,
        sources,
    })
}
