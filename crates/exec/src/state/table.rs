//! Result tables: the rows that pull queries read.
//!
//! A table is the database as of the last checkpoint (its *base*) under a stack of immutable runs, one pushed by each step, merged as they pile
//! up. A [`TableVersion`] is the base and the runs at one step: it is cheap to take, never changes, and neither blocks a step nor is
//! blocked by one.
//!
//! INVARIANT: the newest run that knows a key decides; the base only speaks for keys that no run knows.
//! INVARIANT: merging doubles: a run is merged into its elder only when the elder is at most twice as large, so a row is copied
//! O(log n) times between two checkpoints. What would become too large a run is left alone.

use std::{cmp::Ordering, iter::Peekable, ops::Bound, sync::Arc, vec::IntoIter};

use arrow::{
    array::{Array, ArrayRef, new_null_array},
    compute::interleave_record_batch,
    datatypes::SchemaRef,
    record_batch::RecordBatch,
    row::{RowConverter, Rows, SortField},
};

use super::{BaseSnapshot, Run, StatePrefix, key::successor, rocks::Entry};
use crate::{
    delta::{Delta, with_rowtime},
    error::{ExecError, ExecResult},
    snapshot::KeyRange,
    workers::Workers,
};

/// Entries that a scan takes from the base at a time.
const BASE_PAGE: usize = 1024;

/// Rows of a run after which it is not merged with another before a checkpoint takes it: merging more would hold up a step for too long.
const MERGED_ROWS: usize = 512 << 10;

/// Rows of a batch that a scan hands out.
const SCAN_BATCH: usize = 8192;

/// Rows of a table to keys and values in byte form, and back. Byte order of keys is SQL order, NULLs first.
#[derive(Debug)]
pub struct RowCodec {
    schema: SchemaRef,
    key_columns: Vec<usize>,
    /// Columns that are kept beside the key; those in neither were added since the rows were written, and are NULL.
    value_columns: Vec<usize>,
    key: RowConverter,
    /// One converter a key column: an encoded key is the concatenation of its columns.
    key_parts: Vec<RowConverter>,
    value: RowConverter,
}

impl RowCodec {
    /// A codec for rows of `schema` (without the hidden event time) with the given key columns.
    pub fn new(schema: &SchemaRef, key_columns: &[usize]) -> ExecResult<Self> {
        Self::of_earlier(schema, schema, key_columns)
    }

    /// A codec for rows that were written with the columns `stored`, and are read and compared as rows of `schema`, which may have more columns
    /// at its end.
    pub fn of_earlier(
        stored: &SchemaRef,
        schema: &SchemaRef,
        key_columns: &[usize],
    ) -> ExecResult<Self> {
        let rowtime = schema.fields().len();
        let schema = with_rowtime(schema);
        let value_columns: Vec<usize> = (0..stored.fields().len())
            .filter(|column| !key_columns.contains(column))
            .chain([rowtime])
            .collect();
        let field = |&column: &usize| SortField::new(schema.field(column).data_type().clone());
        let key = RowConverter::new(key_columns.iter().map(field).collect())?;
        let key_parts = key_columns
            .iter()
            .map(|column| Ok(RowConverter::new(vec![field(column)])?))
            .collect::<ExecResult<Vec<_>>>()?;
        let value = RowConverter::new(value_columns.iter().map(field).collect())?;
        Ok(Self {
            schema: Arc::clone(&schema),
            key_columns: key_columns.to_vec(),
            value_columns,
            key,
            key_parts,
            value,
        })
    }

