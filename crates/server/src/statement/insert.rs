//! `INSERT INTO .. VALUES`.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::timezone::Tz,
    datatypes::{DataType, TimeUnit},
};
use datafusion::{
    common::DFSchema,
    execution::SessionState,
    logical_expr::{ColumnarValue, Expr as LogicalExpr, simplify::SimplifyContext},
    optimizer::simplify_expressions::ExprSimplifier,
    physical_expr::PhysicalExpr,
    scalar::ScalarValue,
};
use highwater_functions::take_row_errors;
use highwater_planner::catalog::{Column, ROWTIME, Relation};
use highwater_sql::ast::{Insert, InsertSource};
use sqlparser::ast::{Expr, ExprWithAlias, UnaryOperator, Value};

use super::{
    Described,
    value::{ColumnBuilder, in_column},
    write::{RelationWriter, RowSet, Target, relation, targets},
};
use crate::{
    session::{
        Outcome, Session, SessionResult, blocking, placeholder_number, placeholders, substitute,
        value_of,
    },
    sqlstate::{SqlError, code},
};

/// Tells the parameters: a bare placeholder has the type of its column.
pub fn describe(session: &Session, insert: &Insert) -> SessionResult<Described> {
    let relation = relation(&session.server, &insert.name)?;
    let targets = targets(&relation, &insert.columns)?;
    let InsertSource::Values(rows) = &insert.source else {
        return Ok(Described::default());
    };
    let mut parameters = BTreeMap::new();
    for row in rows {
        for (at, expr) in row.iter().enumerate() {
            let column_type = targets.get(at).map(|target| target_type(&relation, target));
            match placeholder_number(expr) {
                Some(number) => {
                    let known = parameters.entry(number).or_insert(None);
                    if known.is_none() {
                        *known = column_type;
                    }
                }
                None => {
                    for number in placeholders(expr).into_keys() {
                        parameters.entry(number).or_insert(None);
                    }
                }
            }
        }
    }
    Ok(Described {
        parameters,
        schema: None,
    })
}

/// Evaluates the rows, appends them, and answers when they are on disk.
pub async fn run(
    session: &mut Session,
    insert: &Insert,
    parameters: &[ScalarValue],
    script: &Arc<str>,
) -> SessionResult<Outcome> {
    let server = Arc::clone(&session.server);
    let relation = relation(&server, &insert.name)?;
    let mut writer = RelationWriter::new(&server, Arc::clone(&relation))?;
    let InsertSource::Values(values) = &insert.source else {
        return Err(SqlError::internal(
            "an INSERT of a query has no rows of its own",
        ));
    };
    let rows = evaluate(session, &relation, insert, values, parameters, script)?;
    let count = rows.rows;
    let written = blocking(move || writer.append_atomically(&rows)).await??;
    session.written.note(written.synced().await?);
    Ok(Outcome::Done(format!("INSERT 0 {count}")))
}

fn target_type(relation: &Relation, target: &Target) -> DataType {
    match target {
        Target::Column(at) => relation.columns[*at].data_type.clone(),
        Target::RowTime => rowtime_type(),
    }
}

fn evaluate(
    session: &Session,
    relation: &Relation,
    insert: &Insert,
    values: &[Vec<Expr>],
    parameters: &[ScalarValue],
    script: &str,
) -> SessionResult<RowSet> {
    let targets = targets(relation, &insert.columns)?;
    let zone: Tz = session.time_zone().parse().map_err(SqlError::from)?;
    let mut expressions = Evaluator {
        session,
        state: None,
        script,
    };
    let mut columns: Vec<ColumnBuilder> = relation
        .columns
        .iter()
        .map(|column| ColumnBuilder::new(column.data_type.clone(), zone))
        .collect();
    let mut timestamps = targets.contains(&Target::RowTime).then(Vec::new);
    let rowtime = Column {
        headers: None,
        name: ROWTIME.to_owned(),
        data_type: rowtime_type(),
        key: false,
    };
    for (number, row) in values.iter().enumerate() {
        check_width(row.len(), targets.len(), number, !insert.columns.is_empty())?;
        for (expr, target) in row.iter().zip(&targets) {
            let in_row = |error: SqlError, column: &Column| in_column(error, column);
            match target {
                Target::Column(at) => {
                    let column = &relation.columns[*at];
                    push(&mut columns[*at], expr, parameters, &mut expressions)
                        .map_err(|error| in_row(error, column))?;
                }
                Target::RowTime => {
                    let time = row_time(expr, zone, parameters, &mut expressions)
                        .map_err(|error| in_row(error, &rowtime))?;
                    timestamps.get_or_insert_default().push(time);
                }
            }
        }
        for (at, column) in columns.iter_mut().enumerate() {
            if !targets.contains(&Target::Column(at)) {
                column.push_null()?;
            }
        }
    }
    let columns = columns
        .iter_mut()
        .map(ColumnBuilder::finish)
        .collect::<SessionResult<Vec<_>>>()?;
    Ok(RowSet {
        columns,
        timestamps,
        rows: values.len(),
    })
}

