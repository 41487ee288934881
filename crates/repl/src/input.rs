//! Where a statement ends.
//!
//! A [`Scanner`] takes lines and gives back [`Fragment`]s: statements without their semicolon, and client commands. It knows
//! just enough of SQL's surface for that: quotes (`'..'`, `E'..'`, `".."`, `` `..` ``), dollar quotes, `--` comments and
//! nested `/* */` comments, so a semicolon inside any of them ends nothing. It never fails; what it cannot make sense of goes to
//! the server, whose parser has the better message.
//!
//! INVARIANT: the text of a statement is a verbatim slice of the input, so error positions from the server point into it.

use crate::command;

/// The kind of one lexeme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// White space.
    Space,
    /// A comment, or a part of one.
    Comment,
    /// Anything in quotes, or a part of it.
    Quoted,
    /// A keyword, an unquoted identifier or a number.
    Word,
    /// `;`.
    Semicolon,
    /// Any other single character.
    Other,
}

/// What a lexeme that does not end on its line leaves open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing.
    #[default]
    Normal,
    /// A quoted string or identifier.
    Quote {
        /// The character that ends it, doubled to stand for itself.
        close: char,
        /// Whether a backslash takes the next character along.
        escapes: bool,
    },
    /// A dollar-quoted string, with its whole delimiter (`$tag$`).
    Dollar(String),
    /// A block comment, with its depth.
    Block(u32),
}

/// Takes one lexeme, or the part of it that `rest` holds, from the front of `rest` (not empty). Returns its length in bytes.
pub(crate) fn lex(mode: &mut Mode, rest: &str) -> (usize, Kind) {
    match mode {
        Mode::Normal => lex_start(mode, rest),
        Mode::Quote { close, escapes } => {
            let end = quote_end(rest, *close, *escapes);
            close_or_take_all(mode, rest, end, Kind::Quoted)
        }
        Mode::Dollar(delimiter) => {
            let end = rest.find(delimiter.as_str()).map(|at| at + delimiter.len());
            close_or_take_all(mode, rest, end, Kind::Quoted)
        }
        Mode::Block(depth) => {
            let end = block_end(rest, depth);
            close_or_take_all(mode, rest, end, Kind::Comment)
        }
    }
}

fn close_or_take_all(mode: &mut Mode, rest: &str, end: Option<usize>, kind: Kind) -> (usize, Kind) {
    if end.is_some() {
        *mode = Mode::Normal;
    }
    (end.unwrap_or(rest.len()), kind)
}

