//! `highwater bench nexmark`, `latency` and `steps`: the whole system, measured beside what the machine and bare libraries do.
//!
//! They start a real server in this process, on a folder of its own, and talk to it as any client does. Limits are measured in the same run,
//! so a machine that is busy with something else changes both.

mod latency;
mod nexmark;
mod process;
mod server;
mod steps;

pub use latency::{LatencyArgs, run as latency};
pub use nexmark::{NexmarkArgs, run as nexmark};
pub use steps::{StepsArgs, run as steps};
