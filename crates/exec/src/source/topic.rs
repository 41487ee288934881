//! A relation's topic as a source: where each partition stands, what a cut takes, and its rows.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use highwater_planner::catalog::{Relation, SourceKind};
use highwater_storage_log::{BatchView, Isolation, Log, Offset, TopicPartition};

use super::SlotRows;
use crate::{
    error::ExecResult,
    operator::Rejected,
    producer::producer_id,
    relation::{DecodedRows, RelationDecoder},
    workers::{Pool, Workers},
};

/// Bytes that are read of a partition at a time.
const FETCH_BYTES: usize = 4 << 20;
/// A record's bytes, as long as none is known. What is read beyond the row budget is read again.
const ASSUMED_RECORD_BYTES: usize = 256;

/// See the module.
pub struct TopicSource {
    relation: Arc<Relation>,
    partitions: Vec<TopicPartition>,
    positions: Vec<Offset>,
    wanted: BTreeSet<usize>,
    decoders: Pool<RelationDecoder>,
    rejected: Vec<u64>,
    reader: Reader,
}

/// On whose behalf a topic is read.
#[derive(Debug, Clone)]
enum Reader {
    /// The pipeline's steps: what the relation's own query wrote reaches its readers in memory.
    Steps,
    /// What the relation's own query wrote, and nothing else.
    OwnRecords,
    /// A catch-up: all that its own query wrote counts, of what others wrote only what lies below where the steps stand.
    History {
        /// Where the steps stand, if they read the topic.
        steps: Option<Vec<Offset>>,
        /// Up to where what the relation's own query wrote has reached the reader in memory already.
        own_from: Option<Vec<Offset>>,
    },
}

/// What a cut took from one partition: whole batches, of which the offsets in `from..to` count.
#[derive(Debug)]
pub struct Fetched {
    /// Index of the partition.
    pub partition: usize,
    /// First offset of the step.
    pub from: Offset,
    /// First offset behind the step.
    pub to: Offset,
    batches: Vec<BatchView>,
}

/// Rows of one partition; of a table, with those that remove their key.
pub type PartitionRows = (SlotRows, Option<Vec<bool>>);

/// What decoding needs to know of a source, shared by all threads that do it.
struct Decoding<'a> {
    relation: &'a Arc<Relation>,
    partitions: &'a [TopicPartition],
    reader: &'a Reader,
    wanted: &'a BTreeSet<usize>,
    decoders: &'a Pool<RelationDecoder>,
}

/// What a cut took from one partition, decoded.
struct Decoded {
    partition: usize,
    to: Offset,
    rows: DecodedRows,
}

/// Whether the relation's own query wrote the batch: its readers have it already, in memory.
fn written_by_own_query(relation: &Relation, batch: &BatchView) -> bool {
    let own = relation.query.map(producer_id);
    own.is_some() && own == batch.producer().map(|producer| producer.id)
}

impl Fetched {
    /// Leaves what stands at `to` and behind it for a later step; answers whether that is anything.
    pub fn draw_back(&mut self, to: Offset) -> bool {
        if to >= self.to {
            return false;
        }
        self.to = to.max(self.from);
        self.batches.retain(|batch| batch.base_offset() < to);
        true
    }

    /// Records in it, those in front of and behind it that share its batches included.
    fn records(&self) -> usize {
        self.batches.iter().map(BatchView::record_count).sum()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.to <= self.from
    }
}

impl TopicSource {
    /// A source at the given positions, one a partition.
    pub fn new(relation: Arc<Relation>, positions: Vec<Offset>) -> ExecResult<Self> {
        let partitions = (0..relation.partitions)
            .map(|partition| TopicPartition::new(relation.topic.as_str(), partition))
            .collect::<Vec<_>>();
        debug_assert_eq!(
            partitions.len(),
            positions.len(),
            "one position a partition"
        );
        let wanted = Self::always_wanted(&relation);
        let decoders = Pool::new(decoder(&relation, &wanted)?);
        let rejected = vec![0; partitions.len()];
        Ok(Self {
            relation,
            partitions,
            positions,
            wanted,
            decoders,
            rejected,
            reader: Reader::Steps,
        })
    }

    /// A reader of the past, apart from the pipeline's steps, which stand at `steps` if they read the topic. It has what the relation's own
    /// query wrote below `own_from` already.
    pub fn history(
        relation: Arc<Relation>,
        positions: Vec<Offset>,
        steps: Option<Vec<Offset>>,
        own_from: Option<Vec<Offset>>,
    ) -> ExecResult<Self> {
        Ok(Self {
            reader: Reader::History { steps, own_from },
            ..Self::new(relation, positions)?
        })
    }

