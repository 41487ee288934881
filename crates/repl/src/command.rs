//! Commands of the client: what never reaches the server as it was typed.
//!
//! A command fills one line. It starts with a backslash, as in psql, or it is one of a few bare words that people try first
//! (`exit`, `help`, `set output json`, ..). A line is known to be a command by [`is_command`] alone, so a typo behind a backslash
//! is answered here and is never sent.

use std::{path::PathBuf, time::Duration};

use crate::{
    input::{Kind, Mode, lex},
    render::OutputFormat,
};

/// What `\?` and `help` print; 80 columns.
pub(crate) const HELP: &str = "\
Statements end with a semicolon and go to the server. Commands fill one line:

  \\d [NAME]               streams and tables, or the columns of one
  \\ds  \\dt  \\dq  \\dT       streams, tables, queries, topics
  \\x [on|off]             one column a line instead of one row a line
  \\timing [on|off]        show how long each statement took
  \\watch [SECONDS]        run the last statement again and again; Ctrl-C ends it
  \\i FILE                 run a script            (also: run script 'FILE')
  \\o [FILE]               send results to a file, or back to the terminal
  \\copy NAME FROM 'FILE' [OPTIONS]   load a file of this machine (.gz too)
  \\copy (QUERY) TO 'FILE' [OPTIONS]  save a result on this machine
  set output table|csv|json
  history  clear          the statements so far; an empty screen
  \\conninfo               where this client is connected
  \\q                      leave                   (also: exit, quit, Ctrl-D)

A query that ends with EMIT CHANGES shows each change as it happens. Ctrl-C ends
the query, not the client.
";

/// Every backslash command, for completion.
pub(crate) const NAMES: &[&str] = &[
    "\\?",
    "\\conninfo",
    "\\copy",
    "\\d",
    "\\dT",
    "\\dq",
    "\\ds",
    "\\dt",
    "\\i",
    "\\o",
    "\\q",
    "\\timing",
    "\\watch",
    "\\x",
];

/// How long `\watch` waits between two runs when it is not told.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// A parsed command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Leave.
    Quit,
    /// Print [`HELP`].
    Help,
    /// Run this statement: a command that is short for one.
    Statement(String),
    /// List streams and tables.
    ListSources,
    /// Expanded display: set, or toggle.
    Expanded(Option<bool>),
    /// Timing: set, or toggle.
    Timing(Option<bool>),
    /// Output format.
    Format(OutputFormat),
    /// Run a script.
    Include(PathBuf),
    /// Send results to a file, or back.
    Output(Option<PathBuf>),
    /// Print the history.
    History,
    /// Clear the screen.
    Clear,
    /// Print where we are connected.
    ConnectionInfo,
    /// Repeat the last statement.
    Watch(Duration),
    /// `COPY .. FROM STDIN` with the data of a local file.
    CopyFrom {
        /// The statement to send.
        statement: String,
        /// The local file.
        path: PathBuf,
    },
    /// `COPY .. TO STDOUT` into a local file.
    CopyTo {
        /// The statement to send.
        statement: String,
        /// The local file.
        path: PathBuf,
    },
}

/// Whether a line that starts no statement is a command.
pub(crate) fn is_command(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('\\') || bare_command(line).is_some()
}

