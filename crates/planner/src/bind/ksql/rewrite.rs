//! The tree of a query in dialect ksql, rewritten to mean the same under DataFusion's rules.
//!
//! - `1` is INT where it fits, `1e0` is DOUBLE; `1.5` stays the DECIMAL that the binder makes of it.
//! - A comparison with NULL on one side is FALSE, so `NOT (a = 1)` holds for NULL. A comparison with the literal NULL is refused.
//! - CAST follows ksqlDB's rules.
//! - ROWTIME, WINDOWSTART and WINDOWEND are BIGINT; a text that they are compared with is a moment, whole or in part.
//! - `x IN (..)` is a comparison with each element; LIKE takes any escape character.
//! - `COUNT()` counts rows; EXPLODE is UNNEST.
//!
//! Names of event time and its like are in lower case afterwards, whatever names fold to: nothing else can have them.

use std::ops::ControlFlow;

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};
use highwater_sql::Dialect;
use sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Value, VisitMut,
    VisitorMut,
};

use super::{
    super::locate::{position_of, start_of},
    arithmetic::IN_OPERATOR,
};
use crate::{
    catalog::{ROWOFFSET, ROWPARTITION, ROWTIME, WINDOWEND, WINDOWSTART},
    error::{PlanError, PlanResult},
};

/// Columns that every relation, or every windowed one, has by itself.
const PSEUDO_COLUMNS: [&str; 5] = [ROWTIME, ROWPARTITION, ROWOFFSET, WINDOWSTART, WINDOWEND];

