//! What must hold for any bytes at all: the entry of the fuzz targets in `fuzz/` and of the seeded mutation test.

use crate::definitions::{Definitions, substitute};
use crate::error::SqlError;
use crate::format::format_statement;
use crate::language::{Dialect, IdentifierCase, Language};
use crate::limits::Limits;
use crate::parser::{parse_script_in, parse_statement_in};
use crate::scan::statement_is_complete;

/// Reads `data` as a script; its first byte chooses the language.
///
/// # Panics
///
/// If the parser breaks a promise: an error points outside the text, or a statement that was written back is another one.
pub fn script(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    let language = language(*choice);
    let text = String::from_utf8_lossy(text);
    let _ = statement_is_complete(&text);
    let mut definitions = Definitions::default();
    let fits = definitions.define("a", "it's ${a}, \"b\"").is_ok();
    assert!(fits, "a short value has room");
    if let Ok(Some(substituted)) = substitute(&text, &definitions, language, &Limits::default()) {
        for (offset, _) in substituted.text.char_indices() {
            assert!(substituted.origin(offset) <= text.len(), "{text:?}");
        }
        let _ = parse_script_in(&substituted.text, language);
    }
    match parse_script_in(&text, language) {
        Err(error) => check_error(&text, &error),
        Ok(statements) => {
            for parsed in statements {
                assert_eq!(text.get(parsed.span.range()), Some(parsed.text.as_str()));
                let written = format_statement(&parsed.statement, language.identifier_case);
                match parse_statement_in(&written, language) {
                    Ok(again) if again.statement == parsed.statement => {}
                    // Brackets that are written between signs may pass a limit.
                    Err(SqlError::TooComplex { .. }) => {}
                    // Told to whoever wants to keep the statement: such a text is not kept.
                    _ => assert!(parsed.canonical_text().is_err(), "{text:?}\n{written}"),
                }
            }
        }
    }
}

fn check_error(text: &str, error: &SqlError) {
    assert!(
        text.get(error.span().range()).is_some(),
        "{text:?}: {error:?}"
    );
    assert!(error.position(text) <= text.chars().count() + 1);
    assert!(error.to_string().len() < 1000, "{error}");
}

fn language(choice: u8) -> Language {
    Language {
        dialect: [Dialect::Postgres, Dialect::Ksql][usize::from(choice & 1)],
        identifier_case: [IdentifierCase::Lower, IdentifierCase::Upper]
            [usize::from(choice >> 1 & 1)],
    }
}
