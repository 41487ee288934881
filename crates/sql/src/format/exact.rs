//! Standard trees whose own text does not parse to them again, made so that it does.
//!
//! - The standard tree takes two quotes side by side in a literal's text for one that is escaped already and prints `it''s` for what should
//!   be `its''`, so a literal with quotes is replaced by its finished text.
//! - It writes a lambda with the arrow that is ksqlDB's struct access.
//! - It writes `MAP<K, V>` with round brackets.

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, Expr, Ident, LambdaFunction,
    LambdaFunctionParameter, LambdaSyntax, ObjectName, OneOrManyWithParens, Value, ValueWithSpan,
    Visit, VisitMut, Visitor, VisitorMut,
};

use super::comma_separated;
use crate::name::quote_literal;

/// A standard tree that prints exactly.
pub(super) fn exact<T: Visit + VisitMut + Clone>(tree: &T) -> Cow<'_, T> {
    if tree.visit(&mut Find).is_continue() {
        return Cow::Borrowed(tree);
    }
    let mut exact = tree.clone();
    let ControlFlow::Continue(()) = VisitMut::visit(&mut exact, &mut Finish);
    Cow::Owned(exact)
}

/// Stops at the first part that does not print exactly.
struct Find;

impl Visitor for Find {
    type Break = ();

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        match &value.value {
            Value::SingleQuotedString(text) if text.contains('\'') => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Lambda(_) => ControlFlow::Break(()),
            Expr::Cast { data_type, .. } if has_map(data_type) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Replaces such parts by ones that print their finished text.
struct Finish;

impl VisitorMut for Finish {
    type Break = Infallible;

    /// A placeholder prints as it is.
    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Infallible> {
        if let Value::SingleQuotedString(text) = &value.value {
            value.value = Value::Placeholder(quote_literal(text));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Lambda(lambda) => *expr = arrow(lambda),
            Expr::Cast { data_type, .. } if has_map(data_type) => {
                let text = Ident::new(type_text(data_type));
                *data_type = DataType::Custom(ObjectName::from(vec![text]), Vec::new());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A lambda as an operation whose operator is the arrow that lambdas are written with.
fn arrow(lambda: &LambdaFunction) -> Expr {
    debug_assert_eq!(lambda.syntax, LambdaSyntax::Arrow);
    let name = |parameter: &LambdaFunctionParameter| Expr::Identifier(parameter.name.clone());
    let params = match &lambda.params {
        OneOrManyWithParens::One(one) => name(one),
        OneOrManyWithParens::Many(many) => Expr::Tuple(many.iter().map(name).collect()),
    };
    Expr::BinaryOp {
        left: Box::new(params),
        op: BinaryOperator::Custom("=>".to_string()),
        right: lambda.body.clone(),
    }
}

/// Whether there is a `MAP<K, V>` anywhere in a type.
fn has_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(element) | ArrayElemTypeDef::SquareBracket(element, _),
        ) => has_map(element),
        DataType::Struct(fields, _) => fields.iter().any(|field| has_map(&field.field_type)),
        _ => false,
    }
}

/// A type as ksqlDB writes it.
fn type_text(data_type: &DataType) -> String {
    match data_type {
        DataType::Map(key, value) => format!("MAP<{}, {}>", type_text(key), type_text(value)),
        DataType::Array(ArrayElemTypeDef::AngleBracket(element)) => {
            format!("ARRAY<{}>", type_text(element))
        }
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, None)) => {
            format!("{}[]", type_text(element))
        }
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, Some(length))) => {
            format!("{}[{length}]", type_text(element))
        }
        DataType::Struct(fields, _) => {
            let fields = fields.iter().map(|field| match &field.field_name {
                Some(name) => format!("{name} {}", type_text(&field.field_type)),
                None => type_text(&field.field_type),
            });
            format!("STRUCT<{}>", comma_separated(fields))
        }
        other => other.to_string(),
    }
}
