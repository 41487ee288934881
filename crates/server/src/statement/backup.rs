//! BACKUP: a copy of the data folder as it was at one moment, made while everything goes on.
//!
//! The copy is itself a data folder. Its file `BACKUP` is written last: a folder without it was cut off and is not to be used.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    backup::{BACKUP, BackupFacts, FORMAT},
    clock,
    data_folder::{LOG, STATE},
    server::Server,
    session::{Notice, Outcome, Session, SessionResult, blocking},
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
    // Whoever waits for the backup may go away: then it ends.
    let ended = EndsWhenDropped(Arc::new(AtomicBool::new(false)));
    let is_ended = Arc::clone(&ended.0);
    let made = blocking(move || back_up(&server, &folder, &is_ended)).await?;
    drop(ended);
    let bytes = made?;
    session.notice(Notice {
        severity: "NOTICE",
        code: code::SUCCESSFUL_COMPLETION,
        message: format!("{} MB were copied", bytes.div_ceil(1_000_000)),
        hint: None,
    });
    Ok(Outcome::Done("BACKUP".to_owned()))
}

struct EndsWhenDropped(Arc<AtomicBool>);

impl Drop for EndsWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes the copy; answers its size in bytes.
fn back_up(server: &Server, folder: &Path, is_ended: &AtomicBool) -> SessionResult<u64> {
    let Some(log) = &server.embedded else {
        return Err(SqlError::unsupported("BACKUP of a log in memory"));
    };
    make_folder(folder)?;
    let log = Arc::clone(log);
    let (state, log) = server.coordinator.freeze(move || log.begin_backup())?;
    let log = log?;
    let mut bytes = 0;
    let mut copied = |piece: u64| {
        bytes += piece;
        match is_ended.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the client has gone")),
            false => Ok(()),
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
    write_durably(&folder.join(BACKUP), &facts.to_text())
        .and_then(|()| sync_folder(folder))
        .map_err(|error| failed("write", folder, &error))?;
    Ok(bytes)
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
