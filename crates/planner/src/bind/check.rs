//! Clauses and functions that a continuous query cannot have, refused on the AST, where every token still has its position.

use std::ops::ControlFlow;

use datafusion::{execution::SessionState, logical_expr::Volatility};
use sqlparser::ast::{self, SetExpr, SetOperator, Spanned, TableFactor, Visit, Visitor};

use super::locate::{folded, last_ident, position_of, start_of};
use crate::{
    error::{PlanError, PlanResult, Position},
    nearest::did_you_mean,
};

/// Aggregates with an incremental form, by the names that their implementations have.
const INCREMENTAL: [&str; 5] = ["count", "sum", "avg", "min", "max"];
/// Set-returning functions that the binder knows by name alone.
const UNNEST: [&str; 2] = ["unnest", "unnest_outer"];

const USE_PULL: &str =
    "run it as a pull query (without EMIT) over a table that a continuous query keeps";

/// Refuses what has no continuous form, anywhere in the query. A LIMIT of the outermost query is the caller's to take out first.
pub(crate) fn check_continuous(query: &ast::Query, functions: &SessionState) -> PlanResult<()> {
    match query.visit(&mut Checker { functions }) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Checker<'a> {
    functions: &'a SessionState,
}

type Verdict = ControlFlow<Box<PlanError>>;

fn refuse(what: impl Into<String>, position: Option<Position>, hint: Option<&str>) -> Verdict {
    ControlFlow::Break(Box::new(PlanError::unsupported(what, position, hint)))
}

fn refuse_if(present: bool, what: &str, position: Option<Position>) -> Verdict {
    if present {
        refuse(
            format!("{what} in a continuous query"),
            position,
            Some(USE_PULL),
        )
    } else {
        Verdict::Continue(())
    }
}

