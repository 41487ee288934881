//! Statements against golden text.
//!
//! A golden file is a list of cases, separated by blank lines: a statement, a line `----`, and what planning it gives: the plan as EXPLAIN
//! prints it and the relation that it makes, the rewritten text of a pull query, or the error with position and hint. Relations that a case
//! makes exist for the cases after it. `HIGHWATER_BLESS=1 cargo test -p highwater-planner` writes what is given now into the files, so
//! that a change of plans is read as a diff.

mod catalog;
mod invariants;

use std::{fmt::Write, path::PathBuf};

use datafusion::execution::{SessionState, SessionStateBuilder};
use highwater_sql::{Dialect, IdentifierCase, Statement, parse_statement};

use self::{catalog::TestCatalog, invariants::check_plan};
use crate::{
    PlanContext, PlanError, PlanResult, Position,
    catalog::{Catalog, QueryId, Relation, RelationId, SourceKind},
    explain_dataflow, plan_create_as, plan_create_source, plan_push, plan_source_table,
    rewrite_pull,
    types::sql_name,
};

#[test]
fn sources() {
    check_golden("sources");
}

#[test]
fn plans() {
    check_golden("plans");
}

#[test]
fn pull_queries() {
    check_golden("pull");
}

#[test]
fn errors() {
    check_golden("errors");
}

/// State tables are named by position, so a second planning must number its nodes alike.
#[test]
fn planning_is_repeatable() {
    let functions = functions();
    let mut catalog = TestCatalog::default();
    for (statement, _) in read_cases("plans") {
        let first = describe(&statement, &catalog, &functions);
        assert_eq!(
            first,
            describe(&statement, &catalog, &functions),
            "{statement}"
        );
        catalog.add_result_of(&statement, &functions);
    }
}

/// A declared table is kept by its source alone, with every column and its key.
#[test]
fn a_declared_table_is_one_source() {
    let functions = functions();
    let mut catalog = TestCatalog::default();
    let statement =
        "CREATE TABLE t (v BIGINT, a INT PRIMARY KEY, b VARCHAR PRIMARY KEY) WITH (partitions = 3)";
    catalog.add_result_of(statement, &functions);
    let relation = catalog.relation("t").expect("the table was made");
    let plan = plan_source_table(relation.clone());
    check_plan(&plan, Some(&relation));
    assert_eq!(plan.nodes.len(), 1);
    assert_eq!(
        (plan.kind, plan.slots, plan.window),
        (SourceKind::Table, 3, None)
    );
    assert_eq!(plan.key, vec![1, 2]);
    assert!(plan.root().changing);
}

/// Each source of a push query is told once, in the order that the plan reads them.
#[test]
fn push_queries_tell_their_sources() {
    let functions = functions();
    let mut catalog = TestCatalog::default();
    catalog.add_result_of("CREATE STREAM s (x INT)", &functions);
    catalog.add_result_of("CREATE STREAM t (x INT)", &functions);
    let statement =
        "SELECT x FROM t UNION ALL SELECT x FROM s UNION ALL SELECT x FROM t EMIT CHANGES";
    let Statement::Query(query) = parse_statement(statement).expect("valid").statement else {
        panic!("a query");
    };
    let ctx = PlanContext {
        catalog: &catalog,
        functions: &functions,
        default_partitions: 4,
        dialect: Dialect::Postgres,
        identifier_case: IdentifierCase::Lower,
        defaults: &crate::defaults::NO_DEFAULTS,
    };
    let planned = plan_push(&query, &ctx).expect("a plan");
    let names: Vec<&str> = planned
        .sources
        .iter()
        .map(|source| source.name.as_str())
        .collect();
    assert_eq!(names, ["t", "s"]);
    assert_eq!(planned.limit, None);
}

