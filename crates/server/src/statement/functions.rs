//! SHOW FUNCTIONS and DESCRIBE FUNCTION: what the session may call, with documentation.
//!
//! ksqlDB's functions are documented by the library; the others by DataFusion. Where both have a name, the session's dialect says whose it is.

use datafusion::{execution::SessionState, logical_expr::Documentation};
use highwater_functions::{Category, Dialect, FunctionDoc, Variant, catalog};

use crate::{
    session::{Rows, Session, SessionResult},
    small_result::SmallResult,
    sqlstate::{SqlError, code},
};

/// The category of functions that DataFusion brings.
const OTHER: &str = "OTHER";

/// The functions that a session knows, by name.
pub fn show(session: &Session, tag: &'static str) -> SessionResult<Rows> {
    let (state, dialect) = library(session);
    let own = catalog().iter().filter(|doc| is_meant(doc, dialect));
    let mut functions: Vec<(String, &str, String)> = own
        .map(|doc| {
            (
                doc.name.to_owned(),
                doc.category.name(),
                doc.description.to_owned(),
            )
        })
        .collect();
    for name in names(&state) {
        if !functions.iter().any(|(known, _, _)| *known == name) {
            let about = documentation(&state, &name)
                .map(|documentation| first_sentence(&documentation.description).to_owned());
            functions.push((name, OTHER, about.unwrap_or_default()));
        }
    }
    functions.sort();
    SmallResult::new(tag)
        .text("name", functions.iter().map(|(name, _, _)| name.clone()))
        .text(
            "category",
            functions.iter().map(|(_, category, _)| *category),
        )
        .text(
            "description",
            functions.iter().map(|(_, _, about)| about.clone()),
        )
        .finish()
}

/// All about one function.
pub fn describe(session: &Session, name: &str, tag: &'static str) -> SessionResult<Rows> {
    let (state, dialect) = library(session);
    let name = name.to_lowercase();
    let own = catalog()
        .iter()
        .find(|doc| doc.name == name && is_meant(doc, dialect));
    let facts = match own {
        Some(doc) => own_facts(doc),
        None if names(&state).contains(&name) => other_facts(&state, &name),
        None => {
            return Err(SqlError::new(
                code::UNDEFINED_FUNCTION,
                format!("function \"{name}\" does not exist"),
            ));
        }
    };
    SmallResult::new(tag)
        .text("property", facts.iter().map(|(name, _)| name.clone()))
        .text("value", facts.iter().map(|(_, value)| value.clone()))
        .finish()
}

fn library(session: &Session) -> (SessionState, Dialect) {
    let dialect = match session.variables.language().dialect {
        highwater_sql::Dialect::Postgres => Dialect::Postgres,
        highwater_sql::Dialect::Ksql => Dialect::Ksql,
    };
    (session.state(), dialect)
}

/// Whether the library's function is what the name means in the dialect.
fn is_meant(doc: &FunctionDoc, dialect: Dialect) -> bool {
    dialect == Dialect::Ksql || !doc.ksql_only
}

fn names(state: &SessionState) -> Vec<String> {
    let mut names: Vec<String> = state.scalar_functions().keys().cloned().collect();
    names.extend(state.aggregate_functions().keys().cloned());
    names.extend(state.window_functions().keys().cloned());
    names.extend(state.higher_order_functions().keys().cloned());
    names.sort_unstable();
    names.dedup();
    names
}

fn documentation<'s>(state: &'s SessionState, name: &str) -> Option<&'s Documentation> {
    let scalar = state
        .scalar_functions()
        .get(name)
        .and_then(|function| function.documentation());
    let aggregate = || {
        state
            .aggregate_functions()
            .get(name)
            .and_then(|function| function.documentation())
    };
    let window = || {
        state
            .window_functions()
            .get(name)
            .and_then(|function| function.documentation())
    };
    scalar.or_else(aggregate).or_else(window)
}

fn own_facts(doc: &FunctionDoc) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![
        fact("name", doc.name.to_owned()),
        fact("category", doc.category.name().to_owned()),
        fact("description", doc.description.to_owned()),
    ];
    for variant in &doc.variants {
        facts.push(fact("variant", variant_text(doc, variant)));
    }
    let mut told: Vec<&str> = Vec::new();
    for param in doc.variants.iter().flat_map(|variant| variant.params) {
        if !told.contains(&param.name) {
            told.push(param.name);
            facts.push(fact(
                &format!("parameter {}", param.name),
                param.description.to_owned(),
            ));
        }
    }
    for (call, result) in doc.examples {
        facts.push(fact("example", format!("{call} = {result}")));
    }
    facts
}

fn variant_text(doc: &FunctionDoc, variant: &Variant) -> String {
    let form = variant.form(doc.name);
    match doc.category {
        // A table function gives rows of what it returns.
        Category::Table => format!("{form} RETURNS ROWS OF {}", variant.returns),
        _ => format!("{form} RETURNS {}", variant.returns),
    }
}

fn other_facts(state: &SessionState, name: &str) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![
        fact("name", name.to_owned()),
        fact("category", OTHER.to_owned()),
    ];
    let Some(documentation) = documentation(state, name) else {
        return facts;
    };
    facts.push(fact("description", documentation.description.clone()));
    facts.push(fact("variant", documentation.syntax_example.clone()));
    for (argument, about) in documentation.arguments.iter().flatten() {
        facts.push(fact(&format!("parameter {argument}"), about.clone()));
    }
    if let Some(example) = &documentation.sql_example {
        facts.push(fact("example", example.trim_matches('`').trim().to_owned()));
    }
    facts
}

fn first_sentence(text: &str) -> &str {
    match text.find(". ") {
        Some(end) => &text[..=end],
        None => text.lines().next().unwrap_or(text),
    }
}
