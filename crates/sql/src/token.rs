//! A script to statements' tokens.
//!
//! The [`Scanner`] finds blanks and statement ends; what stands between blanks goes to the standard tokenizer. The tokens that come out
//! differ from the standard ones in four ways:
//! - a location's column is the byte offset in the *script* plus one, and its line is always 1 (see [`span_of`]);
//! - an unquoted word is in lower case (ASCII letters, as PostgreSQL folds them), and a name in `` ` `` is one in `"`;
//! - `E'..'`, `U&'..'`, `N'..'` and `$$..$$` are plain string literals with the text they stand for;
//! - there are no blanks and no comments.

use sqlparser::tokenizer::{Location, Span as StdSpan, Token, TokenWithSpan, Tokenizer};

use crate::dialect::HighwaterDialect;
use crate::error::{Span, SqlError};
use crate::limits::Limits;
use crate::scan::{Piece, PieceKind, Scanner};

/// The longest text without a blank, comma, bracket or quote, in bytes: no token that means anything is longer, and it bounds what the
/// tokenizer makes before the count of tokens is looked at.
const MAX_RUN_BYTES: usize = 16 * 1024;

/// One statement's tokens, without the `;`.
#[derive(Debug)]
pub(crate) struct StatementTokens {
    pub tokens: Vec<TokenWithSpan>,
    /// Where the statement ends: the offset of its `;`, or of the end of the text.
    pub end: usize,
}

/// The bytes of the script that a standard span stands for.
pub(crate) fn span_of(span: StdSpan) -> Span {
    Span::new(offset_of(span.start), offset_of(span.end))
}

/// The byte offset that a location made by this module stands for.
pub(crate) fn offset_of(location: Location) -> usize {
    usize::try_from(location.column)
        .unwrap_or(usize::MAX)
        .saturating_sub(1)
}

/// The inverse of [`span_of`].
fn std_span(span: Span) -> StdSpan {
    let location = |offset: usize| Location::new(1, offset as u64 + 1);
    StdSpan::new(location(span.start), location(span.end))
}

/// Cuts a script into the tokens of its statements, one call each.
pub(crate) struct Splitter<'a> {
    script: &'a str,
    scanner: Scanner<'a>,
    limits: &'a Limits,
    dialect: HighwaterDialect,
    tokens_left: usize,
    finished: bool,
}

impl<'a> Splitter<'a> {
    /// A splitter at the start of `script`, which must have passed [`check_text`].
    pub fn new(script: &'a str, limits: &'a Limits) -> Self {
        Self {
            script,
            scanner: Scanner::new(script),
            limits,
            dialect: HighwaterDialect::for_tokens(0),
            tokens_left: limits.tokens,
            finished: false,
        }
    }

