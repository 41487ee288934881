//! What is wrong with a text, and where.
//!
//! Every error carries the [`Span`] it is about, in bytes of the script, and (where there is one) the offending token. The variant
//! decides the class of the error: a server maps it to an SQLSTATE, a terminal to a caret under the token. The enum is exhaustive on
//! purpose, so that such a map has no wildcard and a new variant cannot fall through it.

use std::ops::Range;

/// The longest piece of the user's text that an error repeats, in characters; longer ones are cut with an ellipsis.
const MAX_QUOTED_CHARS: usize = 64;

/// A range of bytes in a script: `start` inclusive, `end` exclusive. Both lie on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
}

impl Span {
    /// The range from `start` up to but not including `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The same as a range, for slicing.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Why a text is not a statement that Highwater runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// The text is not in the grammar.
    #[error("syntax error {}: {message}", place(near))]
    Syntax {
        /// What was expected, or what is wrong.
        message: String,
        /// The offending token, or an empty span at the end of the text.
        span: Span,
        /// The offending token's text; `None` at the end of the text.
        near: Option<String>,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A known statement or clause that Highwater does not have.
    #[error("{what} is not supported")]
    Unsupported {
        /// The statement or clause, in upper-case keywords.
        what: String,
        /// Where it starts.
        span: Span,
        /// What to use in its place.
        hint: Option<String>,
    },
    /// The text is beyond a limit that keeps parsing within bounded time and memory.
    #[error("statement is too complex: {what}")]
    TooComplex {
        /// The limit, with its number.
        what: String,
        /// Where it was passed.
        span: Span,
    },
    /// The text holds characters that no statement may hold.
    #[error("invalid text: {message}")]
    InvalidText {
        /// Which character.
        message: String,
        /// Where it stands.
        span: Span,
    },
}

impl SqlError {
    /// The bytes of the script that the error is about.
    pub fn span(&self) -> Span {
        match self {
            Self::Syntax { span, .. }
            | Self::Unsupported { span, .. }
            | Self::TooComplex { span, .. }
            | Self::InvalidText { span, .. } => *span,
        }
    }

    /// What the user can do, if there is something to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Syntax { hint, .. } | Self::Unsupported { hint, .. } => hint.as_deref(),
            Self::TooComplex { .. } => Some("split the statement into smaller ones"),
            Self::InvalidText { .. } => None,
        }
    }

    /// The offending token, for syntax errors that have one.
    pub fn near(&self) -> Option<&str> {
        match self {
            Self::Syntax { near, .. } => near.as_deref(),
            Self::Unsupported { .. } | Self::TooComplex { .. } | Self::InvalidText { .. } => None,
        }
    }

    /// The error's position in `script` as PostgreSQL reports it: counted in characters, from 1.
    pub fn position(&self, script: &str) -> usize {
        char_position(script, self.span().start)
    }

    /// The same error with a hint, unless it has one already or its kind has none.
    pub(crate) fn with_hint(mut self, text: &str) -> Self {
        if let Self::Syntax { hint, .. } | Self::Unsupported { hint, .. } = &mut self {
            hint.get_or_insert_with(|| text.to_string());
        }
        self
    }

    /// An [`SqlError::Unsupported`] without a hint.
    pub(crate) fn unsupported(what: impl Into<String>, span: Span) -> Self {
        Self::Unsupported {
            what: what.into(),
            span,
            hint: None,
        }
    }

    /// An [`SqlError::Syntax`] about the text at `span`; an empty span stands for the end of the text.
    pub(crate) fn syntax(script: &str, span: Span, message: impl Into<String>) -> Self {
        let token = script.get(span.range()).unwrap_or_default();
        let near = (!token.is_empty()).then(|| quoted_piece(token));
        Self::Syntax {
            message: message.into(),
            span,
            near,
            hint: None,
        }
    }
}

/// The character position of byte `offset`, counted from 1 as PostgreSQL's error position is. An offset inside a character counts as
/// that character; one beyond the text counts as the place behind its last character.
pub fn char_position(script: &str, offset: usize) -> usize {
    script
        .char_indices()
        .take_while(|(start, c)| start + c.len_utf8() <= offset)
        .count()
        + 1
}

/// `at or near "x"` or `at end of input`.
fn place(near: &Option<String>) -> String {
    match near {
        Some(token) => format!("at or near \"{token}\""),
        None => "at end of input".to_string(),
    }
}

/// A piece of the user's text as an error may repeat it: short, and without characters that would act on a terminal or reorder a line.
fn quoted_piece(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_QUOTED_CHARS));
    for (count, c) in text.chars().enumerate() {
        if count == MAX_QUOTED_CHARS {
            out.push('…');
            break;
        }
        if c.is_control() || is_bidi_control(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether `c` changes the direction in which a terminal shows the text around it.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_counts_characters_from_one() {
        assert_eq!(char_position("äöü", 0), 1);
        assert_eq!(char_position("äöü", 2), 2);
        assert_eq!(char_position("äöü", 3), 2);
        assert_eq!(char_position("äöü", 6), 4);
        assert_eq!(char_position("äöü", 99), 4);
    }

    #[test]
    fn quoted_text_is_short_and_harmless() {
        assert_eq!(quoted_piece("a\u{202E}b\u{1b}c"), "a\\u{202e}b\\u{1b}c");
        assert_eq!(
            quoted_piece(&"x".repeat(100)).chars().count(),
            MAX_QUOTED_CHARS + 1
        );
    }

    #[test]
    fn syntax_errors_name_the_token_or_the_end() {
        let script = "CREATE STREAM (";
        let near = SqlError::syntax(script, Span::new(14, 15), "expected a name");
        assert_eq!(
            near.to_string(),
            "syntax error at or near \"(\": expected a name"
        );
        assert_eq!(near.position(script), 15);
        let end = SqlError::syntax(script, Span::new(15, 15), "expected a name");
        assert_eq!(
            end.to_string(),
            "syntax error at end of input: expected a name"
        );
    }
}
