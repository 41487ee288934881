//! GROUP BY: keeps one row a group, and sends each step's changed groups as -1 old, +1 new.
//!
//! Group state is in memory by group number; what is not there is looked up in the state database when a batch names it. After a restart the
//! database knows groups that memory does not, and when memory is short, groups are *evicted*: those that the database has as memory has them are
//! forgotten, the ones that were not named lately first. Group numbers are used again, so arrays that have grown to the budget grow no further.
//!
//! A checkpoint takes the groups that changed since the last one, some at a time
//! between steps; what changes again before it was taken is copied first, so the checkpoint has all of them as they were when it began.
//!
//! With windows, the state key begins with the window's bounds: all state of closed windows is one range, dropped as a whole once stream
//! time has passed the windows' end plus grace. The result rows stay where they are kept, in the result table. With RETENTION the state stays
//! until stream time has passed the windows' start by that much, and then the rows are taken back too, by the first step after it: a window that
//! closed in an earlier step can be touched by no row of this one.
//!
//! Windows whose rows are given when they close, or taken back when they go, are never evicted: nothing else says then which groups they had.
//!
//! INVARIANT: an evicted group is in the database as it was. It has not changed since a checkpoint took it, and that one has finished.
//!
//! State value: `rows i64 | event time i64 | one saved state per call`.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, TimestampMillisecondArray, UInt32Array},
    compute,
    datatypes::{DataType, SchemaRef},
    row::{RowConverter, SortField},
};
use highwater_planner::dataflow::{AggregateCall, WindowShape, WindowSpec};

use super::accumulator::{Accumulator, Input, accumulator, read};
use crate::{
    delta::{Delta, rowtime_array},
    error::{ExecError, ExecResult},
    operator::{Operator, StateMemory, StepContext},
    operators::{
        assign_windows::millis,
        clock::Clock,
        group_array::{fit, renumber},
        groups::Groups,
        marked_groups::MarkedGroups,
        written_groups::WrittenGroups,
    },
    state::{StateChanges, key_order},
};

/// How groups are kept and when their rows are given.
#[derive(Debug, Clone, Copy, Default)]
pub struct GroupOptions {
    /// Rows of the input can be taken back.
    pub changing: bool,
    /// A window's row is given once, when it closes.
    pub finals_only: bool,
    /// A group keeps its row when all its rows have been taken back.
    pub keeps_empty: bool,
}

/// See the module.
pub struct Aggregate {
    options: GroupOptions,
    schema: SchemaRef,
    group_columns: Vec<usize>,
    calls: Vec<(AggregateCall, Box<dyn Accumulator>)>,
    converter: Option<RowConverter>,
    window: Option<WindowExpiry>,
    groups: Groups,
    /// Rows in each group; at zero its row is gone, unless it is the one global group.
    rows: Vec<i64>,
    rowtimes: Vec<i64>,
    /// Groups that have or had rows.
    known: Vec<bool>,
    touched: Touched,
    /// Groups that changed since the last checkpoint.
    dirty: MarkedGroups,
    /// Groups that changed before the checkpoint under way, which has not taken them yet.
    unsaved: MarkedGroups,
    /// What the checkpoint has to know of groups that changed again before it took them.
    copied: StateChanges,
    /// Groups whose removal a checkpoint is writing. They are forgotten once it is written: until then the database still has their old state,
    /// and memory must go on to say that they are empty.
    leaving: Vec<u32>,
    /// Whether the database may know groups that memory does not.
    cold: Option<bool>,
    /// Which groups to evict first.
    clock: Clock,
    /// Which groups the database has, if they have not changed since.
    written: WrittenGroups,
}

/// State key of the stream time that windows with a retention need after a restart: no encoded key is empty.
const STREAM_TIME_KEY: &[u8] = b"";

/// Bytes of a group beside its key, its calls, and what the other parts say: its rows, times, flags, and its places in lists.
const GROUP_BYTES: usize = 2 * size_of::<i64>() + 2 * size_of::<bool>() + 2 * size_of::<u32>();

/// Numbers that no group has stay, up to so many and as many as there are groups. More are given back.
const SPARE_NUMBERS: usize = 8192;

/// With fewer groups to evict than one of so many, a search for them is not worth its time.
const WORTHWHILE: usize = 16;

