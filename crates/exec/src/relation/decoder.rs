//! Records to rows.

use std::{ops::Range, sync::Arc};

use arrow::{
    array::{ArrayRef, BooleanArray, TimestampMillisecondArray},
    compute,
};
use highwater_formats::{Decoder, TimestampExtractor, judging_decoder, windowed_key};
use highwater_planner::catalog::{Relation, SourceKind};
use highwater_storage_log::{BatchView, Offset, RecordRef, Records, TopicPartition};

use super::{RecordLayout, headers, sub_schema};
use crate::{
    delta::rowtime_array,
    error::{ExecError, ExecResult},
    operator::Rejected,
};

/// Rows of one partition, in offset order.
#[derive(Debug)]
pub struct DecodedRows {
    /// Number of rows.
    pub rows: usize,
    /// By position in the relation; `None` for columns that were not asked for.
    pub columns: Vec<Option<ArrayRef>>,
    /// Event times.
    pub rowtime: ArrayRef,
    /// Offsets.
    pub offsets: Vec<i64>,
    /// Rows that remove their key (records without a value); only told apart in tables.
    pub tombstones: Option<Vec<bool>>,
    /// Rows of a stream whose records have no value; `None` when all have one, and for tables.
    pub without_value: Option<Vec<bool>>,
    /// Headers of the records of a stream; `None` when none has any.
    pub headers: Option<ArrayRef>,
    /// Records that could not be decoded.
    pub rejected: Vec<Rejected>,
}

/// Decodes records of one relation.
pub struct RelationDecoder {
    relation: Arc<Relation>,
    layout: RecordLayout,
    /// By position: whether the column is handed out.
    wanted: Vec<bool>,
    key: Option<Part>,
    value: Option<Part>,
    timestamp: Option<(usize, TimestampExtractor)>,
}

/// A decoder of keys or values.
struct Part {
    decoder: Box<dyn Decoder>,
    /// The columns that it builds, by position in the relation.
    columns: Vec<usize>,
}

impl RelationDecoder {
    /// A decoder that builds the columns at `wanted`, by position in the relation.
    pub fn new(relation: Arc<Relation>, wanted: &[usize]) -> ExecResult<Self> {
        let layout = RecordLayout::new(&relation)?;
        let timestamp = match &relation.timestamp {
            Some(timestamp) => {
                let column = relation
                    .columns
                    .iter()
                    .position(|column| column.name == timestamp.column)
                    .ok_or_else(|| {
                        ExecError::Internal(format!(
                            "timestamp column \"{}\" is not there",
                            timestamp.column
                        ))
                    })?;
                let data_type = &relation.columns[column].data_type;
                Some((
                    column,
                    TimestampExtractor::new(data_type, timestamp.format.as_deref())?,
                ))
            }
            None => None,
        };
        let timestamp_column = timestamp.as_ref().map(|(column, _)| *column);
        // Every column is judged, wanted or not: whether a record is sound must not depend on who happens to read it.
        let part = |format, columns: &[usize]| -> ExecResult<Option<Part>> {
            if columns.is_empty() {
                return Ok(None);
            }
            let built: Vec<usize> = (0..columns.len())
                .filter(|&index| {
                    wanted.contains(&columns[index]) || timestamp_column == Some(columns[index])
                })
                .collect();
            Ok(Some(Part {
                decoder: judging_decoder(format, sub_schema(&relation, columns)?, &built)?,
                columns: built.iter().map(|&index| columns[index]).collect(),
            }))
        };
        let key = part(&layout.key_format, &layout.key)?;
        let value = part(&layout.value_format, &layout.value)?;
        let wanted = (0..relation.columns.len())
            .map(|column| wanted.contains(&column))
            .collect();
        Ok(Self {
            relation,
            layout,
            wanted,
            key,
            value,
            timestamp,
        })
    }

    /// Decodes the records of `batches` whose offsets are in `range`. Batches for which `skip` answers true are left out.
    pub fn decode(
        &mut self,
        partition: &TopicPartition,
        batches: &[BatchView],
        range: Range<Offset>,
        skip: &dyn Fn(&BatchView) -> bool,
    ) -> ExecResult<DecodedRows> {
        let opened = batches
            .iter()
            .filter(|batch| !skip(batch))
            .map(BatchView::records)
            .collect::<Result<Vec<Records>, _>>()?;
        let mut records: Vec<RecordRef<'_>> =
            Vec::with_capacity(opened.iter().map(Records::len).sum());
        for batch in &opened {
            for record in batch.iter() {
                let record = record?;
                if range.contains(&record.offset) {
                    records.push(record);
                }
            }
        }
        self.decode_records(partition, &records)
    }

