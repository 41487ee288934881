//! Which columns of a result make its key.
//!
//! The key of a result is what it is partitioned by, else what it is grouped by, else the key of its source. ksqlDB wants each of these once in the
//! SELECT list, and puts them first in the result.

use sqlparser::ast::{self, Expr, SelectItem, SetExpr, TableFactor};

use super::super::locate::{folded, start_of};
use crate::{
    catalog::{Catalog, Relation, WINDOWEND, WINDOWSTART},
    error::{PlanError, PlanResult},
};

/// `PARTITION BY`, in terms of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartitionKey {
    /// Positions in the SELECT list, in the order of the clause; none for `PARTITION BY NULL`.
    pub columns: Vec<usize>,
}

/// Finds the expressions of PARTITION BY in the SELECT list. Behind `*`, those that it does not hold are put in front of it.
pub(crate) fn partition_key(
    body: &mut ast::Query,
    partition_by: &[Expr],
    had_wildcard: bool,
) -> PlanResult<Option<PartitionKey>> {
    if partition_by.is_empty() {
        return Ok(None);
    }
    if matches!(partition_by, [only] if is_null(only)) {
        return Ok(Some(PartitionKey {
            columns: Vec::new(),
        }));
    }
    let SetExpr::Select(select) = body.body.as_mut() else {
        return Err(PlanError::unsupported(
            "PARTITION BY over a UNION",
            partition_by.first().and_then(start_of),
            Some("put the UNION into a subquery in FROM"),
        ));
    };
    if !matches!(&select.group_by, ast::GroupByExpr::Expressions(groups, _) if groups.is_empty()) {
        return Err(PlanError::invalid(
            "only streams can be partitioned, and GROUP BY makes a table",
            partition_by.first().and_then(start_of),
            Some("GROUP BY decides the key of its result"),
        ));
    }
    let mut added = 0;
    for expr in partition_by {
        let found = select.projection.iter().any(|item| item_is(item, expr));
        if !found && had_wildcard {
            select
                .projection
                .insert(added, SelectItem::UnnamedExpr(expr.clone()));
            added += 1;
        }
    }
    let mut columns = Vec::with_capacity(partition_by.len());
    for expr in partition_by {
        columns.push(only_place(&select.projection, expr)?);
    }
    Ok(Some(PartitionKey { columns }))
}

/// Puts the key columns first, as ksqlDB does: in the order of PARTITION BY, of GROUP BY, or of the source. Each must be there once.
pub(crate) fn order_keys(
    body: &mut ast::Query,
    partition: &mut Option<PartitionKey>,
    catalog: &dyn Catalog,
    windowed: bool,
) -> PlanResult<()> {
    let SetExpr::Select(select) = body.body.as_mut() else {
        return Ok(());
    };
    let ast::GroupByExpr::Expressions(groups, _) = &select.group_by else {
        return Ok(());
    };
    let keys: Vec<usize> = match partition {
        Some(partition) => partition.columns.clone(),
        None if !groups.is_empty() => groups
            .iter()
            .filter(|group| !(windowed && is_bound(group)))
            .map(|group| only_place(&select.projection, group))
            .collect::<PlanResult<_>>()?,
        None => match only_source(select, catalog) {
            Some(relation) => source_keys(&select.projection, &relation)?,
            None => return Ok(()),
        },
    };
    if keys.len() == select.projection.len() {
        return Err(PlanError::InvalidKey {
            message: "the SELECT list has no column beside the key".to_owned(),
            position: select.projection.first().and_then(start_of),
            hint: Some("add a column, or AS_VALUE(key) AS another name".to_owned()),
        });
    }
    let mut items: Vec<Option<SelectItem>> = select.projection.drain(..).map(Some).collect();
    let first = keys.iter().filter_map(|key| items[*key].take());
    let mut ordered: Vec<SelectItem> = first.collect();
    ordered.extend(items.into_iter().flatten());
    select.projection = ordered;
    if let Some(partition) = partition {
        partition.columns = (0..partition.columns.len()).collect();
    }
    Ok(())
}

