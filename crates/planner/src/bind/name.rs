//! Names for expressions that the SELECT list leaves unnamed.
//!
//! A column of a stream or table needs a name that can be written, so `count(*)` becomes `count` as in PostgreSQL and `a + 1` becomes
//! `col_0` after its place. Names that clash get `_1`, `_2`, .. so that every column keeps its own.

use sqlparser::ast::{self, SelectItem, SetExpr};

use super::locate::{folded, last_ident, start_of};
use crate::error::{PlanError, PlanResult};

/// Names the unnamed expressions of the outermost SELECT; of a UNION's first one, which names the columns of all. Names that were written
/// must differ.
pub(crate) fn name_expressions(query: &mut ast::Query) -> PlanResult<()> {
    let Some(select) = first_select(&mut query.body) else {
        return Ok(());
    };
    check_names(&select.projection)?;
    name_items(&mut select.projection);
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
