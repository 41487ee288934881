//! GROUP BY over session windows: rows of one key that are no further apart than the gap share a session.
//!
//! Sessions grow and merge, so a row can change the bounds under which a group's result stands: the old rows of all sessions that a step touched
//! are taken back, then the new ones are given. Rows are taken one by one in their order, since each can move stream time and merge what
//! those before it have made; they are folded in runs, as only a merge needs its sessions up to date.
//!
//! A row is late when the session that it would make or join ends before stream time minus gap and grace. Sessions of which that is true can
//! be joined by no row any more, and their state is dropped. With RETENTION it stays until stream time has passed their end by that much, and then
//! their rows are taken back too, by the first step after it.
//!
//! State, by key: `sessions u32 | start i64 | end i64 | one saved state per call, ..`, and the slot's stream time under an empty key.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow::{
    array::{ArrayRef, AsArray},
    compute,
    datatypes::SchemaRef,
    row::{RowConverter, SortField},
};
use highwater_planner::dataflow::AggregateCall;

use super::accumulator::{Accumulator, Input, accumulator, read};
use crate::{
    delta::{Delta, rowtime_array},
    error::{ExecError, ExecResult},
    operator::{Operator, StateMemory, StepContext},
    operators::{groups::Groups, heap::tree},
    state::StateChanges,
};

/// State key of the slot's stream time: no encoded key is empty.
const STREAM_TIME_KEY: &[u8] = b"";

/// Lengths of session windows, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct SessionTimes {
    /// Rows this far apart still share a session.
    pub gap: i64,
    /// How much later than the gap a row may come.
    pub grace: i64,
    /// Only what is closed is given, once.
    pub finals_only: bool,
    /// From a session's end until its row is taken back; `None` leaves it.
    pub retention: Option<i64>,
}

/// See the module.
pub struct SessionAggregate {
    schema: SchemaRef,
    group_columns: Vec<usize>,
    calls: Vec<(AggregateCall, Box<dyn Accumulator>)>,
    converter: RowConverter,
    times: SessionTimes,
    keys: Groups,
    /// Sessions of each key by their start.
    sessions: Vec<BTreeMap<i64, Session>>,
    /// Sessions by their end, with key and start: what closes next comes first.
    by_end: BTreeSet<(i64, u32, i64)>,
    /// The same for closed sessions whose rows are not taken back yet.
    closed: BTreeSet<(i64, u32, i64)>,
    numbers: Numbers,
    stream_time: i64,
    step: StepChanges,
    dirty: BTreeSet<u32>,
    /// Keys without sessions whose removal a checkpoint is writing; forgotten once it is written, when the database cannot bring them back.
    leaving: Vec<u32>,
    stream_time_dirty: bool,
    loaded: bool,
    cold: bool,
}

#[derive(Debug, Clone, Copy)]
struct Session {
    end: i64,
    /// Where the accumulators hold it.
    number: u32,
}

/// Numbers of sessions in the accumulators.
#[derive(Default)]
struct Numbers {
    used: u32,
    free: Vec<u32>,
}

impl Numbers {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        })
    }
}

/// What a step has changed, by key, in the order in which keys were first touched.
#[derive(Default)]
struct StepChanges {
    keys: Vec<u32>,
    touched: BTreeSet<u32>,
    /// Bounds and values of the sessions that were there before and have changed: position in `old_values`.
    old: BTreeMap<u32, Vec<(i64, i64, usize)>>,
    old_values: Vec<Vec<ArrayRef>>,
    /// Numbers of the sessions that the step made or changed.
    changed: BTreeSet<u32>,
    /// Rows that wait to be folded: the first one and the session of each.
    first_pending: usize,
    pending: Vec<u32>,
}

