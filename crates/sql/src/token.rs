//! A script to statements' tokens.
//!
//! The [`Scanner`] finds blanks and statement ends; what stands between blanks goes to the standard tokenizer. The tokens that come out
//! differ from the standard ones in four ways:
//! - a location is one in the *script*, not in the text that was given to the tokenizer;
//! - an unquoted word is in lower case (ASCII letters), whatever names fold to in the end, so that keywords can be compared; and a name
//!   in `` ` `` is one in `"`;
//! - `E'..'`, `U&'..'`, `N'..'` and `$$..$$` are plain string literals with the text they stand for;
//! - there are no blanks and no comments.

use sqlparser::tokenizer::{Location, Span as StdSpan, Token, TokenWithSpan, Tokenizer};

use crate::definitions;
use crate::dialect::HighwaterDialect;
use crate::error::{Span, SqlError};
use crate::language::Language;
use crate::limits::Limits;
use crate::origin::Origin;
use crate::place::{Place, Places};
use crate::scan::{Piece, PieceKind, Scanner};

/// The longest text without a blank, comma, bracket or quote, in bytes: no token that means anything is longer, and it bounds what the
/// tokenizer makes before the count of tokens is looked at.
const MAX_RUN_BYTES: usize = 16 * 1024;

/// One statement's tokens, without the `;`.
#[derive(Debug)]
pub(crate) struct StatementTokens<'a> {
    pub tokens: Vec<TokenWithSpan>,
    /// The script from the first token on; its end is the offset of the statement's `;`, or of the end of the text.
    pub origin: Origin<'a>,
    /// The bytes from the first token to the last; empty if there is none.
    pub span: Span,
}

/// Cuts a script into the tokens of its statements, one call each.
pub(crate) struct Splitter<'a> {
    script: &'a str,
    scanner: Scanner<'a>,
    limits: &'a Limits,
    language: Language,
    dialect: HighwaterDialect,
    tokens_left: usize,
    /// How far the script is tokenized.
    place: Place,
    finished: bool,
}

impl<'a> Splitter<'a> {
    /// A splitter at the start of `script`, which must have passed [`check_text`].
    pub fn new(script: &'a str, language: Language, limits: &'a Limits) -> Self {
        Self {
            script,
            scanner: Scanner::new(script),
            limits,
            language,
            dialect: HighwaterDialect::new(language.dialect, 0),
            tokens_left: limits.tokens,
            place: Place::start(),
            finished: false,
        }
    }