    /// The next statement's tokens (none, for an empty statement), or `None` at the end of the script.
    pub fn next_statement(&mut self) -> Result<Option<StatementTokens>, SqlError> {
        if self.finished {
            return Ok(None);
        }
        let mut tokens = Vec::new();
        // The tokens' text that was scanned but not tokenized yet: pieces with nothing between them belong together (`E'..'`, `a.b`).
        let mut pending: Option<Span> = None;
        let mut depth = 0_usize;
        while let Some(piece) = self.scanner.next() {
            let Piece { kind, span } = piece.map_err(|open| {
                SqlError::syntax(
                    self.script,
                    open.span,
                    format!("unterminated {}", open.what),
                )
            })?;
            match kind {
                PieceKind::Plain | PieceKind::Quoted => {
                    let run = pending.get_or_insert(Span::new(span.start, span.start));
                    run.end = span.end;
                    if kind == PieceKind::Plain && run.end - run.start > MAX_RUN_BYTES {
                        return Err(self.too_complex(
                            format!("more than {MAX_RUN_BYTES} bytes without a blank"),
                            span,
                        ));
                    }
                    if kind == PieceKind::Plain {
                        continue;
                    }
                    self.tokenize(pending.take(), &mut tokens)?;
                }
                PieceKind::Blank => self.tokenize(pending.take(), &mut tokens)?,
                PieceKind::Open | PieceKind::Close | PieceKind::Comma => {
                    self.tokenize(pending.take(), &mut tokens)?;
                    self.tokenize(Some(span), &mut tokens)?;
                    match kind {
                        PieceKind::Open => depth += 1,
                        PieceKind::Close => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    if depth > self.limits.depth {
                        return Err(self.too_complex(
                            format!("nested deeper than {}", self.limits.depth),
                            span,
                        ));
                    }
                }
                PieceKind::Semicolon => {
                    self.tokenize(pending.take(), &mut tokens)?;
                    return Ok(Some(StatementTokens {
                        tokens,
                        end: span.start,
                    }));
                }
            }
        }
        self.finished = true;
        self.tokenize(pending.take(), &mut tokens)?;
        Ok(Some(StatementTokens {
            tokens,
            end: self.script.len(),
        }))
    }

    /// Appends the tokens of the text at `run`.
    fn tokenize(
        &mut self,
        run: Option<Span>,
        tokens: &mut Vec<TokenWithSpan>,
    ) -> Result<(), SqlError> {
        let Some(run) = run else {
            return Ok(());
        };
        let text = &self.script[run.range()];
        let mut clock = OffsetClock::new(text, run.start);
        let before = tokens.len();
        Tokenizer::new(&self.dialect, text)
            .tokenize_with_location_into_buf_with_mapper(tokens, |token| {
                let span = Span::new(clock.offset(token.span.start), clock.offset(token.span.end));
                TokenWithSpan::new(fold(token.token), std_span(span))
            })
            .map_err(|error| {
                let at = OffsetClock::new(text, run.start).offset(error.location);
                let message = lower_first(&error.message);
                SqlError::syntax(self.script, Span::new(at.min(run.end), run.end), message)
            })?;
        split_closing_brackets(tokens, before);
        refuse_ambiguous_names(&tokens[before..])?;
        self.tokens_left = self
            .tokens_left
            .checked_sub(tokens.len() - before)
            .ok_or_else(|| {
                self.too_complex(format!("more than {} tokens", self.limits.tokens), run)
            })?;
        Ok(())
    }

    fn too_complex(&self, what: String, span: Span) -> SqlError {
        SqlError::TooComplex { what, span }
    }
}

/// Refuses what no statement may hold and what is too long, before anything else looks at the text.
pub(crate) fn check_text(script: &str, limits: &Limits) -> Result<(), SqlError> {
    if script.len() > limits.bytes {
        let mut end = limits.bytes;
        while !script.is_char_boundary(end) {
            end -= 1;
        }
        return Err(SqlError::TooComplex {
            what: format!(
                "text of {} bytes, the limit is {}",
                script.len(),
                limits.bytes
            ),
            span: Span::new(end, script.len()),
        });
    }
    match script.find('\0') {
        Some(at) => Err(SqlError::InvalidText {
            message: "character with code zero".to_string(),
            span: Span::new(at, at + 1),
        }),
        None => Ok(()),
    }
}

/// Lower case for a word without quotes, one kind of quote for those with, and one kind of string literal.
fn fold(token: Token) -> Token {
    match token {
        Token::Word(mut word) => {
            match word.quote_style {
                None => word.value.make_ascii_lowercase(),
                Some(_) => word.quote_style = Some('"'),
            }
            Token::Word(word)
        }
        Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text)
        | Token::NationalStringLiteral(text) => Token::SingleQuotedString(text),
        Token::DollarQuotedString(text) => Token::SingleQuotedString(text.value),
        other => other,
    }
}

/// The standard tree cannot tell a quotation mark in a name from an escaped one when they stand side by side, so a statement that has
/// such a name could not be written back.
fn refuse_ambiguous_names(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    for token in tokens {
        if let Token::Word(word) = &token.token
            && word.quote_style.is_some()
            && (word.value.contains("\"\"") || word.value.contains("\\\""))
        {
            let what = "a name with a quotation mark behind a quotation mark or backslash";
            return Err(SqlError::unsupported(what, span_of(token.span)));
        }
    }
    Ok(())
}