impl SessionAggregate {
    /// `input` is the schema of the input, `schema` that of the output: group columns, the two bounds, then one column a call.
    pub fn new(
        input: &SchemaRef,
        schema: SchemaRef,
        group: &[usize],
        calls: &[AggregateCall],
        times: SessionTimes,
    ) -> ExecResult<Self> {
        let fields = group
            .iter()
            .map(|&column| SortField::new(input.field(column).data_type().clone()))
            .collect();
        let calls = calls
            .iter()
            .map(|call| {
                let argument = call.argument.map(|column| input.field(column).data_type());
                Ok((call.clone(), accumulator(call, argument, false)?))
            })
            .collect::<ExecResult<Vec<_>>>()?;
        Ok(Self {
            schema,
            group_columns: group.to_vec(),
            calls,
            converter: RowConverter::new(fields)?,
            times,
            keys: Groups::default(),
            sessions: Vec::new(),
            by_end: BTreeSet::new(),
            closed: BTreeSet::new(),
            numbers: Numbers::default(),
            stream_time: i64::MIN,
            step: StepChanges::default(),
            dirty: BTreeSet::new(),
            leaving: Vec::new(),
            stream_time_dirty: false,
            loaded: false,
            cold: false,
        })
    }

    /// Stream time survives a restart: it decides which rows are late.
    fn load_stream_time(&mut self, context: &StepContext<'_>) -> ExecResult<()> {
        if std::mem::replace(&mut self.loaded, true) {
            return Ok(());
        }
        let Some(state) = &context.state else {
            return Ok(());
        };
        self.cold = !state.is_empty()?;
        if let Some(bytes) = state.get(STREAM_TIME_KEY)? {
            self.stream_time = i64::from_le_bytes(read(&mut bytes.as_slice())?);
        }
        if self.times.finals_only || self.times.retention.is_some() {
            // Sessions that give a row when they close, or take theirs back when they go, must be in memory then.
            for (key, value) in state.entries()? {
                if *key != *STREAM_TIME_KEY {
                    let (key, _) = self.keys.intern(&key);
                    self.sessions
                        .resize_with(self.keys.capacity(), BTreeMap::new);
                    self.load_sessions(key, &value)?;
                }
            }
            self.cold = false;
            if self.times.retention.is_some() {
                while let Some(session) = self.next_closed() {
                    self.closed.insert(session);
                }
            }
        }
        Ok(())
    }

    /// The key of each row; its sessions are in memory afterwards.
    fn intern(&mut self, delta: &Delta, context: &StepContext<'_>) -> ExecResult<Vec<u32>> {
        let columns = delta.columns();
        let key: Vec<ArrayRef> = self
            .group_columns
            .iter()
            .map(|&column| Arc::clone(&columns[column]))
            .collect();
        let encoded = self.converter.convert_columns(&key)?;
        let mut keys = Vec::with_capacity(delta.rows());
        let mut made = Vec::new();
        for key in &encoded {
            let (number, new) = self.keys.intern(key.data());
            keys.push(number);
            if new {
                made.push(number);
            }
        }
        self.sessions
            .resize_with(self.keys.capacity(), BTreeMap::new);
        if let (true, Some(state)) = (self.cold && !made.is_empty(), &context.state) {
            let stored = state.multi_get(made.iter().map(|&key| self.keys.key(key)))?;
            for (&key, bytes) in made.iter().zip(stored) {
                if let Some(bytes) = bytes {
                    self.load_sessions(key, &bytes)?;
                }
            }
        }
        Ok(keys)
    }

    fn load_sessions(&mut self, key: u32, mut bytes: &[u8]) -> ExecResult<()> {
        for _ in 0..u32::from_le_bytes(read(&mut bytes)?) {
            let start = i64::from_le_bytes(read(&mut bytes)?);
            let end = i64::from_le_bytes(read(&mut bytes)?);
            let number = self.new_number();
            for (_, accumulator) in &mut self.calls {
                accumulator.load(number, &mut bytes)?;
            }
            self.sessions[key as usize].insert(start, Session { end, number });
            self.by_end.insert((end, key, start));
        }
        Ok(())
    }

    fn new_number(&mut self) -> u32 {
        let number = self.numbers.take();
        for (_, accumulator) in &mut self.calls {
            accumulator.resize(self.numbers.used as usize);
        }
        number
    }

    fn closed_before(&self) -> i64 {
        self.stream_time
            .saturating_sub(self.times.gap)
            .saturating_sub(self.times.grace)
    }

