//! A table at one step as a DataFusion table.

use std::{fmt, sync::Arc};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::{
    catalog::{Session, TableProvider},
    error::{DataFusionError, Result},
    logical_expr::{Expr, TableProviderFilterPushDown, TableType},
    physical_plan::ExecutionPlan,
};
use highwater_exec::TableReader;
use highwater_planner::catalog::Relation;

use super::{
    key_range::{KeyColumn, Seeks, plan_seeks},
    scan::{Batches, Scan, ScanExec},
};

/// A table of a snapshot.
pub struct SnapshotTable {
    relation: Arc<Relation>,
    reader: TableReader,
}

impl SnapshotTable {
    /// The table as `reader` has it.
    pub fn new(relation: Arc<Relation>, reader: TableReader) -> Self {
        Self { relation, reader }
    }

    fn key(&self) -> Vec<KeyColumn> {
        self.relation
            .key_columns()
            .into_iter()
            .map(|at| {
                let column = &self.relation.columns[at];
                KeyColumn {
                    name: column.name.clone(),
                    data_type: column.data_type.clone(),
                }
            })
            .collect()
    }
}

impl fmt::Debug for SnapshotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotTable")
            .field("relation", &self.relation.name)
            .finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters on the key become seeks. They stay in the plan too: seeks are about encoded keys, the filter about values, and the filter
    /// over the few rows that a seek leaves costs nothing.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let used = plan_seeks(filters, &self.key()).used;
        Ok(used
            .into_iter()
            .map(|used| match used {
                true => TableProviderFilterPushDown::Inexact,
                false => TableProviderFilterPushDown::Unsupported,
            })
            .collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let filters: Vec<&Expr> = filters.iter().collect();
        let seeks = plan_seeks(&filters, &self.key());
        let schema = match projection {
            Some(columns) => Arc::new(self.schema().project(columns)?),
            None => self.schema(),
        };
        let scan = TableScan {
            name: self.relation.name.clone(),
            reader: self.reader.clone(),
            projection: projection.cloned(),
            schema,
            seeks,
        };
        Ok(Arc::new(ScanExec::new(Arc::new(scan), limit)))
    }
}

struct TableScan {
    name: String,
    reader: TableReader,
    projection: Option<Vec<usize>>,
    schema: SchemaRef,
    seeks: Seeks,
}

impl fmt::Debug for TableScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TableScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        write!(
            f,
            "TableScan: {}, columns=[{}]",
            self.name,
            columns.join(", ")
        )?;
        match self.seeks.ranges.len() {
            0 => write!(f, ", full scan"),
            _ => write!(f, ", seek={}", self.seeks.text),
        }
    }
}

impl Scan for TableScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn partitions(&self) -> usize {
        1
    }

    fn open(&self, _: usize) -> Result<Batches> {
        let external = |error| DataFusionError::External(Box::new(error));
        let batches = self
            .reader
            .scan(self.projection.as_deref(), &self.seeks.ranges)
            .map_err(external)?;
        Ok(Box::new(batches.map(move |batch| batch.map_err(external))))
    }
}

/// Types whose equal values have equal key bytes. Floats have two zeros and many NaNs, so a comparison of them is no comparison of keys.
pub(super) fn seekable(data_type: &DataType) -> bool {
    !data_type.is_floating() && !data_type.is_nested()
}
