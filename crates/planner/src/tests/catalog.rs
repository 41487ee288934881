//! A catalog made by statements.

use std::{collections::BTreeMap, sync::Arc};

use datafusion::execution::SessionState;
use highwater_sql::{Dialect, IdentifierCase, Statement, parse_statement};

use crate::{
    PlanContext,
    catalog::{Catalog, QueryId, Relation, RelationId},
    plan_create_as, plan_create_source,
};

/// Relations by name; a topic exists once a relation is over it.
#[derive(Default)]
pub struct TestCatalog {
    relations: BTreeMap<String, Arc<Relation>>,
}

impl TestCatalog {
    /// Adds what a CREATE statement makes; anything else, and what fails, adds nothing.
    pub fn add_result_of(&mut self, statement: &str, functions: &SessionState) {
        let id = RelationId(self.relations.len() as u64 + 1);
        let Ok(parsed) = parse_statement(statement) else {
            return;
        };
        let parsed = parsed.statement;
        let ctx = PlanContext {
            catalog: self,
            functions,
            default_partitions: 4,
            dialect: Dialect::Postgres,
            identifier_case: IdentifierCase::Lower,
            defaults: &crate::defaults::NO_DEFAULTS,
        };
        let planned = match parsed {
            Statement::CreateSource(create) => plan_create_source(&create, &ctx, id),
            Statement::CreateAs(create) => {
                plan_create_as(&create, &ctx, id, QueryId(7)).map(|planned| planned.relation)
            }
            _ => return,
        };
        if let Ok(relation) = planned {
            self.relations
                .insert(relation.name.clone(), Arc::new(relation));
        }
    }
}

impl Catalog for TestCatalog {
    fn relation(&self, name: &str) -> Option<Arc<Relation>> {
        self.relations.get(name).cloned()
    }

    fn relations(&self) -> Vec<Arc<Relation>> {
        self.relations.values().cloned().collect()
    }

    fn topic_partitions(&self, topic: &str) -> Option<u32> {
        self.relations
            .values()
            .find(|relation| relation.topic == topic)
            .map(|relation| relation.partitions)
    }
}
