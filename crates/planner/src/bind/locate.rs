//! Where a token stands, and DataFusion's errors in this crate's words.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, SchemaError};
use sqlparser::{
    ast::{self, Spanned, Visit, Visitor},
    tokenizer::Span,
};

use crate::{
    error::{PlanError, Position},
    nearest::did_you_mean,
};

/// The start of a span, unless the tree was made without a text.
pub(crate) fn position_of(span: Span) -> Option<Position> {
    (span.start.line > 0).then_some(span.start)
}

/// An identifier's name. The parser has folded it, whichever way the language folds.
pub(crate) fn folded(ident: &ast::Ident) -> String {
    ident.value.clone()
}

/// Finds tokens of one query again by name.
pub(crate) struct Located<'a> {
    query: &'a ast::Query,
}

impl<'a> Located<'a> {
    pub fn new(query: &'a ast::Query) -> Self {
        Self { query }
    }

    /// The first mention of a relation of this name.
    pub fn relation(&self, name: &str) -> Option<Position> {
        let table = name.rsplit('.').next().unwrap_or(name);
        let mut finder = Finder(|token: Token| match token {
            Token::Relation(object) => last_ident(object)
                .filter(|ident| folded(ident) == table)
                .map(|ident| ident.span),
            _ => None,
        });
        finder.run(self.query)
    }

    /// The first mention of a column of this name.
    pub fn column(&self, name: &str) -> Option<Position> {
        let mut finder = Finder(|token: Token| match token {
            Token::Expr(ast::Expr::Identifier(ident)) if folded(ident) == name => Some(ident.span),
            Token::Expr(ast::Expr::CompoundIdentifier(parts)) => parts
                .iter()
                .find(|part| folded(part) == name)
                .map(|part| part.span),
            _ => None,
        });
        finder.run(self.query)
    }

    /// The first call of a function of this name.
    pub fn function(&self, name: &str) -> Option<Position> {
        let mut finder = Finder(|token: Token| match token {
            Token::Expr(ast::Expr::Function(function)) => last_ident(&function.name)
                .filter(|ident| ident.value.eq_ignore_ascii_case(name))
                .map(|ident| ident.span),
            _ => None,
        });
        finder.run(self.query)
    }

    /// The user's mistake that DataFusion reports, with its token's position.
    pub fn error(&self, error: DataFusionError) -> PlanError {
        let reported = error
            .diagnostic()
            .and_then(|diagnostic| diagnostic.span)
            .map(|span| Position::new(span.start.line, span.start.column));
        let root = into_root(error);
        match root {
            DataFusionError::External(source) => match source.downcast::<PlanError>() {
                Ok(plan) => self.with_position(*plan),
                Err(source) => PlanError::DataFusion(DataFusionError::External(source)),
            },
            DataFusionError::SchemaError(schema, _) => self.schema_error(*schema, reported),
            DataFusionError::NotImplemented(message) => PlanError::Unsupported {
                what: lower_first(&message),
                position: reported,
                hint: None,
            },
            DataFusionError::Plan(message) => self.classify(&message, reported),
            DataFusionError::SQL(parser, _) => {
                PlanError::invalid(parser.to_string(), reported, None)
            }
            DataFusionError::Execution(message) => {
                PlanError::invalid(lower_first(&message), reported, None)
            }
            DataFusionError::ArrowError(arrow, _) => {
                PlanError::invalid(arrow.to_string(), reported, None)
            }
            other => PlanError::DataFusion(other),
        }
    }

    fn with_position(&self, error: PlanError) -> PlanError {
        match error {
            PlanError::UnknownRelation {
                name,
                position: None,
                hint,
            } => {
                let position = self.relation(&name);
                PlanError::UnknownRelation {
                    name,
                    position,
                    hint,
                }
            }
            other => other,
        }
    }

    fn schema_error(&self, error: SchemaError, reported: Option<Position>) -> PlanError {
        match error {
            SchemaError::FieldNotFound {
                field,
                valid_fields,
            } => PlanError::UnknownColumn {
                position: reported.or_else(|| self.column(&field.name)),
                hint: did_you_mean(
                    &field.name,
                    valid_fields.iter().map(|valid| valid.name.as_str()),
                ),
                name: field.flat_name(),
            },
            SchemaError::AmbiguousReference { field } => PlanError::AmbiguousColumn {
                position: reported.or_else(|| self.column(&field.name)),
                name: field.flat_name(),
            },
            SchemaError::DuplicateQualifiedField { name, .. }
            | SchemaError::DuplicateUnqualifiedField { name } => PlanError::DuplicateColumn {
                position: reported.or_else(|| self.column(&name)),
                name,
            },
        }
    }

