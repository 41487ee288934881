//! Waits, as lines of 80 columns for people and one document for programs.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use highwater_storage_log::tools::bench::meter::percentile;
use serde::Serialize;

use super::probe::Waits;

/// See the module.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    lines: Vec<Line>,
    /// Rows a second at most, and what half of that became.
    peak_rows_per_second: f64,
    load_rows_per_second: f64,
}

/// Milliseconds below which half, 99 % and 99.9 % of a kind lie.
#[derive(Debug, Serialize)]
struct Line {
    load: String,
    what: String,
    rows: usize,
    p50: f64,
    p99: f64,
    p999: f64,
}

impl Report {
    pub(super) fn disk(&mut self, when: &str, mut waits: Vec<f64>) {
        if self.lines.is_empty() {
            println!(
                "{:13} {:34} {:>6}   p50 ms   p99 ms  p999 ms",
                "load", "from .. to", "rows"
            );
        }
        self.line("", &format!("fdatasync of 100 bytes, {when}"), &mut waits);
    }

    pub(super) fn load(&mut self, peak: f64, reached: f64) {
        self.peak_rows_per_second = peak;
        self.load_rows_per_second = reached;
        println!("peak: {peak:.0} rows/s; the load beside the following: {reached:.0} rows/s");
    }

    pub(super) fn waits(&mut self, load: &str, waits: &Waits) {
        for (what, waits) in [
            ("send to acknowledgement", &waits.acknowledged),
            ("send to push subscriber", &waits.send_to_push),
            (
                "acknowledgement to push subscriber",
                &waits.acknowledged_to_push,
            ),
            ("send to pull query's answer", &waits.send_to_pull),
            (
                "acknowledgement to pull's answer",
                &waits.acknowledged_to_pull,
            ),
        ] {
            self.line(load, what, &mut waits.clone());
        }
    }

    fn line(&mut self, load: &str, what: &str, waits: &mut [f64]) {
        let line = Line {
            load: load.into(),
            what: what.into(),
            rows: waits.len(),
            p50: percentile(waits, 0.5),
            p99: percentile(waits, 0.99),
            p999: percentile(waits, 0.999),
        };
        println!(
            "{:13} {:34} {:>6} {:>8.2} {:>8.2} {:>8.2}",
            line.load, line.what, line.rows, line.p50, line.p99, line.p999
        );
        self.lines.push(line);
    }

    /// Writes the document.
    pub(super) fn finish(&self, json: Option<&Path>) -> Result<()> {
        let Some(path) = json else { return Ok(()) };
        fs::write(path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
