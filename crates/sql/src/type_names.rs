//! Names that CREATE TYPE gave, replaced by what they stand for.
//!
//! A name is replaced when a statement that uses it is taken in, so what is kept of the statement never depends on a later DROP TYPE.

use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{self as std_ast, VisitMut, VisitorMut};

use crate::ast::{
    Alter, Assert, CopyTarget, CreateSource, Explain, ExplainTarget, Insert, InsertSource, Query,
    SqlType, Statement,
};
use crate::standard_type::{sql_type_of, standard_type};

/// Finds what a name stands for.
pub type TypeNames<'a> = &'a dyn Fn(&str) -> Option<SqlType>;

/// Replaces the names of types in a statement. Fails with the first name in a declaration that stands for nothing; those before it are
/// replaced. A cast to an unknown type stays as it is, since it may be one that the binder knows.
pub fn expand_types(statement: &mut Statement, names: TypeNames) -> Result<(), String> {
    match statement {
        Statement::CreateSource(source) | Statement::Assert(Assert::Source(source)) => {
            expand_columns(source, names)?;
        }
        Statement::CreateType(create) => expand_type(&mut create.data_type, names)?,
        Statement::Alter(Alter { columns, .. }) => {
            for (_, data_type) in columns {
                expand_type(data_type, names)?;
            }
        }
        Statement::CreateAs(create) => expand_query(&mut create.query, names),
        Statement::Query(query) | Statement::Declare { query, .. } => expand_query(query, names),
        Statement::Copy(copy) => {
            if let CopyTarget::Query(query) = &mut copy.target {
                expand_query(query, names);
            }
        }
        Statement::Insert(Insert { source, .. }) => match source {
            InsertSource::Query(query) => expand_query(query, names),
            InsertSource::Values(rows) => expand_casts(rows, names),
        },
        Statement::Explain(Explain {
            target: ExplainTarget::Statement(statement),
            ..
        }) => expand_types(statement, names)?,
        Statement::Assert(
            Assert::Values { values: row, .. } | Assert::NullValues { key: row, .. },
        ) => {
            expand_casts(row, names);
        }
        _ => {}
    }
    Ok(())
}

fn expand_columns(source: &mut CreateSource, names: TypeNames) -> Result<(), String> {
    for column in &mut source.columns {
        expand_type(&mut column.data_type, names)?;
    }
    Ok(())
}

/// Replaces the names in a type. What a name stands for holds no names itself, since CREATE TYPE replaced them.
fn expand_type(data_type: &mut SqlType, names: TypeNames) -> Result<(), String> {
    match data_type {
        SqlType::Named(name) => match names(name) {
            Some(found) => *data_type = found,
            None => return Err(name.clone()),
        },
        SqlType::Array(element) => expand_type(element, names)?,
        SqlType::Map(key, value) => {
            expand_type(key, names)?;
            expand_type(value, names)?;
        }
        SqlType::Struct(fields) => {
            for (_, field) in fields {
                expand_type(field, names)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn expand_query(query: &mut Query, names: TypeNames) {
    expand_casts(&mut query.body, names);
    expand_casts(&mut query.partition_by, names);
}

fn expand_casts(tree: &mut impl VisitMut, names: TypeNames) {
    let ControlFlow::Continue(()) = tree.visit(&mut Casts { names });
}

struct Casts<'a> {
    names: TypeNames<'a>,
}

impl VisitorMut for Casts<'_> {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut std_ast::Expr) -> ControlFlow<Infallible> {
        if let std_ast::Expr::Cast { data_type, .. } = expr
            && let Some(written) = sql_type_of(data_type)
        {
            let mut expanded = written.clone();
            if expand_type(&mut expanded, self.names).is_ok() && expanded != written {
                *data_type = standard_type(&expanded);
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::format_statement;
    use crate::language::{IdentifierCase, Language};
    use crate::parser::{parse_statement_in, parse_type};

    fn names(name: &str) -> Option<SqlType> {
        let text = match name {
            "ADDRESS" => "STRUCT<`Street` STRING, zip INT>",
            "MONEY" => "DECIMAL(12, 2)",
            _ => return None,
        };
        parse_type(text, Language::KSQL).ok()
    }

    fn expanded(text: &str) -> Result<String, String> {
        let mut statement = parse_statement_in(text, Language::KSQL).unwrap().statement;
        expand_types(&mut statement, &names)?;
        let text = format_statement(&statement, IdentifierCase::Upper);
        let again = parse_statement_in(&text, Language::KSQL).unwrap();
        assert_eq!(again.statement, statement, "{text}");
        Ok(text)
    }

    #[test]
    fn names_are_replaced_in_declarations_and_casts() {
        let address = "STRUCT<\"Street\" STRING, ZIP INT>";
        for (text, expected) in [
            (
                "CREATE STREAM s (a address, b MAP<STRING, money>)",
                format!("CREATE STREAM S (A {address}, B MAP<STRING, DECIMAL(12, 2)>)"),
            ),
            (
                "ALTER STREAM s ADD a address ARRAY",
                format!("ALTER STREAM S ADD COLUMN A ARRAY<{address}>"),
            ),
            (
                "CREATE TYPE person AS STRUCT<home address>",
                format!("CREATE TYPE PERSON AS STRUCT<HOME {address}>"),
            ),
            (
                "SELECT CAST(a AS ARRAY<address>), CAST(b AS MAP<STRING, money>), c::regclass FROM s PARTITION BY CAST(d AS money)",
                    "SELECT CAST(A AS ARRAY<STRUCT<\"Street\" STRING, \"ZIP\" INT>>), CAST(B AS MAP<STRING, DECIMAL(12,2)>), C::REGCLASS FROM S PARTITION BY CAST(D AS DECIMAL(12,2))".to_string(),
            ),
            (
                "INSERT INTO s VALUES (CAST(1 AS money))",
                "INSERT INTO S VALUES (CAST(1 AS DECIMAL(12,2)))".to_string(),
            ),
        ] {
            assert_eq!(expanded(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_declaration_with_an_unknown_name_is_refused() {
        assert_eq!(
            expanded("CREATE STREAM s (a ARRAY<nothing>)"),
            Err("NOTHING".to_string())
        );
    }
}
