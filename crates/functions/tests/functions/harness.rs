//! Expressions evaluated by DataFusion with the functions of a dialect.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{Array, ArrayRef},
        datatypes::{Field, Schema},
        record_batch::RecordBatch,
        util::display::{ArrayFormatter, FormatOptions},
    },
    execution::SessionStateBuilder,
    prelude::{SessionConfig, SessionContext},
};
use highwater_functions::{Dialect, expr_planners, register, take_row_errors};

/// A session of a dialect. Lambdas are written with `->` here: `=>` is the business of our own parser.
pub fn session(dialect: Dialect) -> SessionContext {
    let mut config = SessionConfig::new();
    let options = config.options_mut();
    options.sql_parser.dialect = datafusion::config::Dialect::DuckDB;
    options.sql_parser.map_string_types_to_utf8view = false;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .build();
    let planners = [expr_planners(dialect), state.expr_planners().to_vec()].concat();
    let mut state = SessionStateBuilder::new_from_existing(state)
        .with_expr_planners(planners)
        .build();
    register(&mut state, dialect).unwrap();
    SessionContext::new_with_state(state)
}

/// A column for [`over`].
pub fn column(name: &str, array: impl Array + 'static) -> (String, ArrayRef) {
    (name.to_owned(), Arc::new(array))
}

/// The value of a constant expression in the ksql dialect, as text; `Err` when it cannot be bound.
pub fn try_value(expression: &str) -> Result<String, String> {
    evaluate(
        &session(Dialect::Ksql),
        expression,
        vec![column(
            "unused",
            datafusion::arrow::array::Int32Array::from(vec![1]),
        )],
    )
    .map(|rows| rows[0].clone())
}

/// The value of a constant expression in the ksql dialect, as text.
pub fn value(expression: &str) -> String {
    try_value(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// The values of an expression over columns, in the ksql dialect.
pub fn over(columns: Vec<(String, ArrayRef)>, expression: &str) -> Vec<String> {
    evaluate(&session(Dialect::Ksql), expression, columns)
        .unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// Evaluates an expression over columns; reports of failed rows are left for the caller.
pub fn evaluate(
    session: &SessionContext,
    expression: &str,
    columns: Vec<(String, ArrayRef)>,
) -> Result<Vec<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
        .collect();
    let arrays: Vec<ArrayRef> = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    let _ = session.deregister_table("t");
    session.register_batch("t", batch).unwrap();
    let _ = take_row_errors();
    let batches = runtime.block_on(async {
        let frame = session
            .sql(&format!("SELECT {expression} AS result FROM t"))
            .await
            .map_err(|error| error.strip_backtrace())?;
        frame
            .collect()
            .await
            .map_err(|error| error.strip_backtrace())
    })?;
    let options = FormatOptions::default().with_null("NULL");
    Ok(batches
        .iter()
        .flat_map(|batch| {
            let formatter = ArrayFormatter::try_new(batch.column(0), &options).unwrap();
            (0..batch.num_rows())
                .map(|row| formatter.value(row).to_string())
                .collect::<Vec<_>>()
        })
        .collect())
}

/// Checks expressions against the texts of their values.
pub fn check(cases: &[(&str, &str)]) {
    let session = session(Dialect::Ksql);
    let mut wrong = Vec::new();
    for (expression, expected) in cases {
        let one = vec![column(
            "unused",
            datafusion::arrow::array::Int32Array::from(vec![1]),
        )];
        match evaluate(&session, expression, one) {
            Ok(rows) if rows[0] == *expected => {}
            Ok(rows) => wrong.push(format!("{expression}: {} instead of {expected}", rows[0])),
            Err(error) => wrong.push(format!("{expression}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
