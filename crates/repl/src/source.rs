//! Where lines come from: the terminal, a script, a pipe, the command line.
//!
//! A source gives lines to the scanner and, while a `COPY .. FROM STDIN` runs, lines of data to it. A script and a terminal hold
//! the data between the statement and a line with `\.`; a statement on the command line takes it from standard input.
//!
//! Blocking reads happen on threads of their own, so a query's rows and Ctrl-C are never held up by an unread line.

use std::{
    env, fs,
    io::{self, BufRead, Read as _},
    path::{Path, PathBuf},
    thread,
};

use rustyline::{CompletionType, Config, Editor, error::ReadlineError, history::FileHistory};
use tokio::{
    sync::{mpsc, watch},
    task::spawn_blocking,
};

use crate::complete::{Names, SqlHelper};

/// The prompt for a statement.
const PROMPT: &str = "highwater> ";
/// The prompt for a line of COPY data.
const DATA_PROMPT: &str = ">> ";
/// Ends COPY data within a script or on the terminal.
const END_OF_DATA: &str = "\\.";
/// Lines read ahead of a pipe.
const READ_AHEAD: usize = 1_024;
/// Statements that the history keeps.
const HISTORY_SIZE: usize = 10_000;
/// COPY data is sent in pieces of about this many bytes.
const DATA_CHUNK: usize = 64 * 1_024;

/// A source of lines.
pub(crate) struct Source {
    origin: Origin,
    /// The mark that ends the running COPY's data has been read.
    data_ended: bool,
}

enum Origin {
    /// A script, or a piece of one.
    Text(std::vec::IntoIter<String>),
    /// One text of the command line; its COPY data comes from the pipe.
    Argument(std::vec::IntoIter<String>, Option<Pipe>),
    /// Standard input that is no terminal.
    Pipe(Pipe),
    /// The line editor.
    Terminal(Box<Terminal>),
}

type Pipe = mpsc::Receiver<io::Result<String>>;

impl Source {
    fn new(origin: Origin) -> Self {
        Self {
            origin,
            data_ended: false,
        }
    }

    /// A script that is in memory.
    pub fn text(script: &str) -> Self {
        Self::new(Origin::Text(lines_of(script)))
    }

    /// One text of the command line.
    pub fn argument(statement: &str) -> Self {
        Self::new(Origin::Argument(lines_of(statement), None))
    }

    /// Standard input, line by line as it arrives.
    pub fn stdin() -> Self {
        Self::new(Origin::Pipe(stdin_lines()))
    }

    /// The line editor, completing `names`.
    pub fn terminal(names: watch::Receiver<Names>) -> anyhow::Result<Self> {
        Ok(Self::new(Origin::Terminal(Box::new(Terminal::open(
            names,
        )?))))
    }

    /// Whether someone types here.
    pub fn is_terminal(&self) -> bool {
        matches!(self.origin, Origin::Terminal(_))
    }

    /// The next line; on a terminal, as many lines as a statement takes. `None` at the end.
    pub async fn next_line(&mut self) -> anyhow::Result<Option<String>> {
        match &mut self.origin {
            Origin::Text(lines) | Origin::Argument(lines, _) => Ok(lines.next()),
            Origin::Pipe(lines) => Ok(lines.recv().await.transpose()?),
            Origin::Terminal(terminal) => terminal.read_statement().await,
        }
    }

    /// Forgets where earlier COPY data ended; what follows is the data of the next COPY.
    pub fn begin_data(&mut self) {
        self.data_ended = false;
    }

    /// Some lines of COPY data, each with its line feed; `None` once they have ended.
    pub async fn next_data(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        let mut chunk = Vec::new();
        while chunk.len() < DATA_CHUNK && !self.data_ended {
            match self.next_data_line().await? {
                Some(line) => {
                    chunk.extend_from_slice(line.as_bytes());
                    chunk.push(b'\n');
                }
                None => self.data_ended = true,
            }
        }
        Ok((!chunk.is_empty()).then_some(chunk))
    }

    async fn next_data_line(&mut self) -> anyhow::Result<Option<String>> {
        let line = match &mut self.origin {
            Origin::Text(lines) => lines.next(),
            Origin::Argument(_, pipe) => pipe
                .get_or_insert_with(stdin_lines)
                .recv()
                .await
                .transpose()?,
            Origin::Pipe(lines) => lines.recv().await.transpose()?,
            Origin::Terminal(terminal) => terminal.read_data().await?,
        };
        Ok(line.filter(|line| line != END_OF_DATA))
    }

    /// The statements typed so far, this session's and earlier ones, oldest first.
    pub fn history(&self) -> Vec<String> {
        match &self.origin {
            Origin::Terminal(terminal) => terminal.history(),
            Origin::Text(_) | Origin::Argument(..) | Origin::Pipe(_) => Vec::new(),
        }
    }
}

fn lines_of(text: &str) -> std::vec::IntoIter<String> {
    text.lines()
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter()
}

