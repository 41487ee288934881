//! BACKUP: a copy of the data folder as it was at one moment, made while everything goes on.
//!
//! The copy is itself a data folder. Its file `BACKUP` is written last: a folder without it was cut off and is not to be used.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    backup::{BACKUP, BackupFacts, FORMAT},
    clock,
    data_folder::{LOG, STATE},
    server::Server,
    session::{Notice, Outcome, Session, SessionResult, blocking},
    size_text::size_text,
    sqlstate::{SqlError, code},
};

/// `BACKUP TO 'folder'`.
pub async fn run(session: &mut Session, folder: &str) -> SessionResult<Outcome> {
    let folder = PathBuf::from(folder);
    if !folder.is_absolute() {
        return Err(SqlError::new(
            code::INVALID_NAME,
            format!(
                "relative path \"{}\" not allowed for BACKUP",
                folder.display()
            ),
        )
        .with_hint("the folder is on the server; write its whole path"));
    }
    let server = Arc::clone(&session.server);
    let progress = Arc::new(Mutex::new(Progress::Copying));
    let waiting = Waiting {
        progress: Arc::clone(&progress),
        mark: folder.join(BACKUP),
    };
    let bytes = blocking(move || back_up(&server, &folder, &progress)).await??;
    waiting.tell();
    session.notice(Notice {
        severity: "NOTICE",
        code: code::SUCCESSFUL_COMPLETION,
        message: format!("{} were copied", size_text(bytes)),
        hint: None,
    });
    Ok(Outcome::Done("BACKUP".to_owned()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Copying,
    /// It is a backup, and its client has not been told.
    Whole,
    Told,
    /// The client has gone.
    GivenUp,
}

/// Whoever waits for a backup. One who goes away was told of none, so there is none then.
struct Waiting {
    progress: Arc<Mutex<Progress>>,
    /// The file that makes it one.
    mark: PathBuf,
}

impl Waiting {
    fn tell(self) {
        *self.progress.lock() = Progress::Told;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut progress = self.progress.lock();
        match *progress {
            Progress::Told => return,
            Progress::Whole => {
                if let Err(error) = fs::remove_file(&self.mark) {
                    tracing::warn!(file = %self.mark.display(), %error, "a backup that was cancelled in the end stays");
                }
            }
            Progress::Copying | Progress::GivenUp => {}
        }
        *progress = Progress::GivenUp;
    }
}

/// Makes the copy; answers its size in bytes.
fn back_up(server: &Server, folder: &Path, progress: &Mutex<Progress>) -> SessionResult<u64> {
    let Some(log) = &server.embedded else {
        return Err(SqlError::unsupported("BACKUP of a log in memory"));
    };
    refuse_data_folder(&server.config.data, folder)?;
    make_folder(folder)?;
    let log = Arc::clone(log);
    let (state, log) = server.coordinator.freeze(move || log.begin_backup())?;
    let log = log?;
    let mut bytes = 0;
    let mut copied = |piece: u64| {
        bytes += piece;
        match *progress.lock() {
            Progress::GivenUp => Err(gone()),
            _ => Ok(()),
        }
    };
    state.copy_to(&folder.join(STATE), &mut copied)?;
    log.copy_to(&folder.join(LOG), &mut copied)?;
    let facts = BackupFacts {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time_ms: clock::now_ms(),
        step: state.step(),
        bytes,
    };
    // The client cannot go while this is held, so it goes before there is a backup, or takes it away.
    let mut progress = progress.lock();
    if *progress == Progress::GivenUp {
        return Err(failed("write", folder, &gone()));
    }
    write_durably(&folder.join(BACKUP), &facts.to_text())
        .and_then(|()| sync_folder(folder))
        .map_err(|error| failed("write", folder, &error))?;
    *progress = Progress::Whole;
    Ok(bytes)
}

fn gone() -> io::Error {
    io::Error::other("the client has gone")
}

/// Refuses a folder that is part of the data folder, or that the data folder is part of, by whatever names: the backup would be part of what it copies,
/// and go when that goes.
fn refuse_data_folder(data: &Path, folder: &Path) -> SessionResult<()> {
    let target = resolved(folder).map_err(|error| failed("read", folder, &error))?;
    for own in [data.to_owned(), data.join(LOG), data.join(STATE)] {
        let own = resolved(&own).map_err(|error| failed("read", &own, &error))?;
        let relation = match (target.starts_with(&own), own.starts_with(&target)) {
            (true, _) => "is inside",
            (false, true) => "contains",
            (false, false) => continue,
        };
        return Err(SqlError::new(
            code::INVALID_PARAMETER_VALUE,
            format!(
                "folder \"{}\" {relation} the data folder \"{}\"",
                folder.display(),
                own.display()
            ),
        )
        .with_hint("name a folder elsewhere, on another disk if there is one"));
    }
    Ok(())
}

/// A path without symbolic links; what of it does not exist yet has none.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        known => return known,
    }
    if path.symlink_metadata().is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "it is a symbolic link to nowhere",
        ));
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "\"..\" leads out of a folder that does not exist",
        ));
    };
    Ok(resolved(parent)?.join(name))
}

