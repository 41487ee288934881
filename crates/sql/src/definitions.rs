//! `DEFINE name = 'text'` and `${name}`: texts that stand for others, put in before a statement is read.
//!
//! References are replaced in one pass: what a value says is not looked at again. Inside quotes a value's quotes are doubled, so that a
//! value can never end the literal or name that it is put into; `$${name}` inside quotes stands for `${name}` itself. Comments and
//! dollar-quoted strings stay as they are. A reference to a name that is not defined stays too, and outside quotes it is a syntax error.
//!
//! INVARIANT: a statement ends where it ends before the replacement. A value that adds an end, or hides one in a quote or comment, is refused.

use std::collections::BTreeMap;

use crate::ast::Statement;
use crate::error::{Span, SqlError};
use crate::language::Language;
use crate::limits::Limits;
use crate::parser::parse_statement_in;
use crate::scan::{Piece, PieceKind, Scanner};

/// How many bytes the names and values of one session may take.
const MAX_BYTES: usize = 1024 * 1024;

/// What a session has defined. Names are found without regard to case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    values: BTreeMap<String, String>,
    bytes: usize,
}

impl Definitions {
    /// Gives `name` a value in place of the one it had. Fails, with the limit, if all of them would take too many bytes.
    pub fn define(&mut self, name: &str, value: &str) -> Result<(), usize> {
        let key = name.to_lowercase();
        let before = self.values.get(&key).map_or(0, |old| key.len() + old.len());
        let bytes = self.bytes - before + key.len() + value.len();
        if bytes > MAX_BYTES {
            return Err(MAX_BYTES);
        }
        self.bytes = bytes;
        self.values.insert(key, value.to_string());
        Ok(())
    }

    /// Forgets `name`; false if it was not defined.
    pub fn undefine(&mut self, name: &str) -> bool {
        let key = name.to_lowercase();
        match self.values.remove(&key) {
            Some(value) => {
                self.bytes -= key.len() + value.len();
                true
            }
            None => false,
        }
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.get(&name.to_lowercase()).map(String::as_str)
    }

    /// Applies a statement that defines or undefines, which later statements of the same script already see.
    fn apply(&mut self, statement: &Statement) {
        match statement {
            // A value that does not fit is refused when the statement runs.
            Statement::Define { name, value } => {
                let _ = self.define(name, value);
            }
            Statement::Undefine(name) => {
                self.undefine(name);
            }
            _ => {}
        }
    }
}

/// A script with values in place of references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substituted {
    /// What is read.
    pub text: String,
    /// Stretches of the text that were something else, in order.
    replaced: Vec<Replaced>,
}

/// A value, and the reference that it replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Replaced {
    value: Span,
    reference: Span,
}

impl Substituted {
    /// Where the byte at `offset` of the text came from: its own place in the script, or the start of the reference that brought it in.
    pub fn origin(&self, offset: usize) -> usize {
        let before = self
            .replaced
            .partition_point(|replaced| replaced.value.start <= offset);
        match before.checked_sub(1).map(|index| self.replaced[index]) {
            None => offset,
            Some(Replaced { value, reference }) if offset < value.end => reference.start,
            Some(Replaced { value, reference }) => reference.end + (offset - value.end),
        }
    }
}

/// Puts the values of `definitions` into a script. `None` if nothing changes, which is also the answer for a script with an open quote.
///
/// DEFINE and UNDEFINE count for the statements behind them in the same script.
pub fn substitute(
    script: &str,
    definitions: &Definitions,
    language: Language,
    limits: &Limits,
) -> Result<Option<Substituted>, SqlError> {
    if !script.contains("${") {
        return Ok(None);
    }
    let mut writer = Writer {
        script,
        definitions: definitions.clone(),
        language,
        limits,
        text: String::with_capacity(script.len()),
        replaced: Vec::new(),
        ends: Vec::new(),
    };
    // A byte order mark is in no piece.
    if script.starts_with('\u{FEFF}') {
        writer.text.push('\u{FEFF}');
    }
    for piece in Scanner::new(script) {
        let Ok(piece) = piece else {
            return Ok(None);
        };
        writer.take(piece)?;
    }
    let Writer {
        text,
        replaced,
        ends,
        ..
    } = writer;
    let Some(first) = replaced.first() else {
        return Ok(None);
    };
    if statement_ends(&text) != Some(ends) {
        let message = "the values of variables must not change where statements end";
        return Err(SqlError::syntax(script, first.reference, message));
    }
    Ok(Some(Substituted { text, replaced }))
}

/// Where the statements of a text end; `None` if a quote or comment is open at its end.
fn statement_ends(text: &str) -> Option<Vec<usize>> {
    let mut ends = Vec::new();
    for piece in Scanner::new(text) {
        let Piece { kind, span } = piece.ok()?;
        if kind == PieceKind::Semicolon {
            ends.push(span.start);
        }
    }
    Some(ends)
}

/// The text as far as it is written.
struct Writer<'a> {
    script: &'a str,
    definitions: Definitions,
    language: Language,
    limits: &'a Limits,
    text: String,
    replaced: Vec<Replaced>,
    /// Where the statements so far end in the text.
    ends: Vec<usize>,
}