/// Reads standard input on a thread that nobody waits for: a read that never returns must not keep the process alive.
fn stdin_lines() -> Pipe {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let failed = line.is_err();
            if sender.blocking_send(line).is_err() || failed {
                return;
            }
        }
    });
    receiver
}

/// The line editor with its history.
struct Terminal {
    /// `None` only while a read owns it, or after a read that was dropped.
    editor: Option<Editor<SqlHelper, FileHistory>>,
    history_file: Option<PathBuf>,
}

impl Terminal {
    fn open(names: watch::Receiver<Names>) -> anyhow::Result<Self> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(HISTORY_SIZE)?
            .history_ignore_dups(true)?
            .history_ignore_space(true)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(SqlHelper::new(names)));
        let history_file = history_file();
        if let Some(path) = &history_file {
            // No history yet, or one that cannot be read: the shell works without.
            let _ = editor.load_history(path);
        }
        Ok(Self {
            editor: Some(editor),
            history_file,
        })
    }

    async fn read_statement(&mut self) -> anyhow::Result<Option<String>> {
        loop {
            match self.read(PROMPT, true).await? {
                Read::Line(text) => {
                    self.remember(&text);
                    return Ok(Some(text));
                }
                Read::Interrupted => {}
                Read::End => return Ok(None),
            }
        }
    }

    async fn read_data(&mut self) -> anyhow::Result<Option<String>> {
        match self.read(DATA_PROMPT, false).await? {
            Read::Line(line) => Ok(Some(line)),
            Read::Interrupted => anyhow::bail!("COPY was interrupted"),
            Read::End => Ok(None),
        }
    }

    async fn read(&mut self, prompt: &'static str, statements: bool) -> anyhow::Result<Read> {
        let Some(mut editor) = self.editor.take() else {
            anyhow::bail!("the line editor is gone: an earlier read was given up");
        };
        let (editor, read) = spawn_blocking(move || {
            if let Some(helper) = editor.helper_mut() {
                helper.expect_statements(statements);
            }
            let read = editor.readline(prompt);
            (editor, read)
        })
        .await?;
        self.editor = Some(editor);
        match read {
            Ok(text) => Ok(Read::Line(text)),
            Err(ReadlineError::Interrupted) => Ok(Read::Interrupted),
            Err(ReadlineError::Eof) => Ok(Read::End),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds to the history and its file at once, so that a crash loses nothing and two shells share it.
    fn remember(&mut self, text: &str) {
        let Some(editor) = &mut self.editor else {
            return;
        };
        let added = !text.trim().is_empty() && editor.add_history_entry(text).unwrap_or(false);
        if let (true, Some(path)) = (added, &self.history_file) {
            // A read-only home is no reason to stop: the history then lasts for this session.
            let _ = editor.append_history(path);
        }
    }

    fn history(&self) -> Vec<String> {
        self.editor
            .iter()
            .flat_map(|editor| editor.history().iter())
            .cloned()
            .collect()
    }
}

enum Read {
    Line(String),
    Interrupted,
    End,
}

/// `$XDG_STATE_HOME/highwater/history`, by default below `~/.local/state`. The folder is made when it is missing.
fn history_file() -> Option<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path: &PathBuf| path.is_absolute())
    };
    let state =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let folder = state.join("highwater");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// A local file for `\copy .. FROM`; a name that ends in `.gz` is unpacked on the way.
pub(crate) fn open_data(path: &Path) -> io::Result<Box<dyn io::Read + Send>> {
    let file = fs::File::open(path)?;
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    Ok(if packed {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    })
}

/// The next piece of a local file; `None` at its end.
pub(crate) fn read_data(file: &mut dyn io::Read) -> io::Result<Option<Vec<u8>>> {
    let mut chunk = Vec::with_capacity(DATA_CHUNK);
    file.take(DATA_CHUNK as u64).read_to_end(&mut chunk)?;
    Ok((!chunk.is_empty()).then_some(chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn data_of_a_script_ends_at_its_mark() {
        let mut source = Source::text("COPY t FROM STDIN;\n1\n2\n\\.\nSELECT 1;");
        assert_eq!(
            source.next_line().await.expect("text"),
            Some("COPY t FROM STDIN;".to_owned())
        );
        assert_eq!(
            source.next_data().await.expect("text"),
            Some(b"1\n2\n".to_vec())
        );
        assert_eq!(source.next_data().await.expect("text"), None);
        assert_eq!(
            source.next_line().await.expect("text"),
            Some("SELECT 1;".to_owned())
        );
        assert_eq!(source.next_line().await.expect("text"), None);
    }

    #[test]
    fn packed_files_are_unpacked() {
        use std::io::Write;
        let folder = env::temp_dir().join(format!("highwater-repl-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("a.csv.gz");
        let file = fs::File::create(&path).expect("a file");
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        encoder.write_all(b"a,b\n").expect("written");
        encoder.finish().expect("written");
        let mut data = open_data(&path).expect("opened");
        assert_eq!(read_data(&mut data).expect("read"), Some(b"a,b\n".to_vec()));
        assert_eq!(read_data(&mut data).expect("read"), None);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