/// Windows by their start, and how far they are closed.
struct WindowExpiry {
    /// From a window's start to its end plus grace.
    lifetime: i64,
    /// From a window's start until its rows are taken back; `None` leaves them.
    retention: Option<i64>,
    /// The groups of each window. A group that was evicted may still be among them, and its number then belong to another.
    starts: BTreeMap<i64, Vec<u32>>,
    /// How many were evicted since `starts` had none of them.
    evicted: usize,
    stream_time: i64,
    /// Windows that start below this were closed by the end of the step before.
    closed_below: i64,
    /// Windows that start below this have been dropped; `None` when no drop waits for a checkpoint.
    dropped_below: Option<i64>,
    /// Stream time as the state database has it.
    saved_stream_time: i64,
    start_converter: RowConverter,
    start_type: DataType,
}

/// The groups that the running step changed, with what they were before.
#[derive(Default)]
struct Touched {
    groups: Vec<u32>,
    marks: Vec<bool>,
    /// For each touched group, its position in `old`, if it had a row.
    old_positions: Vec<Option<usize>>,
    /// Old rows: one array a call and the event times, in pieces.
    old: Vec<Vec<ArrayRef>>,
    old_rowtimes: Vec<i64>,
}

impl Aggregate {
    /// `input` is the schema of the input, `schema` that of the output: the group columns, then one column a call.
    pub fn new(
        input: &SchemaRef,
        schema: SchemaRef,
        group: &[usize],
        calls: &[AggregateCall],
        window: Option<&WindowSpec>,
        options: GroupOptions,
    ) -> ExecResult<Self> {
        let field = |&column: &usize| SortField::new(input.field(column).data_type().clone());
        let converter = if group.is_empty() {
            None
        } else {
            Some(RowConverter::new(
                state_order(group, window.is_some())
                    .iter()
                    .map(field)
                    .collect(),
            )?)
        };
        let calls = calls
            .iter()
            .map(|call| {
                let argument = call.argument.map(|column| input.field(column).data_type());
                Ok((call.clone(), accumulator(call, argument, options.changing)?))
            })
            .collect::<ExecResult<Vec<_>>>()?;
        let window = match window {
            Some(window) => {
                let start = group.len().checked_sub(2).ok_or_else(|| {
                    ExecError::Internal(
                        "a windowed aggregate lacks the window bounds in its key".into(),
                    )
                })?;
                let start_type = input.field(group[start]).data_type().clone();
                Some(WindowExpiry::new(window, start_type)?)
            }
            None => None,
        };
        Ok(Self {
            options,
            known: Vec::new(),
            schema,
            group_columns: group.to_vec(),
            calls,
            converter,
            window,
            groups: Groups::default(),
            rows: Vec::new(),
            rowtimes: Vec::new(),
            touched: Touched::default(),
            dirty: MarkedGroups::default(),
            unsaved: MarkedGroups::default(),
            copied: StateChanges::default(),
            leaving: Vec::new(),
            cold: None,
            clock: Clock::default(),
            written: WrittenGroups::default(),
        })
    }

    /// The group of each row, made or read from the database where it is not in memory.
    fn intern(&mut self, delta: &Delta, context: &StepContext<'_>) -> ExecResult<Vec<u32>> {
        let mut groups = Vec::with_capacity(delta.rows());
        let mut made = Vec::new();
        match &self.converter {
            Some(converter) => {
                let columns = delta.columns();
                let key: Vec<ArrayRef> = state_order(&self.group_columns, self.window.is_some())
                    .iter()
                    .map(|&column| Arc::clone(&columns[column]))
                    .collect();
                let keys = converter.convert_columns(&key)?;
                for key in &keys {
                    let (group, new) = self.groups.intern(key.data());
                    groups.push(group);
                    if new {
                        made.push(group);
                    }
                }
            }
            None => {
                let (group, new) = self.groups.intern(&[]);
                groups.resize(delta.rows(), group);
                if new {
                    made.push(group);
                }
            }
        }
        self.make_room();
        self.load(&made, context)?;
        if let Some(window) = &mut self.window {
            window.register(&made, &groups, delta, &self.group_columns)?;
        }
        Ok(groups)
    }