    /// Columns with the hidden event time last.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The keys of a batch; `None` when the table has no key columns (one row with the empty key).
    pub fn keys(&self, columns: &[ArrayRef]) -> ExecResult<Option<Rows>> {
        if self.key_columns.is_empty() {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = self
            .key_columns
            .iter()
            .map(|&column| Arc::clone(&columns[column]))
            .collect();
        Ok(Some(self.key.convert_columns(&columns)?))
    }

    fn values(&self, columns: &[ArrayRef]) -> ExecResult<Rows> {
        let columns: Vec<ArrayRef> = self
            .value_columns
            .iter()
            .map(|&column| Arc::clone(&columns[column]))
            .collect();
        Ok(self.value.convert_columns(&columns)?)
    }

    /// Encoded rows back to columns.
    pub fn decode<'a>(
        &self,
        rows: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
    ) -> ExecResult<RecordBatch> {
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.schema.fields().len()];
        let value_parser = self.value.parser();
        let values = self
            .value
            .convert_rows(rows.clone().map(|(_, value)| value_parser.parse(value)))?;
        for (&column, array) in self.value_columns.iter().zip(values) {
            columns[column] = Some(array);
        }
        if !self.key_columns.is_empty() {
            let key_parser = self.key.parser();
            let keys = self
                .key
                .convert_rows(rows.map(|(key, _)| key_parser.parse(key)))?;
            for (&column, array) in self.key_columns.iter().zip(keys) {
                columns[column] = Some(array);
            }
        }
        let count = columns.iter().flatten().next().map_or(0, Array::len);
        let columns = columns
            .into_iter()
            .zip(self.schema.fields())
            .map(|(column, field)| {
                column.unwrap_or_else(|| new_null_array(field.data_type(), count))
            })
            .collect();
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// The byte range of a key range: from (inclusive) and to (exclusive; empty for no end).
    fn byte_range(&self, range: &KeyRange) -> ExecResult<(Vec<u8>, Vec<u8>)> {
        let mut prefix = Vec::new();
        for (part, value) in self.key_parts.iter().zip(&range.prefix) {
            prefix.extend_from_slice(encode_one(part, value)?.as_ref());
        }
        let next = self.key_parts.get(range.prefix.len());
        let bound = |value: &ArrayRef| -> ExecResult<Vec<u8>> {
            let part = next
                .ok_or_else(|| ExecError::Internal("a key range is longer than its key".into()))?;
            let mut bytes = prefix.clone();
            bytes.extend_from_slice(&encode_one(part, value)?);
            Ok(bytes)
        };
        let unbounded = matches!(
            (&range.lower, &range.upper),
            (Bound::Unbounded, Bound::Unbounded)
        );
        let from = match &range.lower {
            Bound::Included(value) => bound(value)?,
            Bound::Excluded(value) => successor(&bound(value)?),
            Bound::Unbounded if unbounded => prefix.clone(),
            // A comparison is never TRUE for NULL, which is a single zero byte.
            Bound::Unbounded => [prefix.as_slice(), &[1]].concat(),
        };
        let to = match &range.upper {
            Bound::Included(value) => successor(&bound(value)?),
            Bound::Excluded(value) => bound(value)?,
            Bound::Unbounded => successor(&prefix),
        };
        Ok((from, to))
    }
}

fn encode_one(converter: &RowConverter, value: &ArrayRef) -> ExecResult<Vec<u8>> {
    debug_assert_eq!(value.len(), 1, "a key bound is one value");
    Ok(converter
        .convert_columns(std::slice::from_ref(value))?
        .row(0)
        .data()
        .to_vec())
}

/// The writing side of a table, owned by the pipeline.
pub struct TableStore {
    codec: Arc<RowCodec>,
    prefix: StatePrefix,
    base: Option<Arc<BaseSnapshot>>,
    runs: Vec<Arc<Run>>,
    /// How many of the leading runs a checkpoint is writing; they are not merged with younger ones.
    frozen: usize,
    rows: i64,
}

impl TableStore {
    /// A table over `base`, which holds `rows` rows of it.
    pub fn new(
        codec: Arc<RowCodec>,
        prefix: StatePrefix,
        base: Option<Arc<BaseSnapshot>>,
        rows: i64,
    ) -> Self {
        Self {
            codec,
            prefix,
            base,
            runs: Vec::new(),
            frozen: 0,
            rows,
        }
    }

