//! A stream's log, from its start to a cut, as a DataFusion table.

use std::{fmt, sync::Arc};

use arrow::{
    array::{ArrayRef, Int32Array, Int64Array},
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
    record_batch::{RecordBatch, RecordBatchOptions},
};
use datafusion::{
    catalog::{Session, TableProvider},
    error::{DataFusionError, Result},
    logical_expr::{Expr, TableType},
    physical_plan::ExecutionPlan,
};
use highwater_exec::{DecodedRows, RelationDecoder, Snapshot};
use highwater_planner::catalog::{ROWOFFSET, ROWPARTITION, ROWTIME, Relation};
use highwater_storage_log::{Isolation, Log, LogResult, Offset, TopicPartition};

use super::scan::{Batches, Scan, ScanExec};

/// Bytes of log read and decoded at once: some thousand records, so that a worker can turn to another query in between.
const READ_BYTES: usize = 1 << 20;

/// Columns of a stream as queries see them: declared ones, then `rowtime`, `rowpartition`, `rowoffset`.
fn stream_schema(relation: &Relation) -> SchemaRef {
    let mut fields: Vec<Arc<Field>> = relation.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(
        ROWTIME,
        DataType::Timestamp(TimeUnit::Millisecond, None),
        true,
    )));
    fields.push(Arc::new(Field::new(ROWPARTITION, DataType::Int32, true)));
    fields.push(Arc::new(Field::new(ROWOFFSET, DataType::Int64, true)));
    Arc::new(Schema::new(fields))
}

/// Part of a partition.
#[derive(Debug, Clone)]
struct Extent {
    partition: TopicPartition,
    from: Offset,
    to: Offset,
}

/// A stream up to a cut.
pub struct StreamTable {
    relation: Arc<Relation>,
    log: Arc<dyn Log>,
    extents: Vec<Extent>,
}

impl StreamTable {
    /// The stream as the step of `snapshot` had read it, and up to its end where no query reads it.
    pub fn new(relation: Arc<Relation>, snapshot: &Snapshot, log: Arc<dyn Log>) -> LogResult<Self> {
        let cut = snapshot.source_positions(&relation.topic);
        let mut extents = Vec::new();
        for number in 0..relation.partitions {
            let partition = TopicPartition::new(relation.topic.as_str(), number);
            let offsets = log.offsets(&partition)?;
            let read = cut.iter().find(|(partition, _)| *partition == number);
            let to = read.map_or(offsets.last_stable, |(_, offset)| Offset(*offset));
            extents.push(Extent {
                partition,
                from: offsets.log_start,
                to,
            });
        }
        Ok(Self {
            relation,
            log,
            extents,
        })
    }
}

impl fmt::Debug for StreamTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamTable")
            .field("relation", &self.relation.name)
            .finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl TableProvider for StreamTable {
    fn schema(&self) -> SchemaRef {
        stream_schema(&self.relation)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.schema().fields().len()).collect();
        let projection: Vec<usize> = projection.cloned().unwrap_or_else(all);
        let scan = StreamScan {
            schema: Arc::new(self.schema().project(&projection)?),
            relation: Arc::clone(&self.relation),
            log: Arc::clone(&self.log),
            extents: self.extents.clone(),
            projection,
        };
        Ok(Arc::new(ScanExec::new(Arc::new(scan), limit)))
    }
}

struct StreamScan {
    relation: Arc<Relation>,
    log: Arc<dyn Log>,
    extents: Vec<Extent>,
    projection: Vec<usize>,
    schema: SchemaRef,
}

impl fmt::Debug for StreamScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for StreamScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let Relation { name, topic, .. } = self.relation.as_ref();
        write!(
            f,
            "StreamScan: {name}, topic={topic}, partitions={}, columns=[{}]",
            self.extents.len(),
            columns.join(", ")
        )
    }
}

impl Scan for StreamScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn partitions(&self) -> usize {
        self.extents.len()
    }

    fn open(&self, partition: usize) -> Result<Batches> {
        let decoder =
            RelationDecoder::new(Arc::clone(&self.relation), &self.projection).map_err(external)?;
        let extent = self.extents[partition].clone();
        Ok(Box::new(StreamBatches {
            declared: self.relation.columns.len(),
            projection: self.projection.clone(),
            schema: Arc::clone(&self.schema),
            log: Arc::clone(&self.log),
            next: extent.from,
            extent,
            decoder,
        }))
    }
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

struct StreamBatches {
    declared: usize,
    projection: Vec<usize>,
    schema: SchemaRef,
    log: Arc<dyn Log>,
    extent: Extent,
    next: Offset,
    decoder: RelationDecoder,
}

impl StreamBatches {
    /// The next rows. Records that cannot be decoded are left out: the continuous queries that read the stream have reported them.
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        let partition = &self.extent.partition;
        while self.next < self.extent.to {
            let from = self.next;
            let fetch = self
                .log
                .read(partition, from, READ_BYTES, Isolation::ReadCommitted)
                .map_err(external)?;
            if fetch.next_offset <= from {
                break;
            }
            self.next = fetch.next_offset;
            let wanted = from..self.extent.to;
            let rows = self
                .decoder
                .decode(partition, &fetch.batches, wanted, &|_| false)
                .map_err(external)?;
            if rows.rows > 0 {
                return Ok(Some(self.batch(&rows)?));
            }
        }
        Ok(None)
    }

    fn batch(&self, rows: &DecodedRows) -> Result<RecordBatch> {
        let partition = self.extent.partition.partition.0 as i32;
        let column = |at: usize| -> Result<ArrayRef> {
            match at.checked_sub(self.declared) {
                None => rows.columns[at].clone().ok_or_else(|| {
                    DataFusionError::Internal(format!("column {at} was not decoded"))
                }),
                Some(0) => Ok(Arc::clone(&rows.rowtime)),
                Some(1) => Ok(Arc::new(Int32Array::from(vec![partition; rows.rows]))),
                Some(_) => Ok(Arc::new(Int64Array::from(rows.offsets.clone()))),
            }
        };
        let columns = self
            .projection
            .iter()
            .map(|&at| column(at))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &options,
        )?)
    }
}

impl Iterator for StreamBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.read().transpose();
        if let Some(Err(_)) = batch {
            self.next = self.extent.to;
        }
        batch
    }
}
