//! Tokens to statements: one function for each family of statements, and the table that chooses among them.

mod assert;
mod copy;
mod create;
mod cursors;
mod insert;
mod properties;
mod query;
mod session;
mod show;
mod source;
pub(crate) mod streaming;
mod transaction;
mod types;
mod unsupported;
mod windows;

pub use types::parse_type;

use sqlparser::tokenizer::Token;

use crate::ast::{Explain, ExplainTarget, Statement};
use crate::cursor::Cursor;
use crate::error::{Span, SqlError};
use crate::format::format_statement;
use crate::language::Language;
use crate::limits::Limits;
use crate::token::{self, Splitter, StatementTokens};

/// A statement with the text it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedStatement {
    /// What it says.
    pub statement: Statement,
    /// Its own source text, without the `;` and without blanks and comments around it.
    pub text: String,
    /// Where that text stands in the script.
    pub span: Span,
    /// How the text was read.
    pub language: Language,
}

impl ParsedStatement {
    /// The statement as canonical text that is known to parse to the same statement again in the same language: what may be stored, with
    /// the language, in its place.
    ///
    /// Fails for a statement whose standard part the standard tree does not write back exactly. That is an error of ours or the standard
    /// parser's, and better found before the text is stored than when it is read.
    pub fn canonical_text(&self) -> Result<String, SqlError> {
        let text = format_statement(&self.statement, self.language.identifier_case);
        match parse_statement_in(&text, self.language) {
            Ok(again) if again.statement == self.statement => Ok(text),
            _ => Err(SqlError::unsupported(
                "this spelling, which cannot be written back,",
                self.span,
            )),
        }
    }
}

/// Parses all statements of a script in the default language, within the default [`Limits`]. See [`parse_script_within`].
pub fn parse_script(script: &str) -> Result<Vec<ParsedStatement>, SqlError> {
    parse_script_in(script, Language::default())
}

/// Parses all statements of a script, within the default [`Limits`]. See [`parse_script_within`].
pub fn parse_script_in(script: &str, language: Language) -> Result<Vec<ParsedStatement>, SqlError> {
    parse_script_within(script, language, &Limits::default())
}

/// Parses all statements of a script, within `limits`.
///
/// Empty statements between others are left out, as PostgreSQL does; a script with nothing but blanks is one
/// [`Statement::Empty`], so that the result is never empty.
pub fn parse_script_within(
    script: &str,
    language: Language,
    limits: &Limits,
) -> Result<Vec<ParsedStatement>, SqlError> {
    token::check_text(script, limits)?;
    let mut statements = Vec::new();
    let mut splitter = Splitter::new(script, language, limits);
    while let Some(tokens) = splitter.next_statement()? {
        let StatementTokens {
            tokens,
            origin,
            span,
        } = tokens;
        if tokens.is_empty() {
            continue;
        }
        if statements.len() == limits.statements {
            let what = format!("more than {} statements in one script", limits.statements);
            return Err(SqlError::TooComplex { what, span });
        }
        let mut cursor = Cursor::new(origin, tokens);
        let statement = statement(&mut cursor)?;
        cursor.expect_end()?;
        statements.push(ParsedStatement {
            statement,
            text: script[span.range()].to_string(),
            span,
            language,
        });
    }
    if statements.is_empty() {
        let end = Span::new(script.len(), script.len());
        statements.push(ParsedStatement {
            statement: Statement::Empty,
            text: String::new(),
            span: end,
            language,
        });
    }
    Ok(statements)
}

/// Parses a text that holds exactly one statement in the default language. See [`parse_statement_in`].
pub fn parse_statement(text: &str) -> Result<ParsedStatement, SqlError> {
    parse_statement_in(text, Language::default())
}

/// Parses a text that holds exactly one statement, with or without a `;` behind it. A blank text is [`Statement::Empty`].
pub fn parse_statement_in(text: &str, language: Language) -> Result<ParsedStatement, SqlError> {
    let mut statements = parse_script_in(text, language)?.into_iter();
    let first = statements.next();
    match (first, statements.next()) {
        (Some(only), None) => Ok(only),
        (_, Some(second)) => Err(SqlError::syntax(
            text,
            second.span,
            "expected only one statement",
        )),
        (None, None) => Err(SqlError::syntax(
            text,
            Span::new(text.len(), text.len()),
            "expected a statement",
        )),
    }
}