    fn make_room(&mut self) {
        let capacity = self.groups.capacity();
        fit(&mut self.rows, capacity);
        fit(&mut self.known, capacity);
        fit(&mut self.touched.marks, capacity);
        if capacity < self.rowtimes.len() {
            self.rowtimes.truncate(capacity);
            self.rowtimes.shrink_to_fit();
        }
        self.rowtimes.resize(capacity, i64::MIN);
        self.dirty.make_room(capacity);
        self.unsaved.make_room(capacity);
        self.clock.make_room(capacity);
        self.written.make_room(capacity);
        for (_, accumulator) in &mut self.calls {
            accumulator.resize(capacity);
        }
    }

    /// Reads groups that memory sees for the first time; answers how many the database knew.
    fn load(&mut self, made: &[u32], context: &StepContext<'_>) -> ExecResult<usize> {
        let Some(state) = &context.state else {
            return Ok(0);
        };
        if made.is_empty() {
            return Ok(0);
        }
        let cold = match self.cold {
            Some(cold) => cold,
            None => *self.cold.insert(!state.is_empty()?),
        };
        if !cold {
            return Ok(0);
        }
        let order = key_order(made.len(), |position| self.groups.key(made[position]));
        let Self {
            groups,
            known,
            rows,
            rowtimes,
            calls,
            ..
        } = self;
        let mut found = 0;
        state.get_sorted(
            order.iter().map(|&position| groups.key(made[position])),
            |position, mut bytes| {
                found += 1;
                let group = made[order[position]];
                known[group as usize] = true;
                rows[group as usize] = i64::from_le_bytes(read(&mut bytes)?);
                rowtimes[group as usize] = i64::from_le_bytes(read(&mut bytes)?);
                calls
                    .iter_mut()
                    .try_for_each(|(_, call)| call.load(group, &mut bytes))
            },
        )?;
        Ok(found)
    }

    fn load_group(&mut self, group: u32, mut bytes: &[u8]) -> ExecResult<()> {
        self.known[group as usize] = true;
        self.rows[group as usize] = i64::from_le_bytes(read(&mut bytes)?);
        self.rowtimes[group as usize] = i64::from_le_bytes(read(&mut bytes)?);
        for (_, accumulator) in &mut self.calls {
            accumulator.load(group, &mut bytes)?;
        }
        Ok(())
    }

    /// Windows that give a row when they close, or take theirs back when they go, must be in memory then, whether or not a row names them again
    /// after a restart.
    fn load_windows(&mut self, context: &StepContext<'_>) -> ExecResult<()> {
        let needed = self.options.finals_only || self.keeps_closed();
        let (true, None, Some(state)) = (needed, self.cold, &context.state) else {
            return Ok(());
        };
        self.cold = Some(false);
        for (key, value) in state.entries()? {
            if *key == *STREAM_TIME_KEY {
                if let Some(window) = &mut self.window {
                    window.stream_time = i64::from_le_bytes(read(&mut &*value)?);
                    window.closed_below = window.first_open();
                }
                continue;
            }
            let (group, _) = self.groups.intern(&key);
            self.make_room();
            self.load_group(group, &value)?;
            let starts = self.key_columns(&[group])?;
            let start = &starts[starts.len() - 2];
            let start = compute::cast(start, &crate::delta::rowtime_type())?;
            let start = start.as_primitive::<arrow::datatypes::TimestampMillisecondType>();
            if let Some(window) = &mut self.window {
                window.starts.entry(start.value(0)).or_default().push(group);
            }
        }
        Ok(())
    }

    /// Whether closed windows stay for a while.
    fn keeps_closed(&self) -> bool {
        self.window
            .as_ref()
            .is_some_and(|window| window.retention.is_some())
    }

    /// Whether a group has a row in the result: while rows are in it, always for the one global group, and from the first row on where groups
    /// keep theirs.
    fn has_row(&self, group: u32) -> bool {
        self.rows[group as usize] > 0
            || self.converter.is_none()
            || (self.options.keeps_empty && self.known[group as usize])
    }

    /// Without GROUP BY there is one row from the beginning on, even over no input.
    fn start_global(&mut self, context: &StepContext<'_>) -> ExecResult<()> {
        if self.converter.is_some() || self.groups.capacity() > 0 {
            return Ok(());
        }
        let (group, _) = self.groups.intern(&[]);
        self.make_room();
        if self.load(&[group], context)? == 0 {
            self.touched.marks[group as usize] = true;
            self.touched.groups.push(group);
            self.touched.old_positions.push(None);
            self.rowtimes[group as usize] = 0;
        }
        Ok(())
    }

