//! Spellings of PostgreSQL's clients that DataFusion does not know.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Query, VisitMut, VisitorMut};

/// `pg_catalog.version()` as `version()`: functions have no schemas here.
pub fn unqualify_functions(query: &mut Query) {
    struct Unqualify;
    impl VisitorMut for Unqualify {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Function(function) = expr
                && let [schema, _] = function.name.0.as_slice()
                && schema
                    .as_ident()
                    .is_some_and(|schema| schema.value.eq_ignore_ascii_case("pg_catalog"))
            {
                function.name.0.remove(0);
            }
            ControlFlow::Continue(())
        }
    }
    let _ = query.visit(&mut Unqualify);
}

#[cfg(test)]
mod tests {
    use sqlparser::{ast::Statement, dialect::PostgreSqlDialect, parser::Parser};

    use super::*;

    #[test]
    fn catalog_functions_lose_their_schema() {
        let sql = "SELECT pg_catalog.version(), other.f(1)";
        let Some(Statement::Query(mut query)) = Parser::parse_sql(&PostgreSqlDialect {}, sql)
            .expect("parses")
            .pop()
        else {
            panic!("not a query");
        };
        unqualify_functions(&mut query);
        assert_eq!(query.to_string(), "SELECT version(), other.f(1)");
    }
}
