//! `a->b`: a struct's field, as ksqlDB writes it.

use datafusion::{
    common::{Column, DFSchema},
    error::Result,
    functions::core::expr_ext::FieldAccessor,
    logical_expr::{
        Expr,
        planner::{ExprPlanner, PlannerResult, RawBinaryExpr},
    },
    scalar::ScalarValue,
};
use sqlparser::ast::BinaryOperator;

/// Plans `->` with a bare name on its right.
#[derive(Debug)]
pub struct StructAccess;

impl ExprPlanner for StructAccess {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        _: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let field = match (&expr.op, &expr.right) {
            (BinaryOperator::Arrow, Expr::Column(Column { name, .. })) => Some(name.clone()),
            (BinaryOperator::Arrow, Expr::Literal(ScalarValue::Utf8(Some(name)), _)) => {
                Some(name.clone())
            }
            _ => None,
        };
        Ok(match field {
            Some(field) => PlannerResult::Planned(expr.left.field(field)),
            None => PlannerResult::Original(expr),
        })
    }
}
