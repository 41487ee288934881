//! Functions that take a lambda: FILTER, TRANSFORM, REDUCE.
//!
//! DataFusion binds and carries the lambda; here its body runs once over the elements of all rows together, with each captured column repeated
//! for the elements of its row. REDUCE needs the result of one element for the next, so it runs once for the first elements of all rows, once for
//! the second ones, and so on: as many evaluations as the longest array has elements, not as there are elements.

mod collection;
mod filter;
mod reduce;
mod transform;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::{
    common::{Result, plan_err},
    logical_expr::{HigherOrderUDF, LambdaArgument, ValueOrLambda},
};

use crate::{
    function::Category,
    signature::{Kind, Param, param},
    types::{canonical, element_type, map_types, sql_name},
};

/// What SHOW FUNCTIONS tells of one of them.
pub(crate) struct LambdaDoc {
    pub name: &'static str,
    pub description: &'static str,
    /// Parameters and result of each form.
    pub forms: &'static [(&'static [Param], Kind)],
    pub examples: &'static [(&'static str, &'static str)],
}

impl LambdaDoc {
    pub const CATEGORY: Category = Category::Lambda;
}

/// The three functions.
pub(crate) fn functions() -> Vec<HigherOrderUDF> {
    vec![
        HigherOrderUDF::new_from_impl(filter::Filter::default()),
        HigherOrderUDF::new_from_impl(transform::Transform::default()),
        HigherOrderUDF::new_from_impl(reduce::Reduce::default()),
    ]
}

const ARRAY: Param = param("array", Kind::Array(&Kind::T), "the array");
const MAP: Param = param("map", Kind::Map(&Kind::Text, &Kind::T), "the map");

/// Their documentation.
pub(crate) static DOCS: [LambdaDoc; 3] = [
    LambdaDoc {
        name: "filter",
        description: "The elements of an array, or the entries of a map, for which a lambda is true.",
        forms: &[
            (
                &[
                    ARRAY,
                    param("keep", Kind::Any, "x => whether to keep the element"),
                ],
                Kind::Array(&Kind::T),
            ),
            (
                &[
                    MAP,
                    param("keep", Kind::Any, "(k, v) => whether to keep the entry"),
                ],
                Kind::Map(&Kind::Text, &Kind::T),
            ),
        ],
        examples: &[("filter(ARRAY[1, 5, 9], x => x > 4)", "ARRAY[5, 9]")],
    },
    LambdaDoc {
        name: "transform",
        description: "An array with every element, or a map with every key and value, made anew by lambdas.",
        forms: &[
            (
                &[ARRAY, param("element", Kind::Any, "x => the new element")],
                Kind::Array(&Kind::U),
            ),
            (
                &[
                    MAP,
                    param("key", Kind::Any, "(k, v) => the new key"),
                    param("value", Kind::Any, "(k, v) => the new value"),
                ],
                Kind::Map(&Kind::Text, &Kind::U),
            ),
        ],
        examples: &[("transform(ARRAY[1, 2], x => x * 10)", "ARRAY[10, 20]")],
    },
    LambdaDoc {
        name: "reduce",
        description: "One value made of all elements of an array or all entries of a map, one after the other.",
        forms: &[
            (
                &[
                    ARRAY,
                    param("start", Kind::U, "the state before the first element"),
                    param(
                        "next",
                        Kind::Any,
                        "(state, x) => the state after an element",
                    ),
                ],
                Kind::U,
            ),
            (
                &[
                    MAP,
                    param("start", Kind::U, "the state before the first entry"),
                    param(
                        "next",
                        Kind::Any,
                        "(state, k, v) => the state after an entry",
                    ),
                ],
                Kind::U,
            ),
        ],
        examples: &[("reduce(ARRAY[1, 2, 3], 0, (s, x) => s + x)", "6")],
    },
];

/// The type that a function with a lambda works on, for its array or map.
fn collection_type(name: &str, data_type: &DataType) -> Result<DataType> {
    let canonical = canonical(data_type);
    match canonical {
        DataType::List(_) | DataType::Map(_, _) => Ok(canonical),
        other => plan_err!(
            "function {name} takes an array or a map, not {}",
            sql_name(&other)
        ),
    }
}

/// The types of what a lambda gets of each element: the element, or the key and the value of an entry.
fn item_fields(collection: &DataType) -> Vec<FieldRef> {
    let field =
        |name: &str, data_type: &DataType| Arc::new(Field::new(name, data_type.clone(), true));
    match (element_type(collection), map_types(collection)) {
        (Some(element), _) => vec![field("element", element)],
        (_, Some((key, value))) => vec![field("key", key), field("value", value)],
        _ => Vec::new(),
    }
}

/// The lambda among the arguments at a position.
fn lambda_at<V>(
    name: &str,
    args: &[ValueOrLambda<V, LambdaArgument>],
    position: usize,
) -> Result<LambdaArgument> {
    match args.get(position) {
        Some(ValueOrLambda::Lambda(lambda)) => Ok(lambda.clone()),
        _ => plan_err!(
            "argument {} of function {name} must be a lambda",
            position + 1
        ),
    }
}

/// The value among the arguments at a position.
fn value_at<'a, V, L>(
    name: &str,
    args: &'a [ValueOrLambda<V, L>],
    position: usize,
) -> Result<&'a V> {
    match args.get(position) {
        Some(ValueOrLambda::Value(value)) => Ok(value),
        _ => plan_err!(
            "argument {} of function {name} must not be a lambda",
            position + 1
        ),
    }
}