    /// A reader of what the relation's own query wrote: what [`Self::new`] leaves out.
    pub fn own_records(relation: Arc<Relation>, positions: Vec<Offset>) -> ExecResult<Self> {
        Ok(Self {
            reader: Reader::OwnRecords,
            ..Self::new(relation, positions)?
        })
    }

    /// A table is kept whole, whatever its readers ask for.
    fn always_wanted(relation: &Relation) -> BTreeSet<usize> {
        match relation.kind {
            SourceKind::Table => (0..relation.columns.len()).collect(),
            SourceKind::Stream => BTreeSet::new(),
        }
    }

    /// The relation it reads.
    pub fn relation(&self) -> &Arc<Relation> {
        &self.relation
    }

    /// Its partitions.
    pub fn partitions(&self) -> &[TopicPartition] {
        &self.partitions
    }

    /// Next offset to read of each partition.
    pub fn positions(&self) -> &[Offset] {
        &self.positions
    }

    /// Records that could not be decoded, by partition.
    pub fn rejected(&self) -> &[u64] {
        &self.rejected
    }

    /// Makes sure that the given columns are built from now on.
    pub fn want(&mut self, columns: impl Iterator<Item = usize>) -> ExecResult<()> {
        let declared = self.relation.columns.len();
        let before = self.wanted.len();
        self.wanted
            .extend(columns.filter(|column| *column < declared));
        if self.wanted.len() > before {
            self.decoders = Pool::new(decoder(&self.relation, &self.wanted)?);
        }
        Ok(())
    }

    /// Takes at most about `max_rows` records of a partition below `limit`, without moving the position.
    pub fn fetch(
        &self,
        log: &dyn Log,
        partition: usize,
        limit: Offset,
        max_rows: usize,
    ) -> ExecResult<Option<Fetched>> {
        let from = self.positions[partition];
        fetch(
            log,
            &self.partitions[partition],
            partition,
            from..limit,
            max_rows,
        )
    }

    /// Takes exactly the records of a partition from the position up to `to`, as a step in the journal did.
    pub fn fetch_exactly(
        &self,
        log: &dyn Log,
        partition: usize,
        to: Offset,
    ) -> ExecResult<Option<Fetched>> {
        self.fetch(log, partition, to, usize::MAX)
    }

    /// Whether the readers have all of it already.
    pub fn has_nothing_new(&self, fetched: &Fetched) -> bool {
        fetched
            .batches
            .iter()
            .all(|batch| written_by_own_query(&self.relation, batch))
    }

    /// Moves the position behind what a cut took, without decoding it.
    pub fn skip(&mut self, fetched: &Fetched) {
        self.positions[fetched.partition] = fetched.to;
    }

