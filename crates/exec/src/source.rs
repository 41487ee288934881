//! Records in: one node for each relation that is read from its topic, shared by all queries of the pipeline that read it.

mod rows;
mod topic;
mod upsert;

pub use rows::{SlotRows, source_delta};
pub use topic::{Fetched, TopicSource};
pub use upsert::upsert;
