//! The time from a start after `kill -9` to the first correct answer.
//!
//! A killed process leaves its files as the operating system has them. So does a copy of all files of a server that has nothing to do at the moment:
//! the server that it was taken from goes on, and what is started on the copy has the same to recover.

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, Result, bail};
use highwater_server::config::Settings;
use serde::Serialize;

use crate::{
    process::files,
    server::{RunningServer, told},
};

/// What a recovery took.
#[derive(Debug, Serialize)]
pub(super) struct Recovery {
    pub(super) keys: u64,
    pub(super) state_bytes: u64,
    pub(super) log_bytes: u64,
    pub(super) seconds: f64,
}

/// Copies a folder with all that is in it.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot copy {}", entry.path().display()))?;
        }
    }
    Ok(())
}

/// Starts on a copy and asks how many keys the table has.
pub(super) async fn measure(image: &Path, keys: u64) -> Result<Recovery> {
    let bytes = |folder: &str| -> Result<u64> { Ok(files(&image.join(folder))?.values().sum()) };
    let (state_bytes, log_bytes) = (bytes("state")?, bytes("log")?);
    let begin = Instant::now();
    let server = RunningServer::start(image, Settings::default()).await?;
    let client = server.connect().await?;
    let row = client
        .query_one("SELECT n FROM latest WHERE k = 'k0'", &[])
        .await
        .map_err(told)?;
    let seconds = begin.elapsed().as_secs_f64();
    if row.try_get::<_, i64>(0)? < 1 {
        bail!("a key is gone");
    }
    let row = client
        .query_one("SELECT COUNT(*) FROM latest", &[])
        .await
        .map_err(told)?;
    // The rows that were timed have a key, too.
    let found = row.try_get::<_, i64>(0)?.unsigned_abs();
    if found != keys + 1 {
        bail!("{found} keys are there instead of {}", keys + 1);
    }
    drop(client);
    server.stop().await?;
    Ok(Recovery {
        keys,
        state_bytes,
        log_bytes,
        seconds,
    })
}