impl Visitor for Checker<'_> {
    type Break = Box<PlanError>;

    fn pre_visit_query(&mut self, query: &ast::Query) -> Verdict {
        if let Some(with) = query.with.as_ref().filter(|with| with.recursive) {
            return refuse(
                "WITH RECURSIVE in a continuous query",
                start_of(with),
                Some(USE_PULL),
            );
        }
        let order = query.order_by.as_ref();
        refuse_if(order.is_some(), "ORDER BY", order.and_then(start_of))?;
        let limit = query.limit_clause.as_ref();
        refuse_if(limit.is_some(), "LIMIT", limit.and_then(start_of))?;
        let fetch = query.fetch.as_ref();
        refuse_if(fetch.is_some(), "FETCH FIRST", fetch.and_then(start_of))?;
        refuse_if(!query.locks.is_empty(), "FOR UPDATE", None)?;
        let other = query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty();
        refuse_if(other, "this clause after the query", start_of(query))?;
        check_set_expr(&query.body)
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> Verdict {
        let start = position_of(select.select_token.0.span);
        if let Some(ast::Distinct::On(columns)) = &select.distinct {
            refuse_if(true, "DISTINCT ON", columns.first().and_then(start_of))?;
        }
        refuse_if(select.top.is_some(), "TOP", start)?;
        refuse_if(select.into.is_some(), "INTO", start)?;
        refuse_if(!select.lateral_views.is_empty(), "LATERAL VIEW", start)?;
        refuse_if(
            select.prewhere.is_some(),
            "PREWHERE",
            select.prewhere.as_ref().and_then(start_of),
        )?;
        refuse_if(!select.connect_by.is_empty(), "CONNECT BY", start)?;
        refuse_if(
            select.qualify.is_some(),
            "QUALIFY",
            select.qualify.as_ref().and_then(start_of),
        )?;
        refuse_if(!select.named_window.is_empty(), "WINDOW with a name", start)?;
        let hive = !select.cluster_by.is_empty()
            || !select.distribute_by.is_empty()
            || !select.sort_by.is_empty();
        refuse_if(hive, "CLUSTER BY, DISTRIBUTE BY and SORT BY", start)?;
        check_from(select, start)?;
        check_group_by(&select.group_by)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Verdict {
        let start = start_of(factor);
        match factor {
            TableFactor::Table {
                args: None,
                sample,
                version,
                ..
            } => {
                refuse_if(sample.is_some(), "TABLESAMPLE", start)?;
                refuse_if(version.is_some(), "a table at another time", start)
            }
            TableFactor::Derived { lateral: true, .. } => refuse_if(true, "LATERAL", start),
            TableFactor::Derived { sample, .. } => {
                refuse_if(sample.is_some(), "TABLESAMPLE", start)
            }
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => check_joins(&table_with_joins.joins),
            TableFactor::UNNEST { .. } => refuse_if(true, "UNNEST", start),
            _ => refuse_if(true, "a table function in FROM", start),
        }
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> Verdict {
        match expr {
            ast::Expr::Subquery(query)
            | ast::Expr::InSubquery {
                subquery: query, ..
            }
            | ast::Expr::Exists {
                subquery: query, ..
            } => refuse_if(true, "a subquery in an expression", start_of(&**query)),
            ast::Expr::Value(ast::ValueWithSpan {
                value: ast::Value::Placeholder(name),
                span,
            }) => {
                let message = format!("parameter {name} has no value");
                ControlFlow::Break(Box::new(PlanError::invalid(
                    message,
                    position_of(*span),
                    None,
                )))
            }
            ast::Expr::Function(function) => self.check_function(function),
            _ => Verdict::Continue(()),
        }
    }
}

impl Checker<'_> {
    fn check_function(&self, function: &ast::Function) -> Verdict {
        let Some(ident) = last_ident(&function.name).filter(|_| function.name.0.len() == 1) else {
            return Verdict::Continue(());
        };
        let (name, position) = (folded(ident), position_of(ident.span));
        if function.over.is_some() {
            return refuse_if(true, &format!("a window function ({name} OVER)"), position);
        }
        if UNNEST.contains(&name.as_str()) {
            return refuse_if(true, &format!("{name} in the SELECT list"), position);
        }
        if let Some(aggregate) = self.functions.aggregate_functions().get(&name) {
            return match INCREMENTAL.contains(&aggregate.name()) {
                true => Verdict::Continue(()),
                false => {
                    let hint = format!(
                        "aggregates with a continuous form are {}",
                        INCREMENTAL.join(", ")
                    );
                    refuse(
                        format!("the aggregate {name} in a continuous query"),
                        position,
                        Some(&hint),
                    )
                }
            };
        }
        if let Some(scalar) = self.functions.scalar_functions().get(&name) {
            // These read the clock and the seed that the step's journal entry holds.
            if highwater_functions::reads_step(scalar) {
                return Verdict::Continue(());
            }
            return check_volatility(&name, scalar.signature().volatility, position);
        }
        if self.functions.higher_order_functions().contains_key(&name) {
            return Verdict::Continue(());
        }
        if self.functions.window_functions().contains_key(&name) {
            return refuse_if(true, &format!("the window function {name}"), position);
        }
        ControlFlow::Break(Box::new(self.unknown_function(name, position)))
    }

    fn unknown_function(&self, name: String, position: Option<Position>) -> PlanError {
        let mut known: Vec<&str> = self
            .functions
            .scalar_functions()
            .keys()
            .map(String::as_str)
            .collect();
        known.extend(INCREMENTAL);
        known.sort_unstable();
        let hint = did_you_mean(&name, known);
        PlanError::UnknownFunction {
            name,
            position,
            hint,
        }
    }
}

/// A step that runs again after a crash must give the same rows, so nothing in it may read a clock or roll dice.
fn check_volatility(name: &str, volatility: Volatility, position: Option<Position>) -> Verdict {
    let hint = match volatility {
        Volatility::Immutable => return Verdict::Continue(()),
        Volatility::Stable => {
            "its value depends on when it runs; use rowtime, the event time of the row"
        }
        Volatility::Volatile => {
            "it gives another value at each call; put the value into the record instead"
        }
    };
    refuse(
        format!("{name}() in a continuous query"),
        position,
        Some(hint),
    )
}

fn check_set_expr(body: &SetExpr) -> Verdict {
    match body {
        SetExpr::Select(_) | SetExpr::Query(_) => Verdict::Continue(()),
        SetExpr::SetOperation {
            left,
            op: SetOperator::Union,
            right,
            ..
        } => {
            check_set_expr(left)?;
            check_set_expr(right)
        }
        SetExpr::SetOperation { op, right, .. } => {
            refuse_if(true, &op.to_string(), start_of(&**right))
        }
        SetExpr::Values(values) => refuse_if(true, "VALUES", start_of(values)),
        other => refuse_if(true, "a statement that is no SELECT", start_of(other)),
    }
}

fn check_from(select: &ast::Select, start: Option<Position>) -> Verdict {
    let Some(first) = select.from.first() else {
        let hint = "a continuous query reads a stream or a table: SELECT .. FROM name";
        return refuse(
            "SELECT without FROM in a continuous query",
            start,
            Some(hint),
        );
    };
    if let Some(second) = select.from.get(1) {
        return refuse(
            "JOIN in a continuous query",
            start_of(&second.relation),
            Some(USE_PULL),
        );
    }
    check_joins(&first.joins)
}

fn check_joins(joins: &[ast::Join]) -> Verdict {
    match joins.first() {
        Some(join) => refuse(
            "JOIN in a continuous query",
            start_of(&join.relation),
            Some(USE_PULL),
        ),
        None => Verdict::Continue(()),
    }
}

fn check_group_by(group_by: &ast::GroupByExpr) -> Verdict {
    let (expressions, modifiers) = match group_by {
        ast::GroupByExpr::All(modifiers) => (&[][..], modifiers),
        ast::GroupByExpr::Expressions(expressions, modifiers) => {
            (expressions.as_slice(), modifiers)
        }
    };
    let sets = expressions.iter().find(|expr| {
        matches!(
            expr,
            ast::Expr::GroupingSets(_) | ast::Expr::Cube(_) | ast::Expr::Rollup(_)
        )
    });
    let found = !modifiers.is_empty() || sets.is_some();
    refuse_if(
        found,
        "GROUPING SETS, CUBE and ROLLUP",
        sets.and_then(|expr| position_of(expr.span())),
    )
}