/// Selects the bounds of a windowed source, which are part of its key and which no `*` holds in dialect ksql.
pub(crate) fn add_bounds(body: &mut ast::Query, catalog: &dyn Catalog) {
    let SetExpr::Select(select) = body.body.as_mut() else {
        return;
    };
    let groups =
        matches!(&select.group_by, ast::GroupByExpr::Expressions(groups, _) if groups.is_empty());
    let windowed = only_source(select, catalog).is_some_and(|source| source.window.is_some());
    if !groups || !windowed {
        return;
    }
    for name in [WINDOWSTART, WINDOWEND] {
        let column = Expr::Identifier(ast::Ident::with_quote('"', name));
        select.projection.push(SelectItem::UnnamedExpr(column));
    }
}

/// The place of each key column of the source.
fn source_keys(items: &[SelectItem], relation: &Relation) -> PlanResult<Vec<usize>> {
    relation
        .key_columns()
        .into_iter()
        .map(|column| &relation.columns[column].name)
        .filter(|name| {
            !(relation.window.is_some() && matches!(name.as_str(), WINDOWSTART | WINDOWEND))
        })
        .map(|name| only_place(items, &Expr::Identifier(ast::Ident::with_quote('"', name))))
        .collect()
}

/// The one item of the SELECT list that is an expression as it stands.
fn only_place(items: &[SelectItem], expr: &Expr) -> PlanResult<usize> {
    let mut places = items
        .iter()
        .enumerate()
        .filter(|(_, item)| item_is(item, expr))
        .map(|(place, _)| place);
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (None, _) => Err(PlanError::InvalidKey {
            message: format!("the key {expr} is not selected"),
            position: start_of(expr),
            hint: Some("the key must be in the SELECT list: add it".to_owned()),
        }),
        (Some(_), Some(second)) => Err(PlanError::InvalidKey {
            message: format!("the key {expr} is selected more than once"),
            position: items.get(second).and_then(start_of),
            hint: Some("write AS_VALUE(key) for a copy of it".to_owned()),
        }),
    }
}

fn item_is(item: &SelectItem, expr: &Expr) -> bool {
    match item {
        SelectItem::UnnamedExpr(own) | SelectItem::ExprWithAlias { expr: own, .. } => {
            same(own, expr)
        }
        _ => false,
    }
}

/// Whether two expressions are the same but for brackets, quotes and the relation's name before a column.
fn same(left: &Expr, right: &Expr) -> bool {
    match (left, right) {
        (Expr::Nested(left), right) => same(left, right),
        (left, Expr::Nested(right)) => same(left, right),
        (Expr::Identifier(left), Expr::Identifier(right)) => folded(left) == folded(right),
        (Expr::Identifier(name), Expr::CompoundIdentifier(parts))
        | (Expr::CompoundIdentifier(parts), Expr::Identifier(name)) => parts
            .last()
            .is_some_and(|last| folded(last) == folded(name)),
        (Expr::CompoundIdentifier(left), Expr::CompoundIdentifier(right)) => {
            left.iter().map(folded).eq(right.iter().map(folded))
        }
        (
            Expr::BinaryOp { left, op, right },
            Expr::BinaryOp {
                left: other_left,
                op: other_op,
                right: other_right,
            },
        ) => op == other_op && same(left, other_left) && same(right, other_right),
        // The tree's own equality leaves out where tokens stand.
        (left, right) => left == right,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == ast::Value::Null)
}

fn is_bound(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if matches!(folded(ident).as_str(), WINDOWSTART | WINDOWEND))
}

/// The relation of a query that reads just one.
fn only_source(select: &ast::Select, catalog: &dyn Catalog) -> Option<std::sync::Arc<Relation>> {
    let [table] = select.from.as_slice() else {
        return None;
    };
    match (&table.relation, table.joins.as_slice()) {
        (TableFactor::Table { name, .. }, []) => {
            catalog.relation(&folded(name.0.last()?.as_ident()?))
        }
        _ => None,
    }
}
