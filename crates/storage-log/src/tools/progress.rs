//! How far long work is, on standard error, if somebody looks at it.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

/// How often the line changes.
const EVERY: Duration = Duration::from_millis(200);

/// A line that is written over and over.
pub(super) struct Progress {
    shown: bool,
    last: Instant,
    began: Instant,
    doing: &'static str,
    total: Option<u64>,
}

impl Progress {
    /// `doing` says what; `total` how many bytes it will be, if that is known.
    pub(super) fn new(doing: &'static str, total: Option<u64>) -> Self {
        let now = Instant::now();
        Self {
            shown: io::stderr().is_terminal(),
            last: now,
            began: now,
            doing,
            total,
        }
    }

    /// For work whose result goes to standard output: nothing is shown where that would stand between the lines.
    pub(super) fn beside_output(doing: &'static str, total: Option<u64>) -> Self {
        let mut progress = Self::new(doing, total);
        progress.shown &= !io::stdout().is_terminal();
        progress
    }

    /// So many bytes are done.
    pub(super) fn at(&mut self, bytes: u64) {
        if !self.shown || self.last.elapsed() < EVERY {
            return;
        }
        self.last = Instant::now();
        let megabytes = bytes as f64 / 1e6;
        let rate = megabytes / self.began.elapsed().as_secs_f64();
        let of = self.total.map_or(String::new(), |total| {
            format!(" of {:.1}", total as f64 / 1e6)
        });
        eprint!(
            "\r{} {megabytes:.1}{of} MB, {rate:.0} MB/s\x1b[K",
            self.doing
        );
        let _ = io::stderr().flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
