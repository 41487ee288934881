//! `*` and `relation.*` written out, so that pseudo columns stay out of them.
//!
//! The binder sees `rowtime` and its like as columns of every relation; written out, `*` has the declared columns only. Relations of the
//! catalog are expanded column by column; a subquery or a CTE has no pseudo columns of its own and keeps `name.*`.

use std::{collections::HashSet, ops::ControlFlow, sync::Arc};

use arrow::datatypes::DataType;
use datafusion::common::TableReference;
use sqlparser::ast::{
    self, JoinConstraint, JoinOperator, SelectItem, SelectItemQualifiedWildcardKind, TableFactor,
    VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use super::{
    context::resolve,
    locate::{folded, last_ident, start_of},
};
use crate::{
    catalog::{Catalog, Column, Relation, WINDOWEND, WINDOWSTART},
    error::{PlanError, PlanResult},
};

/// Which columns of a relation `*` stands for, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WildcardOrder {
    /// All, as declared.
    Declared,
    /// As declared, without the bounds of windows: in ksqlDB these are no columns of the relation.
    WithoutBounds,
    /// As before, the key columns last: the result has another key.
    KeysLast,
}

/// Expands every wildcard of a query, at any depth; answers whether there was one.
pub(crate) fn expand_wildcards(
    query: &mut ast::Query,
    catalog: &dyn Catalog,
    order: WildcardOrder,
) -> PlanResult<bool> {
    let mut expander = Expander {
        catalog,
        order,
        found: false,
        ctes: Vec::new(),
    };
    match query.visit(&mut expander) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(expander.found),
    }
}

struct Expander<'a> {
    catalog: &'a dyn Catalog,
    order: WildcardOrder,
    found: bool,
    /// Names that WITH clauses of the enclosing queries define; they hide relations.
    ctes: Vec<Vec<String>>,
}