impl Writer<'_> {
    fn take(&mut self, piece: Piece) -> Result<(), SqlError> {
        // A reference outside quotes was taken along with its `$`.
        let written = self.copied_to();
        if piece.span.end <= written {
            return Ok(());
        }
        let source = &self.script[piece.span.range()];
        match piece.kind {
            PieceKind::Quoted if source.starts_with(['\'', '"', '`']) => {
                self.take_quoted(piece.span)
            }
            PieceKind::Plain if source.ends_with('$') => {
                let dollar = piece.span.end - 1;
                self.copy(Span::new(piece.span.start, dollar))?;
                let escaped = self.script[..dollar].ends_with('$');
                match reference_at(self.script, dollar) {
                    Some((name, reference)) if !escaped && self.definitions.get(name).is_some() => {
                        self.replace(name, reference, None)
                    }
                    _ => self.copy(Span::new(dollar, piece.span.end)),
                }
            }
            PieceKind::Semicolon => {
                self.end_statement();
                self.copy(piece.span)
            }
            _ => self.copy(piece.span),
        }
    }

    /// How far into the script the text reaches.
    fn copied_to(&self) -> usize {
        match self.replaced.last() {
            None => self.text.len(),
            Some(last) => last.reference.end + (self.text.len() - last.value.end),
        }
    }

    /// Copies a literal or name in quotes, with values in place of the references in it.
    fn take_quoted(&mut self, span: Span) -> Result<(), SqlError> {
        let quote = self.script[span.range()].chars().next();
        let mut at = span.start;
        while let Some(found) = self.script[at..span.end].find("${") {
            let dollar = at + found;
            let Some((name, reference)) = reference_at(self.script, dollar)
                .filter(|(_, reference)| reference.end <= span.end)
            else {
                self.copy(Span::new(at, dollar + 2))?;
                at = dollar + 2;
                continue;
            };
            let escaped = self.script[span.start..dollar].ends_with('$');
            if escaped {
                // One `$` of the two goes; the rest is an empty value and a copy.
                self.copy(Span::new(at, dollar - 1))?;
                self.push("", Span::new(dollar - 1, dollar))?;
                self.copy(reference)?;
            } else {
                self.copy(Span::new(at, dollar))?;
                match self.definitions.get(name) {
                    Some(_) => self.replace(name, reference, quote)?,
                    None => self.copy(reference)?,
                }
            }
            at = reference.end;
        }
        self.copy(Span::new(at, span.end))
    }

    /// Writes the value of `name` in place of `reference`, with its quotes doubled if it stands within such quotes.
    fn replace(
        &mut self,
        name: &str,
        reference: Span,
        quote: Option<char>,
    ) -> Result<(), SqlError> {
        let value = self.definitions.get(name).unwrap_or_default();
        let value = match quote {
            Some(quote) => value.replace(quote, &format!("{quote}{quote}")),
            None => value.to_string(),
        };
        self.push(&value, reference)
    }

    fn push(&mut self, value: &str, reference: Span) -> Result<(), SqlError> {
        let start = self.text.len();
        self.grow(value, reference)?;
        self.replaced.push(Replaced {
            value: Span::new(start, self.text.len()),
            reference,
        });
        Ok(())
    }

    fn copy(&mut self, span: Span) -> Result<(), SqlError> {
        self.grow(&self.script[span.range()], span)
    }

    fn grow(&mut self, piece: &str, span: Span) -> Result<(), SqlError> {
        if self.text.len() + piece.len() > self.limits.bytes {
            return Err(SqlError::TooComplex {
                what: format!(
                    "text of more than {} bytes with the values of its variables",
                    self.limits.bytes
                ),
                span,
            });
        }
        self.text.push_str(piece);
        Ok(())
    }

    /// Lets a DEFINE or UNDEFINE that ends here count for what follows. One that cannot be read is left for the parser to refuse.
    fn end_statement(&mut self) {
        let start = self.ends.last().map_or(0, |end| end + 1);
        let statement = &self.text[start..];
        self.ends.push(self.text.len());
        let has = |word: &str| {
            let mut pieces = Scanner::new(statement).flatten();
            let first = pieces.find(|piece| piece.kind != PieceKind::Blank);
            first.is_some_and(|piece| statement[piece.span.range()].eq_ignore_ascii_case(word))
        };
        if (has("define") || has("undefine"))
            && let Ok(parsed) = parse_statement_in(statement, self.language)
        {
            self.definitions.apply(&parsed.statement);
        }
    }
}

