//! Statements to plans: the one place that calls the planner.

use std::sync::Arc;

use datafusion::execution::SessionState;
use highwater_exec::{EarlierResult, OffsetReset};
use highwater_planner::{
    PlanContext, PushPlan,
    catalog::{Catalog, QueryId, Relation, RelationId, SourceKind},
    dataflow::DataflowPlan,
    defaults::PlanDefaults,
    plan_create_as, plan_create_source, plan_insert, plan_push, plan_source_table, rewrite_pull,
};
use highwater_sql::{Dialect, Insert, InsertSource, Language, Statement, ast::Query};
use sqlparser::ast as std_ast;

use crate::{
    catalog::{CatalogState, QueryEntry, QueryRole, RelationEntry},
    functions,
    sqlstate::SqlError,
    statement::unknown_relation,
};

/// Plans statements. Pure: it asks nothing but what it is given.
pub struct Planner {
    /// The function library of dialect postgres.
    postgres: SessionState,
    /// That of dialect ksql.
    ksql: SessionState,
    /// The same for what DataFusion plans by itself.
    ksql_pull: SessionState,
    default_partitions: u32,
}

/// How a statement is read, and what holds where it says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementStyle {
    /// Its grammar, meaning and folding.
    pub language: Language,
    /// Settings of the session that ran it.
    pub defaults: PlanDefaults,
}

/// What a CREATE statement makes.
pub struct Planned {
    /// The stream or table.
    pub relation: Arc<Relation>,
    /// The query that writes it, or that keeps a declared table.
    pub query: Option<QueryEntry>,
}

impl Planner {
    /// A planner with the function libraries.
    pub fn new(default_partitions: u32) -> Self {
        Self {
            postgres: functions::library(highwater_functions::Dialect::Postgres),
            ksql: functions::library(highwater_functions::Dialect::Ksql),
            ksql_pull: functions::ksql_pull_library(),
            default_partitions,
        }
    }

    /// The function library of a dialect.
    pub fn functions(&self, dialect: Dialect) -> &SessionState {
        match dialect {
            Dialect::Postgres => &self.postgres,
            Dialect::Ksql => &self.ksql,
        }
    }

    /// The function library of a dialect, for pull queries and the expressions of INSERT.
    pub fn pull_functions(&self, dialect: Dialect) -> &SessionState {
        match dialect {
            Dialect::Postgres => &self.postgres,
            Dialect::Ksql => &self.ksql_pull,
        }
    }

    fn context<'a>(
        &'a self,
        catalog: &'a dyn Catalog,
        style: &'a StatementStyle,
    ) -> PlanContext<'a> {
        let language = style.language;
        PlanContext {
            dialect: language.dialect,
            identifier_case: language.identifier_case,
            defaults: &style.defaults,
            catalog,
            functions: self.functions(language.dialect),
            default_partitions: self.default_partitions,
        }
    }

    #[allow(clippy::too_many_arguments)] // What one statement is planned by; each is told apart by its type.
    /// Plans `CREATE STREAM|TABLE`, with or without `AS`. `query` is the id for a query that the statement may need. `script` is what
    /// positions in errors are about.
    pub fn plan_create(
        &self,
        statement: &Statement,
        style: &StatementStyle,
        script: &str,
        catalog: &dyn Catalog,
        relation: RelationId,
        query: QueryId,
        reset: OffsetReset,
    ) -> Result<Planned, SqlError> {
        let context = self.context(catalog, style);
        let located = |error| SqlError::from_plan(&error, script);
        match statement {
            Statement::CreateSource(create) => {
                let relation =
                    Arc::new(plan_create_source(create, &context, relation).map_err(located)?);
                let query = (relation.kind == SourceKind::Table).then(|| QueryEntry {
                    id: query,
                    role: QueryRole::Keeper,
                    name: query_name("CST", &relation.name, query),
                    statement: String::new(),
                    plan: plan_source_table(Arc::clone(&relation)),
                    relation: Arc::clone(&relation),
                    offset_reset: OffsetReset::Earliest,
                    begins_at: Vec::new(),
                    paused: false,
                    revision: 0,
                    earlier: None,
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
                    role: QueryRole::Maker,
                    name: query_name(prefix, &relation.name, query),
                    statement: String::new(),
                    plan: planned.plan,
                    relation: Arc::clone(&relation),
                    offset_reset: reset,
                    begins_at: Vec::new(),
                    paused: false,
                    revision: 0,
                    earlier: None,
                };
                Ok(Planned {
                    relation,
                    query: Some(query),
                })
            }
            _ => Err(SqlError::internal("only CREATE statements make relations")),
        }
    }

    /// Plans the query of `INSERT INTO target SELECT ..`.
    pub fn plan_insert(
        &self,
        query: &Query,
        target: &Arc<Relation>,
        style: &StatementStyle,
        script: &str,
        catalog: &dyn Catalog,
    ) -> Result<DataflowPlan, SqlError> {
        plan_insert(query, target, &self.context(catalog, style))
            .map_err(|error| SqlError::from_plan(&error, script))
    }

    /// Plans `SELECT .. EMIT CHANGES`.
    pub fn plan_push(
        &self,
        query: &Query,
        style: &StatementStyle,
        script: &str,
        catalog: &dyn Catalog,
    ) -> Result<PushPlan, SqlError> {
        plan_push(query, &self.context(catalog, style))
            .map_err(|error| SqlError::from_plan(&error, script))
    }

    /// Makes a pull query ready for DataFusion.
    pub fn rewrite_pull(
        &self,
        query: &Query,
        style: &StatementStyle,
        script: &str,
        catalog: &dyn Catalog,
    ) -> Result<Box<std_ast::Query>, SqlError> {
        rewrite_pull(query, style.language.dialect, catalog)
            .map_err(|error| SqlError::from_plan(&error, script))
    }
}

