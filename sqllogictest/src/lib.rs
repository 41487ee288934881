//! Behaviour tests of the `highwater` binary, through the wire.
//!
//! Nothing here links the server: [`ServerProcess`] starts the binary that the build put beside the test executable, on a folder and ports
//! of its own, and can end it with SIGKILL or SIGTERM at any time. [`Session`] is one client connection as the `sqllogictest` crate wants
//! it, with directives for push queries and COPY. [`run_case`] plays a `.slt` file, either straight through or with a SIGKILL and a restart
//! in its middle; the expected results are the same.

#![warn(missing_docs)]

mod directive;
mod engine;
mod error;
mod runner;
mod server;
mod watch;

pub use engine::{ColumnLetter, Session};
pub use error::WireError;
pub use runner::{Mode, run_case};
pub use server::{Endpoint, ServerProcess};
pub use watch::Watch;
