//! Operators whose meaning in ksqlDB depends on the types of their operands.
//!
//! - `+` joins texts, and `||` takes NULL for the empty text.
//! - With a DECIMAL, INT counts as DECIMAL(10, 0) and BIGINT as DECIMAL(19, 0); a DOUBLE makes the result a DOUBLE. The quotient of decimals has
//!   ksqlDB's scale, which is not DataFusion's.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::{
    common::{DFSchema, Result, ScalarValue, plan_err},
    execution::SessionState,
    functions::string::expr_fn::concat,
    logical_expr::{
        Expr, ExprSchemable, Operator, ScalarUDF, binary_expr, cast, lit,
        planner::{ExprPlanner, PlannerResult, RawBinaryExpr},
    },
};
use sqlparser::ast::BinaryOperator;

use super::divide::divide;
use crate::types::{sql_name, widens_to};

/// The operator that `x IN (a, b)` is made of: `x <in> a OR x <in> b`. An element is brought to the type of `x` where it is a literal.
pub(super) const IN_OPERATOR: &str = "<in>";

/// What plans the operators of dialect ksql with a library of functions; in front of DataFusion's own planners.
pub fn ksql_operators(functions: &SessionState) -> Arc<dyn ExprPlanner> {
    let cast = functions
        .scalar_functions()
        .get(highwater_functions::CAST)
        .cloned();
    Arc::new(Arithmetic { cast })
}

#[derive(Debug)]
struct Arithmetic {
    /// The function that casts under ksqlDB's rules, where the library has it.
    cast: Option<Arc<ScalarUDF>>,
}

impl Arithmetic {
    /// Whether a value is an element of a list of one.
    fn element(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<Expr> {
        let RawBinaryExpr { left, right, .. } = expr;
        let (Ok(left_type), Ok(right_type)) = (left.get_type(schema), right.get_type(schema))
        else {
            return Ok(binary_expr(left, Operator::Eq, right));
        };
        let both_numbers = left_type.is_numeric() && right_type.is_numeric();
        if left_type == right_type || both_numbers || right_type == DataType::Null {
            return Ok(binary_expr(left, Operator::Eq, right));
        }
        if let (true, Expr::Literal(ScalarValue::Utf8(Some(text)), _)) =
            (left_type.is_numeric(), &right)
        {
            return match number(text) {
                Some(number) => Ok(binary_expr(left, Operator::Eq, lit(number))),
                None => plan_err!("'{text}' is no {}", sql_name(&left_type)),
            };
        }
        if widens_to(&right_type, &left_type) {
            return Ok(binary_expr(left, Operator::Eq, cast(right, left_type)));
        }
        if widens_to(&left_type, &right_type) {
            return Ok(binary_expr(cast(left, right_type), Operator::Eq, right));
        }
        if has_other_fields(&left_type, &right_type) {
            return Ok(lit(false));
        }
        let is_text = |data_type: &DataType| *data_type == DataType::Utf8;
        let castable = right.column_refs().is_empty()
            && (is_text(&left_type) || is_text(&right_type) || left_type.is_nested());
        match &self.cast {
            Some(function) if castable => {
                let null = lit(ScalarValue::try_from(&left_type)?);
                let cast = function.call(vec![right, null]);
                Ok(binary_expr(left, Operator::Eq, cast))
            }
            _ => plan_err!(
                "cannot compare {} with {} by IN",
                sql_name(&left_type),
                sql_name(&right_type)
            ),
        }
    }
}

impl ExprPlanner for Arithmetic {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if matches!(&expr.op, BinaryOperator::Custom(name) if name == IN_OPERATOR) {
            return Ok(PlannerResult::Planned(self.element(expr, schema)?));
        }
        let operator = match expr.op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            BinaryOperator::Modulo => Operator::Modulo,
            BinaryOperator::StringConcat => Operator::StringConcat,
            BinaryOperator::Eq | BinaryOperator::NotEq => {
                check_comparable(&expr, schema, Comparison::Equality)?;
                return Ok(PlannerResult::Original(expr));
            }
            BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq => {
                check_comparable(&expr, schema, Comparison::Order)?;
                return Ok(PlannerResult::Original(expr));
            }
            _ => return Ok(PlannerResult::Original(expr)),
        };
        // The parameters of a lambda are no columns; their types are the function's business.
        let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema))
        else {
            return Ok(PlannerResult::Original(expr));
        };
        let is_text = |data_type: &DataType| *data_type == DataType::Utf8;
        if is_text(&left)
            && is_text(&right)
            && matches!(operator, Operator::Plus | Operator::StringConcat)
        {
            return Ok(PlannerResult::Planned(concat(vec![expr.left, expr.right])));
        }
        let (Some((left_type, right_type)), false) = (
            decimal_operands(&left, &right),
            operator == Operator::StringConcat,
        ) else {
            return Ok(PlannerResult::Original(expr));
        };
        let (left, right) = (cast(expr.left, left_type), cast(expr.right, right_type));
        Ok(PlannerResult::Planned(match operator {
            Operator::Divide => divide(left, right),
            operator => binary_expr(left, operator, right),
        }))
    }
}

/// The number that a text says, exactly.
fn number(text: &str) -> Option<ScalarValue> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    match (digits.parse::<i128>(), u8::try_from(digits.len())) {
        (Ok(unscaled), Ok(precision @ 1..=38)) => {
            let scale = i8::try_from(fraction.len()).ok()?;
            Some(ScalarValue::Decimal128(Some(unscaled), precision, scale))
        }
        _ => {
            let number = text
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())?;
            Some(ScalarValue::Float64(Some(number)))
        }
    }
}

/// Whether a struct has fields that another one has not: the two are never equal then.
fn has_other_fields(left: &DataType, right: &DataType) -> bool {
    match (left, right) {
        (DataType::Struct(left), DataType::Struct(right)) => {
            right.iter().any(|field| left.find(field.name()).is_none())
        }
        _ => false,
    }
}

/// What a comparison asks of its sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equality,
    Order,
}

/// Refuses comparisons that would only hold by accident: of texts with numbers, and by order of what has none.
fn check_comparable(expr: &RawBinaryExpr, schema: &DFSchema, comparison: Comparison) -> Result<()> {
    let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
        return Ok(());
    };
    let has_order = |data_type: &DataType| {
        !matches!(
            data_type,
            DataType::Boolean | DataType::List(_) | DataType::Map(..) | DataType::Struct(_)
        )
    };
    let is_text = |data_type: &DataType| *data_type == DataType::Utf8;
    let mixed = (is_text(&left) && right.is_numeric()) || (left.is_numeric() && is_text(&right));
    if mixed || (comparison == Comparison::Order && !(has_order(&left) && has_order(&right))) {
        return plan_err!(
            "cannot compare {} with {} by {}",
            sql_name(&left),
            sql_name(&right),
            expr.op
        );
    }
    Ok(())
}

/// The types that both sides are brought to where one is a DECIMAL and the other a whole number or a DECIMAL.
fn decimal_operands(left: &DataType, right: &DataType) -> Option<(DataType, DataType)> {
    let as_decimal = |data_type: &DataType| match data_type {
        DataType::Int32 => Some(DataType::Decimal128(10, 0)),
        DataType::Int64 => Some(DataType::Decimal128(19, 0)),
        DataType::Decimal128(..) => Some(data_type.clone()),
        _ => None,
    };
    let is_decimal = |data_type: &DataType| matches!(data_type, DataType::Decimal128(..));
    if !is_decimal(left) && !is_decimal(right) {
        return None;
    }
    Some((as_decimal(left)?, as_decimal(right)?))
}
