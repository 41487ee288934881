//! The terminal of the demonstration: an alternate screen that is given back whatever happens, and the keys that end the play.
//! Without a terminal, blocks of plain text.

use std::{
    io::{self, IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crossterm::{
    cursor::{Hide, MoveTo, Show},
    event::{self, Event, KeyCode, KeyEvent, KeyModifiers},
    execute, queue,
    style::Print,
    terminal::{
        self, BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate,
        EnterAlternateScreen, LeaveAlternateScreen,
    },
};
use tokio::{signal::ctrl_c, sync::mpsc, task::AbortHandle};

/// Columns and rows when the terminal does not say, and of plain text.
pub(super) const DEFAULT_SIZE: (usize, usize) = (80, 24);
/// The last line on a terminal.
const KEYS: &str = " q or Ctrl-C ends";
/// Rows that it takes from the frame.
const KEY_LINES: usize = 1;
/// How often the key thread looks whether it should end.
const KEY_POLL: Duration = Duration::from_millis(100);

/// Where frames are shown.
pub(super) struct Screen {
    /// `None` when the output is no terminal.
    terminal: Option<Terminal>,
    /// Gets a message when the user wants to leave.
    quit: mpsc::Receiver<()>,
    signals: AbortHandle,
}

impl Screen {
    /// Takes the terminal over, if standard output is one.
    pub fn open() -> io::Result<Self> {
        let (sender, quit) = mpsc::channel(1);
        let terminal = match io::stdout().is_terminal() {
            true => Some(Terminal::open(sender.clone())?),
            false => None,
        };
        let signals = tokio::spawn(watch_signals(sender)).abort_handle();
        Ok(Self {
            terminal,
            quit,
            signals,
        })
    }

    /// Whether frames replace each other.
    pub fn is_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Columns and rows for a frame.
    pub fn size(&self) -> (usize, usize) {
        if !self.is_terminal() {
            return DEFAULT_SIZE;
        }
        match terminal::size() {
            Ok((columns, rows)) if columns > 0 && rows > 0 => {
                (columns.into(), usize::from(rows) - KEY_LINES)
            }
            _ => DEFAULT_SIZE,
        }
    }

    /// Shows a frame whose lines fit the size.
    pub fn show(&mut self, lines: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.terminal.is_none() {
            return writeln!(out, "{}\n", lines.join("\n"));
        }
        queue!(out, BeginSynchronizedUpdate)?;
        for (row, line) in lines.iter().enumerate() {
            let row = u16::try_from(row).unwrap_or(u16::MAX);
            queue!(
                out,
                MoveTo(0, row),
                Print(line),
                Clear(ClearType::UntilNewLine)
            )?;
        }
        queue!(
            out,
            MoveTo(0, u16::try_from(lines.len()).unwrap_or(u16::MAX)),
            Clear(ClearType::FromCursorDown),
            Print(KEYS),
            EndSynchronizedUpdate
        )?;
        out.flush()
    }

    /// Waits until the user wants to leave. A wish that came while nobody waited is not lost.
    pub async fn quit(&mut self) {
        if self.quit.recv().await.is_none() {
            // Neither keys nor signals can be heard: then nothing ends the play early.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.signals.abort();
    }
}

async fn watch_signals(quit: mpsc::Sender<()>) {
    while ctrl_c().await.is_ok() {
        // Full means that the wish is known already.
        let _ = quit.try_send(());
    }
}

/// The terminal while it is ours: raw, so that Ctrl-C is a key as well.
struct Terminal {
    stop: Arc<AtomicBool>,
    keys: Option<JoinHandle<()>>,
}

impl Terminal {
    fn open(quit: mpsc::Sender<()>) -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let stop = Arc::new(AtomicBool::new(false));
        let keys = thread::spawn({
            let stop = Arc::clone(&stop);
            move || watch_keys(&stop, &quit)
        });
        // From here on Drop gives the terminal back.
        let terminal = Self {
            stop,
            keys: Some(keys),
        };
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            Hide,
            Clear(ClearType::All)
        )?;
        Ok(terminal)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(keys) = self.keys.take() {
            // The thread ends within KEY_POLL; a panic of it changes nothing here.
            let _ = keys.join();
        }
        // A terminal that is gone cannot be given back.
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

fn watch_keys(stop: &AtomicBool, quit: &mpsc::Sender<()>) {
    while !stop.load(Ordering::Relaxed) {
        match event::poll(KEY_POLL) {
            Ok(true) => {}
            Ok(false) => continue,
            // No keys to be had: Ctrl-C as a signal still works.
            Err(_) => return,
        }
        let Ok(event) = event::read() else { return };
        if is_quit(&event) {
            let _ = quit.try_send(());
        }
    }
}

fn is_quit(event: &Event) -> bool {
    match event {
        Event::Key(KeyEvent {
            code: KeyCode::Char('c' | 'd'),
            modifiers,
            ..
        }) => modifiers.contains(KeyModifiers::CONTROL),
        Event::Key(KeyEvent {
            code: KeyCode::Char('q' | 'Q') | KeyCode::Esc,
            ..
        }) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn keys_that_end_the_play() {
        assert!(is_quit(&key(KeyCode::Char('q'), KeyModifiers::NONE)));
        assert!(is_quit(&key(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(is_quit(&key(KeyCode::Esc, KeyModifiers::NONE)));
        assert!(!is_quit(&key(KeyCode::Char('c'), KeyModifiers::NONE)));
        assert!(!is_quit(&Event::FocusGained));
    }
}