/// Makes the folder, or takes an empty one.
fn make_folder(folder: &Path) -> SessionResult<()> {
    fs::create_dir_all(folder).map_err(|error| failed("create", folder, &error))?;
    let mut entries = fs::read_dir(folder).map_err(|error| failed("read", folder, &error))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(SqlError::new(
            code::DUPLICATE_FILE,
            format!("folder \"{}\" is not empty", folder.display()),
        )
        .with_hint("name a folder that does not exist yet")),
    }
}

fn write_durably(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()?;
    folder
        .parent()
        .map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

fn failed(action: &str, folder: &Path, error: &io::Error) -> SqlError {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => code::DISK_FULL,
        io::ErrorKind::PermissionDenied => code::INSUFFICIENT_PRIVILEGE,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            code::UNDEFINED_FILE
        }
        _ => code::IO_ERROR,
    };
    SqlError::new(
        code,
        format!("could not {action} \"{}\": {error}", folder.display()),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_name_of_the_data_folder_is_taken() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        let (data, elsewhere) = (root.join("data"), root.join("elsewhere"));
        fs::create_dir_all(data.join(STATE)).expect("a folder");
        fs::create_dir_all(elsewhere.join("log")).expect("a folder");
        // The log is on another disk.
        symlink(elsewhere.join("log"), data.join(LOG)).expect("a link");
        symlink(&data, root.join("link")).expect("a link");
        symlink(root.join("nowhere"), root.join("broken")).expect("a link");
        let refused = |folder: &Path| {
            let error = refuse_data_folder(&data, folder).expect_err("a refusal");
            (error.code, error.message)
        };
        for (folder, relation) in [
            (data.clone(), "is inside"),
            (data.join("backups/monday"), "is inside"),
            (data.join(STATE).join("new"), "is inside"),
            (root.join("link/monday"), "is inside"),
            (elsewhere.join("log/monday"), "is inside"),
            (root.join("other/../data/monday"), "leads out"),
            (root.join("elsewhere/../data/monday"), "is inside"),
            (root.to_owned(), "contains"),
            (elsewhere.clone(), "contains"),
            (root.join("broken"), "nowhere"),
        ] {
            let (code, message) = refused(&folder);
            assert!(
                message.contains(relation),
                "{}: {message}",
                folder.display()
            );
            let wanted = match relation {
                "is inside" | "contains" => code::INVALID_PARAMETER_VALUE,
                _ => code::UNDEFINED_FILE,
            };
            assert_eq!(code, wanted, "{message}");
        }
        for folder in ["data2", "elsewhere/monday", "new/monday"] {
            refuse_data_folder(&data, &root.join(folder)).expect(folder);
        }
    }
}