    /// The next statement's tokens (none, for an empty statement), or `None` at the end of the script.
    pub fn next_statement(&mut self) -> Result<Option<StatementTokens<'a>>, SqlError> {
        if self.finished {
            return Ok(None);
        }
        let mut statement = self.empty_statement();
        // The text that was scanned but not tokenized yet: pieces with nothing between them belong together (`E'..'`, `a.b`).
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
                PieceKind::Plain => {
                    let run = pending.get_or_insert(span);
                    run.end = span.end;
                    if run.end - run.start > MAX_RUN_BYTES {
                        let what = format!("more than {MAX_RUN_BYTES} bytes without a blank");
                        return Err(self.too_complex(what, span));
                    }
                }
                PieceKind::Quoted => {
                    let run =
                        Span::new(pending.take().map_or(span.start, |run| run.start), span.end);
                    self.tokenize(Some(run), &mut statement)?;
                }
                PieceKind::Blank => self.tokenize(pending.take(), &mut statement)?,
                PieceKind::Open | PieceKind::Close | PieceKind::Comma => {
                    self.refuse_reference(span)?;
                    self.tokenize(pending.take(), &mut statement)?;
                    self.tokenize(Some(span), &mut statement)?;
                    match kind {
                        PieceKind::Open => depth += 1,
                        PieceKind::Close => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    if depth > self.limits.depth {
                        let what = format!("nested deeper than {}", self.limits.depth);
                        return Err(self.too_complex(what, span));
                    }
                }
                PieceKind::Semicolon => {
                    self.tokenize(pending.take(), &mut statement)?;
                    statement.origin.end = span.start;
                    return Ok(Some(statement));
                }
            }
        }
        self.finished = true;
        self.tokenize(pending.take(), &mut statement)?;
        Ok(Some(statement))
    }

    /// A statement that has no tokens yet, and ends with the script.
    fn empty_statement(&self) -> StatementTokens<'a> {
        let end = self.script.len();
        StatementTokens {
            tokens: Vec::new(),
            origin: Origin {
                places: Places {
                    script: self.script,
                    start: self.place,
                },
                limits: self.limits,
                language: self.language,
                end,
            },
            span: Span::new(end, end),
        }
    }

    /// Appends the tokens of the text at `run`.
    fn tokenize(
        &mut self,
        run: Option<Span>,
        statement: &mut StatementTokens<'a>,
    ) -> Result<(), SqlError> {
        let Some(run) = run else {
            return Ok(());
        };
        self.place.advance(self.script, run.start);
        let place = self.place;
        let tokens = &mut statement.tokens;
        let before = tokens.len();
        if before == 0 {
            statement.origin.places.start = place;
            statement.span.start = run.start;
        }
        statement.span.end = run.end;
        Tokenizer::new(&self.dialect, &self.script[run.range()])
            .tokenize_with_location_into_buf_with_mapper(tokens, |token| {
                let span = StdSpan::new(
                    place.absolute(token.span.start),
                    place.absolute(token.span.end),
                );
                TokenWithSpan::new(fold(token.token), span)
            })
            .map_err(|error| {
                let at = statement
                    .origin
                    .places
                    .offset(place.absolute(error.location));
                SqlError::syntax(
                    self.script,
                    Span::new(at.min(run.end), run.end),
                    lower_first(&error.message),
                )
            })?;
        split_operators(tokens, before);
        refuse_ambiguous_names(statement.origin.places, &tokens[before..])?;
        let count = tokens.len() - before;
        self.tokens_left = self.tokens_left.checked_sub(count).ok_or_else(|| {
            self.too_complex(format!("more than {} tokens", self.limits.tokens), run)
        })?;
        Ok(())
    }

    /// Refuses a `${name}` whose bracket is at `bracket`: if the name had a value, the value would stand here.
    fn refuse_reference(&self, bracket: Span) -> Result<(), SqlError> {
        let reference = match bracket.start.checked_sub(1) {
            Some(dollar) if self.script[..bracket.start].ends_with('$') => {
                definitions::reference_at(self.script, dollar)
            }
            _ => None,
        };
        match reference {
            None => Ok(()),
            Some((name, span)) => {
                let hint = format!("DEFINE {name} = '..' gives it a value");
                let message = "this variable is not defined";
                Err(SqlError::syntax(self.script, span, message).with_hint(&hint))
            }
        }
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
fn refuse_ambiguous_names(places: Places, tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    for token in tokens {
        if let Token::Word(word) = &token.token
            && word.quote_style.is_some()
            && (word.value.contains("\"\"") || word.value.contains("\\\""))
        {
            let what = "a name with a quotation mark behind a quotation mark or backslash";
            return Err(SqlError::unsupported(what, places.span(token.span)));
        }
    }
    Ok(())
}

/// Cuts what PostgreSQL takes for an operator of its own into the tokens that it is: `>>>` and longer close nested types
/// (`ARRAY<ARRAY<ARRAY<INT>>>`), and `->*` stands for all fields of a struct. Looks at the tokens from index `from` on.
fn split_operators(tokens: &mut Vec<TokenWithSpan>, from: usize) {
    let is_glued = |token: &TokenWithSpan| !parts(&token.token).is_empty();
    if !tokens[from..].iter().any(is_glued) {
        return;
    }
    for token in tokens.split_off(from) {
        if !is_glued(&token) {
            tokens.push(token);
            continue;
        }
        let Location { line, mut column } = token.span.start;
        for part in parts(&token.token) {
            let start = Location::new(line, column);
            column += part.to_string().len() as u64;
            tokens.push(TokenWithSpan::at(part, start, Location::new(line, column)));
        }
    }
}

/// The tokens that an operator of no meaning is made of; none for any other token.
fn parts(token: &Token) -> Vec<Token> {
    let Token::CustomBinaryOperator(text) = token else {
        return Vec::new();
    };
    if text == "->*" {
        return vec![Token::Arrow, Token::Mul];
    }
    if text.bytes().any(|byte| byte != b'>') {
        return Vec::new();
    }
    let mut parts = vec![Token::ShiftRight; text.len() / 2];
    parts.extend((text.len() % 2 == 1).then_some(Token::Gt));
    parts
}

/// A message as it stands behind a colon.
fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(script: &str) -> Vec<Vec<(String, String)>> {
        let limits = Limits::default();
        let mut splitter = Splitter::new(script, Language::POSTGRES, &limits);
        let mut statements = Vec::new();
        while let Some(statement) = splitter.next_statement().unwrap() {
            let texts = statement.tokens.iter().map(|token| {
                (
                    token.token.to_string(),
                    script[statement.origin.places.span(token.span).range()].to_string(),
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
        assert_eq!(sources("s->*,a"), ["s", "->", "*", ",", "a"]);
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