impl VisitorMut for Expander<'_> {
    type Break = Box<PlanError>;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Box<PlanError>> {
        let names = match &query.with {
            Some(with) => with
                .cte_tables
                .iter()
                .map(|cte| folded(&cte.alias.name))
                .collect(),
            None => Vec::new(),
        };
        self.ctes.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<Box<PlanError>> {
        self.ctes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<Box<PlanError>> {
        match self.expand_select(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

/// One relation in FROM.
struct Source {
    /// What its columns are qualified with.
    qualifier: Vec<ast::Ident>,
    /// The catalog's description, unless it is a subquery or a CTE.
    relation: Option<Arc<Relation>>,
    /// Columns that a USING has merged into an earlier relation's.
    merged: HashSet<String>,
}

impl Expander<'_> {
    fn expand_select(&mut self, select: &mut ast::Select) -> PlanResult<()> {
        let mut sources = Vec::new();
        for table in &mut select.from {
            self.add_table(table, &mut sources)?;
        }
        if !select.projection.iter().any(is_wildcard)
            || sources.iter().all(|source| source.relation.is_none())
        {
            return Ok(());
        }
        self.found = true;
        let order = self.order;
        let mut items = Vec::with_capacity(select.projection.len());
        for item in select.projection.drain(..) {
            match item {
                SelectItem::Wildcard(options) => {
                    expand_all(&sources, &options, order, &mut items)?;
                }
                SelectItem::UnnamedExpr(expr) if all_fields(&expr).is_some() => {
                    expand_fields(&sources, &expr, &mut items)?;
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => match find_source(&sources, &name) {
                    Some(source) => expand_source(source, &options, order, false, &mut items)?,
                    None => items.push(SelectItem::QualifiedWildcard(
                        SelectItemQualifiedWildcardKind::ObjectName(name),
                        options,
                    )),
                },
                other => items.push(other),
            }
        }
        select.projection = items;
        Ok(())
    }

    fn add_table(
        &self,
        table: &mut ast::TableWithJoins,
        sources: &mut Vec<Source>,
    ) -> PlanResult<()> {
        let first = sources.len();
        self.add_factor(&mut table.relation, sources)?;
        for join in &mut table.joins {
            let right = sources.len();
            self.add_factor(&mut join.relation, sources)?;
            let (left, right) = sources[first..].split_at_mut(right - first);
            if let Some(constraint) = constraint_of(&mut join.join_operator) {
                merge_columns(constraint, left, right, &join.relation)?;
            }
        }
        Ok(())
    }

    fn add_factor(&self, factor: &mut TableFactor, sources: &mut Vec<Source>) -> PlanResult<()> {
        let (qualifier, relation) = match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let relation = self.relation(name);
                let own: Option<Vec<ast::Ident>> =
                    name.0.iter().map(|part| part.as_ident().cloned()).collect();
                match (alias, own) {
                    (Some(alias), _) if !alias.columns.is_empty() => {
                        // Renamed columns: the alias must cover the pseudo columns too, so leave it to the binder.
                        (vec![alias.name.clone()], None)
                    }
                    (Some(alias), _) => (vec![alias.name.clone()], relation),
                    (None, Some(own)) => (own, relation),
                    (None, None) => return Ok(()),
                }
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => {
                return self.add_table(table_with_joins, sources);
            }
            TableFactor::Table {
                alias: Some(alias), ..
            }
            | TableFactor::Derived {
                alias: Some(alias), ..
            }
            | TableFactor::NestedJoin {
                alias: Some(alias), ..
            }
            | TableFactor::UNNEST {
                alias: Some(alias), ..
            }
            | TableFactor::Function {
                alias: Some(alias), ..
            }
            | TableFactor::TableFunction {
                alias: Some(alias), ..
            } => (vec![alias.name.clone()], None),
            _ => (Vec::new(), None),
        };
        sources.push(Source {
            qualifier,
            relation,
            merged: HashSet::new(),
        });
        Ok(())
    }

    fn relation(&self, name: &ast::ObjectName) -> Option<Arc<Relation>> {
        let parts: Option<Vec<String>> = name
            .0
            .iter()
            .map(|part| part.as_ident().map(folded))
            .collect();
        let reference = match parts?.as_slice() {
            [table] if self.ctes.iter().flatten().any(|cte| cte == table) => return None,
            [table] => TableReference::bare(table.as_str()),
            [schema, table] => TableReference::partial(schema.as_str(), table.as_str()),
            [catalog, schema, table] => {
                TableReference::full(catalog.as_str(), schema.as_str(), table.as_str())
            }
            _ => return None,
        };
        resolve(self.catalog, &reference)
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    match item {
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => true,
        SelectItem::UnnamedExpr(expr) => all_fields(expr).is_some(),
        _ => false,
    }
}

/// The struct of `struct->*`.
fn all_fields(expr: &ast::Expr) -> Option<&ast::Expr> {
    match expr {
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::Arrow,
            right,
        } if matches!(right.as_ref(), ast::Expr::Wildcard(_)) => Some(left),
        _ => None,
    }
}

/// `struct->*` written out, field by field.
fn expand_fields(
    sources: &[Source],
    expr: &ast::Expr,
    items: &mut Vec<SelectItem>,
) -> PlanResult<()> {
    let whole = all_fields(expr).unwrap_or(expr);
    let Some(DataType::Struct(fields)) = type_of(sources, whole) else {
        return Err(PlanError::unsupported(
            format!("->* of {whole}"),
            start_of(whole),
            Some("it needs a column of type STRUCT"),
        ));
    };
    for field in &fields {
        let name = ast::Expr::Identifier(ast::Ident::with_quote('"', field.name()));
        items.push(SelectItem::UnnamedExpr(ast::Expr::BinaryOp {
            left: Box::new(whole.clone()),
            op: ast::BinaryOperator::Arrow,
            right: Box::new(name),
        }));
    }
    Ok(())
}

/// The type of a column, or of a field in it.
fn type_of(sources: &[Source], expr: &ast::Expr) -> Option<DataType> {
    match expr {
        ast::Expr::Nested(inner) => type_of(sources, inner),
        ast::Expr::Identifier(name) => column_type(sources, &folded(name)),
        ast::Expr::CompoundIdentifier(parts) => column_type(sources, &folded(parts.last()?)),
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::Arrow,
            right,
        } => match (type_of(sources, left)?, right.as_ref()) {
            (DataType::Struct(fields), ast::Expr::Identifier(name)) => fields
                .iter()
                .find(|field| *field.name() == folded(name))
                .map(|field| field.data_type().clone()),
            _ => None,
        },
        _ => None,
    }
}

fn column_type(sources: &[Source], name: &str) -> Option<DataType> {
    sources
        .iter()
        .filter_map(|source| source.relation.as_ref())
        .flat_map(|relation| &relation.columns)
        .find(|column| column.name == name)
        .map(|column| column.data_type.clone())
}

fn constraint_of(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

/// Notes the columns that USING shows once. NATURAL becomes USING over the declared columns, or it would compare event times.
fn merge_columns(
    constraint: &mut JoinConstraint,
    left: &[Source],
    right: &mut [Source],
    factor: &TableFactor,
) -> PlanResult<()> {
    if matches!(constraint, JoinConstraint::Natural) {
        let known = left
            .iter()
            .chain(right.iter())
            .filter(|source| source.relation.is_some())
            .count();
        if known == 0 {
            return Ok(());
        }
        let (Some(left), Some(right)) = (declared(left), declared(right)) else {
            let hint = "write the columns: JOIN .. USING (column, ..)";
            return Err(PlanError::unsupported(
                "NATURAL JOIN with a subquery",
                start_of(factor),
                Some(hint),
            ));
        };
        let common: Vec<ast::ObjectName> = left
            .into_iter()
            .filter(|name| right.contains(name))
            .map(|name| ast::ObjectName::from(vec![ast::Ident::with_quote('"', name)]))
            .collect();
        *constraint = if common.is_empty() {
            JoinConstraint::None
        } else {
            JoinConstraint::Using(common)
        };
    }
    if let JoinConstraint::Using(columns) = constraint {
        let names: Vec<String> = columns.iter().filter_map(last_ident).map(folded).collect();
        for source in right {
            source.merged.extend(names.iter().cloned());
        }
    }
    Ok(())
}

/// Declared columns of sources that are all relations, each name once.
fn declared(sources: &[Source]) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for source in sources {
        for column in &source.relation.as_ref()?.columns {
            if !names.contains(&column.name) {
                names.push(column.name.clone());
            }
        }
    }
    Some(names)
}

fn find_source<'a>(sources: &'a [Source], name: &ast::ObjectName) -> Option<&'a Source> {
    let wanted: Vec<String> = name
        .0
        .iter()
        .filter_map(ast::ObjectNamePart::as_ident)
        .map(folded)
        .collect();
    sources.iter().find(|source| {
        let own: Vec<String> = source.qualifier.iter().map(folded).collect();
        source.relation.is_some() && own.ends_with(&wanted)
    })
}

