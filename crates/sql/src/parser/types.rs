//! Types, in ksqlDB's and PostgreSQL's spellings.
//!
//! `>>` closes two nested types. Types that are accepted lose what the engine does not keep: `VARCHAR(20)` is a STRING of any length.

use std::collections::HashSet;

use sqlparser::tokenizer::Token;

use crate::ast::SqlType;
use crate::cursor::Cursor;
use crate::error::{Span, SqlError};
use crate::language::Language;
use crate::limits::Limits;
use crate::standard_type::DEFAULT_DECIMAL;
use crate::token::{self, Splitter};

/// The most digits of a DECIMAL: what 256 bits hold.
const MAX_DECIMAL_PRECISION: u64 = 76;

/// Parses a text that is a type and nothing else, such as `MAP<STRING, ARRAY<INT>>`.
pub fn parse_type(text: &str, language: Language) -> Result<SqlType, SqlError> {
    let limits = Limits::default();
    token::check_text(text, &limits)?;
    let mut splitter = Splitter::new(text, language, &limits);
    let end = Span::new(text.len(), text.len());
    let tokens = splitter
        .next_statement()?
        .ok_or_else(|| SqlError::syntax(text, end, "expected a type"))?;
    let mut cursor = Cursor::new(tokens.origin, tokens.tokens);
    let data_type = expect_type(&mut cursor)?;
    cursor.expect_end()?;
    Ok(data_type)
}

/// Takes a type.
pub(super) fn expect_type(cursor: &mut Cursor) -> Result<SqlType, SqlError> {
    let mut parser = TypeParser {
        cursor,
        half_closed: false,
        depth: 0,
    };
    let data_type = parser.expect_type()?;
    if parser.half_closed {
        return Err(cursor.error("this \">>\" closes one type too many"));
    }
    Ok(data_type)
}

/// A type being read.
struct TypeParser<'c, 's> {
    cursor: &'c mut Cursor<'s>,
    /// The cursor is at a `>>` of which the first half is used up.
    half_closed: bool,
    depth: usize,
}

impl TypeParser<'_, '_> {
    /// A type with the array suffixes behind it.
    fn expect_type(&mut self) -> Result<SqlType, SqlError> {
        self.depth += 1;
        let limit = self.cursor.limits().depth;
        if self.depth > limit {
            let what = format!("type nested deeper than {limit}");
            return Err(SqlError::TooComplex {
                what,
                span: self.cursor.span(),
            });
        }
        let mut data_type = self.expect_element()?;
        let mut suffixes = 0;
        while !self.half_closed && self.accept_array_suffix()? {
            suffixes += 1;
            if suffixes + self.depth > limit {
                let what = format!("type nested deeper than {limit}");
                return Err(SqlError::TooComplex {
                    what,
                    span: self.cursor.span(),
                });
            }
            data_type = SqlType::Array(Box::new(data_type));
        }
        self.depth -= 1;
        Ok(data_type)
    }

    /// `ARRAY`, `ARRAY[n]`, `[]` or `[n]` behind a type; the length says nothing, as in PostgreSQL.
    fn accept_array_suffix(&mut self) -> Result<bool, SqlError> {
        let word = self.cursor.accept("array");
        let bracket = self.cursor.accept_token(&Token::LBracket);
        if bracket {
            if !self.cursor.at(&Token::RBracket) {
                self.cursor.expect_count("the length of an array")?;
            }
            self.cursor.expect_token(&Token::RBracket)?;
        }
        Ok(word || bracket)
    }

    fn expect_element(&mut self) -> Result<SqlType, SqlError> {
        let start = self.cursor.index();
        let Some(word) = self.cursor.word().map(str::to_string) else {
            // A name in quotes is always one that CREATE TYPE gave.
            return self.cursor.expect_name("a type").map(SqlType::Named);
        };
        self.cursor.next();
        let data_type = match word.as_str() {
            "boolean" | "bool" => SqlType::Boolean,
            "smallint" | "int2" => SqlType::SmallInt,
            "int" | "integer" | "int4" => SqlType::Int,
            "bigint" | "int8" => SqlType::BigInt,
            "real" | "float4" => SqlType::Real,
            "double" => {
                self.cursor.accept("precision");
                SqlType::Double
            }
            "float8" => SqlType::Double,
            "float" => self.expect_float()?,
            "decimal" | "numeric" | "dec" => self.expect_decimal()?,
            "string" | "text" => SqlType::String,
            "varchar" | "char" => self.expect_varchar(word == "varchar")?,
            "character" => {
                let varying = self.cursor.accept("varying");
                self.expect_varchar(varying)?
            }
            "bytes" | "bytea" => SqlType::Bytes,
            "date" => SqlType::Date,
            "time" => self.expect_zone(SqlType::Time, None)?,
            "timestamp" => self.expect_zone(SqlType::Timestamp, Some(SqlType::TimestampTz))?,
            "timestamptz" => SqlType::TimestampTz,
            "array" => {
                self.cursor.expect_token(&Token::Lt)?;
                let element = self.expect_type()?;
                self.expect_close()?;
                SqlType::Array(Box::new(element))
            }
            "map" => self.expect_map()?,
            "struct" => self.expect_struct()?,
            _ => {
                self.cursor.rewind(start);
                refuse_foreign(self.cursor, &word)?;
                SqlType::Named(self.cursor.expect_name("a type")?)
            }
        };
        Ok(data_type)
    }

