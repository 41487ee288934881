//! Damage done to a stopped server's files, for the controls.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// How much is forgotten: less than one record batch, so that the rest of the last batch is a torn tail.
const BYTES: u64 = 24;

/// Shortens the newest segment of the biggest partition of `events` and answers what was cut, for the report.
pub fn forget_last_bytes(data: &Path) -> Result<String> {
    let mut segments = Vec::new();
    collect_segments(data, &mut segments)?;
    let (path, size) = segments
        .into_iter()
        .filter(|(path, _)| {
            path.components()
                .any(|part| part.as_os_str().to_string_lossy().starts_with("events"))
        })
        .max_by_key(|(_, size)| *size)
        .context("the data folder has no segment of the topic events")?;
    let end = fs::read(&path)?
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |position| position as u64 + 1);
    let left = end.saturating_sub(BYTES);
    File::options().write(true).open(&path)?.set_len(left)?;
    Ok(format!(
        "{} of {size} bytes of {}",
        end - left,
        path.display()
    ))
}

fn collect_segments(folder: &Path, found: &mut Vec<(PathBuf, u64)>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_segments(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "log") {
            let size = path.metadata()?.len();
            found.push((path, size));
        }
    }
    Ok(())
}