fn expand_all(
    sources: &[Source],
    options: &WildcardAdditionalOptions,
    order: WildcardOrder,
    items: &mut Vec<SelectItem>,
) -> PlanResult<()> {
    for source in sources {
        expand_source(source, options, order, true, items)?;
    }
    Ok(())
}

fn expand_source(
    source: &Source,
    options: &WildcardAdditionalOptions,
    order: WildcardOrder,
    hide_merged: bool,
    items: &mut Vec<SelectItem>,
) -> PlanResult<()> {
    let Some(relation) = &source.relation else {
        return keep_wildcard(source, options, items);
    };
    if *options != WildcardAdditionalOptions::default() {
        let position = super::locate::position_of(options.wildcard_token.0.span);
        let hint = "write the columns";
        return Err(PlanError::unsupported(
            "* with a list of exceptions",
            position,
            Some(hint),
        ));
    }
    let mut columns: Vec<&Column> = relation.columns.iter().collect();
    if order != WildcardOrder::Declared && relation.window.is_some() {
        columns.retain(|column| !matches!(column.name.as_str(), WINDOWSTART | WINDOWEND));
    }
    if order == WildcardOrder::KeysLast {
        columns.sort_by_key(|column| column.key);
    }
    for column in columns {
        if hide_merged && source.merged.contains(&column.name) {
            continue;
        }
        let mut path = source.qualifier.clone();
        path.push(ast::Ident::with_quote('"', &column.name));
        items.push(SelectItem::UnnamedExpr(ast::Expr::CompoundIdentifier(path)));
    }
    Ok(())
}

fn keep_wildcard(
    source: &Source,
    options: &WildcardAdditionalOptions,
    items: &mut Vec<SelectItem>,
) -> PlanResult<()> {
    if source.qualifier.is_empty() {
        let position = super::locate::position_of(options.wildcard_token.0.span);
        let hint = "give every subquery in FROM a name, or write the columns";
        return Err(PlanError::unsupported(
            "* over a relation and a subquery without a name",
            position,
            Some(hint),
        ));
    }
    let name = ast::ObjectName::from(source.qualifier.clone());
    items.push(SelectItem::QualifiedWildcard(
        SelectItemQualifiedWildcardKind::ObjectName(name),
        options.clone(),
    ));
    Ok(())
}
