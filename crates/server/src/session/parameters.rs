//! `$1`, `$2`, ..: their types and their values.
//!
//! Pull queries keep placeholders until they are bound and get typed values then. Continuous forms (push queries) are planned from their
//! text tree, so their values are written into it first.

use std::{collections::BTreeMap, ops::ControlFlow};

use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use sqlparser::{
    ast::{
        CastKind, DataType as SqlDataType, ExactNumberInfo, Expr, TimezoneInfo, Value, Visit,
        VisitMut, Visitor, VisitorMut,
    },
    tokenizer::Span,
};

use super::SessionResult;
use crate::sqlstate::{SqlError, code};

/// Most parameters of a statement: the protocol counts them in 16 bits.
const MAX_PARAMETERS: usize = u16::MAX as usize;

/// Inferred types by number, from 1; `None` where the statement does not tell.
pub type Inferred = BTreeMap<usize, Option<DataType>>;

/// The number of a `$n` placeholder.
pub fn placeholder_number(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => name.strip_prefix('$')?.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// All placeholders under a node.
pub fn placeholders(node: &impl Visit) -> Inferred {
    struct Find(Inferred);
    impl Visitor for Find {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Some(number) = placeholder_number(expr) {
                self.0.entry(number).or_insert(None);
            }
            ControlFlow::Continue(())
        }
    }
    let mut find = Find(Inferred::new());
    let _ = node.visit(&mut find);
    find.0
}

/// The types that the client is told: what it declared, else what was inferred, else text.
pub fn settle(declared: &[Option<DataType>], inferred: &Inferred) -> Vec<DataType> {
    let highest = inferred.keys().next_back().copied().unwrap_or(0);
    let count = declared.len().max(highest).min(MAX_PARAMETERS);
    (1..=count)
        .map(|number| {
            let declared = declared.get(number - 1).cloned().flatten();
            declared
                .or_else(|| inferred.get(&number).cloned().flatten())
                .unwrap_or(DataType::Utf8)
        })
        .collect()
}

/// Writes values in the place of placeholders.
pub fn substitute(node: &mut impl VisitMut, values: &[ScalarValue]) -> SessionResult<()> {
    struct Put<'a>(&'a [ScalarValue]);
    impl VisitorMut for Put<'_> {
        type Break = SqlError;
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
            let Some(number) = placeholder_number(expr) else {
                return ControlFlow::Continue(());
            };
            let literal = value_of(number, self.0).and_then(literal);
            match literal {
                Ok(literal) => {
                    *expr = literal;
                    ControlFlow::Continue(())
                }
                Err(error) => ControlFlow::Break(error),
            }
        }
    }
    match node.visit(&mut Put(values)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The value of `$number`.
pub fn value_of(number: usize, values: &[ScalarValue]) -> SessionResult<&ScalarValue> {
    number
        .checked_sub(1)
        .and_then(|at| values.get(at))
        .ok_or_else(|| {
            SqlError::new(
                code::UNDEFINED_PARAMETER,
                format!("there is no parameter ${number}"),
            )
            .with_hint("placeholders get their values by the extended protocol's Bind")
        })
}

fn value(value: Value) -> Expr {
    Expr::Value(value.with_span(Span::empty()))
}

fn cast(expr: Expr, data_type: SqlDataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// A value as an expression: a literal, behind a cast where the literal alone would have another type.
fn literal(scalar: &ScalarValue) -> SessionResult<Expr> {
    let data_type = sql_type(&scalar.data_type())?;
    if scalar.is_null() {
        return Ok(cast(value(Value::Null), data_type));
    }
    if let ScalarValue::Boolean(Some(boolean)) = scalar {
        return Ok(value(Value::Boolean(*boolean)));
    }
    let text = scalar
        .cast_to(&DataType::Utf8)
        .map_err(SqlError::from)?
        .try_as_str()
        .flatten()
        .map(str::to_owned)
        .ok_or_else(|| SqlError::internal("a parameter has no text form"))?;
    let literal = value(Value::SingleQuotedString(text));
    Ok(if scalar.data_type().is_string() {
        literal
    } else {
        cast(literal, data_type)
    })
}

fn sql_type(data_type: &DataType) -> SessionResult<SqlDataType> {
    Ok(match data_type {
        DataType::Null | DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => {
            SqlDataType::Text
        }
        DataType::Boolean => SqlDataType::Boolean,
        DataType::Int8 | DataType::Int16 => SqlDataType::SmallInt(None),
        DataType::Int32 => SqlDataType::Int(None),
        DataType::Int64 => SqlDataType::BigInt(None),
        DataType::Float32 => SqlDataType::Real,
        DataType::Float64 => SqlDataType::Double(ExactNumberInfo::None),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            SqlDataType::Decimal(ExactNumberInfo::PrecisionAndScale(
                u64::from(*precision),
                i64::from(*scale),
            ))
        }
        DataType::Date32 => SqlDataType::Date,
        DataType::Time32(_) | DataType::Time64(_) => SqlDataType::Time(None, TimezoneInfo::None),
        DataType::Timestamp(_, None) => SqlDataType::Timestamp(None, TimezoneInfo::None),
        DataType::Timestamp(_, Some(_)) => SqlDataType::Timestamp(None, TimezoneInfo::WithTimeZone),
        other => {
            return Err(SqlError::unsupported(format!(
                "a parameter of type {other} is not supported in this statement"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use sqlparser::{dialect::PostgreSqlDialect, parser::Parser};

    use super::*;

    fn expr(sql: &str) -> Expr {
        Parser::new(&PostgreSqlDialect {})
            .try_with_sql(sql)
            .and_then(|mut parser| parser.parse_expr())
            .expect("parses")
    }

    #[test]
    fn values_take_the_place_of_placeholders() {
        let mut parsed = expr("a = $2 AND b > $1 OR c = $3");
        let values = [
            ScalarValue::Int64(Some(-5)),
            ScalarValue::Utf8(Some("it's".to_owned())),
            ScalarValue::Boolean(None),
        ];
        substitute(&mut parsed, &values).expect("all known");
        assert_eq!(
            parsed.to_string(),
            "a = 'it''s' AND b > CAST('-5' AS BIGINT) OR c = CAST(NULL AS BOOLEAN)"
        );
        let missing = substitute(&mut expr("$4"), &values).expect_err("no fourth value");
        assert_eq!(missing.code, "42P02");
    }

    #[test]
    fn declared_types_win_over_inferred_ones() {
        let mut inferred = placeholders(&expr("$3 + $1"));
        inferred.insert(1, Some(DataType::Int32));
        let declared = [Some(DataType::Int64), None];
        assert_eq!(
            settle(&declared, &inferred),
            [DataType::Int64, DataType::Utf8, DataType::Utf8]
        );
        assert_eq!(
            settle(&[], &inferred),
            [DataType::Int32, DataType::Utf8, DataType::Utf8]
        );
    }
}