/// The statement at the cursor, up to the end of its tokens.
fn statement(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    if cursor.at(&Token::LParen) {
        return query::rest(cursor).map(Statement::Query);
    }
    let verb = cursor.word().unwrap_or_default().to_string();
    match verb.as_str() {
        "select" | "with" | "values" | "table" => query::rest(cursor).map(Statement::Query),
        "create" => create::create(cursor),
        "alter" => create::alter(cursor),
        "drop" => source::drop(cursor),
        "describe" | "desc" => source::describe(cursor),
        "print" => source::print(cursor),
        "insert" => insert::insert(cursor),
        "copy" => copy::copy(cursor),
        "terminate" | "pause" | "resume" => source::query_control(cursor),
        "show" | "list" => show::show(cursor),
        "explain" => explain(cursor),
        "assert" => assert::assert(cursor),
        "define" => session::define(cursor),
        "undefine" => session::undefine(cursor),
        "run" => session::run_script(cursor),
        "backup" => session::backup(cursor),
        "set" => session::set(cursor),
        "unset" | "reset" => session::unset(cursor),
        "deallocate" => session::deallocate(cursor),
        "discard" => session::discard(cursor),
        "unlisten" => session::unlisten(cursor),
        "begin" | "start" => transaction::begin(cursor),
        "commit" | "end" => transaction::commit(cursor),
        "rollback" | "abort" => transaction::rollback(cursor),
        "savepoint" | "release" => transaction::savepoint(cursor),
        "declare" => cursors::declare(cursor),
        "fetch" => cursors::fetch(cursor),
        "close" => cursors::close(cursor),
        _ => Err(unsupported::statement(cursor)),
    }
}

/// `EXPLAIN [ANALYZE] [VERBOSE] statement`, `EXPLAIN (option, ..) statement`, `EXPLAIN query_id`.
fn explain(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("explain")?;
    let mut analyze = false;
    if cursor.at(&Token::LParen)
        && !matches!(
            cursor.word_at(1),
            Some("select" | "with" | "values" | "table") | None
        )
    {
        analyze = explain_options(cursor)?;
    } else {
        while let Some(option) = cursor.accept_one_of(&["analyze", "analyse", "verbose"]) {
            analyze |= option != "verbose";
        }
    }
    if cursor.index() + 1 == cursor.len() {
        let id = cursor.expect_name("a statement or the id of a query")?;
        return Ok(Statement::Explain(Explain {
            analyze,
            target: ExplainTarget::Query(id),
        }));
    }
    let start = cursor.span();
    let target = if cursor.at_words(&["explain"]) {
        None
    } else {
        Some(statement(cursor)?)
    };
    match target {
        Some(
            target @ (Statement::Query(_)
            | Statement::CreateSource(_)
            | Statement::CreateAs(_)
            | Statement::Insert(_)),
        ) => Ok(Statement::Explain(Explain {
            analyze,
            target: ExplainTarget::Statement(Box::new(target)),
        })),
        _ => Err(SqlError::unsupported("EXPLAIN of this statement", start)
            .with_hint("EXPLAIN takes a query, a CREATE, an INSERT or the id of a running query")),
    }
}

/// `(ANALYZE [boolean], FORMAT TEXT, ..)`: true if ANALYZE is on. Options that only change what PostgreSQL prints are accepted.
fn explain_options(cursor: &mut Cursor) -> Result<bool, SqlError> {
    let mut analyze = false;
    cursor.expect_token(&Token::LParen)?;
    loop {
        let option = cursor.expect_one_of(&[
            "analyze", "analyse", "verbose", "costs", "settings", "buffers", "wal", "timing",
            "summary", "memory", "format",
        ])?;
        if option == "format" {
            if !cursor.accept("text") {
                return Err(cursor
                    .unsupported("this EXPLAIN format")
                    .with_hint("the format is TEXT"));
            }
        } else {
            let on = match cursor.accept_one_of(&["true", "on", "false", "off"]) {
                Some(value) => matches!(value, "true" | "on"),
                None => true,
            };
            if matches!(option, "analyze" | "analyse") {
                analyze = on;
            }
        }
        if !cursor.accept_token(&Token::Comma) {
            break;
        }
    }
    cursor.expect_token(&Token::RParen)?;
    Ok(analyze)
}