    /// Remembers the rows of groups that this step has not touched yet.
    fn remember_old(&mut self, groups: &[u32]) -> ExecResult<()> {
        let mut existing = Vec::new();
        for &group in groups {
            let mark = &mut self.touched.marks[group as usize];
            if std::mem::replace(mark, true) {
                continue;
            }
            self.touched.groups.push(group);
            self.clock.name(group);
            self.copy_unsaved(group);
            let had_row = self.has_row(group);
            self.touched
                .old_positions
                .push(had_row.then_some(self.touched.old_rowtimes.len()));
            if had_row {
                existing.push(group);
                self.touched
                    .old_rowtimes
                    .push(self.rowtimes[group as usize]);
            }
        }
        if !existing.is_empty() {
            let values = self.evaluate(&existing)?;
            self.touched.old.push(values);
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> ExecResult<Vec<ArrayRef>> {
        self.calls
            .iter()
            .map(|(_, accumulator)| accumulator.evaluate(groups))
            .collect()
    }

    /// Group columns of the given groups, in output order.
    fn key_columns(&self, groups: &[u32]) -> ExecResult<Vec<ArrayRef>> {
        let Some(converter) = &self.converter else {
            return Ok(Vec::new());
        };
        let parser = converter.parser();
        let mut columns = converter.convert_rows(
            groups
                .iter()
                .map(|&group| parser.parse(self.groups.key(group))),
        )?;
        if self.window.is_some() {
            // Back from state order (bounds first) to output order (bounds last).
            columns.rotate_left(2);
        }
        Ok(columns)
    }

    /// The step's change: the old row of each touched group directly followed by its new one.
    fn consolidated(&mut self) -> ExecResult<Option<Delta>> {
        let touched = std::mem::take(&mut self.touched.groups);
        if touched.is_empty() {
            return Ok(None);
        }
        let old_positions = std::mem::take(&mut self.touched.old_positions);
        let old_pieces = std::mem::take(&mut self.touched.old);
        let old_rowtimes = std::mem::take(&mut self.touched.old_rowtimes);

        let keys = self.key_columns(&touched)?;
        let new_values = self.evaluate(&touched)?;
        if old_rowtimes.is_empty() && touched.iter().all(|&group| self.has_row(group)) {
            // Nothing but new rows, as in history and wherever groups come and do not come again.
            let mut rowtimes = Vec::with_capacity(touched.len());
            for &group in &touched {
                self.touched.marks[group as usize] = false;
                rowtimes.push(self.rowtimes[group as usize]);
            }
            let columns = keys.into_iter().chain(new_values).collect();
            let times = rowtime_array(rowtimes);
            return Delta::from_columns(&self.schema, columns, times, None).map(Some);
        }
        let mut key_rows: Vec<u32> = Vec::with_capacity(touched.len() * 2);
        let mut sides: Vec<(usize, usize)> = Vec::with_capacity(touched.len() * 2);
        let mut rowtimes = Vec::with_capacity(touched.len() * 2);
        let mut diffs: Vec<i8> = Vec::with_capacity(touched.len() * 2);
        for (position, (&group, &old)) in touched.iter().zip(&old_positions).enumerate() {
            self.touched.marks[group as usize] = false;
            if let Some(old) = old {
                key_rows.push(position as u32);
                sides.push((0, old));
                rowtimes.push(old_rowtimes[old]);
                diffs.push(-1);
            }
            if self.has_row(group) {
                key_rows.push(position as u32);
                sides.push((1, position));
                rowtimes.push(self.rowtimes[group as usize]);
                diffs.push(1);
            }
        }
        if diffs.is_empty() {
            return Ok(None);
        }
        let key_rows = UInt32Array::from(key_rows);
        let mut columns = keys
            .iter()
            .map(|column| Ok(compute::take(column, &key_rows, None)?))
            .collect::<ExecResult<Vec<ArrayRef>>>()?;
        for (call, new) in new_values.iter().enumerate() {
            let pieces: Vec<&dyn Array> = old_pieces
                .iter()
                .map(|piece| piece[call].as_ref())
                .collect();
            let old = if pieces.is_empty() {
                new.slice(0, 0)
            } else {
                compute::concat(&pieces)?
            };
            columns.push(compute::interleave(&[old.as_ref(), new.as_ref()], &sides)?);
        }
        let diffs = diffs.contains(&-1).then(|| Arc::from(diffs));
        Ok(Some(Delta::from_columns(
            &self.schema,
            columns,
            rowtime_array(rowtimes),
            diffs,
        )?))
    }

    /// Ends a step without giving what changed in it.
    fn leave_touched(&mut self) {
        let touched = std::mem::take(&mut self.touched);
        self.touched.marks = touched.marks;
        for group in touched.groups {
            self.touched.marks[group as usize] = false;
        }
    }

    /// The rows of the windows that close now.
    fn finals(&self) -> ExecResult<Option<Delta>> {
        match &self.window {
            Some(window) => self.rows_of(window.closing(), None),
            None => Ok(None),
        }
    }

    /// Takes back the rows of the windows whose retention is over.
    fn expired(&self) -> ExecResult<Option<Delta>> {
        match &self.window {
            Some(window) if window.retention.is_some() => self.rows_of(window.leaving(), Some(-1)),
            _ => Ok(None),
        }
    }

    /// The rows of whole windows, in the order of their state keys: by window, then by group.
    fn rows_of<'a>(
        &self,
        windows: impl Iterator<Item = (&'a i64, &'a Vec<u32>)>,
        diff: Option<i8>,
    ) -> ExecResult<Option<Delta>> {
        let mut groups: Vec<u32> = windows
            .flat_map(|(_, groups)| groups)
            .copied()
            .filter(|&group| self.has_row(group))
            .collect();
        if groups.is_empty() {
            return Ok(None);
        }
        groups.sort_by_key(|&group| self.groups.key(group));
        let mut columns = self.key_columns(&groups)?;
        columns.extend(self.evaluate(&groups)?);
        let times = groups
            .iter()
            .map(|&group| self.rowtimes[group as usize])
            .collect();
        let diffs = diff.map(|diff| Arc::from(vec![diff; groups.len()]));
        Delta::from_columns(&self.schema, columns, rowtime_array(times), diffs).map(Some)
    }

    /// Before a group changes: the checkpoint under way takes it as it is now.
    fn copy_unsaved(&mut self, group: u32) {
        if self.unsaved.remove(group) {
            let mut copied = std::mem::take(&mut self.copied);
            self.save(group, &mut copied);
            self.copied = copied;
        }
    }

    fn save(&mut self, group: u32, changes: &mut StateChanges) {
        self.written.take(group);
        let key = self.groups.key(group);
        if !self.has_row(group) {
            changes.delete(key);
            self.leaving.push(group);
            return;
        }
        changes.put(key, |value| {
            value.extend_from_slice(&self.rows[group as usize].to_le_bytes());
            value.extend_from_slice(&self.rowtimes[group as usize].to_le_bytes());
            for (_, accumulator) in &self.calls {
                accumulator.save(group, value);
            }
        });
    }

    /// Forgets a group of memory.
    fn forget(&mut self, group: u32) {
        self.rows[group as usize] = 0;
        self.rowtimes[group as usize] = i64::MIN;
        self.known[group as usize] = false;
        for (_, accumulator) in &mut self.calls {
            accumulator.reset(group);
        }
        self.groups.remove(group);
        self.clock.remove(group);
        self.written.forget(group);
    }

    /// Whether groups are evicted at all.
    fn can_evict(&self) -> bool {
        self.converter.is_some() && !self.options.finals_only && !self.keeps_closed()
    }

    /// Whether the database has a group as it is here, and nothing of a running step depends on it.
    fn can_leave(&self, group: u32) -> bool {
        !self.touched.marks[group as usize]
            && !self.dirty.contains(group)
            && !self.unsaved.contains(group)
            && self.written.contains(group)
            // One without a row is on its way out already.
            && self.has_row(group)
    }

    /// Groups that the next checkpoint, or the one under way, makes evictable: those of the running step, too.
    fn unwritten(&self) -> usize {
        let changed = self.dirty.len() + self.unsaved.len() + self.touched.groups.len();
        (changed + self.written.waiting()).min(self.groups.len())
    }

    /// Bytes of a group in arrays.
    fn group_bytes(&self) -> usize {
        let calls = self.calls.iter();
        let calls: usize = calls.map(|(_, call)| call.group_bytes()).sum();
        GROUP_BYTES
            + Groups::GROUP_BYTES
            + 2 * MarkedGroups::GROUP_BYTES
            + Clock::GROUP_BYTES
            + WrittenGroups::GROUP_BYTES
            + calls
    }

    /// Bytes beside the arrays.
    fn heap_bytes(&self) -> usize {
        let calls = self.calls.iter();
        let calls: usize = calls.map(|(_, call)| call.heap_bytes()).sum();
        self.groups.heap_bytes() + calls
    }

    /// Gives the groups the lowest numbers, and the memory of the others back. A step must not be under way.
    fn close_ranks(&mut self) -> ExecResult<()> {
        self.close_window_gaps()?;
        let len = self.groups.len() as u32;
        let (below, above) = (0..len, len..self.groups.capacity() as u32);
        let clock = &self.clock;
        let moves: Vec<(u32, u32)> = above
            .filter(|&group| clock.has(group))
            .zip(below.filter(|&group| !clock.has(group)))
            .collect();
        let mut state = Vec::new();
        for &(from, to) in &moves {
            for (_, call) in &mut self.calls {
                state.clear();
                call.save(from, &mut state);
                call.reset(from);
                call.load(to, &mut state.as_slice())?;
            }
            renumber(&mut self.rows, from, to);
            renumber(&mut self.rowtimes, from, to);
            renumber(&mut self.known, from, to);
            self.groups.renumber(from, to);
            self.dirty.renumber(from, to);
            self.unsaved.renumber(from, to);
            self.clock.renumber(from, to);
            self.written.renumber(from, to);
        }
        let windows = self.window.iter_mut();
        let listed = windows.flat_map(|window| window.starts.values_mut());
        for group in listed.flatten().chain(&mut self.leaving) {
            if let Ok(moved) = moves.binary_search_by_key(group, |(from, _)| *from) {
                *group = moves[moved].1;
            }
        }
        self.groups.forget_free_numbers();
        self.make_room();
        Ok(())
    }

    /// The lists of windows lose the groups that are not theirs any more.
    fn close_window_gaps(&mut self) -> ExecResult<()> {
        let Some(window) = &mut self.window else {
            return Ok(());
        };
        let starts = window.starts.keys();
        let beginnings: Vec<Vec<u8>> = starts
            .map(|start| window.key_from(*start))
            .collect::<ExecResult<_>>()?;
        // A window without groups in memory stays in the list: its close still drops what the database has.
        for (groups, beginning) in window.starts.values_mut().zip(&beginnings) {
            let (clock, keys) = (&self.clock, &self.groups);
            groups.retain(|&group| clock.has(group) && keys.key(group).starts_with(beginning));
            groups.sort_unstable();
            groups.dedup();
            groups.shrink_to_fit();
        }
        window.evicted = 0;
        Ok(())
    }

    /// Forgets the windows that nothing can touch any more, and notes which have closed by now.
    fn drop_windows(&mut self) -> ExecResult<()> {
        let Some(window) = &mut self.window else {
            return Ok(());
        };
        let evicted = window.evicted > 0;
        let windows = window.take_leaving();
        window.closed_below = window.closed_below.max(window.first_open());
        let mut gone = Vec::new();
        for (start, mut groups) in windows {
            if evicted {
                let beginning = window.key_from(start)?;
                let (clock, keys) = (&self.clock, &self.groups);
                groups.retain(|&group| clock.has(group) && keys.key(group).starts_with(&beginning));
            }
            gone.append(&mut groups);
        }
        if gone.is_empty() {
            return Ok(());
        }
        for group in gone {
            self.copy_unsaved(group);
            // A dropped group must not be saved: its number may belong to another one by then.
            self.dirty.remove(group);
            self.forget(group);
        }
        self.dirty.close_gaps();
        Ok(())
    }
}

/// Order of the group columns in state keys: window bounds, the last two, come first.
fn state_order(group: &[usize], windowed: bool) -> Vec<usize> {
    let mut order = group.to_vec();
    if windowed {
        order.rotate_right(2);
    }
    order
}

impl WindowExpiry {
    fn new(window: &WindowSpec, start_type: DataType) -> ExecResult<Self> {
        let size = match window.shape {
            WindowShape::Tumbling { size } | WindowShape::Hopping { size, .. } => size,
            WindowShape::Session { .. } => {
                return Err(ExecError::Internal(
                    "sessions are no windows by time".into(),
                ));
            }
        };
        Ok(Self {
            lifetime: millis(size).saturating_add(millis(window.grace)),
            retention: window.retention.map(millis),
            starts: BTreeMap::new(),
            evicted: 0,
            stream_time: i64::MIN,
            closed_below: i64::MIN,
            saved_stream_time: i64::MIN,
            dropped_below: None,
            start_converter: RowConverter::new(vec![SortField::new(start_type.clone())])?,
            start_type,
        })
    }

