//! `COPY`, with PostgreSQL's options in both of their spellings.

use sqlparser::tokenizer::Token;

use super::query;
use crate::ast::{Copy, CopyDirection, CopyFormat, CopyOptions, CopyTarget, Statement};
use crate::cursor::Cursor;
use crate::error::SqlError;

/// Names of the encoding that all text is in.
const UTF8: [&str; 3] = ["utf8", "utf-8", "unicode"];

/// `COPY name [(columns)] FROM STDIN`, `COPY name [(columns)] TO STDOUT`, `COPY (query) TO STDOUT`, each with options.
pub(super) fn copy(cursor: &mut Cursor) -> Result<Statement, SqlError> {
    cursor.expect("copy")?;
    let target = if cursor.at(&Token::LParen) {
        CopyTarget::Query(query::in_parentheses(cursor)?)
    } else {
        let name = cursor.expect_source_name()?;
        let columns = if cursor.at(&Token::LParen) {
            cursor.expect_name_list("the name of a column")?
        } else {
            Vec::new()
        };
        CopyTarget::Relation { name, columns }
    };
    let direction = match cursor.expect_one_of(&["from", "to"])? {
        "from" if matches!(target, CopyTarget::Query(_)) => {
            cursor.rewind(cursor.index() - 1);
            return Err(cursor.expected("TO"));
        }
        "from" => expect_end_point(cursor, "stdin", CopyDirection::FromStdin)?,
        _ => expect_end_point(cursor, "stdout", CopyDirection::ToStdout)?,
    };
    let options = expect_options(cursor)?;
    Ok(Statement::Copy(Copy {
        target,
        direction,
        options,
    }))
}

/// STDIN or STDOUT: the server reads and writes no files for a client.
fn expect_end_point(
    cursor: &mut Cursor,
    stream: &str,
    direction: CopyDirection,
) -> Result<CopyDirection, SqlError> {
    if cursor.accept(stream) {
        return Ok(direction);
    }
    let is_file = matches!(cursor.peek(), Some(Token::SingleQuotedString(_)));
    if is_file || cursor.at_words(&["program"]) {
        let hint = format!(
            "use {} and let the client read or write the file, in psql with \\copy",
            stream.to_uppercase()
        );
        return Err(cursor
            .unsupported("COPY with a file of the server")
            .with_hint(&hint));
    }
    Err(cursor.expected(&stream.to_uppercase()))
}

/// Options as given; what is missing depends on the format.
#[derive(Debug, Default)]
struct Given {
    format: Option<CopyFormat>,
    header: Option<bool>,
    delimiter: Option<u8>,
    null: Option<String>,
    quote: Option<u8>,
    escape: Option<u8>,
}

fn expect_options(cursor: &mut Cursor) -> Result<CopyOptions, SqlError> {
    let start = cursor.span();
    cursor.accept("with");
    let mut given = Given::default();
    if cursor.accept_token(&Token::LParen) {
        loop {
            expect_listed_option(cursor, &mut given)?;
            if !cursor.accept_token(&Token::Comma) {
                break;
            }
        }
        cursor.expect_token(&Token::RParen)?;
    } else {
        while !cursor.at_end() {
            expect_legacy_option(cursor, &mut given)?;
        }
    }
    complete(given).map_err(|message| SqlError::syntax(cursor.script(), start, message))
}

/// Fills in the defaults of the format and checks what cannot go together.
fn complete(given: Given) -> Result<CopyOptions, &'static str> {
    let format = given.format.unwrap_or(CopyFormat::Text);
    let is_csv = format == CopyFormat::Csv;
    if !is_csv && (given.quote.is_some() || given.escape.is_some()) {
        return Err("QUOTE and ESCAPE go with the format CSV only");
    }
    let quote = given.quote.unwrap_or(b'"');
    let options = CopyOptions {
        format,
        header: given.header.unwrap_or(false),
        delimiter: given.delimiter.unwrap_or(if is_csv { b',' } else { b'\t' }),
        null: given.null.unwrap_or_else(|| {
            if is_csv {
                String::new()
            } else {
                "\\N".to_string()
            }
        }),
        quote,
        escape: given.escape.unwrap_or(quote),
    };
    let breaks_lines = |text: &[u8]| text.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    if breaks_lines(&[options.delimiter, options.quote, options.escape])
        || breaks_lines(options.null.as_bytes())
    {
        return Err("a COPY option must not hold a line break");
    }
    if is_csv && options.delimiter == options.quote {
        return Err("DELIMITER and QUOTE must differ");
    }
    if options.null.as_bytes().contains(&options.delimiter) {
        return Err("NULL must not hold the DELIMITER");
    }
    let means_something = |byte: u8| byte == b'\\' || byte == b'.' || byte.is_ascii_alphanumeric();
    if !is_csv && means_something(options.delimiter) {
        return Err("this DELIMITER has a meaning of its own in the text format");
    }
    Ok(options)
}

