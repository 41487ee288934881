//! Grouping and folding, with and without windows.

mod accumulator;
mod distinct;
mod grouped;
mod groups;
mod min_max;
mod sum;

pub use grouped::Aggregate;