/// The name in the `${name}` that begins at byte `dollar`, and where the reference stands.
pub(crate) fn reference_at(script: &str, dollar: usize) -> Option<(&str, Span)> {
    let body = script[dollar..].strip_prefix("${")?;
    let length = body
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|length| *length > 0)?;
    body[length..].starts_with('}').then(|| {
        let span = Span::new(dollar, dollar + length + 3);
        (&body[..length], span)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(pairs: &[(&str, &str)]) -> Definitions {
        let mut definitions = Definitions::default();
        for (name, value) in pairs {
            definitions.define(name, value).unwrap();
        }
        definitions
    }

    fn substituted(script: &str, pairs: &[(&str, &str)]) -> Option<Substituted> {
        let limits = Limits::default();
        substitute(script, &definitions(pairs), Language::KSQL, &limits).unwrap()
    }

    fn text(script: &str, pairs: &[(&str, &str)]) -> String {
        substituted(script, pairs).map_or_else(|| script.to_string(), |script| script.text)
    }

    #[test]
    fn references_are_replaced_in_and_outside_quotes() {
        let pairs = &[("a", "x"), ("Q", "it's"), ("n", "5"), ("s", "a;b")];
        for (script, expected) in [
            ("SELECT ${a} FROM ${A}${n}", "SELECT x FROM x5"),
            ("SELECT '${q}', '-${n}-'", "SELECT 'it''s', '-5-'"),
            ("SELECT \"${q}\", `${a}`", "SELECT \"it's\", `x`"),
            ("SELECT '$${a}${a}'", "SELECT '${a}x'"),
            (
                "SELECT '${b}', '${', '${a', '$'",
                "SELECT '${b}', '${', '${a', '$'",
            ),
            ("SELECT ${b}", "SELECT ${b}"),
            ("SELECT 1 -- ${a}\n, ${n}", "SELECT 1 -- ${a}\n, 5"),
            (
                "SELECT /* ${a} */ $$ ${a} $$, $1",
                "SELECT /* ${a} */ $$ ${a} $$, $1",
            ),
            ("SELECT f(${n}, a$${n})", "SELECT f(5, a$${n})"),
            ("\u{FEFF}SELECT ${a}", "\u{FEFF}SELECT x"),
            ("SELECT '${a}", "SELECT '${a}"),
            ("SELECT '${s}'; SELECT 1", "SELECT 'a;b'; SELECT 1"),
        ] {
            assert_eq!(text(script, pairs), expected, "{script}");
        }
    }

    #[test]
    fn a_script_sees_its_own_definitions() {
        assert_eq!(
            text(
                "SELECT '${v}'; DEFINE v = 'a;${w}'; SELECT '${v}'; -- c\nUNDEFINE V; SELECT '${v}'",
                &[("w", "z")]
            ),
            "SELECT '${v}'; DEFINE v = 'a;z'; SELECT 'a;z'; -- c\nUNDEFINE V; SELECT '${v}'"
        );
    }

    #[test]
    fn values_are_not_looked_at_again() {
        assert_eq!(
            text("SELECT ${a}, ${b}", &[("a", "${b}"), ("b", "'${a}'")]),
            "SELECT ${b}, '${a}'"
        );
    }

    #[test]
    fn values_do_not_move_the_ends_of_statements() {
        for (value, script) in [
            ("1; DROP STREAM s", "SELECT ${v}"),
            ("1;", "SELECT ${v}"),
            ("1 --", "SELECT ${v}; SELECT 2"),
            ("-", "SELECT 1 ${v}- 2; SELECT 3"),
            ("'", "SELECT ${v}, 1; SELECT '2'"),
            ("/*", "SELECT ${v} 1; SELECT 2 */"),
            ("$$", "SELECT ${v}; SELECT 2"),
        ] {
            let definitions = definitions(&[("v", value)]);
            let error = substitute(script, &definitions, Language::KSQL, &Limits::default())
                .expect_err(script);
            assert!(
                error.to_string().contains("where statements end"),
                "{error}"
            );
            assert_eq!(error.near(), Some("${v}"));
        }
    }

    #[test]
    fn places_are_found_again() {
        let script = "SELECT ${a}, b, '${q}' ,c";
        let found = substituted(script, &[("a", "long_name"), ("q", "'")]).unwrap();
        assert_eq!(found.text, "SELECT long_name, b, '''' ,c");
        let at = |part: &str| found.origin(found.text.find(part).unwrap());
        assert_eq!(at("SELECT"), 0);
        assert_eq!(at("long_name"), script.find("${a}").unwrap());
        assert_eq!(at("name"), script.find("${a}").unwrap());
        assert_eq!(at(", b"), script.find(", b").unwrap());
        assert_eq!(at(" ,c"), script.find(" ,c").unwrap());
        assert_eq!(found.origin(found.text.len()), script.len());
    }

    #[test]
    fn neither_scripts_nor_sessions_grow_without_bound() {
        let mut definitions = Definitions::default();
        let half = "x".repeat(MAX_BYTES / 2);
        definitions.define("a", &half).unwrap();
        assert_eq!(definitions.define("b", &half), Err(MAX_BYTES));
        definitions.define("A", &half).unwrap();
        assert!(definitions.undefine("a"));
        assert!(!definitions.undefine("a"));
        definitions.define("b", &half).unwrap();
        let script = format!("SELECT {}1", "${b},".repeat(100_000));
        let error = substitute(&script, &definitions, Language::KSQL, &Limits::default());
        assert!(matches!(error, Err(SqlError::TooComplex { .. })));
    }
}
