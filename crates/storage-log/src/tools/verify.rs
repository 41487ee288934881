//! `verify`: every byte of a data folder.

use std::{fs, path::Path};

use clap::Args;

use crate::{FileDisk, Severity, VerifyReport};

use super::{
    Outcome,
    error::ToolError,
    folder::{FolderArgs, in_use},
    output::Output,
    progress::Progress,
};

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    folder: FolderArgs,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

/// Checks the folder and shows what was found.
pub(super) fn verify(args: &VerifyArgs) -> Result<Outcome, ToolError> {
    let dir = args.folder.log_dir()?;
    let mut progress = Progress::new("checked", Some(bytes_below(&dir)));
    let report = crate::verify(&FileDisk, &dir, &mut |bytes| progress.at(bytes)).map_err(in_use)?;
    drop(progress);
    let mut out = Output::new();
    if args.json {
        out.json(&report)?;
    } else {
        show(&report, &mut out)?;
    }
    out.flush()?;
    Ok(match report.worst() {
        Some(Severity::Damage | Severity::Repairable) => Outcome::Damaged,
        Some(Severity::Note) | None => Outcome::Done,
    })
}

fn show(report: &VerifyReport, out: &mut Output) -> Result<(), ToolError> {
    for finding in &report.findings {
        let severity = match finding.severity {
            Severity::Damage => "DAMAGE    ",
            Severity::Repairable => "repairable",
            Severity::Note => "note      ",
        };
        let offsets = finding.offsets.map_or(String::new(), |(from, to)| {
            format!(", offsets {from} to {to}")
        });
        let path = finding.path.display();
        out.line(format!("{severity} {path}{offsets}: {}", finding.what))?;
    }
    let verdict = match report.worst() {
        Some(Severity::Damage) => "records are lost",
        Some(Severity::Repairable) => {
            "no record is lost; what is damaged is made again when it is needed"
        }
        Some(Severity::Note) | None => "sound",
    };
    out.line(format!(
        "{} topics, {} partitions, {} segments, {} batches, {} records, {} bytes: {verdict}",
        report.topics,
        report.partitions,
        report.segments,
        report.batches,
        report.records,
        report.bytes
    ))
}

/// Size of all files; only for the progress line, so what cannot be read counts nothing.
fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