/// Cuts `>>>` and longer, which close nested types (`ARRAY<ARRAY<ARRAY<INT>>>`), into the `>>` and `>` that parsers of types know.
/// They are no operators otherwise. Looks at the tokens from index `from` on.
fn split_closing_brackets(tokens: &mut Vec<TokenWithSpan>, from: usize) {
    let is_closing = |token: &Token| matches!(token, Token::CustomBinaryOperator(text) if text.bytes().all(|byte| byte == b'>'));
    if !tokens[from..].iter().any(|token| is_closing(&token.token)) {
        return;
    }
    for token in tokens.split_off(from) {
        if !is_closing(&token.token) {
            tokens.push(token);
            continue;
        }
        let Span { mut start, end } = span_of(token.span);
        while start < end {
            let length = (end - start).min(2);
            let part = if length == 2 {
                Token::ShiftRight
            } else {
                Token::Gt
            };
            tokens.push(TokenWithSpan::new(
                part,
                std_span(Span::new(start, start + length)),
            ));
            start += length;
        }
    }
}

/// A message as it stands behind a colon.
fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Turns the tokenizer's lines and columns into offsets. Locations must come in ascending order, so that all of a text costs one pass.
struct OffsetClock<'a> {
    rest: std::str::Chars<'a>,
    location: Location,
    offset: usize,
}

impl<'a> OffsetClock<'a> {
    fn new(text: &'a str, base: usize) -> Self {
        Self {
            rest: text.chars(),
            location: Location::new(1, 1),
            offset: base,
        }
    }

    fn offset(&mut self, location: Location) -> usize {
        while self.location < location {
            let Some(c) = self.rest.next() else {
                break;
            };
            self.offset += c.len_utf8();
            if c == '\n' {
                self.location = Location::new(self.location.line + 1, 1);
            } else {
                self.location.column += 1;
            }
        }
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(script: &str) -> Vec<Vec<(String, String)>> {
        let limits = Limits::default();
        let mut splitter = Splitter::new(script, &limits);
        let mut statements = Vec::new();
        while let Some(statement) = splitter.next_statement().unwrap() {
            let texts = statement.tokens.iter().map(|token| {
                (
                    token.token.to_string(),
                    script[span_of(token.span).range()].to_string(),
                )
            });
            statements.push(texts.collect());
        }
        statements
    }

    fn sources(script: &str) -> Vec<String> {
        split(script)
            .concat()
            .into_iter()
            .map(|(_, source)| source)
            .collect()
    }

    #[test]
    fn spans_are_bytes_of_the_script() {
        let script = "SELECT 'é\n ö' , \"ä\".b /* ü */ + E'\\'x';\n -- x\nshow streams";
        let expected = [
            "SELECT",
            "'é\n ö'",
            ",",
            "\"ä\"",
            ".",
            "b",
            "+",
            "E'\\'x'",
            "show",
            "streams",
        ];
        assert_eq!(sources(script), expected);
    }

    #[test]
    fn glued_tokens_are_cut_as_the_tokenizer_cuts_them() {
        assert_eq!(
            sources("a->b[1]::int"),
            ["a", "->", "b", "[", "1", "]", "::", "int"]
        );
        assert_eq!(
            sources("a.b<=1.5e-3||'x'"),
            ["a", ".", "b", "<=", "1.5e-3", "||", "'x'"]
        );
        assert_eq!(sources("x'ab'$a$;$a$ $1"), ["x'ab'", "$a$;$a$", "$1"]);
        assert_eq!(sources("a=-1"), ["a", "=", "-", "1"]);
        assert_eq!(
            sources("a<b<c<d>>>"),
            ["a", "<", "b", "<", "c", "<", "d", ">>", ">"]
        );
    }

    #[test]
    fn words_fold_unless_quoted() {
        let folded: Vec<String> = split("Foo \"Bar\" `Baz` 'Q'")
            .concat()
            .into_iter()
            .map(|(token, _)| token)
            .collect();
        assert_eq!(folded, ["foo", "\"Bar\"", "\"Baz\"", "'Q'"]);
    }

    #[test]
    fn statements_end_at_semicolons() {
        let counts: Vec<usize> = split("select 1;; select ';' ; ")
            .iter()
            .map(Vec::len)
            .collect();
        assert_eq!(counts, [2, 0, 2, 0]);
    }
}