    /// The session that a row belongs to, after merging what it ties together; `None` for a late row.
    fn place(&mut self, key: u32, time: i64, delta: &Delta, row: usize) -> ExecResult<Option<u32>> {
        if time > self.stream_time {
            self.stream_time = time;
            self.stream_time_dirty = true;
        }
        let gap = self.times.gap;
        let near: Vec<(i64, Session)> = self.sessions[key as usize]
            .range(..=time.saturating_add(gap))
            .rev()
            .take_while(|(_, session)| session.end >= time.saturating_sub(gap))
            .filter(|(start, session)| !self.closed.contains(&(session.end, key, **start)))
            .map(|(start, session)| (*start, *session))
            .collect();
        let start = near.iter().map(|(start, _)| *start).fold(time, i64::min);
        let end = near
            .iter()
            .map(|(_, session)| session.end)
            .fold(time, i64::max);
        if end < self.closed_before() {
            return Ok(None);
        }
        if !self.step.touched.contains(&key) {
            self.step.touched.insert(key);
            self.step.keys.push(key);
        }
        self.dirty.insert(key);
        for (start, session) in &near {
            self.remember(key, *start, *session)?;
        }
        // Nearest first; the earliest one keeps its number and takes the others in, in the order of their times.
        let mut oldest_first = near.iter().rev();
        let number = match oldest_first.next() {
            Some((_, survivor)) => survivor.number,
            None => self.new_number(),
        };
        let absorbed: Vec<u32> = oldest_first.map(|(_, session)| session.number).collect();
        if !absorbed.is_empty() {
            self.fold_pending(delta, row)?;
            for other in absorbed {
                for (_, accumulator) in &mut self.calls {
                    accumulator.merge(number, other);
                    accumulator.reset(other);
                }
                self.step.changed.remove(&other);
                self.numbers.free.push(other);
            }
        }
        let sessions = &mut self.sessions[key as usize];
        for (start, session) in near {
            sessions.remove(&start);
            self.by_end.remove(&(session.end, key, start));
        }
        sessions.insert(start, Session { end, number });
        self.by_end.insert((end, key, start));
        self.step.changed.insert(number);
        Ok(Some(number))
    }

    /// Keeps what a session was before the step.
    fn remember(&mut self, key: u32, start: i64, session: Session) -> ExecResult<()> {
        if self.times.finals_only || self.step.changed.contains(&session.number) {
            return Ok(());
        }
        let values = evaluate(&self.calls, &[session.number])?;
        let position = self.step.old_values.len();
        self.step.old_values.push(values);
        let old = self.step.old.entry(key).or_default();
        old.push((start, session.end, position));
        Ok(())
    }

    /// Folds the rows that wait, which stand directly before `row`.
    fn fold_pending(&mut self, delta: &Delta, row: usize) -> ExecResult<()> {
        let groups = std::mem::take(&mut self.step.pending);
        let first = std::mem::replace(&mut self.step.first_pending, row);
        if groups.is_empty() {
            return Ok(());
        }
        let columns = delta.columns();
        for (call, accumulator) in &mut self.calls {
            let values = call
                .argument
                .map(|column| columns[column].slice(first, groups.len()));
            let filter = call
                .filter
                .map(|column| columns[column].as_boolean().slice(first, groups.len()));
            accumulator.update(Input {
                groups: &groups,
                values: values.as_ref(),
                filter: filter.as_ref(),
                diffs: None,
            })?;
        }
        Ok(())
    }

    /// The step's change: for each key the old rows of its sessions, then the new ones, both by their start.
    fn changes(&mut self) -> ExecResult<Option<Delta>> {
        let step = std::mem::take(&mut self.step);
        let mut rows = Rows::default();
        let mut numbers = Vec::new();
        for key in step.keys {
            let mut old = step.old.get(&key).cloned().unwrap_or_default();
            old.sort_unstable();
            for (start, end, position) in old {
                rows.push(key, start, end, (0, position), -1);
            }
            for (start, session) in &self.sessions[key as usize] {
                if step.changed.contains(&session.number) {
                    rows.push(key, *start, session.end, (1, numbers.len()), 1);
                    numbers.push(session.number);
                }
            }
        }
        self.delta(rows, &step.old_values, &numbers)
    }

