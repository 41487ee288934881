//! The plan that the step engine runs: nodes, exchanges, state tables. Pure data.
//!
//! Layout of rows between nodes: a node's delta has the columns of [`Node::schema`] in order, followed by one hidden column, the row's event
//! time (`Timestamp(Millisecond)`, never NULL). Expressions refer to the columns of the input's schema by position, so the hidden column never
//! shifts anything.

mod group;
mod lambda_variables;
mod lower;
mod plan;
mod properties;
mod repartition;
mod source;
mod step_functions;

pub(crate) use lower::{Lowered, Target, lower};
pub use plan::{
    AggregateCall, AggregateFunction, DataflowPlan, Node, NodeId, Operator, Sink, WindowShape,
    WindowSpec,
};
pub use source::plan_source_table;
