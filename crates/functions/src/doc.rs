//! What SHOW FUNCTIONS and DESCRIBE FUNCTION print.

use std::sync::LazyLock;

use crate::{
    aggregate_docs,
    function::{Category, Function},
    lambda, scalar,
    signature::{Kind, Param, Params},
};

/// The documentation of a function.
#[derive(Debug, Clone)]
pub struct FunctionDoc {
    /// Its name, in lower case.
    pub name: &'static str,
    /// What it is about; [`Category::Aggregate`] and [`Category::Table`] tell those that are not scalar.
    pub category: Category,
    /// What it does, in one or two sentences.
    pub description: &'static str,
    /// The ways to call it.
    pub variants: Vec<Variant>,
    /// Calls and what they give.
    pub examples: &'static [(&'static str, &'static str)],
    /// Whether only the ksql dialect has it with this meaning.
    pub ksql_only: bool,
}

/// One way to call a function.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Its parameters.
    pub params: &'static [Param],
    /// Whether the last one may be repeated.
    pub variadic: bool,
    /// The type of the result.
    pub returns: Kind,
}

impl Variant {
    /// `name(first VARCHAR, more VARCHAR...)`.
    pub fn form(&self, name: &str) -> String {
        form(
            name,
            &Params {
                list: self.params,
                variadic: self.variadic,
            },
        )
    }
}

/// A call as the documentation writes it.
pub(crate) fn form(name: &str, params: &Params) -> String {
    let mut list: Vec<String> = params
        .list
        .iter()
        .map(|param| format!("{} {}", param.name, param.kind))
        .collect();
    if params.variadic
        && let Some(last) = list.last_mut()
    {
        last.push_str("...");
    }
    format!("{name}({})", list.join(", "))
}

/// All functions of ksqlDB, by name.
pub fn catalog() -> &'static [FunctionDoc] {
    static CATALOG: LazyLock<Vec<FunctionDoc>> = LazyLock::new(|| {
        let mut docs: Vec<FunctionDoc> = scalar::functions().map(scalar_doc).collect();
        docs.extend(lambda::DOCS.iter().map(|doc| {
            FunctionDoc {
                name: doc.name,
                category: lambda::LambdaDoc::CATEGORY,
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
                examples: doc.examples,
                ksql_only: false,
            }
        }));
        docs.extend(aggregate_docs::docs());
        docs.sort_by_key(|doc| doc.name);
        docs
    });
    &CATALOG
}

fn scalar_doc(function: &Function) -> FunctionDoc {
    FunctionDoc {
        name: function.name,
        category: function.category,
        description: function.description,
        variants: function
            .overloads
            .iter()
            .map(|overload| Variant {
                params: overload.params.list,
                variadic: overload.params.variadic,
                returns: overload.result_kind(),
            })
            .collect(),
        examples: function.examples,
        ksql_only: function.ksql_only,
    }
}
