//! What a join sends at the end of a step: pairs of rows, with NULLs for a side that has none.
//!
//! A pair that the step made and took back is not sent. What remains is ordered by join key, then by the output's key, then removals first, so that
//! an updated row is its -1 directly followed by its +1, in an order that a replay repeats.

use std::{cmp::Ordering, sync::Arc};

use arrow::{
    array::{ArrayRef, UInt32Array},
    datatypes::SchemaRef,
    row::{RowConverter, SortField},
};

use super::{Side, taken};
use crate::{
    delta::{Delta, rowtime_array},
    error::{ExecError, ExecResult},
};

/// Pairs that one slot of a join makes in one step at the most: about half a GiB.
const MAX_PAIRS: usize = 4 << 20;

/// See the module.
pub(super) struct JoinOutput {
    schema: SchemaRef,
    order: Vec<usize>,
    /// `None` when nothing orders the rows of one join key.
    order_converter: Option<RowConverter>,
    pairs: Vec<Pair>,
}

/// A pair that is added or taken back.
struct Pair {
    key: Arc<[u8]>,
    /// Left and right row, encoded.
    rows: [Option<Arc<[u8]>>; 2],
    diff: i64,
    rowtime: i64,
}

impl Pair {
    fn order(&self, other: &Self) -> Ordering {
        self.key
            .cmp(&other.key)
            .then_with(|| self.rows.cmp(&other.rows))
    }
}

impl JoinOutput {
    /// Output of `schema`, whose rows are identified by the columns `order`.
    pub fn new(schema: SchemaRef, order: &[usize]) -> ExecResult<Self> {
        let fields: Vec<SortField> = order
            .iter()
            .map(|&column| SortField::new(schema.field(column).data_type().clone()))
            .collect();
        Ok(Self {
            order: order.to_vec(),
            order_converter: match fields.is_empty() {
                true => None,
                false => Some(RowConverter::new(fields)?),
            },
            schema,
            pairs: Vec::new(),
        })
    }

    /// Fails when `more` pairs would be more than a step can hold: the join keys say too little about the rows.
    pub fn check_room(&mut self, more: usize) -> ExecResult<()> {
        if self.pairs.len() + more <= MAX_PAIRS {
            return Ok(());
        }
        self.pairs = Vec::new();
        Err(ExecError::LimitExceeded(format!(
            "one step of a join makes more than {MAX_PAIRS} rows: too many rows share a join key"
        )))
    }

    /// Notes a row without a partner.
    pub fn alone(&mut self, key: &[u8], side: Side, row: Arc<[u8]>, diff: i64, rowtime: i64) {
        let mut rows = [None, None];
        rows[side as usize] = Some(row);
        self.push(key, rows, diff, rowtime);
    }

    /// Notes a row of `side` with its partner.
    pub fn pair(
        &mut self,
        key: &[u8],
        side: Side,
        row: &Arc<[u8]>,
        partner: &Arc<[u8]>,
        diff: i64,
        rowtime: i64,
    ) {
        let mut rows = [None, None];
        rows[side as usize] = Some(row.clone());
        rows[side.other() as usize] = Some(partner.clone());
        self.push(key, rows, diff, rowtime);
    }

    fn push(&mut self, key: &[u8], rows: [Option<Arc<[u8]>>; 2], diff: i64, rowtime: i64) {
        let key = match self.pairs.last() {
            // Pairs come by key, so most share it with the one before.
            Some(last) if *last.key == *key => last.key.clone(),
            _ => key.into(),
        };
        self.pairs.push(Pair {
            key,
            rows,
            diff,
            rowtime,
        });
    }

    /// The step's net change.
    pub fn take(&mut self, converters: &[RowConverter; 2]) -> ExecResult<Option<Delta>> {
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.sort_by(Pair::order);
        pairs.dedup_by(|later, earlier| {
            let same = later.order(earlier) == Ordering::Equal;
            if same {
                earlier.diff += later.diff;
                earlier.rowtime = earlier.rowtime.max(later.rowtime);
            }
            same
        });
        pairs.retain(|pair| pair.diff != 0);
        if pairs.is_empty() {
            return Ok(None);
        }
        let mut columns = side_columns(&pairs, Side::Left, &converters[0])?;
        columns.extend(side_columns(&pairs, Side::Right, &converters[1])?);
        let ordered = self.ordered(&pairs, &columns)?;
        let mut indices: Vec<u32> = Vec::with_capacity(pairs.len());
        for position in ordered {
            let times = pairs[position as usize].diff.unsigned_abs() as usize;
            indices.extend(std::iter::repeat_n(position, times));
        }
        let of = |index: &u32| &pairs[*index as usize];
        let rowtimes = indices.iter().map(|index| of(index).rowtime).collect();
        let diffs: Vec<i8> = indices
            .iter()
            .map(|index| of(index).diff.signum() as i8)
            .collect();
        let indices = UInt32Array::from(indices);
        let columns = columns
            .iter()
            .map(|column| taken(column, &indices))
            .collect::<ExecResult<Vec<_>>>()?;
        let diffs = diffs.contains(&-1).then(|| Arc::from(diffs));
        Delta::from_columns(&self.schema, columns, rowtime_array(rowtimes), diffs).map(Some)
    }

    /// Positions of the pairs, changes of one output row together and removals first. They come in order of their join keys.
    fn ordered(&self, pairs: &[Pair], columns: &[ArrayRef]) -> ExecResult<Vec<u32>> {
        let key_columns: Vec<ArrayRef> = self
            .order
            .iter()
            .map(|&column| columns[column].clone())
            .collect();
        let output_keys = match &self.order_converter {
            Some(converter) => Some(converter.convert_columns(&key_columns)?),
            None => None,
        };
        let mut positions: Vec<u32> = (0..pairs.len() as u32).collect();
        positions.sort_by(|&left, &right| {
            let (left, right) = (left as usize, right as usize);
            let by_output_key = || match &output_keys {
                Some(keys) => keys.row(left).cmp(&keys.row(right)),
                None => Ordering::Equal,
            };
            pairs[left]
                .key
                .cmp(&pairs[right].key)
                .then_with(by_output_key)
                .then_with(|| pairs[left].diff.signum().cmp(&pairs[right].diff.signum()))
        });
        Ok(positions)
    }
}

/// One side's columns, a row a pair: NULLs where the pair lacks the side.
fn side_columns(pairs: &[Pair], side: Side, converter: &RowConverter) -> ExecResult<Vec<ArrayRef>> {
    let mut present = 0;
    let indices: UInt32Array = pairs
        .iter()
        .map(|pair| {
            pair.rows[side as usize].as_ref().map(|_| {
                present += 1;
                present - 1
            })
        })
        .collect();
    let parser = converter.parser();
    let rows = pairs
        .iter()
        .filter_map(|pair| pair.rows[side as usize].as_ref())
        .map(|row| parser.parse(row));
    let columns = converter.convert_rows(rows)?;
    columns
        .iter()
        .map(|column| taken(column, &indices))
        .collect()
}
