//! The only map from errors to SQLSTATE, message, detail and hint.
//!
//! Every error that reaches a client is a [`SqlError`]. Errors of our crates and of DataFusion become one here and nowhere else, so that a
//! code is decided once. Our crates' enums are matched variant by variant; the last arm that `#[non_exhaustive]` forces answers `XX000`,
//! which a client may take as "report this".
//!
//! A mistake of the user has an exact code (class 22, 42, ..), the environment has class 53 or 58, damage on disk is `XX001`, and a bug of
//! ours `XX000`.

pub mod code;
mod datafusion;
mod engine;
mod statement;
#[cfg(test)]
mod tests;

/// An error as a client is told of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    /// SQLSTATE, one of [`code`].
    pub code: &'static str,
    /// One sentence, lower case, that names the offending token.
    pub message: String,
    /// More facts.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Where in the statement's text, in characters from 1.
    pub position: Option<usize>,
}

impl SqlError {
    /// An error with a code and a message.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
        }
    }

    /// Something that SQL can say but this server cannot do: `0A000`.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(code::FEATURE_NOT_SUPPORTED, message)
    }

    /// A bug of ours: `XX000`.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }

    /// Adds facts.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what to do.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds where, in characters from 1.
    pub fn with_position(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }

    /// Takes away a place that is in no text that the client sent.
    pub fn without_position(mut self) -> Self {
        self.position = None;
        self
    }

    /// Adds where, from a line and a column as parsers count them (both in characters from 1). A place outside the text adds nothing.
    pub fn with_line_and_column(mut self, text: &str, line: u64, column: u64) -> Self {
        self.position = character_position(text, line, column).or(self.position);
        self
    }
}

/// The 1-based character position of a 1-based line and column of `text`.
fn character_position(text: &str, line: u64, column: u64) -> Option<usize> {
    let lines_before = usize::try_from(line.checked_sub(1)?).ok()?;
    let column = usize::try_from(column).ok().filter(|column| *column > 0)?;
    let mut lines = text.split_inclusive('\n');
    let mut before = 0;
    for _ in 0..lines_before {
        before += lines.next()?.chars().count();
    }
    // Behind a line end there is one more line, which may be empty.
    let last = (text.is_empty() || text.ends_with('\n')).then_some("");
    let width = lines.next().or(last)?.chars().count();
    (column <= width + 1).then_some(before + column)
}
