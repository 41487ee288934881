//! Reading a statement's tokens one by one.
//!
//! All keywords of Highwater's own statements are words without quotes, in lower case since the tokens are folded. A failed `accept`
//! leaves the cursor where it was; errors are about the token the cursor is at.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::error::{Span, SqlError};
use crate::language::{Dialect, Language};
use crate::limits::Limits;
use crate::name;
use crate::origin::Origin;

/// The name of the one schema that sources live in, which clients may write in front of a source's name.
const DEFAULT_SCHEMA: &str = "public";

/// A place in a list of tokens.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    origin: Origin<'a>,
    tokens: Vec<TokenWithSpan>,
    index: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the first of `tokens`.
    pub fn new(origin: Origin<'a>, tokens: Vec<TokenWithSpan>) -> Self {
        Self {
            origin,
            tokens,
            index: 0,
        }
    }

    /// Where the tokens are from; errors at their end point to `end`.
    pub fn origin(&self, end: usize) -> Origin<'a> {
        Origin { end, ..self.origin }
    }

    /// The text the tokens are from.
    pub fn script(&self) -> &'a str {
        self.origin.places.script
    }

    /// The bounds to keep to.
    pub fn limits(&self) -> &'a Limits {
        self.origin.limits
    }

    /// Grammar and folding.
    pub fn language(&self) -> Language {
        self.origin.language
    }

    /// Index of the current token.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Goes back (or on) to the token with an index that [`Cursor::index`] gave.
    pub fn rewind(&mut self, index: usize) {
        self.index = index;
    }

    /// How many tokens there are in all.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether every token was read.
    pub fn at_end(&self) -> bool {
        self.index >= self.tokens.len()
    }

    /// The current token.
    pub fn peek(&self) -> Option<&Token> {
        self.peek_at(0)
    }

    /// The token `ahead` of the current one.
    pub fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens
            .get(self.index + ahead)
            .map(|token| &token.token)
    }

    /// The current token's place, or the empty place at the end.
    pub fn span(&self) -> Span {
        self.span_at(self.index)
    }

    /// The place of the token with this index, or the empty place at the end.
    pub fn span_at(&self, index: usize) -> Span {
        self.tokens
            .get(index)
            .map_or(Span::new(self.origin.end, self.origin.end), |token| {
                self.origin.places.span(token.span)
            })
    }

    /// Whether the current token stands right behind the one before it.
    pub fn is_glued(&self) -> bool {
        match (
            self.index
                .checked_sub(1)
                .and_then(|before| self.tokens.get(before)),
            self.tokens.get(self.index),
        ) {
            (Some(before), Some(current)) => before.span.end == current.span.start,
            _ => false,
        }
    }

    /// The source text of the tokens in a range, as written.
    pub fn text(&self, range: Range<usize>) -> &'a str {
        if range.is_empty() {
            return "";
        }
        &self.origin.places.script[self.span_at(range.start).start..self.span_at(range.end - 1).end]
    }

    /// The current token, and on to the next one.
    pub fn next(&mut self) -> Option<&Token> {
        let token = self.tokens.get(self.index).map(|token| &token.token);
        self.index += usize::from(token.is_some());
        token
    }

    /// The word without quotes that is `ahead` of the current token.
    pub fn word_at(&self, ahead: usize) -> Option<&str> {
        match self.peek_at(ahead) {
            Some(Token::Word(Word {
                value,
                quote_style: None,
                ..
            })) => Some(value),
            _ => None,
        }
    }

    /// The current token if it is a word without quotes.
    pub fn word(&self) -> Option<&str> {
        self.word_at(0)
    }

    /// Whether the next tokens are these words.
    pub fn at_words(&self, words: &[&str]) -> bool {
        words
            .iter()
            .enumerate()
            .all(|(ahead, word)| self.word_at(ahead) == Some(word))
    }

    /// Takes a keyword if it is there.
    pub fn accept(&mut self, word: &str) -> bool {
        self.accept_words(&[word])
    }

    /// Takes all of these keywords if they are there, else none.
    pub fn accept_words(&mut self, words: &[&str]) -> bool {
        let found = self.at_words(words);
        if found {
            self.index += words.len();
        }
        found
    }

    /// Takes the keyword among `words` that is there.
    pub fn accept_one_of<'w>(&mut self, words: &[&'w str]) -> Option<&'w str> {
        let found = words.iter().find(|word| self.word() == Some(word)).copied();
        self.index += usize::from(found.is_some());
        found
    }

    /// Takes a keyword or fails.
    pub fn expect(&mut self, word: &str) -> Result<(), SqlError> {
        if self.accept(word) {
            Ok(())
        } else {
            Err(self.expected(&word.to_uppercase()))
        }
    }

    /// Takes a keyword among `words` or fails.
    pub fn expect_one_of<'w>(&mut self, words: &[&'w str]) -> Result<&'w str, SqlError> {
        match self.accept_one_of(words) {
            Some(word) => Ok(word),
            None => Err(self.expected(&words.join(", ").to_uppercase())),
        }
    }

    /// Whether the current token is this one.
    pub fn at(&self, token: &Token) -> bool {
        self.peek() == Some(token)
    }

    /// Takes a token if it is there.
    pub fn accept_token(&mut self, token: &Token) -> bool {
        let found = self.at(token);
        self.index += usize::from(found);
        found
    }

    /// Takes a token or fails.
    pub fn expect_token(&mut self, token: &Token) -> Result<(), SqlError> {
        if self.accept_token(token) {
            Ok(())
        } else {
            Err(self.expected(&format!("\"{token}\"")))
        }
    }

    /// Fails unless every token was read.
    pub fn expect_end(&self) -> Result<(), SqlError> {
        if self.at_end() {
            Ok(())
        } else {
            Err(self.error("expected the end of the statement"))
        }
    }

    /// Takes a name: any quoted word, or an unquoted one that is not reserved.
    pub fn expect_name(&mut self, what: &str) -> Result<String, SqlError> {
        let name = match self.peek() {
            Some(Token::Word(word)) if word.quote_style.is_some() && word.value.is_empty() => {
                return Err(self.error("a quoted name must not be empty"));
            }
            Some(Token::Word(word)) if word.quote_style.is_some() => word.value.clone(),
            Some(Token::Word(word)) if !self.is_reserved(&word.value) => {
                self.language().identifier_case.fold(&word.value)
            }
            Some(Token::Word(_)) => {
                return Err(self
                    .expected(what)
                    .with_hint("a reserved word can be a name in double quotes"));
            }
            _ => return Err(self.expected(what)),
        };
        self.index += 1;
        Ok(name)
    }

    /// Takes any word, reserved or not: lower case without quotes, as written in quotes.
    pub fn expect_word(&mut self, what: &str) -> Result<String, SqlError> {
        match self.peek() {
            Some(Token::Word(word)) if !word.value.is_empty() => {
                let text = word.value.clone();
                self.index += 1;
                Ok(text)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Whether a word, in lower case, cannot be a name without quotes.
    fn is_reserved(&self, word: &str) -> bool {
        match self.language().dialect {
            Dialect::Postgres => name::is_reserved(word),
            Dialect::Ksql => name::is_reserved_in_ksql(word),
        }
    }

    /// Takes the name of a source, with or without the schema in front of it.
    pub fn expect_source_name(&mut self) -> Result<String, SqlError> {
        let schema_span = self.span();
        let name = self.expect_name("the name of a stream or table")?;
        if !self.accept_token(&Token::Period) {
            return Ok(name);
        }
        if name != DEFAULT_SCHEMA && name != self.language().identifier_case.fold(DEFAULT_SCHEMA) {
            return Err(
                SqlError::unsupported(format!("schema \"{name}\""), schema_span)
                    .with_hint("every stream and table is in schema \"public\""),
            );
        }
        self.expect_name("the name of a stream or table")
    }

    /// Takes names in parentheses, separated by commas.
    pub fn expect_name_list(&mut self, what: &str) -> Result<Vec<String>, SqlError> {
        self.expect_token(&Token::LParen)?;
        let mut names = vec![self.expect_name(what)?];
        while self.accept_token(&Token::Comma) {
            names.push(self.expect_name(what)?);
        }
        self.expect_token(&Token::RParen)?;
        Ok(names)
    }

    /// Takes a string literal if one is there.
    pub fn accept_string(&mut self) -> Option<String> {
        let Some(Token::SingleQuotedString(text)) = self.peek() else {
            return None;
        };
        let text = text.clone();
        self.index += 1;
        Some(text)
    }

    /// Takes a string literal or fails.
    pub fn expect_string(&mut self, what: &str) -> Result<String, SqlError> {
        self.accept_string().ok_or_else(|| self.expected(what))
    }

    /// Takes a whole number without a sign or fails.
    pub fn expect_count(&mut self, what: &str) -> Result<u64, SqlError> {
        let count = match self.peek() {
            Some(Token::Number(digits, _)) => digits.replace('_', "").parse().ok(),
            _ => None,
        };
        let count = count.ok_or_else(|| self.expected(what))?;
        self.index += 1;
        Ok(count)
    }

    /// Moves the tokens of a range out, to hand them to the standard parser. They read as the end of the text afterwards.
    pub fn take_tokens(&mut self, range: Range<usize>) -> Vec<TokenWithSpan> {
        self.tokens[range]
            .iter_mut()
            .map(|token| {
                let span = token.span;
                std::mem::replace(token, TokenWithSpan::new(Token::EOF, span))
            })
            .collect()
    }

    /// The index of the bracket that closes the one the cursor is at.
    pub fn find_close(&self) -> Result<usize, SqlError> {
        let mut depth = 0_usize;
        for (index, token) in self.tokens.iter().enumerate().skip(self.index) {
            match token.token {
                Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
                Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return Ok(index);
            }
        }
        Err(SqlError::syntax(
            self.origin.places.script,
            self.span(),
            "this bracket is never closed",
        ))
    }

    /// An error about the current token that says what belongs in its place.
    pub fn expected(&self, what: &str) -> SqlError {
        self.error(format!("expected {what}"))
    }

    /// An error about the current token.
    pub fn error(&self, message: impl Into<String>) -> SqlError {
        SqlError::syntax(self.origin.places.script, self.span(), message)
    }

    /// An error about the current token that names a known thing that Highwater does not have.
    pub fn unsupported(&self, what: impl Into<String>) -> SqlError {
        SqlError::unsupported(what, self.span())
    }
}