    /// `FLOAT` is double; `FLOAT(n)` tells the bits of the mantissa, as in PostgreSQL.
    fn expect_float(&mut self) -> Result<SqlType, SqlError> {
        if !self.cursor.accept_token(&Token::LParen) {
            return Ok(SqlType::Double);
        }
        let start = self.cursor.index();
        let bits = self.cursor.expect_count("a precision from 1 to 53")?;
        if !(1..=53).contains(&bits) {
            self.cursor.rewind(start);
            return Err(self.cursor.expected("a precision from 1 to 53"));
        }
        self.cursor.expect_token(&Token::RParen)?;
        Ok(if bits <= 24 {
            SqlType::Real
        } else {
            SqlType::Double
        })
    }

    /// The `(p, s)` of a decimal.
    fn expect_decimal(&mut self) -> Result<SqlType, SqlError> {
        if !self.cursor.accept_token(&Token::LParen) {
            return Ok(SqlType::Decimal(DEFAULT_DECIMAL.0, DEFAULT_DECIMAL.1));
        }
        let what = format!("a precision from 1 to {MAX_DECIMAL_PRECISION}");
        let precision = self.expect_in(1, MAX_DECIMAL_PRECISION, &what)?;
        let scale = if self.cursor.accept_token(&Token::Comma) {
            self.expect_in(0, precision, "a scale from 0 to the precision")?
        } else {
            0
        };
        self.cursor.expect_token(&Token::RParen)?;
        match (u8::try_from(precision), i8::try_from(scale)) {
            (Ok(precision), Ok(scale)) => Ok(SqlType::Decimal(precision, scale)),
            _ => Err(self.cursor.expected(&what)),
        }
    }

    /// A whole number between two bounds.
    fn expect_in(&mut self, low: u64, high: u64, what: &str) -> Result<u64, SqlError> {
        let start = self.cursor.index();
        let number = self.cursor.expect_count(what)?;
        if (low..=high).contains(&number) {
            return Ok(number);
        }
        self.cursor.rewind(start);
        Err(self.cursor.expected(what))
    }

    /// The `(n)` of a VARCHAR, for which ksqlDB takes `(STRING)` too; it says nothing. CHAR pads with blanks, which no format here does.
    fn expect_varchar(&mut self, varying: bool) -> Result<SqlType, SqlError> {
        if !varying {
            return Err(self.cursor.unsupported("type CHAR").with_hint("use STRING"));
        }
        if self.cursor.accept_token(&Token::LParen) {
            if !self.cursor.accept("string") {
                self.cursor.expect_count("a length")?;
            }
            self.cursor.expect_token(&Token::RParen)?;
        }
        Ok(SqlType::String)
    }

    /// `[(p)] [WITH|WITHOUT TIME ZONE]` behind TIME and TIMESTAMP. The precision is always the millisecond.
    fn expect_zone(
        &mut self,
        without: SqlType,
        with: Option<SqlType>,
    ) -> Result<SqlType, SqlError> {
        if self.cursor.accept_token(&Token::LParen) {
            self.expect_in(0, 6, "a precision from 0 to 6")?;
            self.cursor.expect_token(&Token::RParen)?;
        }
        if self.cursor.accept_words(&["without", "time", "zone"]) {
            return Ok(without);
        }
        if self.cursor.at_words(&["with", "time", "zone"]) {
            let Some(with) = with else {
                return Err(self
                    .cursor
                    .unsupported("type TIME WITH TIME ZONE")
                    .with_hint("use TIME or TIMESTAMPTZ"));
            };
            self.cursor.accept_words(&["with", "time", "zone"]);
            return Ok(with);
        }
        Ok(without)
    }

    fn expect_map(&mut self) -> Result<SqlType, SqlError> {
        self.cursor.expect_token(&Token::Lt)?;
        let key = self.expect_type()?;
        self.expect_comma()?;
        let value = self.expect_type()?;
        self.expect_close()?;
        Ok(SqlType::Map(Box::new(key), Box::new(value)))
    }

    fn expect_struct(&mut self) -> Result<SqlType, SqlError> {
        self.cursor.expect_token(&Token::Lt)?;
        let mut fields: Vec<(String, SqlType)> = Vec::new();
        let mut names = HashSet::new();
        loop {
            let start = self.cursor.index();
            let name = self.cursor.expect_name("the name of a field")?;
            if !names.insert(name.clone()) {
                self.cursor.rewind(start);
                return Err(self.cursor.error("this field is declared twice"));
            }
            fields.push((name, self.expect_type()?));
            if self.half_closed || !self.cursor.accept_token(&Token::Comma) {
                break;
            }
        }
        self.expect_close()?;
        Ok(SqlType::Struct(fields))
    }

    fn expect_comma(&mut self) -> Result<(), SqlError> {
        if self.half_closed {
            return Err(self.cursor.expected("\",\""));
        }
        self.cursor.expect_token(&Token::Comma)
    }

    /// A `>`, or one half of a `>>`.
    fn expect_close(&mut self) -> Result<(), SqlError> {
        if self.half_closed {
            self.half_closed = false;
            self.cursor.next();
            return Ok(());
        }
        if self.cursor.at(&Token::ShiftRight) {
            self.half_closed = true;
            return Ok(());
        }
        self.cursor.expect_token(&Token::Gt)
    }
}

/// Refuses types that people bring along from elsewhere, with a hint. Any other name may be one that CREATE TYPE gave.
fn refuse_foreign(cursor: &Cursor, word: &str) -> Result<(), SqlError> {
    let hint = match word {
        "json" | "jsonb" | "uuid" | "xml" | "inet" => Some("use STRING"),
        "tinyint" => Some("use SMALLINT"),
        "serial" | "bigserial" => Some("use INT or BIGINT"),
        "blob" | "binary" | "varbinary" => Some("use BYTES"),
        "datetime" => Some("use TIMESTAMP"),
        "interval" => None,
        _ => return Ok(()),
    };
    let error = cursor.unsupported(format!("type {}", word.to_uppercase()));
    Err(match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    })
}
