//! Which format, read from the properties of a statement.

use crate::error::{FormatError, FormatResult};

/// Which format, with its properties.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FormatSpec {
    /// No bytes at all: the key format of a source without key columns.
    None,
    /// Kafka's own serdes: big-endian integers and doubles, UTF-8 text; exactly one column.
    Kafka,
    /// CSV with minimal quotes and one delimiter.
    Delimited {
        /// Field separator.
        delimiter: u8,
    },
    /// JSON: an object by column name, or the bare value when `wrapped` is false and there is one column.
    Json {
        /// `WRAP_SINGLE_VALUE`.
        wrapped: bool,
    },
}

/// The delimiter when none is given.
const DEFAULT_DELIMITER: u8 = b',';

impl FormatSpec {
    /// Reads a format name and the texts of the delimiter and wrap properties as `WITH (..)` gives them; names in any case.
    ///
    /// A single JSON value is wrapped in an object unless `wrap` says `false`; the formats without objects refuse `wrap = true`.
    pub fn parse(name: &str, delimiter: Option<&str>, wrap: Option<&str>) -> FormatResult<Self> {
        let wrap = wrap.map(parse_wrap).transpose()?;
        let spec = match name.trim().to_ascii_uppercase().as_str() {
            "NONE" => Self::None,
            "KAFKA" => Self::Kafka,
            "DELIMITED" => Self::Delimited {
                delimiter: delimiter.map_or(Ok(DEFAULT_DELIMITER), parse_delimiter)?,
            },
            "JSON" => Self::Json {
                wrapped: wrap.unwrap_or(true),
            },
            _ => {
                return Err(FormatError::UnknownFormat {
                    name: name.to_owned(),
                });
            }
        };
        if delimiter.is_some() && !matches!(spec, Self::Delimited { .. }) {
            return Err(FormatError::UnsupportedProperty {
                format: spec.name(),
                property: "DELIMITER",
            });
        }
        if wrap == Some(true) && !matches!(spec, Self::Json { .. }) {
            return Err(FormatError::UnsupportedProperty {
                format: spec.name(),
                property: "WRAP_SINGLE_VALUE",
            });
        }
        Ok(spec)
    }

    /// The name as statements write it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Kafka => "KAFKA",
            Self::Delimited { .. } => "DELIMITED",
            Self::Json { .. } => "JSON",
        }
    }
}

fn parse_wrap(text: &str) -> FormatResult<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(FormatError::InvalidProperty {
            property: "WRAP_SINGLE_VALUE",
            value: text.to_owned(),
            reason: "expected true or false",
        }),
    }
}

/// One character, or the names of the two that a statement cannot show well.
fn parse_delimiter(text: &str) -> FormatResult<u8> {
    let invalid = |reason| FormatError::InvalidProperty {
        property: "DELIMITER",
        value: text.to_owned(),
        reason,
    };
    if text.eq_ignore_ascii_case("SPACE") {
        return Ok(b' ');
    }
    if text.eq_ignore_ascii_case("TAB") {
        return Ok(b'\t');
    }
    if text.trim().is_empty() {
        return Err(invalid(
            "the delimiter cannot be empty or blank; write TAB or SPACE for those two",
        ));
    }
    match text.as_bytes() {
        [b'"' | b'\r' | b'\n' | 0..=8] => Err(invalid(
            "this character has a meaning of its own in the format",
        )),
        [byte] => Ok(*byte),
        _ => Err(invalid(
            "the delimiter must be a single ASCII character, TAB or SPACE",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_properties() {
        let parse = FormatSpec::parse;
        assert_eq!(
            parse("json", None, None).unwrap(),
            FormatSpec::Json { wrapped: true }
        );
        assert_eq!(
            parse("Json", None, Some("FALSE")).unwrap(),
            FormatSpec::Json { wrapped: false }
        );
        assert_eq!(
            parse("KAFKA", None, Some("false")).unwrap(),
            FormatSpec::Kafka
        );
        assert_eq!(parse("none", None, None).unwrap(), FormatSpec::None);
        for (text, delimiter) in [("|", b'|'), ("space", b' '), ("TAB", b'\t'), ("$", b'$')] {
            assert_eq!(
                parse("delimited", Some(text), None).unwrap(),
                FormatSpec::Delimited { delimiter }
            );
        }
        assert_eq!(parse("DELIMITED", None, None).unwrap().name(), "DELIMITED");
    }

    #[test]
    fn wrong_properties_are_refused() {
        for (name, delimiter, wrap) in [
            ("xml", None, None),
            ("JSON", Some("|"), None),
            ("JSON", None, Some("maybe")),
            ("KAFKA", None, Some("true")),
            ("DELIMITED", None, Some("true")),
            ("DELIMITED", Some(""), None),
            ("DELIMITED", Some("\t"), None),
            ("DELIMITED", Some("ab"), None),
            ("DELIMITED", Some("§"), None),
            ("DELIMITED", Some("\""), None),
        ] {
            assert!(
                FormatSpec::parse(name, delimiter, wrap).is_err(),
                "{name} {delimiter:?} {wrap:?}"
            );
        }
    }
}
