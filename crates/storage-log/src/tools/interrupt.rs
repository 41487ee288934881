//! Ctrl-C and SIGTERM: commands finish what they are at, show what they did and end; a second signal ends the process at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};

use super::error::ToolError;

/// Knows whether somebody asked to stop.
#[derive(Debug, Clone)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on.
    pub(super) fn listen() -> Result<Self, ToolError> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds the flag set and ends the process.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&asked))
                .and_then(|_| flag::register(signal, Arc::clone(&asked)))
                .map_err(|error| ToolError::Standard("listen for signals", error))?;
        }
        Ok(Self(asked))
    }

    pub(super) fn was_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