    /// Takes the next session that stream time has closed from the open ones. One that only gives its final row gives it as soon as no row can
    /// join it.
    fn next_closed(&mut self) -> Option<(i64, u32, i64)> {
        let closed_before = self.closed_before();
        let &(end, ..) = self.by_end.first()?;
        let is_closed = end < closed_before || (self.times.finals_only && end == closed_before);
        is_closed.then(|| self.by_end.pop_first()).flatten()
    }

    /// The rows of the sessions that stream time has closed, if only these are given. Without a retention nothing is left of them.
    fn close(&mut self) -> ExecResult<Option<Delta>> {
        let mut rows = Rows::default();
        let mut numbers = Vec::new();
        let mut gone = Vec::new();
        while let Some((end, key, start)) = self.next_closed() {
            if let Some(session) = self.sessions[key as usize].get(&start) {
                rows.push(key, start, end, (1, numbers.len()), 1);
                numbers.push(session.number);
            }
            match self.times.retention {
                Some(_) => _ = self.closed.insert((end, key, start)),
                None => gone.push((key, start)),
            }
        }
        let finals = match self.times.finals_only {
            true => self.delta(rows, &[], &numbers)?,
            false => None,
        };
        self.forget(&gone);
        Ok(finals)
    }

    /// Takes back the rows of the sessions that were closed by the step before and whose retention is over.
    fn expire(&mut self) -> ExecResult<Option<Delta>> {
        let Some(retention) = self.times.retention else {
            return Ok(None);
        };
        let mut rows = Rows::default();
        let mut numbers = Vec::new();
        let mut gone = Vec::new();
        while let Some(&(end, key, start)) = self.closed.first() {
            if end.saturating_add(retention) > self.stream_time {
                break;
            }
            self.closed.pop_first();
            if let Some(session) = self.sessions[key as usize].get(&start) {
                rows.push(key, start, end, (1, numbers.len()), -1);
                numbers.push(session.number);
                gone.push((key, start));
            }
        }
        let taken_back = self.delta(rows, &[], &numbers)?;
        self.forget(&gone);
        Ok(taken_back)
    }

    fn forget(&mut self, gone: &[(u32, i64)]) {
        for &(key, start) in gone {
            let Some(session) = self.sessions[key as usize].remove(&start) else {
                continue;
            };
            self.dirty.insert(key);
            for (_, accumulator) in &mut self.calls {
                accumulator.reset(session.number);
            }
            self.numbers.free.push(session.number);
        }
    }

    fn delta(
        &self,
        rows: Rows,
        old_values: &[Vec<ArrayRef>],
        numbers: &[u32],
    ) -> ExecResult<Option<Delta>> {
        if rows.keys.is_empty() {
            return Ok(None);
        }
        let parser = self.converter.parser();
        let keys = rows
            .keys
            .iter()
            .map(|&key| parser.parse(self.keys.key(key)));
        let mut columns = self.converter.convert_rows(keys)?;
        for bounds in [&rows.starts, &rows.ends] {
            let wanted = self.schema.field(columns.len()).data_type();
            columns.push(compute::cast(&rowtime_array(bounds.clone()), wanted)?);
        }
        let new_values = evaluate(&self.calls, numbers)?;
        for (call, new) in new_values.iter().enumerate() {
            let pieces: Vec<&dyn arrow::array::Array> = old_values
                .iter()
                .map(|values| values[call].as_ref())
                .collect();
            let old = match pieces.is_empty() {
                true => new.slice(0, 0),
                false => compute::concat(&pieces)?,
            };
            columns.push(compute::interleave(
                &[old.as_ref(), new.as_ref()],
                &rows.sides,
            )?);
        }
        let diffs = rows.diffs.contains(&-1).then(|| Arc::from(rows.diffs));
        // A session's row has the time of its last record.
        Delta::from_columns(&self.schema, columns, rowtime_array(rows.ends), diffs).map(Some)
    }
}

