//! One operator per file.

mod aggregate;
mod assign_windows;
mod filter;
mod project;

pub use aggregate::Aggregate;
pub use assign_windows::{AssignWindows, millis};
pub use filter::Filter;
pub use project::Project;