/// A record's timestamp: a time, or milliseconds since the epoch as ksqlDB takes them.
fn row_time(
    expr: &Expr,
    zone: Tz,
    parameters: &[ScalarValue],
    expressions: &mut Evaluator<'_>,
) -> SessionResult<Option<i64>> {
    let value = match cell(expr, false) {
        Cell::Null => return Ok(None),
        Cell::Text(text) => match text.parse() {
            Ok(millis) => return Ok(Some(millis)),
            Err(_) => ScalarValue::from(text),
        },
        Cell::Parameter(number) => value_of(number, parameters)?.clone(),
        Cell::Expression => expressions.evaluate(expr, parameters)?,
    };
    if value.data_type().is_integer() {
        let millis = value.cast_to(&DataType::Int64).map_err(SqlError::from)?;
        return Ok(match millis {
            ScalarValue::Int64(millis) => millis,
            _ => None,
        });
    }
    let mut builder = ColumnBuilder::new(rowtime_type(), zone);
    builder.push_scalar(&value)?;
    match ScalarValue::try_from_array(&builder.finish()?, 0).map_err(SqlError::from)? {
        ScalarValue::TimestampMillisecond(time, _) => Ok(time),
        other => Err(SqlError::internal(format!(
            "rowtime is a timestamp, not a {}",
            other.data_type()
        ))),
    }
}

fn rowtime_type() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

fn check_width(given: usize, wanted: usize, row: usize, named: bool) -> SessionResult<()> {
    if given == wanted {
        return Ok(());
    }
    let than = if named {
        "target columns"
    } else {
        "columns in the relation"
    };
    let words = if given > wanted { "more" } else { "fewer" };
    let error = SqlError::new(
        code::SYNTAX_ERROR,
        format!(
            "row {} has {words} expressions ({given}) than {than} ({wanted})",
            row + 1
        ),
    );
    Err(match named {
        true => error,
        false => {
            error.with_hint("name the columns that get values: INSERT INTO name (a, b) VALUES ..")
        }
    })
}

/// Adds the value of one cell.
fn push(
    column: &mut ColumnBuilder,
    expr: &Expr,
    parameters: &[ScalarValue],
    expressions: &mut Evaluator<'_>,
) -> SessionResult<()> {
    match cell(expr, column.is_decimal()) {
        Cell::Null => column.push_null(),
        Cell::Text(text) => column.push_text(&text),
        Cell::Parameter(number) => column.push_scalar(value_of(number, parameters)?),
        Cell::Expression => column.push_scalar(&expressions.evaluate(expr, parameters)?),
    }
}

enum Cell {
    Null,
    /// A literal whose text the column's input function reads.
    Text(String),
    Parameter(usize),
    Expression,
}

/// Literals need no planning, and their text keeps every digit: of whole numbers always, of others in a `decimal` column, where they would
/// lose digits on the way through a floating-point number.
fn cell(expr: &Expr, decimal: bool) -> Cell {
    let exact = |digits: &str| is_integer(digits) || (decimal && is_decimal(digits));
    if let Some(number) = placeholder_number(expr) {
        return Cell::Parameter(number);
    }
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Null => Cell::Null,
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                Cell::Text(text.clone())
            }
            Value::Number(digits, _) if exact(digits) => Cell::Text(digits.clone()),
            _ => Cell::Expression,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) if exact(digits) => Cell::Text(format!("-{digits}")),
                _ => Cell::Expression,
            },
            _ => Cell::Expression,
        },
        _ => Cell::Expression,
    }
}

/// Digits with a point, without an exponent.
fn is_decimal(digits: &str) -> bool {
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn is_integer(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Evaluates expressions without columns. The session's functions are gathered when the first one needs them.
struct Evaluator<'a> {
    session: &'a Session,
    state: Option<SessionState>,
    script: &'a str,
}

impl Evaluator<'_> {
    fn evaluate(&mut self, expr: &Expr, parameters: &[ScalarValue]) -> SessionResult<ScalarValue> {
        let mut expr = expr.clone();
        if !parameters.is_empty() {
            substitute(&mut expr, parameters)?;
        }
        highwater_planner::name_time_units(&mut expr);
        let state = self.state.get_or_insert_with(|| self.session.state());
        let script = self.script;
        let located = |error| SqlError::from_datafusion(&error, script);
        let empty = DFSchema::empty();
        // Functions give NULL for what they cannot do and report it; a statement of one value must not hide that.
        take_row_errors();
        let planned = state
            .create_logical_expr_from_sql_expr(ExprWithAlias { expr, alias: None }, &empty)
            .and_then(|planned| simplified(planned, state, &empty))
            .map_err(located)?;
        let physical: Arc<dyn PhysicalExpr> = state
            .create_physical_expr(planned, &empty)
            .map_err(located)?;
        let one_row = one_row_batch()?;
        let value = match physical.evaluate(&one_row).map_err(located)? {
            ColumnarValue::Scalar(value) => value,
            ColumnarValue::Array(array) => {
                ScalarValue::try_from_array(&array, 0).map_err(located)?
            }
        };
        match take_row_errors().reasons.into_iter().next() {
            Some(reason) => Err(SqlError::new(code::DATA_EXCEPTION, reason)),
            None => Ok(value),
        }
    }
}

/// Coerced and with constants folded: `now()` has a value only after that.
fn simplified(
    expr: LogicalExpr,
    state: &SessionState,
    schema: &DFSchema,
) -> datafusion::error::Result<LogicalExpr> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    simplifier.simplify(simplifier.coerce(expr, schema)?)
}

fn one_row_batch() -> SessionResult<arrow::record_batch::RecordBatch> {
    use arrow::{
        datatypes::Schema,
        record_batch::{RecordBatch, RecordBatchOptions},
    };
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
        .map_err(SqlError::from)
}