    /// Tells kinds of mistakes apart that DataFusion reports as text.
    fn classify(&self, message: &str, position: Option<Position>) -> PlanError {
        let first_line = message
            .lines()
            .next()
            .unwrap_or(message)
            .trim_end_matches('.');
        if let Some(column) = between(
            message,
            "column \"",
            "\" must appear in the GROUP BY clause",
        ) {
            let text = format!(
                "column \"{column}\" must appear in the GROUP BY clause or in an aggregate"
            );
            return PlanError::invalid(
                text,
                position,
                Some("add the column to GROUP BY, or use an aggregate of it"),
            );
        }
        if message.contains("failed to match any signature") {
            let name = between(message, "Function '", "'").unwrap_or("the function");
            let received = between(message, "(DataType: ", ")")
                .map_or("these arguments".to_owned(), with_sql_types);
            let message = format!("{name} does not take {received}");
            let position = position.or(self.function(name));
            return PlanError::TypeMismatch {
                message,
                position,
                hint: Some("write a CAST".to_owned()),
            };
        }
        let about_types = [
            "non-boolean",
            "coerc",
            "No function matches",
            "type mismatch",
            "incompatible",
            "signature",
        ];
        if about_types.iter().any(|word| message.contains(word)) {
            let called = between(message, "function '", "'").and_then(|name| self.function(name));
            let position = position.or(called);
            let message = with_sql_types(&lower_first(first_line));
            return PlanError::TypeMismatch {
                message,
                position,
                hint: Some("write a CAST".to_owned()),
            };
        }
        PlanError::invalid(lower_first(first_line), position, None)
    }
}

/// The innermost error of contexts, diagnostics and collections; the first one of several.
fn into_root(error: DataFusionError) -> DataFusionError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            into_root(*inner)
        }
        DataFusionError::Collection(mut errors) if !errors.is_empty() => {
            into_root(errors.swap_remove(0))
        }
        DataFusionError::Shared(shared) => match std::sync::Arc::try_unwrap(shared) {
            Ok(inner) => into_root(inner),
            Err(shared) => DataFusionError::Shared(shared),
        },
        other => other,
    }
}

/// What stands between two pieces of a text.
fn between<'t>(text: &'t str, before: &str, behind: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(behind).map(|(inner, _)| inner)
}

/// Arrow's type names in a message replaced by SQL's.
fn with_sql_types(message: &str) -> String {
    const NAMES: [(&str, &str); 10] = [
        ("Utf8View", "VARCHAR"),
        ("LargeUtf8", "VARCHAR"),
        ("Utf8", "VARCHAR"),
        ("Int16", "SMALLINT"),
        ("Int32", "INT"),
        ("Int64", "BIGINT"),
        ("Float32", "REAL"),
        ("Float64", "DOUBLE"),
        ("Date32", "DATE"),
        ("Boolean", "BOOLEAN"),
    ];
    NAMES.iter().fold(message.to_owned(), |text, (arrow, sql)| {
        text.replace(arrow, sql)
    })
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let second_is_lower = text.chars().nth(1).is_some_and(char::is_lowercase);
    match letters.next() {
        Some(first) if second_is_lower => first.to_lowercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

/// The last part of a name, if it is an identifier.
pub(crate) fn last_ident(name: &ast::ObjectName) -> Option<&ast::Ident> {
    name.0.last().and_then(ast::ObjectNamePart::as_ident)
}

/// What a search over a query sees.
pub(crate) enum Token<'a> {
    /// A relation's name in FROM.
    Relation(&'a ast::ObjectName),
    /// An expression, before its parts.
    Expr(&'a ast::Expr),
}

struct Finder<F>(F);

impl<F: FnMut(Token) -> Option<Span>> Finder<F> {
    fn run(&mut self, query: &ast::Query) -> Option<Position> {
        match query.visit(self) {
            ControlFlow::Break(span) => position_of(span),
            ControlFlow::Continue(()) => None,
        }
    }
}

impl<F: FnMut(Token) -> Option<Span>> Visitor for Finder<F> {
    type Break = Span;

    fn pre_visit_relation(&mut self, relation: &ast::ObjectName) -> ControlFlow<Span> {
        match self.0(Token::Relation(relation)) {
            Some(span) => ControlFlow::Break(span),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<Span> {
        match self.0(Token::Expr(expr)) {
            Some(span) => ControlFlow::Break(span),
            None => ControlFlow::Continue(()),
        }
    }
}

/// The start of a piece of syntax.
pub(crate) fn start_of(piece: &impl Spanned) -> Option<Position> {
    position_of(piece.span())
}
