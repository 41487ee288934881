//! Names for expressions that the SELECT list leaves unnamed.
//!
//! A column of a stream or table needs a name that can be written, so `count(*)` becomes `count` as in PostgreSQL and `a + 1` becomes
//! `col_0` after its place; in dialect ksql it has ksqlDB's name. Names that clash get `_1`, `_2`, .. so that every column keeps its own.

use highwater_sql::Dialect;
use sqlparser::ast::{self, SelectItem, SetExpr};

use super::locate::{folded, last_ident, start_of};
use super::source::is_reserved;
use crate::{
    PlanContext,
    catalog::Catalog,
    error::{PlanError, PlanResult},
};

/// Names the unnamed expressions of the outermost SELECT; of a UNION's first one, which names the columns of all. Names that were written
/// must differ.
pub(crate) fn name_expressions(query: &mut ast::Query, ctx: &PlanContext) -> PlanResult<()> {
    let Some(select) = first_select(&mut query.body) else {
        return Ok(());
    };
    match ctx.dialect {
        Dialect::Postgres => {
            check_names(&select.projection)?;
            name_items(&mut select.projection);
        }
        Dialect::Ksql => {
            let columns = source_columns(select, ctx.catalog);
            name_ksql_items(&mut select.projection, &columns);
        }
    }
    Ok(())
}

fn check_names(items: &[SelectItem]) -> PlanResult<()> {
    let mut taken: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let Some(name) = written_name(item) else {
            continue;
        };
        if taken.contains(&name) {
            return Err(PlanError::DuplicateColumn {
                name,
                position: start_of(item),
            });
        }
        taken.push(name);
    }
    Ok(())
}

fn first_select(body: &mut SetExpr) -> Option<&mut ast::Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&mut query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

fn name_items(items: &mut [SelectItem]) {
    let mut taken: Vec<String> = items.iter().filter_map(written_name).collect();
    for (position, item) in items.iter_mut().enumerate() {
        let SelectItem::UnnamedExpr(expr) = item else {
            continue;
        };
        if let ast::Expr::Identifier(_) = expr {
            continue;
        }
        if let Some(name) = column_name(expr) {
            *item = named(expr, name);
            continue;
        }
        let base = derived_name(expr).unwrap_or_else(|| format!("col_{position}"));
        let name = free_name(&base, &taken);
        taken.push(name.clone());
        *item = named(expr, name);
    }
}

/// ksqlDB's names: a field keeps its own, any other expression is `KSQL_COL_0` and so on. Names that were written and clash are found when the
/// result's columns are made.
fn name_ksql_items(items: &mut [SelectItem], columns: &[String]) {
    let is_plain = |item: &SelectItem| !matches!(item, SelectItem::UnnamedExpr(expr) if !matches!(expr, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)));
    let mut taken: Vec<String> = items
        .iter()
        .filter(|item| is_plain(item))
        .filter_map(written_name)
        .collect();
    let mut next = 0;
    for item in items {
        let SelectItem::UnnamedExpr(expr) = item else {
            continue;
        };
        let name = match expr {
            // Event time and its like are expressions by now; they keep their names all the same.
            ast::Expr::Identifier(name) if is_reserved(&name.value) => folded(name),
            ast::Expr::Identifier(_) => continue,
            ast::Expr::CompoundIdentifier(parts) => match parts.last() {
                Some(last) => folded(last),
                None => continue,
            },
            _ => match column_name(expr) {
                Some(field) => {
                    let others = [taken.as_slice(), columns].concat();
                    free_name(&field, &others)
                }
                None => loop {
                    let name = format!("KSQL_COL_{next}");
                    next += 1;
                    if !taken.contains(&name) && !columns.contains(&name) {
                        break name;
                    }
                },
            },
        };
        taken.push(name.clone());
        *item = named(expr, name);
    }
}

/// The columns of the relations in FROM: no name that is made up may be one of theirs.
fn source_columns(select: &ast::Select, catalog: &dyn Catalog) -> Vec<String> {
    let joined = select.from.iter().flat_map(|table| {
        let joins = table.joins.iter().map(|join| &join.relation);
        std::iter::once(&table.relation).chain(joins)
    });
    joined
        .filter_map(|factor| match factor {
            ast::TableFactor::Table { name, .. } => catalog.relation(&folded(last_ident(name)?)),
            _ => None,
        })
        .flat_map(|relation| relation.columns.clone())
        .map(|column| column.name)
        .collect()
}

fn named(expr: &ast::Expr, name: String) -> SelectItem {
    SelectItem::ExprWithAlias {
        expr: expr.clone(),
        alias: ast::Ident::with_quote('"', name),
    }
}

/// The name that an item has by itself.
fn written_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => column_name(expr),
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        _ => None,
    }
}

fn column_name(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Identifier(ident) => Some(folded(ident)),
        ast::Expr::CompoundIdentifier(parts) => parts.last().map(folded),
        ast::Expr::BinaryOp {
            op: ast::BinaryOperator::Arrow,
            right,
            ..
        } => column_name(right),
        _ => None,
    }
}

fn derived_name(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Function(function) => last_ident(&function.name).map(folded),
        ast::Expr::Cast { expr, .. } => column_name(expr).or_else(|| derived_name(expr)),
        ast::Expr::Nested(expr) => column_name(expr).or_else(|| derived_name(expr)),
        ast::Expr::Case { .. } => Some("case".to_owned()),
        ast::Expr::Extract { .. } => Some("extract".to_owned()),
        _ => None,
    }
}

fn free_name(base: &str, taken: &[String]) -> String {
    let mut name = base.to_owned();
    let mut suffix = 1;
    while taken.contains(&name) {
        name = format!("{base}_{suffix}");
        suffix += 1;
    }
    name
}
