//! What DataFusion's binder may ask: relations of the catalog, functions of the session.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::{
    common::{DataFusionError, Result, TableReference, config::ConfigOptions},
    execution::SessionState,
    logical_expr::{
        AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF,
        planner::{ExprPlanner, RelationPlanner, TypePlanner},
    },
    sql::planner::ContextProvider,
};
use highwater_sql::{Dialect, SourceKind};

use super::{
    aggregate::{ksql_aggregate, ksql_aggregate_names},
    ksql::ksql_operators,
};

use super::CastTypes;
use crate::{
    PlanContext,
    catalog::{Catalog, ROWOFFSET, ROWPARTITION, ROWTIME, Relation},
    defaults::PlanDefaults,
    error::PlanError,
    nearest::did_you_mean,
};

/// Schemas whose relations are the catalog's; a name may be written without one.
const SCHEMA: &str = "public";

/// A relation as the binder sees it: declared columns, then pseudo columns. Positions are those of
/// [`crate::dataflow::Operator::Source`].
#[derive(Debug)]
pub(crate) struct RelationSource {
    /// What it is.
    pub relation: Arc<Relation>,
    schema: SchemaRef,
}

impl RelationSource {
    /// Streams have all three pseudo columns; a row of a table stands for several records and has its event time only.
    pub fn new(relation: Arc<Relation>) -> Self {
        let mut fields: Vec<Field> = relation
            .schema()
            .fields()
            .iter()
            .map(|field| field.as_ref().clone())
            .collect();
        fields.push(Field::new(
            ROWTIME,
            DataType::Timestamp(TimeUnit::Millisecond, None),
            true,
        ));
        if relation.kind == SourceKind::Stream {
            fields.push(Field::new(ROWPARTITION, DataType::Int32, true));
            fields.push(Field::new(ROWOFFSET, DataType::Int64, true));
        }
        Self {
            relation,
            schema: Arc::new(Schema::new(fields)),
        }
    }
}

impl TableSource for RelationSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The binder's view of a catalog snapshot and a session's functions.
pub(crate) struct BindContext<'a> {
    catalog: &'a dyn Catalog,
    functions: &'a SessionState,
    dialect: Dialect,
    defaults: &'a PlanDefaults,
    expr_planners: Vec<Arc<dyn ExprPlanner>>,
    relation_planners: Vec<Arc<dyn RelationPlanner>>,
}

impl<'a> BindContext<'a> {
    pub fn new(ctx: &PlanContext<'a>, relation_planners: Vec<Arc<dyn RelationPlanner>>) -> Self {
        let mut expr_planners = ctx.functions.expr_planners().to_vec();
        if ctx.dialect == Dialect::Ksql {
            expr_planners.insert(0, ksql_operators(ctx.functions));
        }
        Self {
            expr_planners,
            catalog: ctx.catalog,
            functions: ctx.functions,
            dialect: ctx.dialect,
            defaults: ctx.defaults,
            relation_planners,
        }
    }
}

/// The relation that a table reference means, if its schema part allows one.
pub(crate) fn resolve(catalog: &dyn Catalog, reference: &TableReference) -> Option<Arc<Relation>> {
    match reference.schema() {
        None | Some(SCHEMA) => catalog.relation(reference.table()),
        Some(_) => None,
    }
}

/// The error for a name that is no relation.
pub(crate) fn unknown_relation(catalog: &dyn Catalog, name: &str) -> PlanError {
    let relations = catalog.relations();
    let hint = did_you_mean(
        name,
        relations.iter().map(|relation| relation.name.as_str()),
    );
    PlanError::UnknownRelation {
        name: name.to_owned(),
        position: None,
        hint,
    }
}

impl ContextProvider for BindContext<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        match resolve(self.catalog, &name) {
            Some(relation) => Ok(Arc::new(RelationSource::new(relation))),
            None => Err(DataFusionError::External(Box::new(unknown_relation(
                self.catalog,
                &name.to_string(),
            )))),
        }
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.expr_planners
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relation_planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(CastTypes))
    }

    // Names of functions have no case: ksqlDB folds to upper, the library is written in lower.
    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let name = name.to_lowercase();
        self.functions.scalar_functions().get(&name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        let name = name.to_lowercase();
        self.functions.higher_order_functions().get(&name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        ksql_aggregate(name, self.dialect, self.defaults).or_else(|| {
            let name = name.to_lowercase();
            self.functions.aggregate_functions().get(&name).cloned()
        })
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        let name = name.to_lowercase();
        self.functions.window_functions().get(&name).cloned()
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.functions.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.functions.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.functions
            .higher_order_functions()
            .keys()
            .cloned()
            .collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.functions
            .aggregate_functions()
            .keys()
            .cloned()
            .chain(ksql_aggregate_names().map(str::to_owned))
            .collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.functions.window_functions().keys().cloned().collect()
    }
}
