//! Types of `CAST(.. AS type)` in the spelling that the standard parser reads right.
//!
//! - `T ARRAY` becomes `T[]`. A word `ARRAY` with no `<` behind it can only follow an element's type: anywhere else in a type it begins
//!   `ARRAY<T>` or is the name of a field, which stands behind `<` or a comma.
//! - `>>` becomes two `>`, since the standard parser gives what stands behind it to the wrong one of the two types that it closes.

use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Rewrites the types of all casts.
pub(super) fn rewrite(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(is_cast) {
        return tokens;
    }
    let mut written: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut levels: Vec<Level> = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let before = written.last();
        match token.token {
            Token::LParen => levels.push(match before {
                Some(before) if is_cast(before) => Level::Operand,
                _ => Level::Other,
            }),
            Token::RParen => {
                levels.pop();
            }
            _ => {}
        }
        if is_word(&token, "as") && levels.last() == Some(&Level::Operand) {
            levels.pop();
            levels.push(Level::Type);
        }
        let in_type = levels.last() == Some(&Level::Type);
        let is_suffix = in_type
            && is_word(&token, "array")
            && !before.is_some_and(begins_type)
            && tokens.peek().is_none_or(|next| next.token != Token::Lt);
        match token.token {
            _ if is_suffix => written.extend(pair(Token::LBracket, Token::RBracket, &token)),
            Token::ShiftRight if in_type => written.extend(pair(Token::Gt, Token::Gt, &token)),
            _ => written.push(token),
        }
    }
    written
}

/// Two tokens in the place of one.
fn pair(first: Token, second: Token, replaced: &TokenWithSpan) -> [TokenWithSpan; 2] {
    [first, second].map(|token| TokenWithSpan::new(token, replaced.span))
}

fn is_cast(token: &TokenWithSpan) -> bool {
    is_word(token, "cast") || is_word(token, "try_cast")
}

/// What an open bracket holds at a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The operand of a cast.
    Operand,
    /// The type of a cast.
    Type,
    Other,
}

fn begins_type(before: &TokenWithSpan) -> bool {
    matches!(before.token, Token::Lt | Token::Comma) || is_word(before, "as")
}

fn is_word(token: &TokenWithSpan, text: &str) -> bool {
    matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.value == text)
}