    /// Files newly made groups under their window.
    fn register(
        &mut self,
        made: &[u32],
        groups: &[u32],
        delta: &Delta,
        group_columns: &[usize],
    ) -> ExecResult<()> {
        if made.is_empty() {
            return Ok(());
        }
        let starts = &delta.columns()[group_columns[group_columns.len() - 2]];
        let starts = compute::cast(starts, &crate::delta::rowtime_type())?;
        let starts = starts.as_primitive::<arrow::datatypes::TimestampMillisecondType>();
        let mut made = made.iter().copied().peekable();
        // Groups are made in row order, so one pass finds the first row of each.
        for (row, &group) in groups.iter().enumerate() {
            if made.peek() == Some(&group) {
                made.next();
                self.starts
                    .entry(starts.value(row))
                    .or_default()
                    .push(group);
            }
        }
        Ok(())
    }

    /// Start of the first window that is still open: start + size + grace is beyond stream time.
    fn first_open(&self) -> i64 {
        self.first_within(self.lifetime)
    }

    /// Start of the first window that has not become older than `age`.
    fn first_within(&self, age: i64) -> i64 {
        self.stream_time.saturating_sub(age).saturating_add(1)
    }

    /// The windows that this step has closed, with their groups.
    fn closing(&self) -> impl Iterator<Item = (&i64, &Vec<u32>)> {
        let first_open = self.first_open();
        self.starts
            .range(self.closed_below.min(first_open)..first_open)
    }

