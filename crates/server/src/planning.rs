//! Statements to plans: the one place that calls the planner.

use std::sync::Arc;

use datafusion::execution::SessionState;
use highwater_exec::OffsetReset;
use highwater_functions::Dialect;
use highwater_planner::{
    PlanContext, PushPlan,
    catalog::{Catalog, QueryId, Relation, RelationId, SourceKind},
    plan_create_as, plan_create_source, plan_push, plan_source_table, rewrite_pull,
};
use highwater_sql::{Statement, ast::Query};
use sqlparser::ast as std_ast;

use crate::{catalog::QueryEntry, functions, sqlstate::SqlError};

/// Plans statements. Pure: it asks nothing but what it is given.
pub struct Planner {
    dialect: Dialect,
    functions: SessionState,
    default_partitions: u32,
}

/// What a CREATE statement makes.
pub struct Planned {
    /// The stream or table.
    pub relation: Arc<Relation>,
    /// The query that writes it, or that keeps a declared table.
    pub query: Option<QueryEntry>,
}

impl Planner {
    /// A planner with the function library.
    pub fn new(default_partitions: u32) -> Self {
        Self {
            dialect: Dialect::Postgres,
            functions: functions::library(Dialect::Postgres),
            default_partitions,
        }
    }

    /// Whose functions a name means.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The function library.
    pub fn functions(&self) -> &SessionState {
        &self.functions
    }

    fn context<'a>(&'a self, catalog: &'a dyn Catalog) -> PlanContext<'a> {
        PlanContext {
            catalog,
            functions: &self.functions,
            default_partitions: self.default_partitions,
        }
    }

    /// Plans `CREATE STREAM|TABLE`, with or without `AS`. `query` is the id for a query that the statement may need. `script` is what
    /// positions in errors are about.
    pub fn plan_create(
        &self,
        statement: &Statement,
        script: &str,
        catalog: &dyn Catalog,
        relation: RelationId,
        query: QueryId,
        reset: OffsetReset,
    ) -> Result<Planned, SqlError> {
        let context = self.context(catalog);
        let located = |error| SqlError::from_plan(&error, script);
        match statement {
            Statement::CreateSource(create) => {
                let relation =
                    Arc::new(plan_create_source(create, &context, relation).map_err(located)?);
                let query = (relation.kind == SourceKind::Table).then(|| QueryEntry {
                    id: query,
                    name: query_name("CST", &relation.name, query),
                    statement: String::new(),
                    plan: plan_source_table(Arc::clone(&relation)),
                    relation: Arc::clone(&relation),
                    offset_reset: OffsetReset::Earliest,
                    paused: false,
                });
                Ok(Planned { relation, query })
            }
            Statement::CreateAs(create) => {
                let planned = plan_create_as(create, &context, relation, query).map_err(located)?;
                let relation = Arc::new(planned.relation);
                let prefix = match relation.kind {
                    SourceKind::Stream => "CSAS",
                    SourceKind::Table => "CTAS",
                };
                let query = QueryEntry {
                    id: query,
                    name: query_name(prefix, &relation.name, query),
                    statement: String::new(),
                    plan: planned.plan,
                    relation: Arc::clone(&relation),
                    offset_reset: reset,
                    paused: false,
                };
                Ok(Planned {
                    relation,
                    query: Some(query),
                })
            }
            _ => Err(SqlError::internal("only CREATE statements make relations")),
        }
    }

    /// Plans `SELECT .. EMIT CHANGES`.
    pub fn plan_push(
        &self,
        query: &Query,
        script: &str,
        catalog: &dyn Catalog,
    ) -> Result<PushPlan, SqlError> {
        plan_push(query, &self.context(catalog))
            .map_err(|error| SqlError::from_plan(&error, script))
    }

    /// Makes a pull query ready for DataFusion.
    pub fn rewrite_pull(
        &self,
        query: &Query,
        script: &str,
        catalog: &dyn Catalog,
    ) -> Result<Box<std_ast::Query>, SqlError> {
        rewrite_pull(query, catalog).map_err(|error| SqlError::from_plan(&error, script))
    }
}

/// `CTAS_ROUTES_7`: what ksqlDB would call it.
fn query_name(prefix: &str, relation: &str, id: QueryId) -> String {
    format!("{prefix}_{}_{id}", relation.to_uppercase())
}

/// A statement of the command topic.
pub fn parse_recorded(text: &str) -> Result<Statement, SqlError> {
    let parsed =
        highwater_sql::parse_statement(text).map_err(|error| SqlError::from_sql(&error, text))?;
    Ok(parsed.statement)
}