    /// How rows are encoded.
    pub fn codec(&self) -> &Arc<RowCodec> {
        &self.codec
    }

    /// Writes rows in another form from now on. Those that are there must be replaced with the next changes, or be of that form.
    pub fn set_codec(&mut self, codec: Arc<RowCodec>) {
        self.codec = codec;
    }

    /// Makes the table what it was at an earlier version.
    pub fn restore(&mut self, version: &TableVersion) -> ExecResult<()> {
        let changes = difference(&self.version(), version)?;
        self.codec = Arc::clone(&version.codec);
        self.apply(&changes.iter().collect::<Vec<_>>(), Workers::ONE)
    }

    /// Where its rows stand in the database.
    pub fn prefix(&self) -> StatePrefix {
        self.prefix
    }

    /// Number of rows.
    pub fn rows(&self) -> i64 {
        self.rows
    }

    /// Bytes of the runs that are in memory.
    pub fn memory(&self) -> usize {
        self.runs.iter().map(|run| run.memory()).sum()
    }

    /// Takes the changes of one step. Of a key's changes a +1 decides, else the key goes.
    pub fn apply(&mut self, deltas: &[&Delta], workers: Workers) -> ExecResult<()> {
        let rows = deltas.iter().map(|delta| delta.rows()).sum();
        let codec = &self.codec;
        let encoded = workers.map(rows, deltas.to_vec(), |delta| -> ExecResult<_> {
            let columns = delta.batch().columns();
            Ok((codec.keys(columns)?, codec.values(columns)?, delta.diffs()))
        });
        let encoded = encoded.into_iter().collect::<ExecResult<Vec<_>>>()?;
        let mut entries: Vec<(&[u8], Option<&[u8]>)> = Vec::with_capacity(rows);
        for wanted in [-1, 1] {
            // ORDER: removals first, so that the later entry of a key is the one that adds.
            for (keys, values, diffs) in &encoded {
                if wanted < 0 && diffs.is_none() {
                    continue;
                }
                let key_of = |row| keys.as_ref().map_or(&[][..], |keys| keys.row(row).data());
                for row in 0..values.num_rows() {
                    let diff = diffs.map_or(1, |diffs| diffs[row]);
                    if diff != wanted {
                        continue;
                    }
                    self.rows += i64::from(diff);
                    let is_updated = diff < 0
                        && diffs.and_then(|diffs| diffs.get(row + 1)) == Some(&1)
                        && key_of(row) == key_of(row + 1);
                    // The row that replaces it says all.
                    if !is_updated {
                        entries.push((key_of(row), (diff > 0).then(|| values.row(row).data())));
                    }
                }
            }
        }
        if !entries.is_empty() {
            self.push(Run::from_entries(entries));
        }
        Ok(())
    }

    fn push(&mut self, run: Run) {
        self.runs.push(Arc::new(run));
        while let [.., older, newer] = &self.runs[self.frozen..]
            && older.len() <= 2 * newer.len()
            && older.len() + newer.len() <= MERGED_ROWS
        {
            let merged = Arc::new(Run::merge(older, newer));
            self.runs.truncate(self.runs.len() - 2);
            self.runs.push(merged);
        }
    }

    /// The table as it is now.
    pub fn version(&self) -> TableVersion {
        TableVersion {
            codec: Arc::clone(&self.codec),
            prefix: self.prefix,
            base: self.base.clone(),
            runs: self.runs.clone(),
            rows: self.rows,
        }
    }

    /// Hands the runs to a checkpoint; they stay readable here until [`TableStore::checkpointed`].
    pub fn freeze(&mut self) -> Vec<Arc<Run>> {
        self.frozen = self.runs.len();
        self.runs.clone()
    }

    /// The frozen runs are in `base` now.
    pub fn checkpointed(&mut self, base: Arc<BaseSnapshot>) {
        self.runs.drain(..self.frozen);
        self.frozen = 0;
        self.base = Some(base);
    }

