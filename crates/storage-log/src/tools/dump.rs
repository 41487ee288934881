//! `dump`: segment files, indexes and snapshots as they are, for whoever looks for what went wrong. Files are only read, and need not be whole; other
//! readers and a running server are not disturbed.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use serde_json::{Map, Value, json};

use crate::{
    BatchView, LogResult,
    embedded::{
        index::{self, SegmentIndex},
        layout::SegmentFile,
        scan::{BatchScanner, ScanStart},
        snapshot,
    },
};

use super::{
    Outcome,
    error::ToolError,
    interrupt::Interrupt,
    output::{Output, put_bytes, readable},
    progress::Progress,
    time,
};

/// Arguments of `dump`.
#[derive(Debug, Clone, Args)]
pub struct DumpArgs {
    /// Files of a partition (.log, .index, .timeindex, .txnindex, .snapshot, or small ones), or its folder for all its segments
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the records too
    #[arg(long, short)]
    records: bool,
    /// One JSON document a line
    #[arg(long)]
    json: bool,
}

/// Named values in the order in which they are printed.
type Fields = Vec<(String, Value)>;

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Fields {
    fields.map(|(name, value)| (name.into(), value)).into()
}

struct Dump<'a> {
    args: &'a DumpArgs,
    out: Output,
    interrupt: Interrupt,
    outcome: Outcome,
    /// Bytes of the files that are done.
    done: u64,
    progress: Progress,
}

/// Prints the files one after the other.
pub(super) fn dump(args: &DumpArgs) -> Result<Outcome, ToolError> {
    let mut dump = Dump {
        args,
        out: Output::new(),
        interrupt: Interrupt::listen()?,
        outcome: Outcome::Done,
        done: 0,
        progress: Progress::beside_output("read", None),
    };
    for path in &args.files {
        for path in files_at(path)? {
            dump.file(&path)?;
            dump.out.flush()?;
            if dump.outcome == Outcome::Interrupted {
                return Ok(Outcome::Interrupted);
            }
        }
    }
    Ok(dump.outcome)
}

/// A file, or the segments in a folder.
fn files_at(path: &Path) -> Result<Vec<PathBuf>, ToolError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut segments = Vec::new();
    for entry in fs::read_dir(path).map_err(ToolError::file(path))? {
        let entry = entry.map_err(ToolError::file(path))?.path();
        if entry
            .extension()
            .is_some_and(|extension| extension == "log")
        {
            segments.push(entry);
        }
    }
    segments.sort_unstable();
    Ok(segments)
}