    /// The first window that stays. Without a retention a window's state goes when it closes; with one, a step after that at the earliest.
    fn first_staying(&self) -> i64 {
        match self.retention {
            Some(retention) => self.first_within(retention).min(self.closed_below),
            None => self.first_open(),
        }
    }

    /// The windows that go now, with their groups.
    fn leaving(&self) -> impl Iterator<Item = (&i64, &Vec<u32>)> {
        self.starts.range(..self.first_staying())
    }

    fn take_leaving(&mut self) -> BTreeMap<i64, Vec<u32>> {
        let first_staying = self.first_staying();
        if self.leaving().next().is_none() {
            return BTreeMap::new();
        }
        let staying = self.starts.split_off(&first_staying);
        self.dropped_below = Some(first_staying);
        std::mem::replace(&mut self.starts, staying)
    }

    /// Where the state of the windows from a start on begins.
    fn key_from(&self, start: i64) -> ExecResult<Vec<u8>> {
        let start: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![start]));
        let start = compute::cast(&start, &self.start_type)?;
        Ok(self
            .start_converter
            .convert_columns(&[start])?
            .row(0)
            .data()
            .to_vec())
    }
}

impl Operator for Aggregate {
    fn apply(
        &mut self,
        _input: usize,
        delta: Delta,
        context: &mut StepContext<'_>,
        _output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        self.start_global(context)?;
        self.load_windows(context)?;
        let groups = self.intern(&delta, context)?;
        self.remember_old(&groups)?;
        let columns = delta.columns();
        for (call, accumulator) in &mut self.calls {
            let filter = call.filter.map(|column| columns[column].as_boolean());
            accumulator.update(Input {
                groups: &groups,
                values: call.argument.map(|column| &columns[column]),
                filter,
                diffs: delta.diffs(),
            })?;
        }
        let times = delta.rowtime_millis()?;
        let diffs = delta.diffs();
        for (row, (&group, &time)) in groups.iter().zip(times).enumerate() {
            self.rows[group as usize] += diffs.map_or(1, |diffs| i64::from(diffs[row]));
            self.known[group as usize] = true;
            let rowtime = &mut self.rowtimes[group as usize];
            *rowtime = (*rowtime).max(time);
        }
        if let (Some(window), Some(latest)) = (&mut self.window, times.iter().max()) {
            window.stream_time = window.stream_time.max(*latest);
        }
        Ok(())
    }

