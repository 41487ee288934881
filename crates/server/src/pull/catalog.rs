//! Our catalog as DataFusion sees it: one database, the relations in one schema at one snapshot, and beside them what the server tells of itself.

use std::{fmt, sync::Arc};

use datafusion::{
    catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider},
    error::Result,
    logical_expr::TableType,
};
use highwater_exec::{Engine, Snapshot};
use highwater_planner::catalog::{Catalog, Relation, SourceKind};
use highwater_storage_log::Log;

use super::{
    hw_catalog::{HW_CATALOG, HwCatalog},
    stream::StreamTable,
    table::SnapshotTable,
};
use crate::{catalog::CatalogState, sqlstate::SqlError, sqlstate::code};

/// Name of the only database.
pub const DATABASE: &str = "highwater";
/// Name of the schema of all relations.
pub const SCHEMA: &str = "public";

/// The list that holds [`DATABASE`].
pub fn databases(
    snapshot: Snapshot,
    catalog: Arc<CatalogState>,
    log: Arc<dyn Log>,
    engine: Arc<Engine>,
) -> Arc<dyn CatalogProviderList> {
    Arc::new(Databases {
        database: Arc::new(Database {
            schema: Arc::new(Relations {
                snapshot,
                catalog,
                log,
            }),
            engine,
        }),
    })
}

#[derive(Debug)]
struct Databases {
    database: Arc<Database>,
}

impl CatalogProviderList for Databases {
    fn register_catalog(
        &self,
        _: String,
        _: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![DATABASE.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == DATABASE).then(|| Arc::clone(&self.database) as Arc<dyn CatalogProvider>)
    }
}

struct Database {
    schema: Arc<Relations>,
    engine: Arc<Engine>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

impl CatalogProvider for Database {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.to_owned(), HW_CATALOG.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == SCHEMA {
            return Some(Arc::clone(&self.schema) as Arc<dyn SchemaProvider>);
        }
        name.eq_ignore_ascii_case(HW_CATALOG).then(|| {
            Arc::new(HwCatalog {
                upper: name != HW_CATALOG,
                catalog: Arc::clone(&self.schema.catalog),
                engine: Arc::clone(&self.engine),
                snapshot: self.schema.snapshot.clone(),
                log: Arc::clone(&self.schema.log),
            }) as Arc<dyn SchemaProvider>
        })
    }
}

struct Relations {
    snapshot: Snapshot,
    catalog: Arc<CatalogState>,
    log: Arc<dyn Log>,
}

impl Relations {
    fn provider(&self, relation: &Arc<Relation>) -> Result<Arc<dyn TableProvider>, SqlError> {
        match relation.kind {
            SourceKind::Stream => Ok(Arc::new(StreamTable::new(
                Arc::clone(relation),
                &self.snapshot,
                Arc::clone(&self.log),
            )?)),
            SourceKind::Table => {
                let reader = self
                    .snapshot
                    .table(relation.id)
                    .ok_or_else(|| not_kept(&self.catalog, relation))?;
                Ok(Arc::new(SnapshotTable::new(Arc::clone(relation), reader)))
            }
        }
    }
}

/// A table without rows to read: its query is gone.
fn not_kept(catalog: &CatalogState, relation: &Relation) -> SqlError {
    let name = &relation.name;
    if catalog.maker(relation.id).is_none() {
        return SqlError::new(
            code::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("the rows of table \"{name}\" are not kept: its query was terminated"),
        )
        .with_hint("drop the table and create it again");
    }
    SqlError::new(
        code::SERIALIZATION_FAILURE,
        format!("table \"{name}\" was changed while the query began"),
    )
    .with_hint("run the query again")
}

impl fmt::Debug for Relations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relations").finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl SchemaProvider for Relations {
    fn table_names(&self) -> Vec<String> {
        self.catalog
            .relations()
            .iter()
            .map(|relation| relation.name.clone())
            .collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(relation) = self.catalog.relation(name) else {
            return Ok(None);
        };
        match self.provider(&relation) {
            Ok(provider) => Ok(Some(provider)),
            Err(error) => Err(datafusion::error::DataFusionError::External(Box::new(
                error,
            ))),
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.catalog.relation(name).map(|_| TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.catalog.relation(name).is_some()
    }
}
