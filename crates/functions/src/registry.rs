//! Functions by dialect, as DataFusion registers them.

use std::sync::Arc;

use datafusion::{
    common::Result,
    execution::FunctionRegistry,
    logical_expr::{
        Expr, HigherOrderUDF, ScalarUDF,
        expr::ScalarFunction,
        planner::{ExprPlanner, PlannerResult},
    },
};

use crate::{
    bounded,
    cast::cast_function,
    function::{Function, Udf},
    lambda, scalar, table,
};

/// Whose meaning a name has where two languages use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// PostgreSQL's (and DataFusion's) functions, and those of ksqlDB's that they have no name for.
    Postgres,
    /// ksqlDB's functions, and DataFusion's that ksqlDB has no name for.
    Ksql,
}

fn functions(dialect: Dialect) -> impl Iterator<Item = &'static Function> {
    scalar::functions()
        .chain(table::FUNCTIONS)
        .filter(move |function| dialect == Dialect::Ksql || !function.ksql_only)
}

/// The scalar functions of a dialect.
pub fn scalar_functions(dialect: Dialect) -> Vec<ScalarUDF> {
    functions(dialect)
        .map(|function| ScalarUDF::new_from_impl(Udf::new(function)))
        .collect()
}

/// The functions that take a lambda; both dialects have them.
pub fn higher_order_functions() -> Vec<HigherOrderUDF> {
    lambda::functions()
}

/// Registers all functions of a dialect, in place of those of the same name.
pub fn register(registry: &mut dyn FunctionRegistry, dialect: Dialect) -> Result<()> {
    bounded::register(registry)?;
    for function in scalar_functions(dialect) {
        registry.register_udf(Arc::new(function))?;
    }
    if dialect == Dialect::Ksql {
        registry.register_udf(Arc::new(cast_function()))?;
    }
    for function in higher_order_functions() {
        registry.register_higher_order_function(Arc::new(function))?;
    }
    Ok(())
}

/// Whether the value of a function depends on the clock or the seed of the step that evaluates it: with [`crate::StepClock`] it gives the same
/// when the step runs again.
pub fn reads_step(function: &ScalarUDF) -> bool {
    function
        .inner()
        .downcast_ref::<Udf>()
        .is_some_and(|udf| udf.function.reads_step)
}

/// What the binder asks about syntax of its own: `SUBSTRING(..)` is not an ordinary call to it. In front of DataFusion's own planners.
pub fn expr_planners(dialect: Dialect) -> Vec<Arc<dyn ExprPlanner>> {
    match dialect {
        Dialect::Postgres => Vec::new(),
        Dialect::Ksql => vec![Arc::new(KsqlSyntax)],
    }
}

#[derive(Debug)]
struct KsqlSyntax;

impl ExprPlanner for KsqlSyntax {
    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let found = functions(Dialect::Ksql).find(|function| function.name == "substring");
        Ok(match found {
            Some(function) => {
                let udf = Arc::new(ScalarUDF::new_from_impl(Udf::new(function)));
                PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(udf, args)))
            }
            None => PlannerResult::Original(args),
        })
    }
}
