//! One operator per file.

mod aggregate;
mod assign_windows;
mod clock;
mod filter;
mod group_array;
mod groups;
mod heap;
mod join;
mod marked_groups;
mod project;
mod retime;
mod small_bytes;
mod unnest;
mod written_groups;

pub use aggregate::{Aggregate, GroupOptions, SessionAggregate, SessionTimes};
pub use assign_windows::{AssignWindows, millis};
pub use filter::Filter;
pub use join::Join;
pub use project::Project;
pub use retime::Retime;
pub use unnest::Unnest;