/// Parses a line for which [`is_command`] holds. The error is a sentence for the user.
pub(crate) fn parse(line: &str) -> Result<Command, String> {
    let line = line.trim();
    if let Some(command) = bare_command(line) {
        return command;
    }
    let (name, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
    let argument = rest.trim().trim_end_matches(';').trim_end();
    match name.trim_end_matches(';') {
        "\\q" | "\\quit" => Ok(Command::Quit),
        "\\?" | "\\h" | "\\help" => Ok(Command::Help),
        "\\d" if argument.is_empty() => Ok(Command::ListSources),
        "\\d" | "\\d+" => Ok(Command::Statement(format!("DESCRIBE {argument}"))),
        "\\dt" => Ok(Command::Statement("SHOW TABLES".to_owned())),
        "\\ds" => Ok(Command::Statement("SHOW STREAMS".to_owned())),
        "\\dq" => Ok(Command::Statement("SHOW QUERIES".to_owned())),
        "\\dT" => Ok(Command::Statement("SHOW TOPICS".to_owned())),
        "\\x" => switch(name, argument).map(Command::Expanded),
        "\\timing" => switch(name, argument).map(Command::Timing),
        "\\i" => file(name, argument).map(Command::Include),
        "\\o" if argument.is_empty() => Ok(Command::Output(None)),
        "\\o" => file(name, argument).map(|path| Command::Output(Some(path))),
        "\\conninfo" => Ok(Command::ConnectionInfo),
        "\\watch" => interval(argument).map(Command::Watch),
        "\\copy" => copy(argument),
        unknown => Err(format!("there is no command {unknown}; \\? lists them")),
    }
}

/// `exit`, `quit`, `help`, `history`, `clear`, `run script 'file'`, `set output format`; `None` when the line is none of them.
fn bare_command(line: &str) -> Option<Result<Command, String>> {
    let line = line.trim_end_matches(';').trim_end();
    let mut words = line.split_whitespace().map(str::to_lowercase);
    let (first, second, third) = (words.next()?, words.next(), words.next());
    match (first.as_str(), second.as_deref(), third.as_deref()) {
        ("exit" | "quit", None, None) => Some(Ok(Command::Quit)),
        ("help", None, None) => Some(Ok(Command::Help)),
        ("history", None, None) => Some(Ok(Command::History)),
        ("clear", None, None) => Some(Ok(Command::Clear)),
        ("set", Some("output"), Some(format)) => Some(format.parse().map(Command::Format)),
        ("run", Some("script"), Some(_)) => {
            // The name is taken from the line itself, whose case matters.
            let after_run = line[first.len()..].trim_start();
            let name = after_run["script".len()..].trim_start();
            Some(file("run script", name).map(Command::Include))
        }
        _ => None,
    }
}

fn switch(name: &str, argument: &str) -> Result<Option<bool>, String> {
    match argument.to_lowercase().as_str() {
        "" => Ok(None),
        "on" | "true" | "1" => Ok(Some(true)),
        "off" | "false" | "0" => Ok(Some(false)),
        other => Err(format!("{name} takes on or off, not {other:?}")),
    }
}

fn file(name: &str, argument: &str) -> Result<PathBuf, String> {
    match unquote(argument) {
        "" => Err(format!("{name} needs a file name")),
        path => Ok(PathBuf::from(path)),
    }
}

fn unquote(argument: &str) -> &str {
    let quoted = |quote| argument.strip_prefix(quote)?.strip_suffix(quote);
    quoted('\'').or_else(|| quoted('"')).unwrap_or(argument)
}

fn interval(argument: &str) -> Result<Duration, String> {
    if argument.is_empty() {
        return Ok(WATCH_INTERVAL);
    }
    argument
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|interval| !interval.is_zero())
        .ok_or_else(|| format!("\\watch takes a number of seconds, not {argument:?}"))
}

/// `target FROM 'file' options` or `target TO 'file' options`.
fn copy(argument: &str) -> Result<Command, String> {
    let usage = "\\copy takes NAME FROM 'FILE' [OPTIONS] or (QUERY) TO 'FILE' [OPTIONS]";
    let (direction, at) = copy_direction(argument).ok_or(usage)?;
    let target = argument[..at].trim();
    let after = argument[at + direction.keyword().len()..].trim();
    let (path, options) = split_file_name(after);
    if target.is_empty() || path.is_empty() {
        return Err(usage.to_owned());
    }
    if path.eq_ignore_ascii_case("program") {
        return Err("\\copy reads and writes files only; pipe a program into \"COPY .. FROM STDIN\" instead".to_owned());
    }
    let path = PathBuf::from(unquote(path));
    Ok(match direction {
        CopyDirection::From => Command::CopyFrom {
            statement: format!("COPY {target} FROM STDIN {options}")
                .trim_end()
                .to_owned(),
            path,
        },
        CopyDirection::To => Command::CopyTo {
            statement: format!("COPY {target} TO STDOUT {options}")
                .trim_end()
                .to_owned(),
            path,
        },
    })
}

#[derive(Debug, Clone, Copy)]
enum CopyDirection {
    From,
    To,
}

impl CopyDirection {
    fn keyword(self) -> &'static str {
        match self {
            Self::From => "from",
            Self::To => "to",
        }
    }
}

