//! One operator per file.

mod aggregate;
mod assign_windows;
mod filter;
mod groups;
mod join;
mod project;
mod retime;
mod small_bytes;
mod unnest;

pub use aggregate::{Aggregate, GroupOptions, SessionAggregate, SessionTimes};
pub use assign_windows::{AssignWindows, millis};
pub use filter::Filter;
pub use join::Join;
pub use project::Project;
pub use retime::Retime;
pub use unnest::Unnest;
