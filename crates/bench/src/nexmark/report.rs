//! Figures, as lines of 80 columns for people and one document for programs.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use highwater_server::config::ByteSize;
use serde::Serialize;

use super::{
    answer::Difference,
    limits::{DiskLimits, Limits},
    load::Loaded,
    queries::{Output, Query},
};

/// What a query took.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Measured {
    /// Wall seconds.
    pub(super) wall: f64,
    /// CPU seconds of the whole process.
    pub(super) cpu: f64,
    /// Rows of its result.
    pub(super) rows: u64,
    /// Bytes of state and checkpoint on disk.
    pub(super) state_bytes: u64,
    /// Memory of the process when it began.
    pub(super) memory_before: u64,
    /// Most memory of the process while it ran.
    pub(super) peak_memory: u64,
    /// Whether the batch engine has the same result, if that was asked.
    pub(super) matches: Option<bool>,
}

/// A query with its figures.
#[derive(Debug, Serialize)]
struct Line {
    query: String,
    what: String,
    bids_per_second: f64,
    bids_per_cpu_second: f64,
    megabytes_per_second: f64,
    /// Of the bare work on the same rows, per CPU second.
    of_bare: f64,
    #[serde(flatten)]
    measured: Measured,
}

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) loaded: Loaded,
    /// Bytes for the state of the queries, if they were given.
    state_memory: Option<u64>,
    limits: Option<Limits>,
    disk: Option<DiskLimits>,
    queries: Vec<Line>,
}

impl Report {
    pub(super) fn begin(loaded: Loaded, state_memory: Option<ByteSize>) -> Self {
        println!(
            "{} events, of which {} are bids, {:.0} MB of JSON in {} partitions\n",
            loaded.set.events,
            loaded.bids,
            loaded.bid_bytes as f64 / 1e6,
            loaded.set.partitions
        );
        let state_memory = state_memory.map(|ByteSize(bytes)| bytes);
        if let Some(bytes) = state_memory {
            println!("{:.0} MB for state\n", bytes as f64 / 1e6);
        }
        println!("query    M bids/s  M bids/s    MB/s   of       rows out  state  peak result");
        println!("             wall       CPU     CPU  bare                   MB    MB");
        Self {
            loaded,
            state_memory,
            limits: None,
            disk: None,
            queries: Vec::new(),
        }
    }

    /// Takes the limits; of several measurements the best counts.
    pub(super) fn limits(&mut self, limits: Limits) {
        self.limits = Some(match self.limits {
            Some(before) => before.better(limits),
            None => limits,
        });
    }

    pub(super) fn disk(&mut self, disk: DiskLimits) {
        self.disk = Some(disk);
    }

    pub(super) fn query(&mut self, query: &Query, measured: Measured) {
        let bids = self.loaded.bids as f64;
        let bare = self.limits.map_or(f64::NAN, |limits| match query.output {
            Output::Stream => limits.decode_encode,
            Output::Table => limits.decode,
        });
        let line = Line {
            query: query.name.clone(),
            what: query.what.clone(),
            bids_per_second: bids / measured.wall,
            bids_per_cpu_second: bids / measured.cpu,
            megabytes_per_second: self.loaded.bid_bytes as f64 / 1e6 / measured.cpu,
            of_bare: bids / measured.cpu / bare,
            measured,
        };
        println!("{}", line.text());
        if self.state_memory.is_some() {
            let grown = measured.peak_memory.saturating_sub(measured.memory_before);
            println!(
                "{:>68} {:>5.0}",
                "of the peak, what the process did not have before",
                grown as f64 / 1e6
            );
        }
        self.queries.push(line);
    }

    /// The queries whose results were not the batch engine's.
    pub(super) fn wrong(&self) -> impl Iterator<Item = &str> {
        let wrong = |line: &&Line| line.measured.matches == Some(false);
        self.queries
            .iter()
            .filter(wrong)
            .map(|line| line.query.as_str())
    }

    /// Shows the limits, and writes the document.
    pub(super) fn finish(&self, json: Option<&Path>) -> Result<()> {
        if let (Some(limits), Some(disk)) = (self.limits, self.disk) {
            println!("\nlimits, one core: the best of before and after   M bids/s     MB/s");
            for (what, rate) in [
                ("simd-json, parse to a tape", limits.library),
                ("bare decode, 7 of 7 columns", limits.decode),
                ("bare decode, 4 of 7 columns", limits.decode_grouped),
                (
                    "bare decode of 7, encode of 5 columns",
                    limits.decode_encode,
                ),
                ("memcpy, record by record", limits.copy),
            ] {
                println!(
                    "{what:46} {:>11.3} {:>8.0}",
                    rate / 1e6,
                    rate * limits.bid_bytes / 1e6
                );
            }
            println!(
                "{:46} {:>20.0}",
                "disk, 1-MiB writes, fdatasync per 100 MB", disk.write
            );
            println!(
                "{:46} {:>18.0}/s",
                "disk, fdatasync of 100 bytes", disk.syncs
            );
            println!(
                "\nof bare: bids per CPU second, beside decode and encode for q0 q1 q2 q10 q14 q21\nq22, beside decode for the others. CPU is that of the whole process."
            );
        }
        if let Some(path) = json {
            fs::write(path, serde_json::to_vec_pretty(self)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

impl Line {
    fn text(&self) -> String {
        let Measured {
            rows,
            state_bytes,
            peak_memory,
            matches,
            ..
        } = self.measured;
        let result = match matches {
            None => "",
            Some(true) => " equal",
            Some(false) => " WRONG",
        };
        format!(
            "{:6} {:>10.3} {:>9.3} {:>7.0} {:>5.2} {rows:>14} {:>6.0} {:>5.0}{result}",
            self.query,
            self.bids_per_second / 1e6,
            self.bids_per_cpu_second / 1e6,
            self.megabytes_per_second,
            self.of_bare,
            state_bytes as f64 / 1e6,
            peak_memory as f64 / 1e6,
        )
    }
}

/// Tells how a result is wrong.
pub(super) fn show_difference(query: &Query, difference: &Difference) {
    let Difference {
        continuous,
        batch,
        unexpected,
        missing,
    } = difference;
    eprintln!(
        "{}: {} rows, the batch engine has {}",
        query.name, continuous.rows, batch.rows
    );
    for row in unexpected {
        eprintln!("  only here:  {row}");
    }
    for row in missing {
        eprintln!("  only there: {row}");
    }
}
