//! Units of time as arguments: `DATEADD(DAYS, 3, day)`.
//!
//! The unit is written bare and would be taken for a column. As the first argument of the functions that take one it becomes a text, unless
//! it is quoted; these functions take no column there, so none is hidden.

use std::ops::ControlFlow;

use highwater_functions::{TIME_UNITS, UNIT_FUNCTIONS};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments, VisitMut, VisitorMut};

use super::locate::last_ident;

/// Makes texts of the units in a query or an expression.
pub fn name_time_units<N: VisitMut>(node: &mut N) {
    let _: ControlFlow<()> = node.visit(&mut Units);
}

struct Units;

impl VisitorMut for Units {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Function(function) = expr
            && takes_unit(function)
            && let FunctionArguments::List(list) = &mut function.args
            && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))) =
                list.args.first_mut()
            && let ast::Expr::Identifier(ident) = argument
            && ident.quote_style.is_none()
            && TIME_UNITS
                .iter()
                .any(|unit| ident.value.eq_ignore_ascii_case(unit))
        {
            *argument = ast::Expr::Value(ast::ValueWithSpan {
                value: ast::Value::SingleQuotedString(ident.value.to_ascii_uppercase()),
                span: ident.span,
            });
        }
        ControlFlow::Continue(())
    }
}

fn takes_unit(function: &ast::Function) -> bool {
    function.name.0.len() == 1
        && last_ident(&function.name).is_some_and(|name| {
            UNIT_FUNCTIONS
                .iter()
                .any(|known| name.value.eq_ignore_ascii_case(known))
        })
}

#[cfg(test)]
mod tests {
    use sqlparser::{dialect::PostgreSqlDialect, parser::Parser};

    use super::*;

    #[test]
    fn only_units_in_their_place_become_text() {
        let sql = "SELECT DateAdd(days, days, d), timestampadd(\"days\", 1, t), abs(days), timesub(hours, 1, dateadd(x, 1, d)) FROM s";
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        name_time_units(&mut statements);
        assert_eq!(
            statements[0].to_string(),
            "SELECT DateAdd('DAYS', days, d), timestampadd(\"days\", 1, t), abs(days), timesub('HOURS', 1, dateadd(x, 1, d)) FROM s"
        );
    }
}
