//! Joining two changing inputs on equal keys: inner, and outer on either side or both.
//!
//! The step's changes are applied one side after the other: the left ones meet the right rows as they were, then the right ones meet the left
//! rows as they are now. So every pair of rows is made exactly once, and what is made and taken back within the step cancels out before it is
//! sent (`output`). Both sides' rows are kept by join key (`index`).
//!
//! A NULL key matches nothing, as in SQL.

mod index;
mod output;

use arrow::{
    array::{Array, ArrayRef},
    compute,
    datatypes::SchemaRef,
    row::{RowConverter, SortField},
};
use highwater_planner::dataflow::JoinKind;

use self::{index::JoinIndex, output::JoinOutput};
use crate::{
    delta::Delta,
    error::ExecResult,
    operator::{Operator, StateMemory, StepContext},
    state::StateChanges,
};

/// One of the two inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Side {
    Left = 0,
    Right = 1,
}

impl Side {
    const BOTH: [Self; 2] = [Self::Left, Self::Right];

    fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// See the module.
pub struct Join {
    kind: JoinKind,
    /// Join columns of each input.
    keys: [Vec<usize>; 2],
    key_converter: RowConverter,
    row_converters: [RowConverter; 2],
    index: JoinIndex,
    /// The running step's changes.
    pending: [Vec<Delta>; 2],
    output: JoinOutput,
}

impl Join {
    /// `inputs` are the schemas of the two sides, `schema` that of the output: the left columns, then the right ones. `order` are the output columns
    /// that identify a row of it.
    pub fn new(
        kind: JoinKind,
        inputs: [&SchemaRef; 2],
        schema: SchemaRef,
        keys: [&[usize]; 2],
        order: &[usize],
    ) -> ExecResult<Self> {
        let fields = |schema: &SchemaRef, columns: &mut dyn Iterator<Item = usize>| {
            columns
                .map(|column| SortField::new(schema.field(column).data_type().clone()))
                .collect::<Vec<_>>()
        };
        let rows =
            |schema: &SchemaRef| RowConverter::new(fields(schema, &mut (0..schema.fields().len())));
        Ok(Self {
            kind,
            key_converter: RowConverter::new(fields(inputs[0], &mut keys[0].iter().copied()))?,
            row_converters: [rows(inputs[0])?, rows(inputs[1])?],
            keys: keys.map(<[usize]>::to_vec),
            index: JoinIndex::default(),
            pending: Default::default(),
            output: JoinOutput::new(schema, order)?,
        })
    }

    /// Whether rows of this side stay in the result when they match nothing.
    fn keeps(&self, side: Side) -> bool {
        match side {
            Side::Left => matches!(self.kind, JoinKind::Left | JoinKind::Full),
            Side::Right => matches!(self.kind, JoinKind::Right | JoinKind::Full),
        }
    }

    /// Applies one input's changes, and notes what follows from them.
    fn change(&mut self, side: Side, delta: &Delta, context: &StepContext<'_>) -> ExecResult<()> {
        let columns = delta.columns();
        let key_columns: Vec<ArrayRef> = self.keys[side as usize]
            .iter()
            .map(|&column| columns[column].clone())
            .collect();
        let keys = self.key_converter.convert_columns(&key_columns)?;
        let rows = self.row_converters[side as usize].convert_columns(columns)?;
        let nulls: Vec<ArrayRef> = key_columns
            .into_iter()
            .filter(|column| column.logical_null_count() > 0)
            .collect();
        let times = delta.rowtime_millis()?;
        let (keeps, other_keeps) = (self.keeps(side), self.keeps(side.other()));
        for (position, &time) in times.iter().enumerate() {
            let diff = delta.diffs().map_or(1, |diffs| i64::from(diffs[position]));
            let key = keys.row(position);
            let row: std::sync::Arc<[u8]> = rows.row(position).data().into();
            if nulls.iter().any(|column| column.is_null(position)) {
                if keeps {
                    self.output.alone(key.data(), side, row, diff, time);
                }
                continue;
            }
            let group = self.index.group(key.data(), context)?;
            let others = self.index.rows(side.other(), group);
            self.output.check_room(others.len())?;
            for (other, stored) in others {
                let time = time.max(stored.rowtime);
                self.output
                    .pair(key.data(), side, &row, other, diff * stored.count, time);
            }
            if others.is_empty() && keeps {
                self.output.alone(key.data(), side, row.clone(), diff, time);
            }
            let met = !self.index.rows(side, group).is_empty();
            self.index.change(side, group, row, diff, time);
            let meets = !self.index.rows(side, group).is_empty();
            if other_keeps && met != meets {
                // The other side's rows lose the row of NULLs that stood in for a match, or get it back.
                let sign = if meets { -1 } else { 1 };
                for (other, stored) in self.index.rows(side.other(), group) {
                    self.output.alone(
                        key.data(),
                        side.other(),
                        other.clone(),
                        sign * stored.count,
                        stored.rowtime,
                    );
                }
            }
        }
        Ok(())
    }
}

impl Operator for Join {
    fn apply(
        &mut self,
        input: usize,
        delta: Delta,
        _context: &mut StepContext<'_>,
        _output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        self.pending[input].push(delta);
        Ok(())
    }

    fn step_end(
        &mut self,
        context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        for side in Side::BOTH {
            for delta in std::mem::take(&mut self.pending[side as usize]) {
                self.change(side, &delta, context)?;
            }
        }
        output.extend(self.output.take(&self.row_converters)?);
        Ok(())
    }

    fn held(&self) -> usize {
        self.pending.iter().flatten().map(Delta::rows).sum()
    }

    fn memory(&self) -> StateMemory {
        self.index.memory()
    }

    fn evict(&mut self, bytes: usize) -> usize {
        self.index.evict(bytes)
    }

    fn checkpoint(&mut self, changes: &mut StateChanges) {
        self.index.checkpoint(changes);
    }

    fn checkpointed(&mut self) {
        self.index.checkpointed();
    }
}

/// A column's values at `indices`, NULL where there is no index.
fn taken(column: &ArrayRef, indices: &arrow::array::UInt32Array) -> ExecResult<ArrayRef> {
    Ok(compute::take(column, indices, None)?)
}