/// Rewrites a query, or a part of one. In dialect postgres only names are brought to one spelling.
pub(crate) fn rewrite<T: VisitMut>(tree: &mut T, dialect: Dialect) -> PlanResult<()> {
    let mut rewriter = Rewriter {
        ksql: dialect == Dialect::Ksql,
        parameters: Vec::new(),
    };
    match tree.visit(&mut rewriter) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Rewriter {
    ksql: bool,
    /// The parameters of the lambdas around the expression.
    parameters: Vec<Vec<ast::Ident>>,
}

impl Rewriter {
    /// The parameter that a name in a lambda's body means, spelled as the lambda does.
    fn parameter(&self, ident: &ast::Ident) -> Option<&ast::Ident> {
        let scopes = self.parameters.iter().rev();
        scopes.flatten().find(|parameter| {
            parameter.value == ident.value
                || (ident.quote_style.is_none()
                    && parameter.value.eq_ignore_ascii_case(&ident.value))
        })
    }
}

impl VisitorMut for Rewriter {
    type Break = Box<PlanError>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<PlanError>> {
        match expr {
            Expr::Lambda(lambda) => {
                let parameters = match &mut lambda.params {
                    ast::OneOrManyWithParens::One(parameter) => std::slice::from_mut(parameter),
                    ast::OneOrManyWithParens::Many(parameters) => parameters.as_mut_slice(),
                };
                // The binder folds a parameter once more, and not what refers to it, unless both are quoted.
                for parameter in parameters.iter_mut() {
                    parameter.name.quote_style = Some('"');
                }
                let names = parameters.iter().map(|parameter| parameter.name.clone());
                self.parameters.push(names.collect());
            }
            Expr::Identifier(ident) => {
                if let Some(parameter) = self.parameter(ident).cloned() {
                    ident.value = parameter.value;
                    ident.quote_style = parameter.quote_style;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<PlanError>> {
        if matches!(expr, Expr::Lambda(_)) {
            self.parameters.pop();
            return ControlFlow::Continue(());
        }
        if !self.ksql {
            respell(expr);
            return ControlFlow::Continue(());
        }
        match rewritten(expr) {
            Ok(Some(new)) => *expr = new,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(Box::new(error)),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<Box<PlanError>> {
        for condition in [&mut select.selection, &mut select.having]
            .into_iter()
            .flatten()
        {
            bare_conjuncts(condition);
        }
        ControlFlow::Continue(())
    }
}

/// A condition that must hold drops a row for NULL as for FALSE; without `IS TRUE` around it, it can be looked up by key and pushed down.
fn bare_conjuncts(condition: &mut Expr) {
    match condition {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            bare_conjuncts(left);
            bare_conjuncts(right);
        }
        Expr::Nested(inner) => bare_conjuncts(inner),
        Expr::IsTrue(inner) => *condition = inner.as_ref().clone(),
        _ => {}
    }
}

/// What both dialects have: pseudo columns in any case, and the names of functions.
fn respell(expr: &mut Expr) {
    match expr {
        Expr::Identifier(ident) => {
            pseudo_column(std::slice::from_mut(ident));
        }
        Expr::CompoundIdentifier(parts) => {
            pseudo_column(parts);
        }
        Expr::Function(function) => rename_function(function),
        _ => {}
    }
}

fn rewritten(expr: &mut Expr) -> PlanResult<Option<Expr>> {
    match expr {
        Expr::Value(ast::ValueWithSpan {
            value: Value::Number(digits, _),
            span,
        }) => number(digits, position_of(*span)),
        Expr::Identifier(ident) => Ok(time_column(std::slice::from_mut(ident), expr_of_ident)),
        Expr::CompoundIdentifier(parts) => {
            let mut parts = parts.clone();
            let known = pseudo_column(&mut parts);
            Ok(known.then(|| as_bigint_if_time(Expr::CompoundIdentifier(parts.clone()), &parts)))
        }
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            if is_null(left) || is_null(right) {
                return Err(PlanError::invalid(
                    "a comparison with NULL is never true",
                    start_of(&*expr),
                    Some("write IS NULL or IS NOT NULL"),
                ));
            }
            compare_with_moment(left, right)?;
            compare_with_moment(right, left)?;
            Ok(Some(is_true(expr.clone())))
        }
        Expr::Between {
            expr: subject,
            negated,
            low,
            high,
        } => {
            compare_with_moment(subject, low)?;
            compare_with_moment(subject, high)?;
            let negated = std::mem::take(negated);
            Ok(Some(negated_if(negated, is_true(expr.clone()))))
        }
        Expr::InList {
            expr: subject,
            list,
            negated,
        } => {
            let element = |element: &Expr| {
                is_true(Expr::BinaryOp {
                    left: subject.clone(),
                    op: BinaryOperator::Custom(IN_OPERATOR.to_owned()),
                    right: Box::new(element.clone()),
                })
            };
            let any = list
                .iter()
                .map(element)
                .reduce(|left, right| Expr::BinaryOp {
                    left: Box::new(left),
                    op: BinaryOperator::Or,
                    right: Box::new(right),
                });
            let any = any.map(|any| Expr::Nested(Box::new(any)));
            Ok(any.map(|any| negated_if(*negated, any)))
        }
        Expr::Like {
            negated,
            pattern,
            escape_char,
            ..
        } => {
            let negated = std::mem::take(negated);
            if let Some(escape) = escape_char.take() {
                **pattern = with_backslashes(pattern.as_ref().clone(), escape.value);
            }
            Ok(Some(negated_if(negated, is_true(expr.clone()))))
        }
        Expr::Array(array) if array.elem.iter().all(is_null) => Err(no_type(
            "an array without an element that is not NULL has no type",
            expr,
        )),
        Expr::Map(map)
            if map.entries.iter().all(|entry| is_null(&entry.key))
                || map.entries.iter().all(|entry| is_null(&entry.value)) =>
        {
            Err(no_type(
                "a map whose keys or values are all NULL has no type",
                expr,
            ))
        }
        Expr::Case {
            conditions,
            else_result,
            ..
        } if conditions.iter().all(|when| is_null(&when.result))
            && else_result.as_deref().is_none_or(is_null) =>
        {
            Err(no_type(
                "a CASE whose results are all NULL has no type",
                expr,
            ))
        }
        Expr::Function(function) => {
            rename_function(function);
            Ok(None)
        }
        Expr::Cast {
            kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
            expr: value,
            data_type,
            ..
        } => Ok(Some(ksql_cast(value.as_ref().clone(), data_type.clone()))),
        _ => Ok(None),
    }
}

fn expr_of_ident(parts: &[ast::Ident]) -> Expr {
    match parts {
        [ident] => Expr::Identifier(ident.clone()),
        parts => Expr::CompoundIdentifier(parts.to_vec()),
    }
}

fn time_column(parts: &mut [ast::Ident], make: fn(&[ast::Ident]) -> Expr) -> Option<Expr> {
    let mut parts = parts.to_vec();
    pseudo_column(&mut parts).then(|| as_bigint_if_time(make(&parts), &parts))
}

/// Gives a pseudo column's name its one spelling; answers whether it is one.
fn pseudo_column(parts: &mut [ast::Ident]) -> bool {
    let Some(last) = parts.last_mut() else {
        return false;
    };
    let known = PSEUDO_COLUMNS
        .iter()
        .find(|name| name.eq_ignore_ascii_case(&last.value));
    match known {
        Some(name) => {
            last.value = (*name).to_owned();
            true
        }
        None => false,
    }
}

/// Event time and the bounds of windows are numbers.
fn as_bigint_if_time(column: Expr, parts: &[ast::Ident]) -> Expr {
    let is_time = parts
        .last()
        .is_some_and(|name| matches!(name.value.as_str(), ROWTIME | WINDOWSTART | WINDOWEND));
    match is_time {
        true => cast(column, ast::DataType::BigInt(None)),
        false => column,
    }
}

fn cast(expr: Expr, data_type: ast::DataType) -> Expr {
    Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// A cast under ksqlDB's rules. The function takes the type as a NULL of it.
fn ksql_cast(value: Expr, data_type: ast::DataType) -> Expr {
    let null = Expr::value(Value::Null);
    // A NULL has no value that rules could be about.
    if is_null(&value) {
        return cast(null, data_type);
    }
    call(
        highwater_functions::CAST,
        vec![value, cast(null, data_type)],
    )
}

fn no_type(message: &str, expr: &Expr) -> PlanError {
    PlanError::invalid(
        message,
        start_of(expr),
        Some("CAST(NULL AS type) gives it one"),
    )
}

/// A pattern of LIKE whose escape character is the backslash, which is the one that DataFusion knows.
fn with_backslashes(pattern: Expr, escape: Value) -> Expr {
    let Value::SingleQuotedString(escape) = escape else {
        return pattern;
    };
    if escape == "\\" {
        return pattern;
    }
    let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
    let plain = call("replace", vec![pattern, text("\\"), text("\\\\")]);
    call("replace", vec![plain, text(&escape), text("\\")])
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let arguments = arguments
        .into_iter()
        .map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
    Expr::Function(ast::Function {
        name: ast::ObjectName::from(vec![ast::Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn number(digits: &str, position: Option<crate::Position>) -> PlanResult<Option<Expr>> {
    if digits.contains(['e', 'E']) {
        if !digits.parse::<f64>().is_ok_and(f64::is_finite) {
            return Err(PlanError::invalid(
                format!("the number {digits} is beyond DOUBLE"),
                position,
                None,
            ));
        }
        let text = Expr::value(Value::SingleQuotedString(digits.to_owned()));
        return Ok(Some(cast(
            text,
            ast::DataType::Double(ast::ExactNumberInfo::None),
        )));
    }
    if digits.contains('.') {
        return Ok(None);
    }
    match digits.parse::<i64>() {
        Ok(value) if i32::try_from(value).is_ok() => {
            let literal = Expr::value(Value::Number(digits.to_owned(), false));
            Ok(Some(cast(literal, ast::DataType::Int(None))))
        }
        Ok(_) => Ok(None),
        Err(_) => Err(PlanError::invalid(
            format!("the number {digits} is beyond BIGINT"),
            position,
            Some("write it as a DECIMAL: with a point"),
        )),
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => value.value == Value::Null,
        Expr::Nested(inner) => is_null(inner),
        _ => false,
    }
}

fn is_true(expr: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::IsTrue(Box::new(Expr::Nested(Box::new(
        expr,
    ))))))
}

fn negated_if(negated: bool, expr: Expr) -> Expr {
    match negated {
        true => Expr::UnaryOp {
            op: ast::UnaryOperator::Not,
            expr: Box::new(expr),
        },
        false => expr,
    }
}

/// A text that event time is compared with becomes the number that it means.
fn compare_with_moment(time: &Expr, text: &mut Expr) -> PlanResult<()> {
    let Expr::Cast { expr: column, .. } = time else {
        return Ok(());
    };
    let name = match column.as_ref() {
        Expr::Identifier(ident) => Some(ident),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    if !name.is_some_and(|name| matches!(name.value.as_str(), ROWTIME | WINDOWSTART | WINDOWEND)) {
        return Ok(());
    }
    let Expr::Value(ast::ValueWithSpan {
        value: Value::SingleQuotedString(written),
        span,
    }) = text
    else {
        return Ok(());
    };
    match moment(written) {
        Some(millis) => {
            let digits = Expr::value(Value::Number(millis.to_string(), false));
            *text = cast(digits, ast::DataType::BigInt(None));
            Ok(())
        }
        None => Err(PlanError::invalid(
            format!("'{written}' is no moment"),
            position_of(*span),
            Some("write '2020-01-31T12:30:00.000', or a part of it from the left"),
        )),
    }
}

/// Milliseconds of a moment that is written whole or in part: what is left out is the first of its kind. Without a zone it is in UTC.
fn moment(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(zoned) = DateTime::<FixedOffset>::parse_from_rfc3339(text) {
        return Some(zoned.timestamp_millis());
    }
    let (local, offset) = split_offset(text);
    let (date, time) = match local.split_once('T') {
        Some((date, time)) => (date, time),
        None => (local, ""),
    };
    let mut parts = date.split('-');
    let year: i32 = parts.next()?.parse().ok()?;
    let mut next = || {
        parts
            .next()
            .map_or(Some(1), |part| part.parse::<u32>().ok())
    };
    let date = NaiveDate::from_ymd_opt(year, next()?, next()?)?;
    let mut parts = time.split(':');
    let mut next = || match parts.next() {
        None | Some("") => Some("0"),
        part => part,
    };
    let (hours, minutes, seconds) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?);
    let (seconds, millis) = match seconds.split_once('.') {
        Some((seconds, fraction)) => (seconds, format!("{fraction:0<3}").get(..3)?.parse().ok()?),
        None => (seconds, 0),
    };
    let time = NaiveTime::from_hms_milli_opt(hours, minutes, seconds.parse().ok()?, millis)?;
    let local = NaiveDateTime::new(date, time).and_utc().timestamp_millis();
    Some(local - offset)
}

/// A zone's offset at the end, in milliseconds: `Z`, `+0100`, `-08:00`.
fn split_offset(text: &str) -> (&str, i64) {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return (local, 0);
    }
    let from = text.find('T').unwrap_or(text.len());
    let Some(at) = text[from..].find(['+', '-']).map(|at| from + at) else {
        return (text, 0);
    };
    let digits: String = text[at + 1..]
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let parsed = (digits.len() == 4)
        .then(|| digits.parse::<i64>().ok())
        .flatten()
        .map(|hhmm| (hhmm / 100 * 60 + hhmm % 100) * 60_000);
    match parsed {
        Some(offset) if text[at..].starts_with('-') => (&text[..at], -offset),
        Some(offset) => (&text[..at], offset),
        None => (text, 0),
    }
}

/// Names and forms that the binder has otherwise.
fn rename_function(function: &mut ast::Function) {
    let Some(name) = function.name.0.last().and_then(|part| part.as_ident()) else {
        return;
    };
    let lower = name.value.to_ascii_lowercase();
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    match lower.as_str() {
        "explode" => function.name = ast::ObjectName::from(vec![ast::Ident::new("unnest")]),
        "cube_explode" => {
            let variants = std::mem::take(&mut list.args).into_iter();
            let variants = variants.filter_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
                _ => None,
            });
            let variants = call(highwater_functions::CUBE, variants.collect());
            list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(variants))];
            function.name = ast::ObjectName::from(vec![ast::Ident::new("unnest")]);
        }
        // A literal counts rows, whichever it is.
        "count"
            if list.args.is_empty()
                || matches!(list.args.as_slice(), [only] if is_literal(only)) =>
        {
            list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)];
        }
        _ => {}
    }
}

fn is_literal(argument: &FunctionArg) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
        return false;
    };
    match expr {
        Expr::Value(value) => value.value != Value::Null,
        Expr::Cast { expr, .. } => {
            matches!(expr.as_ref(), Expr::Value(value) if value.value != Value::Null)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_may_be_cut_off() {
        assert_eq!(moment("1970"), Some(0));
        assert_eq!(moment("1970-01-02"), Some(86_400_000));
        assert_eq!(moment("1970-01-01T01"), Some(3_600_000));
        assert_eq!(moment("1970-01-01T00:00:01.5"), Some(1500));
        assert_eq!(moment("1970-01-01T01:00:00+0100"), Some(0));
        assert_eq!(moment("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(moment("1970-13"), None);
        assert_eq!(moment("soon"), None);
    }
}