fn lex_start(mode: &mut Mode, rest: &str) -> (usize, Kind) {
    let mut chars = rest.chars();
    let first = chars.next().unwrap_or(' ');
    let second = chars.next();
    let open = |mode: &mut Mode, next: Mode, prefix: usize| {
        *mode = next;
        match &rest[prefix..] {
            "" => (prefix, Kind::Quoted),
            inner => {
                let (length, kind) = lex(mode, inner);
                (prefix + length, kind)
            }
        }
    };
    match (first, second) {
        (';', _) => (1, Kind::Semicolon),
        ('-', Some('-')) => (rest.find('\n').unwrap_or(rest.len()), Kind::Comment),
        ('/', Some('*')) => open(mode, Mode::Block(1), 2),
        ('\'' | '"' | '`', _) => open(
            mode,
            Mode::Quote {
                close: first,
                escapes: false,
            },
            1,
        ),
        ('e' | 'E', Some('\'')) => open(
            mode,
            Mode::Quote {
                close: '\'',
                escapes: true,
            },
            2,
        ),
        ('$', _) => match dollar_delimiter(rest) {
            Some(delimiter) => open(mode, Mode::Dollar(delimiter.to_owned()), delimiter.len()),
            None => (1, Kind::Other),
        },
        _ if first.is_whitespace() => (length_while(rest, char::is_whitespace), Kind::Space),
        _ if is_word(first) => (length_while(rest, |c| is_word(c) || c == '$'), Kind::Word),
        _ => (first.len_utf8(), Kind::Other),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn length_while(text: &str, accept: impl Fn(char) -> bool) -> usize {
    text.find(|c| !accept(c)).unwrap_or(text.len())
}

/// The end of a quoted text whose opening quote is already taken.
fn quote_end(rest: &str, close: char, escapes: bool) -> Option<usize> {
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if escapes && c == '\\' {
            chars.next();
        } else if c == close {
            let doubled = chars.next_if(|(_, next)| *next == close).is_some();
            if !doubled {
                return Some(at + c.len_utf8());
            }
        }
    }
    None
}

/// `$$` or `$tag$` at the front of `rest`; a `$1` is no delimiter.
fn dollar_delimiter(rest: &str) -> Option<&str> {
    let inner = &rest[1..];
    let tag = &inner[..length_while(inner, is_word)];
    let starts_as_name = !tag.starts_with(|c: char| c.is_ascii_digit());
    let closed = inner[tag.len()..].starts_with('$');
    (starts_as_name && closed).then(|| &rest[..tag.len() + 2])
}

/// The end of a block comment; `depth` is kept when it does not end here.
fn block_end(rest: &str, depth: &mut u32) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => *depth += 1,
            b"*/" => *depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if *depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The bare words of a statement that stand outside quotes, comments and parentheses, in upper case.
pub(crate) fn words(statement: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut mode = Mode::Normal;
    let mut parentheses = 0_usize;
    let mut rest = statement;
    while !rest.is_empty() {
        let (length, kind) = lex(&mut mode, rest);
        match (kind, &rest[..length]) {
            (Kind::Other, "(") => parentheses += 1,
            (Kind::Other, ")") => parentheses = parentheses.saturating_sub(1),
            (Kind::Word, word) if parentheses == 0 => words.push(word.to_uppercase()),
            _ => {}
        }
        rest = &rest[length..];
    }
    words
}

/// What a fragment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FragmentKind {
    /// SQL, for the server.
    Statement,
    /// A command of the client.
    Command,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// Statement or command.
    pub kind: FragmentKind,
    /// A statement without its semicolon, or a command line.
    pub text: String,
    /// The line its first word stands on, from 1.
    pub line: usize,
}

/// Cuts lines into fragments.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    text: String,
    mode: Mode,
    /// The line of the first lexeme that is neither space nor comment.
    token_line: Option<usize>,
    line: usize,
}

impl Scanner {
    /// Takes one line, or several with line feeds between them, and returns what is now complete.
    pub fn push(&mut self, lines: &str) -> Vec<Fragment> {
        let mut fragments = Vec::new();
        for line in lines.split('\n') {
            self.line += 1;
            self.push_line(line.trim_end_matches('\r'), &mut fragments);
        }
        fragments
    }

    fn push_line(&mut self, line: &str, fragments: &mut Vec<Fragment>) {
        if self.is_idle() && command::is_command(line) {
            self.text.clear();
            fragments.push(Fragment {
                kind: FragmentKind::Command,
                text: line.trim().to_owned(),
                line: self.line,
            });
            return;
        }
        let terminated = format!("{line}\n");
        let mut rest = terminated.as_str();
        while !rest.is_empty() {
            let (length, kind) = lex(&mut self.mode, rest);
            let lexeme = &rest[..length];
            rest = &rest[length..];
            match kind {
                Kind::Semicolon => fragments.extend(self.take()),
                Kind::Space if self.text.is_empty() => {}
                Kind::Space | Kind::Comment => self.text.push_str(lexeme),
                Kind::Quoted | Kind::Word | Kind::Other => {
                    self.token_line.get_or_insert(self.line);
                    self.text.push_str(lexeme);
                }
            }
        }
    }

    /// Whether nothing but space and comments waits for its end.
    pub fn is_idle(&self) -> bool {
        self.token_line.is_none() && self.mode == Mode::Normal
    }

    /// The last statement of a script may lack its semicolon.
    pub fn finish(&mut self) -> Option<Fragment> {
        self.mode = Mode::Normal;
        self.take()
    }

    fn take(&mut self) -> Option<Fragment> {
        let text = std::mem::take(&mut self.text);
        let line = self.token_line.take()?;
        Some(Fragment {
            kind: FragmentKind::Statement,
            text: text.trim_end().to_owned(),
            line,
        })
    }
}

/// Whether Enter ends the input: nothing typed so far waits for a semicolon or a closing quote.
pub(crate) fn is_complete(text: &str) -> bool {
    let mut scanner = Scanner::default();
    scanner.push(text);
    scanner.is_idle()
}

#[cfg(test)]
mod tests;
