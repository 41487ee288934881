//! Where things begin and end in a text, without understanding them: blanks, comments, quotes, brackets, semicolons.
//!
//! The scanner allocates nothing and never goes back, so a text of any shape costs one pass. It agrees with PostgreSQL on quoting:
//! `'..''..'`, `E'..\'..'`, `".."`, `$tag$..$tag$`, nested `/* .. */`, `--` to the end of the line; and takes `` `..` `` as a quoted name too.

use crate::error::Span;

/// A stretch of text of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// White space or a comment.
    Blank,
    /// A `;`.
    Semicolon,
    /// One of `( [ {`.
    Open,
    /// One of `) ] }`.
    Close,
    /// A `,`, which is a token of its own whatever stands beside it.
    Comma,
    /// A quoted literal or name, with its quotes.
    Quoted,
    /// A word, a number, or a single character of an operator.
    Plain,
}

/// A piece and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub kind: PieceKind,
    pub span: Span,
}

/// A quote or comment that is never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unterminated {
    /// What is open.
    pub what: &'static str,
    /// From where it opens to the end of the text.
    pub span: Span,
}

/// Cuts a text into [`Piece`]s, which cover it without gaps.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `text`; a byte order mark is skipped.
    pub fn new(text: &'a str) -> Self {
        let at = if text.starts_with('\u{FEFF}') {
            '\u{FEFF}'.len_utf8()
        } else {
            0
        };
        Self { text, at }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Moves over what `length` bytes hold and names it.
    fn take(&mut self, kind: PieceKind, length: usize) -> Piece {
        let start = self.at;
        self.at += length;
        Piece {
            kind,
            span: Span::new(start, self.at),
        }
    }

    /// Takes a piece whose end was searched for.
    fn take_closed(
        &mut self,
        kind: PieceKind,
        what: &'static str,
        length: Option<usize>,
    ) -> Result<Piece, Unterminated> {
        match length {
            Some(length) => Ok(self.take(kind, length)),
            None => {
                let span = Span::new(self.at, self.text.len());
                self.at = self.text.len();
                Err(Unterminated { what, span })
            }
        }
    }
}

impl Iterator for Scanner<'_> {
    type Item = Result<Piece, Unterminated>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest();
        let first = rest.chars().next()?;
        let piece = match first {
            c if c.is_whitespace() => self.take(PieceKind::Blank, blank_length(rest)),
            '-' if rest.starts_with("--") => {
                self.take(PieceKind::Blank, rest.find('\n').unwrap_or(rest.len()))
            }
            '/' if rest.starts_with("/*") => {
                return Some(self.take_closed(PieceKind::Blank, "comment", comment_length(rest)));
            }
            ';' => self.take(PieceKind::Semicolon, 1),
            '(' | '[' | '{' => self.take(PieceKind::Open, 1),
            ')' | ']' | '}' => self.take(PieceKind::Close, 1),
            ',' => self.take(PieceKind::Comma, 1),
            '\'' => {
                return Some(self.take_closed(
                    PieceKind::Quoted,
                    "quoted string",
                    quoted_length(rest, '\''),
                ));
            }
            '"' | '`' => {
                return Some(self.take_closed(
                    PieceKind::Quoted,
                    "quoted name",
                    quoted_length(rest, first),
                ));
            }
            'e' | 'E' if rest[1..].starts_with('\'') => {
                let length = escaped_length(&rest[1..]).map(|length| length + 1);
                return Some(self.take_closed(PieceKind::Quoted, "quoted string", length));
            }
            '$' => match dollar_tag(rest) {
                Some(tag) => {
                    let length = rest[tag.len()..].find(tag).map(|body| body + 2 * tag.len());
                    return Some(self.take_closed(
                        PieceKind::Quoted,
                        "dollar-quoted string",
                        length,
                    ));
                }
                None => self.take(PieceKind::Plain, 1 + word_length(&rest[1..])),
            },
            c if is_word_part(c) => self.take(PieceKind::Plain, word_length(rest)),
            c => self.take(PieceKind::Plain, c.len_utf8()),
        };
        Some(Ok(piece))
    }
}

/// Letters, digits, `_`, `$` and everything beyond ASCII that is not white space: what PostgreSQL allows inside a name.
fn is_word_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || (!c.is_ascii() && !c.is_whitespace())
}

fn word_length(text: &str) -> usize {
    text.find(|c| !is_word_part(c)).unwrap_or(text.len())
}

fn blank_length(text: &str) -> usize {
    text.find(|c: char| !c.is_whitespace())
        .unwrap_or(text.len())
}

/// Length of a `/* .. */` comment with the comments nested in it.
fn comment_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Length of a text in `quote`s, where a doubled quote stands for one.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text[at..].find(quote)? + 1;
        if !text[at..].starts_with(quote) {
            return Some(at);
        }
        at += 1;
    }
}

/// Length of the `'..'` behind an `E`, where a backslash takes the next character along.
fn escaped_length(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '\'' if matches!(chars.peek(), Some((_, '\''))) => {
                chars.next();
            }
            '\'' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The `$tag$` that opens a dollar-quoted string, if `text` starts with one. `$1` is a parameter, not a tag.
fn dollar_tag(text: &str) -> Option<&str> {
    let body = &text[1..];
    if body.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let length = body
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(body.len());
    body[length..].starts_with('$').then(|| &text[..length + 2])
}

/// Whether `text` ends a statement: its last `;` stands outside quotes, comments and brackets, with nothing but blanks behind it.
/// An interactive client reads on while this is false. A text of blanks alone is not complete.
pub fn statement_is_complete(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut complete = false;
    for piece in Scanner::new(text) {
        let Ok(piece) = piece else {
            return false;
        };
        match piece.kind {
            PieceKind::Blank => continue,
            PieceKind::Open => depth += 1,
            PieceKind::Close => depth = depth.saturating_sub(1),
            PieceKind::Semicolon | PieceKind::Comma | PieceKind::Quoted | PieceKind::Plain => {}
        }
        complete = piece.kind == PieceKind::Semicolon && depth == 0;
    }
    complete
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_statements() {
        for text in [
            ";",
            "select 1;",
            "select 1; -- done",
            "select ';'; /* ; */\n",
            "select 1; select 2;",
            "select $$ ; $$;",
            "select $t$ $$; $t$ ;",
            "select E'\\';';",
            "select \"a;\"\"b\";",
            "select `;`;",
            "select (1);",
            "\u{FEFF}select 1;",
            "select 'it''s';",
            "select $1;",
            "select a$b$;",
        ] {
            assert!(statement_is_complete(text), "{text}");
        }
    }

    #[test]
    fn incomplete_statements() {
        for text in [
            "",
            " \n",
            "-- a;",
            "select 1",
            "select 1; select",
            "select ';",
            "select \";",
            "select $$ ;",
            "select $a$ ; $b$;",
            "select (1;",
            "/* ;",
            "/* /* */ ;",
            "select E'\\';",
            "select 1; /*",
        ] {
            assert!(!statement_is_complete(text), "{text}");
        }
    }

    #[test]
    fn pieces_cover_the_text() {
        let text = "create stream s (a int) with (x='1'); -- é\n select `é` /* a /* b */ */ from e'\\'' || $x$;$x$";
        let mut at = 0;
        for piece in Scanner::new(text) {
            let span = piece.unwrap().span;
            assert_eq!(span.start, at);
            assert!(span.end > at);
            at = span.end;
        }
        assert_eq!(at, text.len());
    }
}