    /// Reads in a pipeline see what the running step has done so far.
    pub fn get(&self, key: &[u8]) -> ExecResult<Option<Vec<u8>>> {
        lookup(&self.runs, self.base.as_deref(), self.prefix, key)
    }
}

fn lookup(
    runs: &[Arc<Run>],
    base: Option<&BaseSnapshot>,
    prefix: StatePrefix,
    key: &[u8],
) -> ExecResult<Option<Vec<u8>>> {
    for run in runs.iter().rev() {
        if let Some(value) = run.get(key) {
            return Ok(value.map(<[u8]>::to_vec));
        }
    }
    base.map_or(Ok(None), |base| base.get(&prefix.key(key)))
}

/// A table at one step.
#[derive(Clone)]
pub struct TableVersion {
    codec: Arc<RowCodec>,
    prefix: StatePrefix,
    base: Option<Arc<BaseSnapshot>>,
    runs: Vec<Arc<Run>>,
    rows: i64,
}

impl TableVersion {
    /// How rows are encoded.
    pub fn codec(&self) -> &Arc<RowCodec> {
        &self.codec
    }

    /// Number of rows.
    pub fn rows(&self) -> i64 {
        self.rows
    }

    /// The rows of a key range in key order, in batches; all rows without a range.
    pub fn scan(&self, range: Option<&KeyRange>) -> ExecResult<TableScan> {
        let (from, to) = match range {
            Some(range) => self.codec.byte_range(range)?,
            None => (Vec::new(), Vec::new()),
        };
        let cursors = self.runs.iter().map(|run| run.lower_bound(&from)).collect();
        let base_to = if to.is_empty() {
            self.prefix.end()
        } else {
            self.prefix.key(&to)
        };
        Ok(TableScan {
            base_from: Some(self.prefix.key(&from)),
            base_page: Vec::new().into_iter().peekable(),
            base_to,
            version: self.clone(),
            cursors,
            to,
        })
    }
}

/// A scan in progress. It holds the version it reads and nothing else.
pub struct TableScan {
    version: TableVersion,
    cursors: Vec<usize>,
    /// Exclusive end, without prefix; empty for none.
    to: Vec<u8>,
    base_page: Peekable<IntoIter<Entry>>,
    /// Where the next page of the base begins; `None` when it has ended.
    base_from: Option<Vec<u8>>,
    base_to: Vec<u8>,
}

impl TableScan {
    fn fill_base(&mut self) -> ExecResult<()> {
        if self.base_page.peek().is_some() {
            return Ok(());
        }
        let (Some(base), Some(from)) = (&self.version.base, self.base_from.take()) else {
            return Ok(());
        };
        let page = base.page(&from, &self.base_to, BASE_PAGE)?;
        if page.len() == BASE_PAGE {
            self.base_from = page.last().map(|(key, _)| [key, &[0][..]].concat());
        }
        self.base_page = page.into_iter().peekable();
        Ok(())
    }

    /// The next key and its value, removals skipped.
    fn next_entry(&mut self) -> ExecResult<Option<(Vec<u8>, Vec<u8>)>> {
        loop {
            self.fill_base()?;
            let mut least: Option<Vec<u8>> = self
                .base_page
                .peek()
                .map(|(key, _)| key[StatePrefix::LEN..].to_vec());
            let mut value: Option<Option<Vec<u8>>> = None;
            for (run, &cursor) in self.version.runs.iter().zip(&self.cursors) {
                if cursor >= run.len()
                    || (!self.to.is_empty() && run.key(cursor) >= self.to.as_slice())
                {
                    continue;
                }
                let key = run.key(cursor);
                // Runs stand from old to new, so an equal key of a later run replaces.
                if least.as_deref().is_none_or(|least| key <= least) {
                    if least.as_deref() != Some(key) {
                        least = Some(key.to_vec());
                    }
                    value = Some(run.value(cursor).map(<[u8]>::to_vec));
                }
            }
            let Some(least) = least else { return Ok(None) };
            for (run, cursor) in self.version.runs.iter().zip(&mut self.cursors) {
                if *cursor < run.len() && run.key(*cursor) == least.as_slice() {
                    *cursor += 1;
                }
            }
            let from_base = self
                .base_page
                .next_if(|(key, _)| key[StatePrefix::LEN..] == *least)
                .map(|(_, value)| value.into_vec());
            let value = match value {
                Some(decided) => decided,
                None => from_base,
            };
            if let Some(value) = value {
                return Ok(Some((least, value)));
            }
        }
    }
}