    fn decode_records(
        &mut self,
        partition: &TopicPartition,
        records: &[RecordRef<'_>],
    ) -> ExecResult<DecodedRows> {
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.relation.columns.len()];
        let mut problems: Vec<(usize, String)> = Vec::new();

        let mut keys: Vec<Option<&[u8]>> = records.iter().map(|record| record.key).collect();
        if let Some(bounds) = self.layout.window {
            let mut starts = Vec::with_capacity(keys.len());
            let mut ends = Vec::with_capacity(keys.len());
            for (row, key) in keys.iter_mut().enumerate() {
                let windowed = key.and_then(|key| match bounds.size {
                    Some(size) => windowed_key::decode_time_window(key)
                        .map(|(inner, start)| (inner, start, start.saturating_add(size))),
                    None => windowed_key::decode_session_window(key),
                });
                let (start, end) = match windowed {
                    Some((inner, start, end)) => {
                        *key = Some(inner);
                        (start, end)
                    }
                    None => {
                        problems.push((row, "key has no window bounds".into()));
                        (0, 0)
                    }
                };
                starts.push(start);
                ends.push(end);
            }
            for (column, bounds) in [(bounds.start, starts), (bounds.end, ends)] {
                let bounds = compute::cast(
                    &rowtime_array(bounds),
                    &self.relation.columns[column].data_type,
                )?;
                columns[column] = Some(bounds);
            }
        }
        if self.relation.kind == SourceKind::Table && !self.layout.key.is_empty() {
            let missing = keys.iter().enumerate().filter(|(_, key)| key.is_none());
            problems.extend(
                missing.map(|(row, _)| (row, "a record of a table needs a key".to_owned())),
            );
        }
        if let Some(part) = &mut self.key {
            let decoded = part.decoder.decode(&keys)?;
            problems.extend(
                decoded
                    .errors
                    .into_iter()
                    .map(|error| (error.index, format!("key: {}", error.reason))),
            );
            for (&column, array) in part.columns.iter().zip(decoded.columns) {
                columns[column] = Some(array);
            }
        }
        if let Some(part) = &mut self.value {
            let values: Vec<Option<&[u8]>> = records.iter().map(|record| record.value).collect();
            let decoded = part.decoder.decode(&values)?;
            problems.extend(
                decoded
                    .errors
                    .into_iter()
                    .map(|error| (error.index, error.reason)),
            );
            for (&column, array) in part.columns.iter().zip(decoded.columns) {
                columns[column] = Some(array);
            }
        }
        for (position, column) in self.relation.columns.iter().enumerate() {
            if let Some(which) = &column.headers {
                columns[position] = Some(headers::column(records, which, &column.data_type)?);
            }
        }
        let carried = match self.relation.kind {
            SourceKind::Stream => headers::carried(records)?,
            SourceKind::Table => None,
        };
        let missing: Vec<bool> = records
            .iter()
            .map(|record| record.value.is_none())
            .collect();
        let (tombstones, without_value) = match self.relation.kind {
            SourceKind::Table => (Some(missing), None),
            SourceKind::Stream => (None, missing.contains(&true).then_some(missing)),
        };
        let mut times: Vec<i64> = records.iter().map(|record| record.timestamp).collect();
        if let Some((column, extractor)) = &self.timestamp
            && let Some(array) = &columns[*column]
        {
            let (extracted, errors) = extractor.extract(array, &times);
            times = extracted;
            let removes = |row: usize| {
                tombstones
                    .as_ref()
                    .is_some_and(|tombstones| tombstones[row])
            };
            problems.extend(
                errors
                    .into_iter()
                    .filter(|error| !removes(error.index))
                    .map(|error| (error.index, error.reason)),
            );
        }
        for (column, wanted) in columns.iter_mut().zip(&self.wanted) {
            if !wanted {
                *column = None;
            }
        }
        let offsets: Vec<i64> = records.iter().map(|record| record.offset.0).collect();
        let rows = DecodedRows {
            rows: records.len(),
            columns,
            rowtime: rowtime_array(times),
            offsets,
            tombstones,
            without_value,
            headers: carried,
            rejected: Vec::new(),
        };
        if problems.is_empty() {
            Ok(rows)
        } else {
            self.reject(partition, records, rows, problems)
        }
    }

    /// Takes the bad records out of `rows`.
    fn reject(
        &self,
        partition: &TopicPartition,
        records: &[RecordRef<'_>],
        mut rows: DecodedRows,
        mut problems: Vec<(usize, String)>,
    ) -> ExecResult<DecodedRows> {
        problems.sort_by_key(|(row, _)| *row);
        problems.dedup_by_key(|(row, _)| *row);
        let mut keep = vec![true; rows.rows];
        for (row, reason) in problems {
            keep[row] = false;
            let record = &records[row];
            rows.rejected.push(Rejected {
                source: self.relation.name.clone(),
                position: Some((partition.clone(), record.offset.0)),
                reason,
                key: record.key.map(<[u8]>::to_vec),
                value: record.value.map(<[u8]>::to_vec),
                timestamp: record.timestamp,
            });
        }
        let mask = BooleanArray::from(keep.clone());
        for column in rows.columns.iter_mut().flatten() {
            *column = compute::filter(column, &mask)?;
        }
        rows.rowtime = compute::filter(&rows.rowtime, &mask)?;
        if let Some(headers) = &mut rows.headers {
            *headers = compute::filter(headers, &mask)?;
        }
        debug_assert!(
            rows.rowtime.as_any().is::<TimestampMillisecondArray>(),
            "filtering keeps the type"
        );
        let mut kept = keep.iter();
        rows.offsets
            .retain(|_| *kept.next().expect("one verdict a row"));
        for flags in [&mut rows.tombstones, &mut rows.without_value]
            .into_iter()
            .flatten()
        {
            let mut kept = keep.iter();
            flags.retain(|_| *kept.next().expect("one verdict a row"));
        }
        rows.rows = rows.offsets.len();
        Ok(rows)
    }
}