impl Dump<'_> {
    fn file(&mut self, path: &Path) -> Result<(), ToolError> {
        if !self.args.json {
            self.out.line(format!("{}", path.display()))?;
        }
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        match SegmentFile::parse(name) {
            Some((SegmentFile::Log, base)) => self.segment(path, base),
            Some((SegmentFile::OffsetIndex, base)) => self.offset_index(path, base),
            Some((SegmentFile::TimeIndex, base)) => self.time_index(path, base),
            Some((SegmentFile::TransactionIndex, _)) => self.transaction_index(path),
            Some((SegmentFile::Snapshot, _)) => self.snapshot(path),
            Some((SegmentFile::Seal, _)) | None => self.small_file(path),
        }
    }

    fn segment(&mut self, path: &Path, base: i64) -> Result<(), ToolError> {
        let file = File::open(path).map_err(ToolError::file(path))?;
        let bytes = file.metadata().map_err(ToolError::file(path))?.len();
        let mut scanner =
            BatchScanner::new(Arc::new(file), ScanStart::of_segment(base), bytes, false);
        loop {
            if self.interrupt.was_asked() {
                self.outcome = Outcome::Interrupted;
                return Ok(());
            }
            match scanner.next() {
                Ok(None) => {
                    self.done += bytes;
                    return Ok(());
                }
                Ok(Some((position, batch))) => {
                    self.batch(position, &batch)?;
                    self.progress.at(self.done + position);
                }
                Err(error) => {
                    let rest = bytes - scanner.position();
                    return self.damaged(format!(
                        "position {}, {rest} bytes to the end: {error}",
                        scanner.position()
                    ));
                }
            }
        }
    }

    fn batch(&mut self, position: u64, batch: &BatchView) -> Result<(), ToolError> {
        self.show("  ", describe(position, batch))?;
        if self.args.records {
            for record in records(batch)? {
                self.show("    ", record)?;
            }
        }
        Ok(())
    }

    fn offset_index(&mut self, path: &Path, base: i64) -> Result<(), ToolError> {
        let bytes = fs::read(path).map_err(ToolError::file(path))?;
        let Some(index) = SegmentIndex::decode(base, &bytes, &[]) else {
            return self.damaged("its length is not that of whole entries".into());
        };
        for (offset, position) in index.offset_entries() {
            self.show(
                "  ",
                fields([("offset", offset.into()), ("position", position.into())]),
            )?;
        }
        Ok(())
    }

    fn time_index(&mut self, path: &Path, base: i64) -> Result<(), ToolError> {
        let bytes = fs::read(path).map_err(ToolError::file(path))?;
        let Some(index) = SegmentIndex::decode(base, &[], &bytes) else {
            return self.damaged("its length is not that of whole entries".into());
        };
        for (timestamp, offset) in index.time_entries() {
            self.show(
                "  ",
                fields([("timestamp", timestamp.into()), ("offset", offset.into())]),
            )?;
        }
        Ok(())
    }

    fn transaction_index(&mut self, path: &Path) -> Result<(), ToolError> {
        let bytes = fs::read(path).map_err(ToolError::file(path))?;
        let Some(aborted) = index::decode_aborted(&bytes) else {
            return self.damaged("it does not hold whole entries of version 0".into());
        };
        for transaction in aborted {
            let entry = fields([
                ("producer", transaction.producer.into()),
                ("first_offset", transaction.first_offset.into()),
                ("marker_offset", transaction.last_offset.into()),
                ("last_stable_offset", transaction.last_stable_offset.into()),
            ]);
            self.show("  ", entry)?;
        }
        Ok(())
    }

    fn snapshot(&mut self, path: &Path) -> Result<(), ToolError> {
        let bytes = fs::read(path).map_err(ToolError::file(path))?;
        let Some(producers) = snapshot::decode(&bytes) else {
            return self.damaged("its checksum or its length does not match".into());
        };
        let mut entries: Vec<_> = producers.iter().collect();
        entries.sort_unstable_by_key(|(id, _)| *id);
        for (id, entry) in entries {
            let last_offset = entry.recent.back().map(|batch| batch.last_offset);
            let producer = fields([
                ("producer", id.into()),
                ("epoch", entry.epoch.into()),
                ("last_sequence", entry.last_sequence().into()),
                ("last_offset", last_offset.into()),
                ("last_timestamp", entry.last_timestamp.into()),
                ("open_transaction", entry.open_transaction.into()),
            ]);
            self.show("  ", producer)?;
        }
        Ok(())
    }

    fn small_file(&mut self, path: &Path) -> Result<(), ToolError> {
        let bytes = fs::read(path).map_err(ToolError::file(path))?;
        if self.args.json {
            let mut document = Map::new();
            document.insert("file".into(), path.display().to_string().into());
            put_bytes(&mut document, "content", Some(&bytes));
            return self.out.json(&document);
        }
        for line in bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            self.out.line(format!("  {}", readable(line)))?;
        }
        Ok(())
    }

    fn damaged(&mut self, what: String) -> Result<(), ToolError> {
        self.outcome = Outcome::Damaged;
        if self.args.json {
            self.out.json(&json!({ "damaged": what }))
        } else {
            self.out.line(format!("  DAMAGED at {what}"))
        }
    }

    fn show(&mut self, indent: &str, fields: Fields) -> Result<(), ToolError> {
        if self.args.json {
            return self.out.json(&fields.into_iter().collect::<Map<_, _>>());
        }
        let there = fields.iter().filter(|(_, value)| !value.is_null());
        let words: Vec<_> = there
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}={}", readable(text.as_bytes())),
                other => format!("{name}={other}"),
            })
            .collect();
        self.out.line(format!("{indent}{}", words.join(" ")))
    }
}

fn describe(position: u64, batch: &BatchView) -> Fields {
    let header = batch.header();
    let producer = header.producer();
    let control = batch.control().ok().flatten();
    let control = control.map(|marker| format!("{:?}", marker.kind).to_lowercase());
    fields([
        ("base_offset", header.base_offset.into()),
        ("last_offset", header.last_offset().into()),
        ("position", position.into()),
        ("bytes", header.total_bytes.into()),
        ("records", header.record_count.into()),
        ("codec", batch.compression().to_string().into()),
        ("max_timestamp", header.max_timestamp.into()),
        ("time", time::show(header.max_timestamp).into()),
        ("producer", producer.map(|producer| producer.id.0).into()),
        ("epoch", producer.map(|producer| producer.epoch).into()),
        (
            "sequence",
            producer.map(|producer| producer.base_sequence).into(),
        ),
        (
            "transactional",
            header.is_transactional().then_some(true).into(),
        ),
        ("control", control.into()),
        ("delete_horizon", header.delete_horizon().into()),
        ("crc", format!("{:08x}", header.crc).into()),
    ])
}

fn records(batch: &BatchView) -> LogResult<Vec<Fields>> {
    let records = batch.records()?;
    let mut all = Vec::with_capacity(records.len().min(batch.byte_len()));
    for record in &records {
        let record = record?;
        let mut document = Map::new();
        put_bytes(&mut document, "key", record.key);
        put_bytes(&mut document, "value", record.value);
        let mut headers = Map::new();
        for header in record.headers() {
            let (name, value) = header?;
            put_bytes(&mut headers, &readable(name), value);
        }
        if !headers.is_empty() {
            document.insert("headers".into(), headers.into());
        }
        let mut fields = fields([
            ("offset", record.offset.0.into()),
            ("timestamp", record.timestamp.into()),
        ]);
        fields.extend(document);
        all.push(fields);
    }
    Ok(all)
}
