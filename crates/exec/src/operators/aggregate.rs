//! Grouping and folding, with and without windows.

mod accumulator;
mod adapters;
mod collect;
mod counted;
mod distinct;
mod grouped;
mod min_max;
mod moments;
mod one_value;
mod ordered_bytes;
mod ordered_counts;
mod session;
mod sum;
mod value_counts;

pub use grouped::{Aggregate, GroupOptions};
pub use session::{SessionAggregate, SessionTimes};
