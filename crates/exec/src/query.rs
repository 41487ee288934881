//! A running query: the operators of one plan, wired up, with one instance a slot.

use std::{collections::HashMap, sync::Arc, time::Instant};

use arrow::datatypes::SchemaRef;
use highwater_functions::StepClock;
use highwater_planner::{
    catalog::{QueryId, RelationId},
    dataflow::{DataflowPlan, Node, NodeId, Operator as PlanOperator, WindowShape},
};

use crate::{
    delta::Delta,
    error::{ExecError, ExecResult},
    exchange::Exchange,
    operator::{Operator, Rejected, StateMemory, StepContext},
    operators::{
        Aggregate, AssignWindows, Filter, GroupOptions, Join, Project, Retime, SessionAggregate,
        SessionTimes, Unnest, millis,
    },
    source::{SlotRows, source_delta},
    state::{RocksState, SlotState, StateChanges, StateId, StatePrefix},
    workers::Workers,
};

/// What relations changed in a step, by relation.
pub type RelationRows = HashMap<RelationId, Vec<SlotRows>>;

/// A delta with the slot it belongs to.
pub type SlotDelta = (u32, Delta);

/// Which part of a step's rows a graph is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepPart {
    /// More will follow: operators keep the changes that they consolidate.
    More,
    /// All, or the last: the step ends with it.
    Last,
}

/// Counters of one node since the process began.
#[derive(Debug, Clone, Copy, Default)]
pub struct NodeCounters {
    /// Rows taken.
    pub rows_in: u64,
    /// Rows given.
    pub rows_out: u64,
    /// Time spent.
    pub nanos: u64,
}

/// See the module.
pub struct QueryGraph {
    plan: DataflowPlan,
    /// Names the operators' state; `None` for a push query, whose state is in memory only.
    query: Option<QueryId>,
    nodes: Vec<RunningNode>,
    workers: Workers,
    late: u64,
}

struct RunningNode {
    kind: NodeKind,
    inputs: Vec<NodeId>,
    /// How many nodes read its output.
    readers: usize,
    counters: NodeCounters,
}

enum NodeKind {
    Source {
        relation: RelationId,
        projection: Vec<usize>,
        schema: SchemaRef,
        /// Diffs are wanted: of a table, or of a stream whose records without a value are passed on.
        marks: bool,
    },
    Slots(Vec<Slot>),
    Exchange(Exchange),
    Union,
}

/// One slot of a node.
#[derive(Default)]
struct Slot {
    /// Made when the first row comes.
    operator: Option<Box<dyn Operator>>,
    /// Its step has begun and not ended.
    in_step: bool,
}

impl QueryGraph {
    /// Wires up `plan`; its slots are shared out to `workers`.
    pub fn new(plan: DataflowPlan, query: Option<QueryId>, workers: Workers) -> ExecResult<Self> {
        let mut readers = vec![0; plan.nodes.len()];
        for node in &plan.nodes {
            for input in &node.inputs {
                readers[input.0 as usize] += 1;
            }
        }
        let nodes = plan
            .nodes
            .iter()
            .zip(readers)
            .map(|(node, readers)| {
                let kind = match &node.operator {
                    PlanOperator::Source {
                        relation,
                        projection,
                        marks,
                    } => NodeKind::Source {
                        relation: relation.id,
                        projection: projection.clone(),
                        marks: *marks || node.changing,
                        schema: node.schema.clone(),
                    },
                    PlanOperator::Exchange {
                        keys,
                        names,
                        format,
                        slots,
                    } => {
                        let input = input_schema(&plan, node)?;
                        NodeKind::Exchange(Exchange::new(&input, keys, names, format, *slots)?)
                    }
                    PlanOperator::Union => NodeKind::Union,
                    _ => {
                        // Made once here, so that a plan which cannot run is refused before it is part of a step.
                        let first = instance(&plan, node)?;
                        let mut slots = Vec::new();
                        slots.resize_with(node.slots.max(1) as usize, Slot::default);
                        slots[0].operator = Some(first);
                        NodeKind::Slots(slots)
                    }
                };
                Ok(RunningNode {
                    kind,
                    inputs: node.inputs.clone(),
                    readers,
                    counters: NodeCounters::default(),
                })
            })
            .collect::<ExecResult<Vec<_>>>()?;
        Ok(Self {
            plan,
            query,
            nodes,
            workers,
            late: 0,
        })
    }

    /// The plan that runs.
    pub fn plan(&self) -> &DataflowPlan {
        &self.plan
    }

    /// Whether some operator's result depends on earlier rows.
    pub fn is_stateful(&self) -> bool {
        remembers(&self.plan)
    }

