//! `highwater bench nexmark` and `highwater bench latency`: the whole system, measured beside what the machine and bare libraries do.
//!
//! Both start a real server in this process, on a folder of its own, and talk to it as any client does. Limits are measured in the same run,
//! so a machine that is busy with something else changes both.

mod latency;
mod nexmark;
mod process;
mod server;

pub use latency::{LatencyArgs, run as latency};
pub use nexmark::{NexmarkArgs, run as nexmark};
