//! Copies each row into the windows that its event time falls into.
//!
//! Stream time is the highest event time that this slot has seen, as in Kafka Streams. A window is closed once stream time has reached its end
//! plus grace; a row for a closed window is late. Rows are judged one by one in their order, each after those before it have moved stream
//! time, so the verdict does not depend on where the steps were cut.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, UInt32Array},
    compute,
    datatypes::SchemaRef,
};
use highwater_planner::dataflow::{WindowShape, WindowSpec};

use crate::{
    delta::{Delta, rowtime_array},
    error::{ExecError, ExecResult},
    operator::{Operator, StepContext},
    state::StateChanges,
};

/// State key of the slot's stream time.
const STREAM_TIME_KEY: &[u8] = b"stream_time";

/// See the module.
pub struct AssignWindows {
    schema: SchemaRef,
    size: i64,
    advance: i64,
    grace: i64,
    stream_time: Option<i64>,
    loaded: bool,
    dirty: bool,
}

impl AssignWindows {
    /// `schema` is the output's: the input's columns, then `windowstart` and `windowend`.
    pub fn new(window: &WindowSpec, schema: SchemaRef) -> Self {
        let (size, advance) = match window.shape {
            WindowShape::Tumbling { size } => (size, size),
            WindowShape::Hopping { size, advance } => (size, advance),
            // A row's own session; sessions are put together where rows are grouped.
            WindowShape::Session { gap } => (gap, gap),
        };
        Self {
            schema,
            size: millis(size),
            advance: millis(advance).max(1),
            grace: millis(window.grace),
            stream_time: None,
            loaded: false,
            dirty: false,
        }
    }

    /// Start of the first window that holds `time`. As in Kafka Streams, no window of a time after 1970 begins before it.
    fn earliest(&self, time: i64) -> i64 {
        let beyond = time.saturating_sub(self.size).saturating_add(self.advance);
        let first = beyond.saturating_sub(beyond.rem_euclid(self.advance));
        match time < 0 {
            true => first,
            false => first.max(0),
        }
    }

    /// Stream time survives a restart: it decides which windows are closed.
    fn load(&mut self, context: &StepContext<'_>) -> ExecResult<()> {
        if self.loaded {
            return Ok(());
        }
        self.loaded = true;
        if let Some(state) = &context.state
            && let Some(bytes) = state.get(STREAM_TIME_KEY)?
        {
            let bytes: [u8; 8] = bytes
                .as_slice()
                .try_into()
                .map_err(|_| ExecError::Corrupt {
                    what: "stored stream time".into(),
                    detail: format!("{} bytes instead of 8", bytes.len()),
                })?;
            self.stream_time = Some(i64::from_be_bytes(bytes));
        }
        Ok(())
    }
}

/// A duration in milliseconds; plans keep durations within range.
pub fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Operator for AssignWindows {
    fn apply(
        &mut self,
        _input: usize,
        delta: Delta,
        context: &mut StepContext<'_>,
        output: &mut Vec<Delta>,
    ) -> ExecResult<()> {
        self.load(context)?;
        let times = delta.rowtime_millis()?;
        let mut rows: Vec<u32> = Vec::with_capacity(times.len());
        let mut starts: Vec<i64> = Vec::with_capacity(times.len());
        let mut stream_time = self.stream_time.unwrap_or(i64::MIN);
        for (row, &time) in times.iter().enumerate() {
            stream_time = stream_time.max(time);
            let before = rows.len();
            let latest = time.saturating_sub(time.rem_euclid(self.advance));
            let mut start = self.earliest(time);
            while start <= latest {
                let closes = start.saturating_add(self.size).saturating_add(self.grace);
                if closes > stream_time {
                    rows.push(row as u32);
                    starts.push(start);
                }
                let Some(later) = start.checked_add(self.advance) else {
                    break;
                };
                start = later;
            }
            if rows.len() == before {
                *context.late += 1;
            }
        }
        if self.stream_time != Some(stream_time) && !times.is_empty() {
            self.stream_time = Some(stream_time);
            self.dirty = true;
        }
        if rows.is_empty() {
            return Ok(());
        }

        let ends: Vec<i64> = starts
            .iter()
            .map(|start| start.saturating_add(self.size))
            .collect();
        let untouched = self.advance == self.size && rows.len() == times.len();
        let indices = UInt32Array::from(rows);
        let delta = if untouched {
            delta
        } else {
            delta.take(&indices)?
        };
        let mut columns: Vec<ArrayRef> = delta.columns().to_vec();
        for (bounds, position) in [(starts, columns.len()), (ends, columns.len() + 1)] {
            let column = compute::cast(
                &rowtime_array(bounds),
                self.schema.field(position).data_type(),
            )?;
            columns.push(column);
        }
        output.push(Delta::from_columns(
            &self.schema,
            columns,
            Arc::clone(delta.rowtime()),
            delta.shared_diffs(),
        )?);
        Ok(())
    }

    fn checkpoint(&mut self, changes: &mut StateChanges) {
        if let (true, Some(time)) = (std::mem::take(&mut self.dirty), self.stream_time) {
            changes.put(STREAM_TIME_KEY, |value| {
                value.extend_from_slice(&time.to_be_bytes());
            });
        }
    }
}