    /// Rows dropped since their window had closed.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Counters by node.
    pub fn counters(&self) -> Vec<NodeCounters> {
        self.nodes.iter().map(|node| node.counters).collect()
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.nodes.iter().flat_map(|node| match &node.kind {
            NodeKind::Slots(slots) => slots.as_slice(),
            _ => &[],
        })
    }

    /// Whether a part of a step has run whose last part has not.
    pub fn is_in_step(&self) -> bool {
        self.slots().any(|slot| slot.in_step)
    }

    /// About how many rows the end of the running step would give at once.
    pub fn held(&self) -> usize {
        let operators = self.slots().filter_map(|slot| slot.operator.as_ref());
        operators.map(|operator| operator.held()).sum()
    }

    /// What each node keeps in memory, all its slots together.
    pub fn memory(&self) -> impl Iterator<Item = StateMemory> {
        self.nodes.iter().map(|node| {
            let mut sum = StateMemory::default();
            if let NodeKind::Slots(slots) = &node.kind {
                let operators = slots.iter().filter_map(|slot| slot.operator.as_ref());
                operators.for_each(|operator| sum += operator.memory());
            }
            sum
        })
    }

    /// Lets each operator evict the same part of what it could: `wanted` bytes of `evictable`.
    pub fn evict(&mut self, wanted: usize, evictable: usize) {
        for running in &mut self.nodes {
            let NodeKind::Slots(slots) = &mut running.kind else {
                continue;
            };
            for operator in slots.iter_mut().filter_map(|slot| slot.operator.as_mut()) {
                let memory = operator.memory();
                let own = memory.bytes.saturating_sub(memory.unwritten);
                let part = own as u128 * wanted as u128 / evictable.max(1) as u128;
                if part > 0 {
                    operator.evict(part as usize);
                }
            }
        }
    }