/// One option of `( .. )`: `FORMAT csv`, `HEADER`, `DELIMITER ','`, ..
fn expect_listed_option(cursor: &mut Cursor, given: &mut Given) -> Result<(), SqlError> {
    let start = cursor.index();
    let option = cursor.word().unwrap_or_default().to_string();
    cursor.next();
    let repeated = match option.as_str() {
        "format" => {
            let format = expect_format(cursor)?;
            given.format.replace(format).is_some()
        }
        "header" => {
            let header = accept_header(cursor)?;
            given.header.replace(header).is_some()
        }
        "delimiter" => given.delimiter.replace(expect_byte(cursor)?).is_some(),
        "null" => given
            .null
            .replace(cursor.expect_string("a text in single quotes")?)
            .is_some(),
        "quote" => given.quote.replace(expect_byte(cursor)?).is_some(),
        "escape" => given.escape.replace(expect_byte(cursor)?).is_some(),
        "encoding" => {
            expect_encoding(cursor)?;
            false
        }
        "freeze" | "force_quote" | "force_not_null" | "force_null" | "on_error" | "default"
        | "log_verbosity" | "reject_limit" => {
            cursor.rewind(start);
            return Err(cursor.unsupported(format!("COPY option {}", option.to_uppercase())));
        }
        _ => {
            cursor.rewind(start);
            return Err(cursor.expected(
                "a COPY option: FORMAT, HEADER, DELIMITER, NULL, QUOTE, ESCAPE or ENCODING",
            ));
        }
    };
    if repeated {
        cursor.rewind(start);
        return Err(cursor.error("this option is given twice"));
    }
    Ok(())
}

/// One option of the older spelling: `CSV`, `HEADER`, `DELIMITER [AS] ','`, ..
fn expect_legacy_option(cursor: &mut Cursor, given: &mut Given) -> Result<(), SqlError> {
    let start = cursor.index();
    let option = cursor.word().unwrap_or_default().to_string();
    cursor.next();
    let repeated = match option.as_str() {
        "csv" => given.format.replace(CopyFormat::Csv).is_some(),
        "header" => given.header.replace(true).is_some(),
        "delimiter" | "delimiters" | "null" | "quote" | "escape" => {
            cursor.accept("as");
            match option.as_str() {
                "null" => given
                    .null
                    .replace(cursor.expect_string("a text in single quotes")?)
                    .is_some(),
                "quote" => given.quote.replace(expect_byte(cursor)?).is_some(),
                "escape" => given.escape.replace(expect_byte(cursor)?).is_some(),
                _ => given.delimiter.replace(expect_byte(cursor)?).is_some(),
            }
        }
        "encoding" => {
            expect_encoding(cursor)?;
            false
        }
        "binary" | "freeze" | "force" | "where" => {
            cursor.rewind(start);
            return Err(cursor.unsupported(format!("COPY option {}", option.to_uppercase())));
        }
        _ => {
            cursor.rewind(start);
            return Err(
                cursor.expected("a COPY option: CSV, HEADER, DELIMITER, NULL, QUOTE or ESCAPE")
            );
        }
    };
    if repeated {
        cursor.rewind(start);
        return Err(cursor.error("this option is given twice"));
    }
    Ok(())
}

/// A word or a string, in lower case.
fn accept_word_or_string(cursor: &mut Cursor) -> Option<String> {
    if let Some(text) = cursor.accept_string() {
        return Some(text.to_lowercase());
    }
    match cursor.peek() {
        Some(Token::Word(word)) => {
            let text = word.value.to_lowercase();
            cursor.next();
            Some(text)
        }
        _ => None,
    }
}

fn expect_format(cursor: &mut Cursor) -> Result<CopyFormat, SqlError> {
    let start = cursor.index();
    match accept_word_or_string(cursor).as_deref() {
        Some("csv") => Ok(CopyFormat::Csv),
        Some("text") => Ok(CopyFormat::Text),
        Some("binary") => {
            cursor.rewind(start);
            Err(cursor
                .unsupported("COPY in binary format")
                .with_hint("the formats are text and csv"))
        }
        _ => {
            cursor.rewind(start);
            Err(cursor.expected("text or csv"))
        }
    }
}

/// The value of HEADER, which is on when none is given.
fn accept_header(cursor: &mut Cursor) -> Result<bool, SqlError> {
    if cursor.at(&Token::Comma) || cursor.at(&Token::RParen) {
        return Ok(true);
    }
    if let Some(Token::Number(..)) = cursor.peek() {
        return cursor
            .expect_count("TRUE or FALSE")
            .map(|number| number != 0);
    }
    let start = cursor.index();
    match accept_word_or_string(cursor).as_deref() {
        Some("true" | "on") => Ok(true),
        Some("false" | "off") => Ok(false),
        Some("match") => {
            cursor.rewind(start);
            Err(cursor.unsupported("HEADER MATCH"))
        }
        _ => {
            cursor.rewind(start);
            Err(cursor.expected("TRUE or FALSE"))
        }
    }
}

/// A text of one byte.
fn expect_byte(cursor: &mut Cursor) -> Result<u8, SqlError> {
    let what = "one ASCII character in single quotes";
    let start = cursor.index();
    let text = cursor.expect_string(what)?;
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => {
            cursor.rewind(start);
            Err(cursor.expected(what))
        }
    }
}

fn expect_encoding(cursor: &mut Cursor) -> Result<(), SqlError> {
    let start = cursor.index();
    let encoding = cursor.expect_string("the name of an encoding in single quotes")?;
    if UTF8.contains(&encoding.to_lowercase().as_str()) {
        return Ok(());
    }
    cursor.rewind(start);
    Err(cursor.unsupported("an encoding other than UTF8"))
}
