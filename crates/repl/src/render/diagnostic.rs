//! Errors and notices:
//!
//! ```text
//! ERROR: column "dely" does not exist (42703)
//! LINE 2: SELECT dely FROM flights
//!                ^
//! HINT: There is a column "delay".
//! ```

use std::fmt;

use tokio_postgres::error::{DbError, ErrorPosition};

use super::{
    visible,
    width::{display_width, truncate},
};

/// The part of a statement's line that is quoted is at most this wide.
const QUOTE_WIDTH: usize = 70;
/// Columns of a long line that are kept before the marked place.
const CONTEXT: usize = 30;

/// What a server said about a statement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Diagnostic {
    /// ERROR, NOTICE, ..
    pub severity: String,
    /// SQLSTATE; not shown for notices of success.
    pub code: String,
    /// The message.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Where in the server's work it happened, as the line of a COPY.
    pub context: Option<String>,
    /// The statement's line that is meant.
    pub excerpt: Option<Excerpt>,
}

/// A line of the statement with a place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// From 1.
    line: usize,
    text: String,
    /// Columns before the place.
    column: usize,
}

impl Diagnostic {
    /// What the server said about `statement`.
    pub fn new(error: &DbError, statement: &str) -> Self {
        let excerpt = match error.position() {
            Some(ErrorPosition::Original(position)) => Excerpt::new(statement, *position),
            _ => None,
        };
        Self {
            severity: error.severity().to_owned(),
            code: error.code().code().to_owned(),
            message: error.message().to_owned(),
            detail: error.detail().map(str::to_owned),
            hint: error.hint().map(str::to_owned),
            context: error.where_().map(str::to_owned),
            excerpt,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.message)?;
        // Class 00 is "successful completion": a notice has nothing to look up.
        if !self.code.is_empty() && !self.code.starts_with("00") {
            write!(f, " ({})", self.code)?;
        }
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n{excerpt}")?;
        }
        for (label, text) in [
            ("DETAIL", &self.detail),
            ("HINT", &self.hint),
            ("CONTEXT", &self.context),
        ] {
            if let Some(text) = text {
                write!(f, "\n{label}: {text}")?;
            }
        }
        Ok(())
    }
}

impl Excerpt {
    /// The line of `statement` that holds its `position`-th character, counted from 1; the end of the statement is a place too.
    pub fn new(statement: &str, position: u32) -> Option<Self> {
        let before = usize::try_from(position).ok()?.checked_sub(1)?;
        let mut boundaries = statement
            .char_indices()
            .map(|(at, _)| at)
            .chain([statement.len()]);
        let at = boundaries.nth(before)?;
        let start = statement[..at].rfind('\n').map_or(0, |feed| feed + 1);
        let end = statement[at..]
            .find('\n')
            .map_or(statement.len(), |feed| at + feed);
        let line = statement[..at].matches('\n').count() + 1;
        let (head, tail) = (visible(&statement[start..at]), visible(&statement[at..end]));
        let (head, column) = keep_end(&head);
        let tail = truncate(&tail, QUOTE_WIDTH.saturating_sub(column)).into_owned();
        Some(Self {
            line,
            text: format!("{head}{tail}"),
            column,
        })
    }
}

/// The last columns of what stands before the place, and how many they are.
fn keep_end(head: &str) -> (String, usize) {
    let width = display_width(head);
    if width <= QUOTE_WIDTH - CONTEXT {
        return (head.to_owned(), width);
    }
    let mut kept = head;
    while display_width(kept) > CONTEXT {
        let mut chars = kept.chars();
        chars.next();
        kept = chars.as_str();
    }
    (format!("…{kept}"), display_width(kept) + 1)
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = format!("LINE {}: ", self.line);
        writeln!(f, "{label}{}", self.text.trim_end())?;
        write!(f, "{:width$}^", "", width = label.len() + self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(statement: &str, position: u32) -> String {
        Excerpt::new(statement, position).map_or_else(String::new, |excerpt| excerpt.to_string())
    }

    #[test]
    fn the_caret_stands_under_the_token() {
        assert_eq!(
            excerpt("SELECT a\nFROM nowhere", 15),
            "LINE 2: FROM nowhere\n             ^"
        );
        assert_eq!(excerpt("SELEC 1", 1), "LINE 1: SELEC 1\n        ^");
    }

    #[test]
    fn positions_count_characters_and_carets_count_columns() {
        assert_eq!(
            excerpt("SELECT '東' FRO", 12),
            "LINE 1: SELECT '東' FRO\n                    ^"
        );
    }

    #[test]
    fn the_end_is_a_place_and_what_is_beyond_it_is_not() {
        assert_eq!(excerpt("SELECT", 7), "LINE 1: SELECT\n              ^");
        assert_eq!(excerpt("SELECT", 8), "");
        assert_eq!(excerpt("SELECT", 0), "");
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let statement = format!("SELECT {} oops {}", "a, ".repeat(60), "b, ".repeat(60));
        let position = statement.find("oops").expect("is there") + 1;
        let shown = excerpt(&statement, position as u32);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(
            lines.iter().all(|line| display_width(line) <= 80),
            "{shown}"
        );
        let caret = display_width(lines[1]) - 1;
        let marked: String = lines[0].chars().skip(caret).take(4).collect();
        assert_eq!(marked, "oops");
    }

    #[test]
    fn all_parts_in_order() {
        let diagnostic = Diagnostic {
            severity: "ERROR".to_owned(),
            code: "42703".to_owned(),
            message: "no such column".to_owned(),
            detail: Some("it is not there".to_owned()),
            hint: Some("look again".to_owned()),
            context: Some("COPY t, line 1".to_owned()),
            excerpt: Excerpt::new("SELECT x", 8),
        };
        assert_eq!(
            diagnostic.to_string(),
            "ERROR: no such column (42703)\nLINE 1: SELECT x\n               ^\nDETAIL: it is not there\nHINT: look again\nCONTEXT: COPY t, line 1"
        );
    }

    #[test]
    fn notices_show_no_success_code() {
        let notice = Diagnostic {
            severity: "NOTICE".to_owned(),
            code: "00000".to_owned(),
            message: "started".to_owned(),
            ..Diagnostic::default()
        };
        assert_eq!(notice.to_string(), "NOTICE: started");
    }
}
