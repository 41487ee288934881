//! A continuous query to a checked logical plan.

use std::sync::Arc;

use datafusion::{
    logical_expr::{LogicalPlan, planner::RelationPlanner},
    sql::planner::{ParserOptions, SqlToRel},
};
use highwater_sql::{Changes, Dialect, Emit, Query};
use sqlparser::ast;

use super::{
    check::check_continuous,
    context::BindContext,
    ksql::{PartitionKey, add_bounds, order_keys, partition_key, rewrite},
    locate::{Located, start_of},
    name::name_expressions,
    units::name_time_units,
    wildcard::{WildcardOrder, expand_wildcards},
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
    /// PARTITION BY.
    pub partition: Option<PartitionKey>,
}

/// Binds a continuous query.
pub(crate) fn bind_query(
    query: &Query,
    ctx: &PlanContext,
    purpose: Purpose,
) -> PlanResult<BoundQuery> {
    check_streaming_clauses(query, purpose)?;
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
    check_continuous(&body, ctx)?;
    let ksql = ctx.dialect == Dialect::Ksql;
    let order = match (ksql, query.partition_by.is_empty()) {
        (false, _) => WildcardOrder::Declared,
        (true, true) => WildcardOrder::WithoutBounds,
        (true, false) => WildcardOrder::KeysLast,
    };
    let had_wildcard = expand_wildcards(&mut body, ctx.catalog, order)?;
    let mut partition = partition_key(&mut body, &query.partition_by, had_wildcard)?;
    name_time_units(&mut body);
    name_expressions(&mut body, ctx)?;
    if ksql && purpose == Purpose::Persistent {
        order_keys(
            &mut body,
            &mut partition,
            ctx.catalog,
            query.window.is_some(),
        )?;
    }
    rewrite(&mut body, ctx.dialect)?;
    if ksql && purpose == Purpose::Persistent {
        add_bounds(&mut body, ctx.catalog);
    }
    let mut relation_planners: Vec<Arc<dyn RelationPlanner>> = Vec::new();
    if let Some(window) = &query.window {
        let planner = group_by_window(&mut body, window_spec(window, query.emit)?)?;
        relation_planners.push(Arc::new(planner));
    }
    let context = BindContext::new(ctx, relation_planners);
    let plan = SqlToRel::new_with_options(&context, parser_options(ctx.dialect))
        .sql_statement_to_plan(ast::Statement::Query(Box::new(body)))
        .map_err(|error| Located::new(&query.body).error(error))?;
    Ok(BoundQuery {
        plan,
        limit,
        partition,
    })
}

/// Strings are `Utf8`, as the columns of relations are; names are folded already; spans let messages tell positions. ksqlDB's numbers with a
/// point are decimals.
fn parser_options(dialect: Dialect) -> ParserOptions {
    ParserOptions::new()
        .with_parse_float_as_decimal(dialect == Dialect::Ksql)
        .with_enable_ident_normalization(false)
        .with_map_string_types_to_utf8view(false)
        .with_collect_spans(true)
}

fn check_streaming_clauses(query: &Query, purpose: Purpose) -> PlanResult<()> {
    if let Some(Emit::Changes(changes)) = query.emit
        && changes != Changes::default()
        && purpose == Purpose::Persistent
    {
        let clause = Emit::Changes(changes);
        let message = format!("{clause} is for a query that a client watches");
        return Err(PlanError::invalid(
            message,
            None,
            Some(
                "use EMIT CHANGES: setting auto.offset.reset says where a persistent query begins",
            ),
        ));
    }
    if query.emit == Some(Emit::Final) && query.window.is_none() {
        let message = "EMIT FINAL needs a WINDOW: only a window's row is ever final";
        return Err(PlanError::invalid(
            message,
            None,
            Some("use EMIT CHANGES, or add a WINDOW"),
        ));
    }
    if !query.within.is_empty() {
        return Err(PlanError::unsupported("WITHIN in a join", None, None));
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
