//! What a backup is: a data folder, and one file more that says what it is of. That file is written last.

use serde::{Deserialize, Serialize};

pub use crate::data_folder::{LOG, STATE};

/// Name of that file; a folder without it is no backup, or one that was cut off.
pub const BACKUP: &str = "BACKUP";

/// Version of that file; a newer one is not read.
pub const FORMAT: u32 = 1;

/// What the file says, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFacts {
    /// Version of the file.
    pub format: u32,
    /// The program that made it.
    pub version: String,
    /// When it was made (milliseconds since the epoch).
    pub time_ms: i64,
    /// The last step of the queries that it holds.
    pub step: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

impl BackupFacts {
    /// The file's text.
    pub(crate) fn to_text(&self) -> String {
        let json = serde_json::to_string_pretty(self)
            .expect("numbers and a text, which JSON can always write");
        format!("{json}\n")
    }
}
