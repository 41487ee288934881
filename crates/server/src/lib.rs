//! Process, sessions, serving.

pub mod config;
pub mod pgwire;
pub mod server;
pub mod session;
pub mod sqlstate;
