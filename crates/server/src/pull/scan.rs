//! The leaf of a physical plan: blocking iterators of batches, one per partition.

use std::{fmt, sync::Arc};

use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use datafusion::{
    common::tree_node::TreeNodeRecursion,
    error::{DataFusionError, Result},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::EquivalenceProperties,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
        coop::cooperative,
        execution_plan::{Boundedness, EmissionType},
        stream::RecordBatchStreamAdapter,
    },
};

/// Batches of one partition, in order.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// What a scan reads.
pub trait Scan: fmt::Debug + fmt::Display + Send + Sync {
    /// Columns of the batches.
    fn schema(&self) -> SchemaRef;

    /// How many partitions can be read side by side.
    fn partitions(&self) -> usize;

    /// Begins to read a partition. The iterator may block on the disk: it is driven by a pull worker.
    fn open(&self, partition: usize) -> Result<Batches>;
}

/// A scan as DataFusion runs it.
#[derive(Debug)]
pub struct ScanExec {
    scan: Arc<dyn Scan>,
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl ScanExec {
    /// A scan that may stop after `fetch` rows.
    pub fn new(scan: Arc<dyn Scan>, fetch: Option<usize>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(scan.schema()),
            Partitioning::UnknownPartitioning(scan.partitions()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            scan,
            fetch,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scan)?;
        match self.fetch {
            Some(fetch) => write!(f, ", fetch={fetch}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        debug_assert!(children.is_empty(), "a leaf gets no inputs");
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition >= self.scan.partitions() {
            return Err(DataFusionError::Internal(format!(
                "scan has no partition {partition}"
            )));
        }
        let batches = self.scan.open(partition)?;
        let mut left = self.fetch.unwrap_or(usize::MAX);
        let limited = batches.map_while(move |batch| match (left, batch) {
            (0, _) => None,
            (_, Err(error)) => Some(Err(error)),
            (_, Ok(batch)) => {
                let rows = batch.num_rows().min(left);
                left -= rows;
                Some(Ok(batch.slice(0, rows)))
            }
        });
        let stream =
            RecordBatchStreamAdapter::new(self.scan.schema(), futures::stream::iter(limited));
        Ok(Box::pin(cooperative(stream)))
    }
}
