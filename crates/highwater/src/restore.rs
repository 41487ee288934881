//! `highwater restore`: a data folder out of what BACKUP made.
//!
//! The backup stays as it is. The data folder gets its name when it is whole and every byte of its log has been checked, so one that was cut off
//! is never started by mistake.

use std::{
    fs::{self, File},
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use highwater_server::backup::{BACKUP, BackupFacts, FORMAT, LOG, STATE};
use highwater_storage_log::{FileDisk, Severity, verify};

use crate::cli::RestoreArgs;

/// How often a terminal is told how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Reads what a backup says of itself.
fn read_facts(backup: &Path) -> anyhow::Result<BackupFacts> {
    let path = backup.join(BACKUP);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "\"{}\" is no backup, or one that was cut off: it has no file {BACKUP}",
            backup.display()
        ),
        text => text.with_context(|| format!("could not read \"{}\"", path.display()))?,
    };
    let facts: BackupFacts = serde_json::from_str(&text)
        .with_context(|| format!("\"{}\" is damaged", path.display()))?;
    if facts.format > FORMAT {
        bail!(
            "\"{}\" was made by version {}, which this version cannot read",
            backup.display(),
            facts.version
        );
    }
    Ok(facts)
}

/// `highwater restore`.
pub fn run(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let mut shown = Instant::now();
    let facts = restore(&args.backup, &args.data, &mut |bytes| {
        if io::stderr().is_terminal() && shown.elapsed() >= PROGRESS_INTERVAL {
            eprint!("\r{} MB copied ", bytes / 1_000_000);
            shown = Instant::now();
        }
    })?;
    println!(
        "\"{}\" holds what was backed up at step {}: {} MB.\nhighwater start --data {} goes on from there.",
        args.data.display(),
        facts.step,
        facts.bytes.div_ceil(1_000_000),
        args.data.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Makes the data folder `data`, which must not exist or be empty, out of a backup. `progress` hears how many bytes have been copied.
fn restore(
    backup: &Path,
    data: &Path,
    progress: &mut dyn FnMut(u64),
) -> anyhow::Result<BackupFacts> {
    let facts = read_facts(backup)?;
    let data = std::path::absolute(data).context("the data folder has no path")?;
    let is_free = match fs::read_dir(&data) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if !is_free {
        bail!(
            "\"{}\" is there already and not empty; restore makes a new folder",
            data.display()
        );
    }
    let unfinished = unfinished(&data)?;
    remove(&unfinished)?;
    let restored =
        copy_folders(backup, &unfinished, progress).and_then(|()| check_log(&unfinished.join(LOG)));
    if let Err(error) = restored {
        remove(&unfinished)?;
        return Err(error);
    }
    fs::rename(&unfinished, &data)
        .with_context(|| format!("could not give \"{}\" its name", data.display()))?;
    if let Some(parent) = data.parent() {
        sync_folder(parent)?;
    }
    Ok(facts)
}

/// What the folder is called until it is whole.
fn unfinished(data: &Path) -> anyhow::Result<PathBuf> {
    let mut name = data
        .file_name()
        .context("the data folder has no name")?
        .to_owned();
    name.push(".unfinished");
    Ok(data.with_file_name(name))
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove \"{}\"", folder.display()))
        }
        _ => Ok(()),
    }
}

fn copy_folders(backup: &Path, data: &Path, progress: &mut dyn FnMut(u64)) -> anyhow::Result<()> {
    let mut copied = 0;
    for part in [LOG, STATE] {
        copy_folder(&backup.join(part), &data.join(part), &mut |bytes| {
            copied += bytes;
            progress(copied);
        })?;
    }
    sync_folder(data)
}

fn copy_folder(from: &Path, to: &Path, copied: &mut dyn FnMut(u64)) -> anyhow::Result<()> {
    let reading = || format!("could not read \"{}\"", from.display());
    fs::create_dir_all(to).with_context(|| format!("could not create \"{}\"", to.display()))?;
    for entry in fs::read_dir(from).with_context(reading)? {
        let entry = entry.with_context(reading)?;
        let target = to.join(entry.file_name());
        if entry.file_type().with_context(reading)?.is_dir() {
            copy_folder(&entry.path(), &target, copied)?;
        } else {
            let bytes = fs::copy(entry.path(), &target)
                .and_then(|bytes| File::open(&target)?.sync_all().map(|()| bytes))
                .with_context(|| format!("could not write \"{}\"", target.display()))?;
            copied(bytes);
        }
    }
    sync_folder(to)
}

fn sync_folder(folder: &Path) -> anyhow::Result<()> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .with_context(|| format!("could not sync \"{}\"", folder.display()))
}

/// Checks every byte of the log. The state's blocks carry checksums that are checked when they are read.
fn check_log(log: &Path) -> anyhow::Result<()> {
    let report = verify(&FileDisk, log, &mut |_| {})?;
    let damage = report
        .findings
        .iter()
        .find(|finding| finding.severity == Severity::Damage);
    match damage {
        Some(damage) => bail!(
            "the backup is damaged: \"{}\": {}",
            damage.path.display(),
            damage.what
        ),
        None => Ok(()),
    }
}
