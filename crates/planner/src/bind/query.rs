//! A continuous query to a checked logical plan.

use std::sync::Arc;

use datafusion::{
    logical_expr::{LogicalPlan, planner::RelationPlanner},
    sql::planner::{ParserOptions, SqlToRel},
};
use highwater_sql::{Emit, Query};
use sqlparser::ast;

use super::{
    check::check_continuous,
    context::BindContext,
    locate::{Located, start_of},
    name::name_expressions,
    units::name_time_units,
    wildcard::expand_wildcards,
    window::{group_by_window, window_spec},
};
use crate::{
    PlanContext,
    error::{PlanError, PlanResult},
};

/// What a continuous query is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It keeps a relation: the result must have its whole key and stored types.
    Persistent,
    /// It feeds one client: the result is what the SELECT list says.
    Push,
}

/// A bound query.
pub(crate) struct BoundQuery {
    /// Names, functions and types are resolved; types are not coerced yet.
    pub plan: LogicalPlan,
    /// LIMIT of a push query.
    pub limit: Option<u64>,
}

/// Binds a continuous query.
pub(crate) fn bind_query(
    query: &Query,
    ctx: &PlanContext,
    purpose: Purpose,
) -> PlanResult<BoundQuery> {
    check_streaming_clauses(query)?;
    let mut body = query.body.as_ref().clone();
    let limit = match (purpose, &body.limit_clause) {
        (Purpose::Push, _) => take_limit(&mut body)?,
        (Purpose::Persistent, None) => None,
        (Purpose::Persistent, Some(clause)) => {
            let hint =
                "it never ends; LIMIT can end a push query, and a pull query over its result";
            return Err(PlanError::unsupported(
                "LIMIT in a persistent query",
                start_of(clause),
                Some(hint),
            ));
        }
    };
    check_continuous(&body, ctx.functions)?;
    expand_wildcards(&mut body, ctx.catalog)?;
    name_time_units(&mut body);
    name_expressions(&mut body)?;
    let mut relation_planners: Vec<Arc<dyn RelationPlanner>> = Vec::new();
    if let Some(window) = &query.window {
        let planner = group_by_window(&mut body, window_spec(window)?)?;
        relation_planners.push(Arc::new(planner));
    }
    let context = BindContext::new(ctx, relation_planners);
    let plan = SqlToRel::new_with_options(&context, parser_options())
        .sql_statement_to_plan(ast::Statement::Query(Box::new(body)))
        .map_err(|error| Located::new(&query.body).error(error))?;
    Ok(BoundQuery { plan, limit })
}

/// Strings are `Utf8`, as the columns of relations are; names are folded already; spans let messages tell positions.
fn parser_options() -> ParserOptions {
    ParserOptions::new()
        .with_enable_ident_normalization(false)
        .with_map_string_types_to_utf8view(false)
        .with_collect_spans(true)
}

fn check_streaming_clauses(query: &Query) -> PlanResult<()> {
    if query.emit == Some(Emit::Final) {
        let hint = "use EMIT CHANGES; the last row of each window is its final one";
        return Err(PlanError::unsupported("EMIT FINAL", None, Some(hint)));
    }
    if !query.within.is_empty() {
        return Err(PlanError::unsupported("WITHIN in a join", None, None));
    }
    if let Some(expr) = query.partition_by.first() {
        return Err(PlanError::unsupported("PARTITION BY", start_of(expr), None));
    }
    Ok(())
}

/// Takes `LIMIT n` off the outermost query.
fn take_limit(body: &mut ast::Query) -> PlanResult<Option<u64>> {
    let Some(clause) = body.limit_clause.take() else {
        return Ok(None);
    };
    let position = start_of(&clause);
    let (limit, offset) = match clause {
        ast::LimitClause::LimitOffset {
            limit,
            offset: None,
            limit_by,
        } if limit_by.is_empty() => (limit, None),
        ast::LimitClause::LimitOffset {
            offset: Some(offset),
            ..
        } => (None, start_of(&offset).or(position)),
        ast::LimitClause::LimitOffset { .. } | ast::LimitClause::OffsetCommaLimit { .. } => {
            (None, position)
        }
    };
    match limit {
        None if offset.is_some() => Err(PlanError::unsupported(
            "OFFSET in a push query",
            offset,
            None,
        )),
        None => Ok(None),
        Some(ast::Expr::Value(ast::ValueWithSpan {
            value: ast::Value::Number(digits, _),
            ..
        })) => match digits.parse() {
            Ok(limit) => Ok(Some(limit)),
            Err(_) => Err(PlanError::invalid(
                format!("LIMIT {digits} is not a number of rows"),
                position,
                None,
            )),
        },
        Some(other) => {
            let message = format!("LIMIT {other} is not a number of rows");
            Err(PlanError::invalid(
                message,
                position,
                Some("write a whole number"),
            ))
        }
    }
}
