use std::{io, sync::Arc};

use ::datafusion::{
    common::{Column, SchemaError},
    error::DataFusionError,
    execution::context::SessionContext,
};
use highwater_exec::ExecError;
use highwater_planner::PlanError;
use highwater_storage_log::{LogError, TopicPartition};

use super::*;

/// What a real DataFusion says of each statement: a wording that changes with an upgrade shows here.
#[tokio::test]
async fn mistakes_in_queries_have_postgresqls_codes() {
    let context = SessionContext::new();
    context
        .sql("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 1.5), (0, 'b', 2.5)) AS v(n, s, x)")
        .await
        .expect("a table");
    let cases = [
        ("SELECT * FROM nowhere", code::UNDEFINED_TABLE),
        ("SELECT nothing FROM t", code::UNDEFINED_COLUMN),
        ("SELECT t.nothing FROM t", code::UNDEFINED_COLUMN),
        ("SELECT n FROM t AS a, t AS b", code::AMBIGUOUS_COLUMN),
        ("SELECT nofunction(n) FROM t", code::UNDEFINED_FUNCTION),
        ("SELECT sqrt(n, n) FROM t", code::UNDEFINED_FUNCTION),
        ("SELECT s, count(*) FROM t", code::GROUPING_ERROR),
        (
            "SELECT n FROM t UNION SELECT n, s FROM t",
            code::SYNTAX_ERROR,
        ),
        ("SELECT n / 0 FROM t", code::DIVISION_BY_ZERO),
        (
            "SELECT CAST(s AS INT) FROM t",
            code::INVALID_TEXT_REPRESENTATION,
        ),
        (
            "SELECT CAST(n + 70000 AS SMALLINT) FROM t",
            code::NUMERIC_VALUE_OUT_OF_RANGE,
        ),
        (
            "SELECT CAST(s AS TIMESTAMP) FROM t",
            code::INVALID_DATETIME_FORMAT,
        ),
        ("SELECT 1 +", code::SYNTAX_ERROR),
    ];
    for (query, expected) in cases {
        let error = match context.sql(query).await {
            Ok(frame) => frame.collect().await.expect_err(query),
            Err(error) => error,
        };
        let told = SqlError::from_datafusion(&error, query);
        assert_eq!(told.code, expected, "{query}: {error}");
        assert!(
            !told.message.is_empty() && !told.message.contains("DataFusion"),
            "{query}: {}",
            told.message
        );
    }
}

#[test]
fn only_a_similar_function_is_proposed() {
    let hint = |name: &str| {
        let message = format!("Invalid function '{name}'.\nDid you mean 'round'?");
        SqlError::from(DataFusionError::Plan(message)).hint
    };
    assert_eq!(hint("roud").as_deref(), Some("did you mean \"round\"?"));
    assert_eq!(hint("nofunc"), None);
}

#[test]
fn an_unknown_column_is_named_with_what_there_is() {
    let error = DataFusionError::SchemaError(
        Box::new(SchemaError::FieldNotFound {
            field: Box::new(Column::from_name("pice")),
            valid_fields: vec![Column::from_name("price"), Column::from_name("name")],
        }),
        Box::new(None),
    );
    let told = SqlError::from(error);
    assert_eq!(
        (told.code, told.message.as_str()),
        (code::UNDEFINED_COLUMN, "column \"pice\" does not exist")
    );
    assert_eq!(told.hint.as_deref(), Some("there are: price, name"));
}

#[test]
fn our_errors_keep_their_codes_on_the_way_through_datafusion() {
    let ours =
        SqlError::new(code::CONFIGURATION_LIMIT_EXCEEDED, "too slow").with_hint("read faster");
    let wrapped = DataFusionError::External(Box::new(ours.clone()));
    let wrapped = DataFusionError::Shared(Arc::new(DataFusionError::ArrowError(
        Box::new(::datafusion::arrow::error::ArrowError::from(wrapped)),
        None,
    )));
    assert_eq!(SqlError::from(wrapped), ours);
    let stopped = DataFusionError::External(Box::new(ExecError::Stopped("asked to".into())));
    assert_eq!(SqlError::from(stopped).code, code::CANNOT_CONNECT_NOW);
}

#[test]
fn the_environment_and_damage_are_told_apart() {
    let full = LogError::Io {
        attempted: "append".into(),
        source: io::ErrorKind::StorageFull.into(),
    };
    let told = SqlError::from(&ExecError::Log(full));
    assert_eq!(told.code, code::DISK_FULL);
    assert!(
        told.message.contains("append") && told.detail.is_some() && told.hint.is_some(),
        "{told:?}"
    );

    let partition = TopicPartition::new("orders", 3);
    let damaged = LogError::Corrupt {
        partition: partition.clone(),
        from: highwater_storage_log::Offset(7),
        to: highwater_storage_log::Offset(9),
        reason: "checksum".into(),
    };
    let stopped = LogError::Stopped {
        partition,
        cause: Arc::new(damaged),
    };
    assert_eq!(SqlError::from(stopped).code, code::DATA_CORRUPTED);
    assert_eq!(
        SqlError::from(ExecError::Internal("x".into())).code,
        code::INTERNAL_ERROR
    );
}

#[test]
fn parse_errors_have_a_position_in_characters() {
    let script = "SELECT 'ä';\nCREATE STREAM (";
    let error = highwater_sql::parse_script(script).expect_err("no name");
    let told = SqlError::from_sql(&error, script);
    assert_eq!(told.code, code::SYNTAX_ERROR);
    let position = told.position.expect("a position");
    assert_eq!(script.chars().nth(position - 1), Some('('));
}

#[test]
fn plan_errors_have_a_position_in_characters() {
    let position = Some(highwater_planner::Position { line: 2, column: 3 });
    let error = PlanError::UnknownRelation {
        name: "x".into(),
        position,
        hint: None,
    };
    let told = SqlError::from_plan(&error, "ä\nxyx z");
    assert_eq!((told.code, told.position), (code::UNDEFINED_TABLE, Some(5)));
}

#[test]
fn positions_outside_the_text_are_left_out() {
    let text = "one\ntwo";
    let at = |line, column| {
        SqlError::internal("x")
            .with_line_and_column(text, line, column)
            .position
    };
    assert_eq!(at(1, 1), Some(1));
    assert_eq!(at(2, 1), Some(5));
    assert_eq!(at(2, 4), Some(8));
    let behind = SqlError::internal("x").with_line_and_column("one\n", 2, 1);
    assert_eq!(behind.position, Some(5));
    for (line, column) in [(0, 0), (0, 1), (1, 0), (3, 1), (2, 9), (u64::MAX, u64::MAX)] {
        assert_eq!(at(line, column), None, "{line}:{column}");
    }
}
