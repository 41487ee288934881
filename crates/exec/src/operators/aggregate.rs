//! Grouping and folding, with and without windows.

mod accumulator;
mod adapters;
mod collect;
mod counted;
mod distinct;
mod grouped;
mod min_max;
mod moments;
mod ordered_bytes;
mod session;
mod sum;

pub use grouped::{Aggregate, GroupOptions};
pub use session::{SessionAggregate, SessionTimes};