    fn step_end(
        &mut self,
        context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        self.start_global(context)?;
        for position in 0..self.touched.groups.len() {
            let group = self.touched.groups[position];
            self.dirty.insert(group);
            if self.rows[group as usize] == 0 {
                if self.converter.is_some() && !self.options.keeps_empty {
                    self.rowtimes[group as usize] = i64::MIN;
                }
                // What rounding left of taken-back numbers must not seep into the group's next life.
                for (_, accumulator) in &mut self.calls {
                    accumulator.reset(group);
                }
            }
        }
        output.extend(self.expired()?);
        if self.options.finals_only {
            self.leave_touched();
            output.extend(self.finals()?);
        } else {
            output.extend(self.consolidated()?);
        }
        self.drop_windows()
    }

    fn held(&self) -> usize {
        self.touched.groups.len()
    }

    fn memory(&self) -> StateMemory {
        let groups = self.groups.len();
        let bytes = groups * self.group_bytes() + self.heap_bytes();
        let unwritten = match self.can_evict() {
            true => bytes / groups.max(1) * self.unwritten(),
            false => 0,
        };
        StateMemory {
            bytes: bytes + self.copied.memory(),
            unwritten,
            groups,
        }
    }

    fn evict(&mut self, bytes: usize) -> usize {
        let groups = self.groups.len();
        let clean = groups.saturating_sub(self.unwritten());
        if !self.can_evict() || clean * WORTHWHILE < groups {
            return 0;
        }
        let (each, mut freed, mut evicted) = (self.group_bytes(), 0, 0);
        for _ in 0..self.clock.two_rounds() {
            if freed >= bytes || evicted == clean {
                break;
            }
            let Some(group) = self.clock.advance() else {
                continue;
            };
            if !self.can_leave(group) {
                continue;
            }
            let heap = self.heap_bytes();
            self.forget(group);
            freed += each + heap.saturating_sub(self.heap_bytes());
            evicted += 1;
        }
        if evicted == 0 {
            return 0;
        }
        self.cold = Some(true);
        let groups = self.groups.len();
        let listed = self.window.as_mut().map_or(0, |window| {
            window.evicted += evicted;
            window.evicted
        });
        let spare = self.groups.capacity() - groups;
        let closed = if spare > groups + SPARE_NUMBERS && self.touched.groups.is_empty() {
            self.close_ranks()
        } else if listed > groups {
            self.close_window_gaps()
        } else {
            Ok(())
        };
        if let Err(error) = closed {
            tracing::warn!(%error, "the memory of evicted groups was not given back");
        }
        freed
    }

