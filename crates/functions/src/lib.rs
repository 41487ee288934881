//! ksqlDB's function library for DataFusion.
//!
//! A function is a constant in a table of its family (`scalar`): name, description, examples and overloads, each with typed parameters and the Rust
//! function that computes a column. [`register`] gives all functions of a [`Dialect`] to DataFusion; [`catalog`] documents them, with aggregates and
//! table functions, which the engine runs as operators.
//!
//! What holds for every function:
//! - The arguments have the types of an overload when it runs: `signature` chooses it, DataFusion casts.
//! - A row that a function cannot serve becomes NULL and is reported; [`take_row_errors`] hands the reports over. A batch never fails for one row.
//! - The value depends on the arguments alone; the few functions of clock and dice read [`StepClock`].
//! - What a row may allocate is bounded by constants (lengths of padding, of series, levels of JSON, size of a compiled pattern).
//!
//! Lambdas are DataFusion's; `lambda` has the functions that take them. Java's date patterns come from the formats, Java's regular expressions are
//! translated in `pattern`.

mod aggregate_docs;
mod bounded;
mod cache;
mod call;
mod cast;
mod doc;
mod function;
mod json;
mod lambda;
mod pattern;
mod registry;
mod row_errors;
mod scalar;
mod signature;
mod step_clock;
mod table;
pub mod types;
mod value_text;

pub use cast::CAST;
pub use doc::{FunctionDoc, Variant, catalog};
pub use function::Category;
pub use registry::{
    Dialect, expr_planners, higher_order_functions, reads_step, register, scalar_functions,
};
pub use row_errors::{RowErrors, take_row_errors};
pub use scalar::{TIME_UNITS, UNIT_FUNCTIONS};
pub use signature::{Kind, Param};
pub use step_clock::{StepClock, StepMoment};
pub use table::CUBE;