/// Rows in the making: where each value comes from is told by side (0 old, 1 new) and position.
#[derive(Default)]
struct Rows {
    keys: Vec<u32>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    sides: Vec<(usize, usize)>,
    diffs: Vec<i8>,
}

impl Rows {
    fn push(&mut self, key: u32, start: i64, end: i64, side: (usize, usize), diff: i8) {
        self.keys.push(key);
        self.starts.push(start);
        self.ends.push(end);
        self.sides.push(side);
        self.diffs.push(diff);
    }
}

fn evaluate(
    calls: &[(AggregateCall, Box<dyn Accumulator>)],
    numbers: &[u32],
) -> ExecResult<Vec<ArrayRef>> {
    calls
        .iter()
        .map(|(_, accumulator)| accumulator.evaluate(numbers))
        .collect()
}

impl Operator for SessionAggregate {
    fn apply(
        &mut self,
        _input: usize,
        delta: Delta,
        context: &mut StepContext<'_>,
        _output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        if delta.diffs().is_some() {
            return Err(ExecError::Internal(
                "session windows collect the rows of a stream".into(),
            ));
        }
        self.load_stream_time(context)?;
        let keys = self.intern(&delta, context)?;
        let times = delta.rowtime_millis()?.to_vec();
        self.step.first_pending = 0;
        // What is folded is one run of rows; a late row ends it.
        for (row, (key, time)) in keys.into_iter().zip(times).enumerate() {
            match self.place(key, time, &delta, row)? {
                Some(number) => self.step.pending.push(number),
                None => {
                    *context.late += 1;
                    self.fold_pending(&delta, row)?;
                    self.step.first_pending = row + 1;
                }
            }
        }
        self.fold_pending(&delta, delta.rows())
    }

    fn step_end(
        &mut self,
        _context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        output.extend(self.expire()?);
        match self.times.finals_only {
            true => self.step = StepChanges::default(),
            false => output.extend(self.changes()?),
        }
        output.extend(self.close()?);
        Ok(())
    }

    /// Sessions stay in memory: what closes next is found there.
    fn memory(&self) -> StateMemory {
        let groups = self.keys.len();
        let sessions = self.by_end.len() + self.closed.len();
        let calls = self.calls.iter();
        let calls: (usize, usize) = calls.fold((0, 0), |(each, heap), (_, call)| {
            (each + call.group_bytes(), heap + call.heap_bytes())
        });
        let each_key = Groups::GROUP_BYTES
            + size_of::<BTreeMap<i64, Session>>()
            + tree(1, size_of::<(i64, Session)>());
        StateMemory {
            bytes: groups * each_key
                + self.keys.heap_bytes()
                + tree(sessions, size_of::<(i64, u32, i64)>())
                + sessions * calls.0
                + calls.1,
            unwritten: 0,
            groups,
        }
    }

    fn held(&self) -> usize {
        // Of a session that was there before, its old row too.
        self.step.changed.len() + self.step.old_values.len()
    }

    fn checkpoint(&mut self, changes: &mut StateChanges) {
        if std::mem::take(&mut self.stream_time_dirty) {
            changes.put(STREAM_TIME_KEY, |value| {
                value.extend_from_slice(&self.stream_time.to_le_bytes());
            });
        }
        for key in std::mem::take(&mut self.dirty) {
            let sessions = &self.sessions[key as usize];
            let stored_key = self.keys.key(key);
            if sessions.is_empty() {
                changes.delete(stored_key);
                self.leaving.push(key);
                continue;
            }
            changes.put(stored_key, |value| {
                value.extend_from_slice(&(sessions.len() as u32).to_le_bytes());
                for (start, session) in sessions {
                    value.extend_from_slice(&start.to_le_bytes());
                    value.extend_from_slice(&session.end.to_le_bytes());
                    for (_, accumulator) in &self.calls {
                        accumulator.save(session.number, value);
                    }
                }
            });
        }
    }

    fn checkpointed(&mut self) {
        for key in std::mem::take(&mut self.leaving) {
            if self.sessions[key as usize].is_empty() && !self.dirty.contains(&key) {
                self.keys.remove(key);
            }
        }
    }
}