    fn checkpoint(&mut self, changes: &mut StateChanges) {
        if let Some(window) = &mut self.window {
            let dropped_below = window.dropped_below.take();
            if let Some(first_staying) = dropped_below {
                match window.key_from(first_staying) {
                    Ok(key) => changes.drop_range(Vec::new(), key),
                    // Closed windows that stay in the database cost space, never a wrong result.
                    Err(error) => {
                        tracing::warn!(%error, "could not drop closed windows from the state database")
                    }
                }
            }
            // ORDER: behind the range, which holds the key.
            if window.retention.is_some()
                && (dropped_below.is_some() || window.saved_stream_time != window.stream_time)
            {
                window.saved_stream_time = window.stream_time;
                changes.put(STREAM_TIME_KEY, |value| {
                    value.extend_from_slice(&window.stream_time.to_le_bytes());
                });
            }
        }
        debug_assert!(
            self.unsaved.pop().is_none(),
            "a checkpoint has taken everything before the next one begins"
        );
        std::mem::swap(&mut self.dirty, &mut self.unsaved);
        self.written.begin();
    }

    fn checkpoint_more(&mut self, changes: &mut StateChanges, budget: &mut usize) -> bool {
        changes.append(&mut std::mem::take(&mut self.copied));
        while *budget > 0 {
            let Some(group) = self.unsaved.pop() else {
                return true;
            };
            self.save(group, changes);
            *budget -= 1;
        }
        false
    }

    fn checkpointed(&mut self) {
        self.written.finish();
        let mut leaving = std::mem::take(&mut self.leaving);
        // A group that left twice, since a checkpoint failed in between, is there twice.
        leaving.sort_unstable();
        leaving.dedup();
        for group in leaving {
            // One that came back is not leaving any more. Forgetting a number that is free already changes nothing.
            if !self.has_row(group) && !self.dirty.contains(group) {
                self.forget(group);
            }
        }
    }
}

#[cfg(test)]
mod tests;