/// A relation as ALTER or OR REPLACE makes it: another relation, under the same name and on the same topic, unless it is a table that is built anew.
///
/// Queries keep the relation that they were made with. Whether a record is sound for them does not change with columns that they do not
/// know, and a replay finds what the first run found.
pub struct Redeclared {
    /// The relation as it becomes.
    pub entry: RelationEntry,
    /// The query that writes it, or keeps a declared table.
    pub query: Option<QueryEntry>,
}

impl Redeclared {
    /// What was planned, of a statement with this text and style, in place of `entry`.
    pub fn new(
        entry: &RelationEntry,
        planned: Planned,
        text: &str,
        style: &StatementStyle,
    ) -> Self {
        let mut earlier = entry.earlier.clone();
        earlier.push(entry.relation.id);
        Self {
            entry: RelationEntry {
                relation: planned.relation,
                statement: text.to_owned(),
                style: style.clone(),
                earlier,
            },
            query: planned.query.map(|query| QueryEntry {
                statement: text.to_owned(),
                ..query
            }),
        }
    }

    /// A table with another query, which goes by the same ids: who reads it reads on.
    pub fn rebuilt(
        entry: &RelationEntry,
        old: &QueryEntry,
        planned: Planned,
        text: &str,
        style: &StatementStyle,
        revision: u64,
    ) -> Self {
        let earlier = EarlierResult {
            revision: old.revision,
            relation: Arc::clone(&old.relation),
        };
        Self {
            entry: RelationEntry {
                relation: planned.relation,
                statement: text.to_owned(),
                style: style.clone(),
                earlier: entry.earlier.clone(),
            },
            query: planned.query.map(|query| QueryEntry {
                statement: text.to_owned(),
                paused: old.paused,
                revision,
                earlier: Some(earlier),
                ..query
            }),
        }
    }

    /// Shows it in place of what it was.
    pub fn put_into(self, catalog: &mut CatalogState) {
        catalog.add_relation(self.entry);
        if let Some(query) = self.query {
            catalog.add_query(query);
        }
    }
}

/// The query of an INSERT, before it is planned.
pub struct Inserting {
    /// Identity.
    pub id: QueryId,
    /// What statements call it.
    pub name: String,
    /// Where it begins.
    pub beginning: OffsetReset,
}

impl Inserting {
    /// Plans `INSERT INTO name SELECT ..`; the entry's text is the caller's to fill in.
    pub fn plan(
        self,
        statement: &Statement,
        style: &StatementStyle,
        script: &str,
        planner: &Planner,
        catalog: &dyn Catalog,
    ) -> Result<QueryEntry, SqlError> {
        let Statement::Insert(Insert {
            name,
            source: InsertSource::Query(query),
            columns,
            ..
        }) = statement
        else {
            return Err(SqlError::internal("not an INSERT of a query"));
        };
        if !columns.is_empty() {
            return Err(
                SqlError::unsupported("INSERT INTO .. SELECT with a list of columns")
                    .with_hint("name the columns in the SELECT list"),
            );
        }
        let relation = catalog
            .relation(name)
            .ok_or_else(|| unknown_relation(name))?;
        let plan = planner.plan_insert(query, &relation, style, script, catalog)?;
        Ok(QueryEntry {
            id: self.id,
            role: QueryRole::Inserter,
            name: self.name,
            statement: String::new(),
            plan,
            relation,
            offset_reset: self.beginning,
            begins_at: Vec::new(),
            paused: false,
            revision: 0,
            earlier: None,
        })
    }
}

/// What statements call the query of an INSERT that gives it no name: `INSERTQUERY_7`.
pub fn insert_query_name(id: QueryId) -> String {
    format!("INSERTQUERY_{id}")
}

/// `CTAS_ROUTES_7`: what ksqlDB would call it.
fn query_name(prefix: &str, relation: &str, id: QueryId) -> String {
    format!("{prefix}_{}_{id}", relation.to_uppercase())
}

/// A statement of the command topic.
pub fn parse_recorded(text: &str, language: Language) -> Result<Statement, SqlError> {
    let parsed = highwater_sql::parse_statement_in(text, language)
        .map_err(|error| SqlError::from_sql(&error, text))?;
    Ok(parsed.statement)
}