    /// Runs one step, or a part of one: the changes of the sources through the graph once, in topological order. With `first`, operators that
    /// have a result without any input give it when the step ends.
    pub fn run(
        &mut self,
        first: bool,
        part: StepPart,
        sources: &RelationRows,
        state: Option<&RocksState>,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<Vec<SlotDelta>> {
        let mut outputs: Vec<Vec<SlotDelta>> = Vec::with_capacity(self.nodes.len());
        let mut left: Vec<usize> = self.nodes.iter().map(|node| node.readers).collect();
        for position in 0..self.nodes.len() {
            let inputs = self.nodes[position].inputs.clone();
            let deltas: Vec<Vec<SlotDelta>> = inputs
                .iter()
                .map(|input| {
                    let input = input.0 as usize;
                    left[input] -= 1;
                    if left[input] == 0 {
                        std::mem::take(&mut outputs[input])
                    } else {
                        outputs[input].clone()
                    }
                })
                .collect();
            let started = Instant::now();
            let rows_in: usize = deltas.iter().flatten().map(|(_, delta)| delta.rows()).sum();
            let output = self.run_node(position, first, part, deltas, sources, state, rejected)?;
            let counters = &mut self.nodes[position].counters;
            let rows_out: usize = output.iter().map(|(_, delta)| delta.rows()).sum();
            counters.rows_in += if inputs.is_empty() { rows_out } else { rows_in } as u64;
            counters.rows_out += rows_out as u64;
            counters.nanos += started.elapsed().as_nanos() as u64;
            outputs.push(output);
        }
        Ok(outputs.pop().unwrap_or_default())
    }

    #[allow(clippy::too_many_arguments)] // The parts of one step, borrowed apart from the graph itself.
    fn run_node(
        &mut self,
        position: usize,
        first: bool,
        part: StepPart,
        inputs: Vec<Vec<SlotDelta>>,
        sources: &RelationRows,
        state: Option<&RocksState>,
        rejected: &mut Vec<Rejected>,
    ) -> ExecResult<Vec<SlotDelta>> {
        let Self {
            plan,
            query,
            nodes,
            workers,
            late,
        } = self;
        match &mut nodes[position].kind {
            NodeKind::Source {
                relation,
                projection,
                schema,
                marks,
            } => sources
                .get(relation)
                .into_iter()
                .flatten()
                .map(|rows| Ok((rows.slot, source_delta(rows, projection, schema, *marks)?)))
                .collect(),
            NodeKind::Exchange(exchange) => {
                let deltas: Vec<Delta> = inputs
                    .into_iter()
                    .flatten()
                    .map(|(_, delta)| delta)
                    .collect();
                let rows = deltas.iter().map(Delta::rows).sum();
                let mut routed = Vec::new();
                for part in workers.map(rows, deltas, |delta| exchange.route(delta)) {
                    routed.extend(part?);
                }
                // A stable sort: within a slot, rows keep the order of their source partitions.
                routed.sort_by_key(|(slot, _)| *slot);
                Ok(routed)
            }
            NodeKind::Union => {
                let mut all: Vec<SlotDelta> = inputs.into_iter().flatten().collect();
                all.sort_by_key(|(slot, _)| *slot);
                Ok(all)
            }
            NodeKind::Slots(slots) => {
                let node = &plan.nodes[position];
                // Only a projection can do without a row's columns.
                let needs_values = !node
                    .inputs
                    .iter()
                    .any(|input| plan.nodes[input.0 as usize].changing)
                    && !matches!(node.operator, PlanOperator::Project { .. });
                let mut by_slot: Vec<Vec<(usize, Delta)>> = vec![Vec::new(); slots.len()];
                for (input, deltas) in inputs.into_iter().enumerate() {
                    for (slot, delta) in deltas {
                        let slot = slot as usize % by_slot.len();
                        let delta = if needs_values { delta.valued()? } else { delta };
                        if delta.rows() > 0 {
                            by_slot[slot].push((input, delta));
                        }
                    }
                }
                let mut pieces = Vec::new();
                let mut rows = 0;
                for (number, (slot, deltas)) in slots.iter_mut().zip(by_slot).enumerate() {
                    slot.in_step |= !deltas.is_empty() || (first && number == 0);
                    if !slot.in_step {
                        continue;
                    }
                    let operator = match &mut slot.operator {
                        Some(operator) => operator,
                        empty => empty.insert(instance(plan, node)?),
                    };
                    rows += deltas.iter().map(|(_, delta)| delta.rows()).sum::<usize>();
                    if part == StepPart::Last {
                        slot.in_step = false;
                        rows += operator.held();
                    }
                    let number = number as u32;
                    let prefix = query.map(|query| StateId::operator(query, node.id).slot(number));
                    pieces.push(SlotPiece {
                        slot: number,
                        operator: &mut **operator,
                        deltas,
                        state: state.zip(prefix).map(|(state, prefix)| state.slot(prefix)),
                        draws: draws_of(*query, node.id, number),
                    });
                }
                let mut output = Vec::new();
                for made in workers.map(rows, pieces, |piece| piece.run(part)) {
                    let made = made?;
                    *late += made.late;
                    rejected.extend(made.rejected);
                    let deltas = made.deltas.into_iter().filter(|delta| delta.rows() > 0);
                    output.extend(deltas.map(|delta| (made.slot, delta)));
                }
                Ok(output)
            }
        }
    }

    /// The checkpoint that took the last changes is written.
    pub fn checkpointed(&mut self) {
        for running in &mut self.nodes {
            if let NodeKind::Slots(slots) = &mut running.kind {
                slots
                    .iter_mut()
                    .filter_map(|slot| slot.operator.as_mut())
                    .for_each(|operator| operator.checkpointed());
            }
        }
    }

    /// Begins a checkpoint of what the operators' state changed since the last one, by state prefix.
    pub fn checkpoint(&mut self, changes: &mut Vec<(StatePrefix, StateChanges)>) {
        self.for_each_operator(|prefix, operator| {
            let mut slot_changes = StateChanges::default();
            operator.checkpoint(&mut slot_changes);
            if !slot_changes.is_empty() {
                changes.push((prefix, slot_changes));
            }
        });
    }

    /// Hands over more of it, and counts it off `budget`; answers whether that was all.
    pub fn checkpoint_more(
        &mut self,
        changes: &mut Vec<(StatePrefix, StateChanges)>,
        budget: &mut usize,
    ) -> bool {
        let mut done = true;
        self.for_each_operator(|prefix, operator| {
            // The last ones: those before are of a checkpoint that failed.
            let known = changes.iter_mut().rev().find(|(of, _)| *of == prefix);
            if let Some((_, slot_changes)) = known {
                done &= operator.checkpoint_more(slot_changes, budget);
                return;
            }
            let mut slot_changes = StateChanges::default();
            done &= operator.checkpoint_more(&mut slot_changes, budget);
            if !slot_changes.is_empty() {
                changes.push((prefix, slot_changes));
            }
        });
        done
    }

    /// All operators whose state has a name.
    fn for_each_operator(&mut self, mut visit: impl FnMut(StatePrefix, &mut dyn Operator)) {
        let Some(query) = self.query else { return };
        for (node, running) in self.plan.nodes.iter().zip(&mut self.nodes) {
            let NodeKind::Slots(slots) = &mut running.kind else {
                continue;
            };
            for (number, slot) in (0..).zip(slots) {
                debug_assert!(!slot.in_step, "checkpoints are taken between steps");
                if let Some(operator) = &mut slot.operator {
                    visit(
                        StateId::operator(query, node.id).slot(number),
                        &mut **operator,
                    );
                }
            }
        }
    }
}

/// Whether some operator of a plan has a result that depends on earlier rows.
pub fn remembers(plan: &DataflowPlan) -> bool {
    plan.nodes.iter().any(|node| keeps_state(&node.operator))
}

/// Whether an operator keeps something from step to step.
pub fn keeps_state(operator: &PlanOperator) -> bool {
    matches!(
        operator,
        PlanOperator::Aggregate { .. }
            | PlanOperator::SessionAggregate { .. }
            | PlanOperator::Join { .. }
    )
}

/// What one slot of one operator has to do in a step, apart from all other slots.
struct SlotPiece<'a> {
    slot: u32,
    operator: &'a mut dyn Operator,
    deltas: Vec<(usize, Delta)>,
    state: Option<SlotState<'a>>,
    draws: u64,
}