fn check_golden(name: &str) {
    let functions = functions();
    let mut catalog = TestCatalog::default();
    let mut given = String::new();
    let cases = read_cases(name);
    for (statement, _) in &cases {
        let text = describe(statement, &catalog, &functions);
        writeln!(given, "{statement}\n----\n{text}\n").expect("writing to a string succeeds");
        catalog.add_result_of(statement, &functions);
    }
    if std::env::var_os("HIGHWATER_BLESS").is_some() {
        std::fs::write(golden_path(name), given.trim_end().to_owned() + "\n")
            .expect("the golden file can be written");
        return;
    }
    let mut wrong = Vec::new();
    let mut catalog = TestCatalog::default();
    for (statement, expected) in &cases {
        let text = describe(statement, &catalog, &functions);
        if text != *expected {
            wrong.push(format!(
                "{statement}\n---- expected\n{expected}\n---- given\n{text}\n"
            ));
        }
        catalog.add_result_of(statement, &functions);
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases differ:\n\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src/tests")
        .join(format!("{name}.golden"))
}

fn read_cases(name: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(golden_path(name)).expect("the golden file exists");
    let cases: Vec<(String, String)> = text
        .trim_end()
        .split("\n\n")
        .map(|case| {
            let (statement, expected) = case.split_once("\n----").unwrap_or((case, ""));
            (
                statement.trim().to_owned(),
                expected.trim_start_matches('\n').to_owned(),
            )
        })
        .collect();
    assert!(cases.len() > 1, "{name} has cases");
    cases
}

fn functions() -> SessionState {
    SessionStateBuilder::new().with_default_features().build()
}

/// What planning a statement gives, as text.
fn describe(statement: &str, catalog: &TestCatalog, functions: &SessionState) -> String {
    match try_describe(statement, catalog, functions) {
        Ok(text) => text,
        Err(error) => describe_error(&error, statement),
    }
}

fn try_describe(
    statement: &str,
    catalog: &TestCatalog,
    functions: &SessionState,
) -> PlanResult<String> {
    let parsed = parse_statement(statement)
        .unwrap_or_else(|error| panic!("{statement}: {error}"))
        .statement;
    let ctx = PlanContext {
        catalog,
        functions,
        default_partitions: 4,
        dialect: Dialect::Postgres,
        identifier_case: IdentifierCase::Lower,
        defaults: &crate::defaults::NO_DEFAULTS,
    };
    match parsed {
        Statement::CreateSource(create) => Ok(describe_relation(&plan_create_source(
            &create,
            &ctx,
            RelationId(1),
        )?)),
        Statement::CreateAs(create) => {
            let planned = plan_create_as(&create, &ctx, RelationId(1), QueryId(7))?;
            check_plan(&planned.plan, Some(&planned.relation));
            let mut lines = explain_dataflow(&planned.plan, Some(&planned.relation));
            check_width(&lines);
            lines.push(describe_relation(&planned.relation));
            Ok(lines.join("\n"))
        }
        Statement::Query(query) if query.emit.is_some() => {
            let planned = plan_push(&query, &ctx)?;
            check_plan(&planned.plan, None);
            let mut lines = explain_dataflow(&planned.plan, None);
            check_width(&lines);
            lines.extend(planned.limit.map(|limit| format!("limit {limit}")));
            Ok(lines.join("\n"))
        }
        Statement::Query(query) => {
            Ok(rewrite_pull(&query, Dialect::Postgres, catalog)?.to_string())
        }
        other => panic!("{other:?} has no plan"),
    }
}

fn check_width(lines: &[String]) {
    for line in lines {
        assert!(line.chars().count() <= 100, "too wide: {line}");
    }
}

fn describe_relation(relation: &Relation) -> String {
    let columns: Vec<String> = relation
        .columns
        .iter()
        .map(|column| {
            let key = if column.key { " KEY" } else { "" };
            format!("{} {}{key}", column.name, sql_name(&column.data_type))
        })
        .collect();
    let mut text = format!(
        "=> {:?} {} ({}) topic {} x{} key {} value {}",
        relation.kind,
        relation.name,
        columns.join(", "),
        relation.topic,
        relation.partitions,
        relation.key_format.name,
        relation.value_format.name,
    );
    if let Some(delimiter) = &relation.value_format.delimiter {
        write!(text, " delimiter {delimiter:?}").expect("writing to a string succeeds");
    }
    if let Some(wrapped) = relation.value_format.wrapped {
        write!(text, " wrapped {wrapped}").expect("writing to a string succeeds");
    }
    if let Some(timestamp) = &relation.timestamp {
        write!(
            text,
            " timestamp {} {:?}",
            timestamp.column, timestamp.format
        )
        .expect("writing to a string succeeds");
    }
    if let Some(window) = &relation.window {
        write!(text, " windows {window}").expect("writing to a string succeeds");
    }
    text
}

/// The first characters of the token that an error is about.
fn text_at(statement: &str, position: Position) -> String {
    let line = statement
        .lines()
        .nth(position.line as usize - 1)
        .expect("the line exists");
    let behind: String = line
        .chars()
        .skip(position.column as usize - 1)
        .take(20)
        .collect();
    behind.trim_end().to_owned()
}

fn describe_error(error: &PlanError, statement: &str) -> String {
    let mut text = format!("ERROR: {error}");
    if let Some(position) = error.position() {
        write!(text, "\nAT: {}", text_at(statement, position))
            .expect("writing to a string succeeds");
    }
    if let Some(hint) = error.hint() {
        write!(text, "\nHINT: {hint}").expect("writing to a string succeeds");
    }
    if let PlanError::DataFusion(source) = error {
        write!(text, "\nSOURCE: {source}").expect("writing to a string succeeds");
    }
    text
}
