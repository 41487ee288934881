//! Names: which words need quotes, and how a name is written back.
//!
//! A name in the tree is folded already. [`quote_name`] writes it so that parsing folds it to the same name again.

use crate::language::IdentifierCase;

/// Words that cannot be a name without quotes: they begin or join the clauses of a query.
const RESERVED: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "between",
    "by",
    "case",
    "cast",
    "collate",
    "create",
    "cross",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "desc",
    "distinct",
    "else",
    "end",
    "except",
    "exists",
    "false",
    "fetch",
    "for",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "if",
    "in",
    "inner",
    "intersect",
    "interval",
    "into",
    "is",
    "join",
    "lateral",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "outer",
    "partition",
    "primary",
    "references",
    "right",
    "select",
    "session_user",
    "some",
    "struct",
    "table",
    "then",
    "to",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "when",
    "where",
    "with",
];

/// Whether `word`, in lower case, is a clause's keyword that no unquoted name may be.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok()
}

/// Words among them that cannot be a name in ksqlDB's dialect. The others are names there, as in ksqlDB.
const RESERVED_IN_KSQL: &[&str] = &[
    "and",
    "as",
    "between",
    "by",
    "case",
    "cast",
    "create",
    "distinct",
    "else",
    "end",
    "except",
    "exists",
    "false",
    "from",
    "full",
    "group",
    "having",
    "in",
    "inner",
    "intersect",
    "into",
    "is",
    "join",
    "left",
    "like",
    "limit",
    "not",
    "null",
    "on",
    "or",
    "outer",
    "right",
    "select",
    "then",
    "true",
    "union",
    "using",
    "values",
    "when",
    "where",
    "with",
];

/// Whether `word`, in lower case, is a keyword that no unquoted name may be in ksqlDB's dialect.
pub(crate) fn is_reserved_in_ksql(word: &str) -> bool {
    RESERVED_IN_KSQL.binary_search(&word).is_ok()
}

/// Whether `text` is a word in lower case, reserved or not.
pub(crate) fn is_plain_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// `text` as a name in SQL whose names fold to lower case: as it is where that is safe, else in double quotes.
pub fn quote_name(text: &str) -> String {
    quote_name_in(text, IdentifierCase::Lower)
}

/// `text` as a name in SQL whose names fold to `case`: as it is where that is safe in every dialect, else in double quotes.
pub fn quote_name_in(text: &str, case: IdentifierCase) -> String {
    let lower = text.to_ascii_lowercase();
    if case.fold(text) == text && is_plain_word(&lower) && !is_reserved(&lower) {
        text.to_string()
    } else {
        force_quote_name(text)
    }
}

/// `text` in double quotes.
pub(crate) fn force_quote_name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// `text` as a string literal in SQL.
pub fn quote_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_sorted() {
        assert!(RESERVED.is_sorted());
        assert!(RESERVED_IN_KSQL.is_sorted());
        assert!(RESERVED_IN_KSQL.iter().all(|word| is_reserved(word)));
    }

    #[test]
    fn names_are_quoted_where_needed() {
        assert_eq!(quote_name("flights"), "flights");
        assert_eq!(quote_name("window"), "window");
        assert_eq!(quote_name("Flights"), "\"Flights\"");
        assert_eq!(quote_name("select"), "\"select\"");
        assert_eq!(quote_name("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote_name("1a"), "\"1a\"");
        assert_eq!(quote_name(""), "\"\"");
        assert_eq!(quote_name_in("FLIGHTS", IdentifierCase::Upper), "FLIGHTS");
        assert_eq!(
            quote_name_in("flights", IdentifierCase::Upper),
            "\"flights\""
        );
        assert_eq!(quote_name_in("SELECT", IdentifierCase::Upper), "\"SELECT\"");
        assert_eq!(quote_literal("it's"), "'it''s'");
    }
}
