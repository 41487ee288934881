//! Pull queries: what must be settled before DataFusion takes them whole.

use highwater_sql::{Dialect, Query};
use sqlparser::ast;

use super::{
    ksql::rewrite,
    locate::start_of,
    units::name_time_units,
    wildcard::{WildcardOrder, expand_wildcards},
};
use crate::{
    catalog::Catalog,
    error::{PlanError, PlanResult},
};

/// Checks that a query has no streaming clause and writes out its wildcards, so that pseudo columns (`rowtime`, `rowpartition`,
/// `rowoffset`) show only when they are named. A NATURAL JOIN becomes USING over the declared columns for the same reason.
pub fn rewrite_pull(
    query: &Query,
    dialect: Dialect,
    catalog: &dyn Catalog,
) -> PlanResult<Box<ast::Query>> {
    if query.emit.is_some() {
        return Err(PlanError::Internal(
            "a query with EMIT is not a pull query".to_owned(),
        ));
    }
    if query.window.is_some() {
        let hint = "add EMIT CHANGES, or group by date_bin(interval, rowtime)";
        return Err(PlanError::unsupported(
            "WINDOW in a pull query",
            start_of(query.body.as_ref()),
            Some(hint),
        ));
    }
    if !query.within.is_empty() {
        return Err(PlanError::unsupported(
            "WITHIN in a pull query",
            start_of(query.body.as_ref()),
            Some("compare the times in ON or WHERE, or add EMIT CHANGES"),
        ));
    }
    if let Some(expr) = query.partition_by.first() {
        return Err(PlanError::unsupported(
            "PARTITION BY in a pull query",
            start_of(expr),
            Some("add EMIT CHANGES"),
        ));
    }
    let mut body = query.body.clone();
    expand_wildcards(&mut body, catalog, WildcardOrder::Declared)?;
    name_time_units(&mut body);
    rewrite(&mut body, dialect)?;
    Ok(body)
}
