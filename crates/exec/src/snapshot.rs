//! One committed step, as readers see it.

use std::{collections::HashMap, ops::Bound, sync::Arc};

use arrow::{array::ArrayRef, datatypes::SchemaRef, record_batch::RecordBatch};
use highwater_planner::catalog::RelationId;

use crate::{error::ExecResult, state::TableVersion};

/// All tables at one committed step. Cheap to clone; holds what it needs until dropped.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub(crate) inner: Arc<SnapshotInner>,
}

/// What the pipeline publishes with each commit.
#[derive(Clone, Default)]
pub(crate) struct SnapshotInner {
    pub step: u64,
    pub tables: Arc<HashMap<RelationId, TableVersion>>,
    /// By topic: for each partition, up to where (exclusive) all its readers had read it.
    pub positions: Arc<HashMap<String, Vec<i64>>>,
    /// By topic of a query's stream: for each partition, up to where (exclusive) the query had written it.
    pub written: Arc<HashMap<String, Vec<i64>>>,
}

impl Snapshot {
    /// The step it shows.
    pub fn step(&self) -> u64 {
        self.inner.step
    }

    /// A table of this snapshot.
    pub fn table(&self, relation: RelationId) -> Option<TableReader> {
        self.inner.tables.get(&relation).map(|version| TableReader {
            version: version.clone(),
        })
    }

    /// The offset (exclusive) up to which each partition of a topic belongs to this step: what the query that makes the stream had written, or
    /// what the queries that read it had read. Scans up to there agree with the tables. Empty when no query has to do with the topic.
    pub fn source_positions(&self, topic: &str) -> Vec<(u32, i64)> {
        let positions = self
            .inner
            .written
            .get(topic)
            .or_else(|| self.inner.positions.get(topic));
        let positions = positions.map(Vec::as_slice).unwrap_or_default();
        positions
            .iter()
            .enumerate()
            .map(|(partition, &position)| (partition as u32, position))
            .collect()
    }
}

/// A range over the leading key columns: `prefix` equal, then `lower`/`upper` on the next key column.
#[derive(Debug, Clone)]
pub struct KeyRange {
    /// One-row arrays for the first key columns, in key order, cast to the columns' types.
    pub prefix: Vec<ArrayRef>,
    /// Bounds on the key column behind the prefix. With any bound, NULLs are left out.
    pub lower: Bound<ArrayRef>,
    /// See `lower`.
    pub upper: Bound<ArrayRef>,
}

/// One table at one step.
#[derive(Clone)]
pub struct TableReader {
    version: TableVersion,
}

impl TableReader {
    /// The relation's declared columns followed by the event time (`Timestamp(Millisecond)`).
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(self.version.codec().schema())
    }

    /// Number of rows if it is known without a scan.
    pub fn estimated_rows(&self) -> Option<usize> {
        usize::try_from(self.version.rows()).ok()
    }

    /// Rows in key order, in batches; `ranges` empty for all, else the rows of each given key range (each one a seek), one range after the
    /// other. Overlapping ranges give their rows more than once. `projection` counts columns of [`TableReader::schema`].
    pub fn scan(
        &self,
        projection: Option<&[usize]>,
        ranges: &[KeyRange],
    ) -> ExecResult<Box<dyn Iterator<Item = ExecResult<RecordBatch>> + Send>> {
        let scans = if ranges.is_empty() {
            vec![self.version.scan(None)?]
        } else {
            ranges
                .iter()
                .map(|range| self.version.scan(Some(range)))
                .collect::<ExecResult<Vec<_>>>()?
        };
        let projection = projection.map(<[usize]>::to_vec);
        Ok(Box::new(scans.into_iter().flatten().map(move |batch| {
            let batch = batch?;
            Ok(match &projection {
                Some(projection) => batch.project(projection)?,
                None => batch,
            })
        })))
    }
}