    /// Decodes what a cut took and moves the positions behind it. What the relation's own query wrote is left out.
    pub fn decode(
        &mut self,
        fetched: Vec<Fetched>,
        workers: Workers,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<Vec<PartitionRows>> {
        let records = fetched.iter().map(Fetched::records).sum();
        let decoding = self.decoding();
        let decoded = workers.map(records, fetched, |part| decoding.decode(part));
        self.take(decoded.into_iter().map(|part| part.map(Some)), rejected)
    }

    /// Reads on below `limits`, about `max_rows` records of each partition; `None` when nothing is left.
    pub fn read(
        &mut self,
        log: &dyn Log,
        limits: &[Offset],
        max_rows: usize,
        workers: Workers,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<Option<Vec<PartitionRows>>> {
        let ahead: Vec<(usize, Range<Offset>)> = (0..)
            .zip(self.positions.iter().zip(limits))
            .filter(|(_, (position, limit))| position < limit)
            .map(|(partition, (position, limit))| (partition, *position..*limit))
            .collect();
        let left = |range: &Range<Offset>| ((range.end.0 - range.start.0) as usize).min(max_rows);
        let records = ahead.iter().map(|(_, range)| left(range)).sum();
        let decoding = self.decoding();
        let decoded = workers.map(records, ahead, |(partition, range)| {
            let name = &decoding.partitions[partition];
            fetch(log, name, partition, range, max_rows)?
                .map(|part| decoding.decode(part))
                .transpose()
        });
        let nothing_read = |part: &ExecResult<Option<Decoded>>| matches!(part, Ok(None));
        if decoded.iter().all(nothing_read) {
            return Ok(None);
        }
        self.take(decoded.into_iter(), rejected).map(Some)
    }

    fn decoding(&self) -> Decoding<'_> {
        Decoding {
            relation: &self.relation,
            partitions: &self.partitions,
            reader: &self.reader,
            wanted: &self.wanted,
            decoders: &self.decoders,
        }
    }

    /// Moves the positions behind what was decoded.
    fn take(
        &mut self,
        decoded: impl Iterator<Item = ExecResult<Option<Decoded>>>,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<Vec<PartitionRows>> {
        let mut taken = Vec::new();
        for part in decoded {
            let Some(Decoded {
                partition,
                to,
                rows,
            }) = part?
            else {
                continue;
            };
            self.positions[partition] = to;
            self.rejected[partition] += rows.rejected.len() as u64;
            taken.extend(partition_rows(partition, rows, rejected));
        }
        Ok(taken)
    }
}

impl Decoding<'_> {
    fn decode(&self, fetched: Fetched) -> ExecResult<Decoded> {
        let partition = fetched.partition;
        let skip = |batch: &BatchView| {
            let own = written_by_own_query(self.relation, batch);
            match self.reader {
                Reader::Steps => own,
                Reader::OwnRecords => !own,
                Reader::History { own_from, .. } if own => own_from
                    .as_ref()
                    .is_some_and(|from| batch.base_offset() < from[partition]),
                Reader::History { steps, .. } => steps
                    .as_ref()
                    .is_some_and(|steps| batch.base_offset() >= steps[partition]),
            }
        };
        let name = &self.partitions[partition];
        let range = fetched.from..fetched.to;
        let rows = self.decoders.with(
            || decoder(self.relation, self.wanted),
            |decoder| decoder.decode(name, &fetched.batches, range, &skip),
        )??;
        Ok(Decoded {
            partition,
            to: fetched.to,
            rows,
        })
    }
}

fn decoder(relation: &Arc<Relation>, wanted: &BTreeSet<usize>) -> ExecResult<RelationDecoder> {
    let wanted: Vec<usize> = wanted.iter().copied().collect();
    RelationDecoder::new(Arc::clone(relation), &wanted)
}

/// Takes at most about `max_rows` records of a partition in a range of offsets.
fn fetch(
    log: &dyn Log,
    name: &TopicPartition,
    partition: usize,
    range: Range<Offset>,
    max_rows: usize,
) -> ExecResult<Option<Fetched>> {
    let (from, limit) = (range.start, range.end);
    let mut to = from;
    let mut batches = Vec::new();
    let mut rows = 0;
    let mut bytes = 0;
    while to < limit && rows < max_rows {
        let record_bytes = match rows {
            0 => ASSUMED_RECORD_BYTES,
            rows => bytes / rows + 1,
        };
        let fetch = log.read(
            name,
            to,
            (max_rows - rows)
                .saturating_mul(record_bytes)
                .min(FETCH_BYTES),
            Isolation::ReadCommitted,
        )?;
        if fetch.next_offset <= to {
            break;
        }
        to = fetch.next_offset.min(limit);
        for batch in fetch.batches {
            if batch.base_offset() >= limit {
                break;
            }
            if rows >= max_rows {
                to = batch.base_offset();
                break;
            }
            rows += batch.record_count();
            bytes += batch.byte_len();
            batches.push(batch);
        }
    }
    Ok((to > from).then_some(Fetched {
        partition,
        from,
        to,
        batches,
    }))
}

/// The rows as readers get them; `None` when there are none. Bad records go to `rejected`.
fn partition_rows(
    partition: usize,
    decoded: DecodedRows,
    rejected: &mut Vec<Rejected>,
) -> Option<PartitionRows> {
    let DecodedRows {
        rows,
        columns,
        rowtime,
        offsets,
        tombstones,
        without_value,
        headers,
        rejected: bad,
    } = decoded;
    rejected.extend(bad);
    if rows == 0 {
        return None;
    }
    let slot = SlotRows {
        slot: partition as u32,
        columns,
        rowtime,
        offsets: Some(offsets.into()),
        diffs: without_value.map(|missing| {
            let mark = |missing: &bool| if *missing { -1 } else { 1 };
            missing.iter().map(mark).collect()
        }),
        headers,
    };
    Some((slot, tombstones))
}