/// The first FROM or TO outside quotes and parentheses, and where it stands.
fn copy_direction(text: &str) -> Option<(CopyDirection, usize)> {
    let mut mode = Mode::Normal;
    let mut parentheses = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let (length, kind) = lex(&mut mode, &text[at..]);
        let lexeme = &text[at..at + length];
        match kind {
            Kind::Other if lexeme == "(" => parentheses += 1,
            Kind::Other if lexeme == ")" => parentheses = parentheses.saturating_sub(1),
            Kind::Word if parentheses == 0 && lexeme.eq_ignore_ascii_case("from") => {
                return Some((CopyDirection::From, at));
            }
            Kind::Word if parentheses == 0 && lexeme.eq_ignore_ascii_case("to") => {
                return Some((CopyDirection::To, at));
            }
            _ => {}
        }
        at += length;
    }
    None
}

/// A file name, in quotes when it holds spaces, and what follows it.
fn split_file_name(text: &str) -> (&str, &str) {
    let end = match text.chars().next() {
        Some(quote @ ('\'' | '"')) => text[1..].find(quote).map_or(text.len(), |at| at + 2),
        _ => text.find(char::is_whitespace).unwrap_or(text.len()),
    };
    (&text[..end], text[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_words_are_commands_only_when_alone() {
        for line in [
            "exit",
            "QUIT;",
            " help ",
            "set output json",
            "run script 'a.sql';",
            "clear",
        ] {
            assert!(is_command(line), "{line:?}");
        }
        for line in [
            "SELECT 1;",
            "exit now",
            "set timezone to 'UTC'",
            "help me",
            "run",
            "",
            "history_1",
        ] {
            assert!(!is_command(line), "{line:?}");
        }
    }

    #[test]
    fn describes_and_lists() {
        assert_eq!(parse("\\d"), Ok(Command::ListSources));
        assert_eq!(
            parse("\\d flights;"),
            Ok(Command::Statement("DESCRIBE flights".to_owned()))
        );
        assert_eq!(
            parse("\\dt"),
            Ok(Command::Statement("SHOW TABLES".to_owned()))
        );
    }

    #[test]
    fn switches() {
        assert_eq!(parse("\\x"), Ok(Command::Expanded(None)));
        assert_eq!(parse("\\timing OFF"), Ok(Command::Timing(Some(false))));
        assert!(parse("\\timing maybe").is_err_and(|error| error.contains("maybe")));
    }

    #[test]
    fn file_names_keep_their_case_and_lose_their_quotes() {
        assert_eq!(
            parse("run  SCRIPT 'My File.sql';"),
            Ok(Command::Include("My File.sql".into()))
        );
        assert_eq!(parse("\\i a.sql"), Ok(Command::Include("a.sql".into())));
        assert_eq!(parse("\\o"), Ok(Command::Output(None)));
        assert!(parse("\\i").is_err());
    }

    #[test]
    fn output_formats() {
        assert_eq!(
            parse("SET OUTPUT CSV;"),
            Ok(Command::Format(OutputFormat::Csv))
        );
        assert!(parse("set output xml").is_err_and(|error| error.contains("xml")));
    }

    #[test]
    fn copy_from_a_file() {
        assert_eq!(
            parse("\\copy t (a, \"from\") FROM 'my file.csv' csv header null 'NA';"),
            Ok(Command::CopyFrom {
                statement: "COPY t (a, \"from\") FROM STDIN csv header null 'NA'".to_owned(),
                path: "my file.csv".into(),
            })
        );
    }

    #[test]
    fn copy_a_query_to_a_file() {
        assert_eq!(
            parse("\\copy (SELECT a FROM t) to out.csv"),
            Ok(Command::CopyTo {
                statement: "COPY (SELECT a FROM t) TO STDOUT".to_owned(),
                path: "out.csv".into(),
            })
        );
        assert!(parse("\\copy t").is_err());
        assert!(parse("\\copy t from program 'x'").is_err_and(|error| error.contains("pipe")));
    }

    #[test]
    fn watch_wants_a_positive_number() {
        assert_eq!(
            parse("\\watch 0.5"),
            Ok(Command::Watch(Duration::from_millis(500)))
        );
        assert_eq!(parse("\\watch"), Ok(Command::Watch(WATCH_INTERVAL)));
        for wrong in ["\\watch 0", "\\watch -1", "\\watch x", "\\watch 1e300"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_commands_are_named() {
        assert!(parse("\\foo bar").is_err_and(|error| error.contains("\\foo")));
    }

    #[test]
    fn help_fits_80_columns_and_names_every_command() {
        assert!(HELP.lines().all(|line| line.len() <= 80));
        for name in NAMES.iter().filter(|name| **name != "\\?") {
            assert!(HELP.contains(name), "{name}");
        }
    }
}
