//! How a text is read: by which dialect's grammar, and to which case a name without quotes folds.
//!
//! The two are told apart because people who bring ksqlDB's scripts to PostgreSQL's clients want the one without the other. Whoever keeps a
//! statement's canonical text keeps its [`Language`] beside it: the same text can mean other names in another language.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// Whose grammar and meaning a statement has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// PostgreSQL's, with ksqlDB's statements and clauses beside.
    #[default]
    Postgres,
    /// ksqlDB's: `@` and a leading digit may be part of a name, and fewer words are reserved.
    Ksql,
}

/// The case that names without quotes are turned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IdentifierCase {
    /// As PostgreSQL does.
    #[default]
    Lower,
    /// As ksqlDB does.
    Upper,
}

/// How one text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Language {
    /// Its grammar and meaning.
    pub dialect: Dialect,
    /// Its names without quotes.
    pub identifier_case: IdentifierCase,
}

impl Language {
    /// PostgreSQL's dialect with its folding: the default.
    pub const POSTGRES: Self = Self {
        dialect: Dialect::Postgres,
        identifier_case: IdentifierCase::Lower,
    };
    /// ksqlDB's dialect with its folding.
    pub const KSQL: Self = Self {
        dialect: Dialect::Ksql,
        identifier_case: IdentifierCase::Upper,
    };
}

impl Dialect {
    /// The folding that belongs to the dialect.
    pub fn identifier_case(self) -> IdentifierCase {
        match self {
            Self::Postgres => IdentifierCase::Lower,
            Self::Ksql => IdentifierCase::Upper,
        }
    }

    /// The dialect with the folding that belongs to it.
    pub fn language(self) -> Language {
        Language {
            dialect: self,
            identifier_case: self.identifier_case(),
        }
    }
}

impl IdentifierCase {
    /// `word` as a name without quotes means it. Letters beyond ASCII stay as they are, as in PostgreSQL.
    pub fn fold(self, word: &str) -> String {
        match self {
            Self::Lower => word.to_ascii_lowercase(),
            Self::Upper => word.to_ascii_uppercase(),
        }
    }
}

/// The text is no dialect, or no case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is none of {choices}")]
pub struct UnknownLanguage {
    /// What was given.
    pub text: String,
    /// What could have been given.
    pub choices: &'static str,
}

impl Display for Dialect {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "postgres",
            Self::Ksql => "ksql",
        })
    }
}

impl FromStr for Dialect {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, UnknownLanguage> {
        match text.to_ascii_lowercase().as_str() {
            "postgres" | "postgresql" => Ok(Self::Postgres),
            "ksql" | "ksqldb" => Ok(Self::Ksql),
            _ => Err(UnknownLanguage {
                text: text.to_string(),
                choices: "postgres, ksql",
            }),
        }
    }
}

impl Display for IdentifierCase {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Lower => "lower",
            Self::Upper => "upper",
        })
    }
}

impl FromStr for IdentifierCase {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, UnknownLanguage> {
        match text.to_ascii_lowercase().as_str() {
            "lower" => Ok(Self::Lower),
            "upper" => Ok(Self::Upper),
            _ => Err(UnknownLanguage {
                text: text.to_string(),
                choices: "lower, upper",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_languages_are_read_back() {
        for dialect in [Dialect::Postgres, Dialect::Ksql] {
            assert_eq!(dialect.to_string().parse(), Ok(dialect));
        }
        for case in [IdentifierCase::Lower, IdentifierCase::Upper] {
            assert_eq!(case.to_string().parse(), Ok(case));
        }
        let error = "oracle".parse::<Dialect>().unwrap_err();
        assert_eq!(error.to_string(), "\"oracle\" is none of postgres, ksql");
        assert!("mixed".parse::<IdentifierCase>().is_err());
    }

    #[test]
    fn only_ascii_letters_fold() {
        assert_eq!(IdentifierCase::Upper.fold("aÄö_1"), "AÄö_1");
        assert_eq!(IdentifierCase::Lower.fold("AÄö_1"), "aÄö_1");
    }
}