/// What came of it.
struct SlotOutput {
    slot: u32,
    deltas: Vec<Delta>,
    late: u64,
    rejected: Vec<Rejected>,
}

impl SlotPiece<'_> {
    fn run(self, part: StepPart) -> ExecResult<SlotOutput> {
        let mut output = SlotOutput {
            slot: self.slot,
            deltas: Vec::new(),
            late: 0,
            rejected: Vec::new(),
        };
        StepClock::begin_operator(self.draws);
        let mut context = StepContext {
            state: self.state,
            late: &mut output.late,
            rejected: &mut output.rejected,
        };
        for (input, delta) in self.deltas {
            self.operator
                .apply(input, delta, &mut context, &mut output.deltas)?;
        }
        if part == StepPart::Last {
            self.operator.step_end(&mut context, &mut output.deltas)?;
        }
        Ok(output)
    }
}

/// Tells one slot of one operator apart from all others of a step.
fn draws_of(query: Option<QueryId>, node: NodeId, slot: u32) -> u64 {
    // Push queries (which have no number) need not repeat what they drew.
    let query = query.map_or(0, |query| query.0);
    (query << 32) ^ (u64::from(node.0) << 16) ^ u64::from(slot)
}

fn input_schema(plan: &DataflowPlan, node: &Node) -> ExecResult<SchemaRef> {
    let input = node
        .inputs
        .first()
        .ok_or_else(|| ExecError::Internal("an operator lacks its input".into()))?;
    Ok(Arc::clone(&plan.nodes[input.0 as usize].schema))
}

/// One slot of an operator.
fn instance(plan: &DataflowPlan, node: &Node) -> ExecResult<Box<dyn Operator>> {
    let input = input_schema(plan, node)?;
    let changing = node
        .inputs
        .iter()
        .any(|input| plan.nodes[input.0 as usize].changing);
    Ok(match &node.operator {
        PlanOperator::Filter { predicate } => Box::new(Filter::new(Arc::clone(predicate))),
        PlanOperator::Project { expressions } => {
            Box::new(Project::new(expressions.clone(), node.schema.clone()))
        }
        PlanOperator::AssignWindows { window } => {
            Box::new(AssignWindows::new(window, node.schema.clone()))
        }
        PlanOperator::Aggregate {
            group,
            calls,
            window,
            finals_only,
            keeps_empty,
        } => Box::new(Aggregate::new(
            &input,
            node.schema.clone(),
            group,
            calls,
            window.as_ref(),
            GroupOptions {
                changing,
                finals_only: *finals_only,
                keeps_empty: *keeps_empty,
            },
        )?),
        PlanOperator::SessionAggregate {
            group,
            calls,
            window,
            finals_only,
        } => {
            let WindowShape::Session { gap } = window.shape else {
                return Err(ExecError::Internal(
                    "a session aggregate has other windows".into(),
                ));
            };
            let times = SessionTimes {
                gap: millis(gap),
                grace: millis(window.grace),
                finals_only: *finals_only,
                retention: window.retention.map(millis),
            };
            Box::new(SessionAggregate::new(
                &input,
                node.schema.clone(),
                group,
                calls,
                times,
            )?)
        }
        PlanOperator::Retime { column, format } => Box::new(Retime::new(
            node.schema.clone(),
            *column,
            format.as_deref(),
        )?),
        PlanOperator::Unnest { columns } => {
            Box::new(Unnest::new(columns.clone(), node.schema.clone()))
        }
        PlanOperator::Join {
            kind,
            left,
            right,
            order,
        } => {
            let right_input = node
                .inputs
                .get(1)
                .ok_or_else(|| ExecError::Internal("a join lacks its second input".into()))?;
            let right_schema = &plan.nodes[right_input.0 as usize].schema;
            Box::new(Join::new(
                *kind,
                [&input, right_schema],
                node.schema.clone(),
                [left, right],
                order,
            )?)
        }
        PlanOperator::Source { .. } | PlanOperator::Exchange { .. } | PlanOperator::Union => {
            return Err(ExecError::Internal(
                "a node without slots has no operator instance".into(),
            ));
        }
    })
}
