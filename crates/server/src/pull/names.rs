//! Names of result columns as PostgreSQL gives them.
//!
//! An expression without an alias is called after its function or cast, else `?column?`. DataFusion wants names of its own and wants them
//! to differ, so each such expression gets one for the planning, and the result's columns get PostgreSQL's back at the end.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use arrow::datatypes::{Field, Schema, SchemaRef};
use sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr};

/// What PostgreSQL calls an expression that has no name.
const UNNAMED: &str = "?column?";

/// Names to give back: planned name to shown name.
#[derive(Debug, Default)]
pub struct OutputNames(HashMap<String, String>);

impl OutputNames {
    /// Names the expressions of the outermost SELECT, which in a UNION is the first one.
    pub fn assign(query: &mut Query) -> Self {
        let mut names = Self::default();
        if let Some(select) = first_select(&mut query.body) {
            names.name_items(select);
        }
        names
    }

    fn name_items(&mut self, select: &mut Select) {
        let mut taken: HashSet<String> =
            select.projection.iter().filter_map(written_name).collect();
        for (position, item) in select.projection.iter_mut().enumerate() {
            let SelectItem::UnnamedExpr(expr) = item else {
                continue;
            };
            let Some(shown) = shown_name(expr) else {
                continue;
            };
            // ORDER BY may refer to the first of a name; the others cannot be meant.
            let mut planned = shown.clone();
            while !taken.insert(planned.clone()) {
                planned = format!("{planned}_{position}");
            }
            let alias = Ident::with_quote('"', planned.clone());
            *item = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias,
            };
            if planned != shown {
                self.0.insert(planned, shown);
            }
        }
    }

    /// The schema with shown names.
    pub fn restore(&self, schema: &SchemaRef) -> SchemaRef {
        if self.0.is_empty() {
            return Arc::clone(schema);
        }
        let fields: Vec<Arc<Field>> = schema
            .fields()
            .iter()
            .map(|field| match self.0.get(field.name()) {
                Some(shown) => Arc::new(field.as_ref().clone().with_name(shown)),
                None => Arc::clone(field),
            })
            .collect();
        Arc::new(Schema::new(fields))
    }
}

/// The name that an item has by itself.
fn written_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(folded(name)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(folded),
        _ => None,
    }
}

fn first_select(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&mut query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// The name to show; `None` for columns, which keep their own.
fn shown_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(_) => None,
        Expr::CompoundIdentifier(parts) if parts.len() <= 3 => None,
        other => Some(derived_name(other).unwrap_or_else(|| UNNAMED.to_owned())),
    }
}

fn derived_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(folded(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(folded),
        Expr::Function(function) => function
            .name
            .0
            .last()
            .and_then(|part| part.as_ident())
            .map(folded),
        Expr::Cast {
            expr, data_type, ..
        } => derived_name(expr).or_else(|| type_name(&data_type.to_string())),
        Expr::Nested(expr) | Expr::Collate { expr, .. } => derived_name(expr),
        Expr::CompoundFieldAccess { root, .. } => derived_name(root),
        Expr::Case { .. } => Some("case".to_owned()),
        Expr::Extract { .. } => Some("extract".to_owned()),
        Expr::Exists { .. } => Some("exists".to_owned()),
        Expr::Array(_) => Some("array".to_owned()),
        Expr::Substring { .. } => Some("substring".to_owned()),
        Expr::Trim { .. } => Some("btrim".to_owned()),
        Expr::Position { .. } => Some("position".to_owned()),
        Expr::Ceil { .. } => Some("ceil".to_owned()),
        Expr::Floor { .. } => Some("floor".to_owned()),
        Expr::TypedString(typed) => type_name(&typed.data_type.to_string()),
        _ => None,
    }
}

/// `INT` as PostgreSQL spells it after a cast of something nameless; types with parameters lose them.
fn type_name(written: &str) -> Option<String> {
    let word = written
        .split(['(', '[', '<'])
        .next()?
        .trim()
        .to_ascii_lowercase();
    Some(
        match word.as_str() {
            "int" | "integer" => "int4",
            "bigint" => "int8",
            "smallint" => "int2",
            "real" => "float4",
            "double" | "double precision" | "float" => "float8",
            "boolean" => "bool",
            "decimal" => "numeric",
            "timestamp with time zone" => "timestamptz",
            other => other,
        }
        .to_owned(),
    )
}

/// An identifier's name, which the parser has folded.
fn folded(name: &Ident) -> String {
    name.value.clone()
}

#[cfg(test)]
mod tests {
    use highwater_sql::{Statement, parse_statement};

    use super::*;

    fn shown(sql: &str) -> Vec<String> {
        let Statement::Query(query) = parse_statement(sql).expect("parses").statement else {
            panic!("not a query");
        };
        let mut body = query.body;
        let names = OutputNames::assign(&mut body);
        let select = first_select(&mut body.body).expect("a select");
        let planned: Vec<Field> = select
            .projection
            .iter()
            .map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
                other => other.to_string(),
            })
            .map(|name| Field::new(name, arrow::datatypes::DataType::Null, true))
            .collect();
        let restored = names.restore(&Arc::new(Schema::new(planned)));
        restored
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    #[test]
    fn columns_are_called_as_in_postgres() {
        assert_eq!(
            shown(
                "SELECT 1, 2, count(*), Count(*), a, t.b, a + 1, a::int, '5'::bigint, version(), x AS y FROM t"
            ),
            [
                "?column?", "?column?", "count", "count", "a", "t.b", "?column?", "a", "int8",
                "version", "y"
            ]
        );
        assert_eq!(shown("SELECT 1 UNION SELECT 2"), ["?column?"]);
        assert_eq!(
            shown("SELECT CASE WHEN a THEN 1 END, (a), extract(hour FROM a) FROM t"),
            ["case", "a", "extract"]
        );
    }
}
