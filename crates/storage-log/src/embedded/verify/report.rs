//! What a check found.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is wrong: left from something that was interrupted, or not ours.
    Note,
    /// Damaged, and made again from the log when it is needed.
    Repairable,
    /// Records are lost.
    Damage,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file.
    pub path: PathBuf,
    /// Offsets that are concerned: from the first one to, exclusively, the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offsets: Option<(i64, i64)>,
    /// What was found.
    pub what: String,
}

/// What a check covered and found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Topics.
    pub topics: u64,
    /// Partitions.
    pub partitions: u64,
    /// Segments.
    pub segments: u64,
    /// Record batches.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes of all files that were read.
    pub bytes: u64,
    /// What is not as it should be.
    pub findings: Vec<Finding>,
}

impl VerifyReport {
    /// The worst that was found.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// A report that is growing.
pub(super) struct Checked<'a> {
    pub(super) report: VerifyReport,
    progress: &'a mut dyn FnMut(u64),
}

impl<'a> Checked<'a> {
    pub(super) fn new(progress: &'a mut dyn FnMut(u64)) -> Self {
        Self {
            report: VerifyReport::default(),
            progress,
        }
    }

    pub(super) fn count(&mut self, bytes: u64) {
        self.report.bytes += bytes;
        (self.progress)(self.report.bytes);
    }

    pub(super) fn note(&mut self, path: &Path, what: impl Into<String>) {
        self.find(Severity::Note, path, None, what.into());
    }

    pub(super) fn repairable(&mut self, path: &Path, what: impl Into<String>) {
        self.find(Severity::Repairable, path, None, what.into());
    }

    pub(super) fn damage(
        &mut self,
        path: &Path,
        offsets: Option<(i64, i64)>,
        what: impl Into<String>,
    ) {
        self.find(Severity::Damage, path, offsets, what.into());
    }

    pub(super) fn find(
        &mut self,
        severity: Severity,
        path: &Path,
        offsets: Option<(i64, i64)>,
        what: String,
    ) {
        self.report.findings.push(Finding {
            severity,
            path: path.to_owned(),
            offsets,
            what,
        });
    }
}
