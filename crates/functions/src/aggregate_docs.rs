//! The documentation of aggregates and table functions. The engine runs them as operators with state; here is only what they are.

use crate::{
    doc::{FunctionDoc, Variant},
    function::Category,
    signature::{Kind, Param, param},
};

const VALUE: Param = param("value", Kind::T, "the value of each row");
const NUMBER: Param = param("value", Kind::Double, "the number of each row");
const X: Param = param("x", Kind::Double, "the first number of each row");
const Y: Param = param("y", Kind::Double, "the second number of each row");
const COUNT: Param = param("n", Kind::Int, "how many values; a literal");
const IGNORE_NULLS: Param = param(
    "ignore_nulls",
    Kind::Boolean,
    "whether NULL counts for nothing; a literal, TRUE without it",
);
const ARRAY: Param = param("array", Kind::Array(&Kind::T), "the array");

struct Doc {
    name: &'static str,
    category: Category,
    description: &'static str,
    forms: &'static [(&'static [Param], Kind)],
}

const fn aggregate(
    name: &'static str,
    description: &'static str,
    forms: &'static [(&'static [Param], Kind)],
) -> Doc {
    Doc {
        name,
        category: Category::Aggregate,
        description,
        forms,
    }
}

static DOCS: [Doc; 20] = [
    aggregate(
        "attr",
        "The value that all rows have in common; NULL when they differ.",
        &[(&[VALUE], Kind::T)],
    ),
    aggregate(
        "avg",
        "The mean of the values.",
        &[(&[NUMBER], Kind::Double)],
    ),
    aggregate(
        "collect_list",
        "All values as an array, in the order of the rows.",
        &[(&[VALUE], Kind::Array(&Kind::T))],
    ),
    aggregate(
        "collect_set",
        "All different values as an array, in the order in which they came first.",
        &[(&[VALUE], Kind::Array(&Kind::T))],
    ),
    aggregate(
        "correlation",
        "Pearson's correlation coefficient of two values.",
        &[(&[X, Y], Kind::Double)],
    ),
    aggregate(
        "count",
        "The number of rows, or of values that are not NULL.",
        &[(&[], Kind::BigInt), (&[VALUE], Kind::BigInt)],
    ),
    aggregate(
        "count_distinct",
        "The number of different values.",
        &[(&[VALUE], Kind::BigInt)],
    ),
    aggregate(
        "earliest_by_offset",
        "The first value, or the first values, in the order in which the rows arrived.",
        &[
            (&[VALUE], Kind::T),
            (&[VALUE, IGNORE_NULLS], Kind::T),
            (&[VALUE, COUNT], Kind::Array(&Kind::T)),
            (&[VALUE, COUNT, IGNORE_NULLS], Kind::Array(&Kind::T)),
        ],
    ),
    aggregate(
        "histogram",
        "How often each value occurs.",
        &[(
            &[param("value", Kind::Text, "the value of each row")],
            Kind::Map(&Kind::Text, &Kind::BigInt),
        )],
    ),
    aggregate(
        "latest_by_offset",
        "The last value, or the last values, in the order in which the rows arrived.",
        &[
            (&[VALUE], Kind::T),
            (&[VALUE, IGNORE_NULLS], Kind::T),
            (&[VALUE, COUNT], Kind::Array(&Kind::T)),
            (&[VALUE, COUNT, IGNORE_NULLS], Kind::Array(&Kind::T)),
        ],
    ),
    aggregate("max", "The largest value.", &[(&[VALUE], Kind::T)]),
    aggregate("min", "The smallest value.", &[(&[VALUE], Kind::T)]),
    aggregate(
        "stddev_samp",
        "The variance of a sample, under the name that ksqlDB keeps for it in the ksql dialect; the \
         standard deviation in the postgres dialect.",
        &[(&[NUMBER], Kind::Double)],
    ),
    aggregate(
        "stddev_sample",
        "The standard deviation of a sample.",
        &[(&[NUMBER], Kind::Double)],
    ),
    aggregate(
        "sum",
        "The sum of the values.",
        &[
            (
                &[param("value", Kind::Int, "the number of each row")],
                Kind::Int,
            ),
            (
                &[param("value", Kind::BigInt, "the number of each row")],
                Kind::BigInt,
            ),
            (
                &[param("value", Kind::Decimal, "the number of each row")],
                Kind::Decimal,
            ),
            (&[NUMBER], Kind::Double),
        ],
    ),
    aggregate(
        "sum_list",
        "The sum of all elements of the arrays of all rows.",
        &[
            (
                &[param(
                    "value",
                    Kind::Array(&Kind::Int),
                    "the array of each row",
                )],
                Kind::Int,
            ),
            (
                &[param(
                    "value",
                    Kind::Array(&Kind::BigInt),
                    "the array of each row",
                )],
                Kind::BigInt,
            ),
            (
                &[param(
                    "value",
                    Kind::Array(&Kind::Double),
                    "the array of each row",
                )],
                Kind::Double,
            ),
        ],
    ),
    aggregate(
        "topk",
        "The largest values, in descending order.",
        &[(&[VALUE, COUNT], Kind::Array(&Kind::T))],
    ),
    aggregate(
        "topkdistinct",
        "The largest different values, in descending order.",
        &[(&[VALUE, COUNT], Kind::Array(&Kind::T))],
    ),
    Doc {
        name: "cube_explode",
        category: Category::Table,
        description: "A row for each variant of an array in which some elements are NULL.",
        forms: &[(&[ARRAY], Kind::Array(&Kind::T))],
    },
    Doc {
        name: "explode",
        category: Category::Table,
        description: "A row for each element of an array.",
        forms: &[(&[ARRAY], Kind::T)],
    },
];

/// All of them.
pub(crate) fn docs() -> impl Iterator<Item = FunctionDoc> {
    DOCS.iter().map(|doc| FunctionDoc {
        name: doc.name,
        category: doc.category,
        description: doc.description,
        variants: doc
            .forms
            .iter()
            .map(|(params, returns)| Variant {
                params,
                variadic: false,
                returns: *returns,
            })
            .collect(),
        examples: &[],
        ksql_only: false,
    })
}