/// What makes `new` of `old`, in key order: a row that changed is taken back right before it is given anew.
pub fn difference(old: &TableVersion, new: &TableVersion) -> ExecResult<Vec<Delta>> {
    let (mut old_rows, mut new_rows) = (old.scan(None)?, new.scan(None)?);
    let (mut before, mut after) = (old_rows.next_entry()?, new_rows.next_entry()?);
    let mut deltas = Vec::new();
    let mut changes = RowChanges::default();
    loop {
        let order = match (&before, &after) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        let gone = match order {
            Ordering::Less | Ordering::Equal => {
                std::mem::replace(&mut before, old_rows.next_entry()?)
            }
            Ordering::Greater => None,
        };
        let come = match order {
            Ordering::Greater | Ordering::Equal => {
                std::mem::replace(&mut after, new_rows.next_entry()?)
            }
            Ordering::Less => None,
        };
        if gone != come {
            changes.push(gone, come);
        }
        if changes.order.len() >= SCAN_BATCH {
            deltas.push(std::mem::take(&mut changes).into_delta(old, new)?);
        }
    }
    if !changes.order.is_empty() {
        deltas.push(changes.into_delta(old, new)?);
    }
    Ok(deltas)
}

/// Rows that two versions of a table do not share.
#[derive(Default)]
struct RowChanges {
    /// Rows of the old version, and of the new one.
    rows: [Vec<(Vec<u8>, Vec<u8>)>; 2],
    /// In which order they stand in the delta: version and position.
    order: Vec<(usize, usize)>,
}

impl RowChanges {
    fn push(&mut self, gone: Option<(Vec<u8>, Vec<u8>)>, come: Option<(Vec<u8>, Vec<u8>)>) {
        for (version, row) in [gone, come].into_iter().enumerate() {
            if let Some(row) = row {
                self.order.push((version, self.rows[version].len()));
                self.rows[version].push(row);
            }
        }
    }

    fn into_delta(self, old: &TableVersion, new: &TableVersion) -> ExecResult<Delta> {
        let decode = |version: &TableVersion, rows: &[(Vec<u8>, Vec<u8>)]| {
            let rows = rows.iter();
            version
                .codec
                .decode(rows.map(|(key, value)| (key.as_slice(), value.as_slice())))
        };
        let [gone, come] = &self.rows;
        let (gone, come) = (decode(old, gone)?, decode(new, come)?);
        let rows = interleave_record_batch(&[&gone, &come], &self.order)?;
        let diffs: Vec<i8> = self
            .order
            .iter()
            .map(|&(version, _)| if version == 0 { -1 } else { 1 })
            .collect();
        Ok(Delta::new(rows, Some(diffs.into())))
    }
}

impl Iterator for TableScan {
    type Item = ExecResult<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rows = Vec::with_capacity(64);
        while rows.len() < SCAN_BATCH {
            match self.next_entry() {
                Ok(Some(entry)) => rows.push(entry),
                Ok(None) => break,
                Err(error) => return Some(Err(error)),
            }
        }
        if rows.is_empty() {
            return None;
        }
        Some(
            self.version.codec.decode(
                rows.iter()
                    .map(|(key, value)| (key.as_slice(), value.as_slice())),
            ),
        )
    }
}
